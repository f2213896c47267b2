"""DuckDB: a query on a database or on files of any supported format, or an existing relation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsyn.errors import DPSynError, MissingExtraError, SourceError
from dpsyn.sources.source import BATCH_ROWS, Source, attempt, guard_batches

_FAILED = "the query failed; run it in DuckDB to see why"

_CONFIG = {"python_enable_replacements": "false"}
"""Names in a query refer to tables, never to Python variables."""

_SCANNED_VIEW = "dpsyn scans this"


class DuckDBSource:
    """A DuckDB relation; its query is run again for every reading."""

    rereadable = True

    def __init__(
        self,
        relation: Any,
        label: str = "the given relation",
        size: int | None = None,
        scanned: _ScannedSource | None = None,
    ) -> None:
        self.label = label
        self.byte_size = size
        self._relation, self._scanned = relation, scanned
        self.schema = attempt(lambda: _open_stream(relation.limit(0)).schema, label, _FAILED)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the result."""
        selected = ", ".join(_quote(name) for name in columns)
        try:
            yield from guard_batches(lambda: _open_stream(self._relation.project(selected)), self.label, _FAILED)
        except SourceError:
            if self._scanned is None or self._scanned.failure is None:
                raise
            failure = self._scanned.failure
        else:
            return
        raise failure  # it names the broken file


def query_database(path: Path, query: str) -> DuckDBSource:
    """A table, or the result of a SELECT, of a DuckDB database, which is opened read-only."""
    duckdb = _import_duckdb("reading a DuckDB database")
    if not path.is_file():
        raise SourceError(f"there is no database file {path}")
    connection = attempt(
        lambda: duckdb.connect(str(path), read_only=True, config=_CONFIG),
        str(path),
        "it may be in use by another program, or it may not be a DuckDB database",
    )
    relation = _open_query(duckdb, connection, query, path)
    return DuckDBSource(relation, f"the query on {path}", path.stat().st_size)


def query_files(source: Source, path: Path, query: str) -> DuckDBSource:
    """The result of a SELECT on files; the query names them ``data``, or by their path, or by the stem of a file name.

    DPSyn's own readers read the files, batch by batch, so each file counts once and each entry is read by itself:
    DuckDB would guess the types of a CSV file from its entries. In the query, the entries of a CSV file are text;
    invalid bytes become replacement characters.

    Privacy: the query can reach no other file, and DuckDB writes no temporary files.
    """
    duckdb = _import_duckdb("a query")
    connection = duckdb.connect(":memory:", config={**_CONFIG, "temp_directory": ""})
    scanned = _ScannedSource(source)
    connection.register(_SCANNED_VIEW, scanned)
    for name in {name.casefold(): name for name in ("data", path.name.partition(".")[0], str(path)) if name}.values():
        connection.execute(f"CREATE VIEW {_quote(name)} AS SELECT * FROM {_quote(_SCANNED_VIEW)}")
    connection.execute("SET enable_external_access = false")
    relation = _open_query(duckdb, connection, query, path)
    return DuckDBSource(relation, f"the query on {path}", source.byte_size, scanned)


class _ScannedSource:
    """A source for DuckDB to scan, with a new stream for each reading; it keeps the source's error."""

    def __init__(self, source: Source) -> None:
        self.failure: DPSynError | None = None
        self._source = source
        self._schema = pa.schema([field.with_type(_text_type(field.type)) for field in source.schema])

    def __arrow_c_schema__(self) -> Any:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.RecordBatchReader.from_batches(self._schema, self._batches()).__arrow_c_stream__()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._source.batches(self._schema.names):
                yield pa.RecordBatch.from_arrays([_as_text(column) for column in batch.columns], schema=self._schema)
        except DPSynError as error:
            self.failure = error
            raise


def _text_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_binary(kind) else kind


def _as_text(array: pa.Array) -> pa.Array:
    """Convert bytes to text; invalid bytes become replacement characters."""
    if not pa.types.is_binary(array.type):
        return array
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [entry if entry is None else entry.decode("utf-8", "replace") for entry in array.to_pylist()]
        return pa.array(texts, pa.string())


def _open_query(duckdb: Any, connection: Any, query: str, path: Path) -> Any:
    """The relation of a table, or of one SELECT; anything else is refused."""
    statement = query.strip().rstrip(";")
    statement = statement if len(statement.split()) > 1 else f"SELECT * FROM {_quote(statement)}"
    _require_one_select(duckdb, connection, statement, path)
    return _prepare_query(duckdb, connection, statement, path)


def _require_one_select(duckdb: Any, connection: Any, statement: str, path: Path) -> None:
    """Refuse anything but one SELECT: DuckDB runs other statements at once, and their errors could quote entries."""
    try:
        statements = connection.extract_statements(statement)
    except duckdb.ParserException as error:
        raise SourceError(f"the query on {path} is not valid: {_first_line(error)}") from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise SourceError(f"the query on {path} is not one SELECT; give one SELECT, or the name of a table")


def _prepare_query(duckdb: Any, connection: Any, statement: str, path: Path) -> Any:
    """The relation of a query. Planning reads no row, so the message of a planning error may be shown."""
    try:
        return connection.sql(statement)
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        raise SourceError(f"the query on {path} is not valid: {_first_line(error)}") from None
    except duckdb.Error:
        pass  # our error is raised after this block: DuckDB's own may quote entries
    raise SourceError(f"the query on {path} is not valid; run it in DuckDB to see why")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _open_stream(relation: Any) -> pa.RecordBatchReader:
    reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return reader(BATCH_ROWS)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _import_duckdb(purpose: str) -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("duckdb", "duckdb", purpose) from None
    return duckdb
