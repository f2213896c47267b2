"""Opens tables, and chooses the engine that counts them."""

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
from dpsyn.schema.file_syntax import PLAIN_FILE, FileSyntax
from dpsyn.sources import Protect, Source, check_protect, is_pattern, is_postgres_address, open_source

_FILE_SUFFIXES = (
    "csv|tsv|parquet|pq|arrow|feather|ipc|gz|bz2|zst|lz4|duckdb|ddb|xlsx|xlsm|xls|ods|sav|zsav|dta|sas7bdat|xpt"
)
_SPARK_TABLE_NAME = re.compile(rf"\w+(\.(?!({_FILE_SUFFIXES})$)\w+){{0,2}}")
"""The name of a table in Spark's catalog, as opposed to that of a file."""

EngineKind = Literal["auto", "memory", "stream", "spark"]

MAX_IN_MEMORY_BYTES = 1 << 30
"""Files up to this size are held in memory: their codes take about as much, which common machines have."""


def open_table(
    data: Any,
    *,
    query: str | None = None,
    protect: Protect = "base rows",
    kind: EngineKind = "auto",
    syntax: FileSyntax = PLAIN_FILE,
) -> Source:
    """Open the source of a table; for Spark also a Spark DataFrame, the name of a Spark table, or a Spark address.

    ``syntax`` is how its files are written.
    """
    check_protect(protect, query)
    if spark.is_spark_frame(data):
        if query is not None:
            raise SourceError("a Spark DataFrame takes no query; select its rows yourself")
        return spark.open_spark_source(data)
    if kind == "spark" and (query is not None or is_postgres_address(data)):
        raise SourceError(
            "Spark counts files, Spark tables and Spark DataFrames, not the result of a query; "
            "set the engine to auto or stream"
        )
    if kind == "spark" and isinstance(data, str) and not _is_path(data):
        return spark.open_spark_source(data)
    source = open_source(data, query=query, protect=protect, syntax=syntax)
    if kind == "spark":
        spark.require_pieces(source)
    return source


def _is_path(data: str) -> bool:
    """Whether a text is a path on this machine (the file may not exist), and not a Spark table or an address."""
    return not data or (
        "://" not in data and (is_pattern(data) or os.path.exists(data) or not _SPARK_TABLE_NAME.fullmatch(data))
    )


def open_engine(source: Source, schema: Schema, *, kind: EngineKind = "auto", key: bytes) -> Engine:
    """An engine that counts the rows of a source. The structure is checked here; no row is read yet.

    Args:
        source: the private table.
        schema: what is public about it.
        kind: ``auto`` chooses Spark for Spark sources, streams files and folders above ``MAX_IN_MEMORY_BYTES``, and
            holds all other tables in memory.
        key: 16 secret random bytes of this run, for contribution bounding.

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
    """The kind of engine that counts a source."""
    if isinstance(source, spark.SparkSource):
        if kind not in ("auto", "spark"):
            raise SourceError(f"{source.label} is counted by Spark; set the engine to auto or spark")
        return "spark"
    if kind == "auto":
        return "stream" if (source.byte_size or 0) > MAX_IN_MEMORY_BYTES and source.rereadable else "memory"
    return kind
