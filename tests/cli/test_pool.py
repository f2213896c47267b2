"""``dpsyn pool``: results of other programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsyn.analysis import ReplicatesRecord
from dpsyn.cli.generate import UNCERTAINTY
from dpsyn.cli.main import run
from dpsyn.inference.redraw import parse_uncertainty


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["replicate,term,estimate,std.error", *(f"{n},age,{n}.5,0.5" for n in range(1, 6))]
    Path("results.csv").write_text("\n".join(rows), "utf-8")
    ReplicatesRecord(count=5, rows=100, uncertainty="all", private_rows=100.0).save("rows-replicates.json")
    ReplicatesRecord(count=5, rows=100, uncertainty="rows", private_rows=100.0).save("same-replicates.json")


def test_results_are_pooled_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pool", "results.csv", "--replicates", "rows-replicates.json"]) == 0

    shown = capsys.readouterr().out
    line = next(line for line in shown.splitlines() if line.split()[:1] == ["age"])
    assert line.split() == ["age", "3.5", "1.7", "-1.3", "…", "8.3", "92", "%"]
    assert "about a population of which the private table is a sample" in shown


def test_json_has_all_digits(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pool", "results.csv", "--level", "0.5", "--json"]) == 0

    data = json.loads(capsys.readouterr().out)
    assert data["level"] == 0.5
    assert data["terms"][0]["standard_error"] == pytest.approx(3**0.5)
    assert any("is assumed" in note for note in data["notes"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["results.csv", "--replicates", "same-replicates.json"], "far too short"),
        (["results.csv", "--replicates", "results.csv"], "does not describe replicates"),
        (["none.csv"], "cannot be read: no such file"),
        (["rows-replicates.json"], "is no file of results"),
        (["results.csv", "--level", "2"], "the level is 2.0"),
    ],
)
def test_mistakes_are_explained(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pool", *options]) == 2

    assert message in capsys.readouterr().err


def test_the_names_in_the_help_are_those_of_the_library() -> None:
    assert [parse_uncertainty(name) for name in UNCERTAINTY] == list(UNCERTAINTY)
