"""Opens anything that a user calls a table: paths, patterns, databases, data frames, Arrow streams."""

from __future__ import annotations

import contextlib
import os
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsyn.errors import SourceError
from dpsyn.release_files import find_table
from dpsyn.schema.file_syntax import PLAIN_FILE, FileSyntax
from dpsyn.sources.addresses import is_postgres_address, refuse_other_addresses
from dpsyn.sources.files import MultiFileSource, redact_path, refuse_duplicate_files
from dpsyn.sources.source import Protect, Source, attempt
from dpsyn.suggestions import suggest_file

DATABASE_SUFFIXES = (".duckdb", ".ddb")
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
SPREADSHEET_SUFFIXES = (".xlsx", ".xlsm", ".xls", ".ods")
STATISTICAL_SUFFIXES = (".sav", ".zsav", ".dta", ".sas7bdat", ".xpt")
SUPPORTED_SUFFIXES = (
    ".csv, .tsv (also .gz, .bz2, .zst), .parquet, .arrow, .feather, .duckdb, .xlsx, .xls, .ods, .sav, .dta, .sas7bdat, "
    ".xpt, or a folder of Parquet files"
)


def open_source(
    data: Any,
    *,
    query: str | None = None,
    protect: Protect | None = None,
    syntax: FileSyntax = PLAIN_FILE,
    other_suffixes: str = "",
) -> Source:
    """Open a path, a pandas or polars DataFrame, an Arrow table, a DuckDB relation, or an Arrow C stream.

    Args:
        data: the table. A path may be a pattern such as ``folder/*.parquet``; the files that match it make one table.
        query: a SELECT, or the name of a table, for a DuckDB database file or the address of a PostgreSQL database such
            as ``postgresql://user@host/database``; or a SELECT on files, see ``duckdb.query_files``.
        protect: whose rows a release protects. For ``base rows`` the query must be row-wise, see ``row_wise``. By
            default, for the data owner's own look, it is as a release would take it, or else run as it is.
        syntax: how text files and spreadsheets are written, as a schema declares it.
        other_suffixes: the formats that the caller reads itself, for the message about an unknown suffix.
    """
    if isinstance(data, str) and not data:
        raise SourceError("the path is empty; give the path of a file or a folder")
    if protect is None and query is not None:
        with contextlib.suppress(SourceError):
            return open_source(data, query=query, protect="base rows", syntax=syntax, other_suffixes=other_suffixes)
        protect = "query rows"
    protect = protect or "base rows"
    if is_postgres_address(data):
        return _open_postgres(str(data), query, protect)
    if isinstance(data, str | os.PathLike):
        refuse_other_addresses(os.fspath(data))
        return _open_path(Path(data), query, protect, syntax, other_suffixes)
    if query is not None:
        raise SourceError(
            "a query needs the path of files or the address of a database; select the rows of a DataFrame yourself"
        )
    library = type(data).__module__.partition(".")[0]
    if library == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns"):
        from dpsyn.sources.pandas import PandasSource

        return PandasSource(data)
    if library in ("duckdb", "_duckdb") and hasattr(data, "project"):
        from dpsyn.sources.duckdb import open_relation

        return open_relation(data)
    if library == "polars" and hasattr(data, "collect"):
        lazy = data
        data = attempt(lambda: lazy.collect(), "the given LazyFrame", "collecting it failed; run .collect() to see why")
    if hasattr(data, "__arrow_c_stream__"):
        from dpsyn.sources.arrow import ArrowStreamSource

        return ArrowStreamSource(data)
    raise SourceError(
        f"an object of type {type(data).__name__} is not a table; give a path ({SUPPORTED_SUFFIXES}), a pandas or "
        "polars DataFrame, an Arrow table or a DuckDB relation"
    )


def _open_path(path: Path, query: str | None, protect: Protect, syntax: FileSyntax, other_suffixes: str) -> Source:
    if not is_pattern(path) and not attempt(path.exists, str(path)[:100], "give the path of a file or a folder"):
        raise SourceError(f"there is no file or folder {redact_path(path)}{redact_path(suggest_file(path))}")
    _refuse_special_file(path)
    path = find_table(path)
    if path.suffix.lower() in DATABASE_SUFFIXES and path.exists():
        return _open_database(path, query, protect)
    source = (
        _open_pattern(path, syntax, other_suffixes) if is_pattern(path) else _open_file(path, syntax, other_suffixes)
    )
    if query is None:
        return source
    from dpsyn.sources.duckdb import query_files

    return query_files(source, path, query, protect)


def _refuse_special_file(path: Path) -> None:
    """Refuse a pipe, a device or a socket: it has no size, and it can be read only once or never ends."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise SourceError(
            f"{redact_path(path)} is neither a file nor a folder, but a pipe, a device or a socket; save its rows to a "
            "file, and give that"
        )


def is_pattern(path: str | Path) -> bool:
    """Whether a path is a pattern for several files, such as ``folder/*.parquet``."""
    return has_magic(str(path)) and not attempt(Path(path).exists, str(path)[:100], "give the path of a file")


def _open_pattern(pattern: Path, syntax: FileSyntax, other_suffixes: str) -> Source:
    names = sorted(set(glob(str(pattern), recursive=True)))  # a pattern with two ** lists a file several times
    paths = [Path(name) for name in names if Path(name).is_file()]
    if not paths:
        raise SourceError(f"no file matches {pattern}")
    if any(path.suffix.lower() in DATABASE_SUFFIXES for path in paths):
        raise SourceError(f"{pattern} matches a database; give the path of one database, and a query")
    attempt(lambda: refuse_duplicate_files(paths, str(pattern)), str(pattern), "a file may have been removed")
    return MultiFileSource([_open_file(path, syntax, other_suffixes) for path in paths], str(pattern))


def _open_database(path: Path, query: str | None, protect: Protect) -> Source:
    from dpsyn.sources.duckdb import query_database

    if query is None:
        raise SourceError(f"{path} is a database; name a table or give a SELECT (--query, or query=)")
    return query_database(path, query, protect)


def _open_postgres(address: str, query: str | None, protect: Protect) -> Source:
    from dpsyn.sources.postgresql import query_server

    if query is None:
        raise SourceError("the address is that of a database; name a table or give a SELECT (--query, or query=)")
    return query_server(address, query, protect)


def _open_file(path: Path, syntax: FileSyntax, other_suffixes: str) -> Source:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _COMPRESSED else "".join(suffixes[-1:])
    if kind in (".csv", ".tsv") and not path.is_dir():
        from dpsyn.sources.csv import CsvSource

        return CsvSource(path, syntax)
    if kind in (".parquet", ".pq") or path.is_dir():
        from dpsyn.sources.parquet import ParquetSource

        return ParquetSource(path)
    if kind in (".arrow", ".feather", ".ipc"):
        from dpsyn.sources.arrow import ArrowFileSource

        return ArrowFileSource(path)
    if kind in SPREADSHEET_SUFFIXES:
        from dpsyn.sources.spreadsheet import SpreadsheetSource

        return SpreadsheetSource(path, syntax)
    if kind in STATISTICAL_SUFFIXES:
        from dpsyn.sources.statistical_files import StatisticalFileSource

        return StatisticalFileSource(path, syntax)
    known = f"{other_suffixes}, {SUPPORTED_SUFFIXES}" if other_suffixes else SUPPORTED_SUFFIXES
    raise SourceError(f"{redact_path(path)}: its suffix is not that of a known format; DPSyn reads {known}")


# ── a whole table in memory ──────────────────────────────────────────────────────────────────────────────────


def read_table(data: Any, *, query: str | None = None) -> pa.Table:
    """Read a whole table into memory as an Arrow table, from anything that ``open_source`` opens.

    The entries of text files stay raw bytes; a schema gives them a meaning.

    Privacy: it returns rows. It is for synthetic tables; a release never uses it.
    """
    source = open_source(data, query=query)
    names = source.schema.names
    batches = list(source.batches(names))
    return pa.Table.from_batches(batches) if batches else source.schema.empty_table()
