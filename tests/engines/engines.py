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

from dpsyn.engines import Engine, open_engine, spark, spark_tasks
from dpsyn.schema import Schema
from dpsyn.sources import Source, open_source

KEY = bytes(range(16))

Opener = Callable[..., Engine]


class InBatches:
    """A source of the rows of a table, in small batches; it counts its readings."""

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


def counted_by_spark(data: Any, schema: Schema, key: bytes = KEY) -> Engine:
    """The rows in two files, which Spark's workers read."""
    if not isinstance(data, pa.Table):
        return open_engine(_source(data), schema, kind="spark", key=key)
    spark_session()
    folder = Path(tempfile.mkdtemp(dir=FOLDER.name))
    half = len(data) // 2
    for index, part in enumerate((data[:half], data[half:])):
        if _survives_parquet(data):
            papq.write_table(part, folder / f"{index}.parquet")
        else:
            with paipc.new_file(folder / f"{index}.arrow", part.schema) as writer:
                writer.write_table(part)
    return open_engine(open_source(folder / "*.*"), schema, kind="spark", key=key)


def _survives_parquet(table: pa.Table) -> bool:
    """Whether Parquet keeps the types of a table."""
    return not any(pa.types.is_null(kind) or pa.types.is_timestamp(kind) for kind in table.schema.types)


@functools.cache
def spark_session() -> Any:
    """One session for all tests: two cores, four attempts, and results for the driver of at most four megabytes."""
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
    """Make a task kill its worker once, after it has read its rows; the marker file then exists."""
    task, path = getattr(spark_tasks, name), str(marker)

    def run(*arguments: Any) -> Any:
        *others, batches = arguments

        def read_and_die(batches: Iterable[Any]) -> Iterator[Any]:
            yield from batches
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

        return task(*others, read_and_die(batches))

    others = {other: getattr(spark_tasks, other) for other in dir(spark_tasks) if not other.startswith("__")}
    monkeypatch.setattr(spark, "spark_tasks", types.SimpleNamespace(**{**others, name: run}))


FOLDER = tempfile.TemporaryDirectory()


def _source(data: Any) -> Source:
    return data if hasattr(data, "batches") else open_source(data)


ALL: tuple[Opener, ...] = (in_memory, streamed_by_three, streamed_at_once)
"""Engines in this process, which are fast enough for many tables."""

every_local_engine = pytest.mark.parametrize("opened", ALL)
every_engine = pytest.mark.parametrize("opened", [*ALL, pytest.param(counted_by_spark, marks=pytest.mark.java)])
