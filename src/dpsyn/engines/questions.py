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

from dpsyn.engines.bounding import Kept
from dpsyn.engines.engine import Cliques, Counts
from dpsyn.engines.rows import Other, Part
from dpsyn.errors import InternalError
from dpsyn.records import Codes, Column, narrowest
from dpsyn.records.tally import Tally
from dpsyn.records.texts import count_texts, texts_of
from dpsyn.schema import Attribute
from dpsyn.transforms import Recoding

Taken = Any
"""What a question takes from a batch: codes or texts, one for each row."""

Answer_co = TypeVar("Answer_co", covariant=True)

Sums = tuple[pa.Array, NDArray[np.int64]]
"""Keys, and the count of each; keys that are not there have none."""


class Counting(Protocol):
    """Counts what was taken from batches."""

    def add(self, taken: Taken) -> None:
        """Count a batch."""

    def sums(self) -> Sums:
        """The counts so far."""


class Question(Protocol[Answer_co]):
    """Something that is counted over the rows of a table."""

    @property
    def columns(self) -> Sequence[str] | None:
        """The columns it reads, where no others are needed to tell which rows count; None for all."""

    @property
    def keys(self) -> pa.DataType:
        """The type of what is counted."""

    def take(self, part: Part) -> Taken:
        """What is counted, of every row of a batch."""

    @property
    def other(self) -> Other | None:
        """Another reading of a batch than the schema's, which joins what rows are chosen by; None if there is none."""

    def chosen(self, taken: Taken, kept: Kept) -> Taken:
        """What was taken of some rows."""

    def packed(self, taken: Taken) -> pa.Array:
        """What was taken as bytes, one value for each row."""

    def unpacked(self, array: pa.Array) -> Taken:
        """What was packed."""

    def counting(self, threads: int | None = None) -> Counting:
        """A count of nothing yet."""

    def answer(self, sums: Sums) -> Answer_co:
        """The answer from the counts of the whole table."""


# ── contingency tables ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """The contingency tables of cliques; only attributes that are in one of them are recoded.

    Keys are cells, those of the first clique first. Answers are one table for each clique.
    """

    cliques: tuple[tuple[int, ...], ...]
    recoding: Recoding
    columns = None
    keys = pa.int64()
    other = None

    @classmethod
    def of(cls, cliques: Cliques, recoding: Recoding) -> Marginals:
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

    def take(self, part: Part) -> Codes:
        """Codes of the attributes."""
        if not self.recoding.columns:
            return np.empty((part.batch.num_rows, 0), np.uint8)
        return self.recoding.apply(part.codes)

    def chosen(self, taken: Codes, kept: Kept) -> Codes:
        """The codes of some rows."""
        return taken[kept]

    def packed(self, taken: Codes) -> pa.Array:
        """The codes of a row side by side."""
        return _packed(taken)

    def unpacked(self, array: pa.Array) -> Codes:
        """The codes again."""
        return _unpacked(array, np.dtype(narrowest(max(self.recoding.sizes, default=1))), len(self.recoding.columns))

    def counting(self, threads: int | None = None) -> MarginalCounting:
        """Empty tables."""
        return MarginalCounting(self, threads)

    def answer(self, sums: Sums) -> list[Counts]:
        """The tables."""
        cells = [math.prod(shape) for shape in self.shapes]
        flat = np.zeros(sum(cells), np.int64)
        flat[sums[0].to_numpy()] = sums[1]
        parts = np.split(flat, list(accumulate(cells))[:-1]) if cells else []
        return [part.reshape(shape).copy() for part, shape in zip(parts, self.shapes, strict=True)]


class MarginalCounting:
    """Tables that grow."""

    def __init__(self, question: Marginals, threads: int | None) -> None:
        self._tally = Tally(question.cliques, question.recoding.sizes, threads)

    def add(self, taken: Codes) -> None:
        """Count a batch."""
        self._tally.add(taken)

    def tables(self) -> list[Counts]:
        """The table of each clique."""
        return self._tally.tables()

    def sums(self) -> Sums:
        """The cells that are not empty."""
        flat = np.concatenate([np.zeros(0, np.int64), *(table.ravel() for table in self.tables())])
        cells = np.flatnonzero(flat)
        return pa.array(cells, pa.int64()), flat[cells]


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """How often each text of an attribute occurs."""

    attribute: Attribute
    keys = pa.string()
    other = None

    @property
    def columns(self) -> tuple[str]:
        """That of the attribute."""
        return (self.attribute.name,)

    def take(self, part: Part) -> pa.Array:
        """The texts."""
        return texts_of(part.batch.column(self.attribute.name))

    def chosen(self, taken: pa.Array, kept: Kept) -> pa.Array:
        """The texts of some rows."""
        return taken.filter(pa.array(kept))

    def packed(self, taken: pa.Array) -> pa.Array:
        """The texts."""
        return taken.cast(pa.binary())

    def unpacked(self, array: pa.Array) -> pa.Array:
        """The texts again."""
        return array

    def counting(self, threads: int | None = None) -> TextCounting:
        """No text yet."""
        return TextCounting(self.attribute)

    def answer(self, sums: Sums) -> dict[str, int]:
        """Texts and counts."""
        return dict(zip(sums[0].to_pylist(), sums[1].tolist(), strict=True))


class TextCounting:
    """Counts of texts that grow."""

    def __init__(self, attribute: Attribute) -> None:
        self._attribute, self._counts = attribute, Counter[str]()

    def add(self, taken: pa.Array) -> None:
        """Count a batch."""
        self._counts.update(count_texts(taken, self._attribute))

    def sums(self) -> Sums:
        """Every text that occurred."""
        return pa.array(list(self._counts), pa.string()), np.array(list(self._counts.values()), np.int64)


# ── another reading of a column ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """How often each of the codes 0 … size−1 occurs that a column reads from an attribute."""

    name: str
    column: Column
    size: int
    keys = pa.int64()

    @property
    def columns(self) -> tuple[str]:
        """That of the attribute."""
        return (self.name,)

    def take(self, part: Part) -> NDArray[Any]:
        """The codes."""
        return self._read(part.batch)

    @property
    def other(self) -> Other:
        """The codes too, so that which rows are kept never depends on their order."""
        return self._read

    def _read(self, batch: pa.RecordBatch) -> NDArray[Any]:
        return self.column.read(batch.column(self.name)).cells

    def chosen(self, taken: NDArray[Any], kept: Kept) -> NDArray[Any]:
        """The codes of some rows."""
        return np.asarray(taken[kept])

    def packed(self, taken: NDArray[Any]) -> pa.Array:
        """Each code in eight bytes."""
        return _packed(taken.astype(np.int64)[:, None])

    def unpacked(self, array: pa.Array) -> NDArray[Any]:
        """The codes again."""
        return _unpacked(array, np.dtype(np.int64), 1)[:, 0]

    def counting(self, threads: int | None = None) -> ReadingCounting:
        """No code yet."""
        return ReadingCounting()

    def answer(self, sums: Sums) -> Counts:
        """The count of each code."""
        counts = np.zeros(self.size, np.int64)
        codes = sums[0].to_numpy()
        if len(codes) and codes.max() >= self.size:
            raise InternalError(f"a column for {self.name!r} gives codes beyond its size")
        counts[codes] = sums[1]
        return counts


class ReadingCounting:
    """Counts of codes that grow."""

    def __init__(self) -> None:
        self._counts = np.zeros(0, np.int64)

    def add(self, taken: NDArray[Any]) -> None:
        """Count a batch."""
        found = np.bincount(taken, minlength=len(self._counts))
        found[: len(self._counts)] += self._counts
        self._counts = found.astype(np.int64)

    def sums(self) -> Sums:
        """The codes that occurred."""
        codes = np.flatnonzero(self._counts)
        return pa.array(codes, pa.int64()), self._counts[codes]


# ── codes as bytes ───────────────────────────────────────────────────────────────────────────────────────────


def _packed(codes: Codes) -> pa.Array:
    """The codes of a row side by side; rows × attributes."""
    flat = np.ascontiguousarray(codes)
    offsets = np.arange(len(flat) + 1, dtype=np.int32) * np.int32(flat.shape[1] * flat.itemsize)
    return pa.Array.from_buffers(pa.binary(), len(flat), [None, pa.py_buffer(offsets), pa.py_buffer(flat)])


def _unpacked(array: pa.Array, kind: np.dtype[Any], width: int) -> Codes:
    if not width or not len(array):
        return np.empty((len(array), width), kind)
    plain = array.cast(pa.binary(width * kind.itemsize))
    first = plain.offset * width
    return np.frombuffer(plain.buffers()[1], kind)[first : first + len(array) * width].reshape(len(array), width)
