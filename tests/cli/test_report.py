"""Reports on the command line: who may read them, and what is refused before work is done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpsyn.cli.main import run
from dpsyn.evaluation import EVALUATION_NOTICE
from dpsyn.schema import Schema
from dpsyn.synopsis import Synopsis, comparison

SCHEMA = """
dpsyn_schema: 1
dataset: people
attributes:
  age: {kind: integer, low: 0, high: 99, bins: 10}
  sex: {kind: categorical, values: [F, M]}
"""
RELEASE = ["synthesize", "people.csv", "-s", "schema.yaml", "--epsilon", "1", "--recipe", "independent", "-q"]
PRIVATE = ["evaluate", "people.csv", "synthetic.csv", "-s", "schema.yaml", "-q"]
PUBLIC = ["evaluate", "--against-release", "s.dpsyn", "synthetic.csv", "-q"]


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("schema.yaml").write_text(SCHEMA, "utf-8")
    lines = [f"{n % 90},{'FM'[n % 2]}" for n in range(300)]
    Path("people.csv").write_text("\n".join(["age,sex", *lines]) + "\n", "utf-8")
    Path("synthetic.csv").write_text("\n".join(["age,sex", *lines[:200]]) + "\n", "utf-8")
    schema = Schema.load("schema.yaml")
    counts: dict[Any, Any] = {
        "age": [30.0] * 9 + [0.0],
        "sex": [151.0, 149.0],
        ("age", "sex"): [[15.0, 15.0]] * 9 + [[0.0, 0.0]],
    }
    Synopsis.from_marginals(schema, counts, std=3.0, source="a test").save("s.dpsyn")
    return tmp_path


def test_a_report_on_the_real_table_is_private_and_for_its_owner_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PRIVATE, "--html", "report.html", "--certificate", "s.dpsyn"]) == 0

    page = Path("report.html").read_text("utf-8")
    assert EVALUATION_NOTICE in page
    assert "synthetic.csv against people.csv" in page
    assert "measured elsewhere" in page
    assert Path("report.html").stat().st_mode & 0o777 == 0o600
    assert capsys.readouterr().out == ""


def test_rows_are_compared_with_what_was_released_without_the_real_table(capsys: pytest.CaptureFixture[str]) -> None:
    Path("people.csv").unlink()

    assert run([*(word for word in PUBLIC if word != "-q"), "--html", "report.html", "--json", "close.json"]) == 0

    page, data = Path("report.html").read_text("utf-8"), json.loads(Path("close.json").read_text("utf-8"))
    shown = capsys.readouterr().out
    assert EVALUATION_NOTICE not in page + shown
    assert "Guarantee not verified here." in page
    assert "Guarantee not verified here." in shown
    assert "distance of pairs (1)" in shown
    assert (
        "The rows agree with the released counts as closely as their noise can tell; all single columns are kept."
        in shown
    )
    assert shown.endswith("Wrote report.html.\nWrote close.json.\n")
    assert data["notice"] == comparison.PUBLISHABLE_NOTICE
    assert (data["synthetic_rows"], len(data["marginals"]), len(data["pairs"])) == (200, 3, 1)
    assert "people.csv" not in page
    assert "synthetic.csv" not in page
    assert Path("report.html").stat().st_mode & 0o777 != 0o600


def test_the_verdict_is_printed_before_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{n % 90},F" for n in range(200)]
    Path("one-sided.csv").write_text("\n".join(["age,sex", *lines]) + "\n", "utf-8")

    assert run(["evaluate", "people.csv", "synthetic.csv", "one-sided.csv", "-s", "schema.yaml"]) == 0

    shown = capsys.readouterr().out
    verdict = "; but 1 of 2 columns differs: sex."
    assert shown.count(verdict) == 1
    assert "all single columns are kept." in shown
    figures = shown.index("distance of 2 one-way marginals", shown.index("one-sided.csv against people.csv"))
    assert shown.index(EVALUATION_NOTICE) < shown.index(verdict) < figures
    assert "  - sex: 50.0 % of the rows would have to change (a fresh sample: " in shown


def test_a_release_writes_the_report_that_may_be_published(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RELEASE[:-1], "-o", "rows.csv", "--report", "report.html"]) == 0

    page = Path("report.html").read_text("utf-8")
    assert "May be published: this comparison was made from the released counts" in page
    assert "Certified: the guarantee holds." in page
    assert "Wrote report.html" in capsys.readouterr().out
    assert not list(Path().glob("*.journal"))


def test_a_release_and_its_report_have_the_groups_that_were_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    Path("schema.yaml").write_text(SCHEMA + "groups: [age]\n", "utf-8")
    release = [*RELEASE, "--recipe", "direct", "-o", "rows.csv", "--report", "report.html", "--force"]

    assert run(release) == 0
    declared = Path("report.html").read_text("utf-8")
    assert run([*release, "--by", "sex", "--synopsis", "asked.dpsyn"]) == 0
    asked = Path("report.html").read_text("utf-8")

    assert ("age = 0..9" in declared, "sex = F" in declared) == (True, False)
    assert ("age = 0..9" in asked, "sex = F" in asked) == (False, True)
    assert Synopsis.load("asked.dpsyn").schema.groups == ("sex",)
    assert run([*RELEASE, "-o", "other.csv", "--by", "sex"]) == 2
    assert "--by names the groups of a report; give --report FILE, too" in capsys.readouterr().err
    assert run([*release, "--by", "gender"]) == 2
    assert "'gender' is not compared" in capsys.readouterr().err


def test_groups_that_are_too_many_are_refused_before_anything_is_spent(capsys: pytest.CaptureFixture[str]) -> None:
    Path("schema.yaml").write_text(SCHEMA.replace("bins: 10", "bins: 100, missing: true") + "groups: [age]\n", "utf-8")

    assert run([*RELEASE, "-o", "rows.csv", "--report", "report.html"]) == 2

    assert "'age' has 101 values or bins; give an attribute with at most 100 groups" in capsys.readouterr().err
    assert not Path("rows.csv").exists()


def test_a_synopsis_alone_has_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "s.dpsyn", "--html", "synopsis.html"]) == 0

    first = Path("synopsis.html").read_text("utf-8")
    assert f"{Synopsis.load('s.dpsyn').rows} synthetic rows, 3 noisy marginals in 1 release" in first
    assert "Guarantee not verified here." in first
    assert capsys.readouterr().out == "Wrote synopsis.html.\n"
    assert run(["inspect", "s.dpsyn", "--html", "-"]) == 0
    assert capsys.readouterr().out.rstrip() == first.rstrip()


def test_the_certificate_of_another_table_does_not_join_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.yaml").write_text(SCHEMA.replace("sex", "gender"), "utf-8")
    schema = Schema.load("other.yaml")
    Synopsis.from_marginals(schema, {"age": [1.0] * 10, "gender": [5.0, 5.0]}, std=1.0, source="x").save("o.dpsyn")

    assert run([*PRIVATE, "--html", "report.html", "--certificate", "o.dpsyn"]) == 2

    assert "o.dpsyn does not have the columns of schema.yaml" in capsys.readouterr().err
    assert not Path("report.html").exists()


def test_a_release_of_no_rows_has_its_report_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RELEASE, "-o", "rows.csv", "--rows", "0", "--report", "report.html"]) == 0

    assert "0 synthetic rows, 6 noisy marginals in 1 release" in Path("report.html").read_text("utf-8")
    assert Path("rows.csv").read_text("utf-8").split() == ['"age","sex"']
    assert not list(Path().glob("*.journal"))


def test_a_private_report_that_replaces_a_published_one_is_not_for_everybody() -> None:
    Path("report.html").write_text("published", "utf-8")
    Path("report.html").chmod(0o644)

    assert run([*PRIVATE, "--html", "report.html", "--force"]) == 0

    assert not Path("report.html").stat().st_mode & 0o007


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_standard_output_is_an_error() -> None:
    command = [sys.executable, "-m", "dpsyn", *PUBLIC]
    with open("/dev/full", "wb") as full:
        finished = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)

    assert finished.returncode == 2
    assert b"standard output cannot be written" in finished.stderr


def test_a_page_goes_to_standard_output_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PUBLIC, "--html", "-"]) == 0

    shown = capsys.readouterr().out
    assert shown.startswith("<!doctype html>")
    assert shown.rstrip().endswith("</html>")


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ([*PRIVATE[:3], "-q"], "Missing option '-s'"),
        (["evaluate", "people.csv", "-s", "schema.yaml"], "Missing argument 'SYNTHETIC...'"),
        ([*PUBLIC, "people.csv"], "reads no real table; give the synthetic one alone"),
        ([*PUBLIC, "-s", "schema.yaml"], "--schema needs the real table"),
        ([*PUBLIC, "--target", "sex"], "--target needs the real table"),
        ([*PUBLIC, "--certificate", "s.dpsyn"], "--certificate needs the real table"),
        ([*PUBLIC, "--preset", "paper"], "--preset needs the real table"),
        ([*PUBLIC, "--seed", "0"], "--seed needs the real table"),
        ([*PUBLIC, "--nist-income", "region=x"], "--nist-income needs the real table"),
        ([*PRIVATE, "people.csv", "--html", "r.html"], "--html makes a report of one synthetic table"),
        ([*PRIVATE, "--html", "people.csv"], "people.csv is given twice"),
        ([*PRIVATE, "--html", "x", "--json", "x"], "x is given twice"),
        ([*PRIVATE, "--html", "-", "--json", "-"], "--html and --json cannot both go to standard output"),
        ([*PUBLIC, "--html", "s.dpsyn"], "s.dpsyn is given twice"),
        (["inspect", "s.dpsyn", "--html", "s.dpsyn"], "s.dpsyn is given twice"),
        (["inspect", "s.dpsyn", "--html", "schema.yaml"], "schema.yaml exists; give another name, or --force"),
        (["inspect", "s.dpsyn", "--html", "-", "--json"], "--html and --json cannot both go to standard output"),
        ([*PUBLIC, "--html", "nowhere/r.html"], "there is no folder nowhere"),
        ([*PUBLIC, "--html", "schema.yaml"], "schema.yaml exists; give another name, or --force"),
        ([*RELEASE, "-o", "rows.csv", "--report", "rows.csv"], "rows.csv is given twice"),
        ([*RELEASE, "-o", "rows.csv", "--report", "schema.yaml"], "schema.yaml is given twice"),
        ([*RELEASE, "-o", "rows.csv", "--report", "synthetic.csv"], "synthetic.csv exists"),
        ([*RELEASE, "-o", "rows.csv", "--report", "-"], "--report cannot go to standard output"),
        ([*RELEASE, "-o", "rows.csv", "--synopsis", "-"], "--synopsis cannot go to standard output"),
        ([*RELEASE, "-o", "rows.csv", "--report", "nowhere/r.html"], "there is no folder nowhere"),
        (["evaluate", "--against-release", "schema.yaml", "synthetic.csv"], "schema.yaml is not a synopsis"),
    ],
)
def test_mistakes_are_refused_before_any_work(
    command: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(Path().iterdir())

    assert run(command) == 2

    assert complaint in capsys.readouterr().err
    assert set(Path().iterdir()) == before


@pytest.mark.parametrize(
    "command",
    [[*PRIVATE, "--html", "r.html"], [*PUBLIC, "--html", "r.html"], [*RELEASE, "-o", "rows.csv", "--report", "r.html"]],
)
def test_without_the_library_the_extra_is_named_before_any_budget_is_spent(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    before = set(Path().iterdir())

    assert run([*command, *(["--ledger", "l.db"] if command[0] == "synthesize" else [])]) == 2

    assert "pip install 'vl-convert-python" in capsys.readouterr().err
    assert set(Path().iterdir()) == before
