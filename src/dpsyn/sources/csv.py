"""CSV files, plain or compressed."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from dpsyn.errors import SourceError
from dpsyn.schema.file_syntax import PLAIN_FILE, FileSyntax, normalize_encoding
from dpsyn.sources import kernels
from dpsyn.sources.files import FilePiece, redact_path
from dpsyn.sources.source import attempt, guard_batches, map_in_threads

BLOCK_BYTES = 1 << 22
"""Bytes that are read at a time; the header must fit into them."""

MAX_CELL_BYTES = 1 << 16
"""Bytes of a cell that are read; the rest of a longer cell is left out."""

LOOKAHEAD_BYTES = 4 * BLOCK_BYTES
"""Bytes in which the closing quote of a cell is searched, to find out whether the opening quote is one."""

_BROKEN = "it may be cut off, or its format may not match its suffix"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_BREAK = rb"\r\n|\r|\n"

_IRREGULARITIES = {
    kernels.RAGGED: "more or fewer cells than the first line: cells that are missing are empty, others are left out",
    kernels.STRAY_QUOTE: "a cell that begins with a quote but does not end with one, so its quotes are read as text",
    kernels.LONG_CELL: f"a cell of more than {MAX_CELL_BYTES:,} bytes, the rest of which is left out",
}


Records = bytes | memoryview
Tally = NDArray[np.int64]
"""For everything irregular, the number of records, and where in the file the first one begins."""


class CsvSource:
    """A CSV file; any bytes after its header are rows.

    A record ends at a line break outside of quotes, and each record is one row: cells that it lacks are empty, surplus
    ones are left out, long ones are cut after ``MAX_CELL_BYTES``. Quotes are special around a whole cell only;
    otherwise they are text (see ``kernels.normalize_records``). Entries stay raw bytes, because converting them to
    another type could fail on a value.

    Privacy: reading fails if the file cannot be read or unpacked, never because of its rows. If every cell with a
    delimiter, a quote or a line break is in quotes (RFC 4180), a record does not depend on other records, whatever its
    cells hold and however long they are. For other files no reader can guarantee that: a quote that opens a cell of one
    record may be closed by that of another.
    """

    rereadable = True
    assumption = "the CSV file is well-formed: a cell that holds a quote, a separator or a line break is in quotes"
    """Without it, a stray quote of one row could take in others; a proper writer of CSV never leaves one."""

    def __init__(self, path: Path, syntax: FileSyntax = PLAIN_FILE) -> None:
        self.label = redact_path(path)
        self.byte_size: int | None = path.stat().st_size
        self._path, self._syntax = path, syntax
        self.paths = (path,)
        start = attempt(lambda: _read_start(path, syntax.encoding), self.label, _BROKEN)
        rest = start.removeprefix(_BYTE_ORDER_MARK).lstrip(b"\r\n")
        self._delimiter = syntax.separator or ("\t" if ".tsv" in path.suffixes else _guess_delimiter(rest))
        header, length = _read_header(rest, self._delimiter, syntax.quote, self.label)
        self._rows_offset = len(start) - len(rest) + length
        names = _parse_names(header, self._delimiter, syntax.quote, self.label)
        self.schema = pa.schema([(name, pa.binary()) for name in names])

    @property
    def separator(self) -> str:
        """The character between cells, declared or guessed from the first line."""
        return self._delimiter

    def describe_irregular_lines(self, max_bytes: int | None = None) -> list[str]:
        """What is irregular in the file: for each kind, the first line, how many there are, and how they are read.

        With ``max_bytes``, only about so many bytes of the file are searched.

        Privacy: the result depends on rows. It is for the data owner alone; a release never reports it.
        """
        return attempt(lambda: self._find_irregular_lines(max_bytes), self.label, _BROKEN)

    def _find_irregular_lines(self, max_bytes: int | None) -> list[str]:
        tally, searched = _new_tally(), 0
        for records in self._read_records(tally):
            searched += len(records)
            if max_bytes is not None and searched >= max_bytes:
                break
        sentences = []
        for kind, (count, offset) in enumerate(tally.tolist()):
            if count:
                lines = f"line {self._line_at(offset):,}"
                lines += " has" if count == 1 else f" is the first of {count:,} that have"
                sentences.append(f"{lines} {_IRREGULARITIES[kind]}")
        return sentences

    def _line_at(self, offset: int) -> int:
        """The number of the line that begins at a position of the text."""
        line, last = 1, b""
        with open_text(self._path, self._syntax.encoding) as stream:
            while offset and (block := stream.read(min(offset, BLOCK_BYTES))):
                line += _count_lines(block, last)
                offset, last = offset - len(block), block[-1:]
        return line

    def pieces(self) -> list[FilePiece]:
        """The file as a whole."""
        return [FilePiece(path=str(self._path), syntax=self._syntax)]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, each entry as the bytes in the file."""
        return guard_batches(lambda: self._read(columns), self.label, _BROKEN)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        parse_options = pacsv.ParseOptions(
            delimiter=self._delimiter,
            quote_char=self._syntax.quote,
            newlines_in_values=True,
            ignore_empty_lines=len(self.schema) > 1,  # in a table with one column an empty line is an empty entry
        )
        convert_options = pacsv.ConvertOptions(
            include_columns=list(columns),
            column_types={name: pa.binary() for name in columns},
            check_utf8=False,
            strings_can_be_null=False,
        )

        def parse(records: Records) -> pa.Table:
            in_one_block = pacsv.ReadOptions(column_names=self.schema.names, block_size=len(records))
            return pacsv.read_csv(pa.BufferReader(records), in_one_block, parse_options, convert_options)

        def parse_any(records: Records) -> pa.Table:
            try:
                return parse(records)
            except pa.ArrowInvalid:
                pass  # a plain line has more or fewer cells than the header
            return parse(self._normalize_all(records))

        for table in map_in_threads(parse_any, self._read_records(), threads=1):
            yield from table.to_batches()

    def _read_records(self, tally: Tally | None = None) -> Iterator[Records]:
        """The rows as well-formed CSV, some whole records at a time; irregular ones are counted in ``tally``.

        Without a tally, lines without quotes are not inspected: they may have more or fewer cells than the header.
        Memory is a few blocks, whatever the file holds.
        """
        state = np.zeros(kernels.STATE_WORDS, np.int64)
        data, part_of_record, offset, read, final = b"", b"", self._rows_offset, 0, False
        quote = ord(self._syntax.quote)
        with open_text(self._path, self._syntax.encoding) as stream:
            stream.read(self._rows_offset)
            while data or not final:
                if not final and (not read or len(data) < BLOCK_BYTES):
                    block = stream.read(BLOCK_BYTES)
                    data, final = data + block, not block
                if state[kernels.MODE] == kernels.RECORD_START:
                    read = _end_of_plain_lines(data, self._syntax.quote) if tally is None else 0
                    read = read or kernels.end_of_regular_records(
                        np.frombuffer(data, np.uint8),
                        final,
                        ord(self._delimiter),
                        quote,
                        len(self.schema),
                        MAX_CELL_BYTES,
                    )
                    if read:
                        yield memoryview(data)[:read]
                        data, offset = data[read:], offset + read
                        continue
                read, written = self._normalize(data, offset, final, state, tally)
                part_of_record += written
                if part_of_record and state[kernels.MODE] == kernels.RECORD_START:
                    yield part_of_record
                    part_of_record = b""
                data, offset = data[read:], offset + read

    def _normalize_all(self, records: Records) -> bytes:
        """Whole records as well-formed CSV."""
        parts, state = [], np.zeros(kernels.STATE_WORDS, np.int64)
        while len(records):
            read, written = self._normalize(records, 0, True, state)
            parts.append(written)
            records = records[read:]
        return b"".join(parts)

    def _normalize(
        self, data: Records, offset: int, final: bool, state: NDArray[np.int64], tally: Tally | None = None
    ) -> tuple[int, bytes]:
        """How many bytes were read, and their records as well-formed CSV (see ``kernels.normalize_records``)."""
        width = len(self.schema)
        out = np.empty(BLOCK_BYTES + 3 * (len(data) + 1) + width, np.uint8)
        read, written = kernels.normalize_records(
            np.frombuffer(data, np.uint8),
            offset,
            final,
            ord(self._delimiter),
            ord(self._syntax.quote),
            width,
            MAX_CELL_BYTES,
            LOOKAHEAD_BYTES,
            state,
            _new_tally() if tally is None else tally,
            out,
        )
        return read, out[:written].tobytes()


def _new_tally() -> Tally:
    return np.zeros((kernels.IRREGULARITIES, 2), np.int64)


def _end_of_plain_lines(data: bytes, quote: str) -> int:
    """The end of the last line; 0 if a line is long, or if there is a quote, so a record may be more than a line."""
    if quote.encode() in data:
        return 0
    end = 0
    while next_end := data.rfind(b"\n", end, end + MAX_CELL_BYTES) + 1:
        end = next_end
    return end if len(data) - end < MAX_CELL_BYTES else 0


@contextlib.contextmanager
def open_text(path: Path, encoding: str) -> Iterator[TextStream]:
    """A text file as bytes in UTF-8; a file in UTF-8 as it is. It is unpacked if it is compressed."""
    with pa.input_stream(str(path), compression="detect") as stream:
        known = normalize_encoding(encoding)
        yield stream if known.startswith("utf-8") else _Transcoder(stream, known)


class TextStream(Protocol):
    """Bytes that are read one part after another."""

    def read(self, size: int, /) -> bytes:
        """The next bytes: as many as given, or fewer at the end."""


class _Transcoder:
    """A text file in another encoding, as bytes in UTF-8.

    What is not a character of the encoding becomes a surrogate, which is not valid in UTF-8. So such a cell is
    unreadable, as in a file in UTF-8, and different ids stay different.

    Privacy: a character is converted by itself (see ``require_encoding``), so cells and rows stay apart.
    """

    def __init__(self, stream: pa.NativeFile, encoding: str) -> None:
        errors = "surrogatepass" if encoding.startswith("utf-16") else "surrogateescape"
        self._stream, self._decoder = stream, codecs.getincrementaldecoder(encoding)(errors)
        self._converted, self._ended = b"", False

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        while len(self._converted) < size and not self._ended:
            block = self._stream.read(BLOCK_BYTES)
            self._ended = not block
            if block:  # at the end, half of a character may be left, which is dropped
                self._converted += self._decoder.decode(block).encode("utf-8", "surrogatepass")
        part, self._converted = self._converted[:size], self._converted[size:]
        return part


def _read_start(path: Path, encoding: str) -> bytes:
    with open_text(path, encoding) as stream:
        return stream.read(BLOCK_BYTES)


def start_of_text(path: Path) -> bytes:
    """The first bytes of a text file as they are, unpacked if it is compressed; private."""
    return attempt(lambda: _read_start(path, "utf-8"), redact_path(path), _BROKEN)


def find_invalid_text(path: Path, max_bytes: int) -> tuple[int, bytes] | None:
    """The number of the first line of a text file that is not UTF-8, and the bytes around it; None if all of it is.

    Only the first ``max_bytes`` are searched.

    Privacy: the result depends on rows. It is for the data owner alone.
    """
    return attempt(lambda: _find_invalid_text(path, max_bytes), redact_path(path), _BROKEN)


def _find_invalid_text(path: Path, max_bytes: int) -> tuple[int, bytes] | None:
    decoder, line, searched, last = codecs.getincrementaldecoder("utf-8")(), 1, 0, b""
    with open_text(path, "utf-8") as stream:
        while searched < max_bytes and (block := stream.read(BLOCK_BYTES)):
            pending = decoder.getstate()[0]
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                before = block[: max(0, error.start - len(pending))]
                return line + _count_lines(before, last), block[len(before) :][:MAX_CELL_BYTES]
            line += _count_lines(block, last)
            searched, last = searched + len(block), block[-1:]
        if decoder.getstate()[0] and searched < max_bytes:  # the file ends inside a character
            return line, decoder.getstate()[0]
    return None


def _count_lines(block: bytes, last: bytes) -> int:
    """The line breaks of a block that follows a byte; the two halves of a Windows line break are one."""
    breaks = block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
    return breaks - (last == b"\r" and block.startswith(b"\n"))


def _guess_delimiter(rest: bytes) -> str:
    """The delimiter that occurs most often in the first line, outside of quotes; the comma if none occurs."""
    line = re.split(_LINE_BREAK, rest, maxsplit=1)[0].decode("latin-1")
    return max(",;\t|", key=re.sub(r'"[^"]*"?', "", line).count)


def _read_header(rest: bytes, delimiter: str, quote: str, label: str) -> tuple[str, int]:
    """The header line as it is in the file, and its length in bytes with the line break.

    Line breaks inside quotes belong to the header, and quotes count only at the start of a name, as in Arrow's reader;
    so no row is read as a part of the header.
    """
    if rest[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SourceError(f"{label} is text in UTF-16; declare  file: {{encoding: utf-16}}  in the schema")
    other, sign = re.escape(delimiter).encode(), quote.encode()
    name = rb"(?:%b(?:[^%b]|%b%b)*%b[^%b\r\n]*|[^%b%b\r\n][^%b\r\n]*)?" % (*[sign] * 5, other, sign, other, other)
    line = re.match(rb"(%b(?:%b%b)*)(%b|$)" % (name, other, name, _LINE_BREAK), rest)
    if line and b"\0" in line[1]:
        raise SourceError(f"{label} is not a text file in the declared encoding; save it as a CSV file in UTF-8")
    if line and not line[1]:
        raise SourceError(f"{label} is empty; its first line should name the columns")
    if line is None or line.end(1) >= BLOCK_BYTES - len(_BYTE_ORDER_MARK):
        raise SourceError(
            f"{label}: its first line, or a quote in it, does not end; the first line should name the columns"
        )
    try:
        return line[1].decode(), line.end()
    except UnicodeDecodeError:
        raise SourceError(
            f"{label}: the names of the columns are not in the encoding that the schema declares, which is UTF-8 if it "
            "declares none; declare the right one, such as  file: {encoding: cp1252}  for files from Windows"
        ) from None


def _parse_names(header: str, delimiter: str, quote: str, label: str) -> list[str]:
    """The column names in the header."""
    try:
        names = next(csv.reader(io.StringIO(header, newline=""), delimiter=delimiter, quotechar=quote))
    except csv.Error:
        raise SourceError(f"{label} is not a CSV file; its first line should name the columns") from None
    if not any(names):
        raise SourceError(f"{label} is empty; its first line should name the columns")
    return names
