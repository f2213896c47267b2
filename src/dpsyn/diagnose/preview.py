"""The first rows of a table, as they are read, for the data owner who chooses how a file is written.

Privacy: this shows rows without privacy protection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpsyn.diagnose.file_syntax import detect_file
from dpsyn.encoding.entry_parser import entry_texts
from dpsyn.errors import shorten
from dpsyn.sources import open_source

MAX_CELL_LENGTH = 80
"""Characters of a cell that are shown."""


@dataclass(frozen=True, slots=True, repr=False)
class TablePreview:
    """The first rows of a table; private.

    Attributes:
        columns: the names of the columns.
        rows: the first rows, as texts; None for an empty cell.
        notes: what was detected about the file.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<TablePreview of {len(self.columns)} columns: private; see its attributes>"


def preview_table(
    data: Any,
    *,
    rows: int,
    encoding: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    missing: Sequence[str] | None = None,
) -> TablePreview:
    """The first rows of a table; no more of it is read than its first batch. The options are those of ``draft_schema``.

    Privacy: reads rows without privacy protection; the result is private.
    """
    stated = {"encoding": encoding, "separator": separator, "decimal": decimal, "missing": missing}
    file, notes = detect_file(data, stated)
    source = open_source(data, syntax=file)
    names = source.schema.names
    first = next((batch for batch in source.batches(names) if batch.num_rows), None)
    cells = [] if first is None else [entry_texts(column).to_pylist() for column in first.slice(0, rows).columns]
    texts = [[shorten(cell.decode("utf-8", "replace"), MAX_CELL_LENGTH) if cell else None for cell in c] for c in cells]
    return TablePreview(tuple(names), tuple(zip(*texts, strict=True)), tuple(notes))
