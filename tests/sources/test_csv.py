"""Any bytes after the header of a CSV file are rows, each record is one row, and regular files read as always."""

from __future__ import annotations

import csv as python_csv
import gzip
import io
import re
from pathlib import Path

import pyarrow.csv as pacsv
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpsyn.sources import csv, open_source
from dpsyn.sources.csv import CsvSource
from tests.memory import trace_peak

BODY = st.text('ab,"\n\r ', max_size=40).map(str.encode) | st.binary(max_size=40)
HEADERS = {1: b"a\n", 2: b"a,b\n", 3: b"a,b,c\n"}


def read(path: Path) -> list[list[bytes]]:
    """All rows of a file."""
    source = open_source(path)
    batches = source.batches(source.schema.names)
    return [list(row) for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)]


def naive_rows(body: bytes, width: int, max_cell: int) -> list[list[bytes]]:
    """Read by the definition: a field is a well-formed one in quotes, or everything up to a delimiter or line break."""
    rows, position = [], 0
    while position < len(body):
        if width > 1 and body[position : position + 1] in (b"\r", b"\n"):
            position += 1
            continue
        fields, ended = [], False
        while not ended:
            quoted = re.compile(rb'"((?:[^"]|"")*)"(?=,|\r|\n|$(?![\s\S]))').match(body, position)
            plain = re.compile(rb"[^,\r\n]*").match(body, position)
            field = quoted or plain
            assert field is not None
            fields.append((quoted[1].replace(b'""', b'"') if quoted else field[0])[:max_cell])
            separator = re.compile(rb",|\r\n|\r|\n|$").match(body, field.end())
            assert separator is not None
            ended, position = separator[0] != b",", separator.end()
        rows.append([*fields, *[b""] * width][:width])
    return rows


@given(BODY, st.sampled_from([1, 2, 3]), st.sampled_from([1, 3, 7, 100]), st.sampled_from([2, 5, 1000]))
@example(b'"x\n1,2\n3,4\n', 2, 7, 1000)
@example(b"1\r", 1, 1, 5)
@example(b'"ab""c",1\n"', 2, 7, 2)
def test_any_bytes_are_rows(
    tmp_path_factory: pytest.TempPathFactory, body: bytes, width: int, block: int, max_cell: int
) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes(HEADERS[width] + body)

    with pytest.MonkeyPatch.context() as patch:
        source = CsvSource(path)
        patch.setattr(csv, "BLOCK_BYTES", block)
        patch.setattr(csv, "MAX_CELL_BYTES", max_cell)
        batches = source.batches(source.schema.names)
        rows = [list(row) for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)]

    assert rows == naive_rows(body, width, max_cell)


@given(st.lists(st.lists(st.text('ab,"\n\r', max_size=5), min_size=2, max_size=2), min_size=1, max_size=8))
def test_what_a_csv_writer_writes_is_read_as_by_arrow(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    text = io.StringIO(newline="")
    python_csv.writer(text).writerows([["a", "b"], *rows])
    path.write_text(text.getvalue(), "utf-8", newline="")
    options = pacsv.ParseOptions(newlines_in_values=True)
    strings = pacsv.ConvertOptions(column_types={"a": "string", "b": "string"}, strings_can_be_null=False)

    table = pacsv.read_csv(path, parse_options=options, convert_options=strings)

    expected = [list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
    assert [[cell.decode() for cell in row] for row in read(path)] == expected == rows


def test_a_record_that_changes_does_not_change_others(tmp_path: Path) -> None:
    """Cells of 9 MB, in quotes with line breaks and quotes inside, in a file that quotes as it should."""
    cells = [b"x" * 9_000_000, b'"' + b'a""b\n,' * 3_000_000 + b'"', b'"' + b"\n" * 20_000_000 + b'"']
    path = tmp_path / "a.csv"
    for cell in cells:
        path.write_bytes(b"a,b,c\n1,2,3\n4," + cell + b",6\n7,8,9\n")

        rows = read(path)

        assert [rows[0], rows[2]] == [[b"1", b"2", b"3"], [b"7", b"8", b"9"]]
        assert [rows[1][0], rows[1][2], len(rows[1][1]), len(rows)] == [b"4", b"6", csv.MAX_CELL_BYTES, 3]


@pytest.mark.parametrize("name", ["a.tsv", "a.csv.zst"])
def test_a_line_of_any_length_needs_little_memory(tmp_path: Path, name: str) -> None:
    import pyarrow as pa

    path, separator = tmp_path / name, b"\t" if "tsv" in name else b","
    with pa.output_stream(str(path), compression="detect") as stream:
        stream.write(separator.join([b"a", b"b"]) + b"\n")
        for _ in range(100):
            stream.write(b"x" * 1_000_000)
        stream.write(separator + b"1\n2" + separator + b"3\n")

    rows, peak = trace_peak(read, path)

    assert rows == [[b"x" * csv.MAX_CELL_BYTES, b"1"], [b"2", b"3"]]
    assert peak < 60_000_000


def test_a_stray_quote_stays_in_its_record(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'a,b\n1,"Bob\n2,"Al" x\n"3""","4"\n5,6" pipe\n7,"8')

    assert read(path) == [[b"1", b'"Bob'], [b"2", b'"Al" x'], [b'3"', b"4"], [b"5", b'6" pipe'], [b"7", b'"8']]


def test_irregular_lines_are_described_for_the_data_owner(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\n\na,b\r\n1,"2\n\n"\n3\n4,5,6\n7,"8\n9,' + b"x" * 100_000 + b"\n")

    ragged, stray, long = CsvSource(path).describe_irregular_lines()

    assert ragged.startswith("line 7 is the first of 2 that have more or fewer cells than the first line")
    assert stray.startswith("line 9 has a cell that begins with a quote")
    assert long.startswith("line 10 has a cell of more than 65,536 bytes")


def test_a_regular_file_has_no_irregular_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'a,b\r\n1,"2\n""x"""\r\n\r\n3,\r\n')

    assert CsvSource(tmp_path / "a.csv").describe_irregular_lines() == []


def test_every_line_may_lack_cells(tmp_path: Path) -> None:
    """Short lines of a wide table need more room than they have bytes."""
    names = ",".join(f"c{index}" for index in range(300))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(names.encode() + b"\n" + b"1\n" * 50_000))

    source = open_source(tmp_path / "a.csv.gz")
    batches = list(source.batches(["c0", "c299"]))

    assert sum(batch.num_rows for batch in batches) == 50_000
    assert {entry for batch in batches for entry in batch.column("c0").to_pylist()} == {b"1"}
    assert {entry for batch in batches for entry in batch.column("c299").to_pylist()} == {b""}
