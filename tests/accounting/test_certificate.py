from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction

import pytest

from dpsyn.accounting import (
    Account,
    Budget,
    Certificate,
    Composition,
    Draw,
    Exponential,
    Gaussian,
    Head,
    Laplace,
    Protection,
    Run,
    Threshold,
)
from dpsyn.accounting.protection import Neighbours
from dpsyn.errors import BudgetError, InternalError

PEOPLE = Protection(neighbours="replace", unit="person", rows=3)


def mixed_run(*, noise_is_private: bool = True) -> Run:
    """A run with one step of every kind."""
    budget = Budget.plan(1, 1e-9, pure=["0.1", "0.05", "0.05"], thresholds=True)
    run = Run.open(budget, PEOPLE, noise_is_private=noise_is_private)
    first, second = budget.shares([1, 2])
    run.record("frequent items", Exponential.within(Fraction("0.1"), PEOPLE.score(), draws=2))
    run.record("places", Threshold.within(budget.threshold_delta, Laplace.within(Fraction("0.1"), PEOPLE.l1), 3))
    run.record("marginal age", Gaussian.within(first, PEOPLE.l2_squared))
    run.record("marginal age, sex", Gaussian.within(second, PEOPLE.l2_squared))
    return run


def test_a_hundred_and_fifty_different_scales_certify_within_the_promise_in_seconds() -> None:
    budget = Budget.plan(0.1, 1e-9)
    run = Run.open(budget, Protection())
    for i, share in enumerate(budget.shares([1 + i**1.5 for i in range(150)])):
        run.record(f"marginal {i}", Gaussian.within(share, 1))

    start = time.monotonic()
    certificate = run.certificate()

    assert time.monotonic() - start < 10  # a few seconds on a busy machine
    assert len({draw.spend.sigma for draw in run.account.draws if isinstance(draw.spend, Gaussian)}) == 150
    assert certificate.figures.pld is not None
    assert 0.0999 < certificate.figures.pld <= 0.1
    assert certificate.figures.zcdp == pytest.approx(0.1060, abs=1e-4)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 4])
def test_neighbours_and_rows_scale_the_noise_and_not_the_certificate(neighbours: Neighbours, rows: int) -> None:
    protection = Protection(neighbours=neighbours, unit="person", rows=rows)
    budget = Budget.plan(1, 1e-9)
    run = Run.open(budget, protection)

    spend = Gaussian.within(budget.rho, protection.l2_squared)
    run.record("marginal", spend)

    factor = rows * (1 if neighbours == "add-remove" else 2**0.5)
    assert spend.sigma == pytest.approx(5.4953 * factor, rel=1e-4)
    assert 0.9999 < run.certificate().figures.epsilon <= 1


def test_every_kind_of_step_is_certified_together() -> None:
    certificate = mixed_run().certificate()

    assert certificate.figures.pld is not None
    assert 0.999 < certificate.figures.pld <= 1
    assert certificate.figures.zcdp > 1
    assert certificate.figures.added is None


def test_pure_steps_alone_are_added_up() -> None:
    budget = Budget.plan_pure(1, [1, 4, 5])
    run = Run.open(budget, Protection())
    for epsilon in budget.pure:
        run.record("bins", Laplace.within(epsilon, 1))

    certificate = run.certificate()

    assert certificate.figures.added is not None
    assert certificate.figures.epsilon <= 1
    assert "by adding up the pure steps" in certificate.text()


def test_above_fifty_the_zcdp_figure_is_the_certificate() -> None:
    budget = Budget.plan(1000, 1e-9)
    run = Run.open(budget, Protection())
    run.record("marginal", Gaussian.within(budget.rho, 1))

    figures = run.certificate().figures

    assert figures.pld is None
    assert 999.99 < figures.epsilon <= 1000
    assert figures.epsilon == figures.zcdp


def test_an_overspend_is_refused_and_not_recorded() -> None:
    run = mixed_run()
    before = run.account

    with pytest.raises(BudgetError, match="marginal too many"):
        run.record("marginal too many", Gaussian.within(Fraction(1, 10**9), 1))

    assert run.account is before


def test_draws_beyond_the_promise_are_never_certified() -> None:
    budget = Budget.plan(1, 1e-9)
    draw = Draw(purpose="marginal", spend=Gaussian.within(budget.rho * 2, 1))
    forged = Account(budget=budget, draws=(draw,), total=Composition.of([draw.spend]))

    with pytest.raises(InternalError, match="do not publish"):
        Certificate.of(forged, Protection())


def test_a_threshold_for_fewer_rows_than_a_person_has_is_refused() -> None:
    budget = Budget.plan(1, 1e-9, thresholds=True)
    run = Run.open(budget, PEOPLE)

    with pytest.raises(BudgetError, match="a unit has 3"):
        run.record("places", Threshold.within(budget.threshold_delta, Gaussian.within(budget.rho, 18), 1))


@pytest.mark.parametrize("noise_is_private", [True, False])
def test_a_certificate_survives_json_and_so_does_its_stamp(noise_is_private: bool) -> None:
    certificate = replace(
        mixed_run(noise_is_private=noise_is_private).certificate(["age: 0 to 120"]), head=Head(7, "ab" * 32)
    )

    again = Certificate.from_data(json.loads(json.dumps(certificate.to_data())))

    assert again == certificate
    assert ("NOT PRIVATE" in again.text()) is not noise_is_private


@pytest.mark.parametrize(("stamps", "private"), [((True,), True), ((False,), False), ((True, False), False)])
def test_the_first_name_of_the_stamp_is_still_read(stamps: tuple[bool, ...], private: bool) -> None:
    data = mixed_run().certificate().to_data()
    del data["differentially_private"]
    data |= dict(zip(("private", "differentially_private"), stamps, strict=False))

    assert Certificate.from_data(data).noise_is_private is private


def test_a_certificate_without_a_stamp_is_refused() -> None:
    data = mixed_run().certificate().to_data()
    del data["differentially_private"]

    with pytest.raises(BudgetError, match="differentially_private"):
        Certificate.from_data(data)


def test_a_certificate_that_was_edited_is_refused() -> None:
    data = mixed_run().certificate().to_data()
    cheaper = data | {"draws": data["draws"][:-1]}
    smaller = data | {"certified_epsilon": 0.5}
    looser = data | {"promise": data["promise"] | {"rho": "1"}}
    nobody = data | {"protection": data["protection"] | {"unit": ["person"]}}
    garbled = {key: value for key, value in data.items() if key != "promise"}
    newer = data | {"format": 99}

    for edited, words in (
        (cheaper, "changed"),
        (smaller, "changed"),
        (looser, "does not keep its promise"),
        (nobody, "unit"),
        (garbled, "promise"),
        (newer, "format 99"),
    ):
        with pytest.raises(BudgetError, match=words):
            Certificate.from_data(edited)


@pytest.mark.parametrize("noise_is_private", [True, False])
def test_a_certificate_is_proved_again_by_a_closed_formula(noise_is_private: bool) -> None:
    certificate = mixed_run(noise_is_private=noise_is_private).certificate()

    assert Certificate.from_data(certificate.to_data(), recompute=False) == certificate


@pytest.mark.parametrize("epsilon", [0.01, 1, 30])
@pytest.mark.parametrize("delta", [1e-6, 1e-12])
@pytest.mark.parametrize("pure", [(), (0.1, 0.1, 0.05)])
def test_the_closed_formula_bears_out_the_true_figure_and_none_below_it(
    epsilon: float, delta: float, pure: tuple[float, ...]
) -> None:
    budget = Budget.plan(epsilon, delta, pure=[share * epsilon for share in pure])
    total = budget.worst_case
    figure = total.figures(budget.epsilon, budget.delta).pld
    enough = math.nextafter(epsilon, 0)
    assert figure is not None

    kept = total.figures(budget.epsilon, budget.delta, stated=enough)
    denied = total.figures(budget.epsilon, budget.delta, stated=figure * 0.98)
    beyond = total.figures(budget.epsilon, budget.delta, stated=epsilon * 1.01)

    assert kept.pld == enough
    assert denied.pld == beyond.pld == figure


@pytest.mark.parametrize(
    "budget",
    [
        Budget.plan(0.01, 1e-12),
        Budget.plan(1, 1e-9, pure=["0.1", "0.2"], thresholds=True),
        Budget.plan(50, 1e-9),
        Budget.plan(1000, 1e-9),
        Budget.plan(1, 1e-13, pure=["0.1"]),
        Budget.plan_pure(1, [1, 4, 5]),
    ],
)
def test_closed_formulas_show_that_a_plan_keeps_its_promise_and_not_one_of_half(budget: Budget) -> None:
    worst = budget.worst_case

    assert worst.keeps(budget.epsilon, budget.delta)
    assert not worst.keeps(budget.epsilon / 2, budget.delta)
    assert not replace(worst, delta=budget.delta * 2).keeps(budget.epsilon, budget.delta) or not budget.delta


def test_absurd_budgets_are_judged_at_once() -> None:
    start = time.monotonic()

    assert not Composition(rho=Fraction(100), mu_squared=Fraction(200)).keeps(Fraction(1), Fraction(1, 10**9))
    assert not Composition(rho=Fraction(10**9), mu_squared=Fraction(10**9)).keeps(Fraction(1, 10**9), Fraction(1, 10))
    assert time.monotonic() - start < 2


@pytest.mark.parametrize("stated", [0.0, -1.0, float("inf"), float("nan")])
def test_a_figure_that_is_none_is_computed(stated: float) -> None:
    budget = Budget.plan(1, 1e-9)

    assert budget.worst_case.figures(budget.epsilon, budget.delta, stated) == budget.worst_case.figures(
        budget.epsilon, budget.delta
    )


def test_a_certificate_that_was_edited_is_refused_by_the_closed_formula_too() -> None:
    data = mixed_run().certificate().to_data()
    smaller = data | {"certified_epsilon": 0.9, "figures": data["figures"] | {"pld": 0.9}}
    cheaper = data | {"draws": data["draws"][:-1], "figures": data["figures"] | {"pld": 0.5}}

    for edited in (smaller, cheaper):
        with pytest.raises(BudgetError, match="changed"):
            Certificate.from_data(edited, recompute=False)


def test_the_draws_can_be_left_out_of_the_text() -> None:
    certificate = mixed_run().certificate()

    assert "Draws: " in certificate.text()
    assert "Draws: " not in certificate.text(draws=False)


def test_the_text_says_what_a_steward_must_know() -> None:
    text = mixed_run().certificate(["sex: F, M (code book 2024)"]).text()

    for words in (
        "ε = 1, δ = 1e-09",
        "replacing all rows of one person",
        "at most 2.72 times as likely",
        "the promise is kept",
        "privacy loss distributions",
        "tight conversion",
        "marginal age, sex: Gaussian noise",
        "sex: F, M (code book 2024)",
        "this run only",
    ):
        assert words in text


def test_the_text_rounds_epsilon_up() -> None:
    certificate = mixed_run().certificate()
    line = next(line for line in certificate.text().splitlines() if "privacy loss" in line)

    assert certificate.figures.pld is not None
    assert float(line.split()[0]) >= certificate.figures.pld


def test_an_unused_promise_costs_nothing() -> None:
    run = Run.open(Budget.plan(1, 1e-9), Protection())

    assert run.certificate().figures.epsilon == 0


def test_the_package_imports_without_its_heavy_libraries() -> None:
    code = "import sys, dpsyn.accounting; print({'dp_accounting', 'scipy'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"
