"""DuckDB: a query on a database or on files of any supported format, or an existing relation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpsyn.errors import DPSynError, SourceError
from dpsyn.sources.row_wise import AS_NUMBER, BaseColumn, BaseTable, Dialect, RowWiseQuery, View, quote
from dpsyn.sources.source import BATCH_ROWS, PROTECT_ANSWER, Protect, QueryAnswer, Source, attempt, guard_batches
from dpsyn.sources.sql_reader import read_row_wise
from dpsyn.sources.sql_terms import import_duckdb

_FAILED = "the query failed; run it in DuckDB to see why"

_SANDBOX = {
    "python_enable_replacements": "false",
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
    "lock_configuration": "true",
}
"""A query reaches no Python variable, no file but the database, no extension and no network, and writes no file."""

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000}
"""Microseconds of the units of time from which DuckDB would convert a time with a zone."""

_SCANNED_VIEW = "dpsyn scans this"
_TABLE = "data"
"""The name of the table that is scanned."""


class DuckDBSource:
    """A DuckDB relation; its query is run again for every reading."""

    rereadable = True
    has_typed_cells = False

    def __init__(
        self,
        relation: Any,
        label: str = "the given relation",
        size: int | None = None,
        scanned: _ScannedSource | None = None,
        *,
        answer: QueryAnswer | None = None,
        paths: Sequence[Path] = (),
    ) -> None:
        self.label, self.byte_size = label, size
        self.answer, self.paths = answer, tuple(paths)
        self._relation, self._scanned = attempt(lambda: _as_arrow_types(relation), label, _FAILED), scanned
        self.schema = attempt(lambda: _open_stream(self._relation.limit(0)).schema, label, _FAILED)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the result."""
        selected = ", ".join(quote(name) for name in columns)
        return _read_relation(lambda: self._relation.project(selected), self.label, self._scanned)


def open_relation(relation: Any) -> DuckDBSource:
    """The rows of a relation. Unless it is a stored table it is a query, and the rows of its answer are protected."""
    if attempt(lambda: relation.type, "the given relation", _FAILED) == "TABLE_RELATION":
        return DuckDBSource(relation)
    text = attempt(relation.sql_query, "the given relation", _FAILED)
    return DuckDBSource(relation, answer=QueryAnswer(text=text, protect="query rows", keeps_all_rows=False))


class RowWiseSource:
    """The answer of a row-wise query, which DuckDB computes again for every reading.

    The base is the connection to a database at a path, or another source, of which only the columns that are needed are
    read.
    """

    rereadable = True

    def __init__(self, query: RowWiseQuery, label: str, base: Source | Any, path: Path | None = None) -> None:
        self.label, self.answer = label, describe_answer(query)
        self.paths: tuple[Path, ...] = getattr(base, "paths", ()) if path is None else (path,)
        self.address: str = getattr(base, "address", "")
        self.has_typed_cells: bool = getattr(base, "has_typed_cells", False)
        self.byte_size: int | None = base.byte_size if path is None else path.stat().st_size
        self.assumption: str = getattr(base, "assumption", "")
        self._query, self._base = query, base
        reading = self._prepare(list(query.columns))
        self.schema = attempt(lambda: _open_stream(reading.relation.limit(0)).schema, label, _FAILED)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the answer."""
        reading = self._prepare(columns)
        yield from _read_relation(lambda: reading.relation, self.label, reading.scanned)

    def _prepare(self, columns: Sequence[str]) -> _Reading:
        duckdb = import_duckdb("a query")
        connection, table, scanned = self._base, self._query.base.name, None
        if not isinstance(connection, duckdb.DuckDBPyConnection):
            needed = self._query.base_columns(columns) or list(self._query.base.columns)[:1]
            _refuse_same_names(needed, self.label)
            scanned = _ScannedSource(self._base, needed)
            connection, table = _scan(duckdb, scanned, [_TABLE]), quote(_TABLE)
        relation = _prepare_query(duckdb, connection, self._query.to_sql(columns, table), self.label)
        return _Reading(relation, connection, scanned)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One reading of an answer; its connection must not be closed meanwhile."""

    relation: Any
    connection: Any
    scanned: _ScannedSource | None


def describe_answer(query: RowWiseQuery) -> QueryAnswer:
    """What is certified about a row-wise query."""
    return QueryAnswer(
        text=query.text, protect="base rows", keeps_all_rows=query.keeps_all_rows, unchanged=query.unchanged
    )


def query_database(path: Path, query: str, protect: Protect) -> Source:
    """A table, or the result of a SELECT, of a DuckDB database, which is opened read-only.

    Privacy: as ``query_files``; views of the database can reach no more than the query.
    """
    duckdb = import_duckdb("reading a DuckDB database")
    if not path.is_file():
        raise SourceError(f"there is no database file {path}")
    connection = attempt(
        lambda: duckdb.connect(str(path), read_only=True, config=_SANDBOX),
        str(path),
        "it may be in use by another program, or it may not be a DuckDB database",
    )
    label = f"the query on {path}"
    if protect == "base rows":
        row_wise = read_row_wise(query, _DatabaseCatalog(connection, label), label)
        return RowWiseSource(row_wise, label, connection, path)
    relation, text = _open_query(duckdb, connection, query, label)
    answer = QueryAnswer(text=text, protect=protect)
    return DuckDBSource(relation, label, path.stat().st_size, answer=answer, paths=[path])


def query_files(source: Source, path: Path, query: str, protect: Protect) -> Source:
    """The result of a SELECT on files; the query names them ``data``, or by their path, or by the stem of a file name.

    DPSyn's own readers read the files, batch by batch, so each file counts once and each entry is read by itself:
    DuckDB would guess the types of a CSV file from its entries. In the query, the entries of a CSV file are text; one
    that is not UTF-8 is null.

    Privacy: the query can reach no other file, and DuckDB writes no temporary files.
    """
    duckdb = import_duckdb("a query")
    label = f"the query on {path}"
    names = [name for name in (_TABLE, path.name.partition(".")[0], str(path)) if name]
    _refuse_same_names(source.schema.names, label)
    if protect == "base rows":
        columns = {field.name: _arrow_column(_scanned_type(field.type)) for field in source.schema}
        row_wise = read_row_wise(query, _FileCatalog(names, BaseTable(name=quote(_TABLE), columns=columns)), label)
        return RowWiseSource(row_wise, label, source)
    scanned = _ScannedSource(source, source.schema.names)
    relation, text = _open_query(duckdb, _scan(duckdb, scanned, names), query, label)
    answer = QueryAnswer(text=text, protect=protect)
    opened = DuckDBSource(relation, label, source.byte_size, scanned, answer=answer, paths=getattr(source, "paths", ()))
    opened.has_typed_cells = getattr(source, "has_typed_cells", False)
    return opened


# ── catalogs ─────────────────────────────────────────────────────────────────────────────────────────────────


class _DuckDBNames:
    """Names in DuckDB: upper and lower case are the same, for ASCII letters."""

    dialect: Dialect = "duckdb"

    def same_name(self, one: str, other: str) -> bool:
        """Whether two names are the same."""
        return _fold_case(one) == _fold_case(other)


class _FileCatalog(_DuckDBNames):
    """Files, which are one table with several names."""

    def __init__(self, names: Sequence[str], table: BaseTable) -> None:
        self._names, self._table = names, table

    def find(self, path: tuple[str, ...], schema: str) -> BaseTable | View | None:
        """The table, if this is one of its names."""
        known = len(path) == 1 and any(self.same_name(path[0], name) for name in self._names)
        return self._table if known else None


class _DatabaseCatalog(_DuckDBNames):
    """The tables and views of a DuckDB database."""

    def __init__(self, connection: Any, label: str) -> None:
        self._connection, self._label = connection, label
        self._refuse_shadowed_functions()
        self._entries = connection.execute(
            "SELECT database_name, schema_name, table_name, sql, true "
            "FROM system.main.duckdb_tables() WHERE NOT internal UNION ALL "
            "SELECT database_name, schema_name, view_name, sql, false "
            "FROM system.main.duckdb_views() WHERE NOT internal"
        ).fetchall()

    def find(self, path: tuple[str, ...], schema: str) -> BaseTable | View | None:
        """A table or view, by its name or as schema.name, database.name or database.schema.name."""
        places = {1: [(schema or "main", *path), ("main", *path)], 2: [path, (path[0], "main", path[-1])], 3: [path]}
        found = [self._find_at(place) for place in places.get(len(path), [])]
        if len(path) == 2 and all(found) and found[0] != found[1]:
            raise SourceError(
                f"{self._label}: {'.'.join(map(quote, path))} may be a table of the schema or of the database with "
                "this name; write database.schema.table"
            )
        return next((table for table in found if table), None)

    def _find_at(self, place: tuple[str, ...]) -> BaseTable | View | None:
        for *full, sql, is_table in self._entries:
            if all(map(self.same_name, place, full[-len(place) :])):
                name = self._full_name(full)
                return self._base_table(full, name, sql) if is_table else View(name=name, statement=sql, schema=full[1])
        return None

    def _full_name(self, place: Sequence[str]) -> str:
        """The name of a table in SQL; with the name of the database where it is also that of the schema."""
        is_ambiguous = any(self.same_name(place[1], database) for database, *_ in self._entries)
        return ".".join(map(quote, place if is_ambiguous else place[1:]))

    def _base_table(self, place: Sequence[str], name: str, sql: str) -> BaseTable:
        if "GENERATED ALWAYS AS" in sql.upper():
            raise SourceError(
                f"{self._label}: the table {name} has a generated column, which may fail on a value; copy the columns "
                f"that you need into another table, or {PROTECT_ANSWER}"
            )
        columns = self._connection.execute(
            "SELECT column_name, data_type FROM system.main.duckdb_columns() "
            "WHERE database_name = ? AND schema_name = ? AND table_name = ? ORDER BY column_index",
            list(place),
        ).fetchall()
        return BaseTable(name=name, columns={column: _stored_column(kind) for column, kind in columns})

    def _refuse_shadowed_functions(self) -> None:
        """Refuse a database with a macro that replaces a function or an operator of DuckDB, such as lower or +."""
        functions = self._connection.execute(
            "SELECT function_name, internal FROM system.main.duckdb_functions()"
        ).fetchall()
        internal = {_fold_case(name) for name, is_internal in functions if is_internal}
        for name, is_internal in functions:
            if not is_internal and _fold_case(name) in internal:
                raise SourceError(
                    f"{self._label}: the database has a macro named {name!r}, which replaces a function of DuckDB; "
                    f"remove it, or {PROTECT_ANSWER}"
                )


_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_STORED_KINDS: dict[str, BaseColumn] = {
    "BOOLEAN": BaseColumn(kind="boolean"),
    **dict.fromkeys(_INTEGERS, BaseColumn(kind="integer")),
    **dict.fromkeys(["FLOAT", "DOUBLE"], BaseColumn(kind="number")),
    **dict.fromkeys(["UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL"], BaseColumn(kind="number", pattern=AS_NUMBER)),
    "VARCHAR": BaseColumn(kind="text"),
    "ENUM": BaseColumn(kind="text", pattern="CAST({} AS VARCHAR)"),
    "DATE": BaseColumn(kind="date"),
    "TIMESTAMP": BaseColumn(kind="timestamp"),
    **dict.fromkeys(
        ["TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"],
        BaseColumn(kind="timestamp", pattern="TRY_CAST({} AS TIMESTAMP)"),
    ),
}
"""Types of DuckDB, without their sizes, and how their values are used in expressions."""


def _stored_column(data_type: str) -> BaseColumn:
    """How a column of a DuckDB table is used in expressions; arrays and other types can only be passed on."""
    name, _, rest = data_type.partition("(")
    return BaseColumn() if rest.rpartition(")")[2] else _STORED_KINDS.get(name, BaseColumn())


def _arrow_column(kind: pa.DataType) -> BaseColumn:
    """How a column that is scanned is used in expressions."""
    if pa.types.is_boolean(kind):
        return _STORED_KINDS["BOOLEAN"]
    if pa.types.is_integer(kind):
        return _STORED_KINDS["UBIGINT" if kind == pa.uint64() else "BIGINT"]
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return _STORED_KINDS["DOUBLE"]
    if pa.types.is_decimal(kind):
        return _STORED_KINDS["DECIMAL"]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _STORED_KINDS["VARCHAR"]
    if pa.types.is_date(kind):
        return _STORED_KINDS["DATE"]
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return _STORED_KINDS["TIMESTAMP" if kind.unit == "us" else "TIMESTAMP_NS"]
    return BaseColumn()


def _refuse_same_names(names: Sequence[str], label: str) -> None:
    """Refuse columns that DuckDB cannot tell apart, or that have no name."""
    seen: dict[str, str] = {}
    for name in names:
        if not name:
            raise SourceError(f"{label}: a column has no name; give it one")
        if (other := seen.setdefault(_fold_case(name), name)) != name or names.count(name) > 1:
            raise SourceError(f"{label}: the columns {other!r} and {name!r} have the same name in SQL; rename one")


def _fold_case(name: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


# ── scanning ─────────────────────────────────────────────────────────────────────────────────────────────────


def _scan(duckdb: Any, scanned: _ScannedSource, names: Sequence[str]) -> Any:
    """A connection in which a source is a table with these names, and nothing else can be reached."""
    connection = duckdb.connect(":memory:", config={**_SANDBOX, "lock_configuration": "false"})
    connection.register(_SCANNED_VIEW, scanned)
    for name in {_fold_case(name): name for name in names}.values():
        connection.execute(f"CREATE VIEW {quote(name)} AS SELECT * FROM {quote(_SCANNED_VIEW)}")
    connection.execute("SET lock_configuration = true")
    return connection


class _ScannedSource:
    """Columns of a source for DuckDB to scan, with a new stream for each reading; it keeps the source's error."""

    def __init__(self, source: Source, columns: Sequence[str]) -> None:
        self.failure: DPSynError | None = None
        self._source = source
        fields = [source.schema.field(name) for name in columns]
        self._schema = pa.schema([(field.name, _scanned_type(field.type)) for field in fields])

    def __arrow_c_schema__(self) -> Any:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.RecordBatchReader.from_batches(self._schema, self._batches()).__arrow_c_stream__()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._source.batches(self._schema.names):
                arrays = [
                    _as_scanned(batch.column(name), kind)
                    for name, kind in zip(self._schema.names, self._schema.types, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        except DPSynError as error:
            self.failure = error
            raise


def _scanned_type(kind: pa.DataType) -> pa.DataType:
    """The type in which DuckDB scans a column: one that it takes over without converting, which may fail on a value."""
    if pa.types.is_dictionary(kind):
        return _scanned_type(kind.value_type)
    if pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        return pa.large_string()
    if pa.types.is_binary(kind) or pa.types.is_string(kind) or kind in (pa.string_view(), pa.binary_view()):
        return pa.string()
    if pa.types.is_timestamp(kind) and kind.tz and kind.unit in _MICROSECONDS:
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind):
        return pa.int64()
    return kind


def _as_scanned(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The entries in the type in which DuckDB scans them; one that has no value of this type becomes null."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _as_text(array, kind)
    if array.type == kind:
        return array
    numbers = array.cast(pa.int64())
    if not pa.types.is_timestamp(kind):
        return numbers
    factor = _MICROSECONDS[array.type.unit]
    limit = (2**63 - 1) // factor
    fits = pc.and_(pc.less_equal(numbers, limit), pc.greater_equal(numbers, -limit))
    return pc.multiply(pc.if_else(fits, numbers, pa.scalar(None, pa.int64())), factor).cast(kind)


def _as_text(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The entries as text; one that is not UTF-8 becomes null, because two ids must not become equal."""
    raw = array.cast(pa.large_binary() if kind == pa.large_string() else pa.binary())
    try:
        return raw.cast(kind)  # checks each entry
    except pa.ArrowInvalid:
        return pa.array([_decode(entry) for entry in raw.to_pylist()], kind)


def _decode(entry: bytes | None) -> str | None:
    try:
        return None if entry is None else entry.decode()
    except UnicodeDecodeError:
        return None


def _read_relation(
    open_relation: Callable[[], Any], label: str, scanned: _ScannedSource | None
) -> Iterator[pa.RecordBatch]:
    """The rows of a relation; if the source that it scans fails, its error, which names the broken file."""
    try:
        yield from guard_batches(lambda: _open_stream(open_relation()), label, _FAILED)
    except SourceError:
        if scanned is None or scanned.failure is None:
            raise
        failure = scanned.failure
    else:
        return
    raise failure


# ── queries ──────────────────────────────────────────────────────────────────────────────────────────────────


def _open_query(duckdb: Any, connection: Any, query: str, label: str) -> tuple[Any, str]:
    """The relation of a table, or of one SELECT, and its text; anything else is refused."""
    statement = query.strip().rstrip(";").strip()
    statement = statement if len(statement.split()) > 1 else f"SELECT * FROM {quote(statement)}"
    _require_one_select(duckdb, connection, statement, label)
    return _prepare_query(duckdb, connection, statement, label), statement


def _require_one_select(duckdb: Any, connection: Any, statement: str, label: str) -> None:
    """Refuse anything but one SELECT: DuckDB runs other statements at once, and their errors could quote entries."""
    try:
        statements = connection.extract_statements(statement)
    except duckdb.ParserException as error:
        raise SourceError(f"{label} is not valid: {_first_line(error)}") from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise SourceError(f"{label} is not one SELECT; give one SELECT, or the name of a table")


def _prepare_query(duckdb: Any, connection: Any, statement: str, label: str) -> Any:
    """The relation of a query. Planning reads no row, so the message of a planning error may be shown."""
    reason = "; run it in DuckDB to see why"
    try:
        return connection.sql(statement)
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        raise SourceError(f"{label} is not valid: {_first_line(error)}") from None
    except duckdb.PermissionException:
        reason = ": it, or a view that it reads, needs another file, an extension or the network, which is not allowed"
    except duckdb.Error:
        pass  # our error is raised after this block: DuckDB's own may quote entries
    raise SourceError(f"{label} is not valid{reason}")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _as_arrow_types(relation: Any) -> Any:
    """A relation with text instead of types that Arrow does not have; DuckDB infers BIGNUM from one long number."""
    lacking = [str(kind) in ("BIGNUM", "BIT") for kind in relation.types]
    names = [quote(name) for name in relation.columns]
    texts = [
        f"CAST({name} AS VARCHAR) AS {name}" if lacks else name for name, lacks in zip(names, lacking, strict=True)
    ]
    return relation.project(", ".join(texts)) if any(lacking) else relation


def _open_stream(relation: Any) -> pa.RecordBatchReader:
    reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return reader(BATCH_ROWS)
