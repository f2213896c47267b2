"""Schema files: a written schema reads back, and an error names its line and how to fix it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given

from dpsyn.errors import OutputError, SchemaError
from dpsyn.schema import Categorical, Integer, Schema, files
from tests.strategies import schemas

EXAMPLE = """\
dpsyn_schema: 1
dataset: census 2020
expected_size: 100000
neighbors: replace

privacy_unit:
  id: person
  max_rows: 3

attributes:
  person:
    kind: identifier
    output: fresh
  age:
    kind: integer
    low: 0
    high: 120
    bins: [0, 18, 65]
  adult:
    kind: boolean
  country:
    kind: categorical
    values: [NO, SE, '09', 9]
    other: else
    missing: '-'
  start:
    kind: datetime
    start: 2016-01-01
    end: 2016-12-31
  end:
    kind: datetime
    start: 2016-01-01
    end: 2016-12-31
    provenance: data

derive:
  adult:
    from: age
    mapping:
      0..17: false
      18..120: true

measure_together:
  where and when: [country, start]

rules:
  - rule: order
    attributes: [start, end]
  - rule: impossible
    where: {age: 0..9, country: [NO, missing]}
    because: no children abroad
  - rule: total
    count: 50000
    where: {country: SE}
"""


@given(schemas())
def test_a_schema_reads_back_from_its_own_text_as_the_same_schema(schema: Schema) -> None:
    text = schema.to_yaml()

    again = Schema.from_yaml(text)

    assert again == schema
    assert again.to_yaml() == text


def test_a_file_with_everything_is_read() -> None:
    schema = Schema.from_yaml(EXAMPLE)

    assert schema.names == ("person", "age", "adult", "country", "start", "end")
    assert schema["country"].labels() == ("NO", "SE", "09", "9", "else", "missing")
    assert schema.derive[0].mapping == (("0..17", False), ("18..120", True))
    assert schema.unapproved_statements() == ("attribute 'end'",)
    assert Schema.from_yaml(schema.to_yaml()) == schema


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_endings_and_a_byte_order_mark_do_not_matter(tmp_path: Path, newline: str, mark: str) -> None:
    path = tmp_path / "schema.yaml"
    path.write_bytes((mark + EXAMPLE.replace("\n", newline)).encode())

    schema = Schema.load(path)

    assert schema == Schema.from_yaml(EXAMPLE)


def test_anchors_and_aliases_save_writing() -> None:
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n  a: {kind: categorical, values: &v [x, y]}\n  b: {kind: ordinal, values: *v}\n"
    )

    assert schema["a"].labels() == schema["b"].labels() == ("x", "y")


def test_a_saved_file_loads_as_the_same_schema(tmp_path: Path) -> None:
    schema = Schema.from_yaml(EXAMPLE)

    schema.save(tmp_path / "schema.yaml")

    assert Schema.load(str(tmp_path / "schema.yaml")) == schema


def test_saving_into_a_missing_folder_is_refused(tmp_path: Path) -> None:
    schema = Schema.from_yaml(EXAMPLE)

    with pytest.raises(OutputError, match="there is no folder"):
        schema.save(tmp_path / "none" / "schema.yaml")


def test_twenty_thousand_values_are_written_and_read() -> None:
    schema = Schema(attributes=(Categorical(name="a", values=tuple(f"{n:05}" for n in range(20_000))),))

    again = Schema.from_yaml(schema.to_yaml())

    assert again == schema


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────

TWO = "dpsyn_schema: 1\nattributes:\n  a: {kind: categorical, codes: 3}\n  b: {kind: integer, low: 0, high: 9}\n"


@pytest.mark.parametrize(
    ("text", "line", "phrase"),
    [
        ("", None, "its first line should be dpsyn_schema: 1"),
        ("- a\n- b\n", None, "its first line should be dpsyn_schema: 1"),
        ("attributes: {}\n", None, "its first line should be dpsyn_schema: 1"),
        ("x: 1\ndpsyn_schema: 7\n", 2, "this schema has format 7; this version of DPSyn reads format 1"),
        ("dpsyn_schema: 1\n", None, "a schema needs at least one attribute"),
        ("dpsyn_schema: 1\nattributes:\n", 2, "a schema needs at least one attribute"),
        ("dpsyn_schema: 1\nattributes: [a]\n", 2, "attributes must be a mapping from names to descriptions"),
        ("dpsyn_schema: 1\natributes: {}\n", 2, "there is no field 'atributes'; did you mean attributes?"),
        (TWO + "weight: w\n", 5, "weight: not supported yet; remove it"),
        (TWO + "household: h\n", 5, "household: not supported yet; remove it"),
        (TWO + "expected_size: 0\n", 5, "expected_size is 0; it must be at least 1"),
        (TWO + "privacy_unit: {id: nobody}\n", 5, "'nobody' must be of kind identifier"),
        (
            TWO + "privacy_unit:\n  id: a\n",
            6,
            "'a' must be of kind identifier, which is never measured",
        ),
        (TWO + "privacy_unit:\n  id: a\n  max_rows: 0\n", 7, "max_rows is 0; give at least 1"),
        # attributes
        (TWO + "  a: {kind: boolean}\n", 5, "'a' occurs twice; the first is on line 3"),
        (TWO + "  c:\n", 5, "attribute 'c' needs kind: one of categorical, ordinal, boolean"),
        (TWO + "  c: [kind, boolean]\n", 5, "attribute 'c' needs kind: one of"),
        (TWO + "  c:\n    kind: intger\n", 6, "there is no kind 'intger'"),
        (TWO + "  c:\n    kind: intger\n", 6, "did you mean integer?"),
        (TWO + "  c:\n    kind: [boolean]\n", 6, "there is no kind"),
        (TWO + "  '': {kind: boolean}\n", 5, "give it the name of its column"),
        (TWO + "  c:\n    kind: integer\n    low: 0\n", 5, "attribute 'c': high is not given"),
        (TWO + "  c:\n    kind: integer\n    low: 0\n    hihg: 3\n", 8, "no field 'hihg'; did you mean high?"),
        (TWO + "  c:\n    kind: integer\n    low:\n    high: 3\n", 7, "low is empty; fill it in: the lowest possible"),
        (TWO + "  c:\n    kind: integer\n    low: 5\n    high: 3\n", 7, "low (5) is above high (3)"),
        (TWO + "  c:\n    kind: integer\n    low: true\n    high: 3\n", 7, "a whole number"),
        (TWO + "  c:\n    kind: integer\n    low: 0.5\n    high: 3\n", 7, "a whole number"),
        (TWO + "  c:\n    kind: integer\n    low: zero\n    high: 3\n", 7, "a whole number"),
        (TWO + "  c:\n    kind: integer\n    low: 0\n    high: 1e300\n", 8, "a whole number"),
        (TWO + "  c:\n    kind: integer\n    low: 0\n    high: 3\n    bins: [0, 7]\n", 9, "bins: 7 is outside 0 … 3"),
        (TWO + "  c:\n    kind: integer\n    low: 0\n    high: 3\n    bins: true\n", 9, "a whole number or a list"),
        (TWO + "  c:\n    kind: real\n    low: .nan\n    high: 3\n", 7, "low is nan; it must be a finite number"),
        (TWO + "  c:\n    kind: real\n    low: 0\n    high: 1e400\n", 8, "high is inf; it must be a finite number"),
        (TWO + f"  c:\n    kind: real\n    low: 0\n    high: {10**400}\n", 8, "high: number out of range"),
        (TWO + "  c:\n    kind: real\n    low: 0\n    high: 1\n    decimals: 20\n", 9, "it must be 0 … 15"),
        (TWO + "  c:\n    kind: datetime\n    start: 31.1.2016\n    end: 2016-12-31\n", 7, "write it as 2016-01-31"),
        (TWO + "  c:\n    kind: categorical\n    values:\n    - x\n    - y\n    - x\n", 10, "'x' is listed twice"),
        (TWO + "  c:\n    kind: categorical\n    values: [1, '1']\n", 7, "'1' is listed twice"),
        (TWO + "  c:\n    kind: categorical\n    values: [1.0, 1]\n", 7, "'1' is listed twice"),
        (TWO + "  c:\n    kind: categorical\n    values:\n    - x\n    - true\n", 9, "put them in quotes"),
        (TWO + "  c:\n    kind: categorical\n    values:\n    - x\n    -\n", 9, "true or false"),
        (TWO + "  c:\n    kind: categorical\n    values: x\n", 7, "a list"),
        (TWO + "  c:\n    kind: categorical\n", 5, "give either values: [...] or codes: n"),
        (TWO + "  c:\n    kind: categorical\n    codes: true\n", 7, "a whole number"),
        (TWO + "  c:\n    kind: categorical\n    values: [x]\n    missing: x\n", 8, "a spelling of missing"),
        (TWO + "  c:\n    kind: boolean\n    name: d\n", 7, "attribute 'c': there is no field 'name'"),
        (TWO + "derive:\n  b:\n    from: a\n    name: c\n    mapping: {}\n", 8, "there is no field 'name'"),
        (
            TWO.replace("schema: 1", "schema: true"),
            1,
            "this schema has format True; this version of DPSyn reads format 1",
        ),
        (
            TWO.replace("schema: 1", "schema: 1.0"),
            1,
            "this schema has format 1.0; this version of DPSyn reads format 1",
        ),
        (
            TWO.replace("schema: 1", "schema: '1'"),
            1,
            "this schema has format '1'; this version of DPSyn reads format 1",
        ),
        (TWO + "expected_size: true\n", 5, "a whole number"),
        (TWO + "expected_size: 1e6\n", 5, "a whole number"),
        (TWO + "dataset: 2020\n", 5, "is not text; put it in quotes"),
        (TWO + "neighbors: both\n", 5, "neighbors: there is no 'both'; use add-remove, replace"),
        (TWO + "privacy_unit: person\n", 5, "a mapping"),
        (TWO + "rules: {a: 1}\n", 5, "a list"),
        (
            TWO + "  c: {kind: boolean, missing: -9}\n",
            5,
            "is not true or false or text or a list; put it in quotes",
        ),
        (TWO + "  c: {kind: boolean, missing: [-9]}\n", 5, "is not text; put it in quotes"),
        (TWO + "  c: {kind: boolean, provenance: guess}\n", 5, "provenance: there is no 'guess'; use public, data"),
        (TWO + "  c: {kind: identifier, output: keep}\n", 5, "output: there is no 'keep'; use drop, fresh"),
        (
            TWO + "  c: {kind: datetime, start: 2016-01-01, end: 2016-12-31, resolution: week}\n",
            5,
            "resolution: there is no 'week'; use year, month, day, hour, minute, second, millisecond, microsecond",
        ),
        (
            TWO + "rules:\n  - rule: impossible\n    where: a\n",
            7,
            "where must be a mapping from attributes to conditions",
        ),
        (
            TWO + "rules:\n  - rule: impossible\n    where: [[a, 1], [a, 2]]\n",
            7,
            "where must be a mapping from attributes to",
        ),
        (
            TWO + "derive:\n  b:\n    from: a\n    mapping: [[0, 1], [0, 2]]\n",
            8,
            "mapping must be a mapping from values",
        ),
        # derive
        (TWO + "derive:\n  b: a\n", 6, "derive 'b' needs from: and mapping:"),
        (TWO + "derive:\n  b: {from: 5, mapping: {0: 1}}\n", 6, "is not text; put it in quotes"),
        (TWO + "derive:\n  b: {mapping: {0: 1}, otherwise: 2}\n", 6, "derive 'b': from is not given"),
        (TWO + "derive:\n  b: {from: c, mapping: {0: 1}}\n", 6, "there is no attribute 'c'; there are a, b"),
        (TWO + "derive:\n  c: {from: a, mapping: {0: 1}}\n", 6, "there is no attribute 'c'"),
        (
            TWO + "derive:\n  b:\n    from: a\n    mapping: {0: 1, 1: 2}\n",
            8,
            "leaves out 1 values of 'a'; list them, or add",
        ),
        (
            TWO + "derive:\n  b:\n    from: a\n    mapping:\n      7: 1\n",
            None,
            "'7' is not a value of 'a'; it has 0, 1, 2",
        ),
        (TWO + "derive:\n  b:\n    from: a\n    mapping:\n      0: 99\n", None, "99 is outside 0 … 9"),
        (TWO + "derive:\n  b:\n    from: a\n    mapping: {0: 1}\n    otherwise: 99\n", 9, "99 is outside 0 … 9"),
        (
            TWO + "derive:\n  b:\n    from: b\n    mapping: {0: 1}\n",
            6,
            "'b' is derived from 'b', which is itself derived",
        ),
        # measure_together
        (TWO + "measure_together: [a, b]\n", 5, "measure_together must be a mapping from names to descriptions"),
        (TWO + "measure_together:\n  both: [a, c]\n", 6, "there is no attribute 'c'; there are a, b"),
        (TWO + "measure_together:\n  both: [a]\n", 6, "'both' needs at least two different attributes"),
        (TWO + "measure_together:\n  both: [a, a]\n", 6, "'both' needs at least two different attributes"),
        (TWO + "measure_together:\n  a: [a, b]\n", 6, "'a' is an attribute; give the joint attribute another name"),
        (
            TWO + "measure_together:\n  x: [a, b]\n  y: [b, a]\n",
            7,
            "'y' uses an attribute that is part of another joint attribute",
        ),
        (TWO + "measure_together:\n  both: a\n", 6, "a list"),
        # groups
        (TWO + "groups: a\n", 5, "a list"),
        (TWO + "groups: [a, c]\n", 5, "groups: 'c' is not compared"),
        (TWO + "groups: [a, b, a]\n", 5, "groups: 'a' is named twice"),
        # rules
        (TWO + "rules:\n  - {where: {a: 0}}\n", 6, "a rule needs rule: one of impossible, order, sum, total"),
        (TWO + "rules:\n  - rule: imposible\n", 6, "did you mean impossible?"),
        (TWO + "rules:\n  - rule: order\n    attributes: [b]\n", 6, "at least two different attributes"),
        (TWO + "rules:\n  - rule: order\n    attributes: [a, b]\n", 6, "compares numbers with numbers, dates"),
        (TWO + "rules:\n  - rule: sum\n    total: b\n    parts: [b]\n", 6, "the total must not be one of them"),
        (TWO + "rules:\n  - rule: sum\n    total: b\n    parts: [a]\n", 6, "attributes of kind integer or real"),
        (TWO + "rules:\n  - rule: total\n    count: -1\n", 7, "count is -1; it cannot be negative"),
        (TWO + "rules:\n  - rule: total\n    count: true\n", 7, "a whole number"),
        (TWO + "rules:\n  - rule: total\n", 6, "count is not given"),
        (TWO + "rules:\n  - rule: impossible\n    where: {}\n", 6, "at least one condition"),
        (TWO + "rules:\n  - rule: impossible\n    where:\n      a: 0\n      b: 10\n", 9, "10 is outside 0 … 9"),
        (
            TWO + "rules:\n  - rule: impossible\n    where:\n      a: x\n",
            8,
            "'x' is not a value of 'a'; it has 0, 1, 2",
        ),
        (TWO + "rules:\n  - rule: impossible\n    where:\n      c: x\n", 6, "there is no attribute 'c'"),
        (TWO + "rules:\n  - rule: order\n    attributes: [b, b2]\n", 6, "there is no attribute 'b2'"),
    ],
)
def test_an_error_names_the_line_and_how_to_fix_it(text: str, line: int | None, phrase: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_yaml(text)

    assert phrase in str(caught.value)
    if line is not None:
        assert str(caught.value).startswith(f"line {line}: ")


def test_an_error_in_a_file_names_the_file_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "people.yaml"
    path.write_text("dpsyn_schema: 1\nattributes:\n  a: {kind: intger}\n")

    with pytest.raises(SchemaError) as caught:
        Schema.load(path)

    assert str(caught.value).startswith(f"{path}, line 3: attribute 'a': there is no kind 'intger'")
    assert caught.value.path == ("attributes", "a", "kind")


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        (b"", ": this is not a DPSyn schema"),
        (b"\x89PNG\r\n\x1a\n", " is not UTF-8 text; check that it is the right file, and save it as UTF-8"),
        ("größe".encode("utf-16"), " is not UTF-8 text; check that it is the right file, and save it as UTF-8"),
        (b"age,sex\n12,F\n", ": this is not a DPSyn schema; its first line should be dpsyn_schema: 1"),
    ],
)
def test_a_file_that_is_no_schema_is_refused(tmp_path: Path, content: bytes, phrase: str) -> None:
    path = tmp_path / "people.yaml"
    path.write_bytes(content)

    with pytest.raises(SchemaError) as caught:
        Schema.load(path)

    assert str(caught.value).startswith(f"{path}{phrase}")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"none\.yaml cannot be read: no such file or directory"):
        Schema.load(tmp_path / "none.yaml")


def test_a_folder_is_no_schema_file(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be read: is a directory"):
        Schema.load(tmp_path)


def test_a_pipe_or_a_device_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")

    for path in (tmp_path / "pipe", tmp_path / "link"):
        with pytest.raises(SchemaError, match="cannot be read: it is a device or a pipe; give the name of a file"):
            Schema.load(path)


def test_a_file_too_large_for_a_schema_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_SCHEMA_BYTES", 1_000_000)
    (tmp_path / "large.yaml").write_text(TWO + "#" * 1_000_000)

    with pytest.raises(SchemaError, match=r"large\.yaml is larger than 1 MB, so it does not describe a table"):
        Schema.load(tmp_path / "large.yaml")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("x" * 5_000, "cannot be read: file name too long"),
        ("a\0b", "no file has such a name"),
        ("", "no path was given"),
    ],
)
def test_a_path_that_no_file_can_have_is_refused(path: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema.load(path)


def test_the_text_of_a_schema_is_readable() -> None:
    schema = Schema(
        attributes=(
            Integer(name="age", low=0, high=120, missing=True, because="code book"),
            Categorical(name="sex", values=("F", "M")),
        ),
        dataset="people",
    )

    text = schema.to_yaml()

    assert text == (
        "dpsyn_schema: 1\n"
        "dataset: people\n"
        "attributes:\n"
        "  age:\n"
        "    kind: integer\n"
        "    low: 0\n"
        "    high: 120\n"
        "    missing: true\n"
        "    because: code book\n"
        "  sex:\n"
        "    kind: categorical\n"
        "    values: [F, M]\n"
    )


@pytest.mark.parametrize(
    ("key", "suggestion"),
    [
        ("unit", "privacy_unit"),
        ("neighbours", "neighbors"),
        ("recode", "measure_together"),
        ("group", "groups"),
        ("columns", "attributes"),
        ("rows", "expected_size"),
    ],
)
def test_an_old_or_foreign_key_leads_to_the_right_one(key: str, suggestion: str) -> None:
    with pytest.raises(SchemaError, match=f"line 5: there is no field '{key}'; did you mean {suggestion}\\?"):
        Schema.from_yaml(TWO + f"{key}: x\n")


@pytest.mark.parametrize("key", ["rows", "max_row"])
def test_the_old_key_of_a_privacy_unit_leads_to_max_rows(key: str) -> None:
    with pytest.raises(SchemaError, match=f"privacy_unit: there is no field '{key}'; did you mean max_rows\\?"):
        Schema.from_yaml(TWO + f"privacy_unit: {{id: a, {key}: 3}}\n")


@pytest.mark.parametrize(
    ("given", "meant"), [("adult.yml", "adult.yaml"), ("adlut.yaml", "adult.yaml"), ("b.yaml", "")]
)
def test_a_file_that_does_not_exist_is_refused_with_the_name_most_like_it(
    tmp_path: Path, given: str, meant: str
) -> None:
    for name in ("adult.yaml", "people.csv"):
        (tmp_path / name).write_text("", "utf-8")

    with pytest.raises(SchemaError) as refused:
        Schema.load(tmp_path / given)

    hint = f"; did you mean {tmp_path / meant}?" if meant else ""
    assert str(refused.value) == f"{tmp_path / given} cannot be read: no such file or directory{hint}"


def test_the_text_of_a_schema_in_place_of_its_path_is_not_quoted() -> None:
    text = "dpsyn_schema: 1\nattributes:\n  name: {kind: categorical, values: [Zaphod]}\n" + "# long\n" * 1_000

    with pytest.raises(SchemaError, match=r"where its path is expected; read it with Schema.from_yaml") as refused:
        Schema.coerce(text)

    assert "Zaphod" not in str(refused.value)
