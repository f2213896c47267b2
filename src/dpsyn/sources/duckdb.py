"""DuckDB: a query on a database file, or a relation that exists already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsyn.errors import MissingExtraError, SourceError
from dpsyn.sources.source import BATCH_ROWS, attempt, guarded

_FAILED = "the query failed; try it in DuckDB itself to see why"


class RelationSource:
    """A DuckDB relation, run anew at every reading."""

    again = True

    def __init__(self, relation: Any, where: str = "the given relation", size: int | None = None) -> None:
        self.where = where
        self.bytes = size
        self._relation = relation
        self.schema = attempt(lambda: _stream(relation.limit(0)).schema, where, _FAILED)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the answer."""
        chosen = ", ".join(_quoted(name) for name in columns)
        return guarded(lambda: _stream(self._relation.project(chosen)), self.where, _FAILED)


def query_source(path: Path, query: str) -> RelationSource:
    """A table, or the answer of a SELECT, of a DuckDB database that is opened read-only."""
    duckdb = _duckdb()
    if not path.is_file():
        raise SourceError(f"there is no database {path}")
    statement = query.strip().rstrip(";")
    statement = statement if len(statement.split()) > 1 else f"SELECT * FROM {_quoted(statement)}"
    connection = attempt(
        lambda: duckdb.connect(str(path), read_only=True), str(path), "it may be in use, or not be a DuckDB database"
    )
    _require_one_select(duckdb, connection, statement, path)
    return RelationSource(_planned(duckdb, connection, statement, path), f"the query on {path}", path.stat().st_size)


def _require_one_select(duckdb: Any, connection: Any, statement: str, path: Path) -> None:
    """Refuse anything but one SELECT: DuckDB would run all but the last at once, and errors could quote cells."""
    try:
        statements = connection.extract_statements(statement)
    except duckdb.ParserException as error:
        raise SourceError(f"{path} does not answer the query: {_first_line(error)}") from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise SourceError(f"the query on {path} should be one SELECT, or the name of a table")


def _planned(duckdb: Any, connection: Any, statement: str, path: Path) -> Any:
    """The relation of a query; planning reads no row, so what it complains of may be told."""
    try:
        return connection.sql(statement)
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        raise SourceError(f"{path} does not answer the query: {_first_line(error)}") from None
    except duckdb.Error:
        reason = _FAILED
    raise SourceError(f"{path} does not answer the query: {reason}")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


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
