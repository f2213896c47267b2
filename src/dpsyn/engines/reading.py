"""What all engines do alike: questions that are answered by reading the table once more."""

from __future__ import annotations

from typing import Self, TypeVar

import pyarrow as pa

from dpsyn.engines.engine import Counts, Opaque
from dpsyn.engines.questions import Question, Readings, Texts
from dpsyn.engines.rows import Rows
from dpsyn.errors import InternalError, SchemaError, SourceError
from dpsyn.records import Codec, Column
from dpsyn.schema import Open, Schema
from dpsyn.transforms import Recoding

A = TypeVar("A")


class ReadingEngine(Opaque):
    """An engine over rows that are read in batches; how they are counted is for others to say."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def require_again(self, why: str) -> None:
        """Refuse what needs another reading of a source that has only one."""
        self._rows.require_again(why)

    def count_texts(self, name: str) -> dict[str, int]:
        """How many of the rows that count have each text of an open attribute."""
        attribute = open_attribute(self._rows.schema, name)
        self._rows.require_again(f"the values of {name!r} are bought in a reading of their own")
        return self._asked(Texts(attribute))

    def count_column(self, name: str, column: Column, size: int) -> Counts:
        """How many of the rows that count have each code that another column reads from an attribute."""
        require_fitting(column, name, self._rows.source.schema)
        self._rows.require_again(f"{name!r} is read in another way, in a reading of its own")
        return self._asked(Readings(name, column, size))

    def reopened(self, schema: Schema) -> Self:
        """The same rows under another schema."""
        self._rows.require_again("it would be read anew under another schema")
        return type(self)(self._rows.under(schema))

    def _asked(self, question: Question[A]) -> A:
        """The answer to a question, from a reading of its own."""
        counting = question.counting()
        for taken, chosen in self._rows.batches(question.take, question.other, question.columns):
            counting.add(taken if chosen is None else question.chosen(taken, chosen))
        return question.answer(counting.sums())


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


def require_fitting(column: Column, name: str, table: pa.Schema) -> None:
    """Refuse to read a column of a table in a way that its type does not allow."""
    kind = table.field(name).type
    if not column.fits(kind):
        raise SourceError(f"column {name!r} holds {kind}, which cannot be read as asked")
