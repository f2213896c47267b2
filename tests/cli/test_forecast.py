from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import dpsyn
from dpsyn.cli.main import run
from dpsyn.report.synopsis import describe_guarantee
from dpsyn.schema import Categorical, Open, Schema
from dpsyn.simulation import simulate

SCHEMA = Schema(attributes=tuple(Categorical(name=f"c{number}", codes=4) for number in range(4)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with schemas and a table."""
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("schema.yaml")
    Schema(attributes=(*SCHEMA.attributes, Open(name="street")), expected_size=200).save("sized.yaml")
    table = simulate(Schema.load("sized.yaml"), 200, 1).table()
    dpsyn.write_table(table, "table.csv", synthetic=True)
    return tmp_path


def test_a_forecast_is_printed_with_a_verdict(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = run(shlex.split("forecast -s schema.yaml --rows 300 --epsilon 0.2,4 --recipe independent"))

    out, err = capfd.readouterr()
    assert code == 0
    assert "… step 2 of 2: simulating releases at ε = 4" in err
    assert "At ε = 0.2 most pairs will be noise" in out
    assert "No data was read, and no budget was spent" in out
    assert "c3" in out


def test_json_and_a_plot(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    words = "forecast -s schema.yaml --rows 300 --epsilon 1 --recipe independent --json --plot f.svg"
    code = run(words.split())

    out, err = capfd.readouterr()
    assert (code, err) == (0, "")
    assert json.loads(out)["budgets"][0]["epsilon"] == 1.0
    assert "shuffled columns" in Path("f.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "no expected_size"),
        ("--rows 10 --epsilon x", "not a list of ε"),
        ("--rows 10 --plot f.pdf", "neither a .png nor a .svg"),
        ("--rows 10 --recipe nothing", "nothing"),
    ],
)
def test_a_mistake_is_explained(folder: Path, capfd: pytest.CaptureFixture[str], options: str, words: str) -> None:
    code = run(["forecast", "-s", "schema.yaml", *options.split()])

    assert code == 2
    assert words in capfd.readouterr().err


def test_a_release_begins_with_its_forecast(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = run(shlex.split("synthesize table.csv -s sized.yaml --epsilon 0.1 -o rows.csv"))

    lines = capfd.readouterr().err.splitlines()
    assert code == 0
    assert lines[0].startswith("… forecast for ε = 0.1 and 200 rows: two-way error about 0.")
    assert "by the forecast most pairs will be noise" in lines[1]
    assert "open attributes that will probably come out empty: street. A text is listed" in lines[2]


def test_the_forecast_of_a_release_names_pairs_with_the_target(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = run(shlex.split("measure table.csv -s sized.yaml --epsilon 5 --target c1 -o s.dpsyn"))

    assert code == 0
    assert ", of pairs with c1 0." in capfd.readouterr().err.splitlines()[0]
    assert run(shlex.split("forecast -s schema.yaml --rows 100 --epsilon 5 --target c1")) == 0
    assert "pairs with the target" in capfd.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        "--epsilon 30",
        "--epsilon 1 --delta 0",
        "--epsilon 1 --delta 0.5",
        "--epsilon 1 --target none",
        "--epsilon 1 --dataset d --ledger none.db",
        "--epsilon 1 --ledger ledger.db",
        "--epsilon 1 --dataset d --ledger ledger.db",
        "--epsilon 1 --recipe independent --set noise=laplace",
        "--epsilon 1 --query SELECT",
    ],
)
def test_a_release_that_is_refused_is_not_forecast(
    folder: Path, capfd: pytest.CaptureFixture[str], options: str
) -> None:
    dpsyn.Ledger.create("ledger.db", {"d": dpsyn.Cap.for_guarantee(0.5, 1e-8)})

    code = run([*shlex.split("measure table.csv -s sized.yaml -o s.dpsyn"), *options.split()])

    err = capfd.readouterr().err
    assert code == 2
    assert "forecast" not in err
    assert err.strip()


def test_a_missing_table_is_refused_before_the_forecast(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split("measure none.csv -s sized.yaml --epsilon 1 -o s.dpsyn")) == 2

    assert "forecast" not in capfd.readouterr().err


def test_a_release_without_pairs_says_that_columns_are_independent(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """After synthesize, in inspect, in its JSON and in a report; a release with pairs says nothing of the kind."""
    sentence = (
        "No pair of attributes was measured: rows are sampled column by column, as if attributes were independent"
    )
    for recipe, pairs in (("independent", False), ("privsyn", True)):
        options = f"--epsilon 5 --recipe {recipe} --synopsis {recipe}.dpsyn -o {recipe}.csv"
        assert run(["synthesize", "table.csv", "-s", "schema.yaml", *options.split()]) == 0
        assert (sentence in capfd.readouterr().out) is not pairs
        assert run(["inspect", f"{recipe}.dpsyn"]) == 0
        assert capfd.readouterr().out.count(sentence) == int(not pairs)
        assert run(["inspect", f"{recipe}.dpsyn", "--json"]) == 0
        assert json.loads(capfd.readouterr().out)["pairs_measured"] is pairs
        report = describe_guarantee(dpsyn.Synopsis.load(f"{recipe}.dpsyn"))
        assert sum(sentence in paragraph for paragraph in report.paragraphs) == int(not pairs)


def test_what_is_missing_for_a_forecast_is_named(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = run(shlex.split("measure table.csv -s schema.yaml --epsilon 1 -o s.dpsyn"))

    assert code == 0
    assert capfd.readouterr().err.startswith("… no forecast: the schema has no expected_size")


@pytest.mark.parametrize("recipe", ["privsyn", "independent"])
def test_only_recipes_with_a_closed_form_are_forecast_at_once(
    folder: Path, capfd: pytest.CaptureFixture[str], recipe: str
) -> None:
    code = run(f"measure table.csv -s sized.yaml --epsilon 5 --recipe {recipe} -o {recipe}.dpsyn".split())

    first = capfd.readouterr().err.splitlines()[0]
    assert code == 0
    assert first.startswith("… no quick forecast of recipe privsyn" if recipe == "privsyn" else "… forecast for ε = 5")


def test_inspect_compares_what_was_reached_with_the_forecast(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split("measure table.csv -s sized.yaml --epsilon 5 -o s.dpsyn -q")) == 0

    assert run(shlex.split("inspect s.dpsyn")) == 0
    assert "By the released numbers, the one-way error is about" in capfd.readouterr().out
    assert run(shlex.split("inspect s.dpsyn --json")) == 0
    assert json.loads(capfd.readouterr().out)["forecast"]["expected"]["shuffled"] > 0
