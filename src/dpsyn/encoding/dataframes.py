"""Arrow tables ⇄ the data frames of other libraries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dpsyn.errors import MissingExtraError, UserError


def convert_table(table: pa.Table, output_format: str) -> Any:
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
        return polars.from_arrow(table)
    raise UserError(f"there is no output format {output_format!r}; choose arrow, pandas or polars")


def detect_output_format(data: Any) -> str:
    """The output format of ``convert_table`` that matches a table: pandas, polars, or arrow for everything else."""
    library = type(data).__module__.partition(".")[0]
    return library if library in ("pandas", "polars") else "arrow"
