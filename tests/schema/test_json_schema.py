"""The JSON Schema for editors and the reader of schema files accept the same structure."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dpsyn.errors import SchemaError
from dpsyn.schema import Schema
from dpsyn.schema.files import ATTRIBUTE_KINDS, RULE_KINDS
from dpsyn.schema.json_schema import JSON_SCHEMA_PATH, build_json_schema, format_json_schema
from dpsyn.schema.yaml_io import read_yaml

EVERYTHING = """\
dpsyn_schema: 1
dataset: people
expected_size: 30000
neighbors: replace
privacy_unit: {id: person, max_rows: 3}
attributes:
  person: {kind: identifier, output: fresh}
  sex: {kind: categorical, values: [F, M, 3, 4.5], other: X, missing: true, description: at birth}
  ward: {kind: categorical, codes: 6, other: 0, provenance: data, because: seen}
  grade: {kind: ordinal, values: [low, mid, high], missing: [NA, "-"]}
  smokes: {kind: boolean, other: false, missing: "?"}
  age: {kind: integer, low: 0, high: 120, bins: [0, 18, 65], spikes: [99], other: 0}
  income: {kind: real, low: 0, high: 1000000, decimals: 2, bins: 20}
  wage: {kind: real, low: 0.5, high: 1000000.5, decimals: 2}
  born: {kind: datetime, start: 1900-01-01, end: 2020-12-31, resolution: month, format: "%d.%m.%Y"}
  seen: {kind: datetime, start: 1900-01-01, end: 2020-12-31, bins: [1900-01-01, 2000-01-01]}
  job: {kind: open, other: rest}
  area: {kind: categorical, values: [in, out]}
derive:
  area: {from: ward, mapping: {0: in, 1: out}, otherwise: in, provenance: public, because: atlas}
measure_together:
  body: [sex, smokes]
rules:
  - {rule: impossible, where: {age: 0..14, smokes: true, sex: [F, M]}}
  - {rule: order, attributes: [born, seen], strict: true, provenance: data}
  - {rule: sum, total: income, parts: [wage]}
  - {rule: total, count: 15000, where: {sex: F}, because: census}
  - {rule: total, count: 30000}
groups: [sex, ward]
"""
LEAST = "dpsyn_schema: 1\nattributes: {a: {kind: boolean}}\n"
EMPTY_TOP = LEAST + "dataset:\nexpected_size:\nneighbors:\nprivacy_unit:\nderive:\nmeasure_together:\nrules:\ngroups:\n"
PAIRS = """\
dpsyn_schema: 1
attributes: {a: {kind: categorical, codes: 2}, b: {kind: categorical, codes: 2}}
derive: {b: {from: a, mapping: {0: 1, 1: 0}}}
rules: [{rule: total, count: 3, where: {a: 0}}, {rule: impossible, where: {a: [1]}}]
"""
NUMBERED = 'dpsyn_schema: 1\nattributes: {1: {kind: ordinal, codes: 3}, "no": {kind: open, missing: []}}\n'


def complaints(text: str) -> list[str]:
    """What the JSON Schema finds wrong with a schema file."""
    return [error.message for error in Draft202012Validator(build_json_schema()).iter_errors(read_yaml(text)[0])]


def test_the_generated_schema_is_itself_valid() -> None:
    schema = build_json_schema()

    Draft202012Validator.check_schema(schema)

    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


@pytest.mark.parametrize("text", [EVERYTHING, LEAST, EMPTY_TOP, PAIRS, NUMBERED])
def test_what_the_reader_accepts_is_valid(text: str) -> None:
    Schema.from_yaml(text)

    result = complaints(text)

    assert result == []


@pytest.mark.parametrize("text", [EVERYTHING, LEAST, PAIRS, NUMBERED])
def test_what_the_writer_writes_is_valid(text: str) -> None:
    written = Schema.from_yaml(text).to_yaml()

    result = complaints(written)

    assert result == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("dpsyn_schema: 1", "dpsyn_schema: 2"),
        ("dpsyn_schema: 1\n", ""),
        ("expected_size", "expected_sise"),
        ("expected_size: 30000", "expected_size: many"),
        ("neighbors: replace", "neighbors: swap"),
        ("max_rows: 3", "max_row: 3"),
        ("max_rows: 3", "max_rows: three"),
        ("kind: ordinal", "kind: orderly"),
        ("kind: ordinal, ", ""),
        ("{kind: open, other: rest}", "open"),
        ("low: 0, high: 120", "low: 0"),
        ("low: 0, high: 120", "low: 0, high: old"),
        ("low: 0, high: 120", "low: 0, high: ~"),
        ("low: 0, high: 120", "low: 0, hihg: 120"),
        ("output: fresh", "output: new"),
        ("resolution: month", "resolution: moon"),
        ("provenance: data", "provenance: seen"),
        ("decimals: 2", "decimals: [2]"),
        ("codes: 6", "name: ward, codes: 6"),
        ("from: ward", "source: ward"),
        ("0: in", "0: [in]"),
        ("body: [sex, smokes]", "body: sex"),
        ("rule: impossible", "rule: unlikely"),
        ("strict: true", "strict: 1"),
        ("count: 15000", "count: some"),
        ("where: {sex: F}", "where: {sex: {}}"),
        ("where: {sex: F}", "where: sex"),
        ("because: census", "because: 2024"),
        ("dataset: people", "weight: income"),
    ],
)
def test_a_mistake_is_detected_by_the_json_schema_and_by_the_reader(right: str, wrong: str) -> None:
    text = EVERYTHING.replace(right, wrong)

    result = complaints(text)

    assert text != EVERYTHING
    assert result != []
    with pytest.raises(SchemaError):
        Schema.from_yaml(text)


@pytest.mark.parametrize(
    "name", [*(k.__name__ for k in ATTRIBUTE_KINDS.values()), *(r.__name__ for r in RULE_KINDS.values())]
)
def test_every_field_of_every_entry_is_explained(name: str) -> None:
    entry: dict[str, Any] = build_json_schema()["$defs"][name]

    unexplained = [key for key, field in entry["properties"].items() if not field.get("description")]

    assert entry["description"]
    assert unexplained == [next(iter(entry["properties"]))]  # the tag, whose word is the entry's own name


def test_an_explanation_keeps_all_its_lines() -> None:
    fields = build_json_schema()["$defs"]["Integer"]["properties"]

    assert fields["provenance"]["description"] == (
        "public if everything in this entry is known without the data; data if it was taken from the data, in which "
        "case a release refuses it; approved if it was drafted from the data and then declared public, which the "
        "certificate states."
    )


def test_a_renamed_field_is_explained_under_the_name_it_has_in_files() -> None:
    fields = build_json_schema()["$defs"]["Derive"]["properties"]

    assert fields["from"]["description"] == "the attribute it is computed from."


def test_an_empty_renamed_field_is_explained_by_the_reader() -> None:
    text = EVERYTHING.replace("from: ward", "from: ~")

    with pytest.raises(SchemaError, match=r"from is empty; fill it in: the attribute it is computed from$"):
        Schema.from_yaml(text)


def test_the_file_in_the_package_is_up_to_date() -> None:
    stored = JSON_SCHEMA_PATH.read_text(encoding="utf-8")

    assert stored == format_json_schema(), "the types have changed; run: python -m dpsyn.schema.json_schema"
