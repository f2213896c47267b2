"""Engines of every kind over small tables, for the tests that all engines must pass."""

from __future__ import annotations

import atexit
import functools
import os
import signal
import sys
import tempfile
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as paipc
import pyarrow.parquet as papq
import pytest

from dpsyn.engines import Engine, open_engine, spark, tasks
from dpsyn.schema import Schema
from dpsyn.sources import Source, open_source

KEY = bytes(range(16))

Opener = Callable[..., Engine]


class InBatches:
    """A source that gives another one's rows in batches of a few."""

    rereadable = True
    byte_size: int | None = None

    def __init__(self, table: pa.Table, rows: int) -> None:
        self.label, self.schema = "the test's table", table.schema
        self._table, self._rows = table, rows
        self.readings = 0

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self.readings += 1
        yield from self._table.select(list(columns)).to_batches(self._rows)


def in_memory(data: Any, schema: Schema, key: bytes = KEY) -> Engine:
    return open_engine(_source(data), schema, kind="memory", key=key)


def streamed_by_three(data: Any, schema: Schema, key: bytes = KEY) -> Engine:
    source: Source = InBatches(data, 3) if isinstance(data, pa.Table) else _source(data)
    return open_engine(source, schema, kind="stream", key=key)


def streamed_at_once(data: Any, schema: Schema, key: bytes = KEY) -> Engine:
    return open_engine(_source(data), schema, kind="stream", key=key)


def sparked(data: Any, schema: Schema, key: bytes = KEY) -> Engine:
    """The rows in two files, which Spark's workers read."""
    if not isinstance(data, pa.Table):
        return open_engine(_source(data), schema, kind="spark", key=key)
    spark_session()
    folder = Path(tempfile.mkdtemp(dir=FOLDER.name))
    half = len(data) // 2
    for number, part in enumerate((data[:half], data[half:])):
        papq.write_table(part, folder / f"{number}.parquet") if _plain(data) else _write_arrow(part, folder, number)
    return open_engine(open_source(folder / "*.*"), schema, kind="spark", key=key)


def _plain(table: pa.Table) -> bool:
    """Whether Parquet gives back the types as they are."""
    return not any(pa.types.is_null(kind) or pa.types.is_timestamp(kind) for kind in table.schema.types)


def _write_arrow(table: pa.Table, folder: Path, number: int) -> None:
    with paipc.new_file(folder / f"{number}.arrow", table.schema) as writer:
        writer.write_table(table)


@functools.cache
def spark_session() -> Any:
    """One session for the whole test run: two cores, four tries, and no results above four megabytes to the driver."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.master": "local[2,4]",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.maxResultSize": "4m",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # starts sooner
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": FOLDER.name,
    }
    session = SparkSession.builder.config(map=settings).getOrCreate()
    atexit.register(session.stop)
    return session


def kill_a_worker_once(monkeypatch: pytest.MonkeyPatch, name: str, marker: Path) -> None:
    """Make a task kill the worker that runs it when it has read its rows, once; the marker tells that it did."""
    task, path = getattr(tasks, name), str(marker)

    def run(*arguments: Any) -> Any:
        *others, batches = arguments

        def then_die(batches: Iterable[Any]) -> Iterator[Any]:
            yield from batches
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

        return task(*others, then_die(batches))

    others = {other: getattr(tasks, other) for other in dir(tasks) if not other.startswith("__")}
    monkeypatch.setattr(spark, "tasks", types.SimpleNamespace(**{**others, name: run}))


FOLDER = tempfile.TemporaryDirectory()


def _source(data: Any) -> Source:
    return data if hasattr(data, "batches") else open_source(data)


ALL: tuple[Opener, ...] = (in_memory, streamed_by_three, streamed_at_once)
"""Engines of this process, which can be tried on many tables."""

every_local_engine = pytest.mark.parametrize("opened", ALL)
every_engine = pytest.mark.parametrize("opened", [*ALL, pytest.param(sparked, marks=pytest.mark.java)])
