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

from dpsyn.errors import UserError
from dpsyn.progress import Progress, silent
from dpsyn.records import write_table
from dpsyn.synopsis.drawing import Drawing
from dpsyn.synopsis.synopsis import Synopsis, Where

PART_ROWS = 1 << 20
"""Rows of a part, about; a file of ten columns takes some ten megabytes."""

GROUP_ROWS = 1 << 17
"""Rows that are stored together, about, as readers of Parquet like it."""

Workers = Literal["threads", "processes"]
T = TypeVar("T")


def batches(drawing: Drawing, progress: Progress = silent, threads: int | None = None) -> Iterator[pa.Table]:
    """The rows of all chunks, in order; a few are drawn ahead by threads."""
    if drawing.chunks == 1:
        yield drawing.table(0, progress)
        return
    workers = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        yield from _ahead(pool, drawing.table, range(drawing.chunks), 2 * workers, progress)
    progress("drawing rows", 1.0)


def parts_of(drawing: Drawing) -> int:
    """How many parts the rows have."""
    return -(-drawing.chunks // _chunks_of(drawing, PART_ROWS))


def part(drawing: Drawing, number: int, rows: int | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a part, where parts have so many rows."""
    size = _chunks_of(drawing, rows or PART_ROWS)
    chunks = range(number * size, min((number + 1) * size, drawing.chunks))
    return grouped(drawing, (drawing.table(chunk) for chunk in chunks))


def grouped(drawing: Drawing, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Several chunks together, as files store them."""
    chunks, number = iter(tables), _chunks_of(drawing, GROUP_ROWS)
    while together := list(islice(chunks, number)):
        yield from pa.concat_tables(together).combine_chunks().to_batches() or [_empty(together[0].schema)]


def _chunks_of(drawing: Drawing, rows: int) -> int:
    """How many chunks have about so many rows."""
    return max(1, rows // drawing.most)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
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
    where: Where | None = None,
    workers: Workers = "threads",
    number: int | None = None,
    progress: Progress = silent,
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
        number: of workers; by default one for each core.
        progress: is told how far it is.
    """
    drawing = synopsis.drawing(rows, seed=seed, where=where)
    count = number or os.cpu_count() or 1
    if workers not in ("threads", "processes"):
        raise UserError(f"workers are threads or processes, not {workers!r}")
    if workers == "threads":
        with ThreadPoolExecutor(count) as pool:
            work = _Writing(drawing, str(folder))
            return list(_ahead(pool, work, range(parts_of(drawing)), 2 * count, progress))
    with TemporaryDirectory() as place:
        synopsis.save(Path(place) / "synopsis.dpsyn")
        order = (str(Path(place) / "synopsis.dpsyn"), drawing.rows, drawing.seed, dict(where or {}), str(folder))
        with ProcessPoolExecutor(count, get_context("spawn"), _begin, order) as processes:
            return list(_ahead(processes, _write_own, range(parts_of(drawing)), 2 * count, progress))


class _Writing:
    """Writes parts of a drawing."""

    def __init__(self, drawing: Drawing, folder: str) -> None:
        self._drawing, self._folder = drawing, folder

    def __call__(self, number: int) -> Path:
        path = Path(self._folder) / part_name(number)
        write_table(part(self._drawing, number), path, synthetic=True)
        return path


_own: list[_Writing] = []
"""What this process writes, if it was started to write parts."""


def _begin(synopsis: str, rows: int, seed: int, where: dict[str, Any], folder: str) -> None:
    _own[:] = [_Writing(Synopsis.load(synopsis).drawing(rows, seed=seed, where=where), folder)]


def _write_own(number: int) -> Path:
    return _own[0](number)


def _ahead(
    pool: Executor, work: Callable[[int], T], numbers: Sequence[int], ahead: int, progress: Progress
) -> Iterator[T]:
    """The work on every number, in order; only so many wait or are done before they are taken."""
    waiting: deque[Future[T]] = deque()
    progress("drawing rows", 0.0)
    for number in numbers:
        waiting.append(pool.submit(work, number))
        if len(waiting) > ahead:
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
    where: Where | None = None,
) -> Any:
    """Synthetic rows as a Spark DataFrame, one partition for each part, drawn by tasks when it is used.

    ``frame.write.parquet(address)`` writes them wherever Spark can, a task that failed being run again. The same seed
    gives the same rows as ``write_parts``, in the same parts. Workers need DPSyn, and get the synopsis, not the rows.
    """
    drawing, size = synopsis.drawing(rows, seed=seed, where=where), PART_ROWS
    columns = drawing.no_rows().schema
    ddl = ", ".join(f"`{field.name.replace('`', '``')}` {_spark_type(field.type)}" for field in columns)

    def drawn(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from part(drawing, number, size)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own, about versions of libraries that are not used here
        return session.range(0, parts_of(drawing), 1, parts_of(drawing)).mapInArrow(drawn, ddl)


def _spark_type(kind: pa.DataType) -> str:
    return "timestamp_ntz" if pa.types.is_timestamp(kind) else _SPARK_TYPES[kind]
