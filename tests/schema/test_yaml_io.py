"""YAML text: what a person writes is what is read, every entry knows its line, and nothing runs."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import DocumentError
from dpsyn.schema import yaml_io
from tests.strategies import texts

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts()
documents = st.dictionaries(
    texts(),
    st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3), max_leaves=8
    ),
    min_size=1,
    max_size=4,
)


@given(documents)
def test_plain_data_reads_back_as_it_was_written(document: dict[str, Any]) -> None:
    text = yaml_io.write_yaml(document)

    again, _ = yaml_io.read_yaml(text)

    assert again == document


@given(scalars)
def test_a_single_value_is_written_on_one_line_and_reads_back(value: Any) -> None:
    text = yaml_io.format_scalar(value)

    again, _ = yaml_io.read_yaml(f"key: [{text}]")

    assert again == {"key": [value]}
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NO", "NO"),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("False", False),
        ("2016-01-31", "2016-01-31"),
        ("12:30:00", "12:30:00"),
        ("'09'", "09"),
        ("0", 0),
        ("0.5", 0.5),
        ("1e05", 1e5),
        ("+5", 5),
        ("-0", 0),
        ("0x1f", "0x1f"),
        ("0o17", "0o17"),
        ("1_000", "1_000"),
        ("1e5", 1e5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.inf", float("-inf")),
        ("~", None),
        ("null", None),
        ("", None),
        ("''", ""),
        ("=", "="),
        ("!!str 1", "1"),
    ],
)
def test_plain_words_are_read_as_in_yaml_1_2(text: str, value: Any) -> None:
    document, _ = yaml_io.read_yaml(f"key: {text}")

    assert document == {"key": value}
    assert type(document["key"]) is type(value)


@pytest.mark.parametrize("key", ["1", "1.50", "null", "true", "~", "2016-01-01", "no"])
def test_keys_are_always_text(key: str) -> None:
    document, _ = yaml_io.read_yaml(f"{key}: x")

    assert document == {key: "x"}


def test_every_entry_knows_its_line() -> None:
    text = "a: 1\n\n# a comment\nb:\n  c:\n    - x\n    - {d: y,\n       e: z}\n"

    _, lines = yaml_io.read_yaml(text)

    assert lines["a",] == 1
    assert lines["b",] == 4
    assert lines["b", "c"] == 5
    assert lines["b", "c", 0] == 6
    assert lines["b", "c", 1, "d"] == 7
    assert lines["b", "c", 1, "e"] == 8


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_numbers_do_not_depend_on_line_endings(newline: str) -> None:
    _, lines = yaml_io.read_yaml(newline.join(["a: 1", "b:", "  c: 2", ""]))

    assert lines["b", "c"] == 3


def test_a_byte_order_mark_is_ignored() -> None:
    document, _ = yaml_io.read_yaml("\ufeffa: 1\n")

    assert document == {"a": 1}


def test_an_alias_repeats_its_anchor() -> None:
    document, lines = yaml_io.read_yaml("a: &x [1, 2]\nb: *x\n")

    assert document == {"a": [1, 2], "b": [1, 2]}
    assert lines["b",] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: [1, 2\n", "line 3: this is not YAML"),
        ("a: 1\n\tb: 2\n", "line 2: this is not YAML: found a tab character that violates indentation"),
        ("a: b: c\n", "line 1: this is not YAML: mapping values are not allowed"),
        ("a: 1\nb: *x\n", "line 2: this is not YAML: found undefined alias"),
        ("a: 1\n---\nb: 2\n", "line 2: this is not YAML: but found another document"),
        ("a: 1\nb: 2\na: 3\n", "line 3: 'a' occurs twice; the first is on line 1"),
        ("a:\n  1: x\n  '1': y\n", "line 3: '1' occurs twice; the first is on line 2"),
        ("a: 1\n? [b, c]\n: 2\n", "line 2: a key must be a plain word or number"),
        ("a: 1\nb: !!binary aGk=\n", "line 2: the tag tag:yaml.org,2002:binary is not allowed; write plain values"),
        ("a: 1\nb: !mine x\n", "line 2: the tag !mine is not allowed; write plain values"),
        ("a: 1\nb: !!set {x, y}\n", "line 2: the tag tag:yaml.org,2002:set is not allowed"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]\n", "line 2: the tag tag:yaml.org,2002:python/object"),
        ("a: \0\n", "this is not YAML"),
        ("a: 1\nb: \ud800\n", "line 2: this is not YAML: it contains an unpaired surrogate"),
        (f"a: 1\nb: {'7' * 5000}\n", "line 2: 77777777777777777777… with 5,000 digits cannot be read as a number"),
        ("a: 1\nb: [001, 007]\n", "line 2: 001 would lose its leading zeros; write '001' in quotes, or 1"),
        ("a: 1\nb: -01.5\n", "line 2: -01.5 would lose its leading zeros; write '-01.5' in quotes, or -1.5"),
        ("a: 1\nb: 00\n", "line 2: 00 would lose its leading zeros; write '00' in quotes, or 0"),
        ("a: 1\nb: !!int x\n", "line 2: x cannot be read as a number; put it in quotes"),
        ("a: 1\nb: !!float x\n", "line 2: x cannot be read as a number; put it in quotes"),
    ],
)
def test_unsupported_yaml_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        yaml_io.read_yaml(text)

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "text", ["a: " + "[" * 5000 + "]" * 5000, "a: &x [*x]", "\n".join(" " * depth + "a:" for depth in range(3000))]
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="nested too deeply"):
        yaml_io.read_yaml(text)


@pytest.mark.parametrize("text", ["- " * 30_000, "[" * 200_000, "{a: " * 200_000, "? " * 100_000])
def test_nesting_that_would_break_the_process_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="nested too deeply"):
        yaml_io.read_yaml(text)


def test_nesting_that_a_schema_may_have_is_read() -> None:
    assert yaml_io.read_yaml("[" * 100 + "]" * 100)[0]


def test_aliases_that_multiply_are_refused_before_they_fill_the_memory() -> None:
    bomb = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    bomb += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]

    with pytest.raises(
        DocumentError, match=r"line \d+: the aliases up to here repeat too many entries; write them out"
    ):
        yaml_io.read_yaml("\n".join(bomb))


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_flat_lists_are_written_side_by_side_and_mappings_below_each_other() -> None:
    text = yaml_io.write_yaml({"a": [1, 2], "b": {"c": "x", "d": [{"e": 1}]}})

    assert text == "a: [1, 2]\nb:\n  c: x\n  d:\n  - e: 1\n"


def test_comments_stand_above_entries_and_behind_fields() -> None:
    document = {"title": "x", "attributes": {"age": {"kind": "integer", "low": 0}}}
    comments: dict[yaml_io.YamlPath, str] = {
        ("title",): "what it is\nin two lines",
        ("attributes", "age"): "in years",
        ("attributes", "age", "low"): "newborns",
    }

    text = yaml_io.write_yaml(document, comments)

    assert text == textwrap.dedent(
        """\
        # what it is
        # in two lines
        title: x
        attributes:
          # in years
          age:
            kind: integer
            low: 0  # newborns
        """
    )


@given(documents, st.data())
def test_comments_do_not_change_the_document(document: dict[str, Any], data: st.DataObject) -> None:
    paths = [path for path in _paths(document) if path]
    comments = data.draw(st.dictionaries(st.sampled_from(paths), texts(), max_size=4))

    again, _ = yaml_io.read_yaml(yaml_io.write_yaml(document, comments))

    assert again == document


def _paths(value: Any, path: yaml_io.YamlPath = ()) -> list[yaml_io.YamlPath]:
    """Every path of a document that a comment can have."""
    if not isinstance(value, dict):
        return [path]
    return [path, *(inner for key, entry in value.items() for inner in _paths(entry, (*path, key)))]
