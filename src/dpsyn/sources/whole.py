"""A whole table in memory."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dpsyn.sources.opening import open_source


def read_table(data: Any, *, query: str | None = None) -> pa.Table:
    """A table as one Arrow table: from a path, a pandas or polars frame, an Arrow table, a DuckDB relation.

    Cells of text files stay raw bytes; a schema says what they mean.

    Privacy: hands out rows. It serves what is done with synthetic tables; a release never needs it.
    """
    source = open_source(data, query=query)
    names = source.schema.names
    batches = list(source.batches(names))
    return pa.Table.from_batches(batches) if batches else source.schema.empty_table()
