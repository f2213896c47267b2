"""What is asked of a table: what is taken from each batch, and how it is counted.

A question is a value without rows, so that it can be sent to wherever the rows are. What it takes from a batch can be
packed as bytes, one value for each row, and unpacked elsewhere. Counts of parts of a table are sums by key, which add
up.
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
from dpsyn.encoding.entries import count_texts, entry_texts
from dpsyn.engines.bounded_rows import EncodedBatch, ExtraReading
from dpsyn.engines.contribution_bounding import RowMask
from dpsyn.engines.engine import CliqueAxes, Counts
from dpsyn.errors import InternalError
from dpsyn.schema import Attribute

RowValues = Any
"""What a question takes from a batch: codes or texts, one for each row."""

Answer_co = TypeVar("Answer_co", covariant=True)

KeyedCounts = tuple[pa.Array, NDArray[np.int64]]
"""Keys, and the count of each; keys that are not there have none."""


class Accumulator(Protocol):
    """Counts what was taken from batches."""

    def add(self, values: RowValues) -> None:
        """Count a batch."""

    def keyed_counts(self) -> KeyedCounts:
        """The counts so far."""


class CountingQuery(Protocol[Answer_co]):
    """Something that is counted over the rows of a table."""

    @property
    def columns(self) -> Sequence[str] | None:
        """The columns it reads, where no others are needed to tell which rows count; None for all."""

    @property
    def key_type(self) -> pa.DataType:
        """The type of what is counted."""

    def extract(self, batch: EncodedBatch) -> RowValues:
        """What is counted, of every row of a batch."""

    @property
    def extra_reading(self) -> ExtraReading | None:
        """Another reading of a batch than the schema's, which joins what rows are chosen by; None if there is none."""

    def select_rows(self, values: RowValues, mask: RowMask) -> RowValues:
        """What was taken of some rows."""

    def pack(self, values: RowValues) -> pa.Array:
        """What was taken as bytes, one value for each row."""

    def unpack(self, array: pa.Array) -> RowValues:
        """What was packed."""

    def new_accumulator(self, threads: int | None = None) -> Accumulator:
        """A count of nothing yet."""

    def answer(self, keyed_counts: KeyedCounts) -> Answer_co:
        """The answer from the counts of the whole table."""


# ── contingency tables ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class MarginalsQuery:
    """The contingency tables of cliques; only attributes that are in one of them are recoded.

    Keys are cells, those of the first clique first. Answers are one table for each clique.
    """

    cliques: tuple[tuple[int, ...], ...]
    recoding: Recoding
    columns = None
    key_type = pa.int64()
    extra_reading = None

    @classmethod
    def of(cls, cliques: CliqueAxes, recoding: Recoding) -> MarginalsQuery:
        """The same cliques over a recoding without the attributes that none of them needs."""
        for clique in cliques:
            if len(set(clique)) < len(clique) or not all(0 <= place < len(recoding.columns) for place in clique):
                raise InternalError(f"{tuple(clique)} is not a clique of {len(recoding.columns)} attributes")
        used = sorted({place for clique in cliques for place in clique})
        place_of = {place: number for number, place in enumerate(used)}
        moved = tuple(tuple(place_of[place] for place in clique) for clique in cliques)
        return cls(moved, Recoding(tuple(recoding.columns[place] for place in used), recoding.origin))

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of each table."""
        sizes = self.recoding.sizes
        return [tuple(sizes[place] for place in clique) for clique in self.cliques]

    def extract(self, batch: EncodedBatch) -> Codes:
        """Codes of the attributes."""
        if not self.recoding.columns:
            return np.empty((batch.arrow.num_rows, 0), np.uint8)
        return self.recoding.apply(batch.codes)

    def select_rows(self, values: Codes, mask: RowMask) -> Codes:
        """The codes of some rows."""
        return values[mask]

    def pack(self, values: Codes) -> pa.Array:
        """The codes of a row side by side."""
        return _pack_codes(values)

    def unpack(self, array: pa.Array) -> Codes:
        """The codes again."""
        return _unpack_codes(
            array, np.dtype(narrowest_dtype(max(self.recoding.sizes, default=1))), len(self.recoding.columns)
        )

    def new_accumulator(self, threads: int | None = None) -> MarginalAccumulator:
        """Empty tables."""
        return MarginalAccumulator(self, threads)

    def answer(self, keyed_counts: KeyedCounts) -> list[Counts]:
        """The tables."""
        cells = [math.prod(shape) for shape in self.shapes]
        flat = np.zeros(sum(cells), np.int64)
        flat[keyed_counts[0].to_numpy()] = keyed_counts[1]
        parts = np.split(flat, list(accumulate(cells))[:-1]) if cells else []
        return [part.reshape(shape).copy() for part, shape in zip(parts, self.shapes, strict=True)]


class MarginalAccumulator:
    """Tables that grow."""

    def __init__(self, query: MarginalsQuery, threads: int | None) -> None:
        self._counter = MarginalCounter(query.cliques, query.recoding.sizes, threads)

    def add(self, values: Codes) -> None:
        """Count a batch."""
        self._counter.add(values)

    def tables(self) -> list[Counts]:
        """The table of each clique."""
        return self._counter.tables()

    def keyed_counts(self) -> KeyedCounts:
        """The cells that are not empty."""
        flat = np.concatenate([np.zeros(0, np.int64), *(table.ravel() for table in self.tables())])
        cells = np.flatnonzero(flat)
        return pa.array(cells, pa.int64()), flat[cells]


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class TextsQuery:
    """How often each text of an attribute occurs."""

    attribute: Attribute
    key_type = pa.string()
    extra_reading = None

    @property
    def columns(self) -> tuple[str]:
        """That of the attribute."""
        return (self.attribute.name,)

    def extract(self, batch: EncodedBatch) -> pa.Array:
        """The texts."""
        return entry_texts(batch.arrow.column(self.attribute.name))

    def select_rows(self, values: pa.Array, mask: RowMask) -> pa.Array:
        """The texts of some rows."""
        return values.filter(pa.array(mask))

    def pack(self, values: pa.Array) -> pa.Array:
        """The texts."""
        return values.cast(pa.binary())

    def unpack(self, array: pa.Array) -> pa.Array:
        """The texts again."""
        return array

    def new_accumulator(self, threads: int | None = None) -> TextAccumulator:
        """No text yet."""
        return TextAccumulator(self.attribute)

    def answer(self, keyed_counts: KeyedCounts) -> dict[str, int]:
        """Texts and counts."""
        return dict(zip(keyed_counts[0].to_pylist(), keyed_counts[1].tolist(), strict=True))


class TextAccumulator:
    """Counts of texts that grow."""

    def __init__(self, attribute: Attribute) -> None:
        self._attribute, self._counts = attribute, Counter[str]()

    def add(self, values: pa.Array) -> None:
        """Count a batch."""
        self._counts.update(count_texts(values, self._attribute))

    def keyed_counts(self) -> KeyedCounts:
        """Every text that occurred."""
        return pa.array(list(self._counts), pa.string()), np.array(list(self._counts.values()), np.int64)


# ── another reading of a column ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class ColumnCodesQuery:
    """How often each of the codes 0 … size−1 occurs that a column reads from an attribute."""

    name: str
    column: ColumnCodec
    size: int
    key_type = pa.int64()

    @property
    def columns(self) -> tuple[str]:
        """That of the attribute."""
        return (self.name,)

    def extract(self, batch: EncodedBatch) -> NDArray[Any]:
        """The codes."""
        return self._read(batch.arrow)

    @property
    def extra_reading(self) -> ExtraReading:
        """The codes too, so that which rows are kept never depends on their order."""
        return self._read

    def _read(self, batch: pa.RecordBatch) -> NDArray[Any]:
        return self.column.read(batch.column(self.name)).codes

    def select_rows(self, values: NDArray[Any], mask: RowMask) -> NDArray[Any]:
        """The codes of some rows."""
        return np.asarray(values[mask])

    def pack(self, values: NDArray[Any]) -> pa.Array:
        """Each code in eight bytes."""
        return _pack_codes(values.astype(np.int64)[:, None])

    def unpack(self, array: pa.Array) -> NDArray[Any]:
        """The codes again."""
        return _unpack_codes(array, np.dtype(np.int64), 1)[:, 0]

    def new_accumulator(self, threads: int | None = None) -> CodeAccumulator:
        """No code yet."""
        return CodeAccumulator()

    def answer(self, keyed_counts: KeyedCounts) -> Counts:
        """The count of each code."""
        counts = np.zeros(self.size, np.int64)
        codes = keyed_counts[0].to_numpy()
        if len(codes) and codes.max() >= self.size:
            raise InternalError(f"a column for {self.name!r} gives codes beyond its size")
        counts[codes] = keyed_counts[1]
        return counts


class CodeAccumulator:
    """Counts of codes that grow."""

    def __init__(self) -> None:
        self._counts = np.zeros(0, np.int64)

    def add(self, values: NDArray[Any]) -> None:
        """Count a batch."""
        found = np.bincount(values, minlength=len(self._counts))
        found[: len(self._counts)] += self._counts
        self._counts = found.astype(np.int64)

    def keyed_counts(self) -> KeyedCounts:
        """The codes that occurred."""
        codes = np.flatnonzero(self._counts)
        return pa.array(codes, pa.int64()), self._counts[codes]


# ── codes as bytes ───────────────────────────────────────────────────────────────────────────────────────────


def _pack_codes(codes: Codes) -> pa.Array:
    """The codes of a row side by side; rows × attributes."""
    flat = np.ascontiguousarray(codes)
    offsets = np.arange(len(flat) + 1, dtype=np.int32) * np.int32(flat.shape[1] * flat.itemsize)
    return pa.Array.from_buffers(pa.binary(), len(flat), [None, pa.py_buffer(offsets), pa.py_buffer(flat)])


def _unpack_codes(array: pa.Array, kind: np.dtype[Any], width: int) -> Codes:
    if not width or not len(array):
        return np.empty((len(array), width), kind)
    plain = array.cast(pa.binary(width * kind.itemsize))
    first = plain.offset * width
    return np.frombuffer(plain.buffers()[1], kind)[first : first + len(array) * width].reshape(len(array), width)
