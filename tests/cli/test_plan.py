"""``dpsyn plan`` and ``dpsyn explore``, from a first look to rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import dpsyn
from dpsyn.cli.main import run
from tests.plan.schemas import CALLS, EVERYTHING, calls


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table, its schema and a plan without Laplace noise, where the commands are run."""
    monkeypatch.chdir(tmp_path)
    pacsv.write_csv(calls(3_000), tmp_path / "calls.csv")
    CALLS.save(tmp_path / "schema.yaml")
    (tmp_path / "plan.yaml").write_text(EVERYTHING, "utf-8")
    return tmp_path


def test_a_plan_is_checked_at_every_budget(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["plan", "check", "plan.yaml", "-s", "schema.yaml"])

    shown = capsys.readouterr().out
    assert code == 0
    assert "plan.yaml is valid and fits schema.yaml: 8 transforms, 4 entries under marginals, 2 groups." in shown
    assert "checked at ε = 0.25, 0.5, 1." in shown


def test_predictions_warn_where_noise_exceeds_the_counts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["plan", "predict", "plan.yaml", "-s", "schema.yaml", "--epsilon", "0.01,10"])

    shown = capsys.readouterr().out
    assert code == 0
    assert "Warning: at ε = 0.01 the noise exceeds the counts in " in shown
    assert "received, month" in shown
    assert "laplace" in shown


def test_predictions_come_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["plan", "predict", "plan.yaml", "-s", "schema.yaml", "--epsilon", "1", "--rows", "5000", "--json"])

    predictions = json.loads(capsys.readouterr().out)
    assert code == 0
    assert {entry["epsilon"] for entry in predictions} == {1.0}
    assert all(entry["standard_deviation"] > 0 for entry in predictions)


def test_a_prediction_without_an_expected_size_asks_for_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = (folder / "schema.yaml").read_text("utf-8")
    (folder / "schema.yaml").write_text(written.replace("expected_size", "# expected_size"), "utf-8")

    code = run(["plan", "predict", "plan.yaml", "-s", "schema.yaml"])

    shown = capsys.readouterr().err
    assert code == 2
    assert "expected_size" in shown
    assert "--rows 50000" in shown


def test_a_prediction_says_what_makes_the_release_equal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "predict", "plan.yaml", "-s", "schema.yaml", "--epsilon", "1", "--rows", "5000"]) == 0
    assert "expected_size" not in capsys.readouterr().out  # the schema states it

    written = (folder / "schema.yaml").read_text("utf-8")
    (folder / "schema.yaml").write_text(written.replace("expected_size", "# expected_size"), "utf-8")

    assert run(["plan", "predict", "plan.yaml", "-s", "schema.yaml", "--epsilon", "1", "--rows", "5000"]) == 0
    assert "Write expected_size: 5000 into the schema" in " ".join(capsys.readouterr().out.split())


def test_a_draft_of_nothing_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = dpsyn.Schema.from_yaml("dpsyn_schema: 1\nattributes:\n  a: {kind: boolean}\n  b: {kind: boolean}\n")
    rows = pa.table({"a": [True, False] * 50, "b": [True, True, False, False] * 25})
    dpsyn.measure(rows, schema, 1.0, delta=1e-9, recipe="explore").save(folder / "look.dpsyn")

    assert run(["plan", "draft", "look.dpsyn", "-o", "nothing.yaml"]) == 0

    assert "Nothing in the synopsis is strong enough" in " ".join(capsys.readouterr().out.split())


def test_the_way_from_a_first_look_to_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dpsyn.Ledger.create("l.db")
    look = ["explore", "calls.csv", "-s", "schema.yaml", "--epsilon", "4", "--ledger", "l.db", "--dataset", "calls"]
    release = [
        "synthesize",
        "calls.csv",
        "-s",
        "schema.yaml",
        "--plan",
        "plan2.yaml",
        "--epsilon",
        "1",
        "-o",
        "out.csv",
    ]

    codes = [
        run([*look, "-o", "first.dpsyn"]),
        run(["plan", "draft", "first.dpsyn", "-o", "plan2.yaml"]),
        run(["plan", "check", "plan2.yaml", "-s", "schema.yaml"]),
        run([*release, "--rows", "100", "--ledger", "l.db", "--dataset", "calls"]),
    ]

    shown = capsys.readouterr().out
    assert codes == [0, 0, 0, 0]
    # Both dates determine the month nearly always; noise decides which is named. That neither is has a chance of 1e-6.
    assert re.search("month follows from (received|entered)", shown)
    assert "One-way marginals" in shown
    assert "strong pairs: the cells furthest above independence" in shown
    assert pacsv.read_csv("out.csv").num_rows == 100
    (account,) = dpsyn.Ledger(folder / "l.db").datasets()
    assert len(account.runs) == 2


def test_public_data_is_explored_without_a_budget(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["explore", "calls.csv", "-s", "schema.yaml", "--exact", "--plan", "drafted.yaml"])

    shown = capsys.readouterr().out
    assert code == 0
    assert shown.startswith("EXACT: these figures were counted without noise.")
    assert "missing 0.3" in shown  # of arrived, among the most frequent values
    assert re.search(r"unit +kind +. +. +0\.2\d\d +0\.0\d\d", shown)
    dpsyn.Plan.load("drafted.yaml", CALLS)


BAD_PLANS = {
    "not yaml": "dpsyn_plan: 1\nmarginals: [",
    "a schema": "dpsyn_schema: 1\n",
    "an unknown attribute": "dpsyn_plan: 1\nmarginals:\n  - [received, sender]\n",
    "too much": "dpsyn_plan: 1\nmarginals:\n  - {of: [unit], share: 0.9}\n  - {of: [kind], share: 0.9}\n",
    "not a number": "dpsyn_plan: 1\none_way: many\n",
}


@pytest.mark.parametrize("name", BAD_PLANS)
@pytest.mark.parametrize("command", ["check", "predict", "synthesize"])
def test_a_bad_plan_is_refused_in_a_line_and_nothing_is_spent(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, command: str
) -> None:
    (folder / "bad.yaml").write_text(BAD_PLANS[name], "utf-8")
    release = ["synthesize", "calls.csv", "--plan", "bad.yaml", "--epsilon", "1", "-o", "out.csv", "--ledger", "l.db"]
    words = release if command == "synthesize" else ["plan", command, "bad.yaml"]

    code = run([*words, "-s", "schema.yaml"])

    shown = capsys.readouterr()
    assert code == 2
    assert shown.err.startswith("dpsyn: bad.yaml")
    assert "Traceback" not in shown.err
    assert not (folder / "l.db").exists()
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", "check", "nowhere.yaml", "-s", "schema.yaml"], "nowhere.yaml cannot be read"),
        (["plan", "check", "plan.yaml"], "Missing option"),
        (["plan", "predict", "plan.yaml", "-s", "schema.yaml", "--epsilon", "one"], "'one' is not a list of ε"),
        (["plan", "predict", "plan.yaml", "-s", "schema.yaml", "--epsilon", "0"], "give positive numbers"),
        (["plan", "draft", "calls.csv"], "calls.csv"),
        (["explore", "calls.csv", "-s", "schema.yaml"], "give --epsilon 0.1, or --exact"),
        (["explore", "calls.csv", "-s", "schema.yaml", "--epsilon", "1"], "such as -o first.dpsyn"),
        (["explore", "calls.csv", "-s", "schema.yaml", "--exact", "--epsilon", "1"], "leave out --epsilon"),
        (["explore", "calls.csv", "-s", "schema.yaml", "--epsilon", "1", "-o", "plan.yaml"], "plan.yaml exists"),
        (["explore", "calls.csv", "-s", "schema.yaml", "--epsilon", "-1", "-o", "s.dpsyn"], "ε is -1"),
        (["explore", "nowhere.csv", "-s", "schema.yaml", "--exact"], "nowhere.csv"),
        (["explore", "calls.csv", "-s", "schema.yaml", "--exact", "--set", "rare_sigmas=3"], "--exact does without"),
        (
            ["explore", "calls.csv", "-s", "schema.yaml", "--epsilon", "1", "-o", "s.dpsyn", "--set", "ways=3"],
            "explore has no option 'ways'; its options are",
        ),
        (
            ["measure", "calls.csv", "-s", "schema.yaml", "--plan", "plan.yaml", "--recipe", "privsyn",
             "--epsilon", "1", "-o", "s.dpsyn"],
            "leave out --recipe privsyn, or leave out --plan",
        ),
        (
            ["measure", "calls.csv", "-s", "schema.yaml", "--plan", "plan.yaml", "--epsilon", "1", "-o", "plan.yaml"],
            "given twice",
        ),
    ],
)  # fmt: skip
def test_mistakes_end_with_2_and_a_message(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    code = run(words)

    shown = capsys.readouterr()
    assert code == 2
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert sorted(path.name for path in folder.iterdir()) == ["calls.csv", "plan.yaml", "schema.yaml"]
