"""What a worker elsewhere does with its part of a table: rows in as Arrow batches, counts by key out.

Nothing here knows who runs it. A task is a function of its rows, of the question and of the key, and draws nothing at
random: run twice it gives the same, so that whoever runs it may run it again, or twice at once, and take one result.

Privacy: a worker's errors are told in our own words; its framework would log any others with the cells they quote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.engines.bounding import RowKeys, RunningRanks, kept
from dpsyn.engines.questions import Counting, Question
from dpsyn.engines.rows import Rows
from dpsyn.schema import Schema
from dpsyn.sources.pieces import open_piece
from dpsyn.sources.source import guarded

KEYS = ("person", "same_person", "priority")
"""Columns of the key of a row: two words of the person, and the priority."""

PACKED = "packed"
COUNT = "count"
KEY = "key"

_SIGN = np.uint64(1 << 63)
"""Turned, unsigned words are in order as signed ones, which is all that some frameworks know."""

_LOST = "a worker failed; see that all workers reach the files and have the same version of DPSyn"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reader:
    """How a worker reads its part of a table.

    Attributes:
        where: how messages call the table.
        table: names and types of its columns.
        pieces: the pieces of files that batches list by number; None if they hold the rows themselves.
        schema: what is public about it.
        key: the secret by which rows of a person are chosen.
        spelled: attributes that are open, or were.
    """

    where: str
    table: pa.Schema
    pieces: tuple[str, ...] | None
    schema: Schema
    key: bytes
    spelled: tuple[str, ...]

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Rows:
        """The rows of a part; one thread, because workers are as many as there are cores."""
        return Rows(_Partition(self, batches), self.schema, self.key, self.spelled, threads=1)


class _Partition:
    """The rows of a part as a source, to be read once."""

    again = False
    bytes: int | None = None

    def __init__(self, reader: Reader, batches: Iterable[pa.RecordBatch]) -> None:
        self.where, self.schema = reader.where, reader.table
        self._pieces, self._batches = reader.pieces, batches

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, of the pieces or as they come."""
        for batch in self._batches:
            if self._pieces is None:
                yield batch.select(list(columns))
            else:
                for number in batch.column(0).to_pylist():
                    yield from open_piece(self._pieces[number]).batches(columns)


def count_part(reader: Reader, question: Question[Any], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The counts of a part of a table where all rows count."""

    def counted() -> Iterator[pa.RecordBatch]:
        counting = question.counting(threads=1)
        for taken, _ in reader.rows(batches).batches(question.take, columns=question.columns):
            counting.add(taken)
        yield _sums(counting)

    return guarded(counted, reader.where, _LOST)


def keyed_part(reader: Reader, question: Question[Any], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What is counted of each row, packed, with the key of the row, where there is a unit.

    Of each person in a batch only k rows are handed on: the others cannot be among the k that count.
    """

    def keyed() -> Iterator[pa.RecordBatch]:
        rows = reader.rows(batches)
        for taken, keys in rows.keyed(question.take, question.other):
            few = kept(keys, rows.most)
            words = [pa.array((keys[place, few] ^ _SIGN).view(np.int64)) for place in range(len(KEYS))]
            packed = question.packed(question.chosen(taken, few))
            yield pa.RecordBatch.from_arrays([*words, packed], names=[*KEYS, PACKED])

    return guarded(keyed, reader.where, _LOST)


def count_ordered(
    question: Question[Any], most: int, where: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The counts of rows that were keyed, where all rows of a person are together and in the order of their keys."""

    def counted() -> Iterator[pa.RecordBatch]:
        counting, ranks = question.counting(threads=1), RunningRanks()
        for batch in batches:
            taken = question.unpacked(batch.column(PACKED))
            counting.add(question.chosen(taken, ranks.next(_words(batch)) < most))
        yield _sums(counting)

    return guarded(counted, where, _LOST)


def _words(batch: pa.RecordBatch) -> RowKeys:
    words = [batch.column(name).to_numpy(zero_copy_only=False).astype(np.int64) for name in KEYS]
    keys: NDArray[np.uint64] = np.stack(words).view(np.uint64) ^ _SIGN
    return keys


def _sums(counting: Counting) -> pa.RecordBatch:
    keys, counts = counting.sums()
    return pa.RecordBatch.from_arrays([keys, pa.array(counts, pa.int64())], names=[KEY, COUNT])
