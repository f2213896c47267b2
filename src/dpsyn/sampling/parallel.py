"""Any number of synthetic rows at constant memory: parts of a table, drawn by threads, processes or tasks elsewhere."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar

import pyarrow as pa

from dpsyn.encoding import write_table
from dpsyn.errors import UserError
from dpsyn.progress import Progress, ignore_progress
from dpsyn.sampling.sampler import RowSampler
from dpsyn.synopsis.synopsis import AttributeConditions, Synopsis

PART_ROWS = 1 << 20
"""Rows of a part, about; a file of ten columns takes some ten megabytes."""

GROUP_ROWS = 1 << 17
"""Rows that are stored together, about, as readers of Parquet like it."""

WorkerKind = Literal["threads", "processes"]
T = TypeVar("T")


def sample_batches(
    sampler: RowSampler, progress: Progress = ignore_progress, threads: int | None = None
) -> Iterator[pa.Table]:
    """The rows of all chunks, in order; a few are drawn ahead by threads."""
    if sampler.chunk_count == 1:
        yield sampler.sample_chunk(0, progress)
        return
    workers = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        yield from _run_ahead(pool, sampler.sample_chunk, range(sampler.chunk_count), 2 * workers, progress)
    progress("drawing rows", 1.0)


def count_parts(sampler: RowSampler) -> int:
    """How many parts the rows have."""
    return -(-sampler.chunk_count // _chunks_per_group(sampler, PART_ROWS))


def sample_part(sampler: RowSampler, number: int, part_rows: int | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a part, where parts have so many rows."""
    size = _chunks_per_group(sampler, part_rows or PART_ROWS)
    chunks = range(number * size, min((number + 1) * size, sampler.chunk_count))
    return group_chunks(sampler, (sampler.sample_chunk(chunk) for chunk in chunks))


def group_chunks(sampler: RowSampler, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Several chunks together, as files store them."""
    chunks, number = iter(tables), _chunks_per_group(sampler, GROUP_ROWS)
    while together := list(islice(chunks, number)):
        yield from pa.concat_tables(together).combine_chunks().to_batches() or [_empty_batch(together[0].schema)]


def _chunks_per_group(sampler: RowSampler, rows: int) -> int:
    """How many chunks have about so many rows."""
    return max(1, rows // sampler.max_chunk_rows)


def _empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """No rows, but the names of the columns."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def part_name(number: int) -> str:
    """The file of a part, in the manner of Hadoop and Spark, so that names sort as rows do."""
    return f"part-{number:05}.parquet"


def write_parts(
    folder: Path,
    synopsis: Synopsis,
    rows: int | None = None,
    *,
    seed: int | None = None,
    where: AttributeConditions | None = None,
    workers: WorkerKind = "threads",
    worker_count: int | None = None,
    progress: Progress = ignore_progress,
) -> list[Path]:
    """Write Parquet files into a folder, each drawn and written by one worker; the files in their order.

    Memory is that of a few chunks for each worker, whatever the number of rows. The same seed gives the same rows,
    whoever draws them and however many they are.

    Args:
        folder: where to; it must be there.
        synopsis: what to draw from.
        rows: how many; by default the estimated number of rows of the private table.
        seed: makes the rows reproducible.
        where: conditions as in ``Synopsis.generate``.
        workers: threads of this process, or processes, which share nothing.
        worker_count: of workers; by default one for each core.
        progress: is told how far it is.
    """
    drawing = synopsis.sampler(rows, seed=seed, where=where)
    count = worker_count or os.cpu_count() or 1
    if workers not in ("threads", "processes"):
        raise UserError(f"workers are threads or processes, not {workers!r}")
    if workers == "threads":
        with ThreadPoolExecutor(count) as pool:
            work = _PartWriter(drawing, str(folder))
            return list(_run_ahead(pool, work, range(count_parts(drawing)), 2 * count, progress))
    with TemporaryDirectory() as place:
        synopsis.save(Path(place) / "synopsis.dpsyn")
        order = (str(Path(place) / "synopsis.dpsyn"), drawing.rows, drawing.seed, dict(where or {}), str(folder))
        with ProcessPoolExecutor(count, get_context("spawn"), _start_process, order) as processes:
            return list(_run_ahead(processes, _write_part, range(count_parts(drawing)), 2 * count, progress))


class _PartWriter:
    """Writes parts of a drawing."""

    def __init__(self, sampler: RowSampler, folder: str) -> None:
        self._sampler, self._folder = sampler, folder

    def __call__(self, number: int) -> Path:
        path = Path(self._folder) / part_name(number)
        write_table(sample_part(self._sampler, number), path, synthetic=True)
        return path


_process_writer: list[_PartWriter] = []
"""What this process writes, if it was started to write parts."""


def _start_process(synopsis: str, rows: int, seed: int, where: dict[str, Any], folder: str) -> None:
    _process_writer[:] = [_PartWriter(Synopsis.load(synopsis).sampler(rows, seed=seed, where=where), folder)]


def _write_part(number: int) -> Path:
    return _process_writer[0](number)


def _run_ahead(
    pool: Executor, work: Callable[[int], T], numbers: Sequence[int], max_waiting: int, progress: Progress
) -> Iterator[T]:
    """The work on every number, in order; only so many wait or are done before they are taken."""
    waiting: deque[Future[T]] = deque()
    progress("drawing rows", 0.0)
    for number in numbers:
        waiting.append(pool.submit(work, number))
        if len(waiting) > max_waiting:
            yield waiting.popleft().result()
            progress("drawing rows", (number + 1 - len(waiting)) / len(numbers))
    while waiting:
        yield waiting.popleft().result()
        progress("drawing rows", 1 - len(waiting) / len(numbers))


# ── as Spark tasks ───────────────────────────────────────────────────────────────────────────────────────────

_SPARK_TYPES = {
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.date32(): "date",
}


def spark_frame(
    synopsis: Synopsis,
    session: Any,
    rows: int | None = None,
    *,
    seed: int | None = None,
    where: AttributeConditions | None = None,
) -> Any:
    """Synthetic rows as a Spark DataFrame, one partition for each part, drawn by tasks when it is used.

    ``frame.write.parquet(address)`` writes them wherever Spark can, a task that failed being run again. The same seed
    gives the same rows as ``write_parts``, in the same parts. Workers need DPSyn, and get the synopsis, not the rows.
    """
    drawing, size = synopsis.sampler(rows, seed=seed, where=where), PART_ROWS
    columns = drawing.empty_table().schema
    ddl = ", ".join(f"`{field.name.replace('`', '``')}` {_spark_type(field.type)}" for field in columns)

    def sample_partitions(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from sample_part(drawing, number, size)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own, about versions of libraries that are not used here
        return session.range(0, count_parts(drawing), 1, count_parts(drawing)).mapInArrow(sample_partitions, ddl)


def _spark_type(kind: pa.DataType) -> str:
    return "timestamp_ntz" if pa.types.is_timestamp(kind) else _SPARK_TYPES[kind]
