"""CSV files, plain or compressed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from dpsyn.errors import SourceError
from dpsyn.sources.source import attempt, guarded

BLOCK_BYTES = 1 << 22
"""Read at once; no line can be longer."""

_BROKEN = (
    "it is not a well-formed CSV file: a line may have more or fewer cells than the header, or the file may be cut off"
)


_MARK = b"\xef\xbb\xbf"
_FIRST_LINE = re.compile(rb'[\r\n]*((?:"[^"]*"|[^"\r\n])*)')


class CsvSource:
    """A CSV file whose cells stay raw bytes, because reading them as anything else could fail on a value."""

    again = True

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self.bytes: int | None = path.stat().st_size
        self._path = path
        start = attempt(lambda: _start(path), self.where, "it may be cut off, or not be what its suffix says")
        header = _header(start, self.where)
        self._delimiter = "\t" if ".tsv" in path.suffixes else _delimiter(header)
        self._blank_lines, self._has_rows = _around(start, header)
        self.schema = pa.schema([(name, pa.binary()) for name in _names(header, self._delimiter, self.where)])

    def ragged_line(self) -> int | None:
        """The number of the first line with more or fewer cells than the header; None if there is none.

        Privacy: for the steward's eyes; a release does not tell it.
        """
        with _open(self._path) as stream, io.TextIOWrapper(stream, "latin-1", newline="") as text:
            records = csv.reader(text, delimiter=self._delimiter)
            width = len(self.schema)
            return next((records.line_num for record in records if record and len(record) != width), None)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, each cell as the bytes that stand in the file."""
        if self._has_rows:
            yield from guarded(lambda: self._read(columns), self.where, _BROKEN)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with _open(self._path) as stream:
            yield from pacsv.open_csv(
                stream,
                read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES, skip_rows=self._blank_lines),
                parse_options=pacsv.ParseOptions(
                    delimiter=self._delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=len(self.schema) > 1,  # in a single column an empty line is an empty cell
                ),
                convert_options=pacsv.ConvertOptions(
                    include_columns=list(columns),
                    column_types={name: pa.binary() for name in columns},
                    check_utf8=False,
                    strings_can_be_null=False,
                ),
            )


def _open(path: Path) -> pa.NativeFile:
    return pa.input_stream(str(path), compression="detect")


def _start(path: Path) -> bytes:
    with _open(path) as stream:
        start: bytes = stream.read(BLOCK_BYTES)
    return start


def _header(start: bytes, where: str) -> str:
    """The first line that is not blank, as it stands; line breaks inside quotes belong to it."""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SourceError(f"{where} is not text in UTF-8; save it as CSV in UTF-8")
    line = _FIRST_LINE.match(start.removeprefix(_MARK))
    if line is None or not line[1]:
        raise SourceError(f"{where} is empty; its first line should name the columns")
    if line.end() >= BLOCK_BYTES - len(_MARK):
        raise SourceError(f"{where}: its first line is longer than {BLOCK_BYTES:,} bytes; is it a CSV file?")
    try:
        header = line[1].decode()
    except UnicodeDecodeError:
        raise SourceError(f"{where}: the names of the columns are not UTF-8; save the file in UTF-8") from None
    if "\0" in header:
        raise SourceError(f"{where} is not text in UTF-8; save it as CSV in UTF-8")
    return header


def _around(start: bytes, header: str) -> tuple[int, bool]:
    """How many blank lines stand before the header, and whether anything stands behind it.

    Privacy: this looks at the header's own place and at the number of bytes, not at rows.
    """
    text = start.removeprefix(_MARK)
    before, _, after = text.partition(header.encode())
    return len(re.findall(rb"\r\n|\r|\n", before)), re.sub(rb"^(\r\n|\r|\n)", b"", after, count=1) != b""


def _delimiter(header: str) -> str:
    """The sign that stands most often between the names; the comma if none does."""
    return max(",;\t|", key=re.sub(r'"[^"]*"', "", header).count)


def _names(header: str, delimiter: str, where: str) -> list[str]:
    """The names in the header."""
    try:
        names = next(csv.reader(io.StringIO(header, newline=""), delimiter=delimiter))
    except csv.Error:
        raise SourceError(f"{where} is not a CSV file; its first line should name the columns") from None
    if not any(names):
        raise SourceError(f"{where} is empty; its first line should name the columns")
    return names
