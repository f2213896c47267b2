"""DuckDB: a query on a database file, or a relation that exists already."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsyn.errors import MissingExtraError, SourceError
from dpsyn.sources.source import BATCH_ROWS


class RelationSource:
    """A DuckDB relation, run anew at every reading."""

    again = True

    def __init__(self, relation: Any, where: str = "the given relation", size: int | None = None) -> None:
        self.where = where
        self.bytes = size
        self._relation = relation
        with _executing(where):
            self.schema = _stream(relation.limit(0)).schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the answer."""
        chosen = ", ".join(_quoted(name) for name in columns)
        with _executing(self.where):
            yield from _stream(self._relation.project(chosen))


def query_source(path: Path, query: str) -> RelationSource:
    """A table, or the answer of a SELECT, of a DuckDB database that is opened read-only."""
    duckdb = _duckdb()
    if not path.is_file():
        raise SourceError(f"there is no database {path}")
    statement = query.strip().rstrip(";")
    statement = statement if " " in statement else f"SELECT * FROM {_quoted(statement)}"
    try:
        relation = duckdb.connect(str(path), read_only=True).sql(statement)
    except duckdb.Error as error:  # raised while planning, before any row is read
        raise SourceError(f"{path} does not answer the query: {str(error).splitlines()[0]}") from None
    if relation is None:
        raise SourceError(f"the query on {path} gives no table; it should be a SELECT or the name of a table")
    return RelationSource(relation, f"the query on {path}", path.stat().st_size)


@contextlib.contextmanager
def _executing(where: str) -> Iterator[None]:
    """Turn an error of a running query into one without its words: they may quote cells."""
    try:
        yield
    except (_duckdb().Error, pa.ArrowException):
        raise SourceError(f"{where} failed while it ran; try it in DuckDB itself to see why") from None


def _stream(relation: Any) -> pa.RecordBatchReader:
    reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return reader(BATCH_ROWS)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("duckdb", "duckdb", "reading a DuckDB database") from None
    return duckdb
