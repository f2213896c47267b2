"""Imports: existing metadata becomes a schema, and comments ask for the fields that it lacks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dpsyn.errors import SchemaError
from dpsyn.schema import Categorical, Schema
from dpsyn.schema.approval import approve_text
from dpsyn.schema.importers import import_schema
from dpsyn.schema.yaml_io import read_yaml


@pytest.fixture
def metadata(tmp_path: Path) -> Path:
    return tmp_path / "metadata.json"


def imported(path: Path, content: object) -> str:
    """The schema text for some JSON content."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return import_schema(path)


def refusal(path: Path, content: object) -> str:
    """The message with which some JSON content is refused."""
    with pytest.raises(SchemaError) as refused:
        imported(path, content)
    return str(refused.value)


def sdv(column: dict[str, Any], **table: Any) -> dict[str, Any]:
    return {"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "columns": {"x": column}, **table}


def frictionless(field: dict[str, Any], **schema: Any) -> dict[str, Any]:
    return {"fields": [{"name": "x", **field}], **schema}


def entry_of(text: str) -> Any:
    """The fields of the attribute x in a schema text."""
    return read_yaml(text)[0]["attributes"]["x"]


# ── domain files ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_domain_file_becomes_a_complete_schema(metadata: Path) -> None:
    text = imported(metadata, {"getting in/out of bed": 2, "income>50K": 1})

    schema = Schema.from_yaml(text)

    because = "metadata.json declares it"
    assert schema.attributes == (
        Categorical(name="getting in/out of bed", codes=2, other=0, provenance="data", because=because),
        Categorical(name="income>50K", codes=1, other=0, provenance="data", because=because),
    )
    assert len(schema.unapproved_statements()) == 2
    approved = Schema.from_yaml(approve_text(text, (), "published", everything=True))
    assert approved.unapproved_statements() == ()


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "2", None, [2], 10**7])
def test_a_size_that_is_no_count_is_refused_by_the_name_of_its_attribute(metadata: Path, size: object) -> None:
    message = refusal(metadata, {"age": 3, "sex": size})

    assert "'sex'" in message
    assert repr(size) in message


def test_words_of_other_formats_may_be_attributes_of_a_domain_file(metadata: Path) -> None:
    text = imported(metadata, {"columns": 2, "tables": 3, "fields": 4, "resources": 5})

    assert Schema.from_yaml(text).names == ("columns", "tables", "fields", "resources")


def test_a_repeated_attribute_is_refused(metadata: Path) -> None:
    metadata.write_text('{"age": 3, "age": 4}')

    with pytest.raises(SchemaError, match="'age' occurs twice"):
        import_schema(metadata)


# ── SDV ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ({"sdtype": "numerical", "computer_representation": "Int64"}, {"kind": "integer", "low": None, "high": None}),
        ({"sdtype": "numerical", "computer_representation": "UInt8"}, {"kind": "integer", "low": None, "high": None}),
        ({"sdtype": "numerical", "computer_representation": "Float"}, {"kind": "real", "low": None, "high": None}),
        ({"sdtype": "boolean"}, {"kind": "boolean"}),
        ({"sdtype": "categorical"}, {"kind": "open"}),
        ({"sdtype": "id", "regex_format": "[0-9]{8}"}, {"kind": "identifier"}),
        ({"sdtype": "email"}, {"kind": "identifier"}),
        ({"sdtype": "city", "pii": True}, {"kind": "identifier"}),
        ({"sdtype": "postcode", "pii": False}, {"kind": "open"}),
        ({"sdtype": "unknown"}, {"kind": "open"}),
        ({"sdtype": "datetime"}, {"kind": "datetime", "start": None, "end": None, "resolution": "day"}),
    ],
)
def test_every_type_of_sdv_has_a_kind(metadata: Path, column: dict[str, Any], expected: dict[str, Any]) -> None:
    text = imported(metadata, sdv(column))

    assert entry_of(text) == expected


@pytest.mark.parametrize(
    ("pattern", "resolution", "written"),
    [
        ("%Y-%m-%d", "day", False),
        ("%Y-%m-%dT%H:%M:%S", "second", False),
        ("%Y-%m-%d %H:%M:%S.%f", "second", False),
        ("%d %b %Y", "day", True),
        ("%m/%d/%y %I:%M %p", "second", True),
        ("%Y-%m", "month", True),
        ("%Y", "year", True),
    ],
)
def test_a_date_pattern_is_kept_unless_it_is_iso(metadata: Path, pattern: str, resolution: str, written: bool) -> None:
    text = imported(metadata, sdv({"sdtype": "datetime", "datetime_format": pattern}))

    assert entry_of(text)["resolution"] == resolution
    assert entry_of(text).get("format") == (pattern if written else None)


@pytest.mark.parametrize(
    ("pattern", "resolution"),
    [("%H:%M", "minute"), ("%R", "minute"), ("%H:%M:%S", "second"), ("%T", "second"), ("%I:%M %p", "minute")],
)
def test_a_pattern_without_a_date_is_a_time_of_day(metadata: Path, pattern: str, resolution: str) -> None:
    text = imported(metadata, sdv({"sdtype": "datetime", "datetime_format": pattern}))

    assert entry_of(text) == {"kind": "time", "resolution": resolution}
    assert Schema.from_yaml(text)["x"].kind == "time"


def test_a_time_of_day_in_a_pattern_that_cells_are_not_read_in_is_open(metadata: Path) -> None:
    text = imported(metadata, sdv({"sdtype": "datetime", "datetime_format": "%H%M"}))

    assert "kind: open  # times of day written as %H%M, which is not supported" in text


def test_a_number_of_unknown_representation_asks_whether_it_is_whole(metadata: Path) -> None:
    text = imported(metadata, sdv({"sdtype": "numerical"}))

    assert "kind: real  # or integer, if these are whole numbers\n" in text


def test_declared_orders_of_categories_become_ordinals(metadata: Path) -> None:
    text = imported(metadata, sdv({"sdtype": "categorical", "order": ["low", "high"]}))

    marks = {"provenance": "data", "because": "metadata.json declares it"}
    assert entry_of(text) == {"kind": "ordinal", "values": ["low", "high"], **marks}


@pytest.mark.parametrize("keys", [{"primary_key": "x"}, {"alternate_keys": ["x"]}, {"sequence_key": "x"}])
def test_keys_are_identifiers(metadata: Path, keys: dict[str, Any]) -> None:
    text = imported(metadata, sdv({"sdtype": "categorical"}, **keys))

    assert entry_of(text) == {"kind": "identifier"}


def test_a_part_of_a_joint_key_is_measured(metadata: Path) -> None:
    text = imported(metadata, sdv({"sdtype": "categorical"}, primary_key=["x", "y"]))

    assert entry_of(text) == {"kind": "open"}


def test_the_only_table_of_several_possible_is_taken(metadata: Path) -> None:
    content = {"METADATA_SPEC_VERSION": "V1", "tables": {"people": sdv({"sdtype": "boolean"})}, "relationships": []}

    text = imported(metadata, content)

    assert Schema.from_yaml(text).names == ("x",)


def test_several_tables_are_refused_by_name(metadata: Path) -> None:
    column = sdv({"sdtype": "boolean"})

    message = refusal(metadata, {"tables": {"people": column, "visits": column}})

    assert "2 tables (people, visits)" in message
    assert "Keep one of them" in message


@pytest.mark.parametrize(
    "content",
    [sdv({}), sdv({"sdtype": 3}), {"columns": {"x": "boolean"}}, {"columns": {"": {"sdtype": "boolean"}}}],
)
def test_a_column_without_a_name_or_a_type_is_refused(metadata: Path, content: object) -> None:
    message = refusal(metadata, content)

    assert "needs a name and a type" in message


@pytest.mark.parametrize("content", [{"columns": {}}, {"tables": {"people": {}}}, {"tables": {"people": 3}}])
def test_metadata_without_columns_is_refused(metadata: Path, content: object) -> None:
    message = refusal(metadata, content)

    assert "describes no columns" in message


# ── Frictionless ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({}, {"kind": "open"}),
        ({"type": "any"}, {"kind": "open"}),
        ({"type": "geojson"}, {"kind": "open"}),
        ({"type": "time"}, {"kind": "time", "resolution": "second"}),
        ({"type": "time", "format": "%H:%M"}, {"kind": "time", "resolution": "minute"}),
        ({"type": "boolean", "trueValues": ["J"]}, {"kind": "boolean"}),
        ({"type": "integer"}, {"kind": "integer", "low": None, "high": None}),
        ({"type": "year"}, {"kind": "integer", "low": None, "high": None}),
        ({"type": "number"}, {"kind": "real", "low": None, "high": None}),
        ({"type": "date"}, {"kind": "datetime", "start": None, "end": None, "resolution": "day"}),
        ({"type": "datetime"}, {"kind": "datetime", "start": None, "end": None, "resolution": "second"}),
        ({"type": "datetime", "format": "any"}, {"kind": "datetime", "start": None, "end": None, "resolution": "day"}),
    ],
)
def test_every_frictionless_type_has_a_kind(metadata: Path, field: dict[str, Any], expected: dict[str, Any]) -> None:
    text = imported(metadata, frictionless(field, missingValues=[]))

    assert entry_of(text) == expected


@pytest.mark.parametrize(
    ("field", "low", "high", "expected"),
    [
        ({"type": "integer"}, "0", 120, {"low": 0, "high": 120}),
        ({"type": "number"}, -0.5, "7", {"low": -0.5, "high": 7}),
        ({"type": "date"}, "2016-01-01", "2016-12-31", {"start": "2016-01-01", "end": "2016-12-31"}),
        ({"type": "time"}, "08:00:00", "17:30:00", {"start": "08:00:00", "end": "17:30:00"}),
        ({"type": "yearmonth"}, "2016-01", "2016-12", {"start": "2016-01", "end": "2016-12"}),
        ({"type": "date", "format": "%d.%m.%Y"}, "31.1.2016", "1.2.2016", {"start": "2016-01-31", "end": "2016-02-01"}),
    ],
)
def test_declared_bounds_make_a_finished_attribute(
    metadata: Path, field: dict[str, Any], low: object, high: object, expected: dict[str, Any]
) -> None:
    constraints = {"minimum": low, "maximum": high}

    text = imported(metadata, frictionless({**field, "constraints": constraints}))

    assert entry_of(text).items() >= expected.items()
    assert Schema.from_yaml(text)["x"].because == "metadata.json declares it"


def test_a_bound_of_two_leaves_the_reason_to_the_person_who_gives_the_other(metadata: Path) -> None:
    text = imported(metadata, frictionless({"type": "integer", "constraints": {"minimum": 0}}))

    assert entry_of(text) == {"kind": "integer", "low": 0, "high": None, "missing": True, "provenance": "data"}


@pytest.mark.parametrize(
    ("kind", "bound"), [("integer", "many"), ("integer", 1.5), ("number", True), ("number", []), ("date", "1/2/16")]
)
def test_a_bound_of_another_type_is_refused(metadata: Path, kind: str, bound: object) -> None:
    message = refusal(metadata, frictionless({"type": kind, "constraints": {"maximum": bound}}))

    assert f"field 'x': maximum is {bound!r}, which is not of type {kind}" in message


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ({"type": "string", "constraints": {"enum": [2, 1]}}, "categorical"),
        ({"type": "integer", "constraints": {"enum": [2, 1]}}, "categorical"),
        ({"type": "any", "constraints": {"enum": [2, 1]}, "ordered": True}, "ordinal"),
        ({"type": "integer", "categories": [2, 1]}, "categorical"),
        ({"type": "integer", "categories": [{"value": 2}, {"value": 1}], "categoriesOrdered": True}, "ordinal"),
        ({"type": "string", "constraints": {"enum": [2, 1, 2, "1"]}}, "categorical"),
    ],
)
def test_listed_values_become_categories(metadata: Path, field: dict[str, Any], kind: str) -> None:
    text = imported(metadata, frictionless(field))

    result = Schema.from_yaml(text)["x"]

    assert isinstance(result, Categorical)
    assert (entry_of(text)["kind"], result.values) == (kind, (2, 1))


@pytest.mark.parametrize(
    ("field", "schema", "expected"),
    [
        ({}, {}, True),
        ({}, {"missingValues": ["", "-"]}, ["", "-"]),
        ({}, {"missingValues": [{"value": "-9", "label": "refused"}]}, ["-9"]),
        ({"missingValues": ["?"]}, {"missingValues": ["-"]}, ["?"]),
        ({}, {"missingValues": []}, None),
        ({"constraints": {"required": True}}, {"missingValues": ["-"]}, None),
    ],
)
def test_spellings_of_missing_are_kept_unless_a_value_is_required(
    metadata: Path, field: dict[str, Any], schema: dict[str, Any], expected: object
) -> None:
    text = imported(metadata, frictionless(field, **schema))

    assert entry_of(text).get("missing") == expected


def test_a_spelling_of_missing_is_no_category(metadata: Path) -> None:
    text = imported(metadata, frictionless({"constraints": {"enum": ["a", "-"]}}, missingValues=["-"]))

    assert entry_of(text)["values"] == ["a"]
    assert Schema.from_yaml(text)["x"].has_missing


@pytest.mark.parametrize(
    ("field", "schema"),
    [({}, {"primaryKey": "x"}), ({}, {"primaryKey": ["x"]}), ({"constraints": {"unique": True}}, {})],
)
def test_unique_fields_are_identifiers(metadata: Path, field: dict[str, Any], schema: dict[str, Any]) -> None:
    text = imported(metadata, frictionless(field, **schema))

    assert entry_of(text) == {"kind": "identifier"}


def test_titles_become_descriptions(metadata: Path) -> None:
    text = imported(metadata, frictionless({"type": "boolean", "title": "Smokes: yes or no"}))

    assert Schema.from_yaml(text)["x"].description == "Smokes: yes or no"


def test_the_only_table_of_a_data_package_is_taken(metadata: Path) -> None:
    table = {"name": "people", "schema": frictionless({"type": "boolean"})}

    text = imported(metadata, {"resources": [{"name": "readme", "path": "readme.md"}, table]})

    assert Schema.from_yaml(text).names == ("x",)


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ([{"name": "a", "schema": {"fields": []}}, {"name": "b", "schema": {"fields": []}}], "2 tables (a, b)"),
        ([{"name": "a"}], "no table"),
        ([{"name": "a", "schema": "people.schema.json"}], "import people.schema.json instead"),
        ([{"name": "a", "schema": {"fields": {}}}], "no list of fields"),
        ([{"name": "a", "schema": {"fields": []}}], "no fields"),
    ],
)
def test_a_data_package_without_exactly_one_table_is_refused(metadata: Path, resources: object, words: str) -> None:
    message = refusal(metadata, {"resources": resources})

    assert words in message


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([{"type": "integer"}], "field 1 has no name"),
        (["age"], "field 1 has no name"),
        ([{"name": "x"}, {"name": "x"}], "'x' is described twice"),
        ([{"name": "x", "constraints": [1]}], "constraints must be a mapping"),
    ],
)
def test_a_malformed_field_is_refused(metadata: Path, fields: object, words: str) -> None:
    message = refusal(metadata, {"fields": fields})

    assert words in message


# ── the text ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_header_names_the_source_and_the_next_step(metadata: Path) -> None:
    text = imported(metadata, sdv({"sdtype": "numerical", "computer_representation": "Int8"}))

    assert text == (
        "# Imported from metadata.json, SDV metadata of one table.\n"
        "# It does not declare which columns have empty cells: add missing: true to those that do.\n"
        "# Fill in the empty fields from public knowledge, never from the data.\n"
        "# Such metadata is often made from the data, so its values and bounds are  provenance: data\n"
        "# If metadata.json is public, or was written from a public source:\n"
        '# dpsyn schema approve schema.yaml --all --because "the published code book"\n'
        "\n"
        "dpsyn_schema: 1\n"
        "# a public estimate of the number of rows; leave it empty if there is none\n"
        "expected_size:\n"
        "attributes:\n"
        "  x:\n"
        "    kind: integer\n"
        "    low:  # lowest possible value, from public knowledge\n"
        "    high:  # highest possible value, from public knowledge\n"
    )


def test_an_unfinished_schema_does_not_load_and_names_the_line_to_fill_in(metadata: Path) -> None:
    text = imported(metadata, sdv({"sdtype": "numerical", "computer_representation": "Int8"}))

    with pytest.raises(SchemaError) as refused:
        Schema.from_yaml(text)

    line = text.splitlines().index("    low:  # lowest possible value, from public knowledge") + 1
    first = f"line {line}: attribute 'x': low is empty; fill it in: the lowest possible value"
    second = f"line {line + 1}: attribute 'x': high is empty; fill it in: the highest possible value"
    assert str(refused.value) == f"2 mistakes\n  {first}\n  {second}"


@pytest.mark.parametrize("name", ["two\nlines", "a: b", "no", "# x", "🙂", "x" * 1200])
def test_any_column_name_survives(metadata: Path, name: str) -> None:
    text = imported(metadata, {"columns": {name: {"sdtype": "categorical"}}})

    assert Schema.from_yaml(text).names == (name,)


def test_a_file_name_with_a_line_break_stays_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "two\nlines.json"

    text = imported(path, {"age": 3})

    assert Schema.from_yaml(text)["age"].because == '"two\\nlines.json" declares it'


# ── everything else ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "structure"),
    [
        (b"dpsyn_schema: 1\n", "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b'{"a": "\\ud800"}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"{}", "an empty JSON mapping"),
        (b"[1, 2]", "a JSON list"),
        (b"3", "a single JSON value"),
        (b'{"age": "old"}', "a JSON mapping of another structure"),
    ],
)
def test_other_files_are_refused_with_their_structure_and_the_supported_formats(
    metadata: Path, content: bytes, structure: str
) -> None:
    metadata.write_bytes(content)

    with pytest.raises(SchemaError) as refused:
        import_schema(metadata)

    message = str(refused.value)
    assert message.startswith(f"{metadata} cannot be imported: it is {structure}.")
    assert all(kind in message for kind in ("SDV metadata", "Frictionless table schema", "domain file"))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "absent.json"

    with pytest.raises(SchemaError, match=r"absent\.json cannot be read: no such file"):
        import_schema(path)


def test_a_pipe_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(SchemaError, match="cannot be read: it is a device or a pipe"):
        import_schema(tmp_path / "pipe")


def test_one_repeated_key_among_many_is_detected_quickly(metadata: Path) -> None:
    keys = [f'"k{number}": 2' for number in range(60_000)]
    metadata.write_text("{" + ", ".join([*keys, '"k50000": 3']) + "}")

    with pytest.raises(SchemaError, match="'k50000' occurs twice"):
        import_schema(metadata)


@pytest.mark.parametrize(
    ("pattern", "resolution", "reason"),
    [
        ("%d.%m.%Y %H:%M:%S.%f", "second", "%f is not supported"),
        ("%Y %j", "day", "%j is not supported"),
        ("%H:%M %Y", "second", "it has no month"),
    ],
)
def test_a_format_that_cannot_be_used_becomes_a_comment(
    metadata: Path, pattern: str, resolution: str, reason: str
) -> None:
    text = imported(metadata, sdv({"sdtype": "datetime", "datetime_format": pattern}))

    assert f"# written as {pattern}, which is not supported: {reason}" in text
    assert entry_of(text) == {"kind": "datetime", "start": None, "end": None, "resolution": resolution}


def test_a_sign_that_matters_for_writing_dates_only_is_left_out(metadata: Path) -> None:
    text = imported(metadata, sdv({"sdtype": "datetime", "datetime_format": "%-d.%#m.%Y"}))

    assert entry_of(text)["format"] == "%d.%m.%Y"


@pytest.mark.parametrize("bound", [float("nan"), float("inf"), float("-inf"), "NaN", "-INF"])
@pytest.mark.parametrize("kind", ["integer", "number"])
def test_an_infinite_bound_must_be_filled_in(metadata: Path, kind: str, bound: object) -> None:
    field = {"name": "x", "type": kind, "constraints": {"minimum": bound, "maximum": 9}}

    entry = entry_of(imported(metadata, {"fields": [field]}))

    assert (entry["low"], entry["high"]) == (None, 9)


@pytest.mark.parametrize(
    ("more", "values"),
    [
        ({}, ["a"]),
        ({"missingValues": ["-"]}, ["a"]),
        ({"missingValues": []}, ["", "a"]),
        ({"constraints": {"required": True}}, ["", "a"]),
    ],
)
def test_an_empty_text_is_no_value_where_cells_may_be_empty(
    metadata: Path, more: dict[str, Any], values: list[str]
) -> None:
    constraints = {"enum": ["", "a"], **more.get("constraints", {})}

    text = imported(metadata, {"fields": [{"name": "x", **more, "constraints": constraints}]})

    assert entry_of(text)["values"] == values
    assert Schema.from_yaml(text)
