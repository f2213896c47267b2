"""Synthetic tables → files, by suffix."""

from __future__ import annotations

import contextlib
import gzip
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Literal

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.ipc as paipc
import pyarrow.parquet as papq

from dpsyn.errors import OutputError
from dpsyn.outputs import written_beside

MARK = {b"dpsyn": b"synthetic"}
"""What the metadata of Parquet and Arrow files says, so that nobody takes them for the real rows."""

SUFFIXES = ".csv, .csv.gz, .parquet or .arrow"

Format = Literal["csv", "parquet", "arrow"]


def write_table(batches: Iterable[pa.RecordBatch] | pa.Table, path: str | Path, *, synthetic: bool) -> None:
    """Write batches of one schema to a file, beside its place first; ``-`` is standard output, as CSV.

    ``synthetic`` marks the file as such where its format has room for it.
    """
    table_schema, parts = _parts(batches)
    if synthetic:
        table_schema = table_schema.with_metadata({**(table_schema.metadata or {}), **MARK})
    if str(path) == "-":
        _write_all(lambda sink: pacsv.CSVWriter(sink, table_schema), sys.stdout.buffer, parts)
        return
    open_writer = _writer_of(Path(path), table_schema)
    with written_beside(Path(path)) as beside, _opened(beside, Path(path)) as sink:
        _write_all(open_writer, sink, parts)


def _parts(batches: Iterable[pa.RecordBatch] | pa.Table) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    if isinstance(batches, pa.Table):
        return batches.schema, batches.to_batches()
    iterator = iter(batches)
    first = next(iterator, None)
    if first is None:
        raise OutputError("there is nothing to write, not even the names of the columns")
    return first.schema, _chain(first, iterator)


def _chain(first: pa.RecordBatch, rest: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    yield first
    yield from rest


def format_of(path: str | Path) -> Format:
    """What a file holds by its suffix; an OutputError if that does not say."""
    name = Path(path).name.lower()
    if name.endswith((".csv", ".csv.gz")):
        return "csv"
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    if name.endswith((".arrow", ".feather", ".ipc")):
        return "arrow"
    raise OutputError(f"{path}: its suffix does not say what to write; use {SUFFIXES}")


def _writer_of(path: Path, schema: pa.Schema) -> Callable[[Any], Any]:
    match format_of(path):
        case "csv":
            return lambda sink: pacsv.CSVWriter(sink, schema)
        case "parquet":
            return lambda sink: papq.ParquetWriter(sink, schema)
        case "arrow":
            return lambda sink: paipc.new_file(sink, schema)


@contextlib.contextmanager
def _opened(beside: Path, path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """The file to write into, compressed if its final name says so; without a time stamp in it."""
    with beside.open("wb") as file:
        if not path.name.lower().endswith(".gz"):
            yield file
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as compressed:
            yield compressed


def _write_all(open_writer: Callable[[Any], Any], sink: Any, parts: Iterable[pa.RecordBatch]) -> None:
    with open_writer(sink) as writer:
        for part in parts:
            writer.write_batch(part)
