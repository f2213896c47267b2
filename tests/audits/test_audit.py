"""An audit finds what it should: noise that is off, wrong sensitivities, leaks; and it takes nobody's data."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import dpsyn
from dpsyn.accounting import Budget, Exponential, Gaussian, Laplace, PartitionSelection, PrivacyUnit
from dpsyn.audits import cases
from dpsyn.audits._audit import audited_names
from dpsyn.audits.attacks import NoiseSample, compare_with_charge, fit_noise, replay_on_neighbors
from dpsyn.audits.bounds import bound_epsilon, bound_mu, clopper_pearson
from dpsyn.audits.cases import AuditCase
from dpsyn.audits.likelihood import log_likelihood_ratio, uniform_values
from dpsyn.cli.main import run
from dpsyn.errors import UserError
from dpsyn.private import PrivateBaskets, PrivateTable, Rehearsal, RehearsedAnswer, TableKind
from dpsyn.private.gate import PrivacyGate
from dpsyn.report.audit_report import audit_page
from tests.private.noise_doubles import ScaledNoise

BUDGET = Budget.for_guarantee(1, 1e-3)

# ── it takes nobody's data ───────────────────────────────────────────────────────────────────────────────────

SECRET = "hiv positive"
DATA = [
    pd.DataFrame({"a": [SECRET]}),
    pa.table({"a": [SECRET]}),
    "people.csv",
    Path("people.csv"),
    [{"a": SECRET}],
    np.zeros(3),
    lambda: None,
]


@pytest.mark.parametrize("data", DATA, ids=lambda data: type(data).__name__)
@pytest.mark.parametrize("parameter", ["runs", "replays", "only"])
def test_an_audit_refuses_data(data: Any, parameter: str) -> None:
    with pytest.raises(UserError) as caught:
        dpsyn.audit(**{parameter: data})

    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("data", DATA, ids=lambda data: type(data).__name__)
def test_a_rehearsal_refuses_data(data: Any) -> None:
    with pytest.raises(UserError, match="takes no data of yours") as caught:
        Rehearsal(data)

    assert SECRET not in str(caught.value)


def test_nothing_but_names_numbers_and_programs_can_be_given() -> None:
    """A rehearsal returns exact answers without a charge: no parameter may bring rows to it."""
    parameters = {
        name: {*inspect.signature(function).parameters}
        for name, function in (("audit", dpsyn.audit), ("open", Rehearsal.__init__), ("run", Rehearsal.run))
    }

    assert parameters == {
        "audit": {"runs", "replays", "only", "progress"},
        "open": {"self", "kind", "neighbors", "max_rows", "seed"},
        "run": {"self", "program", "budget", "side", "stop_when_spent"},
    }


def test_a_name_that_only_looks_like_a_kind_is_refused() -> None:
    class Disguised(str):
        """A text that equals a kind and could be anything else."""

    with pytest.raises(UserError, match="takes no data of yours"):
        Rehearsal(Disguised("canary"))


def test_the_command_takes_no_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "people.csv"
    table.write_text(f"a\n{SECRET}\n")

    assert run(["audit", str(table)]) == 2
    assert run(["audit", "--only", str(table)]) == 2
    assert SECRET not in "".join(capfd.readouterr())


def test_what_is_rehearsed_is_certified_as_not_private() -> None:
    rehearsal = Rehearsal("canary")

    made = rehearsal.run(lambda table: table.certificate(), BUDGET, 0)

    assert not made.outcome.uses_real_noise


# ── everything is audited ────────────────────────────────────────────────────────────────────────────────────


def test_every_recipe_and_every_answer_of_the_gate_is_audited() -> None:
    silent = {"recode", "refine_cells", "public_row_count", "public_basket_count"}
    answers = {
        name
        for gate in (PrivateTable, PrivateBaskets)
        for name, _ in inspect.getmembers(gate, inspect.isfunction)
        if not name.startswith("_") and not hasattr(PrivacyGate, name)
    }

    assert answers - silent | {*dpsyn.RECIPES} <= {*audited_names()}
    assert {*dpsyn.RECIPES} <= {case.name.removeprefix("recipe ") for case in cases.replay_cases()}


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("max_rows", [None, 2])
@pytest.mark.parametrize("kind", ["canary", "numbers", "texts", "mixed", "mixed texts"])
def test_made_tables_are_neighbors(kind: TableKind, neighbors: Any, max_rows: int | None) -> None:
    rehearsal = Rehearsal(kind, neighbors=neighbors, max_rows=max_rows, seed=3)
    one = {"canary": "a", "texts": "a"}.get(kind, "age")

    def count(table: PrivateTable) -> None:
        table.measure([(one,)], [table.budget.rho])

    first = rehearsal.run(count, BUDGET, 0)
    second = rehearsal.replay(count, BUDGET, 1, first)

    share, problem = compare_with_charge(first.answers[0], second.answers[0].exact)
    assert problem == ""
    assert share <= 1
    if kind in ("canary", "numbers", "texts"):
        assert share == pytest.approx(1)


# ── it finds what is wrong ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("factor", "passes"), [(0.8, False), (1.0, True), (1.25, False)])
@pytest.mark.parametrize("method", ["discover_range", "measure_lengths"])
def test_noise_that_is_off_is_found_from_both_sides(
    factor: float, passes: bool, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsyn.private.rehearsal.SystemNoise", lambda: ScaledNoise(factor))

    report = dpsyn.audit(300, replays=0, only=[method])

    assert report.passed == passes
    assert all("scale" in fault or "distribution" in fault for fault in report.faults)


def test_half_of_the_noise_is_found_by_canaries_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsyn.private.rehearsal.SystemNoise", lambda: ScaledNoise(0.2))

    report = dpsyn.audit(400, replays=0, only=["measure_laplace"])

    assert [bound.faults[0] for bound in report.bounds if bound.faults]
    assert any(bound.bound > bound.claim for bound in report.bounds)


def test_a_sensitivity_that_is_too_small_is_found_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrivacyUnit, "score_sensitivity", lambda unit, per_row=1: per_row)  # one row of a unit

    (finding,) = dpsyn.audit(20, replays=2, only=["all questions"]).replays

    assert finding.largest > 1
    assert any("was charged" in fault for fault in finding.faults)


def test_a_question_that_depends_on_rows_is_found() -> None:
    def leak(table: PrivateTable) -> None:
        rows = int(table._engine.count([(0,)], table.recoding)[0].sum())  # what no recipe can do without a breach
        table.measure([("a",)] * (1 + rows % 2), [table.budget.rho / 2] * (1 + rows % 2))

    case = AuditCase(name="leak", kind="canary", budget=lambda _: BUDGET, program=leak)

    found = replay_on_neighbors([case], [0])

    assert any("neighbor" in fault for fault in found.faults)


def test_a_result_that_depends_on_rows_is_found() -> None:
    def leak(table: PrivateTable) -> int:
        table.measure([("a",)], [table.budget.rho])
        return int(table._engine.count([(0,)], table.recoding)[0].sum())

    case = AuditCase(name="leak", kind="canary", budget=lambda _: BUDGET, program=leak)

    assert replay_on_neighbors([case], [0]).faults == (
        "the same released answers led to other results on a neighbor (leak)",
    )


@pytest.mark.parametrize("recipe", ["privsyn", "independent"])
def test_canaries_of_adaptive_programs_reach_no_more_than_was_charged(recipe: str) -> None:
    """Questions differ from run to run; the answers of the neighbor must be those to the same questions."""
    (bound, *_) = dpsyn.audit(200, replays=0, only=[recipe]).bounds

    assert bound.reached is not None
    assert bound.reached <= bound.claim * (1 + 1e-6)


# ── statistics ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("successes", [0, 3, 40])
@pytest.mark.parametrize("alpha", [1e-6, 0.05])
def test_clopper_pearson_is_that_of_scipy(successes: int, alpha: float) -> None:
    low, high = clopper_pearson(np.array([successes]), 40, alpha)

    expected = stats.binomtest(successes, 40).proportion_ci(1 - 2 * alpha, method="exact")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_bounds_are_valid_and_come_near_to_the_truth() -> None:
    rng, mu, epsilon = np.random.default_rng(5), 0.5, 1.0
    scores = [mu * (rng.normal(size=20_000) + side * mu) - mu**2 / 2 for side in (1, 0)]
    responses = [np.where(rng.random(20_000) < 1 / (1 + math.exp(-side)), 1.0, -1.0) for side in (epsilon, -epsilon)]

    assert 0.8 * mu < bound_mu(scores[0], scores[1], 1e-6) < mu
    assert 0.8 * epsilon < bound_epsilon(responses[0], responses[1], 0.0, 1e-6) < epsilon
    assert bound_mu(scores[1], scores[1], 0.05) == 0


def test_bounds_exceed_the_truth_as_rarely_as_they_should() -> None:
    rng, mu, exceeded = np.random.default_rng(6), 0.4, 0
    for _ in range(400):
        scores = [rng.normal(size=300) + side * mu - mu / 2 for side in (1, 0)]
        exceeded += bound_mu(scores[0], scores[1], 0.1) > mu

    assert exceeded <= stats.binom.ppf(1 - 1e-6, 400, 0.1)


LAPLACE = Laplace.for_epsilon(Budget.for_guarantee(1, 0, pure_epsilons=[1]).pure_epsilons[0], 2)
CHOICE = Exponential.for_epsilon(LAPLACE.pure_epsilons[0], 1, selections=2)
GAUSSIAN = Gaussian.for_rho(BUDGET.rho, 1)
LISTING = PartitionSelection.for_delta(BUDGET.delta, GAUSSIAN, 1)


def test_likelihood_ratios_are_those_of_the_probabilities() -> None:
    one, other = np.array([3, 5]), np.array([4, 4])
    scores, other_scores = np.array([3, 0, 1]), np.array([2, 1, 1])

    def chosen(s: np.ndarray) -> float:
        weights = np.exp(s / CHOICE.scale)
        return float(weights[2] / weights.sum() * weights[0] / (weights[0] + weights[1]))

    laplace = log_likelihood_ratio(RehearsedAnswer(one, LAPLACE, np.array([3, 9])), other)
    choice = log_likelihood_ratio(RehearsedAnswer(scores, CHOICE, np.array([2, 0])), other_scores)
    steps = 2**GAUSSIAN.lattice
    gaussian = log_likelihood_ratio(RehearsedAnswer(one, GAUSSIAN, np.array([5, 5]) * steps), other)

    assert laplace == pytest.approx(((1 + 5) - (0 + 4)) / LAPLACE.scale)
    assert choice == pytest.approx(math.log(chosen(scores) / chosen(other_scores)))
    assert gaussian == pytest.approx(((1 + 1) - (4 + 0)) / (2 * GAUSSIAN.sigma**2))


def test_a_listed_key_that_the_neighbor_lacks_settles_it() -> None:
    answer = RehearsedAnswer({"a": 90, "b": 1}, LISTING, {"a": 1, "b": 1})

    assert log_likelihood_ratio(answer, {"a": 90}) > 40
    assert abs(log_likelihood_ratio(RehearsedAnswer({"a": 90}, LISTING, {"a": 1}), {"a": 91})) < 1e-6


def sample_answers(cost: Any, factor: float, rng: np.random.Generator) -> Sequence[RehearsedAnswer]:
    """Answers with noise whose scale is off by a factor."""
    if isinstance(cost, Gaussian):
        noise = np.rint(rng.normal(0, cost.sigma * 2**cost.lattice * factor, 3000)).astype(np.int64)
    elif isinstance(cost, Laplace):
        q = math.exp(-1 / (cost.scale * factor))
        noise = rng.geometric(1 - q, 3000) - rng.geometric(1 - q, 3000)
    elif isinstance(cost, Exponential):
        scores = np.array([0, 2, 5])
        order = [np.argsort(-(scores / (cost.scale * factor) + rng.gumbel(size=3))) for _ in range(3000)]
        return [RehearsedAnswer(scores, cost, chosen) for chosen in order]
    else:
        keys = {f"{count:02d}": count for count in range(4, 20)}
        lines = rng.normal(0, cost.noise.sigma * factor, (300, len(keys)))
        listed = [[key for key, n in zip(keys, line, strict=True) if keys[key] + n >= cost.threshold] for line in lines]
        return [RehearsedAnswer(keys, cost, each) for each in listed]
    return [RehearsedAnswer(np.zeros(3000, np.int64), cost, noise)]


@pytest.mark.parametrize("cost", [GAUSSIAN, LAPLACE, CHOICE, LISTING], ids=lambda cost: type(cost).__name__)
@pytest.mark.parametrize("factor", [0.6, 1.0, 1.6])
def test_the_fit_of_every_mechanism_accepts_its_noise_and_rejects_others(cost: Any, factor: float) -> None:
    rng, sample = np.random.default_rng(8), NoiseSample()
    for answer in sample_answers(cost, factor, rng):
        sample.add(answer, rng)

    found = fit_noise("test", {Gaussian: "gaussian", Laplace: "laplace"}.get(type(cost), "other"), sample, 1e-4)

    assert bool(found.faults) == (factor != 1.0)


def test_equal_noise_in_neighboring_cells_is_found() -> None:
    rng, sample = np.random.default_rng(9), NoiseSample()
    noise = np.repeat(rng.normal(0, GAUSSIAN.sigma * 2**GAUSSIAN.lattice, 500), 4).astype(np.int64)
    sample.add(RehearsedAnswer(np.zeros(2000, np.int64), GAUSSIAN, noise), rng)

    found = fit_noise("test", "gaussian", sample, 1e-4)

    assert any("independence" in fault for fault in found.faults)


def test_uniform_values_of_whole_numbers_are_uniform_where_the_scale_is_small() -> None:
    rng = np.random.default_rng(10)
    small = Laplace.for_epsilon(LAPLACE.pure_epsilons[0] * 5, 1)
    (answer,) = sample_answers(small, 1.0, rng)

    assert stats.kstest(uniform_values(answer, rng), "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("mechanism", "cost"), [("gaussian", GAUSSIAN), ("laplace", Laplace.for_epsilon(LAPLACE.pure_epsilons[0] / 10, 1))]
)
def test_the_stated_power_is_how_often_less_noise_is_found(mechanism: str, cost: Any) -> None:
    rng, found, stated = np.random.default_rng(11), 0, 0.0
    for _ in range(60):
        sample = NoiseSample()
        (answer,) = sample_answers(cost, 0.9, rng)
        sample.add(RehearsedAnswer(answer.exact[:900], cost, answer.released[:900]), rng)
        finding = fit_noise("test", mechanism, sample, 1e-3)
        found += finding.p_values["scale"] < 1e-3
        stated = finding.power[0]

    assert 0.2 < stated < 0.95
    assert stats.binomtest(found, 60, stated).pvalue > 1e-4


# ── the report ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_command_writes_text_html_and_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page, data = tmp_path / "audit.html", tmp_path / "audit.json"

    code = run(
        [
            "audit",
            "--runs",
            "20",
            "--replays",
            "1",
            "--only",
            "discover_items",
            "--html",
            str(page),
            "--json",
            str(data),
        ]
    )

    assert code == 0
    printed = capfd.readouterr().out
    assert "No fault was found" in printed
    assert "discover_items" in page.read_text("utf-8")
    stored = json.loads(data.read_text("utf-8"))
    assert stored["passed"] is True
    assert [bound["name"] for bound in stored["bounds"]] == ["discover_items"]


def test_a_fault_is_reported_with_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dpsyn.private.rehearsal.SystemNoise", lambda: ScaledNoise(0.3))

    assert run(["audit", "--runs", "100", "--replays", "0", "--only", "measure_lengths", "--quiet"]) == 1
    assert "FAULT: measure_lengths: the scale of laplace noise is not as stated" in capfd.readouterr().out


def test_a_page_lists_faults_and_escapes_names() -> None:
    report = dpsyn.audit(20, replays=0, only=["measure_lengths"])
    bad = report.bounds[0].__class__(
        name="<b>x</b>",
        measure="ε",
        runs=1,
        claim=1,
        reached=1,
        bound=2,
        likely=2,
        with_less_noise=(2.0,) * 3,
        faults=("wrong",),
    )
    faulty = dpsyn.AuditReport(version="0", runs=1, tests=1, replays=(), noise=(), bounds=(bad,), seconds=0.0)

    page = audit_page(faulty)

    assert "&lt;b&gt;x&lt;/b&gt;: wrong" in page
    assert "<script" not in page
    assert "1 fault was found" in page


@pytest.mark.parametrize(
    ("options", "words"), [({"runs": 1}, "whole number from 20"), ({"only": ["mesure"]}, "did you mean measure")]
)
def test_a_mistake_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        dpsyn.audit(**options)


@pytest.mark.check
def test_a_reduced_audit_of_this_installation_finds_nothing() -> None:
    report = dpsyn.audit(60, replays=1)

    assert report.faults == ()
    assert len(report.bounds) > 40
    assert all(bound.bound <= bound.claim for bound in report.bounds)
    assert min(power for fit in report.noise for power in fit.power[2:]) > 0.3
