"""A draft in memory: it can be edited, approved and passed on, and neither repr nor errors show what it holds."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsyn
from dpsyn.demo import people, people_schema

SECRET = 7_318


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Three columns, none of which follows from another."""
    cities, codes = ["Aix", "S3CRET", "S3CRET"], ["x", "y", "y", "x", "x"]
    return pd.DataFrame({"age": [20, SECRET] * 60, "city": cities * 40, "code": codes * 24})


@pytest.fixture(scope="module")
def draft(frame: pd.DataFrame) -> dpsyn.SchemaDraft:
    return dpsyn.draft_schema(frame)


def approve_all(draft: dpsyn.SchemaDraft) -> dpsyn.SchemaDraft:
    return draft.approve(*draft.unapproved, because="code book", as_drafted=True, despite_remarks=True)


def test_a_draft_is_edited_approved_and_measured_without_a_file(draft: dpsyn.SchemaDraft, frame: pd.DataFrame) -> None:
    edited = (
        draft.edit("age", kind="integer", low=0, high=120, values=None)
        .replace_attribute(dpsyn.Categorical(name="city", values=("Aix", "Bern"), other="Bern"))
        .leave_out("code")
        .describe_table(dataset="survey: 2024", expected_size=120, neighbors="replace")
        .approve("age", because="questionnaire")
    )
    schema = edited.to_schema()

    assert schema.names == ("age", "city")
    assert schema["age"] == dpsyn.Integer(name="age", low=0, high=120, provenance="approved", because="questionnaire")
    assert schema["city"] == dpsyn.Categorical(name="city", values=("Aix", "Bern"), other="Bern")
    assert (schema.dataset, schema.expected_size, schema.neighbors) == ("survey: 2024", 120, "replace")
    synopsis = dpsyn.measure(frame, edited, epsilon=1, recipe="independent")
    assert list(synopsis.generate(5).columns) == ["age", "city"]


def test_an_edit_leaves_the_rest_of_the_text_and_the_draft_alone(draft: dpsyn.SchemaDraft) -> None:
    before = draft.to_yaml()
    after = draft.edit("code", values=["x", "y", "z"]).to_yaml()

    assert draft.to_yaml() == before
    assert "[x, y, z]" in after
    assert [line for line in before.splitlines() if line.startswith("#")] == [
        line for line in after.splitlines() if line.startswith("#")
    ]


def test_another_kind_removes_the_fields_of_the_old_one(draft: dpsyn.SchemaDraft) -> None:
    assert draft.edit("code", kind="open").entries("code")[0].fields == {"kind": "open"}


def test_fields_of_the_table_can_be_set_twice_and_added(draft: dpsyn.SchemaDraft) -> None:
    twice = draft.describe_table(dataset="one").describe_table(dataset="two")
    with_unit = draft.edit("code", kind="identifier").describe_table(privacy_unit={"id": "code", "max_rows": 3})

    assert twice.to_schema().dataset == "two"
    assert with_unit.to_schema().privacy_unit is not None


@pytest.mark.parametrize("name", ["weird: name", "a#b", "'quoted'", "with \"both\" 'quotes'", "ünï", "- x"])
def test_columns_of_any_name_can_be_edited_and_left_out(name: str) -> None:
    draft = dpsyn.draft_schema(pd.DataFrame({name: ["a", "b"] * 9, "other": ["a", "b"] * 9}))

    assert draft.edit(name, values=["c"]).to_schema()[name].values == ("c",)  # type: ignore[union-attr]
    assert draft.leave_out(name).names == ("other",)
    assert draft.leave_out("other").names == (name,)


def test_proposals_that_no_longer_fit_go_with_what_they_relate() -> None:
    rows = pd.DataFrame({"city": ["Aix", "Bern", "Cork"] * 60, "east": ["no", "yes", "yes"] * 60, "n": [1, 2] * 90})
    draft = dpsyn.draft_schema(rows.assign(east=rows["east"].map({"no": "N", "yes": "J"})))

    assert draft.proposals == ("east follows from city",)
    assert draft.unapproved == ("city", "east", "n", "derive east")
    assert draft.edit("n", kind="integer", low=0, high=9).proposals == draft.proposals
    assert draft.edit("city", kind="open").proposals == ()
    assert draft.leave_out("city").proposals == ()
    assert draft.leave_out("derive east").unapproved == ("city", "east", "n")


def test_the_summary_of_a_draft_follows_its_edits() -> None:
    rows = pd.DataFrame(
        {"id": range(200), "score": [1, 2, 3, 4, -9] * 40, "sex": ["f", "m"] * 100, "n": [1, 2, 3, 4] * 50}
    )
    draft = dpsyn.draft_schema(rows)

    assert (draft.columns, draft.recognized) == (4, 2)
    assert list(draft.questions) == ["score"]
    assert draft.left_out == {"id": "every value occurs once"}
    answered = draft.edit("score", missing=["-9"]).leave_out("n").edit("sex", kind="identifier")
    assert (answered.columns, answered.recognized, answered.questions) == (4, 1, {})
    assert answered.left_out == {"n": "you left it out", "id": "every value occurs once", "sex": "an identifier"}


def test_how_a_file_is_written_is_an_entry_of_its_draft(tmp_path: Path) -> None:
    path = tmp_path / "office.csv"
    path.write_bytes("größe;stadt\n".encode("cp1252") + "1,5;Köln\n2,5;Aix\n2,5;Köln\n".encode("cp1252") * 20)
    with pytest.warns(UserWarning, match="cp1252"):
        draft = dpsyn.draft_schema(path)

    assert draft.unapproved[0] == "file"
    assert draft.entries("file")[0].declaration.startswith("encoding cp1252")
    assert (draft.proposals, dict(draft.questions)) == ((), {})
    approved = draft.edit("file", encoding="latin-1").approve("file", because="the export's settings").to_schema()
    assert approved.file == dpsyn.FileSyntax(
        encoding="latin-1", separator=";", decimal=",", provenance="approved", because="the export's settings"
    )
    assert draft.leave_out("file").to_schema().file is None
    with pytest.raises(dpsyn.SchemaError, match="'file' of the draft is not valid, field 'encoding'"):
        draft.edit("file", encoding="klingon")


def test_entries_that_need_a_separate_yes_are_refused_without_it(draft: dpsyn.SchemaDraft) -> None:
    with pytest.raises(dpsyn.SchemaError, match=r"city: exactly as it was read off the data.*as_drafted=True"):
        draft.approve("city", because="code book")

    left = draft.approve(because="code book", everything=True)
    assert left.unapproved == draft.unapproved
    unchanged = draft.approve("city", because="code book", as_drafted=True).to_schema().declared_public()
    assert "city: drafted from the data, unchanged, and declared public because: code book" in unchanged


def test_a_file_of_a_draft_is_read_and_changed_in_place(draft: dpsyn.SchemaDraft, tmp_path: Path) -> None:
    path = tmp_path / "schema.yaml"
    path.write_text("\ufeff" + draft.to_yaml(), "utf-8")

    dpsyn.SchemaDraft.update(path, lambda each: each.edit("code", "values: [x, y, z]"))

    assert path.read_text("utf-8") == "\ufeff" + draft.edit("code", values=("x", "y", "z")).to_yaml()
    assert dpsyn.SchemaDraft.load(path).entries("code")[0].fields["values"] == ["x", "y", "z"]


def test_a_release_refuses_a_draft_that_is_not_approved(draft: dpsyn.SchemaDraft, frame: pd.DataFrame) -> None:
    with pytest.raises(dpsyn.SchemaError, match=r"attribute 'age'.*draft\.approve") as caught:
        dpsyn.measure(frame, draft, epsilon=1)

    assert "S3CRET" not in str(caught.value)


def test_the_repr_names_columns_and_counts_what_is_left_to_approve(draft: dpsyn.SchemaDraft) -> None:
    assert repr(draft) == "SchemaDraft(3 attributes, 3 not approved: age, city, code)"
    assert repr(approve_all(draft)) == "SchemaDraft(3 attributes, all approved: age, city, code)"
    assert draft.approve("age", because="x", as_drafted=True).unapproved == ("city", "code")


def test_a_saved_draft_is_private_and_a_schema_file(draft: dpsyn.SchemaDraft, tmp_path: Path) -> None:
    path = tmp_path / "schema.yaml"
    draft.save(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert dpsyn.Schema.load(path) == draft.to_schema()


def bad_uses(draft: dpsyn.SchemaDraft, frame: pd.DataFrame) -> dict[str, Any]:
    """What a user may type, with the private draft or its text where it does not belong."""
    text = draft.to_yaml()
    return {
        "text for a path": lambda: dpsyn.measure(frame, text, epsilon=1),
        "text for data": lambda: dpsyn.measure(text, people_schema(), epsilon=1),
        "draft for data": lambda: dpsyn.measure(draft, people_schema(), epsilon=1),
        "draft for a draft": lambda: dpsyn.draft_schema(draft),
        "draft as recipe": lambda: dpsyn.measure(frame, people_schema(), epsilon=1, recipe=draft),  # type: ignore[arg-type]
        "contradiction": lambda: draft.edit("age", kind="integer", low=99_999, high=SECRET).to_schema(),
        "unknown field": lambda: draft.edit("city", vales=["x"]).to_schema(),
        "wrong value": lambda: draft.edit("city", other=["x", {}]).to_schema(),
        "two mistakes": lambda: draft.edit("city", vales=1).edit("age", hihg=2).to_schema(),
        "unknown attribute": lambda: draft.edit("agee", low=1),
        "unknown approval": lambda: draft.approve("agee", because="x"),
        "entry that is not valid": lambda: draft.edit("age", kind="integer", low=99_999, high=0),
        "field of an odd type": lambda: draft.edit("age", values=frame),
        "fields as broken text": lambda: draft.edit("age", "high: ["),
        "table that does not fit": lambda: draft.describe_table(privacy_unit={"id": "city", "max_rows": 2}),
        "separate yes": lambda: draft.approve("city", because="x"),
        "no reason": lambda: draft.approve("age", because=" "),
        "unknown table field": lambda: draft.describe_table(datset="x"),
        "no names": lambda: draft.approve(because="x"),
        "synthesizer": lambda: dpsyn.Synthesizer(draft).fit(frame),
        "forecast": lambda: dpsyn.forecast(text, 1.0, rows=10),
    }


@pytest.mark.parametrize("use", list(bad_uses(dpsyn.SchemaDraft("attributes: {}"), pd.DataFrame())))
def test_no_error_shows_what_a_draft_holds(use: str, draft: dpsyn.SchemaDraft, frame: pd.DataFrame) -> None:
    with pytest.raises(dpsyn.UserError) as caught:
        bad_uses(draft, frame)[use]()

    shown: BaseException | None = caught.value
    while shown is not None:
        assert not any(secret in str(shown) for secret in ("S3CRET", str(SECRET), "Aix"))
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)


def test_an_approved_draft_explains_its_mistakes_in_full(draft: dpsyn.SchemaDraft) -> None:
    with pytest.raises(dpsyn.SchemaError, match="did you mean values"):
        approve_all(draft).edit("city", vales=["x"]).to_schema()


# ── the front door without a schema ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("schema", [None, pd.DataFrame({"age": ["S3CRET"]}), 7])
def test_a_release_without_a_schema_is_refused_before_the_table_is_read(schema: Any) -> None:
    with pytest.raises(dpsyn.SchemaError) as caught:
        dpsyn.measure("no such file.csv", schema, epsilon=1)

    assert "S3CRET" not in str(caught.value)
    assert ("draft_schema" in str(caught.value)) == (schema is None)


def test_without_a_schema_an_error_explains_the_three_steps() -> None:
    frame = people(rows=20)

    for release in (
        lambda: dpsyn.measure(frame, epsilon=1),
        lambda: dpsyn.Synthesizer(epsilon=1).fit(frame),
        lambda: dpsyn.measure(frame, None, 1),
    ):
        with pytest.raises(
            dpsyn.SchemaError, match=r"(?s)draft_schema\(data\).*approve\(.*measure\(data, draft, epsilon=1\)"
        ):
            release()


def test_without_epsilon_an_error_asks_for_it() -> None:
    with pytest.raises(dpsyn.UserError, match="needs ε"):
        dpsyn.measure("no such file.csv", people_schema())


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda data: dpsyn.measure(data, people_schema(), 1, delat=1e-9), "did you mean delta"),  # type: ignore[call-arg]
        (lambda data: dpsyn.measure(data, people_schema(), 1, engine="memry"), "did you mean memory"),  # type: ignore[arg-type]
        (lambda data: dpsyn.Synthesizer(people_schema(), recpie="dpsyn"), "did you mean recipe"),  # type: ignore[call-arg]
        (lambda data: dpsyn.Synthesizer(people_schema(), engine="spork"), "did you mean spark"),  # type: ignore[arg-type]
        (lambda data: dpsyn.Synthesizer(people_schema(), recipe="nothing"), "there is no recipe"),
        (lambda data: dpsyn.Synthesizer(data), "a DataFrame was given"),
        (lambda data: dpsyn.Synthesizer().set_params(epsilno=1), "did you mean epsilon"),
        (lambda data: dpsyn.PrivSyn(rare_row=3), "did you mean rare_rows"),  # type: ignore[call-arg]
        (lambda data: dpsyn.GUM(alhpa=3), "unexpected keyword argument|did you mean alpha"),  # type: ignore[call-arg]
    ],
)
def test_a_typo_is_refused_at_once_and_the_table_is_not_read(call: Any, hint: str) -> None:
    data = pd.DataFrame({"age": ["S3CRET"]})
    with pytest.raises((dpsyn.UserError, TypeError), match=hint) as caught:
        call(data)

    assert "S3CRET" not in str(caught.value)


def test_the_signature_of_measure_is_that_of_its_source() -> None:
    import inspect

    parameters = inspect.signature(dpsyn.measure).parameters
    assert list(parameters)[:3] == ["data", "schema", "epsilon"]
    assert inspect.signature(dpsyn.Synthesizer).parameters["epsilon"].default == 1.0
    assert "epsilon: the ε" in (dpsyn.measure.__doc__ or "")
