"""PostgreSQL: the result of a query, in batches, through Arrow Database Connectivity (ADBC)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from dpsyn.errors import MissingExtraError, SourceError
from dpsyn.sources.source import attempt, guard_batches

ADDRESS_SCHEMES = ("postgresql://", "postgres://")
BATCH_BYTES = 1 << 21
"""The size of a batch from the server; the driver's default is eight times as large."""

_FAILED = "the query failed, or the connection was lost; run the query in psql to see why"


class PostgresSource:
    """A table, or the result of a SELECT, which the server computes again for every reading; the session is read-only.

    Privacy: a message of the server is shown only if it is about the query and its columns, before any row is read. The
    password is never shown.
    """

    rereadable = True
    byte_size: int | None = None

    def __init__(self, address: str, query: str) -> None:
        self._address = address
        statement = query.strip().rstrip(";").rstrip()
        self._statement = statement if len(statement.split()) > 1 else f"SELECT * FROM {_quote_table(statement)}"
        self.label = f"the query on {_redact_password(address)}"
        with self._cursor() as cursor:
            self.schema = self._prepare_schema(cursor)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the result, in the batches of the server."""
        return guard_batches(lambda: self._read(columns), self.label, _FAILED)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        selected = ", ".join(_quote(name) for name in columns)
        with self._cursor() as cursor:
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

    @contextlib.contextmanager
    def _cursor(self) -> Iterator[Any]:
        """A cursor of a new read-only connection."""
        dbapi = _import_driver()
        connection = attempt(
            lambda: dbapi.connect(self._address, autocommit=True),
            _redact_password(self._address),
            "check that the server is running, and that the address has the right user, password and database",
        )
        with connection, connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
            yield cursor


def is_postgres_address(data: object) -> bool:
    """Whether something is the address of a PostgreSQL database."""
    return isinstance(data, str) and data.startswith(ADDRESS_SCHEMES)


def _redact_password(address: str) -> str:
    """The address in messages: without user, password, port and options."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "the given address"
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


def _server_message(error: Exception) -> str:
    """The server's error line about the query."""
    lines = [line.partition("ERROR:")[2].strip() for line in str(error).splitlines() if "ERROR:" in line]
    return lines[0][:200] if lines else "give one SELECT, or the name of a table"


def _quote_table(name: str) -> str:
    """Quote the name of a table, with or without its schema (public.people)."""
    return ".".join(_quote(part) for part in name.split("."))


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _import_driver() -> Any:
    try:
        import adbc_driver_postgresql.dbapi as dbapi
    except ImportError:
        raise MissingExtraError("adbc-driver-postgresql", "postgres", "reading from PostgreSQL") from None
    return dbapi
