"""``dpsyn evaluate --epsilon``: what it prints and writes, and what it refuses before it spends anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dpsyn
from dpsyn.accounting import Ledger
from dpsyn.cli.main import run
from dpsyn.demo import people, people_schema

EVALUATE = ["evaluate", "people.csv", "synthetic.csv", "-s", "schema.yaml", "--epsilon", "1"]


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    dpsyn.write_table(people(rows=600, seed=1), "people.csv", synthetic=False)
    dpsyn.write_table(people(rows=500, seed=2), "synthetic.csv", synthetic=False)
    people_schema().save("schema.yaml")
    Path("criteria.yaml").write_text("{dpsyn_criteria: 1, criteria: [{mean: age, within: 50}]}", "utf-8")
    Ledger.create(Path("ledger.db"))
    return tmp_path


def spent() -> list[int]:
    return [len(one.measurements) for dataset in Ledger(Path("ledger.db")).datasets() for one in dataset.runs]


def test_figures_are_printed_written_and_charged(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--json", "e.json", "--html", "e.html", "--ledger", "ledger.db"]

    assert run([*EVALUATE, *files, "--criteria", "criteria.yaml", "--by", "sex, district"]) == 0

    shown, data, page = capsys.readouterr().out, json.loads(Path("e.json").read_text()), Path("e.html").read_text()
    assert shown.startswith("May be published")
    assert "mean of age within 50" in shown
    assert "sex = female" in shown
    assert "Privacy certificate" in shown
    assert len(data["certificate"]["measurements"]) == spent()[0] == 1 + 4 + 14 + 2 + 2 + 2
    assert data["criteria"][0]["verdict"] == "met"
    for text in ("May be published", data["synthetic_hash"], "sex = female", "mean of age within 50", "ε = 1"):
        assert text in page
    assert "<script" not in page
    assert not Path("e.json.journal").exists()


def test_without_a_ledger_figures_may_be_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*EVALUATE, "--no-attributes", "--json", "-", "-q"]) == 0

    data = json.loads(capsys.readouterr().out)
    assert data["attributes"] == []
    assert data["notice"].startswith("May be published")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*EVALUATE, "--ledger", "ledger.db"], "give --json FILE or --html FILE"),
        ([*EVALUATE, "--resume"], "give --json FILE"),
        ([*EVALUATE, "synthetic.csv"], "one synthetic table"),
        ([*EVALUATE, "--seed", "1"], "--seed is computed from the real rows"),
        ([*EVALUATE, "--target", "sex"], "--target is computed from the real rows"),
        ([*EVALUATE, "--by", "sex,"], "--by is 'sex,'"),
        ([*EVALUATE, "--by", "person_id", "--json", "e.json", "--ledger", "ledger.db"], "is not compared"),
        ([*EVALUATE, "--criteria", "nosuch.yaml"], "nosuch.yaml"),
        ([*EVALUATE, "--json", "people.csv", "--force"], "people.csv is given twice"),
        ([*EVALUATE, "--json", "criteria.yaml"], "exists"),
        ([*EVALUATE[:-2], "--ledger", "ledger.db"], "give --epsilon, too"),
        ([*EVALUATE[:-2], "--criteria", "criteria.yaml"], "give --epsilon, too"),
        (["evaluate", "--against-release", "s.dpsyn", "synthetic.csv", "--epsilon", "1"], "needs the real table"),
    ],
)
def test_mistakes_are_refused_before_anything_is_spent(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2

    assert message in capsys.readouterr().err
    assert spent() == []
    assert not Path("e.json").exists()


def test_an_output_that_cannot_be_written_can_be_resumed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*EVALUATE, "--json", "e.json", "--ledger", "ledger.db"]
    with monkeypatch.context() as patched:
        patched.setattr(
            "dpsyn.cli.output.write_text", lambda *_, **__: (_ for _ in ()).throw(dpsyn.OutputError("disk full"))
        )
        assert run(asked) == 2
    assert "run the same command with --resume" in capsys.readouterr().err
    charged = spent()

    assert run([*asked, "--resume", "-q"]) == 0

    assert spent() == charged
    assert Path("e.json").exists()
    assert not Path("e.json.journal").exists()
