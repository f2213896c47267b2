"""Files of every format, as 0.1.0 wrote them, are read by this version (``docs/reference/compatibility.md``).

``python -m tests.test_golden_files FOLDER`` writes a new set, for a new format; what is stored is never rewritten.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dpsyn
from dpsyn.assessment.candidates import load_candidates
from dpsyn.cli.main import run

GOLDEN = Path(__file__).parent / "golden_files" / "0.1.0"
PAGE = (Path(__file__).parents[1] / "docs" / "reference" / "compatibility.md").read_text("utf-8")

SCHEMA = """\
dpsyn_schema: 1
dataset: golden
expected_size: 60
privacy_unit: {id: person, max_rows: 2}
attributes:
  person: {kind: identifier}
  age: {kind: integer, low: 0, high: 99}
  sex: {kind: categorical, values: [f, m], other: x, because: questionnaire}
  born: {kind: datetime, start: 2000-01-01, end: 2001-12-31, missing: true}
  adult: {kind: boolean}
derive:
  adult: {from: age, mapping: {0..17: false}, otherwise: true}
rules:
  - {rule: impossible, where: {age: 0..5, sex: x}, because: never asked}
"""
PLAN = "dpsyn_plan: 1\nmarginals:\n  - [age, sex]\n  - {of: [born], share: 1/4, mechanism: laplace}\n"
CRITERIA = "dpsyn_criteria: 1\ncriteria:\n  - {distance: [age, sex], at_most: 0.2}\n  - {mean: age, within: 10}\n"
CANDIDATES = "dpsyn_candidates: 1\ncandidates:\n  columns: {recipe: independent}\n  other: {recipe: dpsyn}\n"


def make_table() -> pa.Table:
    """The private table of the golden release."""
    numbers = range(60)
    return pa.table(
        {
            "person": [f"p{n // 2}" for n in numbers],
            "age": [7 * n % 100 for n in numbers],
            "sex": ["fmx"[n % 3] for n in numbers],
            "born": [f"200{n % 2}-0{n % 9 + 1}-11" for n in numbers],
        }
    )


class InterruptionError(Exception):
    """Ends the run whose journal is kept."""


def write_golden_files(folder: Path) -> None:
    """A file of every format, from one small release with a ledger and a signature, and one run that is interrupted."""
    folder.mkdir(parents=True)
    for name, text in (("schema", SCHEMA), ("plan", PLAN), ("criteria", CRITERIA), ("candidates", CANDIDATES)):
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    schema = dpsyn.Schema.from_yaml(SCHEMA)
    key = dpsyn.SigningKey.generate()
    key.save(folder / "steward.key")
    ledger = dpsyn.Ledger.create(folder / "ledger.db", {"golden": dpsyn.Cap.for_guarantee(4, 1e-6)})
    plan = dpsyn.Plan.from_yaml(PLAN)
    synopsis = dpsyn.measure(
        make_table(), schema, epsilon=2, delta=1e-7, recipe=dpsyn.Planned(plan=plan), ledger=ledger
    )
    synopsis.write(f"{folder}/release/", rows=20, seed=1, card=True, sign=key)
    assert (
        run(["generate", str(folder / "release"), "--rows", "9", "--replicates", "2", "-o", str(folder / "rows.csv")])
        == 0
    )
    interrupt(folder / "interrupted.journal")


def interrupt(journal: Path) -> None:
    """A run of recipe ``independent`` that ends after its first answers."""

    def stop(phase: str, done: float) -> None:
        if journal.exists() and journal.read_text("utf-8").count('"record":"answer"') >= 2:
            raise InterruptionError

    with pytest.raises(InterruptionError):
        resume(journal, progress=stop, again=False)


def resume(journal: Path, *, progress: Any = None, again: bool = True) -> dpsyn.Synopsis:
    """The run of the journal, from its beginning or from where it was interrupted."""
    options = {"progress": progress} if progress else {}
    return dpsyn.measure(
        make_table(),
        dpsyn.Schema.from_yaml(SCHEMA),
        epsilon=1,
        delta=1e-7,
        recipe=dpsyn.Independent(noise="gaussian"),
        journal=journal,
        resume=again,
        **options,
    )


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the stored files, because reading a ledger locks it."""
    monkeypatch.setenv("DPSYN_STATE_DIR", str(tmp_path / "state"))
    return Path(shutil.copytree(GOLDEN, tmp_path / "golden"))


def test_schema_plan_criteria_and_candidates_are_read(files: Path) -> None:
    schema = dpsyn.Schema.load(files / "schema.yaml")

    assert schema == dpsyn.Schema.from_yaml(SCHEMA)
    assert dpsyn.Plan.load(files / "plan.yaml", schema) == dpsyn.Plan.from_yaml(PLAN)
    assert len(dpsyn.Criteria.load(files / "criteria.yaml", schema).criteria) == 2
    assert len(load_candidates([files / "candidates.yaml"], schema)) == 2


def test_synopsis_and_certificate_are_read_and_cost_what_they_did(files: Path) -> None:
    synopsis = dpsyn.Synopsis.load(files / "release", recompute=True)
    [certificate] = synopsis.certificates
    assert certificate is not None
    stored = json.loads((files / "release" / "certificate.json").read_text("utf-8"))

    assert certificate.guarantee == "ε = 2, δ = 1e-7"
    assert certificate.privacy_unit.max_rows == 2
    [recorded] = [release["certificate"] for release in stored["releases"]]
    assert float(certificate.epsilon_bounds.epsilon) == pytest.approx(recorded["certified_epsilon"], rel=1e-9)
    assert len(certificate.account.measurements) == len(recorded["measurements"])
    assert synopsis.generate(20, seed=1, output_format="arrow").column_names == ["age", "sex", "born", "adult"]
    assert synopsis.marginal("sex").counts.sum() == pytest.approx(synopsis.rows, rel=0.5)


def test_signature_key_and_ledger_are_read_and_agree(files: Path) -> None:
    key = dpsyn.SigningKey.load(files / "steward.key").public_key
    result = dpsyn.verify(files / "release", key, ledger=files / "ledger.db")

    assert result.verdict == "verified", [check for check in result.checks if not check.passed]
    assert key == dpsyn.PublicKey.parse(files / "steward.key.pub")
    [account] = dpsyn.Ledger(files / "ledger.db").datasets()
    assert account.cap == dpsyn.Cap.for_guarantee(4, 1e-6)
    assert 0 < account.rho < account.cap.rho
    assert isinstance(account.rho, Fraction)


def test_the_stand_alone_verifier_of_this_version_verifies_the_release(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = files / "verify_release.py"
    program.write_text(dpsyn.verifier_source(), "utf-8")
    key = (files / "steward.key.pub").read_text("utf-8").strip()
    monkeypatch.setattr(sys, "argv", [str(program), str(files / "release"), "--key", key])

    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(program), run_name="__main__")

    assert ended.value.code == 0, capsys.readouterr().out


def test_an_interrupted_run_is_resumed_from_its_journal_without_spending_twice(files: Path) -> None:
    stored = (files / "interrupted.journal").read_text("utf-8")
    [certificate] = resume(files / "interrupted.journal").certificates

    assert certificate is not None
    assert stored.count('"record":"answer"') >= 2
    assert certificate.lost_answers == 0
    assert certificate.account.total.rho <= certificate.account.budget.rho
    assert f'"run":"{certificate.run}"' in stored


def test_the_record_of_replicates_is_read(files: Path) -> None:
    lines = [f"{k},age,{40 + k},1.0" for k in (1, 2)]
    (files / "results.csv").write_text("\n".join(["replicate,term,estimate,std.error", *lines]), "utf-8")

    pooled = dpsyn.pool_results_file(files / "results.csv", files / "rows-replicates.json")

    assert pooled.estimates.mean() == 41.5


def test_the_page_of_formats_names_every_stored_file_and_no_other() -> None:
    named = set(re.findall(r"\| [^|]*?`([\w./-]+)`(?:, `([\w./-]+)`)? \|$", PAGE, re.MULTILINE))
    named_files = {name for pair in named for name in pair if name} - {"release/"}
    stored = {str(path.relative_to(GOLDEN)) for path in GOLDEN.rglob("*") if path.is_file()}
    beside = {"rows-1.csv", "rows-2.csv"}  # the replicates that the record is about

    assert named_files <= stored
    assert {name for name in stored if not name.startswith("release/")} - beside == {
        name for name in named_files if not name.startswith("release/")
    }
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()) < 200_000


if __name__ == "__main__":
    os.environ.setdefault("DPSYN_STATE_DIR", str(Path(sys.argv[1]).parent / "state"))
    write_golden_files(Path(sys.argv[1]))
