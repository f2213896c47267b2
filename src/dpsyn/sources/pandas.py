"""pandas DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from dpsyn.encoding.entry_parser import bytes_of_object
from dpsyn.errors import SourceError
from dpsyn.sources.source import BATCH_ROWS, attempt, guard_batches

_UNKNOWN = "a column has a type that Arrow cannot convert; convert it to text first"


class PandasSource:
    """A pandas DataFrame.

    Columns of Python objects are read as text, entry by entry. Their Arrow type would depend on the values, so one row
    could change how another row is read, or make the reading fail.
    """

    rereadable = True
    byte_size: int | None = None

    def __init__(self, frame: Any) -> None:
        self.label = "the given DataFrame"
        if frame.columns.nlevels > 1:
            raise SourceError(f"{self.label} has more than one level of column names; flatten them first")
        self._frame = frame
        self._names = [str(name) for name in frame.columns]
        kinds = [_arrow_type(frame.iloc[:0, index]) for index in range(len(self._names))]
        self.schema = pa.schema(list(zip(self._names, kinds, strict=True)))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, without the index."""
        return guard_batches(lambda: self._read(columns), self.label, _UNKNOWN)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        selected = self._frame.iloc[:, [self._names.index(name) for name in columns]]
        for start in range(0, len(selected), BATCH_ROWS):
            rows = selected.iloc[start : start + BATCH_ROWS]
            arrays = [_arrow_array(rows.iloc[:, index]) for index in range(len(columns))]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _arrow_type(empty: Any) -> pa.DataType:
    """The Arrow type of a column, given without its rows; a type that no attribute accepts if Arrow has none."""
    try:
        return attempt(lambda: _arrow_array(empty).type, "the given DataFrame", _UNKNOWN)
    except SourceError:
        return pa.list_(pa.null())


def _arrow_array(series: Any) -> pa.Array:
    kind = series.dtype
    if str(kind) == "category":
        categories = series.cat.categories
        codes = pa.array(series.cat.codes.to_numpy(), mask=series.isna().to_numpy())
        return pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), _arrow_array(categories.to_series()))
    if str(kind) == "object" or getattr(kind, "storage", "") == "python":
        return pa.array([bytes_of_object(value) for value in series], pa.binary())
    array = pa.array(series, from_pandas=True)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
