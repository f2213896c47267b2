"""Genuine releases of every kind are verified, by ``dpsyn verify`` and by the stand-alone verifier."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.signatures import verifier_source, verify_release
from tests.recipes.test_golden_rows import BINARY, PLAN, VISITS, baskets, bits
from tests.recipes.test_golden_rows import visits as stays
from tests.verification.releases import schema, verdicts, visits

KEY = dpsyn.SigningKey.generate()


def write(synopsis: dpsyn.Synopsis, folder: Path) -> Path:
    synopsis.write(f"{folder}/", 60, seed=1, card=True, with_verifier=True, sign=KEY)
    return folder


def assert_verified(release: Path, ledger: Path | None = None) -> None:
    assert verdicts(release, KEY.public_key, ledger) == ("verified", 0)
    assert verdicts(release) == ("unsigned", 3)


# ── every recipe, every kind of noise ────────────────────────────────────────────────────────────────────────


def recipes() -> list[Any]:
    named = [name for name in dpsyn.RECIPES if name not in ("planned", "direct")]
    return [pytest.param(name, marks=[] if name in ("dpsyn", "mwem") else pytest.mark.check) for name in named]


@pytest.mark.parametrize("recipe", recipes())
def test_a_release_of_every_recipe_is_verified(recipe: str, tmp_path: Path) -> None:
    assert_verified(write(dpsyn.measure(bits(600), BINARY, 1.0, recipe=recipe), tmp_path / "release"))


@pytest.mark.parametrize("recipe", ["direct", pytest.param("fourier", marks=pytest.mark.check), "mwem"])
def test_a_pure_release_is_verified(recipe: str, tmp_path: Path) -> None:
    synopsis = dpsyn.measure(bits(600), BINARY, 1.0, delta=0, recipe=recipe)

    assert synopsis.certificates[0] is not None
    assert synopsis.certificates[0].account.budget.is_pure
    assert_verified(write(synopsis, tmp_path / "release"))


@pytest.mark.check
def test_a_planned_release_with_recodings_thresholds_and_laplace_noise_is_verified(tmp_path: Path) -> None:
    recipe = dpsyn.Planned(plan=dpsyn.Plan.from_yaml(PLAN))
    synopsis = dpsyn.measure(stays(6_000), VISITS, 4.0, recipe=recipe)
    certificate = synopsis.certificates[0]

    assert certificate is not None
    assert {type(m.cost).__name__ for m in certificate.account.measurements} == {
        "Gaussian", "Laplace", "PartitionSelection",
    }  # fmt: skip
    assert_verified(write(synopsis, tmp_path / "release"))


@pytest.mark.check
@pytest.mark.parametrize("epsilon", [0.05, 12.0, 60.0])
def test_releases_with_very_small_and_very_large_budgets_are_verified(epsilon: float, tmp_path: Path) -> None:
    options: dict[str, Any] = {"recipe": dpsyn.Direct(noise="gaussian"), "allow_large_epsilon": True}
    synopsis = dpsyn.measure(bits(600), BINARY, epsilon, delta=1e-12, **options)

    assert_verified(write(synopsis, tmp_path / "release"))


@pytest.mark.check
@pytest.mark.parametrize("unit", ["neighbors: replace", "privacy_unit: {id: person, max_rows: 3}"])
def test_releases_for_other_privacy_units_are_verified(unit: str, tmp_path: Path) -> None:
    person = "  person: {kind: identifier}\n" if "person" in unit else ""
    text = f"dpsyn_schema: 1\n{unit}\nattributes:\n{person}  ward: {{kind: categorical, codes: 4}}\n"
    table = visits().select(["ward"]).append_column("person", pa.array(np.arange(5_000) // 2))
    table = table if person else table.drop(["person"])

    assert_verified(write(dpsyn.measure(table, schema(text), 1.0), tmp_path / "release"))


# ── ledgers, several releases, interrupted runs, queries ─────────────────────────────────────────────────────


def test_an_extended_release_is_verified_with_its_ledger(tmp_path: Path) -> None:
    ledger = dpsyn.Ledger.create(tmp_path / "ledger.db")
    first = dpsyn.measure(bits(600), BINARY, 1.0, recipe="independent", ledger=ledger, dataset="bits")
    both = dpsyn.measure(bits(600), BINARY, 1.0, ledger=ledger, dataset="bits", extend=first)

    assert len(both.releases) == 2
    assert_verified(write(both, tmp_path / "release"), ledger.path)
    assert verdicts(tmp_path / "release", KEY.public_key, ledger.path) == ("verified", 0)


def test_a_resumed_release_is_verified_with_its_ledger(tmp_path: Path) -> None:
    ledger, journal = dpsyn.Ledger.create(tmp_path / "ledger.db"), tmp_path / "run.journal"
    options: dict[str, Any] = {"dataset": "bits", "ledger": ledger, "journal": journal}

    def interrupt(phase: str, done: float) -> None:
        if journal.exists() and journal.stat().st_size > 2_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dpsyn.measure(bits(600), BINARY, 1.0, progress=interrupt, **options)
    synopsis = dpsyn.measure(bits(600), BINARY, 1.0, resume=True, **options)

    assert_verified(write(synopsis, tmp_path / "release"), ledger.path)


@pytest.mark.check
def test_a_release_of_a_query_is_verified(tmp_path: Path) -> None:
    dpsyn.write_table(bits(600), tmp_path / "bits.csv", synthetic=False)
    query = "SELECT x0, x1 FROM data WHERE x2 = '1'"
    two = dpsyn.Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n  x0: {kind: boolean}\n  x1: {kind: categorical, codes: 2}\n"
    )
    synopsis = dpsyn.measure(tmp_path / "bits.csv", two, 1.0, query=query)

    assert_verified(write(synopsis, tmp_path / "release"))


@pytest.mark.check
def test_the_synopsis_of_frequent_itemsets_is_verified(tmp_path: Path) -> None:
    found = dpsyn.frequent_itemsets(baskets(), [f"i{i}" for i in range(12)], epsilon=1.0, top=8, method="bases")
    found.to_synopsis().save(tmp_path / "s.dpsyn", sign=KEY)

    assert_verified(tmp_path / "s.dpsyn")


def test_a_synopsis_is_verified_under_another_name(tmp_path: Path) -> None:
    dpsyn.measure(bits(600), BINARY, 1.0, recipe="independent").save(tmp_path / "s.dpsyn", sign=KEY)
    shutil.move(tmp_path / "s.dpsyn", tmp_path / "renamed.dpsyn")
    shutil.move(tmp_path / "s.dpsyn.signatures.json", tmp_path / "renamed.dpsyn.signatures.json")

    assert_verified(tmp_path / "renamed.dpsyn")


def test_rows_in_many_files_are_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsyn.sampling.parallel.PART_ROWS", 4 * 16_384)
    synopsis = dpsyn.measure(bits(600), BINARY, 1.0, recipe="direct")
    synopsis.write(f"{tmp_path}/release/", 150_000, seed=1, card=True, sign=KEY)
    parts = sorted((tmp_path / "release" / "synthetic").iterdir())

    assert len(parts) > 1
    assert_verified(tmp_path / "release")

    parts[1].write_bytes(parts[0].read_bytes())
    (tmp_path / "release" / "signatures.json").unlink()

    assert verdicts(tmp_path / "release") == ("refused", 1)


def test_a_release_that_several_people_signed_is_verified_by_each_of_their_keys(tmp_path: Path) -> None:
    release = write(dpsyn.measure(bits(600), BINARY, 1.0, recipe="independent"), tmp_path / "release")
    second = dpsyn.SigningKey.generate()
    dpsyn.sign(release, second)
    dpsyn.sign(release, KEY)  # once more changes nothing

    assert verdicts(release, KEY.public_key) == verdicts(release, second.public_key) == ("verified", 0)
    assert len(json.loads((release / "signatures.json").read_text("utf-8"))["signatures"]) == 2


def test_imported_numbers_have_no_cost_that_could_be_verified(tmp_path: Path) -> None:
    counts = {(name,): np.array([300.0, 300.0]) for name in BINARY.names}
    dpsyn.Synopsis.from_marginals(BINARY, counts, std=2.0, source="another office").save(tmp_path / "s.dpsyn", sign=KEY)

    assert verdicts(tmp_path / "s.dpsyn", KEY.public_key) == ("refused", 1)


# ── the stand-alone verifier stands alone ────────────────────────────────────────────────────────────────────


def test_the_stand_alone_verifier_imports_the_standard_library_alone() -> None:
    nodes = list(ast.walk(ast.parse(verifier_source())))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}

    assert {name.split(".")[0] for name in imported} <= set(sys.stdlib_module_names)
    assert "dpsyn" not in imported


def test_the_verifier_of_a_release_folder_runs_in_an_interpreter_without_packages(tmp_path: Path) -> None:
    release = write(dpsyn.measure(bits(600), BINARY, 1.0, recipe="independent"), tmp_path / "release")
    shutil.copy(release / "verify_release.py", tmp_path)
    command = [sys.executable, "-I", "-S", "verify_release.py", "release", "--key", str(KEY.public_key), "--json"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["verdict"] == "verified"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nowhere"], 2),
        (["release", "--key", "dpsyn-ed25519:AAAA"], 2),
        (["release", "--key", "no key"], 2),
        (["release", "--ledger", "nowhere.db"], 2),
    ],
)
def test_a_mistake_in_the_command_has_an_exit_code_of_its_own(
    arguments: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(dpsyn.measure(bits(600), BINARY, 1.0, recipe="independent"), tmp_path / "release")
    monkeypatch.chdir(tmp_path)

    assert verify_release.main(arguments) == code
    assert capsys.readouterr().err.startswith("verify_release: ")


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("mu", [1e-4, 0.02, 0.18, 1.0, 6.0])
def test_delta_by_quadrature_agrees_with_mills_ratio(epsilon: float, mu: float) -> None:
    """Two formulas, two implementations, from δ of nearly 1 down to the smallest that a certificate can have."""
    from dpsyn.accounting.conversion import gaussian_log_delta

    expected = float(gaussian_log_delta(np.float64(epsilon), mu))
    if expected < np.log(1e-200):
        return
    found = verify_release.gaussian_delta(epsilon, mu)

    assert np.log(found) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("steps", [(0.1,), (0.5, 0.5, 0.2), (0.05,) * 40, (0.3, 0.2, 0.1, 0.05, 0.02)])
def test_delta_with_pure_steps_agrees_with_the_closed_formula(steps: tuple[float, ...]) -> None:
    from collections import Counter
    from fractions import Fraction

    from dpsyn.accounting.composition import log_delta

    pure = tuple(Fraction(str(step)) for step in steps)
    cost = verify_release.Cost(mu2=Fraction(1, 25), pure=Counter(pure))

    assert verify_release.total_delta(1.0, cost) == pytest.approx(np.exp(log_delta(1.0, 0.2, pure)), rel=1e-6)


@pytest.mark.parametrize(("rho", "delta"), [(0.001, 1e-9), (0.02, 1e-6), (1.5, 1e-12), (40.0, 1e-9)])
def test_the_conversion_of_zcdp_agrees(rho: float, delta: float) -> None:
    from dpsyn.accounting.conversion import epsilon_for

    assert verify_release.zcdp_epsilon(rho, delta) == pytest.approx(epsilon_for(rho, delta, "zcdp"), rel=1e-7)
