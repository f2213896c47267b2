"""PostgreSQL: tables and results of queries, in batches, through Arrow Database Connectivity (ADBC)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from dpsyn.errors import MissingExtraError, SourceError
from dpsyn.sources.addresses import normalize_postgres_address, redact_address
from dpsyn.sources.row_wise import AS_NUMBER, BaseColumn, BaseTable, Dialect, View, quote
from dpsyn.sources.source import PROTECT_ANSWER, Protect, QueryAnswer, Source, attempt, guard_batches

BATCH_BYTES = 1 << 21
"""The size of a batch from the server; the driver's default is eight times as large."""

_FAILED = "the query failed, or the connection was lost; run the query in psql to see why"

_KINDS = {
    "bool": BaseColumn(kind="boolean"),
    **dict.fromkeys(["int2", "int4", "int8"], BaseColumn(kind="integer")),
    **dict.fromkeys(["float4", "float8"], BaseColumn(kind="number")),
    **dict.fromkeys(["text", "varchar"], BaseColumn(kind="text")),
    "date": BaseColumn(kind="date"),
    "timestamp": BaseColumn(kind="timestamp"),
    "bpchar": BaseColumn(kind="text", pattern="rtrim({}, ' ')"),
    "numeric": BaseColumn(kind="number", pattern=AS_NUMBER),
}
"""Types whose values mean the same in DuckDB, and how: ``char(n)`` is padded, and ``numeric`` arrives as text."""

_RELATION = """
    SELECT n.nspname, c.relname, c.relkind::text, row_security_active(c.oid),
        CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)::oid"""

_COLUMNS = """
    SELECT a.attname, t.typname FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
    WHERE a.attrelid = to_regclass($1)::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""


_PARTS = """
    WITH RECURSIVE parts (oid) AS (
        SELECT to_regclass($1)::oid UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN parts ON i.inhparent = parts.oid)
    SELECT bool_and(c.relkind IN ('r', 'p')), bool_or(EXISTS (
        SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND to_jsonb(a) ->> 'attgenerated' = 'v'))
    FROM parts JOIN pg_class AS c ON c.oid = parts.oid"""
"""A table is read together with its partitions and with the tables that inherit from it: whether all of them are stored
tables, and whether one has a column that is computed when it is read."""


class PostgresSource:
    """The result of a SELECT, which the server computes again for every reading; the session is read-only.

    Intervals arrive as text: in Arrow they are counted in nanoseconds, and a long one would make the reading fail.

    Privacy: a message of the server is shown only if it is about the query and its columns, before any row is read. The
    password is never shown.
    """

    rereadable = True
    byte_size: int | None = None

    def __init__(self, server: _Server, statement: str, answer: QueryAnswer | None = None) -> None:
        self._server, self._statement = server, statement
        self.label, self.address, self.answer = server.label, server.shown, answer
        with server.cursor() as cursor:
            self.schema = self._prepare_schema(cursor)
            intervals = [field.name for field in self.schema if _has_interval(field.type)]
            if intervals:
                selected = [
                    f"CAST({quote(name)} AS text) AS {quote(name)}" if name in intervals else quote(name)
                    for name in self.schema.names
                ]
                self._statement = f"SELECT {', '.join(selected)} FROM ({statement}\n) AS answer"
                self.schema = self._prepare_schema(cursor)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the result, in the batches of the server."""
        return guard_batches(lambda: self._read(columns), self.label, _FAILED)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        selected = ", ".join(quote(name) for name in columns)
        with self._server.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)})
            cursor.execute(f"SELECT {selected} FROM ({self._statement}\n) AS answer")
            yield from cursor.fetch_record_batch()

    def _prepare_schema(self, cursor: Any) -> pa.Schema:
        """The columns of the result. Planning reads no row, so the server's message about an error may be shown."""
        try:
            return cursor.adbc_execute_schema(f"SELECT * FROM ({self._statement}\n) AS answer")
        except Exception as error:  # the driver has its own classes of errors, and it is imported only where it is used
            reason = _server_message(error)
        raise SourceError(f"{self.label} is not valid: {reason}")


def query_server(address: str, query: str, protect: Protect) -> Source:
    """A table, or the result of a SELECT, of a PostgreSQL database.

    To protect base rows, the server sends the columns of the base table and DuckDB computes the answer here, because
    PostgreSQL has no TRY_CAST: one value could make its query fail. Columns of the table alone need no DuckDB.
    """
    server = _Server(address)
    if protect == "query rows":
        statement = query.strip().rstrip(";").rstrip()
        if len(statement.split()) == 1:
            statement = f"SELECT * FROM {'.'.join(map(quote, statement.split('.')))}"
        return PostgresSource(server, statement, QueryAnswer(text=statement, protect=protect))
    from dpsyn.sources.duckdb import RowWiseSource, describe_answer
    from dpsyn.sources.sql_reader import read_row_wise

    with server.cursor() as cursor:
        row_wise = read_row_wise(query, _ServerCatalog(cursor, server.label), server.label)
    if row_wise.computes_nothing:
        statement = row_wise.to_sql(list(row_wise.columns), row_wise.base.name)
        return PostgresSource(server, statement, describe_answer(row_wise))
    columns = row_wise.base_columns(list(row_wise.columns)) or list(row_wise.base.columns)[:1]
    table = PostgresSource(server, f"SELECT {', '.join(map(quote, columns))} FROM {row_wise.base.name}")
    return RowWiseSource(row_wise, server.label, table)


class _Server:
    """A database and how to connect to it.

    Attributes:
        shown: its address in messages.
        label: the query in messages.
    """

    def __init__(self, address: str) -> None:
        self.shown = redact_address(address)
        self.label = f"the query on {self.shown}"
        self._address = normalize_postgres_address(address)

    @contextlib.contextmanager
    def cursor(self) -> Iterator[Any]:
        """A cursor of a new read-only connection."""
        dbapi = _import_driver()
        connection = attempt(
            lambda: dbapi.connect(self._address, autocommit=True),
            self.shown,
            "check that the server is running, and that the address has the right user, password and database",
        )
        with connection, connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
            yield cursor


class _ServerCatalog:
    """The tables and views of a PostgreSQL database."""

    dialect: Dialect = "postgres"

    def __init__(self, cursor: Any, label: str) -> None:
        self._cursor, self._label = cursor, label

    def same_name(self, one: str, other: str) -> bool:
        """Whether two names are the same; the reader has put those without quotes into lower case."""
        return one == other

    def find(self, path: tuple[str, ...], schema: str) -> BaseTable | View | None:
        """A table or view, by the server's search path unless it is qualified."""
        if len(path) > 2:
            return None
        name = ".".join(map(quote, path))
        found = self._fetch(_RELATION, name)
        if not found:
            return None
        namespace, relation, kind, has_policies, definition = found[0]
        full = f"{quote(namespace)}.{quote(relation)}"
        columns = self._fetch(_COLUMNS, full)
        if definition is not None:
            names = tuple(column for column, _ in columns)
            return View(name=full, statement=definition.rstrip().rstrip(";"), schema="", columns=names)
        reason = "has row security policies" if has_policies else self._why_not_stored(full, namespace, kind)
        if reason:
            raise SourceError(f"{self._label}: {full} {reason}; select from another table, or {PROTECT_ANSWER}")
        return BaseTable(name=full, columns={column: _KINDS.get(kind, BaseColumn()) for column, kind in columns})

    def _why_not_stored(self, full: str, namespace: str, kind: str) -> str:
        """Why the rows of a relation are not stored as they are read, in words; empty if they are."""
        if kind not in ("r", "p") or namespace in ("pg_catalog", "information_schema"):
            return "is not a table whose rows are stored as they are"
        [(parts_are_stored, is_computed)] = self._fetch(_PARTS, full)
        if not parts_are_stored:
            return "has a partition, or a table that inherits from it, whose rows are not stored here"
        return "has a column that is computed when it is read, which may fail on a value" if is_computed else ""

    def _fetch(self, statement: str, name: str) -> list[Any]:
        def fetch() -> list[Any]:
            self._cursor.execute(statement, parameters=[name])
            return list(self._cursor.fetchall())

        return attempt(fetch, self._label, "the catalog of the database cannot be read")


def _has_interval(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_has_interval(kind.field(index).type) for index in range(kind.num_fields))
    return bool(pa.types.is_interval(kind) or pa.types.is_duration(kind))


def _server_message(error: Exception) -> str:
    """The server's error line about the query."""
    lines = [line.partition("ERROR:")[2].strip() for line in str(error).splitlines() if "ERROR:" in line]
    return lines[0][:200] if lines else "give one SELECT, or the name of a table"


def _import_driver() -> Any:
    try:
        import adbc_driver_postgresql.dbapi as dbapi
    except ImportError:
        raise MissingExtraError("adbc-driver-postgresql", "postgres", "reading from PostgreSQL") from None
    return dbapi
