"""A released evaluation: its figures are right, all of them are charged, and mistakes are refused before that."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pytest

import dpsyn
from dpsyn.accounting import Cap, Ledger
from dpsyn.assessment.criteria import MeanCriterion
from dpsyn.assessment.figures import judge_criterion
from dpsyn.assessment.intervals import Z, ratio_interval, solve_noisy_moments
from dpsyn.errors import DocumentError, SourceError, UserError
from dpsyn.marginals.comparison import SMALL_GROUP_ROWS
from dpsyn.private import open_private
from dpsyn.private.gate import PrivacyGate
from dpsyn.schema import Boolean, Categorical, Integer, Open, Real, Schema

SCHEMA = Schema(
    attributes=(
        Categorical(name="sex", values=("f", "m", "x")),
        Integer(name="age", low=0, high=99),
        Real(name="wage", low=0, high=50, decimals=1, missing=True),
        Boolean(name="employed"),
    ),
    dataset="people",
)
CRITERIA = """
dpsyn_criteria: 1
criteria:
  - {mean: wage, within: 1}
  - {distance: [sex, employed], at_most: 0.2}
  - {coefficient: age, formula: employed ~ age, within: 0.001}
"""


def make_rows(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    wage = np.round(rng.uniform(0, 50, rows), 1)
    return pa.table(
        {
            "sex": rng.choice(["f", "m", "x"], rows, p=[0.5, 0.48, 0.02]),
            "age": age,
            "wage": pa.array(wage, mask=rng.random(rows) < 0.1),
            "employed": rng.random(rows) < age / 100,
        }
    )


REAL, SYNTHETIC = make_rows(3_000, 1), make_rows(2_000, 2)


def release(schema: Schema = SCHEMA, epsilon: float = 1_000.0, **options: Any) -> dpsyn.ReleasedEvaluation:
    options = {"allow_large_epsilon": True, **options}
    return dpsyn.release_evaluation(REAL, SYNTHETIC, schema, epsilon, **options)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_without_much_noise_the_figures_are_those_of_an_evaluation(neighbors: Any) -> None:
    schema = msgspec.structs.replace(SCHEMA, neighbors=neighbors)
    scores = dpsyn.evaluate(REAL, SYNTHETIC, schema)

    released = release(schema, by=["sex"], criteria=dpsyn.Criteria.from_yaml(CRITERIA, schema))

    floor = scores.distances.one_way.floor
    singles = [each.distance.synthetic for each in scores.attributes]
    pairs = [each.distance.synthetic for each in scores.pairs]
    expected = [np.mean(singles), max(singles), np.mean(pairs), max(pairs)]
    assert [each.value for each in released.overall] == pytest.approx(expected, abs=5e-4)
    assert [each.value for each in released.attributes] == pytest.approx(singles, abs=5e-4)
    assert [each.label for each in released.attributes] == ["sex", "age", "wage", "employed"]
    assert released.rows.low is not None
    noise = (released.rows.value - released.rows.low) / Z
    assert released.rows.value == pytest.approx(3_000, abs=8 * noise)
    assert (noise == 0) == (neighbors == "replace")
    for group in released.groups:
        parts = [table.filter(pc.equal(table["sex"], group.group)) for table in (REAL, SYNTHETIC)]
        scores = dpsyn.evaluate(parts[0], parts[1], schema)
        own = [each.distance.synthetic for each in scores.attributes if each.name != "sex"]
        width = group.distance.high - group.distance.low
        assert group.distance.value == pytest.approx(np.mean(own), abs=2 * width)
        assert width < 0.02
        assert group.synthetic_rows == parts[1].num_rows
        assert group.small == (parts[0].num_rows < SMALL_GROUP_ROWS)
    assert released.one_way.floor == pytest.approx(floor, rel=0.4)


def test_criteria_are_about_the_exact_means_and_coefficients() -> None:
    released = release(criteria=dpsyn.Criteria.from_yaml(CRITERIA, SCHEMA))

    mean, distance, coefficient = released.criteria
    wages = [pc.mean(table["wage"]).as_py() for table in (REAL, SYNTHETIC)]
    assert mean.error.value == pytest.approx(wages[0] - wages[1], abs=0.02)
    assert mean.synthetic == pytest.approx(wages[1], abs=0.02)
    slopes = [np.polyfit(table["age"].to_numpy(), table["employed"].to_numpy(), 1)[0] for table in (REAL, SYNTHETIC)]
    assert coefficient.error.value == pytest.approx(slopes[0] - slopes[1], abs=2e-5)
    assert [each.verdict for each in released.criteria] == ["met", "met", "met"]
    assert distance.synthetic is None
    assert distance.error.high is not None
    assert distance.error.high <= 0.2


def test_a_criterion_beyond_its_bound_is_not_met() -> None:
    text = "{dpsyn_criteria: 1, criteria: [{distance: [age], at_most: 0.001}, {mean: age, within: 0.001}]}"

    released = release(criteria=dpsyn.Criteria.from_yaml(text, SCHEMA))

    assert [each.verdict for each in released.criteria] == ["not met", "not met"]


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-1.0, 2.0, "met"),
        (-2.0, 1.9, "met"),
        (-2.1, 0.0, "not decided"),
        (1.0, 2.1, "not decided"),
        (2.1, 3.0, "not met"),
        (-3.0, -2.1, "not met"),
        (None, None, "not decided"),
    ],
)
def test_a_verdict_is_about_the_whole_interval(low: float | None, high: float | None, verdict: str) -> None:
    error = dpsyn.ReleasedFigure(value=0.0, low=low, high=high)

    assert judge_criterion(MeanCriterion(mean="age", within=2), error, 0.0).verdict == verdict


def test_a_regression_that_noise_hides_has_no_interval() -> None:
    text = "{dpsyn_criteria: 1, criteria: [{coefficient: age, formula: employed ~ age + sex_code, within: 1}]}"
    schema = msgspec.structs.replace(
        SCHEMA, attributes=(*SCHEMA.attributes, Integer(name="sex_code", low=0, high=10**6))
    )
    table = REAL.append_column("sex_code", pa.array(np.zeros(REAL.num_rows, np.int64)))

    released = dpsyn.release_evaluation(
        table, table.slice(0), schema, 0.1, criteria=dpsyn.Criteria.from_yaml(text, schema), attributes=False
    )

    assert (released.criteria[0].error.low, released.criteria[0].error.high) == (None, None)
    assert released.criteria[0].verdict == "not decided"
    json.dumps(released.to_dict(), allow_nan=False)


def test_the_ledger_and_the_certificate_have_every_figure_and_the_whole_budget(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db")
    ledger.set_cap("people", Cap.for_guarantee(1, 1e-6))

    released = release(epsilon=0.5, ledger=ledger, by=["sex"], criteria=dpsyn.Criteria.from_yaml(CRITERIA, SCHEMA))

    ((run,),) = (dataset.runs for dataset in ledger.datasets())
    certificate = released.certificate
    assert ledger.verify().faults == ()
    assert run.closed
    assert len(run.measurements) == len(certificate.account.measurements) == 1 + 4 + 4 + 1 + 1 + 2 + 1 + 6 - 1
    assert all(measurement.answer_hash for measurement in certificate.account.measurements)
    assert certificate.account.total.rho == pytest.approx(float(certificate.account.budget.rho), rel=1e-9)
    assert certificate.recipe["synthetic_hash"] == released.synthetic_hash
    assert any(released.synthetic_hash in fact for fact in certificate.declared_public)
    assert certificate.outcome.contents_hash
    assert dpsyn.Certificate.from_data(json.loads(json.dumps(released.to_dict()["certificate"]))) == certificate


def test_beyond_the_cap_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(tmp_path / "l.db")
    ledger.set_cap("people", Cap.for_guarantee(0.1, 1e-6))
    monkeypatch.setattr("dpsyn.assessment._release_evaluation.open_private", lambda *_, **__: pytest.fail("read"))

    with pytest.raises(dpsyn.LedgerError):
        release(epsilon=0.5, ledger=ledger)


def test_an_interrupted_evaluation_is_resumed_with_its_stored_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, journal = Ledger.create(tmp_path / "l.db"), tmp_path / "j"
    ledger.set_cap("people", Cap.for_guarantee(1, 1e-6))
    asked: dict[str, Any] = {"epsilon": 0.5, "ledger": ledger, "by": ["sex"], "journal": journal}
    with monkeypatch.context() as patched:
        patched.setattr("dpsyn.private.PrivateTable.measure", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            release(**asked)
    before = ledger.datasets()[0].runs[0].measurements

    released = release(**asked, resume=True)

    (run,) = ledger.datasets()[0].runs
    assert 0 < len(before) < len(run.measurements)
    assert run.measurements[: len(before)] == before
    assert released.certificate.lost_answers == 0
    with pytest.raises(dpsyn.JournalError):
        dpsyn.release_evaluation(
            REAL, make_rows(3_000, 3), SCHEMA, 0.5, ledger=ledger, by=["sex"], journal=journal, resume=True
        )


def test_values_of_open_attributes_are_those_of_the_synthetic_table() -> None:
    schema = Schema(attributes=(Open(name="city"), Boolean(name="ok")))
    real = pa.table({"city": ["Oslo"] * 50 + ["Secret"] * 50, "ok": [True, False] * 50})
    synthetic = pa.table({"city": ["Oslo"] * 10 + ["other"] * 10, "ok": [True, False] * 10})

    released = dpsyn.release_evaluation(
        real, synthetic, schema, 1_000.0, by=["city"], allow_large_epsilon=True, attributes=False
    )

    assert [group.group for group in released.groups] == ["Oslo", "other"]
    assert released.one_way.value < 0.01
    assert released.attributes == ()
    assert "Secret" not in json.dumps(released.to_dict())


def test_noise_of_a_test_makes_it_unpublishable(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.private.noise_doubles import RecordingNoise

    def open_with_test_noise(*args: Any, **options: Any) -> PrivacyGate:
        return open_private(*args, **options, mechanisms=RecordingNoise())

    monkeypatch.setattr("dpsyn.assessment._release_evaluation.open_private", open_with_test_noise)

    assert release(epsilon=1.0).notice.startswith("NOT PRIVATE")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": ["nobody"]}, "'nobody' is not compared"),
        ({"by": "sex"}, "give a list"),
        ({"epsilon": 30.0, "allow_large_epsilon": False}, "ε"),
        ({"epsilon": -1.0}, "ε is -1"),
        ({"criteria": 7}, "give the path of a file"),
    ],
)
def test_what_makes_no_sense_is_refused_before_a_row_is_read(
    options: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsyn.assessment._release_evaluation.open_private", lambda *_, **__: pytest.fail("read"))

    with pytest.raises(UserError, match=message):
        release(**{"epsilon": 1.0, **options})


def test_an_empty_synthetic_table_and_one_without_a_column_are_refused() -> None:
    with pytest.raises(SourceError, match="no rows"):
        dpsyn.release_evaluation(REAL, SYNTHETIC.slice(0, 0), SCHEMA, 1.0)
    with pytest.raises(SourceError, match="no column 'wage'"):
        dpsyn.release_evaluation(REAL, SYNTHETIC.drop_columns(["wage"]), SCHEMA, 1.0)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{distance: [sexx], at_most: 0.1}", "line 3: criterion 1: 'sexx' is not compared; did you mean"),
        ("{distance: [sex, sex], at_most: 0.1}", "each once"),
        ("{distance: [sex], at_most: 2}", "at_most is 2"),
        ("{mean: sex, within: 1}", "'sex' is categorical; a mean is of numbers"),
        ("{mean: age, within: 0}", "within is 0"),
        ("{mean: age}", "within"),
        ("{mean: age, within: 1, more: 2}", "more"),
        ("{median: age, within: 1}", "needs one of distance, mean, coefficient"),
        ("{coefficient: wage, formula: age ~ wage, within: 1}", "'wage' may be missing"),
        ("{coefficient: age, formula: employed ~ age*wage, within: 1}", "without interactions"),
        ("{coefficient: wage, formula: employed ~ age, within: 1}", "is not a term"),
        ("{coefficient: age, formula: age ~ age, within: 1}", "the outcome"),
        ("{coefficient: age, formula: age, within: 1}", "cannot be read"),
    ],
)
def test_a_criterion_that_cannot_be_measured_is_refused_with_its_line(entry: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        dpsyn.Criteria.from_yaml(f"dpsyn_criteria: 1\ncriteria:\n  - {entry}\n", SCHEMA)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("criteria: []", "its first line should be dpsyn_criteria: 1"),
        ("dpsyn_criteria: 2", "format 2"),
        ("dpsyn_criteria: 1", "criteria is a list"),
        ("{dpsyn_criteria: 1, criteria: [{mean: age, within: 1}, {mean: age, within: 1}]}", "twice"),
    ],
)
def test_a_file_that_holds_no_criteria_is_refused(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        dpsyn.Criteria.from_yaml(text, SCHEMA)


# ── intervals ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_interval_of_a_ratio_contains_exactly_what_the_noise_allows() -> None:
    low, high = ratio_interval((30, 30), 4, 100, 10, (0, 1))

    for end in (low, high):
        assert abs(30 - end * 100) == pytest.approx(Z * np.hypot(4, end * 10))
    assert ratio_interval((30, 31), 0, 100, 0, (0, 1)) == pytest.approx((0.30, 0.31))
    assert ratio_interval((0, 0), 4, 0, 10, (0, 1)) == (0, 1)
    assert ratio_interval((30, 30), 4, -100, 10, (0, 1)) == (0, 1)  # no ratio explains this: nothing is known
    low, high = ratio_interval((30, 30), 4, 10, 10, (0, 1))  # the denominator may be 0, but small ratios are excluded
    assert 30 - low * 10 == pytest.approx(Z * np.hypot(4, low * 10))
    assert high == 1


def test_intervals_of_ratios_and_coefficients_have_their_level() -> None:
    rng, runs = np.random.default_rng(5), 4_000
    for size, spread in ((100.0, 20.0), (60.0, 40.0)):
        noisy_pairs = rng.normal((0.4 * size, size), (5, spread), (runs, 2))
        ends = np.array([ratio_interval((x, x), 5, n, spread, (0, 1)) for x, n in noisy_pairs])
        assert np.mean((ends[:, 0] <= 0.4) & (ends[:, 1] >= 0.4)) == pytest.approx(0.95, abs=0.012)
    gram, cross, std = np.array([[900.0, 100, 50], [100, 400, 120], [50, 120, 300]]), np.array([300.0, 200, 30]), 4.0
    truth, hits = np.linalg.solve(gram, cross), []
    for _ in range(runs):
        upper = np.triu(rng.normal(0, std, (3, 3)))
        noisy = gram + upper + np.triu(upper, 1).T
        solved = solve_noisy_moments(noisy, np.full((3, 3), std), cross + rng.normal(0, std, 3), np.full(3, std))
        assert solved is not None
        hits.append(np.abs(solved[0] - truth) <= Z * solved[1])
    assert np.mean(hits, axis=0) == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize("synthetic", ["real.csv", "linked.csv", "symbolic.csv", "re*.csv"])
def test_the_private_table_is_not_taken_for_a_synthetic_one(synthetic: str, tmp_path: Path) -> None:
    """Its hash would be in the certificate, and in a ledger."""
    pacsv.write_csv(REAL, tmp_path / "real.csv")
    os.link(tmp_path / "real.csv", tmp_path / "linked.csv")
    os.symlink(tmp_path / "real.csv", tmp_path / "symbolic.csv")

    for real, other in ((str(tmp_path / "real.csv"), str(tmp_path / synthetic)), (REAL, REAL)):
        with pytest.raises(UserError, match="is the private table itself"):
            dpsyn.release_evaluation(real, other, SCHEMA, 1.0)
