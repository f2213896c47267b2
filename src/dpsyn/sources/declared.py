"""Tables whose cells are spelled as a schema declares it, read in plain spelling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from dpsyn.encoding.cell_syntax import Respelling, find_respellings, respell_batch
from dpsyn.schema import Schema
from dpsyn.sources.factory import open_source
from dpsyn.sources.source import Protect, Source


class DeclaredSource:
    """A table in plain spelling: decimal points, no signs between thousands, nulls instead of codes for missing.

    Privacy: cells are respelled one by one, by public facts; nothing can fail on a value. Everything but the cells is
    that of the table as it is: its label, its files, its query.
    """

    label: str
    schema: pa.Schema
    rereadable: bool
    byte_size: int | None

    def __init__(self, source: Source, respellings: dict[str, Respelling]) -> None:
        self._source, self._respellings = source, respellings

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, in plain spelling."""
        return (respell_batch(batch, self._respellings) for batch in self._source.batches(columns))


def has_typed_cells(source: Source) -> bool:
    """Whether numbers in the texts of a source are plain, because its files have numbers that are no text."""
    return bool(getattr(source, "has_typed_cells", False))


def follow_schema(source: Source, schema: Schema) -> Source:
    """A table whose cells are read as a schema declares them; the table itself if all of them are plain."""
    respellings = {} if isinstance(source, DeclaredSource) else find_respellings(schema, has_typed_cells(source))
    return DeclaredSource(source, respellings) if respellings else source


def open_declared(data: Any, schema: Schema, *, query: str | None = None, protect: Protect | None = None) -> Source:
    """Open a table whose files and cells are written as a schema declares; see ``open_source``."""
    return follow_schema(open_source(data, query=query, protect=protect, syntax=schema.syntax), schema)
