"""What all engines do alike: questions that are answered by reading the table once more."""

from __future__ import annotations

from typing import Self, TypeVar

import pyarrow as pa

from dpsyn.encoding import Codec, ColumnCodec, Recoding
from dpsyn.engines.bounded_rows import BoundedRows
from dpsyn.engines.counting_queries import ColumnCodesQuery, CountingQuery, MarginalsQuery, TextsQuery
from dpsyn.engines.engine import CliqueAxes, Counts, Opaque
from dpsyn.errors import InternalError, SchemaError, SourceError
from dpsyn.schema import Open, Schema

A = TypeVar("A")


class BatchEngine(Opaque):
    """An engine over rows that are read in batches; how they are counted is for others to say."""

    def __init__(self, rows: BoundedRows) -> None:
        self._rows = rows

    def require_rereadable(self, why: str) -> None:
        """Refuse what needs another reading of a source that has only one."""
        self._rows.require_rereadable(why)

    def count_texts(self, name: str) -> dict[str, int]:
        """How many of the rows that count have each text of an open attribute."""
        attribute = open_attribute(self._rows.schema, name)
        self._rows.require_rereadable(f"the values of {name!r} are bought in a reading of their own")
        return self._answer_query(TextsQuery(attribute))

    def count_column(self, name: str, column: ColumnCodec, size: int) -> Counts:
        """How many of the rows that count have each code that another column reads from an attribute."""
        require_fitting(column, name, self._rows.source.schema)
        self._rows.require_rereadable(f"{name!r} is read in another way, in a reading of its own")
        return self._answer_query(ColumnCodesQuery(name, column, size))

    def with_schema(self, schema: Schema) -> Self:
        """The same rows under another schema."""
        self._rows.require_rereadable("it would be read anew under another schema")
        return type(self)(self._rows.with_schema(schema))

    def _answer_query(self, query: CountingQuery[A]) -> A:
        """The answer to a question, from a reading of its own."""
        counting = query.new_accumulator()
        for taken, chosen in self._rows.read_batches(query.extract, query.extra_reading, query.columns):
            counting.add(taken if chosen is None else query.select_rows(taken, chosen))
        return query.answer(counting.keyed_counts())


def require_origin(recoding: Recoding, codec: Codec) -> None:
    """Refuse a recoding that was made for other codes: it would be looked up in the wrong tables."""
    if recoding.origin != codec.domain:
        raise InternalError("the recoding was made for another schema")


def open_attribute(schema: Schema, name: str) -> Open:
    """An attribute whose texts may be counted."""
    attribute = schema[name]
    if not isinstance(attribute, Open):
        raise SchemaError(f"{name!r} is {attribute.kind}; only the texts of open attributes are counted")
    return attribute


def require_fitting(column: ColumnCodec, name: str, table: pa.Schema) -> None:
    """Refuse to read a column of a table in a way that its type does not allow."""
    kind = table.field(name).type
    if not column.accepts(kind):
        raise SourceError(f"column {name!r} holds {kind}, which cannot be read as asked")


# ── Counts of a table that is read anew for every question, so that it may be larger than memory ──


class StreamEngine(BatchEngine):
    """Counts batch by batch, all cliques of a question in one reading: an ``Engine``.

    Memory is bounded by a few batches and the counts; with a unit also by k keys of each person, which one more reading
    finds before the first question. While a batch is counted, the next ones are read into codes.

    Privacy: see ``Engine``. No row outlives the question.
    """

    def __init__(self, rows: BoundedRows) -> None:
        rows.require_rereadable("streaming reads the table anew for every question")
        super().__init__(rows)

    def prepare(self) -> None:
        """Read the table once and keep nothing of it, but which rows of a person count if there is a unit."""
        self._rows.try_reading()

    def count(self, cliques: CliqueAxes, recoding: Recoding) -> list[Counts]:
        """For each clique the table of counts of the rows that count."""
        require_origin(recoding, self._rows.codec)
        question = MarginalsQuery.of(cliques, recoding)
        counting = question.new_accumulator()
        for codes, chosen in self._rows.read_batches(question.extract):
            counting.add(codes if chosen is None else codes[chosen])
        return counting.tables()
