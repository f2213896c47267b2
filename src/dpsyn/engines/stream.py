"""The common part of engines that read batches, and the engine for tables that are larger than memory."""

from __future__ import annotations

from typing import Self, TypeVar

from dpsyn.encoding import Codec, ColumnCodec, Recoding
from dpsyn.engines.bounded_rows import BoundedRows
from dpsyn.engines.counting_queries import ColumnCodesQuery, CountingQuery, MarginalsQuery, TextsQuery
from dpsyn.engines.engine import CliqueAxes, Counts, Opaque
from dpsyn.errors import InternalError, SchemaError
from dpsyn.schema import Open, Schema

A = TypeVar("A")


class BatchEngine(Opaque):
    """The common part of engines that read rows in batches; subclasses implement ``prepare`` and ``count``."""

    def __init__(self, rows: BoundedRows) -> None:
        self._rows = rows

    @property
    def rereadable(self) -> bool:
        """Whether the source can be read more than once."""
        return self._rows.source.rereadable

    def require_rereadable(self, why: str) -> None:
        """Refuse a source that can be read only once; ``why`` names what needs another reading."""
        self._rows.require_rereadable(why)

    def count_texts(self, name: str) -> dict[str, int]:
        """The number of counted rows with each text of an open attribute."""
        attribute = open_attribute(self._rows.schema, name)
        self._rows.require_rereadable(f"discovering the values of {name!r} needs a reading of its own")
        return self._answer_query(TextsQuery(attribute))

    def count_column(self, name: str, column: ColumnCodec, size: int) -> Counts:
        """The number of counted rows with each code that another column codec reads from an attribute."""
        self._rows.require_rereadable(f"another encoding of {name!r} needs a reading of its own")
        return self._answer_query(ColumnCodesQuery(name, column, size))

    def with_schema(self, schema: Schema) -> Self:
        """The same rows under another schema."""
        self._rows.require_rereadable("another schema needs a further reading")
        return type(self)(self._rows.with_schema(schema))

    def _answer_query(self, query: CountingQuery[A]) -> A:
        """The answer to a query, from a reading of its own."""
        accumulator = query.new_accumulator()
        for values, mask in self._rows.read_batches(query.extract, query.extra_reading, query.columns):
            accumulator.add(values if mask is None else query.select_rows(values, mask))
        return query.answer(accumulator.keyed_counts())


def require_origin(recoding: Recoding, codec: Codec) -> None:
    """Refuse a recoding that was made for other fine codes: its look-up tables would not fit."""
    if recoding.origin != codec.domain:
        raise InternalError("the recoding was made for another schema")


def open_attribute(schema: Schema, name: str) -> Open:
    """The attribute of a name, if it is open, so that its texts may be counted."""
    attribute = schema[name]
    if not isinstance(attribute, Open):
        raise SchemaError(f"{name!r} is {attribute.kind}; only the texts of open attributes can be counted")
    return attribute


# ── tables that are larger than memory ───────────────────────────────────────────────────────────────────────


class StreamEngine(BatchEngine):
    """An ``Engine`` that reads the table for every query and counts batch by batch, all cliques of a query together.

    It needs memory for a few batches and the counts. With a privacy unit it also needs memory for k keys of each unit,
    which take one more reading before the first query. While a batch is counted, the next batches are encoded.

    Privacy: see ``Engine``. No row stays in memory after the query.
    """

    def __init__(self, rows: BoundedRows) -> None:
        rows.require_rereadable("the stream engine reads the table for every query")
        super().__init__(rows)

    def prepare(self) -> None:
        """Read the table once; with a privacy unit, keep the limits that decide which rows count."""
        self._rows.try_reading()

    def count(self, cliques: CliqueAxes, recoding: Recoding) -> list[Counts]:
        """The contingency table of each clique, over the rows that count."""
        require_origin(recoding, self._rows.codec)
        query = MarginalsQuery.of(cliques, recoding)
        accumulator = query.new_accumulator()
        for codes, mask in self._rows.read_batches(query.extract):
            accumulator.add(codes if mask is None else codes[mask])
        return accumulator.tables()
