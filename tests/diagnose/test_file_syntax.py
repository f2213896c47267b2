"""What the draft and the check of a schema find out about how a file is written."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsyn
from dpsyn.cli.main import run
from dpsyn.diagnose.file_syntax import detect_mixed_formats
from dpsyn.errors import SourceError
from tests.office_file import office_header, write_office_file


def draft(data: Any, **options: Any) -> dpsyn.Schema:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return dpsyn.draft_schema(data, **options).to_schema()


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def test_an_office_file_is_drafted_as_it_is_meant(tmp_path: Path) -> None:
    path = write_office_file(tmp_path / "office.csv")

    schema = draft(path)

    assert schema.file == dpsyn.FileSyntax(
        encoding="cp1252", separator=";", decimal=",", thousands=".", missing=("k.A.",), provenance="data"
    )
    assert schema.names == tuple(office_header())
    kinds = ("integer", "real", "real", "time", "datetime", "datetime")
    names = ("alter", "betrag", "anteil", "zeit", "geburtsdatum", "entlassung")
    assert tuple(schema[name].kind for name in names) == kinds
    assert schema["bezirk"].labels() == ("Aachen", "Bonn", "Düsseldorf", "Köln", "Münster")
    assert schema["geschlecht"].labels() == ("d", "m", "w", "missing")
    assert schema["frage_01"].labels() == ("1", "2", "3", "4", "5", "missing")
    fit = dpsyn.check_table(schema, path)
    assert {entry.name: entry.misplaced for entry in fit.attributes if entry.misplaced} == {}
    assert fit.remarks == ()


def test_what_was_detected_must_be_approved_like_everything_else(tmp_path: Path) -> None:
    data = write(tmp_path / "t.csv", "a;b\n1,5;x\n2,5;y\n")
    path = tmp_path / "s.yaml"
    dpsyn.draft_schema(data).save(path)
    assert dpsyn.Schema.load(path).unapproved_statements()[0] == "file"

    dpsyn.approve_schema(path, ["file"], because="the export's settings")
    named = dpsyn.Schema.load(path)
    assert named.file is not None
    assert (named.file.provenance, named.file.because) == ("approved", "the export's settings")
    dpsyn.approve_schema(path, because="code book", everything=True, as_drafted=True)

    assert dpsyn.Schema.load(path).unapproved_statements() == ()
    assert "file: drafted from the data, and declared public because: the export's settings" in (
        dpsyn.Schema.load(path).declared_public()
    )


def test_a_draft_names_the_line_that_is_not_utf_8_and_its_likely_encoding(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,b\n1,x\n2,Müller\n", "cp1252")

    with pytest.warns(UserWarning, match=r"Line 3 is not UTF-8; it looks like windows-1252 \(cp1252\)"):
        text = dpsyn.draft_schema(path).to_yaml()

    assert "Müller" in text


def test_a_check_names_the_line_that_is_not_utf_8_and_what_to_declare(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "b\nx\nMüller\n", "cp1252")
    schema = dpsyn.Schema(attributes=(dpsyn.Categorical(name="b", values=("x", "Müller")),))

    fit = dpsyn.check_table(schema, path)

    assert len(fit.remarks) == 1
    assert fit.remarks[0].startswith("line 3 is not UTF-8")
    assert "file: {encoding: cp1252}" in fit.remarks[0]
    assert fit.attributes[0].unreadable == 1


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "cp850", "utf-16", "utf-8"])
def test_letters_survive_whatever_the_encoding(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "t.csv", "größe;name\n" + "1;Müller\n2;Schäfer\n" * 5, encoding)

    schema = draft(path, encoding="latin-1" if encoding == "latin-1" else None)

    assert schema.names == ("größe", "name")
    assert set(schema["name"].labels()) == {"Müller", "Schäfer"}


def test_what_is_stated_overrules_what_would_be_detected(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a|b,c\n1.234|5\n2.345|-9\n3.456|4\n")

    schema = draft(path, separator="|", decimal=",", missing=["4"])

    assert schema.names == ("a", "b,c")
    assert schema.file == dpsyn.FileSyntax(separator="|", decimal=",", thousands=".", missing=("4",), provenance="data")
    assert schema["b,c"].has_missing


@pytest.mark.parametrize(
    ("cells", "kind", "fields"),
    [
        (["1,5", "2,25", "100,0"], "real", {"decimals": 2}),
        (["1.234.567,5", "2,25"], "real", {}),
        (["1,234.50", "2.25", "12,345.00"], "real", {}),
        (["1 234,5", "2,25"], "real", {}),
        (["1'234.5", "2.25"], "real", {}),
        ([f"{number} %" for number in range(60)], "integer", {"symbol": "%"}),
        (["$12.50", "$13.75", "$1,299.00"], "real", {"symbol": "$"}),
    ],
)
def test_signs_of_numbers_are_detected(cells: list[str], kind: str, fields: dict[str, Any]) -> None:
    frame = pd.DataFrame({"x": cells * 20, "y": "z"})
    schema = draft(frame)

    assert schema["x"].kind == kind
    assert {name: getattr(schema["x"], name) for name in fields} == fields
    assert dpsyn.check_table(schema, frame).attributes[0].unreadable == 0


def test_plain_tables_declare_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,b,v,d\n" + "1.5,x,1.2.3,01.02.2024\n-2.25,y,1.2.4,03.04.2024\n" * 10)

    schema = draft(path)

    assert schema.file is None


def test_negative_numbers_are_no_codes_where_others_are_negative(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "celsius,b\n" + "".join(f"{number},x\n" for number in range(-12, 30)))

    assert draft(path).file is None


def test_a_column_with_points_in_a_file_with_commas_declares_its_sign(tmp_path: Path) -> None:
    lines = "".join(f"{n},{n % 10}5;{n}.25\n" for n in range(50))
    path = write(tmp_path / "t.csv", "a;latitude\n" + lines)

    schema = draft(path)

    assert schema.file is not None
    assert schema.file.decimal == ","
    assert schema["latitude"].decimal == "."  # type: ignore[union-attr]
    assert all(not entry.misplaced for entry in dpsyn.check_table(schema, path).attributes)


def test_mixed_formats_are_found_and_the_most_frequent_comes_first() -> None:
    found = detect_mixed_formats(["2024-01-31", "31.01.2024", "28.02.2024", "02/28/2024"])

    assert found is not None
    assert found[0] == ["%d.%m.%Y", "%m/%d/%Y"]
    assert detect_mixed_formats(["31.01.2024", "soon"]) is None
    assert detect_mixed_formats([]) is None


# ── names of columns ─────────────────────────────────────────────────────────────────────────────────────────


def test_all_problems_of_a_header_are_reported_at_once_with_positions(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,b,a,,c,b,,a\n1,2,3,4,5,6,7,8\n")

    with pytest.raises(SourceError) as error:
        dpsyn.draft_schema(path)

    message = str(error.value)
    assert "3 columns 'a' (columns 1, 3, 8)" in message
    assert "2 columns 'b' (columns 2, 6)" in message
    assert "columns 4, 7 have no name" in message


def test_many_missing_columns_are_counted_and_the_file_is_described(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "x,y\n1,2\n")
    schema = dpsyn.Schema(attributes=tuple(dpsyn.Boolean(name=f"frage_{number}") for number in range(58)))

    fit = dpsyn.check_table(schema, path)

    assert len(fit.problems) == 7
    assert fit.problems[-2:] == (
        "and 53 more columns of the schema are missing or not unique",
        "the table has 2 columns: x, y",
    )


def test_the_command_line_takes_what_is_known_about_a_file(tmp_path: Path) -> None:
    data = write(tmp_path / "t.csv", "a;b\n1,5;x\n2,5;ü\n", "cp850")
    target = tmp_path / "s.yaml"
    arguments = ["schema", "draft", str(data), "-o", str(target), "--encoding", "cp850", "--separator", ";"]

    code = run([*arguments, "--decimal", ",", "--missing", "-9"])

    assert code == 0
    assert dpsyn.Schema.load(target).file == dpsyn.FileSyntax(
        encoding="cp850", separator=";", decimal=",", missing=("-9",), provenance="data"
    )


def test_an_unknown_encoding_is_the_users_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write(tmp_path / "t.csv", "a;b\n1;2\n")

    code = run(["schema", "draft", str(data), "-o", "-", "--encoding", "klingon"])

    assert code == 2
    assert "klingon" in capsys.readouterr().err
