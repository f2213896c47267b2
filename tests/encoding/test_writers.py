"""Tables are written in the format of their suffix, marked as synthetic, and never incomplete."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as paipc
import pyarrow.parquet as papq
import pytest

from dpsyn.encoding import write_table
from dpsyn.errors import OutputError
from dpsyn.sources import open_source

TABLE = pa.table({"a": [1, None, 3], "b": ["x", 'so "called", ok', None]})


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".arrow"])
def test_a_written_table_is_read_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"

    write_table(TABLE, path, synthetic=True)

    table = pa.Table.from_batches(open_source(path).batches(["a", "b"]))
    texts = [
        None
        if entry in (b"", None)
        else str(entry if isinstance(entry, int) else entry.decode() if isinstance(entry, bytes) else entry)
        for entry in table["a"].to_pylist()
    ]
    assert texts == ["1", None, "3"]
    assert table.num_rows == 3


def test_batches_are_written_one_after_another(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"

    write_table((part for part in TABLE.to_batches(max_chunksize=1)), path, synthetic=True)

    assert papq.read_table(path).to_pylist() == TABLE.to_pylist()


def test_synthetic_files_are_marked(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "a.parquet", synthetic=True)
    write_table(TABLE, tmp_path / "b.parquet", synthetic=False)
    write_table(TABLE, tmp_path / "a.arrow", synthetic=True)

    assert papq.read_schema(tmp_path / "a.parquet").metadata[b"dpsyn"] == b"synthetic"
    assert b"dpsyn" not in (papq.read_schema(tmp_path / "b.parquet").metadata or {})
    assert paipc.open_file(str(tmp_path / "a.arrow")).schema.metadata[b"dpsyn"] == b"synthetic"


def test_standard_output_gets_csv(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_table(TABLE, "-", synthetic=True)

    assert capfdbinary.readouterr().out.splitlines()[:2] == [b'"a","b"', b'1,"x"']


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "a.csv.gz", synthetic=True)
    write_table(TABLE, tmp_path / "b.csv.gz", synthetic=True)

    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b'"a"')


def test_a_failure_midway_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old", "utf-8")

    def broken() -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        raise OutputError("the chunk failed")

    with pytest.raises(OutputError, match="the chunk failed"):
        write_table(broken(), path, synthetic=True)

    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_unknown_suffix_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"\.csv, \.csv\.gz"):
        write_table(TABLE, tmp_path / "table.docx", synthetic=True)

    assert list(tmp_path.iterdir()) == []


def test_a_table_without_columns_and_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="nothing to write"):
        write_table(iter(()), tmp_path / "table.csv", synthetic=True)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_data_frames_are_written(kind: str, tmp_path: Path) -> None:
    import polars

    table = pa.table({"a": [1, 2], "b": ["x", None]})
    frame = table.to_pandas() if kind == "pandas" else polars.from_arrow(table)

    write_table(frame, tmp_path / "frame.csv", synthetic=True)

    assert (tmp_path / "frame.csv").read_text("utf-8") == '"a","b"\n1,"x"\n2,\n'


# ── formulas ─────────────────────────────────────────────────────────────────────────────────────────────────

FORMULAS = pa.table(
    {
        "=name": ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "a=b", "", None, "'=1"],
        "number": [-1, -2, -3, 4, 5, 6, 7, 8, 9, 10],
        "listed": pa.array(["=x", "y"] * 5).dictionary_encode(),
    }
)


def test_texts_that_begin_like_a_formula_get_an_apostrophe_in_csv(tmp_path: Path) -> None:
    write_table(FORMULAS, tmp_path / "a.csv", synthetic=True, escape_formulas=True)

    with (tmp_path / "a.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["'=name", "number", "listed"]
    assert [row[0] for row in rows] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", "'\rx", "a=b", "", "", "'=1"]
    assert [row[1] for row in rows][:2] == ["-1", "-2"]
    assert [row[2] for row in rows][:2] == ["'=x", "y"]


def test_values_stay_as_they_are_by_default(tmp_path: Path) -> None:
    write_table(FORMULAS, tmp_path / "a.csv", synthetic=True)

    assert (tmp_path / "a.csv").read_text("utf-8").startswith('"=name","number","listed"\n"=1+1",-1,"=x"\n')


def test_formulas_are_escaped_batch_by_batch(tmp_path: Path) -> None:
    write_table(iter(FORMULAS.to_batches(max_chunksize=3)), tmp_path / "a.csv", synthetic=True, escape_formulas=True)
    write_table(FORMULAS, tmp_path / "b.csv", synthetic=True, escape_formulas=True)

    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_only_csv_has_formulas(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match="is not a CSV file, in which texts could become formulas"):
        write_table(FORMULAS, tmp_path / name, synthetic=True, escape_formulas=True)
