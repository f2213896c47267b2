"""Arrow tables as the kind of table that people work with."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dpsyn.errors import MissingExtraError, UserError


def convert_table(table: pa.Table, output_format: str) -> Any:
    """The table as ``arrow``, ``pandas`` or ``polars``."""
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
    raise UserError(f"there is no kind of table {output_format!r}; ask for arrow, pandas or polars")


def detect_output_format(data: Any) -> str:
    """The kind of table that something is, as far as ``as_kind`` can give it back; ``arrow`` for everything else."""
    library = type(data).__module__.partition(".")[0]
    return library if library in ("pandas", "polars") else "arrow"
