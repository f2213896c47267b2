"""YAML text: what is written reads back, and comments stand where people look for them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import DocumentError
from dpsyn.schema import yaml_io

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["two\nlines", "next\x85line", "a: b", "# no", "~", "x" * 200, "x" * 1200]
)
FIELDS = st.dictionaries(TEXTS, TEXTS | st.integers() | st.lists(TEXTS, max_size=3), min_size=1, max_size=3)
DOCUMENTS = st.fixed_dictionaries({"attributes": st.dictionaries(TEXTS, FIELDS, min_size=1, max_size=3)})


@given(document=DOCUMENTS, data=st.data())
def test_a_document_reads_back_wherever_comments_stand(document: dict[str, Any], data: st.DataObject) -> None:
    names = [("attributes", name) for name in document["attributes"]]
    fields = [(*path, field) for path in names for field in document["attributes"][path[1]]]
    commented = data.draw(st.lists(st.sampled_from([("attributes",), *names, *fields])))

    text = yaml_io.write_yaml(document, dict.fromkeys(commented, "why"))

    assert yaml_io.read_yaml(text)[0] == document
    assert text.count("# why") >= len(set(commented))


@pytest.mark.parametrize("name", ["two\nlines", "x" * 1200])
def test_a_name_that_cannot_be_a_plain_key_may_have_a_comment_below(name: str) -> None:
    document = {"attributes": {name: {"kind": "integer", "low": None}}}

    text = yaml_io.write_yaml(document, {("attributes", name, "low"): "lowest possible value"})

    assert yaml_io.read_yaml(text)[0] == document
    assert "    low:  # lowest possible value\n" in text


def test_a_text_of_several_lines_is_written_on_one() -> None:
    document = {"description": "first\nsecond"}

    text = yaml_io.write_yaml(document)

    assert text == 'description: "first\\nsecond"\n'


def test_the_comment_of_the_empty_path_heads_the_file() -> None:
    document = {"dpsyn_schema": 1}

    text = yaml_io.write_yaml(document, {(): "Imported from domain.json.\nCheck it."})

    assert text == "# Imported from domain.json.\n# Check it.\n\ndpsyn_schema: 1\n"


@pytest.mark.parametrize("text", ["a: &x [*x]\n", "a: &x {b: *x}\n", "[" * 3000 + "]" * 3000])
def test_endless_nesting_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="nested too deeply"):
        yaml_io.read_yaml(text)
