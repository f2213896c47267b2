"""CSV files, plain or compressed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from dpsyn.errors import SourceError
from dpsyn.sources.source import structural

BLOCK_BYTES = 1 << 22
"""Read at once; no line can be longer."""

_BROKEN = (
    "it is not a well-formed CSV file: a line may have more or fewer cells than the header, or the file may be cut off"
)


class CsvSource:
    """A CSV file whose cells stay raw bytes, because reading them as anything else could fail on a value."""

    again = True

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self.bytes: int | None = path.stat().st_size
        self._path = path
        start = _start(path, self.where)
        self._delimiter = "\t" if ".tsv" in path.suffixes else _delimiter(start)
        names, self._has_rows = _names(start, self._delimiter, self.where)
        self.schema = pa.schema([(name, pa.binary()) for name in names])

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, each cell as the bytes that stand in the file."""
        if not self._has_rows:
            return
        with structural(self.where, _BROKEN), _open(self._path) as stream:
            yield from pacsv.open_csv(
                stream,
                read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES),
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


def _start(path: Path, where: str) -> str:
    """The first block of the file; bytes that are not UTF-8 stay as lone surrogates."""
    with structural(where, "it may be cut off, or not be what its suffix says"), _open(path) as stream:
        start = stream.read(BLOCK_BYTES)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in start[:1000]:
        raise SourceError(f"{where} is not text in UTF-8; save it as CSV in UTF-8")
    text: str = start.decode("utf-8-sig", "surrogateescape")
    return text


def _delimiter(start: str) -> str:
    """The sign between names in the first line: a comma, or else a semicolon, a tab or a bar."""
    line = start.lstrip("\r\n").partition("\n")[0]
    return next((sign for sign in ",;\t|" if sign in line), ",")


def _names(start: str, delimiter: str, where: str) -> tuple[list[str], bool]:
    """The names in the header, and whether anything follows it."""
    records = csv.reader(io.StringIO(start, newline=""), delimiter=delimiter)
    try:
        names = next((record for record in records if record), [])
        "".join(names).encode()
    except UnicodeEncodeError:
        raise SourceError(f"{where}: the names of the columns are not UTF-8; save the file in UTF-8") from None
    except csv.Error:
        raise SourceError(f"{where} is not a CSV file; its first line should name the columns") from None
    if not any(name.strip() for name in names):
        raise SourceError(f"{where} is empty; its first line should name the columns")
    return names, start.rstrip("\r\n").count("\n") >= records.line_num
