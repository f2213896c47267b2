"""Excel, SPSS, Stata and SAS files: read with their types and code books, and written."""

from __future__ import annotations

import datetime as dt
import sys
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyreadstat
import pytest
import xlsxwriter

import dpsyn
from dpsyn.encoding import Codec
from dpsyn.errors import MissingExtraError, OutputError, SourceError
from dpsyn.schema import FileSyntax
from dpsyn.sources import open_source

TABLE = pa.table(
    {
        "age": pa.array([31, None, 90]),
        "place": pa.array(["Köln", "=1+1", None]),
        "born": pa.array([dt.date(1990, 2, 28), dt.date(1905, 12, 31), None]),
        "seen": pa.array([dt.datetime(2024, 1, 31, 8, 30), None, dt.datetime(1969, 12, 31, 23, 59)], pa.timestamp("s")),
        "clock": pa.array([dt.time(8, 30), dt.time(23, 59), None], pa.time32("s")),
        "weight": pa.array([1.5, 2.25, None]),
        "member": pa.array([True, False, None]),
    }
)

SCHEMA = """
dpsyn_schema: 1
attributes:
  age: {kind: integer, low: 0, high: 110, missing: true}
  place: {kind: categorical, values: [Köln, =1+1], missing: true}
  born: {kind: datetime, start: 1500-01-01, end: 2024-12-31, missing: true}
  seen: {kind: datetime, start: 1960-01-01, end: 2024-12-31, resolution: minute, missing: true}
  clock: {kind: time, missing: true}
  weight: {kind: real, low: 0, high: 10, decimals: 2, missing: true}
  member: {kind: boolean, missing: true}
"""


def draft(path: Path) -> dpsyn.Schema:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return dpsyn.draft_schema(path).to_schema()


def write_sav(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pyreadstat.write_sav(pl.DataFrame(columns), str(path), **options)
    return path


def write_sheet(path: Path, rows: list[list[Any]], name: str = "Daten", first: list[list[Any]] | None = None) -> Path:
    book = xlsxwriter.Workbook(str(path))
    for title, lines in (("Deckblatt", first), (name, rows)):
        if lines is not None:
            sheet = book.add_worksheet(title)
            for number, line in enumerate(lines):
                sheet.write_row(number, 0, line)
    book.close()
    return path


@pytest.mark.parametrize("suffix", ["xlsx", "sav", "dta"])
def test_a_written_table_is_read_back_with_the_same_codes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    dpsyn.write_table(TABLE, path, synthetic=True)
    codec = Codec(dpsyn.Schema.from_yaml(SCHEMA))

    assert codec.encode(dpsyn.read_table(path)).tolist() == codec.encode(TABLE).tolist()


# ── SPSS, Stata, SAS ─────────────────────────────────────────────────────────────────────────────────────────


def test_labels_and_missing_values_of_an_spss_file_go_into_the_draft(tmp_path: Path) -> None:
    path = write_sav(
        tmp_path / "t.sav",
        {
            "sex": [1.0, 2.0, 1.0, -9.0] * 10,
            "grade": [1.0, 2.0, 4.0, 9.0] * 10,
            "age": [18.0, 45.0, 90.0, 99.0] * 10,
            "income": [0.0, 1500.5, 2500.0, 3000.0] * 10,
        },
        variable_value_labels={
            "sex": {1: "männlich", 2: "weiblich", 3: "divers", -9: "keine Angabe"},
            "grade": {1: "sehr gut", 2: "gut", 3: "mittel", 4: "schlecht"},
            "income": {0: "keines"},
        },
        missing_ranges={"sex": [-9], "grade": [9], "age": [99]},
        column_labels=["Geschlecht", None, None, None],
        variable_measure={"grade": "ordinal"},
    )

    schema = draft(path)

    assert (schema["sex"].kind, schema["sex"].labels()) == ("categorical", ("1", "2", "3", "missing"))
    assert schema["sex"].description == "Geschlecht. 1 = männlich; 2 = weiblich; 3 = divers; -9 = keine Angabe"
    assert (schema["grade"].kind, schema["grade"].labels()) == ("ordinal", ("1", "2", "3", "4", "missing"))
    assert schema["age"].missing == ("99",)
    assert (schema["income"].kind, schema["income"].description) == ("real", "0 = keines")
    fit = dpsyn.check_table(schema, path)
    assert [entry.misplaced for entry in fit.attributes] == [0, 0, 0, 0]
    assert [entry.empty for entry in fit.attributes] == [10, 10, 10, 0]


def test_ranges_of_missing_values_are_listed(tmp_path: Path) -> None:
    path = write_sav(
        tmp_path / "t.sav",
        {"a": [1.0, -97.0, -99.0], "b": [1.0, 2.0, 3.0]},
        missing_ranges={"a": [{"lo": -99, "hi": -97}]},
    )

    assert draft(path)["a"].missing == ("-97", "-98", "-99")


def test_a_date_after_the_year_9999_does_not_stop_the_reading(tmp_path: Path) -> None:
    path = write_sav(tmp_path / "t.sav", {"d": [1.4e10, 1e15, -1e15, None]}, variable_format={"d": "DATE11"})

    (batch,) = open_source(path).batches(["d"])

    assert batch.column(0).to_pylist()[1:] == [dt.date(9999, 12, 31), dt.date(1, 1, 1), None]
    assert 2000 < batch.column(0).to_pylist()[0].year < 2050


def test_texts_in_another_encoding_than_the_file_declares_do_not_stop_the_reading(tmp_path: Path) -> None:
    path = write_sav(tmp_path / "t.sav", {"a": ["KXln", "Bonn", "Müns"], "b": [1.0, 2.0, 3.0]})
    path.write_bytes(path.read_bytes().replace(b"KXln", b"K\xf6ln"))

    (batch,) = open_source(path).batches(["a"])

    assert batch.column(0).to_pylist() == [b"K\xf6ln", b"Bonn", "Müns".encode()]


def test_sas_transport_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.xpt"
    frame = pl.DataFrame({"a": [1.0, None], "d": [dt.date(2024, 1, 31), None], "s": ["Köln", ""]})
    pyreadstat.write_xport(frame, str(path))

    (batch,) = open_source(path).batches(["s", "d", "a"])

    assert batch.to_pydict() == {"s": ["Köln".encode(), b""], "d": [dt.date(2024, 1, 31), None], "a": [1.0, None]}


def test_long_files_are_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsyn.sources.statistical_files.CHUNK_ROWS", 4)
    path = write_sav(tmp_path / "t.sav", {"größe": [float(number) for number in range(10)], "b": ["x"] * 10})

    batches = list(open_source(path).batches(["größe"]))

    assert [batch.num_rows for batch in batches] == [4, 4, 2]
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == list(range(10))


def test_a_damaged_file_is_refused_without_a_trace_of_its_content(tmp_path: Path) -> None:
    path = tmp_path / "t.sav"
    path.write_bytes(b"$FL2 SECRET")

    with pytest.raises(SourceError, match="cannot be read") as error:
        open_source(path)
    assert "SECRET" not in str(error.value)


# ── spreadsheets ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_sheet_is_read_cell_by_cell(tmp_path: Path) -> None:
    path = write_sheet(tmp_path / "t.xlsx", [["a", "b", 2024], [1.5, "x", True], [], ["", "", ""], [3, "1,5", None]])

    (batch,) = open_source(path).batches(["a", "b", "2024"])

    assert batch.to_pydict() == {"a": [b"1.5", b"3"], "b": [b"x", b"1,5"], "2024": [b"true", b""]}


def test_decimal_commas_of_texts_do_not_concern_the_numbers_of_a_sheet(tmp_path: Path) -> None:
    schema = dpsyn.Schema(
        attributes=(dpsyn.Real(name="a", low=0, high=10, decimals=1),), file=FileSyntax(decimal=",", thousands=".")
    )
    path = write_sheet(tmp_path / "t.xlsx", [["a"], [1.5], [9.5]])

    (entry,) = dpsyn.check_table(schema, path).attributes

    assert entry.inside == 2


def test_the_declared_sheet_is_read_and_a_wrong_name_lists_the_sheets(tmp_path: Path) -> None:
    path = write_sheet(tmp_path / "t.xlsx", [["a"], [1]], first=[["Titel"], ["2024"]])

    assert open_source(path).schema.names == ["Titel"]
    assert open_source(path, syntax=FileSyntax(sheet="Daten")).schema.names == ["a"]
    with pytest.raises(SourceError, match=r"no sheet 'Date'; it has Deckblatt, Daten"):
        open_source(path, syntax=FileSyntax(sheet="Date"))


def test_a_query_on_a_sheet_keeps_its_numbers(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    schema = dpsyn.Schema(attributes=(dpsyn.Real(name="a", low=0, high=10, decimals=1),), file=FileSyntax(decimal=","))
    path = write_sheet(tmp_path / "t.xlsx", [["a"], [1.5], [9.5]])

    (entry,) = dpsyn.check_table(schema, path, query="SELECT a FROM data WHERE a <> '9.5'").attributes

    assert (entry.inside, entry.unreadable) == (1, 0)


def test_texts_that_look_like_formulas_stay_texts_in_excel(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    dpsyn.write_table(pa.table({"=a": ["=1+1", "http://x"]}), path, synthetic=True)

    assert dpsyn.read_table(path).to_pydict() == {"=a": [b"=1+1", b"http://x"]}


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_sheet_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsyn.encoding.office_writers.MAX_EXCEL_ROWS", 2)

    with pytest.raises(OutputError, match="an Excel sheet holds 2 rows"):
        dpsyn.write_table(TABLE, tmp_path / "t.xlsx", synthetic=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["sas7bdat", "xpt", "xls"])
def test_formats_that_are_only_read_are_refused_for_results(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(OutputError, match="read but not written"):
        dpsyn.write_table(TABLE, tmp_path / f"t.{suffix}", synthetic=True)


def test_names_that_a_format_does_not_allow_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written as this format"):
        dpsyn.write_table(pa.table({"two words": [1]}), tmp_path / "t.sav", synthetic=True)


@pytest.mark.parametrize(("suffix", "library"), [("xlsx", "python_calamine"), ("sav", "pyreadstat")])
def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, library: str
) -> None:
    path = tmp_path / f"t.{suffix}"
    dpsyn.write_table(pa.table({"a": [1]}), path, synthetic=True)
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(MissingExtraError, match="the extra 'office'"):
        open_source(path)
