"""Arrow tables ⇄ the data frames of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, overload

import pyarrow as pa

from dpsyn.errors import MissingExtraError, UserError, quote_argument

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

OutputFormat = Literal["arrow", "pandas", "polars"]
"""The kinds of tables that can be returned."""

AnyTable: TypeAlias = "pa.Table | pd.DataFrame | pl.DataFrame"
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
    """Convert an Arrow table to a data frame of ``arrow``, ``pandas`` or ``polars``."""
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
    raise UserError(f"there is no output format {quote_argument(output_format)}; choose arrow, pandas or polars")


def detect_output_format(data: Any) -> OutputFormat:
    """The output format of ``convert_table`` that matches a table: pandas, polars, or arrow for everything else."""
    library = type(data).__module__.partition(".")[0]
    return cast(OutputFormat, library) if library in ("pandas", "polars") else "arrow"
