from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.accounting import Exponential, Gaussian, Laplace, MechanismCost, PartitionSelection, PrivacyUnit
from dpsyn.accounting.conversion import gaussian_log_delta
from dpsyn.accounting.costs import (
    LATTICE_OVERHEAD,
    MIN_LATTICE_SIGMA,
    MIN_STD,
    SMOOTHING_VARIANCE,
    cost_from_data,
    lattice_for,
)
from dpsyn.accounting.exact_numbers import GRAINS
from dpsyn.errors import BudgetError
from tests.accounting import naive

rhos = st.integers(10**20, 10**40).map(lambda n: Fraction(n, GRAINS))


@given(rhos, st.integers(1, 50))
def test_gaussian_noise_costs_at_most_its_share_and_hardly_less(rho: Fraction, squared: int) -> None:
    cost = Gaussian.for_rho(rho, squared)

    assert rho * (1 - Fraction(1, 10**12)) <= cost.rho + Fraction(2, GRAINS)
    assert cost.rho <= rho


@given(st.floats(1e-6, 1e9))
def test_a_lattice_is_fine_enough_and_no_finer(sigma: float) -> None:
    s = lattice_for(sigma)

    assert sigma * 2**s >= MIN_LATTICE_SIGMA
    assert s == 0 or sigma * 2 ** (s - 1) < MIN_LATTICE_SIGMA


@given(rhos)
def test_the_lattice_costs_three_parts_in_a_million_at_most(rho: Fraction) -> None:
    cost = Gaussian.for_rho(rho, 1)

    assert 2 * cost.rho <= cost.mu_squared + Fraction(2, GRAINS)
    assert cost.mu_squared <= 2 * cost.rho * (1 + LATTICE_OVERHEAD) + Fraction(1, GRAINS)


@pytest.mark.parametrize("steps", [2, 3, 5, 20])
@pytest.mark.parametrize("shift", [1, 2, 7])
def test_discrete_noise_is_no_worse_than_continuous_noise_with_three_steps_less_variance(
    steps: int, shift: int
) -> None:
    mu = shift / math.sqrt(steps**2 - SMOOTHING_VARIANCE)

    for epsilon in np.linspace(-1, 6, 141):
        discrete = naive.discrete_gaussian_delta(float(epsilon), steps, shift)
        continuous = math.exp(float(gaussian_log_delta(epsilon, mu)))
        assert discrete <= continuous * (1 + 1e-9) + 1e-15


def test_discrete_noise_is_worse_than_continuous_noise_of_its_own_variance() -> None:
    discrete = naive.discrete_gaussian_delta(0.0, 2, 1)
    continuous = math.exp(float(gaussian_log_delta(np.float64(0), 1 / 2)))

    assert discrete > continuous


@given(st.fractions(Fraction(1, 10**6), 100), st.integers(1, 20))
def test_pure_steps_cost_at_most_their_epsilon(epsilon: Fraction, sensitivity: int) -> None:
    steps: list[Laplace | Exponential] = [
        Laplace.for_epsilon(epsilon, sensitivity),
        Exponential.for_epsilon(epsilon, sensitivity),
        Exponential.for_epsilon(epsilon, sensitivity, monotone=True),
    ]

    for step, sides in zip(steps, (1, 2, 1), strict=True):
        needed = sides * sensitivity / Fraction(step.scale)
        assert epsilon - Fraction(1, GRAINS) <= step.pure_epsilons[0] <= epsilon
        assert needed <= step.pure_epsilons[0] <= needed * (1 + Fraction(1, 10**14)) + Fraction(1, GRAINS)
        assert step.rho >= step.pure_epsilons[0] ** 2 / 2


def test_laplace_noise_costs_what_follows_from_its_scale_unless_more_is_charged() -> None:
    assert Laplace(sensitivity=Fraction(1), scale=4.0).pure_epsilons == (Fraction(1, 4),)
    assert Laplace(sensitivity=Fraction(1), scale=4.0, charged_epsilon=Fraction(1, 3)).pure_epsilons == (
        Fraction(1, 3),
    )


@pytest.mark.parametrize("scale", [1e-6, 0.01, 0.2, 1 / 3, 1.0, 7.5, 400.0])
def test_the_standard_deviation_of_laplace_noise_is_that_of_its_probabilities(scale: float) -> None:
    values = np.arange(-int(60 * scale) - 2, int(60 * scale) + 3)
    weights = np.exp(-np.abs(values) / scale)
    exact = math.sqrt(np.average(values**2, weights=weights))

    assert Laplace(sensitivity=Fraction(1), scale=scale).std == pytest.approx(max(exact, MIN_STD))


def test_the_exponential_mechanism_charges_both_sides_unless_monotone() -> None:
    both = Exponential.for_epsilon(Fraction(1), 2)
    one = Exponential.for_epsilon(Fraction(3, 2), 2, monotone=True, selections=3)

    assert (both.scale, both.pure_epsilons) == (4.0, (Fraction(1),))
    assert (one.scale, one.pure_epsilons) == (4.0, (Fraction(1, 2),) * 3)
    assert one.rho == Fraction(3, 8)


@given(st.fractions(Fraction(1, 100), 100), st.integers(1, 300), st.booleans())
def test_selections_without_replacement_cost_their_epsilon_together_exactly(
    epsilon: Fraction, n: int, one: bool
) -> None:
    paid = Fraction(int(epsilon * GRAINS), GRAINS)

    step = Exponential.for_epsilon(paid, 3, monotone=one, selections=n)

    assert sum(step.pure_epsilons) == paid
    assert len(step.pure_epsilons) == n
    assert (1 if one else 2) * 3 / Fraction(step.scale) <= min(step.pure_epsilons)


@pytest.mark.parametrize(
    ("neighbors", "rows", "l1", "l2_squared", "score"),
    [("add-remove", 1, 1, 1, 4), ("replace", 1, 2, 2, 8), ("add-remove", 3, 3, 9, 12), ("replace", 3, 6, 18, 24)],
)
def test_sensitivities_follow_neighbors_and_unit(
    neighbors: str, rows: int, l1: int, l2_squared: int, score: int
) -> None:
    protection = PrivacyUnit(neighbors=neighbors, id="person", max_rows=rows)

    assert protection.l1_sensitivity == l1
    assert protection.l2_sensitivity_squared == l2_squared
    assert protection.score_sensitivity(4) == score


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("scale", [0.7, 3.0, 40.0])
def test_a_laplace_threshold_is_the_smallest_that_holds(scale: float, rows: int) -> None:
    noise = Laplace(sensitivity=Fraction(rows), scale=scale)
    weights = -np.abs(np.arange(-4000, 4001)) / scale

    threshold = PartitionSelection.for_delta(1e-6, noise, rows).threshold

    assert rows * naive.discrete_tail(weights, threshold - rows) <= 1e-6
    assert rows * naive.discrete_tail(weights, threshold - 1 - rows) > 1e-6


@pytest.mark.parametrize(
    ("unit", "public"),
    [
        (PrivacyUnit(), False),
        (PrivacyUnit(neighbors="replace"), True),
        (PrivacyUnit(id="person"), False),
        (PrivacyUnit(neighbors="replace", id="person"), False),
    ],
)
def test_the_number_of_rows_is_public_only_if_one_row_is_replaced(unit: PrivacyUnit, public: bool) -> None:
    assert unit.row_count_is_public is public


@pytest.mark.parametrize("rows", [1, 3])
def test_a_gaussian_threshold_is_the_smallest_that_holds(rows: int) -> None:
    noise = Gaussian(sensitivity_squared=Fraction(rows**2), sigma=4.0, lattice=8)
    points = np.arange(-12 * MIN_LATTICE_SIGMA, 12 * MIN_LATTICE_SIGMA + 1, dtype=np.float64)
    weights = -(points**2) / (2 * MIN_LATTICE_SIGMA**2)

    threshold = PartitionSelection.for_delta(1e-9, noise, rows).threshold

    assert rows * naive.discrete_tail(weights, (threshold - rows) * 2**8) <= 1e-9
    assert rows * naive.discrete_tail(weights, (threshold - 1 - rows) * 2**8) > 1e-9


_Listed = tuple[tuple[str, int], ...]
"""Keys and their noisy counts."""


def _hockey_stick(first: dict[_Listed, float], second: dict[_Listed, float], epsilon: float) -> float:
    return sum(max(0.0, p - math.exp(epsilon) * second.get(key, 0.0)) for key, p in first.items())


def _selected(counts: dict[str, int], scale: float, threshold: int) -> dict[_Listed, float]:
    """The exact probabilities of all lists of keys and noisy counts, by partition selection with Laplace noise.

    Noisy counts from 10 on are one outcome: all counts are less, so their probabilities have a constant ratio.
    """
    q = math.exp(-1 / scale)
    lists: dict[_Listed, float] = {(): 1.0}
    for key, count in counts.items():
        listed: dict[_Listed, float] = {
            ((key, n),): (1 - q) / (1 + q) * q ** abs(n - count) for n in range(threshold, 10)
        }
        listed[((key, 10),)] = q ** (10 - count) / (1 + q)
        outcomes = {**listed, (): 1 - sum(listed.values())}
        lists = {one + more: p * r for one, p in lists.items() for more, r in outcomes.items()}
    return lists


@pytest.mark.parametrize("common", [3, 9])
@pytest.mark.parametrize(
    ("lone", "other"),
    [((), (1,)), ((1,), ()), ((1,), (1,)), ((), (1, 1)), ((), (2,)), ((1, 1), (2,)), ((2,), (1, 1))],
)
def test_a_threshold_adds_no_more_than_its_delta_however_large(
    common: int, lone: tuple[int, ...], other: tuple[int, ...]
) -> None:
    """Exact probabilities: δ of the list is at most that of the noise and δ of the threshold, to the first order."""
    rows = max(sum(lone), sum(other))
    noise = Laplace.for_epsilon(Fraction(1, 2), rows)
    for threshold in range(rows + 1, rows + 6):
        delta = rows * math.exp(noise.log_tail(threshold - rows))
        first = _selected({"c": common} | {f"a{i}": n for i, n in enumerate(lone)}, noise.scale, threshold)
        second = _selected({"c": common - rows} | {f"b{i}": n for i, n in enumerate(other)}, noise.scale, threshold)
        noisy, other_noisy = (_selected({"c": n}, noise.scale, 1) for n in (common, common - rows))
        for epsilon in (0.0, 0.1, 0.3, 0.5, 1.0):
            allowed = delta + _hockey_stick(noisy, other_noisy, epsilon)
            assert _hockey_stick(first, second, epsilon) <= allowed + 1e-9


def test_a_threshold_costs_its_noise_and_its_delta() -> None:
    noise = Gaussian.for_rho(Fraction(1, 100), 1)

    cost = PartitionSelection.for_delta(1e-10, noise)

    assert (cost.rho, cost.mu_squared, cost.delta) == (noise.rho, noise.mu_squared, Fraction(1, 10**10))


def test_a_threshold_that_fails_too_often_is_refused() -> None:
    noise = Laplace.for_epsilon(Fraction(1), 1)
    right = PartitionSelection.for_delta(1e-6, noise)

    with pytest.raises(BudgetError, match=f"use {right.threshold}"):
        PartitionSelection(noise=noise, max_rows=1, threshold=right.threshold - 1, charged_delta=right.charged_delta)


def test_coarse_gaussian_noise_is_refused() -> None:
    with pytest.raises(BudgetError, match="use lattice 8"):
        Gaussian(sensitivity_squared=Fraction(1), sigma=5.5, lattice=7)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Laplace(sensitivity=Fraction(1), scale=0.0),
        lambda: Laplace(sensitivity=Fraction(1), scale=math.nan),
        lambda: Gaussian(sensitivity_squared=Fraction(-1), sigma=1024.0, lattice=0),
        lambda: Laplace(sensitivity=Fraction(1), scale=4.0, charged_epsilon=Fraction(1, 5)),
        lambda: Exponential(sensitivity=Fraction(1), scale=math.inf, charged_epsilon=Fraction(1)),
        lambda: Exponential(sensitivity=Fraction(1), scale=2.0, charged_epsilon=Fraction(99, 100)),
        lambda: Exponential(sensitivity=Fraction(1), scale=1.0, charged_epsilon=Fraction(99, 100), monotone=True),
        lambda: Exponential(sensitivity=Fraction(1), scale=1.0, charged_epsilon=Fraction(2), selections=2),
        lambda: Exponential(sensitivity=Fraction(1), scale=1.0, charged_epsilon=Fraction(2), selections=10**15),
        lambda: Exponential.for_epsilon(Fraction(1), 1, selections=10**15),
        lambda: Laplace.for_epsilon(Fraction(0), 1),
        lambda: PrivacyUnit(max_rows=2),
        lambda: PrivacyUnit(neighbors="swap"),
    ],
)
def test_an_invalid_cost_cannot_be_built(build: object) -> None:
    with pytest.raises(BudgetError):
        build()  # type: ignore[operator]


@settings(deadline=None)
@given(
    st.one_of(
        rhos.map(lambda rho: Gaussian.for_rho(rho, 2)),
        rhos.map(lambda epsilon: Laplace.for_epsilon(epsilon, 1)),
        st.builds(
            lambda epsilon, n: Exponential.for_epsilon(epsilon, Fraction(1, 3), selections=n), rhos, st.integers(1, 9)
        ),
        rhos.map(lambda rho: PartitionSelection.for_delta("1e-10", Gaussian.for_rho(rho, 1), 2)),
    )
)
def test_a_step_survives_json(cost: MechanismCost) -> None:
    assert cost_from_data(json.loads(json.dumps(cost.to_data()))) == cost


@pytest.mark.parametrize("data", [{}, {"kind": "gumbel"}, {"kind": "laplace"}, {"kind": "gaussian", "sigma": 1}])
def test_an_unknown_step_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(BudgetError, match="step"):
        cost_from_data(data)
