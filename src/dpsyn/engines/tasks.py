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

from dpsyn.engines.bounded_rows import BoundedRows
from dpsyn.engines.contribution_bounding import RowKeys, RunningRanks, bound_contributions
from dpsyn.engines.counting_queries import Accumulator, CountingQuery
from dpsyn.schema import Schema
from dpsyn.sources.files import open_piece
from dpsyn.sources.source import guard_batches

ROW_KEY_COLUMNS = ("person", "same_person", "priority")
"""Columns of the key of a row: two words of the person, and the priority."""

PACKED_COLUMN = "packed"
COUNT_COLUMN = "count"
KEY_COLUMN = "key"

_SIGN_BIT = np.uint64(1 << 63)
"""Turned, unsigned words are in order as signed ones, which is all that some frameworks know."""

_WORKER_FAILED = "a worker failed; see that all workers reach the files and have the same version of DPSyn"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartitionReader:
    """How a worker reads its part of a table.

    Attributes:
        label: how messages call the table.
        table: names and types of its columns.
        pieces: the pieces of files that batches list by number; None if they hold the rows themselves.
        schema: what is public about it.
        key: the secret by which rows of a person are chosen.
        text_attributes: attributes that are open, or were.
    """

    label: str
    table: pa.Schema
    pieces: tuple[str, ...] | None
    schema: Schema
    key: bytes
    text_attributes: tuple[str, ...]

    def rows(self, batches: Iterable[pa.RecordBatch]) -> BoundedRows:
        """The rows of a part; one thread, because workers are as many as there are cores."""
        return BoundedRows(_PartitionSource(self, batches), self.schema, self.key, self.text_attributes, threads=1)


class _PartitionSource:
    """The rows of a part as a source, to be read once."""

    rereadable = False
    byte_size: int | None = None

    def __init__(self, reader: PartitionReader, batches: Iterable[pa.RecordBatch]) -> None:
        self.label, self.schema = reader.label, reader.table
        self._pieces, self._batches = reader.pieces, batches

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, of the pieces or as they come."""
        for batch in self._batches:
            if self._pieces is None:
                yield batch.select(list(columns))
            else:
                for number in batch.column(0).to_pylist():
                    yield from open_piece(self._pieces[number]).batches(columns)


def count_partition(
    reader: PartitionReader, query: CountingQuery[Any], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The counts of a part of a table where all rows count."""

    def count() -> Iterator[pa.RecordBatch]:
        counting = query.new_accumulator(threads=1)
        for taken, _ in reader.rows(batches).read_batches(query.extract, columns=query.columns):
            counting.add(taken)
        yield _counts_batch(counting)

    return guard_batches(count, reader.label, _WORKER_FAILED)


def key_partition(
    reader: PartitionReader, query: CountingQuery[Any], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What is counted of each row, packed, with the key of the row, where there is a unit.

    Of each person in a batch only k rows are handed on: the others cannot be among the k that count.
    """

    def add_keys() -> Iterator[pa.RecordBatch]:
        rows = reader.rows(batches)
        for taken, keys in rows.read_keyed_batches(query.extract, query.extra_reading):
            few = bound_contributions(keys, rows.max_rows_per_person)
            words = [pa.array((keys[place, few] ^ _SIGN_BIT).view(np.int64)) for place in range(len(ROW_KEY_COLUMNS))]
            packed = query.pack(query.select_rows(taken, few))
            yield pa.RecordBatch.from_arrays([*words, packed], names=[*ROW_KEY_COLUMNS, PACKED_COLUMN])

    return guard_batches(add_keys, reader.label, _WORKER_FAILED)


def count_sorted(
    query: CountingQuery[Any], max_rows: int, label: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The counts of rows that were keyed, where all rows of a person are together and in the order of their keys."""

    def count() -> Iterator[pa.RecordBatch]:
        counting, ranks = query.new_accumulator(threads=1), RunningRanks()
        for batch in batches:
            taken = query.unpack(batch.column(PACKED_COLUMN))
            counting.add(query.select_rows(taken, ranks.next_ranks(_row_keys(batch)) < max_rows))
        yield _counts_batch(counting)

    return guard_batches(count, label, _WORKER_FAILED)


def _row_keys(batch: pa.RecordBatch) -> RowKeys:
    words = [batch.column(name).to_numpy(zero_copy_only=False).astype(np.int64) for name in ROW_KEY_COLUMNS]
    keys: NDArray[np.uint64] = np.stack(words).view(np.uint64) ^ _SIGN_BIT
    return keys


def _counts_batch(counting: Accumulator) -> pa.RecordBatch:
    keys, counts = counting.keyed_counts()
    return pa.RecordBatch.from_arrays([keys, pa.array(counts, pa.int64())], names=[KEY_COLUMN, COUNT_COLUMN])
