"""pandas frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from dpsyn.errors import SourceError
from dpsyn.records.cells import text_of_cell
from dpsyn.sources.source import BATCH_ROWS, structural


class PandasSource:
    """A pandas frame.

    Columns of Python objects are read as text, cell by cell: their Arrow type would depend on the values, and
    so one row could change how another is read.
    """

    again = True
    bytes: int | None = None

    def __init__(self, frame: Any) -> None:
        self.where = "the given DataFrame"
        if frame.columns.nlevels > 1:
            raise SourceError(f"{self.where} has more than one level of column names; flatten them first")
        self._frame = frame
        self._names = [str(name) for name in frame.columns]
        self.schema = self._batch(frame.iloc[:0], self._names).schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows without the index."""
        chosen = self._frame.iloc[:, [self._names.index(name) for name in columns]]
        for start in range(0, len(chosen), BATCH_ROWS):
            yield self._batch(chosen.iloc[start : start + BATCH_ROWS], columns)

    def _batch(self, part: Any, names: Sequence[str]) -> pa.RecordBatch:
        with structural(self.where, "a column has a type that Arrow does not know"):
            arrays = [_array(part.iloc[:, place]) for place in range(len(names))]
        return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _array(series: Any) -> pa.Array:
    if series.dtype == object:
        return pa.array([text_of_cell(_plain(value)) for value in series], pa.string())
    array = pa.array(series, from_pandas=True)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _plain(value: Any) -> Any:
    """A cell of an object column; pandas' own marks for nothing become None."""
    if type(value).__module__.startswith("pandas") and str(value) in ("<NA>", "NaT"):
        return None
    return value
