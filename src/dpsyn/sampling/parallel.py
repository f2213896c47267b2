"""Any number of synthetic rows at constant memory: parts of a table, sampled by threads, processes or Spark tasks."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa

from dpsyn.encoding import write_table
from dpsyn.errors import UserError, quote_argument
from dpsyn.progress import Progress, ignore_progress
from dpsyn.sampling.sampler import RowSampler

PART_ROWS = 1 << 20
"""The approximate number of rows of a part; a file of ten columns takes about ten megabytes."""

GROUP_ROWS = 1 << 17
"""The approximate number of rows of a Parquet row group."""

MAX_ARROW_ROWS = 2**31 - 1
"""The maximum number of rows of one table in memory."""

WorkerKind = Literal["threads", "processes"]
"""What samples the parts: threads of this process, or processes, which share nothing."""

T = TypeVar("T")


def sample_batches(
    sampler: RowSampler, progress: Progress = ignore_progress, threads: int | None = None
) -> Iterator[pa.Table]:
    """The rows of all chunks, in order; threads sample a few chunks ahead."""
    if sampler.chunk_count == 1:
        yield sampler.sample_chunk(0, progress)
        return
    workers = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        yield from _run_ahead(pool, sampler.sample_chunk, range(sampler.chunk_count), 2 * workers, progress)
    progress("sampling rows", 1.0)


def sample_table(sampler: RowSampler, progress: Progress) -> pa.Table:
    """All rows of a sampler as one table."""
    if sampler.rows > MAX_ARROW_ROWS:
        raise UserError(f"{sampler.rows:,} rows do not fit into one table; write them to a file or a folder")
    tables = list(sample_batches(sampler, progress))
    progress("writing values", 0.0)
    return pa.concat_tables(tables).combine_chunks()


def count_parts(sampler: RowSampler) -> int:
    """The number of parts that the rows have."""
    return -(-sampler.chunk_count // _chunks_per_group(sampler, PART_ROWS))


def sample_part(sampler: RowSampler, number: int, part_rows: int | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a part; ``part_rows`` is the approximate size of all parts."""
    size = _chunks_per_group(sampler, part_rows or PART_ROWS)
    chunks = range(number * size, min((number + 1) * size, sampler.chunk_count))
    return group_chunks(sampler, (sampler.sample_chunk(chunk) for chunk in chunks))


def group_chunks(sampler: RowSampler, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Join chunks to batches of the size that files store together."""
    chunks, group_size = iter(tables), _chunks_per_group(sampler, GROUP_ROWS)
    while group := list(islice(chunks, group_size)):
        yield from pa.concat_tables(group).combine_chunks().to_batches() or [_empty_batch(group[0].schema)]


def _chunks_per_group(sampler: RowSampler, rows: int) -> int:
    """How many chunks make a group of about this number of rows."""
    return max(1, rows // sampler.max_chunk_rows)


def _empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows that has the columns."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def part_name(number: int) -> str:
    """The file name of a part, as in Hadoop and Spark: sorted names are in the order of rows."""
    return f"part-{number:05}.parquet"


def write_parts(
    folder: Path,
    sampler: RowSampler,
    *,
    workers: WorkerKind = "threads",
    worker_count: int | None = None,
    progress: Progress = ignore_progress,
) -> list[Path]:
    """Write Parquet files into a folder, each sampled and written by one worker; returns the files in order.

    Memory is that of a few chunks for each worker, whatever the number of rows. The rows do not depend on the kind or
    the number of workers.

    Args:
        folder: an existing folder.
        sampler: the rows to sample.
        workers: threads of this process, or processes, which share nothing.
        worker_count: the number of workers; by default one for each core.
        progress: called with the current phase and the fraction done.
    """
    count, parts = worker_count or os.cpu_count() or 1, range(count_parts(sampler))
    if workers not in ("threads", "processes"):
        raise UserError(f"workers are threads or processes, not {quote_argument(workers)}")
    writer = _PartWriter(sampler, str(folder))
    if workers == "threads":
        with ThreadPoolExecutor(count) as pool:
            return list(_run_ahead(pool, writer, parts, 2 * count, progress))
    with ProcessPoolExecutor(count, get_context("spawn"), _start_process, (writer,)) as processes:
        return list(_run_ahead(processes, _write_part, parts, 2 * count, progress))


class _PartWriter:
    """Writes parts of the sampled rows as files of a folder."""

    def __init__(self, sampler: RowSampler, folder: str) -> None:
        self._sampler, self._folder = sampler, folder

    def __call__(self, number: int) -> Path:
        path = Path(self._folder) / part_name(number)
        write_table(sample_part(self._sampler, number), path, synthetic=True)
        return path


_process_writer: list[_PartWriter] = []
"""The writer of this process, if it was started to write parts: it is sent once to each process, not with each part."""


def _start_process(writer: _PartWriter) -> None:
    _process_writer[:] = [writer]


def _write_part(number: int) -> Path:
    return _process_writer[0](number)


def _run_ahead(
    pool: Executor, work: Callable[[int], T], numbers: Sequence[int], max_waiting: int, progress: Progress
) -> Iterator[T]:
    """The result of the work on every number, in order; at most ``max_waiting`` are submitted ahead."""
    waiting: deque[Future[T]] = deque()
    progress("sampling rows", 0.0)
    for number in numbers:
        waiting.append(pool.submit(work, number))
        if len(waiting) > max_waiting:
            yield waiting.popleft().result()
            progress("sampling rows", (number + 1 - len(waiting)) / len(numbers))
    while waiting:
        yield waiting.popleft().result()
        progress("sampling rows", 1 - len(waiting) / len(numbers))


# ── Spark tasks ──────────────────────────────────────────────────────────────────────────────────────────────

_SPARK_TYPES = {
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.date32(): "date",
}


def spark_frame(sampler: RowSampler, session: Any) -> Any:
    """Synthetic rows as a Spark DataFrame, one partition for each part, sampled by tasks when it is used.

    ``frame.write.parquet(address)`` writes them to any storage that Spark supports; Spark runs failed tasks again. The
    rows and parts are those of ``write_parts``. Workers need DPSyn installed, and receive the model, not the rows.
    """
    part_rows, columns = PART_ROWS, sampler.empty_table().schema
    ddl = ", ".join(f"`{field.name.replace('`', '``')}` {_spark_type(field.type)}" for field in columns)

    def sample_partitions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from sample_part(sampler, number, part_rows)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own, about versions of libraries that are not used here
        return session.range(0, count_parts(sampler), 1, count_parts(sampler)).mapInArrow(sample_partitions, ddl)


def _spark_type(kind: pa.DataType) -> str:
    return "timestamp_ntz" if pa.types.is_timestamp(kind) else _SPARK_TYPES[kind]
