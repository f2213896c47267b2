"""A source and a schema → an engine."""

from __future__ import annotations

import os
import re
from typing import Any, Literal

from dpsyn.encoding import check_structure
from dpsyn.engines import spark
from dpsyn.engines.bounded_rows import BoundedRows
from dpsyn.engines.engine import Engine
from dpsyn.engines.memory import MemoryEngine
from dpsyn.engines.stream import StreamEngine
from dpsyn.errors import SourceError
from dpsyn.schema import Schema
from dpsyn.sources import Source, is_pattern, is_postgres_address, open_source

_SPARK_TABLE_NAME = re.compile(r"\w+(\.(?!(csv|tsv|parquet|pq|arrow|feather|ipc|gz|bz2|zst|lz4|duckdb|ddb)$)\w+){0,2}")
"""The name of a table in Spark's catalogue, and not that of a file."""

EngineKind = Literal["auto", "memory", "stream", "spark"]

MAX_IN_MEMORY_BYTES = 1 << 30
"""Files up to this size are held in memory: their codes take about as much, and a steward's machine has it."""


def open_table(data: Any, *, query: str | None = None, kind: EngineKind = "auto") -> Source:
    """The source of a table; for Spark also a Spark DataFrame, the name of a Spark table, or an address it reads."""
    if spark.is_spark_frame(data):
        if query is not None:
            raise SourceError("a Spark DataFrame takes no query; select from it first")
        return spark.open_spark_source(data)
    if kind == "spark" and (query is not None or is_postgres_address(data)):
        raise SourceError(
            "Spark counts files, tables that it knows and DataFrames, not the answer of a query; "
            "leave the engine at auto, or say stream"
        )
    if kind == "spark" and isinstance(data, str) and not _is_path(data):
        return spark.open_spark_source(data)
    source = open_source(data, query=query)
    if kind == "spark":
        spark.require_pieces(source)
    return source


def _is_path(data: str) -> bool:
    """Whether a text stands for files on this machine, there or not, rather than for a table or an address."""
    return not data or (
        "://" not in data and (is_pattern(data) or os.path.exists(data) or not _SPARK_TABLE_NAME.fullmatch(data))
    )


def open_engine(source: Source, schema: Schema, *, kind: EngineKind = "auto", key: bytes) -> Engine:
    """An engine that counts the rows of a source. Its structure is checked here; no row is read yet.

    ``auto`` streams files and folders above ``MOST_BYTES`` and holds all else in memory, but for what is Spark's.
    ``key`` is 16 secret bytes, drawn anew for each run, by which the rows of a person are chosen.

    Privacy: the choice of an engine depends on the size of the file, which is public, and never on the number of
    rows.
    """
    kind = choose_engine_kind(source, kind)
    if kind == "spark":
        check_structure(schema, source.schema, source.label)
        return spark.SparkEngine(
            source if isinstance(source, spark.SparkSource) else spark.divide_into_pieces(source), schema, key
        )
    rows = BoundedRows(source, schema, key)
    return StreamEngine(rows) if kind == "stream" else MemoryEngine(rows)


def choose_engine_kind(source: Source, kind: EngineKind = "auto") -> Literal["memory", "stream", "spark"]:
    """Which engine counts a source."""
    if isinstance(source, spark.SparkSource):
        if kind not in ("auto", "spark"):
            raise SourceError(f"{source.label} is counted by Spark; leave the engine at auto, or say spark")
        return "spark"
    if kind == "auto":
        return "stream" if (source.byte_size or 0) > MAX_IN_MEMORY_BYTES and source.rereadable else "memory"
    return kind
