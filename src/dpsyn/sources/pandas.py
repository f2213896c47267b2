"""pandas DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dpsyn.encoding.entry_parser import bytes_of_objects
from dpsyn.errors import SourceError
from dpsyn.sources.source import BATCH_ROWS, attempt, guard_batches

_UNKNOWN = "a column has a type that Arrow cannot convert; convert it to text first"
_ARROW_KINDS = "biufM"
"""The kinds of numpy types that Arrow converts: truth values, whole and floating-point numbers, timestamps."""


class PandasSource:
    """A pandas DataFrame.

    Columns of Python objects are read as text, entry by entry. Their Arrow type would depend on the values, so one row
    could change how another row is read, or make the reading fail. Other types that pandas may infer from values and
    that are not those of an attribute, such as complex numbers, durations and periods, are read in the same way.
    """

    rereadable = True
    byte_size: int | None = None

    def __init__(self, frame: Any) -> None:
        self.label = "the given DataFrame"
        if frame.columns.nlevels > 1:
            raise SourceError(f"{self.label} has more than one level of column names; flatten them first")
        self._frame = frame
        self._names = [str(name) for name in frame.columns]
        kinds = [
            attempt(lambda index=index: _arrow_array(frame.iloc[:0, index]).type, self.label, _UNKNOWN)  # type: ignore[misc]
            for index in range(len(self._names))
        ]
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


def _arrow_array(series: Any) -> pa.Array:
    kind = series.dtype
    if str(kind) == "category":
        categories = series.cat.categories
        codes = pa.array(series.cat.codes.to_numpy(), mask=series.isna().to_numpy())
        values = _arrow_array(categories.to_series())
        return pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), values, ordered=bool(series.cat.ordered))
    if not _is_arrow_like(kind):
        return pa.array(bytes_of_objects(series), pa.large_binary())
    array = pa.array(series, from_pandas=True)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _is_arrow_like(kind: Any) -> bool:
    """Whether Arrow has a type for a type of pandas, whatever the values are."""
    if getattr(kind, "storage", "") == "pyarrow" or hasattr(kind, "pyarrow_dtype"):
        return True
    if isinstance(kind, np.dtype) or hasattr(kind, "numpy_dtype"):  # the latter keeps nulls apart from the values
        return np.dtype(getattr(kind, "numpy_dtype", kind)).kind in _ARROW_KINDS
    return str(kind).startswith("datetime64[")  # with a time zone
