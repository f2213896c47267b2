"""Counting queries: what is extracted from each batch of a table, and how it is counted.

A query is a value without rows, so it can be sent to the workers that hold the rows. The values that it extracts from a
batch can be packed as bytes, one value for each row, and unpacked on another worker. The counts of a part of a table
are counts by key; those of several parts are added.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding import Codes, ColumnCodec, Recoding, narrowest_dtype
from dpsyn.encoding.counter import MarginalCounter
from dpsyn.encoding.entry_parser import count_texts, entry_texts
from dpsyn.engines.bounded_rows import EncodedBatch, ExtraReading
from dpsyn.engines.contribution_bounding import RowMask
from dpsyn.engines.engine import CliqueAxes, Counts
from dpsyn.errors import InternalError
from dpsyn.schema import Attribute

RowValues = Any
"""The values that a query extracts from a batch: codes or texts, one for each row."""

Answer_co = TypeVar("Answer_co", covariant=True)

KeyedCounts = tuple[pa.Array, NDArray[np.int64]]
"""Keys and the count of each; a key that is not listed has count 0."""


class Accumulator(Protocol):
    """Counts the values of batches."""

    def add(self, values: RowValues) -> None:
        """Count the values of a batch."""

    def keyed_counts(self) -> KeyedCounts:
        """The counts so far."""


class CountingQuery(Protocol[Answer_co]):
    """A query that counts rows of a table by a value of each row."""

    @property
    def columns(self) -> Sequence[str] | None:
        """The columns it reads if all rows count, so that no others are needed; None for all columns."""

    @property
    def key_type(self) -> pa.DataType:
        """The type of the keys."""

    def extract(self, batch: EncodedBatch) -> RowValues:
        """The value of every row of a batch."""

    @property
    def extra_reading(self) -> ExtraReading | None:
        """Codes that the query reads in another way than the schema; they enter the priorities of rows."""

    def select_rows(self, values: RowValues, mask: RowMask) -> RowValues:
        """The values of the rows in a mask."""

    def pack(self, values: RowValues) -> pa.Array:
        """The values as bytes, one entry for each row."""

    def unpack(self, array: pa.Array) -> RowValues:
        """The values of packed bytes: the inverse of ``pack``."""

    def new_accumulator(self, threads: int | None = None) -> Accumulator:
        """An accumulator that has counted nothing yet."""

    def answer(self, keyed_counts: KeyedCounts) -> Answer_co:
        """The answer, given the counts of the whole table."""


# ── contingency tables ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class MarginalsQuery:
    """The contingency tables of cliques.

    Only attributes of a clique are recoded. Keys are the indices of cells, those of the first clique first. The answer
    is one table for each clique.
    """

    cliques: tuple[tuple[int, ...], ...]
    recoding: Recoding
    columns = None
    key_type = pa.int64()
    extra_reading = None

    @classmethod
    def of(cls, cliques: CliqueAxes, recoding: Recoding) -> MarginalsQuery:
        """A query for cliques of a recoding, without the attributes that no clique needs."""
        for clique in cliques:
            if len(set(clique)) < len(clique) or not all(0 <= axis < len(recoding.columns) for axis in clique):
                raise InternalError(f"{tuple(clique)} is not a clique of {len(recoding.columns)} attributes")
        used = sorted({axis for clique in cliques for axis in clique})
        new_axis = {axis: index for index, axis in enumerate(used)}
        renumbered = tuple(tuple(new_axis[axis] for axis in clique) for clique in cliques)
        return cls(renumbered, Recoding(tuple(recoding.columns[axis] for axis in used), recoding.origin))

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of each table."""
        sizes = self.recoding.sizes
        return [tuple(sizes[axis] for axis in clique) for clique in self.cliques]

    def extract(self, batch: EncodedBatch) -> Codes:
        """The codes of the attributes."""
        if not self.recoding.columns:
            return np.empty((batch.arrow.num_rows, 0), np.uint8)
        return self.recoding.apply(batch.codes)

    def select_rows(self, values: Codes, mask: RowMask) -> Codes:
        """The codes of the rows in a mask."""
        return values[mask]

    def pack(self, values: Codes) -> pa.Array:
        """The codes of each row, concatenated."""
        return _pack_codes(values)

    def unpack(self, array: pa.Array) -> Codes:
        """The codes of packed rows."""
        return _unpack_codes(
            array, np.dtype(narrowest_dtype(max(self.recoding.sizes, default=1))), len(self.recoding.columns)
        )

    def new_accumulator(self, threads: int | None = None) -> MarginalAccumulator:
        """An accumulator of empty tables."""
        return MarginalAccumulator(self, threads)

    def answer(self, keyed_counts: KeyedCounts) -> list[Counts]:
        """The contingency table of each clique."""
        cells = [math.prod(shape) for shape in self.shapes]
        flat = np.zeros(sum(cells), np.int64)
        flat[keyed_counts[0].to_numpy()] = keyed_counts[1]
        parts = np.split(flat, list(accumulate(cells))[:-1]) if cells else []
        return [part.reshape(shape).copy() for part, shape in zip(parts, self.shapes, strict=True)]


class MarginalAccumulator:
    """Counts contingency tables."""

    def __init__(self, query: MarginalsQuery, threads: int | None) -> None:
        self._counter = MarginalCounter(query.cliques, query.recoding.sizes, threads)

    def add(self, values: Codes) -> None:
        """Count the codes of a batch."""
        self._counter.add(values)

    def tables(self) -> list[Counts]:
        """The contingency table of each clique."""
        return self._counter.tables()

    def keyed_counts(self) -> KeyedCounts:
        """The counts of all cells that are not empty."""
        flat = np.concatenate([np.zeros(0, np.int64), *(table.ravel() for table in self.tables())])
        cells = np.flatnonzero(flat)
        return pa.array(cells, pa.int64()), flat[cells]


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class TextsQuery:
    """The number of rows with each text of an attribute."""

    attribute: Attribute
    key_type = pa.string()
    extra_reading = None

    @property
    def columns(self) -> tuple[str]:
        """The column of the attribute."""
        return (self.attribute.name,)

    def extract(self, batch: EncodedBatch) -> pa.Array:
        """The text of every row."""
        return entry_texts(batch.arrow.column(self.attribute.name))

    def select_rows(self, values: pa.Array, mask: RowMask) -> pa.Array:
        """The texts of the rows in a mask."""
        return values.filter(pa.array(mask))

    def pack(self, values: pa.Array) -> pa.Array:
        """The texts as bytes."""
        return values.cast(pa.binary())

    def unpack(self, array: pa.Array) -> pa.Array:
        """The texts of packed rows."""
        return array

    def new_accumulator(self, threads: int | None = None) -> TextAccumulator:
        """An accumulator without texts."""
        return TextAccumulator(self.attribute)

    def answer(self, keyed_counts: KeyedCounts) -> dict[str, int]:
        """The count of each text."""
        return dict(zip(keyed_counts[0].to_pylist(), keyed_counts[1].tolist(), strict=True))


class TextAccumulator:
    """Counts texts."""

    def __init__(self, attribute: Attribute) -> None:
        self._attribute, self._counts = attribute, Counter[str]()

    def add(self, values: pa.Array) -> None:
        """Count the texts of a batch."""
        self._counts.update(count_texts(values, self._attribute))

    def keyed_counts(self) -> KeyedCounts:
        """The counts of all texts that occurred."""
        return pa.array(list(self._counts), pa.string()), np.array(list(self._counts.values()), np.int64)


# ── codes of another encoding of a column ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class ColumnCodesQuery:
    """The number of rows with each of the codes 0 … size−1 that a column codec reads from an attribute."""

    name: str
    column: ColumnCodec
    size: int
    key_type = pa.int64()

    @property
    def columns(self) -> tuple[str]:
        """The column of the attribute."""
        return (self.name,)

    def extract(self, batch: EncodedBatch) -> NDArray[Any]:
        """The code of every row."""
        return self._read(batch.arrow)

    @property
    def extra_reading(self) -> ExtraReading:
        """The same codes: they are part of the priorities, so the choice of rows never depends on their order."""
        return self._read

    def _read(self, batch: pa.RecordBatch) -> NDArray[Any]:
        return self.column.read(batch.column(self.name)).codes

    def select_rows(self, values: NDArray[Any], mask: RowMask) -> NDArray[Any]:
        """The codes of the rows in a mask."""
        return np.asarray(values[mask])

    def pack(self, values: NDArray[Any]) -> pa.Array:
        """Each code in eight bytes."""
        return _pack_codes(values.astype(np.int64)[:, None])

    def unpack(self, array: pa.Array) -> NDArray[Any]:
        """The codes of packed rows."""
        return _unpack_codes(array, np.dtype(np.int64), 1)[:, 0]

    def new_accumulator(self, threads: int | None = None) -> CodeAccumulator:
        """An accumulator without codes."""
        return CodeAccumulator()

    def answer(self, keyed_counts: KeyedCounts) -> Counts:
        """The count of each code."""
        counts = np.zeros(self.size, np.int64)
        codes = keyed_counts[0].to_numpy()
        if len(codes) and codes.max() >= self.size:
            raise InternalError(f"the column codec of {self.name!r} gives codes beyond its size")
        counts[codes] = keyed_counts[1]
        return counts


class CodeAccumulator:
    """Counts codes."""

    def __init__(self) -> None:
        self._counts = np.zeros(0, np.int64)

    def add(self, values: NDArray[Any]) -> None:
        """Count the codes of a batch."""
        counts = np.bincount(values, minlength=len(self._counts))
        counts[: len(self._counts)] += self._counts
        self._counts = counts.astype(np.int64)

    def keyed_counts(self) -> KeyedCounts:
        """The counts of all codes that occurred."""
        codes = np.flatnonzero(self._counts)
        return pa.array(codes, pa.int64()), self._counts[codes]


# ── codes as bytes ───────────────────────────────────────────────────────────────────────────────────────────


def _pack_codes(codes: Codes) -> pa.Array:
    """The codes of each row (rows × attributes), concatenated as bytes."""
    flat = np.ascontiguousarray(codes)
    offsets = np.arange(len(flat) + 1, dtype=np.int32) * np.int32(flat.shape[1] * flat.itemsize)
    return pa.Array.from_buffers(pa.binary(), len(flat), [None, pa.py_buffer(offsets), pa.py_buffer(flat)])


def _unpack_codes(array: pa.Array, kind: np.dtype[Any], width: int) -> Codes:
    if not width or not len(array):
        return np.empty((len(array), width), kind)
    plain = array.cast(pa.binary(width * kind.itemsize))
    first = plain.offset * width
    return np.frombuffer(plain.buffers()[1], kind)[first : first + len(array) * width].reshape(len(array), width)
