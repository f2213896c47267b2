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
from dpsyn.sources.files import FilePiece, redact_path
from dpsyn.sources.source import attempt, guard_batches

BLOCK_BYTES = 1 << 22
"""Bytes that are read at a time; no line can be longer."""

_BROKEN = (
    "it is not a well-formed CSV file: a line may have more or fewer fields than the header, or the file may be cut off"
)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_BREAK = rb"\r\n|\r|\n"


class CsvSource:
    """A CSV file whose entries stay raw bytes, because converting them to another type could fail on a value."""

    rereadable = True

    def __init__(self, path: Path) -> None:
        self.label = redact_path(path)
        self.byte_size: int | None = path.stat().st_size
        self._path = path
        self.paths = (path,)
        start = attempt(
            lambda: _read_start(path), self.label, "it may be cut off, or its format may not match its suffix"
        )
        blank, rest = _split_blank_lines(start)
        self._blank_lines = len(re.findall(_LINE_BREAK, blank))
        self._delimiter = "\t" if ".tsv" in path.suffixes else _guess_delimiter(rest)
        header, self._has_rows = _read_header(rest, self._delimiter, self.label)
        self.schema = pa.schema([(name, pa.binary()) for name in _parse_names(header, self._delimiter, self.label)])

    def find_ragged_line(self) -> int | None:
        """The number of the first line with more or fewer fields than the header; None if there is none.

        Privacy: the result depends on rows. It is for the data owner alone; a release never reports it.
        """
        with _open(self._path) as stream, io.TextIOWrapper(stream, "latin-1", newline="") as text:
            records = csv.reader(text, delimiter=self._delimiter)
            width = len(self.schema)
            return next((records.line_num for record in records if record and len(record) != width), None)

    def pieces(self) -> list[FilePiece]:
        """The file as a whole."""
        return [FilePiece(path=str(self._path))]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, each entry as the bytes in the file."""
        if self._has_rows:
            yield from guard_batches(lambda: self._read(columns), self.label, _BROKEN)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with _open(self._path) as stream:
            yield from pacsv.open_csv(
                stream,
                read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES, skip_rows=self._blank_lines),
                parse_options=pacsv.ParseOptions(
                    delimiter=self._delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=len(self.schema)
                    > 1,  # in a table with one column an empty line is an empty entry
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


def _read_start(path: Path) -> bytes:
    with _open(path) as stream:
        start: bytes = stream.read(BLOCK_BYTES)
    return start


def _split_blank_lines(start: bytes) -> tuple[bytes, bytes]:
    """The line breaks before the first line, and the rest of the text; without a byte order mark."""
    text = start.removeprefix(_BYTE_ORDER_MARK)
    rest = text.lstrip(b"\r\n")
    return text[: len(text) - len(rest)], rest


def _guess_delimiter(rest: bytes) -> str:
    """The delimiter that occurs most often in the first line, outside of quotes; the comma if none occurs."""
    line = re.split(_LINE_BREAK, rest, maxsplit=1)[0].decode("latin-1")
    return max(",;\t|", key=re.sub(r'"[^"]*"?', "", line).count)


def _read_header(rest: bytes, delimiter: str, label: str) -> tuple[str, bool]:
    """The header line as it is in the file, and whether anything follows it.

    Line breaks inside quotes belong to the header, and quotes count only at the start of a name, as in Arrow's reader;
    so no row is read as a part of the header.
    """
    separator = re.escape(delimiter).encode()
    name = rb'(?:"(?:[^"]|"")*"[^%b\r\n]*|[^"%b\r\n][^%b\r\n]*)?' % (separator, separator, separator)
    line = re.match(rb"(%b(?:%b%b)*)(%b|$)" % (name, separator, name, _LINE_BREAK), rest)
    if rest[:2] in (b"\xff\xfe", b"\xfe\xff") or (line and b"\0" in line[1]):
        raise SourceError(f"{label} is not text in UTF-8; save it as a CSV file in UTF-8")
    if line and not line[1]:
        raise SourceError(f"{label} is empty; its first line should name the columns")
    if line is None or line.end(1) >= BLOCK_BYTES - len(_BYTE_ORDER_MARK):
        raise SourceError(
            f"{label}: its first line, or a quote in it, does not end; the first line should name the columns"
        )
    try:
        return line[1].decode(), line.end() < len(rest)
    except UnicodeDecodeError:
        raise SourceError(f"{label}: the names of the columns are not UTF-8; save the file in UTF-8") from None


def _parse_names(header: str, delimiter: str, label: str) -> list[str]:
    """The column names in the header."""
    try:
        names = next(csv.reader(io.StringIO(header, newline=""), delimiter=delimiter))
    except csv.Error:
        raise SourceError(f"{label} is not a CSV file; its first line should name the columns") from None
    if not any(names):
        raise SourceError(f"{label} is empty; its first line should name the columns")
    return names
