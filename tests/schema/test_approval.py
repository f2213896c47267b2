"""Approval edits the text of a schema where it must change, and nowhere else."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import SchemaError
from dpsyn.schema import Boolean, Categorical, Integer, Open, Schema, SchemaDraft, Total
from dpsyn.schema.approval import (
    approve_schema,
    approve_text,
    draft_digest,
    edit_entry,
    leave_out_entry,
    list_entries,
)
from dpsyn.schema.files import to_document
from dpsyn.schema.yaml_io import format_scalar, read_yaml, write_yaml

BLOCK = """\
# a draft
dpsyn_schema: 1

attributes:
  "age":          # in years
    kind: integer
    low: 0
    high: 120
    provenance: data  # the oldest is 97
    missing: true

  'sex: at birth': {kind: categorical, values: [F, M], provenance: data} # short
  region:
      kind: open
"""


def schema_text(entry: str) -> str:
    return f"dpsyn_schema: 1\nattributes:\n{entry}"


# ── block and flow ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_block_entry_changes_its_provenance_and_gains_a_line() -> None:
    text = approve_text(BLOCK, ["age"], "code book 2024")

    old = "    provenance: data  # the oldest is 97\n"
    new = "    provenance: approved  # the oldest is 97\n    because: code book 2024\n"
    assert text == BLOCK.replace(old, new)


def test_a_flow_entry_is_changed_between_its_braces() -> None:
    text = approve_text(BLOCK, ["sex: at birth"], "law, section 3")

    assert text == BLOCK.replace(
        "[F, M], provenance: data} #", "[F, M], provenance: approved, because: 'law, section 3'} #"
    )


def test_a_public_attribute_without_a_reason_gains_one_at_its_end() -> None:
    text = approve_text(BLOCK, ["region"], "code book")

    assert text == BLOCK + "      because: code book\n"


def test_several_names_are_approved_at_once_in_any_order() -> None:
    text = approve_text(BLOCK, ["sex: at birth", "age", "age"], "code book")

    schema = Schema.from_yaml(text)
    assert [(a.provenance, a.because) for a in schema] == [("approved", "code book")] * 2 + [("public", "")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "  a:\n    kind: open\n    because: I saw it\n    provenance: data",
            "because: book\n    provenance: approved",
        ),
        (
            "  a:\n    kind: open\n    because: |-\n      two\n      lines\n    provenance: data\n",
            "because: book\n    prov",
        ),
        ("  a:\n    because: plain\n      folded\n    provenance: data\n    kind: open\n", "because: book\n    prov"),
        ("  a:\n    kind: open\n    because:\n    provenance: data\n", "because: book\n    provenance: approved\n"),
        ("  a: {kind: open, because: '', provenance: 'data'}\n", "because: book, provenance: approved}\n"),
        ("  a: {kind: open, because: , provenance: data}\n", "because: book , provenance: approved}\n"),
    ],
)
def test_an_existing_reason_is_replaced(before: str, after: str) -> None:
    text = approve_text(schema_text(before), ["a"], "book")

    assert after in text
    assert Schema.from_yaml(text)["a"].because == "book"


@pytest.mark.parametrize(
    "last",
    [
        "description: |\n      two\n      lines\n",
        "description: >+\n      kept\n\n\n",
        "missing:\n    - a\n    - b # c\n",
        "missing: [a,\n      b]\n",
        "other: a # no line break at the end",
        "description: 'two\n\n      lines'\n",
    ],
)
def test_a_new_reason_is_written_below_the_last_field(last: str) -> None:
    before = schema_text(f"  a:\n    kind: open\n    {last}")

    text = approve_text(before, ["a"], "book")

    added = "    because: book"
    assert [line for line in text.splitlines() if line != added] == before.splitlines()
    assert read_yaml(text)[0]["attributes"]["a"] == {**read_yaml(before)[0]["attributes"]["a"], "because": "book"}


def test_windows_line_breaks_stay() -> None:
    before = BLOCK.replace("\n", "\r\n")

    text = approve_text(before, ["age", "region"], "book")

    assert text == approve_text(BLOCK, ["age", "region"], "book").replace("\n", "\r\n")


def test_a_byte_order_mark_stays() -> None:
    text = approve_text("\ufeff" + BLOCK, ["age"], "book")

    assert text == "\ufeff" + approve_text(BLOCK, ["age"], "book")


def test_a_json_schema_file_stays_json() -> None:
    before = '{"dpsyn_schema": 1, "attributes": {"a": {"kind": "open", "provenance": "data"}}}'

    text = approve_text(before, ["a"], 'the "book"')

    entry = json.loads(text)["attributes"]["a"]
    assert entry == {"kind": "open", "provenance": "approved", "because": 'the "book"'}


def test_an_unfinished_schema_can_be_approved() -> None:
    before = schema_text("  a:\n    kind: integer\n    low:  # lowest\n    high:\n    provenance: data\n")

    text = approve_text(before, ["a"], "book")

    assert text == before.replace("provenance: data", "provenance: approved\n    because: book")


def test_any_reason_is_written_on_one_line() -> None:
    text = approve_text(BLOCK, ["age"], "  code book:\n\tpage 3 # see {there} \x07")

    assert Schema.from_yaml(text)["age"].because == "code book: page 3 # see {there} \x07"


def test_entries_that_share_one_anchor_are_approved_together() -> None:
    before = schema_text("  a: &shared {kind: open, provenance: data}\n  b: *shared\n")

    text = approve_text(before, ["a", "b"], "book")

    assert text == before.replace("data", "approved, because: book")


def test_columns_that_share_an_entry_are_approved_together() -> None:
    before = schema_text("  a: &shared {kind: open, provenance: data}\n  b: *shared\n")

    schema = Schema.from_yaml(approve_text(before, ["b"], "book"))

    assert [(a.provenance, a.because) for a in schema] == [("approved", "book")] * 2


def test_an_alias_that_another_entry_would_suffer_from_is_refused() -> None:
    before = schema_text(
        "  a: {kind: open, because: &why form, provenance: data}\n  b: {kind: open, because: *why, provenance: data}\n"
    )

    with pytest.raises(SchemaError, match="cannot be edited automatically"):
        approve_text(before, ["a"], "book")


# ── a separate yes ──────────────────────────────────────────────────────────────────────────────────────────────────


def drafted(**fields: Any) -> dict[str, Any]:
    """An entry as a draft writes it."""
    return {**fields, "provenance": "data", "drafted": draft_digest(fields)}


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    """A drafted file: one entry with a remark, one as it was read off the data, one without facts about rows."""
    attributes = {
        "income": drafted(kind="integer", low=0, high=9_000) | {"remark": "is 999 a code?"},
        "age": drafted(kind="integer", low=0, high=97),
        "sex": drafted(kind="boolean"),
    }
    path = tmp_path / "schema.yaml"
    path.write_text(write_yaml({"dpsyn_schema": 1, "attributes": attributes}), "utf-8")
    return path


def test_all_at_once_covers_neither_open_remarks_nor_what_was_read_off_the_data(draft: Path) -> None:
    approval = approve_schema(draft, because="book", everything=True)

    assert approval.approved == ("sex",)
    assert [(entry.title, entry.remark, entry.unchanged) for entry in approval.left] == [
        ("income", "is 999 a code?", True),
        ("age", "", True),
    ]
    assert Schema.load(draft).unapproved_statements() == ("attribute 'income'", "attribute 'age'")


def test_what_was_read_off_the_data_is_approved_by_a_separate_yes_and_the_certificate_states_it(draft: Path) -> None:
    approval = approve_schema(draft, because="book", everything=True, as_drafted=True)

    schema = Schema.load(draft)
    assert [entry.title for entry in approval.left] == ["income"]
    assert schema.declared_public()[1:] == (
        "age: drafted from the data, unchanged, and declared public because: book",
        "sex: drafted from the data, and declared public because: book",
    )


def test_an_edited_entry_needs_no_separate_yes_and_its_digest_is_removed(draft: Path) -> None:
    draft.write_text(draft.read_text("utf-8").replace("high: 97", "high: 120"), "utf-8")

    approve_schema(draft, "age", because="book")

    assert (Schema.load(draft)["age"].provenance, Schema.load(draft)["age"].drafted) == ("approved", "")


def test_a_named_entry_without_its_yes_is_refused_and_nothing_changes(draft: Path) -> None:
    before = draft.read_text("utf-8")

    with pytest.raises(SchemaError, match="age: exactly as it was read off the data"):
        approve_schema(draft, ["sex", "age"], because="book")
    with pytest.raises(SchemaError, match="income: the remark of the draft is open"):
        approve_schema(draft, "income", because="book", as_drafted=True)

    assert draft.read_text("utf-8") == before


def test_remarks_are_answered_by_name_only_and_then_removed(draft: Path) -> None:
    with pytest.raises(SchemaError, match="not approved all at once"):
        approve_schema(draft, because="book", everything=True, despite_remarks=True)

    approve_schema(draft, "income", because="book", despite_remarks=True)

    assert Schema.load(draft)["income"].remark == ""
    assert Schema.load(draft)["income"].drafted == "unchanged"


def test_rules_and_derivations_are_approved_by_their_titles() -> None:
    before = schema_text(
        "  a: {kind: integer, low: 0, high: 9}\n  b: {kind: integer, low: 0, high: 9}\n"
        "rules:\n- rule: order\n  attributes: [a, b]\n  provenance: data\n  remark: always?\n"
    )

    schema = Schema.from_yaml(approve_text(before, ["rule 1"], "law", despite_remarks=True))

    assert (schema.rules[0].provenance, schema.rules[0].because, schema.rules[0].remark) == ("approved", "law", "")


@pytest.mark.parametrize("provenance", ["public", "approved"])
@pytest.mark.parametrize("mark", ["remark: is 999 a code?", "drafted: 0123abcd"])
def test_a_public_entry_cannot_carry_what_a_draft_says_about_rows(mark: str, provenance: str) -> None:
    entry = f"  a: {{kind: open, provenance: {provenance}, because: book, {mark}}}\n"

    with pytest.raises(SchemaError, match=f"line 3: .*{mark.partition(':')[0]}.*remove"):
        Schema.from_yaml(schema_text(entry))


# ── review ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_edit_answers_the_remark_and_keeps_the_rest(draft: Path) -> None:
    text = edit_entry(draft.read_text("utf-8"), "income", {"high": 500, "missing": ["999"]})

    (entry, *_) = list_entries(text, ["income"])
    assert entry.fields == {"kind": "integer", "low": 0, "high": 500, "missing": ["999"]}
    assert (entry.remark, entry.unchanged) == ("", False)


def test_another_kind_removes_the_fields_that_it_does_not_have(draft: Path) -> None:
    text = edit_entry(draft.read_text("utf-8"), "age", {"kind": "open"})

    assert list_entries(text, ["age"])[0].fields == {"kind": "open"}


def test_an_edit_that_makes_the_entry_invalid_changes_nothing(draft: Path) -> None:
    before = draft.read_text("utf-8")

    with pytest.raises(SchemaError, match="'age' of the draft is not valid") as refused:
        SchemaDraft.update(draft, lambda each: each.edit("age", high=-5))

    assert draft.read_text("utf-8") == before
    assert "attribute 'age'" in refused.value.private_details


def test_an_edited_entry_is_no_longer_approved_as_it_was_drafted(draft: Path) -> None:
    text = approve_text(draft.read_text("utf-8"), ["age"], "book", as_drafted=True)

    assert Schema.from_yaml(text)["age"].drafted == "unchanged"
    assert Schema.from_yaml(edit_entry(text, "age", {"high": 120}))["age"].drafted == ""


def test_a_field_is_added_where_all_that_followed_is_removed() -> None:
    before = schema_text("  a:\n    kind: categorical\n    values: [x]  # all\n  b: {kind: open}\n")

    edited = edit_entry(before, "a", {"kind": "integer", "low": 0, "high": 9})

    assert edited == schema_text("  a:\n    kind: integer\n    low: 0\n    high: 9\n  b: {kind: open}\n")


def test_columns_that_share_an_entry_are_left_out_together() -> None:
    entry = "\n    kind: open  # text\n    provenance: data\n"
    before = schema_text(f"  a: {{kind: boolean}}\n  q1: &q{entry}  q2: *q\n  b: {{kind: open}}\n")

    assert leave_out_entry(before, "q2") == schema_text("  a: {kind: boolean}\n  b: {kind: open}\n")


def test_the_last_entry_and_a_rule_can_be_left_out() -> None:
    numbers = "  a: {kind: integer, low: 0, high: 9}\n  b: {kind: integer, low: 0, high: 9}\n"
    rules = "rules:\n- rule: order\n  attributes: [a, b]\n- rule: order\n  attributes: [b, a]\n"

    text = leave_out_entry(leave_out_entry(schema_text(numbers + rules), "rule 1"), "rule 1")

    assert text == schema_text(numbers + "rules:\n")
    assert Schema.from_yaml(leave_out_entry(text, "b")).names == ("a",)


def test_a_shared_entry_of_braces_that_cannot_be_cut_out_is_refused() -> None:
    before = "{dpsyn_schema: 1, attributes: {a: {kind: open}, b: {kind: open}}}\n"

    with pytest.raises(SchemaError, match="make the change by hand"):
        leave_out_entry(before, "a")


# ── what is approved ─────────────────────────────────────────────────────────────────────────────────────────


def test_an_approved_entry_stays_known_as_drafted_and_the_certificate_states_it() -> None:
    before = schema_text("  a: {kind: integer, low: 17, high: 90, provenance: data}\n  b: {kind: open, because: law}\n")

    once = approve_text(before, ["a"], "book")
    again = approve_text(once, ["a", "b"], "atlas")
    stated = Schema.from_yaml(again).declared_public()

    assert Schema.from_yaml(once).unapproved_statements() == ()
    assert stated == ("a: drafted from the data, and declared public because: atlas", "b: atlas")


@pytest.mark.parametrize(
    "entry",
    [
        "  a: {kind: open, provenance: approved}\n",
        "  a: {kind: open}\nrules:\n- {rule: total, count: 1, provenance: approved}\n",
    ],
)
def test_an_approved_entry_needs_its_reason(entry: str) -> None:
    with pytest.raises(SchemaError, match="provenance: approved needs a reason"):
        Schema.from_yaml(schema_text(entry))


@pytest.mark.parametrize("provenance", ["", "provenance: public, ", "provenance: 'public', "])
def test_a_public_attribute_gets_the_new_reason_only_if_it_is_named(provenance: str) -> None:
    before = schema_text(f"  a: {{kind: open, {provenance}because: law}}\n  b: {{kind: open, provenance: data}}\n")

    named = approve_text(before, ["a"], "book")
    all_of_them = approve_text(before, (), "book", everything=True)

    assert Schema.from_yaml(named)["a"].because == "book"
    assert Schema.from_yaml(all_of_them)["a"].because == "law"


DERIVED = """\
dpsyn_schema: 1
attributes:
  county: {kind: categorical, codes: 2, provenance: data}
  state: {kind: categorical, codes: 2, provenance: data}
derive:
  state:
    from: county
    mapping: {0: 0, 1: 1}
    provenance: data
rules:
  - rule: total
    count: 100
    provenance: data
  - {rule: total, count: 100, provenance: data}
"""


def test_the_name_of_a_derived_attribute_approves_its_derivation_too() -> None:
    text = approve_text(DERIVED, ["state"], "atlas")

    schema = Schema.from_yaml(text)
    assert (schema["state"].because, schema.derive[0].because) == ("atlas", "atlas")
    assert schema.unapproved_statements() == ("attribute 'county'", "rule 1", "rule 2")


def test_all_entries_taken_from_the_data_are_approved_at_once_including_rules() -> None:
    text = approve_text(DERIVED, (), "atlas", everything=True)

    assert Schema.from_yaml(text).unapproved_statements() == ()
    assert text.count("because: atlas") == 5


def test_everything_leaves_public_entries_alone() -> None:
    before = schema_text("  a: {kind: open}\n")

    text = approve_text(before, (), "book", everything=True)

    assert text == before


@pytest.mark.parametrize(
    ("name", "hint"), [("agee", "did you mean age?"), ("zzz", "there are age, sex: at birth, region")]
)
def test_an_unknown_name_is_refused_with_the_nearest_ones(name: str, hint: str) -> None:
    with pytest.raises(SchemaError) as refused:
        approve_text(BLOCK, ["age", name], "book")

    assert str(refused.value) == f"there is no attribute {name!r}; {hint}"


@pytest.mark.parametrize("because", ["", "  \n"])
def test_an_approval_without_a_reason_is_refused(because: str) -> None:
    with pytest.raises(SchemaError, match="needs a reason"):
        approve_text(BLOCK, ["age"], because)


@pytest.mark.parametrize(("names", "everything"), [((), False), (("age",), True)])
def test_either_names_or_everything_must_be_given(names: tuple[str, ...], everything: bool) -> None:
    with pytest.raises(SchemaError, match="either name the attributes to approve, or approve everything"):
        approve_text(BLOCK, names, "book", everything=everything)


@pytest.mark.parametrize("text", ["", "a: 1\n", "[1]\n", "attributes: {a: {kind: open}}\n"])
def test_a_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="not a DPSyn schema"):
        approve_text(text, ["a"], "book")


@pytest.mark.parametrize("entry", ["  a:\n", "  a: open\n", "  a: {}\n", "  a: [kind]\n"])
def test_an_attribute_that_is_not_described_is_refused(entry: str) -> None:
    with pytest.raises(SchemaError, match="'a' has no description"):
        approve_text(schema_text(entry), ["a"], "book")


# ── any schema ───────────────────────────────────────────────────────────────────────────────────────────────

PRINTABLE = st.characters(exclude_categories=["C", "Z"])  # JSON leaves the others as they are, which YAML refuses
NAMES = st.text(PRINTABLE, min_size=1, max_size=8) | st.sampled_from(
    ["a: b", "no", "# x", "Größe 🙂", "'", '"', "two\nlines"]
)
STATED = {"provenance": st.sampled_from(["public", "data"]), "because": st.sampled_from(["", "law", "a: b"])}
ATTRIBUTES = st.one_of(
    st.builds(Boolean, name=NAMES, **STATED),
    st.builds(Open, name=NAMES, missing=st.just(("", "- ")), **STATED),
    st.builds(Integer, name=NAMES, low=st.just(0), high=st.integers(0, 9), description=st.just("why\n# so"), **STATED),
    st.builds(Categorical, name=NAMES, values=st.just(("x", "{y}")), **STATED),
)
SCHEMAS = st.builds(
    Schema,
    attributes=st.lists(ATTRIBUTES, min_size=1, max_size=4, unique_by=lambda a: a.name).map(tuple),
    rules=st.lists(st.builds(Total, count=st.just(7), **STATED), max_size=2).map(tuple),
)
STYLES = st.sampled_from(["block", "flow", "json"])


def written(schema: Schema, style: str) -> str:
    """The text of a schema, with comments where the style has them."""
    if style == "json":
        return json.dumps(to_document(schema), indent=2, ensure_ascii=False)
    if style == "block":
        return "".join(f"{line}  # provenance: data\n" for line in schema.to_yaml().splitlines())
    document = to_document(schema)
    entries = [f"  {format_scalar(name)}: {in_braces(entry)}  # {{" for name, entry in document["attributes"].items()]
    rules = [f"- {in_braces(rule)}" for rule in document.get("rules", [])]
    return "\n".join(["dpsyn_schema: 1", "attributes:", *entries, "rules:", *rules])


def in_braces(entry: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {json.dumps(value)}" for key, value in entry.items()) + "}"


def without_approvals(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.lstrip(' "').startswith(("provenance", "because"))]


@given(schema=SCHEMAS, style=STYLES, data=st.data())
def test_only_provenance_and_reason_change(schema: Schema, style: str, data: st.DataObject) -> None:
    before = written(schema, style)
    names = data.draw(st.lists(st.sampled_from(schema.names), min_size=1))

    text = approve_text(before, names, "book")

    marks: dict[str, Any] = {"data": "approved", "public": "public"}
    expected = [
        msgspec.structs.replace(a, provenance=marks[a.provenance], because="book") if a.name in names else a
        for a in schema
    ]
    assert Schema.from_yaml(text) == msgspec.structs.replace(schema, attributes=tuple(expected))


@given(schema=SCHEMAS, style=st.sampled_from(["block", "json"]))
def test_lines_without_provenance_or_reason_stay(schema: Schema, style: str) -> None:
    before = written(schema, style)

    text = approve_text(before, (), "book", everything=True)

    assert Schema.from_yaml(text).unapproved_statements() == ()
    if style == "block":
        assert without_approvals(text) == without_approvals(before)
    else:
        assert len(text.splitlines()) == len(before.splitlines())


def test_approvals_at_the_same_time_are_all_recorded(tmp_path: Path) -> None:
    path = tmp_path / "schema.yaml"
    names = [f"a{number}" for number in range(40)]
    path.write_text(schema_text("".join(f"  {name}: {{kind: open, provenance: data}}\n" for name in names)), "utf-8")

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: approve_schema(path, name, because="book"), names))

    assert Schema.load(path).unapproved_statements() == ()


def test_the_approval_of_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be read: no such file or directory"):
        approve_schema(tmp_path / "none" / "schema.yaml", "a", because="book")


def test_thousands_of_attributes_are_approved_one_by_one() -> None:
    names = [f"a{number}" for number in range(2_000)]
    before = schema_text("".join(f"  {name}:\n    kind: open\n    because:\n    provenance: data\n" for name in names))

    text = approve_text(before, (), "book", everything=True)

    after = before.replace("because:", "because: book").replace("provenance: data", "provenance: approved")
    assert text == after


def test_columns_that_share_the_last_entry_by_alias_are_left_out_together() -> None:
    kept = "dpsyn_schema: 1\nattributes:\n  age: {kind: integer, low: 0, high: 99}\n"
    text = kept + "  q1: &q\n    kind: boolean\n  q2: *q\n  q3: *q\n"

    assert leave_out_entry(text, "q1") == kept
