"""Arrow tables ⇄ the data frames of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, overload

import numpy as np
import pyarrow as pa

from dpsyn.encoding import arrays
from dpsyn.encoding.column_types import (
    MAX_EXACT_FLOAT,
    ColumnType,
    ColumnTypes,
    PandasFlavor,
    restore_types,
    usual_pandas_unit,
)
from dpsyn.errors import MissingExtraError, UserError, quote_argument
from dpsyn.schema import Attribute, Categorical, Integer, Schema

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

OutputFormat = Literal["arrow", "pandas", "polars", "duckdb"]
"""The kinds of tables that can be returned."""

AnyTable: TypeAlias = "pa.Table | pd.DataFrame | pl.DataFrame | duckdb.DuckDBPyRelation"
"""A table of one of these kinds."""


@overload
def convert_table(table: pa.Table, output_format: Literal["arrow"]) -> pa.Table: ...


@overload
def convert_table(table: pa.Table, output_format: Literal["pandas"]) -> pd.DataFrame: ...


@overload
def convert_table(table: pa.Table, output_format: Literal["polars"]) -> pl.DataFrame: ...


@overload
def convert_table(table: pa.Table, output_format: OutputFormat) -> AnyTable: ...


def convert_table(table: pa.Table, output_format: OutputFormat) -> AnyTable:
    """Convert an Arrow table to a data frame of ``pandas`` or ``polars``, or a relation of ``duckdb``."""
    if output_format == "arrow":
        return table
    if output_format == "pandas":
        try:
            return table.to_pandas()
        except ImportError:
            raise MissingExtraError("pandas", "pandas", "a pandas DataFrame") from None
    if output_format == "polars":
        try:
            import polars
        except ImportError:
            raise MissingExtraError("polars", "polars", "a polars DataFrame") from None
        return cast("pl.DataFrame", polars.from_arrow(table))
    if output_format == "duckdb":
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("duckdb", "duckdb", "a DuckDB relation") from None
        return duckdb.from_arrow(table)
    raise UserError(
        f"there is no output format {quote_argument(output_format)}; choose arrow, pandas, polars or duckdb"
    )


def detect_output_format(data: Any) -> OutputFormat:
    """The output format that matches a table: pandas, polars, duckdb, or arrow for everything else."""
    library = type(data).__module__.partition(".")[0].removeprefix("_")
    return cast(OutputFormat, library) if library in ("pandas", "polars", "duckdb") else "arrow"


# ── synthetic rows, with the types of the measured table ─────────────────────────────────────────────────────


def convert_rows(table: pa.Table, schema: Schema, types: ColumnTypes, output_format: OutputFormat) -> AnyTable:
    """Convert synthetic rows to a kind of table, with the declared types of their columns.

    The types of the result depend on the schema and the declared types alone, not on the sampled values.
    """
    typed = restore_types(_with_usual_timestamps(table, types, output_format), schema, types)
    if output_format == "pandas":
        return _to_pandas(typed, schema, types)
    if output_format == "polars":
        return _to_polars(typed, types)
    if output_format == "duckdb":
        return _to_duckdb(typed)
    return convert_table(typed, output_format)


def _with_usual_timestamps(table: pa.Table, types: ColumnTypes, output_format: OutputFormat) -> pa.Table:
    """Rows whose timestamps have the unit that a library prefers, unless the table declared one."""
    if output_format not in ("pandas", "polars", "duckdb"):
        return table
    unit = usual_pandas_unit() if output_format == "pandas" else "us"
    fields = [
        field.with_type(pa.timestamp(unit))
        if pa.types.is_timestamp(field.type) and not types.get(field.name, ColumnType()).values
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _to_pandas(table: pa.Table, schema: Schema, types: ColumnTypes) -> pd.DataFrame:
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas", "pandas", "a pandas DataFrame") from None
    columns = [
        _to_series(table.column(name), schema[name], types.get(name, ColumnType()).pandas).rename(name)
        for name in table.column_names
    ]
    frame: pd.DataFrame = pandas.concat(columns, axis=1)
    return frame


def _to_series(column: pa.ChunkedArray, attribute: Attribute, flavor: PandasFlavor) -> Any:
    """A column of pandas; of a type that can hold missing values if the schema says that values can be missing."""
    import pandas

    if flavor == "pyarrow":
        return column.to_pandas(types_mapper=pandas.ArrowDtype)
    kind, whole = column.type, pa.types.is_integer(column.type)
    if flavor == "nullable" or (whole and attribute.has_missing and not _fits_float(attribute)):
        return column.to_pandas(types_mapper=_masked_type)
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp(usual_pandas_unit()))
    series = column.to_pandas()
    if whole and attribute.has_missing:
        return series.astype("float64")
    return series.astype(object) if pa.types.is_boolean(kind) and attribute.has_missing else series


def _fits_float(attribute: Attribute) -> bool:
    """Whether floats of 64 bits hold all whole numbers of an attribute."""
    listed = attribute.all_values() if isinstance(attribute, Categorical) else ()
    bounds = (attribute.low, attribute.high) if isinstance(attribute, Integer) else listed
    return all(abs(int(bound)) <= MAX_EXACT_FLOAT for bound in bounds)


def _masked_type(kind: pa.DataType) -> Any:
    """The type of pandas with a mask for missing values, or None if there is none."""
    import pandas

    if pa.types.is_integer(kind) or (pa.types.is_floating(kind) and not pa.types.is_float16(kind)):
        family = {"i": "Int", "u": "UInt", "f": "Float"}[np.dtype(kind.to_pandas_dtype()).kind]
        return pandas.api.types.pandas_dtype(f"{family}{kind.bit_width}")
    if pa.types.is_boolean(kind):
        return pandas.BooleanDtype()
    return pandas.StringDtype() if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None


def _to_polars(table: pa.Table, types: ColumnTypes) -> pl.DataFrame:
    """A frame; only dictionaries of texts are categories in polars."""
    dictionaries = {field.name: field.type for field in table.schema if pa.types.is_dictionary(field.type)}
    categories = {name: table.column(name).chunk(0).dictionary for name in dictionaries}
    for name, kind in dictionaries.items():
        if not arrays.is_text(kind.value_type):
            index = table.column_names.index(name)
            table = table.set_column(index, name, table.column(name).cast(kind.value_type))
    frame = convert_table(table, "polars")
    import polars

    enums = {name: polars.Enum(categories[name].to_pylist()) for name in dictionaries if types[name].enum}
    return frame.cast(enums) if enums else frame


def _to_duckdb(table: pa.Table) -> duckdb.DuckDBPyRelation:
    """A relation; dictionaries of texts become ENUMs, of which DuckDB makes texts when it reads Arrow."""
    relation = cast("duckdb.DuckDBPyRelation", convert_table(table, "duckdb"))
    return relation.project(", ".join(_duckdb_column(table.column(name), name) for name in table.column_names))


def _duckdb_column(column: pa.ChunkedArray, name: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    if not pa.types.is_dictionary(column.type) or not pa.types.is_string(column.type.value_type):
        return quoted
    values = ", ".join("'" + text.replace("'", "''") + "'" for text in column.chunk(0).dictionary.to_pylist())
    return f"CAST({quoted} AS ENUM({values})) AS {quoted}"
