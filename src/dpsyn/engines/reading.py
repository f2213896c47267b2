"""What all engines do alike: questions that are answered by reading the table once more."""

from __future__ import annotations

from collections import Counter
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.engines.engine import Counts, Opaque
from dpsyn.engines.rows import Rows
from dpsyn.errors import InternalError, SchemaError, SourceError
from dpsyn.records import Column
from dpsyn.records.texts import count_texts
from dpsyn.schema import Open, Schema
from dpsyn.transforms import Recoding


class ReadingEngine(Opaque):
    """An engine over rows that are read in batches; how they are counted is for others to say."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def require_again(self, why: str) -> None:
        """Refuse what needs another reading of a source that has only one."""
        self._rows.require_again(why)

    def count_texts(self, name: str) -> dict[str, int]:
        """How many of the rows that count have each text of an open attribute."""
        attribute = self._rows.schema[name]
        if not isinstance(attribute, Open):
            raise SchemaError(f"{name!r} is {attribute.kind}; only the texts of open attributes are counted")
        self._rows.require_again(f"the values of {name!r} are bought in a reading of their own")
        counts: Counter[str] = Counter()
        for texts, chosen in self._rows.batches(lambda part: part.batch.column(name), columns=[name]):
            counts.update(count_texts(texts if chosen is None else texts.filter(pa.array(chosen)), attribute))
        return dict(counts)

    def count_column(self, name: str, column: Column, size: int) -> Counts:
        """How many of the rows that count have each code that another column reads from an attribute."""
        kind = self._rows.source.schema.field(self._rows.schema[name].name).type
        if not column.fits(kind):
            raise SourceError(f"column {name!r} holds {kind}, which cannot be read as asked")
        self._rows.require_again(f"{name!r} is read in another way, in a reading of its own")

        def other(batch: pa.RecordBatch) -> NDArray[Any]:
            return column.read(batch.column(name)).cells

        counts = np.zeros(size, np.int64)
        for cells, chosen in self._rows.batches(lambda part: other(part.batch), other, [name]):
            found = np.bincount(cells if chosen is None else cells[chosen], minlength=size)
            if len(found) > size:
                raise InternalError(f"a column for {name!r} gives codes beyond its size")
            counts += found
        return counts

    def reopened(self, schema: Schema) -> Self:
        """The same rows under another schema."""
        self._rows.require_again("it would be read anew under another schema")
        return type(self)(self._rows.under(schema))

    def _check(self, recoding: Recoding) -> None:
        """Refuse a recoding that was made for other codes: it would be looked up in the wrong tables."""
        if recoding.origin != self._rows.codec.domain:
            raise InternalError("the recoding was made for another schema")
