"""Anything a user calls a table → a Source."""

from __future__ import annotations

import os
from collections.abc import Callable
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from dpsyn.errors import SourceError
from dpsyn.sources.postgresql import is_address
from dpsyn.sources.several import SeveralSource, refuse_same, shown
from dpsyn.sources.source import Source, attempt

DATABASES = (".duckdb", ".ddb")
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
SUFFIXES = ".csv, .tsv (also .gz, .bz2, .zst), .parquet, .arrow, .feather, .duckdb, or a folder of Parquet files"


def open_source(data: Any, *, query: str | None = None, besides: str = "") -> Source:
    """A source for a path, a pandas or polars frame, an Arrow table, a DuckDB relation, or an Arrow C stream.

    A path may be a pattern such as ``folder/*.parquet``; the files that match it make one table.
    ``query`` is a SELECT, or the name of a table, for a DuckDB database file or the address of a PostgreSQL database
    such as ``postgresql://user@host/database``; or a SELECT on files, see ``duckdb.query_files``. ``besides`` says what
    else the caller reads, for whoever gave a file of neither kind.
    """
    if isinstance(data, str) and not data:
        raise SourceError("the path is empty; give that of a file or a folder")
    if is_address(data):
        return _open_postgres(str(data), query)
    if isinstance(data, str | os.PathLike):
        return _open_path(Path(data), query, besides)
    if query is not None:
        raise SourceError("a query needs the path of files or of a DuckDB database; select from a frame yourself")
    library = type(data).__module__.partition(".")[0]
    if library == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns"):
        from dpsyn.sources.frames import PandasSource

        return PandasSource(data)
    if library in ("duckdb", "_duckdb") and hasattr(data, "project"):
        from dpsyn.sources.duckdb import RelationSource

        return RelationSource(data)
    if library == "polars" and hasattr(data, "collect"):
        lazy = data
        data = attempt(lambda: lazy.collect(), "the given LazyFrame", "collecting it failed; try that yourself")
    if hasattr(data, "__arrow_c_stream__"):
        from dpsyn.sources.arrow import StreamSource

        return StreamSource(data)
    raise SourceError(
        f"a {type(data).__name__} is not a table; give a path ({SUFFIXES}), a pandas or polars DataFrame, "
        "an Arrow table or a DuckDB relation"
    )


def _open_path(path: Path, query: str | None, besides: str) -> Source:
    if not is_pattern(path) and not attempt(path.exists, f"{str(path)[:100]}", "give the path of a file or a folder"):
        raise SourceError(f"there is no file or folder {shown(path)}")
    if path.suffix.lower() in DATABASES and path.exists():
        return _open_database(path, query)
    source = _open_pattern(path, besides) if is_pattern(path) else _reader_of(path, besides)(path)
    if query is None:
        return source
    from dpsyn.sources.duckdb import query_files

    return query_files(source, path, query)


def is_pattern(path: str | Path) -> bool:
    """Whether a path stands for all files that match it, such as ``folder/*.parquet``."""
    return has_magic(str(path)) and not attempt(Path(path).exists, str(path)[:100], "give the path of a file")


def _open_pattern(pattern: Path, besides: str) -> Source:
    found = sorted(set(glob(str(pattern), recursive=True)))  # it may find a file several times, if ** stands twice
    paths = [Path(name) for name in found if Path(name).is_file()]
    if not paths:
        raise SourceError(f"no file matches {pattern}")
    if any(path.suffix.lower() in DATABASES for path in paths):
        raise SourceError(f"{pattern} matches a database; give the path of one, and a query")
    attempt(lambda: refuse_same(paths, str(pattern)), str(pattern), "a file may be gone")
    return SeveralSource([_reader_of(path, besides)(path) for path in paths], str(pattern))


def _open_database(path: Path, query: str | None) -> Source:
    from dpsyn.sources.duckdb import query_source

    if query is None:
        raise SourceError(f"{path} is a database; say which table or query to read (--query, or query=)")
    return query_source(path, query)


def _open_postgres(address: str, query: str | None) -> Source:
    from dpsyn.sources.postgresql import PostgresSource

    if query is None:
        raise SourceError("the address is that of a database; say which table or query to read (--query, or query=)")
    return PostgresSource(address, query)


def _reader_of(path: Path, besides: str) -> Callable[[Path], Source]:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _COMPRESSED else "".join(suffixes[-1:])
    if kind in (".csv", ".tsv") and path.is_file():
        from dpsyn.sources.csv import CsvSource

        return CsvSource
    if kind in (".parquet", ".pq") or path.is_dir():
        from dpsyn.sources.parquet import ParquetSource

        return ParquetSource
    if kind in (".arrow", ".feather", ".ipc"):
        from dpsyn.sources.arrow import ArrowFileSource

        return ArrowFileSource
    known = f"{besides}, {SUFFIXES}" if besides else SUFFIXES
    raise SourceError(f"{shown(path)}: its suffix does not say what it is; DPSyn reads {known}")
