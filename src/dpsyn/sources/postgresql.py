"""PostgreSQL: the answer of a query, in batches, through Arrow's database drivers (ADBC)."""

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
"""Of a batch as the server sends it; the driver's own choice is eight times as much."""

_FAILED = "the query failed, or the connection broke; try it in psql to see why"


class PostgresSource:
    """A table, or the answer of a SELECT, that the server gives anew at every reading; nothing can be written.

    Privacy: the server's own words are told only about the query and its columns, before any row is read.
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
        """The rows of the answer, as the server sends them."""
        return guard_batches(lambda: self._read(columns), self.label, _FAILED)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        chosen = ", ".join(_quote(name) for name in columns)
        with self._cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)})
            cursor.execute(f"SELECT {chosen} FROM ({self._statement}\n) AS answer")
            yield from cursor.fetch_record_batch()

    def _prepare_schema(self, cursor: Any) -> pa.Schema:
        """The columns of the answer; planning reads no row, so what the server complains of may be told."""
        try:
            return cursor.adbc_execute_schema(f"SELECT * FROM ({self._statement}\n) AS answer")
        except Exception as error:  # the driver's own classes, which are there only where the driver is
            reason = _server_message(error)
        raise SourceError(f"{self.label} is not answered: {reason}")

    @contextlib.contextmanager
    def _cursor(self) -> Iterator[Any]:
        """A cursor of a new connection that may only read."""
        dbapi = _import_driver()
        connection = attempt(
            lambda: dbapi.connect(self._address, autocommit=True),
            _redact_password(self._address),
            "see that the server runs, and that the address has the right user, password and database",
        )
        with connection, connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
            yield cursor


def is_postgres_address(data: object) -> bool:
    """Whether something is the address of a PostgreSQL database."""
    return isinstance(data, str) and data.startswith(ADDRESS_SCHEMES)


def _redact_password(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        return "the given address"
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


def _server_message(error: Exception) -> str:
    """The server's own line about the query."""
    lines = [line.partition("ERROR:")[2].strip() for line in str(error).splitlines() if "ERROR:" in line]
    return lines[0][:200] if lines else "it should be one SELECT, or the name of a table"


def _quote_table(name: str) -> str:
    """The name of a table, also with its schema: public.people."""
    return ".".join(_quote(part) for part in name.split("."))


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _import_driver() -> Any:
    try:
        import adbc_driver_postgresql.dbapi as dbapi
    except ImportError:
        raise MissingExtraError("adbc-driver-postgresql", "postgres", "reading from PostgreSQL") from None
    return dbapi
