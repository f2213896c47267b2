"""Tasks of distributed workers: they take the rows of a part of a table as Arrow batches and return counts by key.

Nothing here depends on the framework that runs the tasks. A task is a deterministic function of its rows, the query and
the key. So the framework may run a task again, or twice at the same time, and use one of the results.

Privacy: the errors of a worker are reported in our own words; the framework would log any other error, with the entries
that it quotes.
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
from dpsyn.errors import DPSynError, SourceError
from dpsyn.schema import Schema
from dpsyn.sources.files import open_piece
from dpsyn.sources.source import guard_batches

ROW_KEY_COLUMNS = ("unit", "unit_again", "priority")
"""The columns of the key of a row: the two words of the unit's hash, and the priority."""

PACKED_COLUMN = "packed"
COUNT_COLUMN = "count"
KEY_COLUMN = "key"

_SIGN_BIT = np.uint64(1 << 63)
"""With this bit flipped, unsigned words have the same order as signed ones, the only ones that Spark has."""

_WORKER_FAILED = "a worker failed; check that all workers can read the files and have the same version of DPSyn"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartitionReader:
    """How a worker reads its part of a table.

    Attributes:
        label: the name of the table in messages.
        table: the names and types of its columns.
        pieces: the pieces of files; batches then list their indices. None if batches hold the rows themselves.
        schema: what is public about the table.
        key: the secret key of the run, for contribution bounding.
        text_attributes: the attributes that are open, or were open.
    """

    label: str
    table: pa.Schema
    pieces: tuple[str, ...] | None
    schema: Schema
    key: bytes
    text_attributes: tuple[str, ...]

    def rows(self, batches: Iterable[pa.RecordBatch]) -> BoundedRows:
        """The rows of a part, read by one thread, because there is a worker for each core."""
        return BoundedRows(_PartitionSource(self, batches), self.schema, self.key, self.text_attributes, threads=1)


class _PartitionSource:
    """The rows of a part as a source that can be read once."""

    rereadable = False
    byte_size: int | None = None

    def __init__(self, reader: PartitionReader, batches: Iterable[pa.RecordBatch]) -> None:
        self.label, self.schema = reader.label, reader.table
        self._pieces, self._batches = reader.pieces, batches

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, from the pieces of files or from the batches themselves."""
        for batch in self._batches:
            if self._pieces is None:
                yield batch.select(list(columns))
            else:
                for index in batch.column(0).to_pylist():
                    yield from open_piece(self._pieces[index]).batches(columns)


def count_partition(
    reader: PartitionReader, query: CountingQuery[Any], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The counts of a part of a table without a privacy unit, where all rows count."""

    def count() -> Iterator[pa.RecordBatch]:
        accumulator = query.new_accumulator(threads=1)
        for values, _ in reader.rows(batches).read_batches(query.extract, columns=query.columns):
            accumulator.add(values)
        yield _counts_batch(accumulator)

    return guard_batches(count, reader.label, _WORKER_FAILED)


def key_partition(
    reader: PartitionReader, query: CountingQuery[Any], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The packed value and the key of each row of a part, for a table with a privacy unit.

    At most k rows of each unit in a batch are returned: the others cannot be among the k that count.
    """

    def add_keys() -> Iterator[pa.RecordBatch]:
        rows = reader.rows(batches)
        for values, keys in rows.read_keyed_batches(query.extract, query.extra_reading):
            mask = bound_contributions(keys, rows.max_rows_per_unit)
            words = [pa.array((keys[index, mask] ^ _SIGN_BIT).view(np.int64)) for index in range(len(ROW_KEY_COLUMNS))]
            packed = query.pack(query.select_rows(values, mask))
            yield pa.RecordBatch.from_arrays([*words, packed], names=[*ROW_KEY_COLUMNS, PACKED_COLUMN])

    return guard_batches(add_keys, reader.label, _WORKER_FAILED)


def count_sorted(
    query: CountingQuery[Any], max_rows: int, label: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The counts of rows from ``key_partition``, where all rows of a unit are together and sorted by their keys."""

    def count() -> Iterator[pa.RecordBatch]:
        accumulator, ranks = query.new_accumulator(threads=1), RunningRanks()
        for batch in batches:
            values = query.unpack(batch.column(PACKED_COLUMN))
            accumulator.add(query.select_rows(values, ranks.next_ranks(_row_keys(batch)) < max_rows))
        yield _counts_batch(accumulator)

    return guard_batches(count, label, _WORKER_FAILED)


def mark_errors(mark: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of a task; DPSyn's own errors get a mark, by which the driver recognizes them in a longer report.

    Privacy: the mark is random, so an entry that the framework quotes cannot pass for a message of DPSyn.
    """
    try:
        yield from batches
    except DPSynError as error:
        raise SourceError(f"{mark} {error}") from None


def _row_keys(batch: pa.RecordBatch) -> RowKeys:
    words = [batch.column(name).to_numpy(zero_copy_only=False).astype(np.int64) for name in ROW_KEY_COLUMNS]
    keys: NDArray[np.uint64] = np.stack(words).view(np.uint64) ^ _SIGN_BIT
    return keys


def _counts_batch(accumulator: Accumulator) -> pa.RecordBatch:
    keys, counts = accumulator.keyed_counts()
    return pa.RecordBatch.from_arrays([keys, pa.array(counts, pa.int64())], names=[KEY_COLUMN, COUNT_COLUMN])
