"""Writes tables to files; the suffix decides the format."""

from __future__ import annotations

import contextlib
import errno
import gzip
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.ipc as paipc
import pyarrow.parquet as papq

from dpsyn.atomic_files import atomic_write, table_format
from dpsyn.errors import OutputError, describe_os_error

SYNTHETIC_MARK = {b"dpsyn": b"synthetic"}
"""Metadata of Parquet and Arrow files that marks their rows as synthetic."""


_FORMULA_START = r"\A([=+\-@\t\r])"
"""How a cell begins that a spreadsheet may take for a formula (OWASP's list)."""


def write_table(batches: Any, path: str | Path, *, synthetic: bool, escape_formulas: bool = False) -> None:
    """Write a table to a file, atomically: to a temporary file first, which is then renamed.

    Args:
        batches: an Arrow table, a pandas or polars DataFrame, or Arrow batches that all have the same schema.
        path: the file; its suffix decides the format. ``-`` is standard output, as CSV.
        synthetic: mark the rows as synthetic in the metadata of the file, if its format has metadata.
        escape_formulas: for CSV: put an apostrophe before texts and names of columns that a spreadsheet would take for
            a formula, because they begin with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return. It changes these
            values, so it is off by default.
    """
    table_schema, parts = _as_batches(batches)
    if escape_formulas:
        _check_formula_escaping(path)
        table_schema, parts = _escape_formulas(table_schema.empty_table()).schema, map(_escape_formulas, parts)
    if synthetic:
        table_schema = table_schema.with_metadata({**(table_schema.metadata or {}), **SYNTHETIC_MARK})
    if str(path) == "-":
        with _standard_output() as sink:
            _write_all(lambda sink: pacsv.CSVWriter(sink, table_schema), sink, parts)
        return
    kind = table_format(path)
    if kind in ("xlsx", "sav", "dta"):
        with atomic_write(Path(path)) as beside:
            _write_all(lambda file: _office_writer(kind, file, table_schema), beside, parts)
        return
    open_writer = _choose_writer(Path(path), table_schema)
    with atomic_write(Path(path)) as beside, _open_sink(beside, Path(path)) as sink:
        _write_all(open_writer, sink, parts)


def _check_formula_escaping(path: str | Path) -> None:
    """Refuse to escape formulas in a file that is not CSV: only texts of CSV files become formulas."""
    if str(path) != "-" and table_format(path) != "csv":
        raise OutputError(f"{path} is not a CSV file, in which texts could become formulas; do not escape them")


def _escape_formulas(table: Any) -> Any:
    """An Arrow table or batch with an apostrophe before each text and name that begins like a formula."""
    columns = [
        pc.replace_substring_regex(column, _FORMULA_START, r"'\1") if _is_text(column.type) else column
        for column in (_decode_dictionary(column) for column in table.columns)
    ]
    names = [re.sub(_FORMULA_START, r"'\1", name) for name in table.schema.names]
    return type(table).from_arrays(columns, names=names)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _decode_dictionary(column: Any) -> Any:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


@contextlib.contextmanager
def _standard_output() -> Iterator[IO[bytes]]:
    """Standard output as bytes; its failures are OutputErrors, but a reader that stops early, such as head, is not."""
    if sys.stdout is None:
        raise OutputError("there is no standard output; do not close it, or give the name of a file")
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        raise OutputError(f"standard output cannot be written: {describe_os_error(error)}") from None


def _as_batches(batches: Any) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    if type(batches).__module__.startswith("pandas"):
        batches = pa.Table.from_pandas(batches, preserve_index=False)
    elif not isinstance(batches, pa.Table) and hasattr(batches, "__arrow_c_stream__"):
        batches = _with_plain_texts(pa.table(batches))
    if isinstance(batches, pa.Table):
        return batches.schema, batches.to_batches()
    iterator = iter(batches)
    first = next(iterator, None)
    if first is None:
        raise OutputError("there is nothing to write, not even column names; give at least one batch")
    return first.schema, _chain(first, iterator)


def _with_plain_texts(table: pa.Table) -> pa.Table:
    """The table with plain strings: not every format can be written from the string types of polars."""
    kinds = {pa.string_view(): pa.string(), pa.large_string(): pa.string()}
    fields = [field.with_type(kinds.get(field.type, field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def _chain(first: pa.RecordBatch, rest: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    yield first
    yield from rest


def _choose_writer(path: Path, schema: pa.Schema) -> Callable[[Any], Any]:
    writers: dict[str, Callable[[Any], Any]] = {
        "csv": lambda sink: pacsv.CSVWriter(sink, schema),
        "parquet": lambda sink: papq.ParquetWriter(sink, schema),
        "arrow": lambda sink: paipc.new_file(sink, schema),
    }
    return writers[table_format(path)]


def _office_writer(kind: str, path: Path, schema: pa.Schema) -> Any:
    from dpsyn.encoding.office_writers import ExcelWriter, StatisticalFileWriter

    return ExcelWriter(path, schema) if kind == "xlsx" else StatisticalFileWriter(path, schema, kind)


@contextlib.contextmanager
def _open_sink(beside: Path, path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open the temporary file, compressed if the final name ends with .gz; without a timestamp in it."""
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
