"""Spreadsheets: Excel (.xlsx, .xlsm, .xls) and OpenDocument (.ods), read by calamine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsyn.encoding.entry_parser import bytes_of_object, bytes_of_objects
from dpsyn.errors import MissingExtraError, SourceError, quote_argument
from dpsyn.schema.file_syntax import PLAIN_FILE, FileSyntax
from dpsyn.sources.files import FilePiece, redact_path
from dpsyn.sources.source import BATCH_ROWS, attempt, guard_batches
from dpsyn.suggestions import format_names

_BROKEN = "it may be damaged, protected by a password, or not be a spreadsheet"


class SpreadsheetSource:
    """One sheet of a spreadsheet; its first row that is not empty names the columns.

    Every cell has a type of its own, so columns are read as text, cell by cell, in plain spelling: numbers with decimal
    points, dates in ISO 8601. Rows without any cell are left out.
    """

    rereadable = True
    has_typed_cells = True
    """Numbers are numbers, so the decimal sign that a schema declares for texts does not concern them."""

    def __init__(self, path: Path, syntax: FileSyntax = PLAIN_FILE) -> None:
        self.label = redact_path(path)
        self.byte_size: int | None = path.stat().st_size
        self._path, self._syntax = path, syntax
        self.paths = (path,)
        if not path.is_file():
            raise SourceError(f"{self.label} is not a file; give the path of a spreadsheet")
        header = attempt(lambda: next(self._rows(), None), self.label, _BROKEN)
        if header is None:
            raise SourceError(f"{self.label} is empty; its first row should name the columns")
        names = [_name(cell) for cell in header]
        while names and not names[-1]:
            names.pop()
        self.schema = pa.schema([(name, pa.large_binary()) for name in names])

    def pieces(self) -> list[FilePiece]:
        """The file as a whole."""
        return [FilePiece(path=str(self._path), syntax=self._syntax)]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, each cell as its text."""
        return guard_batches(lambda: self._read(columns), self.label, _BROKEN)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        positions = [self.schema.names.index(name) for name in columns]
        rows = self._rows()
        next(rows)
        waiting: list[list[Any]] = []
        for row in rows:
            waiting.append(row)
            if len(waiting) == BATCH_ROWS:
                yield _as_batch(waiting, positions, columns)
                waiting = []
        if waiting:
            yield _as_batch(waiting, positions, columns)

    def _rows(self) -> Iterator[list[Any]]:
        """The rows of the sheet that are not empty, the names of columns first."""
        for row in _open_sheet(self._path, self._syntax.sheet, self.label).iter_rows():
            if any(cell != "" for cell in row):
                yield row


def _open_sheet(path: Path, name: str | None, label: str) -> Any:
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise MissingExtraError("python-calamine", "office", "reading a spreadsheet") from None
    book = CalamineWorkbook.from_path(str(path))
    if name is None:
        return book.get_sheet_by_index(0)
    if name not in book.sheet_names:
        raise SourceError(
            f"{label} has no sheet {quote_argument(name)}; it has {format_names(book.sheet_names)}. The schema "
            "names the sheet under  file: {sheet: NAME}"
        )
    return book.get_sheet_by_name(name)


def _name(cell: Any) -> str:
    return (bytes_of_object(cell) or b"").decode("utf-8", "replace").strip()


def _as_batch(rows: list[list[Any]], positions: Sequence[int], names: Sequence[str]) -> pa.RecordBatch:
    """The cells at some positions; cells that a short row lacks are empty."""
    arrays = [
        pa.array(bytes_of_objects(row[position] if position < len(row) else None for row in rows), pa.large_binary())
        for position in positions
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))
