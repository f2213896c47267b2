"""``dpsyn contest``: the commands of a whole contest, and its ranking as text, JSON and HTML."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsyn.cli.main import run
from dpsyn.contest.terms import MIN_ROWS

SCHEMA = """
dpsyn_schema: 1
attributes:
  region: {kind: categorical, values: [north, south, west]}
  sex: {kind: categorical, values: [f, m]}
  wage: {kind: integer, low: 0, high: 9999}
"""


@pytest.fixture
def contest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A contest in the working folder, with a perfect submission at one of two ε."""
    monkeypatch.chdir(tmp_path)
    Path("schema.yaml").write_text(SCHEMA, "utf-8")
    words = "contest make schema.yaml --rows 500 --epsilon 4,0.5 --seed 5 -o contest --preset match3"
    assert run([*words.split(), "--nist-income", "region=region,sex=sex,income=wage"]) == 0
    shown = capsys.readouterr().out
    assert "publish contest/public with 500 rows, and keep contest/hidden with 500 rows to yourself" in shown
    assert "one for each ε: NAME-epsilon-0.5.csv, NAME-epsilon-4.csv, with δ at most 4e-6" in shown
    table = Path("contest/hidden/evaluation.csv").read_bytes()
    Path("contest/submissions/<best>-epsilon-4.csv").write_bytes(table)
    return Path("contest")


def test_the_ranking_is_printed_and_written(contest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["contest", "score", "contest", "--draws", "1", "--json", "r.json", "--html", "r.html"])

    captured = capsys.readouterr()
    assert code == 0
    assert "… step 3 of 3: scoring <best> at ε = 4" in captured.err
    lines = [line.split() for line in captured.out.splitlines() if line.strip()]
    assert ["contestant", "score", "ε", "=", "0.5", "ε", "=", "4"] in lines
    assert ["1.", "<best>", "500,000", "–", "1,000,000"] in lines
    data, page = json.loads(Path("r.json").read_text("utf-8")), Path("r.html").read_text("utf-8")
    assert data["submissions"][0]["score"] == 500_000
    assert "&lt;best&gt;" in page
    assert "<best>" not in page
    assert "<script" not in page
    assert data["contest"]["commitment"] in page
    assert f"{data['fresh_sample']['density']:,.0f}" in page


def test_json_on_standard_output_stands_alone(contest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["contest", "score", "contest", "--draws", "1", "--json", "-", "--quiet"]) == 0

    captured = capsys.readouterr()
    assert json.loads(captured.out)["draws"] == 1
    assert captured.err == ""


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("make schema.yaml --rows 100 -o contest", "not empty"),
        ("make schema.yaml --rows 100 -o -", "a contest is a folder"),
        ("make schema.yaml --rows 99 -o new", "99 is not in the range x>=100"),
        ("make schema.yaml --rows 500 --development-rows 99 -o new", "99 is not in the range x>=100"),
        ("make schema.yaml -o new", "the schema has no expected_size"),
        ("make schema.yaml --rows 100 --epsilon x -o new", "is not a list of ε"),
        ("make nothing.yaml --rows 100 -o new", "no such file"),
        ("score schema.yaml", "is not the folder of a contest"),
        ("score contest --json - --html -", "cannot both go to standard output"),
        ("score contest --json schema.yaml", "exists; give another name, or --force"),
        ("score contest --json a --html a", "given twice"),
        ("score contest --json no/r.json", "there is no folder"),
    ],
)
def test_mistakes_are_refused(contest: Path, words: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["contest", *words.split()])

    assert code == 2
    assert complaint in capsys.readouterr().err
    assert sorted(path.name for path in Path().iterdir()) == ["contest", "schema.yaml"]


def test_the_smallest_number_of_rows_is_that_of_the_library(contest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["contest", "make", "--help"]) == 0

    assert capsys.readouterr().out.count(f"[x>={MIN_ROWS}]") == 2


def test_the_announced_delta_is_within_the_terms(contest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["contest", "make", "schema.yaml", "--rows", "1300", "-o", "new"]) == 0

    announced = capsys.readouterr().out.split()[-1].rstrip(".")
    assert 0.99 / 1_300**2 < float(announced) <= 1 / 1_300**2


def test_notes_go_to_standard_error_unless_it_shall_be_quiet(contest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("contest/submissions/README.md").touch()
    Path("contest/public/development.csv").write_text("region,sex,wage\nnorth,f,1\n", "utf-8")
    words = ["contest", "score", "contest", "--draws", "1"]

    assert run(words) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Note: ")]
    assert run([*words, "--quiet"]) == 0
    quiet = capsys.readouterr().err
    assert run(["contest", "make", "schema.yaml", "--rows", "100", "--epsilon", "30", "-o", "new"]) == 0

    assert len(notes) == 2
    assert "README.md is ignored" in notes[0]
    assert "contest/public/development.csv is not the table that the seed makes" in notes[1]
    assert quiet == ""
    assert "Note: ε = 30 is above 20" in capsys.readouterr().err
