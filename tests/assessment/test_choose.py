"""A private choice among releases: all of them are charged, the certificate covers all, and nothing paid is lost."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import dpsyn
from dpsyn.accounting import Budget, Cap, Exponential, Ledger, combine_budgets
from dpsyn.assessment.candidates import MAX_CANDIDATES, load_candidates
from dpsyn.cli.main import run
from dpsyn.errors import DocumentError, LedgerError, UserError
from dpsyn.schema import Boolean, Identifier, Schema, UnitDeclaration

SCHEMA = Schema(attributes=tuple(Boolean(name=name) for name in "abc"), dataset="bits", expected_size=2_000)
SAME = np.arange(2_000) % 2 == 0
TABLE = pa.table({"a": SAME, "b": SAME, "c": np.arange(2_000) % 3 == 0})
BOTH: dict[str, dpsyn.Recipe | str] = {"columns": "independent", "pairs": "direct"}


def choose(**options: Any) -> dpsyn.Choice:
    return dpsyn.choose(TABLE, SCHEMA, options.pop("candidates", BOTH), **{"epsilon": 1.0, **options})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "ledger.db")
    made.set_cap("bits", Cap.for_guarantee(4, 1e-6))
    return made


def test_the_better_candidate_is_chosen_and_everything_is_charged(ledger: Ledger) -> None:
    choice = choose(ledger=ledger, choice_epsilon=0.5)

    (dataset,) = ledger.datasets()
    *candidates, last = dataset.runs
    (selection,) = choice.certificate.account.measurements
    assert choice.name == "pairs"
    assert list(choice.candidates) == ["columns", "pairs"]
    assert ledger.verify().faults == ()
    assert [one.closed for one in dataset.runs] == [True] * 3
    assert [one.run for one in candidates] == [each.run for each in choice.certificates.values()]
    assert last.run == choice.certificate.run
    assert isinstance(selection.cost, Exponential)
    assert (selection.cost.charged_epsilon, selection.cost.sensitivity) == (Fraction(1, 2), Fraction(2))
    assert choice.certificate.recipe["candidates"][1]["run"] == candidates[1].run
    assert choice.table.equals(choice.synopsis.generate_arrow(seed=0))


def test_the_guarantee_of_all_of_it_is_that_of_all_budgets_together(ledger: Ledger) -> None:
    choice = choose(choice_epsilon=0.2, ledger=ledger)

    parts = [each.account.budget for each in (*choice.certificates.values(), choice.certificate)]
    total = combine_budgets(parts)
    assert choice.delta == float(sum(part.delta for part in parts))
    assert choice.epsilon == total.worst_case.epsilon_bounds(total.epsilon, total.delta).epsilon
    assert 1.2 < choice.epsilon < 2.2  # Gaussian noise composes better than by adding ε
    assert f"{choice.name}, among columns, pairs" in choice.text()
    data = json.loads(json.dumps(choice.to_dict(), allow_nan=False))
    assert dpsyn.Certificate.from_data(data["choice"]) == choice.certificate
    assert set(data["candidates"]) == set(BOTH)


def test_budgets_of_pure_runs_add_up() -> None:
    total = combine_budgets([Budget.for_pure_steps(1, [1]), Budget.for_pure_steps(Fraction(1, 4), [1])])

    assert (total.epsilon, total.delta, total.is_pure) == (Fraction(5, 4), Fraction(0), True)


def test_a_choice_that_the_cap_has_no_room_for_is_refused_before_the_first_candidate(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_cap("bits", Cap.for_guarantee(1.2, 1e-6))

    with pytest.raises(LedgerError):
        choose(ledger=ledger)

    assert all(not dataset.runs for dataset in ledger.datasets())


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ({"rows": "many"}, "the number of rows is 'many'"),
        ({"rows": -1}, "the number of rows is -1"),
        ({"seed": -1}, "the seed is -1"),
        ({"dataset": 5}, "the name of the dataset is 5"),
    ],
)
def test_an_argument_that_is_needed_last_is_checked_first(
    mistake: dict[str, Any], message: str, ledger: Ledger
) -> None:
    with pytest.raises(UserError, match=message):
        choose(ledger=ledger, **mistake)

    assert ledger.datasets()[0].runs == ()


@pytest.mark.parametrize("place", ["second", "choice"])
def test_an_interrupted_choice_continues_and_charges_nothing_twice(
    place: str, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"ledger": ledger, "folder": tmp_path / "work"}
    saved = dpsyn.Synopsis.save

    def fail(synopsis: dpsyn.Synopsis, path: Path) -> None:
        if path.stem == "pairs":
            raise KeyboardInterrupt
        saved(synopsis, path)

    with monkeypatch.context() as patched:
        if place == "second":
            patched.setattr(dpsyn.Synopsis, "save", fail)
        else:
            patched.setattr("dpsyn.private.PrivateTable.bind_contents", _stop)
        with pytest.raises(KeyboardInterrupt):
            choose(**asked)
    before = [(one.run, one.measurements) for one in ledger.datasets()[0].runs]

    choice = choose(**asked, resume=True)

    after = [(one.run, one.measurements) for one in ledger.datasets()[0].runs]
    assert after[: len(before)] == before
    assert len(after) == 3
    assert [run for run, _ in after] == [*(c.run for c in choice.certificates.values()), choice.certificate.run]
    again = choose(**asked, resume=True)
    assert again.name == choice.name
    assert len(ledger.datasets()[0].runs) == 3


def test_nobody_chooses_again_until_the_choice_is_the_wanted_one(ledger: Ledger, tmp_path: Path) -> None:
    """Each choice is charged, but what is stated of all of it has one."""
    asked: dict[str, Any] = {"ledger": ledger, "folder": tmp_path / "work"}
    choose(**asked)
    (tmp_path / "work" / "choice.journal").unlink()

    with pytest.raises(LedgerError, match="has a choice among these candidates already"):
        choose(**asked, resume=True)

    assert len(ledger.datasets()[0].runs) == 3


def _stop(table: Any, contents: str) -> None:
    if table.budget.is_pure:
        raise KeyboardInterrupt


def test_a_folder_is_resumed_by_the_same_terms_only(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    choose(folder=folder)

    mistakes: list[tuple[dict[str, Any], str]] = [
        ({}, "is not empty"),
        ({"resume": True, "epsilon": 2.0}, "another ε"),
        ({"resume": True, "candidates": {"columns": "direct", "pairs": "direct"}}, "another recipe"),
        ({"resume": True, "candidates": {"columns": "independent", "views": "direct"}}, "belongs to no candidate"),
        ({"resume": True, "folder": tmp_path / "other"}, "no choice to resume"),
        ({"resume": True, "folder": None}, "give the folder"),
    ]
    for options, message in mistakes:
        with pytest.raises(UserError, match=message):
            choose(**{"folder": folder, **options})


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({"delta": 1e-7, "ledger": "one.db"}, {"ledger": "one.db"}, "another δ than 1e-9"),
        ({}, {"unit": 3}, "another privacy unit"),
        ({}, {"neighbors": "replace"}, "another privacy unit"),
        ({"ledger": "one.db"}, {}, "another ledger"),
        ({}, {"ledger": "one.db"}, "another ledger"),
        ({"ledger": "one.db"}, {"ledger": "two.db"}, "another ledger"),
        ({"query": "SELECT * FROM data WHERE a = 'true'"}, {}, "another query"),
        ({}, {"query": "SELECT * FROM data WHERE a = 'true'"}, "another query"),
    ],
)
def test_what_is_stated_of_all_of_it_holds_for_candidates_that_were_released_before(
    before: dict[str, Any], after: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A choice is interrupted after its first candidate and resumed by other terms, which would cost another sum."""
    pacsv.write_csv(TABLE.append_column("p", pa.array(range(len(TABLE)))), tmp_path / "bits.csv")
    attributes = (*SCHEMA.attributes, Identifier(name="p"))
    saved = dpsyn.Synopsis.save

    def make(given: dict[str, Any], **options: Any) -> dpsyn.Choice:
        unit = UnitDeclaration(id="p", max_rows=given["unit"]) if "unit" in given else None
        changes = {"privacy_unit": unit, "neighbors": given.get("neighbors", "add-remove")}
        schema = msgspec.structs.replace(SCHEMA, attributes=attributes, **changes)
        if "ledger" in given and not (tmp_path / given["ledger"]).exists():
            Ledger.create(tmp_path / given["ledger"])
        paths = {name: tmp_path / value for name, value in given.items() if name == "ledger"}
        terms = {name: value for name, value in given.items() if name in ("delta", "query")}
        place: dict[str, Any] = {"folder": tmp_path / "work", **options, **terms, **paths}
        return dpsyn.choose(tmp_path / "bits.csv", schema, BOTH, epsilon=1.0, **place)

    def stop(synopsis: dpsyn.Synopsis, path: Path) -> None:
        saved(synopsis, path)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(dpsyn.Synopsis, "save", stop)
        with pytest.raises(KeyboardInterrupt):
            make(before)

    with pytest.raises(UserError, match=message):
        make(after, resume=True)
    if "query" not in {**before, **after}:
        certificates = make(before, resume=True).certificates.values()
        assert len({(each.account.budget, each.privacy_unit) for each in certificates}) == 1


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ({"one": "direct"}, "a choice is among 2"),
        ({f"c{number}": "direct" for number in range(MAX_CANDIDATES + 1)}, "a choice is among 2"),
        ({"one": "direct", "a/b": "direct"}, "the name of a candidate is 'a/b'"),
        ({"one": "direct", "One": "direct"}, "capital letters"),
        ({"one": "direct", "two": "nosuch"}, "no recipe 'nosuch'"),
        ({"one": "direct", "two": 3}, "give a recipe"),
        (7, "give recipes by name"),
    ],
)
def test_candidates_that_make_no_sense_are_refused_before_a_row_is_read(
    candidates: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsyn.assessment._choose.measure", lambda *_, **__: pytest.fail("measured"))

    with pytest.raises(UserError, match=message):
        choose(candidates=candidates)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("candidates: {}", "its first line should be dpsyn_candidates: 1"),
        ("dpsyn_candidates: 3", "format 3"),
        ("{dpsyn_candidates: 1, candidates: [a]}", "is a mapping"),
        ("{dpsyn_candidates: 1, candidates: {a: 1}}", "candidate a needs recipe"),
        ("{dpsyn_candidates: 1, candidates: {a: {recip: direct}}}", "no field 'recip'"),
        ("{dpsyn_candidates: 1, candidates: {a: {recipe: planned}}}", "give plan: FILE"),
        ("{dpsyn_candidates: 1, candidates: {a: {recipe: direct, plan: p.yaml}}}", "leave out recipe"),
        ("{dpsyn_candidates: 1, candidates: {a: {plan: nosuch.yaml}}}", "nosuch.yaml"),
        ("{dpsyn_candidates: 1, candidates: {a: {recipe: dpsyn, set: {nosuch: 1}}}}", "nosuch"),
    ],
)
def test_a_file_of_candidates_with_a_mistake_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(text, "utf-8")

    with pytest.raises(DocumentError, match=message):
        load_candidates([tmp_path / "c.yaml"], SCHEMA)


def test_candidates_come_from_several_files_with_options_and_plans(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("{dpsyn_plan: 1, marginals: [[a, b]]}", "utf-8")
    (tmp_path / "one.yaml").write_text("{dpsyn_candidates: 1, candidates: {mine: {plan: plan.yaml}}}", "utf-8")
    text = "{dpsyn_candidates: 1, candidates: {gum: {recipe: privsyn, set: {synthesis: gum, rare_rows: 8}}, d: {}}}"
    (tmp_path / "two.yaml").write_text(text, "utf-8")

    found = load_candidates([tmp_path / "one.yaml", tmp_path / "two.yaml"], SCHEMA)

    assert {name: recipe.name for name, recipe in found.items()} == {"mine": "planned", "gum": "privsyn", "d": "dpsyn"}
    assert found["gum"].to_data()["rare_rows"] == 8
    with pytest.raises(UserError, match="another file"):
        load_candidates([tmp_path / "two.yaml"] * 2, SCHEMA)


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> Path:
    monkeypatch.chdir(tmp_path)
    dpsyn.write_table(TABLE, "bits.csv", synthetic=False)
    SCHEMA.save("schema.yaml")
    text = "{dpsyn_candidates: 1, candidates: {columns: {recipe: independent}, pairs: {recipe: direct}}}"
    Path("c.yaml").write_text(text, "utf-8")
    return tmp_path


CHOOSE = ["choose", "bits.csv", "-s", "schema.yaml", "--candidates", "c.yaml", "--epsilon", "1", "-o", "out/"]


@pytest.mark.usefixtures("work")
def test_the_chosen_release_and_what_all_of_it_cost_are_written(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*CHOOSE, "--ledger", "ledger.db", "--choice-epsilon", "0.5"]

    assert run(asked) == 0

    shown, data = capsys.readouterr().out, json.loads(Path("out/choice.json").read_text())
    assert data["chosen"] == "pairs"
    assert Path("out/choice.txt").read_text() in shown + "\n"
    assert dpsyn.Synopsis.load("out").certificates[0] == dpsyn.Certificate.from_data(data["candidates"]["pairs"])
    assert {path.name for path in Path("out.candidates").iterdir()} == {
        "columns.dpsyn",
        "pairs.dpsyn",
        "choice.journal",
    }
    assert run([*asked, "--resume", "-q"]) == 0
    assert len(ledger.datasets()[0].runs) == 3


@pytest.mark.usefixtures("work")
def test_a_chosen_release_never_stands_without_what_all_of_it_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody must take the ε of the chosen one for that of all, whenever the command is interrupted."""

    def stop(choice: dpsyn.Choice) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(dpsyn.Choice, "text", stop)
        assert run([*CHOOSE, "-q"]) == 130
    assert not Path("out").exists()

    assert run([*CHOOSE, "--resume", "-q"]) == 0
    assert Path("out/choice.txt").exists()
    assert dpsyn.verify("out").verdict == "unsigned"
    assert sorted(path.name for path in Path().iterdir() if "out" in path.name) == ["out", "out.candidates"]


@pytest.mark.usefixtures("work")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*CHOOSE[:-1], "out.csv"], "is no folder"),
        ([*CHOOSE[:-1], "-"], "is no folder"),
        ([*CHOOSE, "--resume"], "no choice to resume"),
        ([*CHOOSE[:-1], "full"], "is not empty"),
        ([*CHOOSE, "--choice-epsilon", "0"], "ε is 0"),
        ([*CHOOSE, "--candidates", "nosuch.yaml"], "nosuch.yaml"),
    ],
)
def test_mistakes_are_refused_before_anything_is_spent(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], ledger: Ledger
) -> None:
    Path("full").mkdir()
    Path("full/file").touch()

    assert run([*arguments, "--ledger", "ledger.db"]) == 2

    assert message in capsys.readouterr().err
    assert all(not dataset.runs for dataset in ledger.datasets())
