"""Files as offices write them: encodings, separators, decimal commas, codes for missing; read as a schema declares."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.encoding import Codec, Recoding
from dpsyn.encoding.cell_syntax import UNREADABLE_TEXT, respell_column
from dpsyn.engines import open_engine, open_table
from dpsyn.errors import SchemaError, SourceError
from dpsyn.schema import FileSyntax, NumberSigns, Schema
from dpsyn.sources import open_declared, open_source
from tests.office_file import write_office_file

GERMAN = NumberSigns(decimal=",", thousands=".")

SCHEMA = """
dpsyn_schema: 1
file: {encoding: cp1252, separator: ";", decimal: ",", thousands: ".", missing: [-9, k.A.]}
attributes:
  alter: {kind: integer, low: 0, high: 110, missing: true}
  bezirk: {kind: categorical, values: [Köln, Düsseldorf, Münster, Aachen, Bonn]}
  betrag: {kind: real, low: 0, high: 250000, decimals: 2, missing: true}
  anteil: {kind: real, low: 0, high: 100, decimals: 1, symbol: "%"}
  entlassung: {kind: datetime, start: 2024-01-01, end: 2024-12-31, format: "%d.%m.%Y"}
  frage_01: {kind: ordinal, values: [1, 2, 3, 4, 5], missing: "-8"}
"""


def respell(texts: list[str | bytes | None], signs: NumberSigns, codes: list[str] | None = None) -> list[Any]:
    raw = [text.encode() if isinstance(text, str) else text for text in texts]
    return list(respell_column(signs, codes or [])(pa.array(raw, pa.binary())).to_pylist())


# ── encodings ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "latin-1", "iso8859-15", "cp850", "utf-16", "utf-16-le"])
def test_text_is_the_same_in_every_declared_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("größe;ort\n1;Köln\n2;Münster, Süd\n".encode(encoding))
    source = open_source(path, syntax=FileSyntax(encoding=encoding))

    (batch,) = source.batches(["größe", "ort"])

    assert batch.column(1).to_pylist() == ["Köln".encode(), "Münster, Süd".encode()]


def test_bytes_that_an_encoding_lacks_are_unreadable_and_stay_different(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"id\n\x81\n\x8d\n\xfc\n")
    (batch,) = open_source(path, syntax=FileSyntax(encoding="cp1252")).batches(["id"])
    cells = batch.column(0).to_pylist()

    assert len(set(cells)) == 3
    assert [cell.decode(errors="replace").isprintable() and "\ufffd" not in cell.decode(errors="replace")
            for cell in cells] == [False, False, True]  # fmt: skip


def test_half_a_character_at_the_end_of_a_file_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a;b\n1;2\n".encode("utf-16") + b"\x31")
    (batch,) = open_source(path, syntax=FileSyntax(encoding="utf-16")).batches(["a", "b"])

    assert batch.to_pydict() == {"a": [b"1"], "b": [b"2"]}


def test_lone_surrogates_of_utf_16_take_in_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(
        "a;b\n".encode("utf-16-le") + b"\x00\xd8" + ";2\n".encode("utf-16-le") + "3;4\n".encode("utf-16-le")
    )
    (batch,) = open_source(path, syntax=FileSyntax(encoding="utf-16-le")).batches(["a", "b"])

    assert batch.column("b").to_pylist() == [b"2", b"4"]


@pytest.mark.parametrize("name", ["shift_jis", "gb18030", "utf-7", "cp037", "unicode_escape", "rot13", "nothing", "hz"])
def test_encodings_whose_characters_may_take_in_others_are_refused(name: str) -> None:
    with pytest.raises(SchemaError, match="is not supported"):
        FileSyntax(encoding=name)


def test_a_header_in_another_encoding_names_the_field_to_declare(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("größe;ort\n1;x\n".encode("cp1252"))

    with pytest.raises(SourceError, match=r"file: \{encoding: cp1252\}"):
        open_source(path)


def test_a_declared_quote_and_separator_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a|b,c\n'1|2'|\"x\n'it''s'|y\n")
    batches = open_source(path, syntax=FileSyntax(separator="|", quote="'")).batches(["a", "b,c"])

    assert pa.Table.from_batches(batches).to_pydict() == {"a": [b"1|2", b"it's"], "b,c": [b'"x', b"y"]}


# ── cells ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "signs", "plain"),
    [
        ("1.234,56", GERMAN, b"1234.56"),
        (" -1.234.567 ", GERMAN, b"-1234567"),
        ("0,5", GERMAN, b"0.5"),
        (",5", GERMAN, b".5"),
        ("1,5e3", GERMAN, b"1.5e3"),
        ("1.5", GERMAN, UNREADABLE_TEXT),
        ("12.34", GERMAN, UNREADABLE_TEXT),
        ("1,234.5", GERMAN, b"1,234.5"),
        ("inf", GERMAN, b"inf"),
        ("true", GERMAN, b"true"),
        ("", GERMAN, b""),
        ("1 234,5", NumberSigns(decimal=",", thousands=" "), b"1234.5"),
        ("1\u00a0234,5", NumberSigns(decimal=",", thousands=" "), b"1234.5"),
        ("1\u202f234", NumberSigns(decimal=",", thousands=" "), b"1234"),
        ("1'234.5", NumberSigns(thousands="'"), b"1234.5"),
        ("1’234.5", NumberSigns(thousands="'"), b"1234.5"),
        ("12,5 %", NumberSigns(decimal=",", symbol="%"), b"12.5"),
        ("12,5\u00a0%", NumberSigns(decimal=",", symbol="%"), b"12.5"),
        ("€ 3", NumberSigns(symbol="€"), b"3"),
        ("-€3.20", NumberSigns(symbol="€"), b"-3.20"),
        ("12,5 $", NumberSigns(decimal=",", symbol="%"), b"12,5 $"),
        ("1.5", NumberSigns(decimal=","), UNREADABLE_TEXT),
    ],
)
def test_numbers_are_respelled_by_declared_signs(text: str, signs: NumberSigns, plain: bytes) -> None:
    assert respell([text], signs) == [plain]


@given(
    st.lists(st.one_of(st.binary(max_size=8), st.text("0123456789.,-+eE% '", max_size=9)), max_size=5), st.booleans()
)
def test_each_cell_is_respelled_by_itself(cells: list[bytes | str], large: bool) -> None:
    signs = NumberSigns(decimal=",", thousands=".", symbol="%")
    raw = [cell.encode() if isinstance(cell, str) else cell for cell in cells]
    kind = pa.large_binary() if large else pa.binary()
    change = respell_column(signs, ["-9", "k.A."])

    together = change(pa.array(raw, kind)).to_pylist()

    assert together == [change(pa.array([cell], kind)).to_pylist()[0] for cell in raw]


def test_codes_for_missing_become_null_in_texts_numbers_and_categories() -> None:
    change = respell_column(NumberSigns(), ["-9", "k.A."])

    assert change(pa.array(["-9", " k.A. ", "-90", None])).to_pylist() == [None, None, b"-90", None]
    assert change(pa.array([-9, 3, None])).to_pylist() == [None, 3, None]
    assert change(pa.array([-9.0, 3.5])).to_pylist() == [None, 3.5]
    assert change(pa.array(["-9", "x"]).dictionary_encode()).to_pylist() == [None, b"x"]


def test_a_code_that_is_a_value_of_an_attribute_stays_one() -> None:
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nfile: {missing: -9}\nattributes:\n"
        "  degrees: {kind: integer, low: -20, high: 40, missing: true}\n"
        "  age: {kind: integer, low: 0, high: 9, missing: true}\n"
    )
    table = pa.table({"degrees": ["-9", "3"], "age": ["-9", "3"]})
    (batch,) = open_declared(table, schema).batches(["degrees", "age"])

    assert Codec(schema).encode(batch).tolist() == [[11, 10], [23, 3]]


# ── engines ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "kind", ["memory", "stream", pytest.param("spark", marks=[pytest.mark.java, pytest.mark.check])]
)
def test_all_engines_read_an_office_file_as_the_schema_declares(tmp_path: Path, kind: Any) -> None:
    schema = Schema.from_yaml(SCHEMA)
    path = write_office_file(tmp_path / "office.csv", 200)
    source = open_table(str(path), kind=kind, syntax=schema.syntax)
    engine = open_engine(source, schema, kind=kind, key=bytes(16))
    names = Codec(schema).names
    tables = engine.count([(axis,) for axis in range(len(names))], Recoding.fine(Codec(schema)))
    by_name = dict(zip(names, tables, strict=True))

    _, *cells = csv.reader(path.read_text("cp1252").splitlines(), delimiter=";")
    ages = np.array([int(row[4]) for row in cells])
    assert by_name["alter"].tolist() == [*np.bincount(ages[ages >= 0], minlength=111).tolist(), int((ages == -9).sum())]
    assert by_name["bezirk"].tolist() == [sum(row[5] == name for row in cells) for name in schema["bezirk"].labels()]
    assert by_name["betrag"][-1] == sum(row[7] == "k.A." for row in cells)
    assert by_name["anteil"].sum() == 200
    assert by_name["anteil"][0] < 5, "percentages are read, so few are the lowest value"
    assert by_name["frage_01"].tolist()[-1] == sum(row[17] in ("-8", "-9") for row in cells)


def test_a_query_on_an_office_file_reads_its_text_in_the_declared_encoding(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    schema = Schema.from_yaml(SCHEMA)
    path = write_office_file(tmp_path / "office.csv", 50)
    source = open_declared(str(path), schema, query="SELECT * FROM data WHERE bezirk = 'Köln'")
    cells = [batch.column("betrag").to_pylist() for batch in source.batches(["bezirk", "betrag"])]

    amounts = [cell for part in cells for cell in part]
    assert 0 < len(amounts) < 50
    assert all(cell is None or float(cell) >= 0 for cell in amounts)


# ── dates and times ──────────────────────────────────────────────────────────────────────────────────────────


def test_of_several_formats_the_first_that_fits_a_cell_is_used() -> None:
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n  d: {kind: datetime, start: 2024-01-01, end: 2024-12-31, missing: true, "
        'format: ["%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"]}\n  t: {kind: time, format: ["%H.%M", "%H%M"], missing: true}\n'
    )
    table = pa.table(
        {
            "d": ["02.01.2024", "02/01/2024", "01/31/2024", "2024-02-01", "31.02.2024"],
            "t": ["8.30", "0830", "08:30", "8:30 pm", "25.00"],
        }
    )

    codes = Codec(schema).encode(table)

    assert codes[:, 0].tolist() == [1, 1, 30, 31, 366]
    assert codes[:, 1].tolist() == [510, 510, 510, 20 * 60 + 30, 1440]
