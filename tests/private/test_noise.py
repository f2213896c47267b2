"""The noise has the scale that was charged: not less, and not more.

One body judges the right scale and scales that are off by a tenth, through what the gate releases. With N draws the
variance of Gaussian noise is known to √(2/N); the limits lie five standard errors away on either side, so a sound
sampler fails once in a million runs. A scale that is off by a tenth moves the variance by 19 or 21 %, at least ten
standard errors, and so is rejected as surely.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.measurements
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from dpsyn.accounting import Budget, Gaussian, Laplace, PartitionSelection
from dpsyn.errors import InternalError
from dpsyn.private import PrivateTable, SystemNoise, open_private
from dpsyn.private.mechanisms import NOISE_CHUNK, _check_privacy_map, _opendp_measurement
from dpsyn.schema import Categorical, Open, Schema
from tests.private.noise_doubles import ScaledNoise

CODES = 7_000
SCHEMA = Schema(
    attributes=tuple(Categorical(name=name, codes=size) for name, size in (("a", CODES), ("b", 2), ("c", 2)))
)
ROWS = np.arange(2 * CODES)
TABLE = pa.table({"a": ROWS % CODES, "b": ROWS % 2, "c": ROWS % 4 // 3})
EXACT = np.zeros((CODES, 2))
np.add.at(EXACT, (ROWS % CODES, ROWS % 2), 1)
BUDGET = Budget.for_guarantee(1, 1e-6, pure_epsilons=[0.2])
PURE = Budget.for_guarantee("0.2", 0, pure_epsilons=["0.2"])


def errors_of_marginals(table: PrivateTable) -> NDArray[np.float64]:
    """Noise of a marginal, in units of the charged σ; most cells are empty."""
    (result,) = table.measure([("a", "b")], [table.budget.rho])
    cost = Gaussian.for_rho(table.budget.rho, 1)
    assert result.std == cost.sigma
    return ((result.counts - EXACT) / cost.sigma).ravel()


def errors_of_laplace_marginals(table: PrivateTable) -> NDArray[np.float64]:
    """Laplace noise of a marginal, in units of its standard deviation."""
    (result,) = table.measure_laplace([("a", "b")], table.budget.pure_epsilons)
    cost = Laplace.for_epsilon(table.budget.pure_epsilons[0], 1)
    assert result.std == cost.std
    return ((result.counts - EXACT) / cost.std).ravel()


def errors_of_pure_marginals(table: PrivateTable) -> NDArray[np.float64]:
    """Laplace noise of a marginal of a pure budget, a fifth of whose ε is spent on it."""
    part = table.budget.amount / 5
    (result,) = table.measure([("a", "b")], [part])
    cost = Laplace.for_epsilon(part, 1)
    assert (result.std, cost.scale) == (cost.std, 25)
    return ((result.counts - EXACT) / cost.std).ravel()


def errors_of_histograms(table: PrivateTable) -> NDArray[np.float64]:
    """Noise of a fine histogram."""
    result = table.measure_fine_histogram("a", table.budget.rho)
    return (result.counts - 2) / Gaussian.for_rho(table.budget.rho, 1).sigma


def errors_of_scores(table: PrivateTable) -> NDArray[np.float64]:
    """Noise of many scores at once: Δ² grows with their number."""
    count = 6_000
    result = table.score_predictions([("b",)] * count, [np.array([CODES, CODES])] * count, table.budget.rho)
    return result.values / Gaussian.for_rho(table.budget.rho, count).sigma


def errors_of_indif_scores(table: PrivateTable) -> NDArray[np.float64]:
    """Noise of many InDif scores: a row changes each by up to 4."""
    count = 6_000
    result = table.score_indif([("b", "c")] * count, table.budget.rho)
    counts = np.array([[CODES, 0], [CODES / 2, CODES / 2]])
    expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    exact = int(np.abs(counts - expected).sum())
    return (result.values - exact) / Gaussian.for_rho(table.budget.rho, count * 16).sigma


Question = Callable[[PrivateTable], NDArray[np.float64]]
QUESTIONS: dict[str, tuple[Question, float]] = {
    "measure": (errors_of_marginals, 3),
    "measure_laplace": (errors_of_laplace_marginals, 6),
    "measure of a pure budget": (errors_of_pure_marginals, 6),
    "measure_fine_histogram": (errors_of_histograms, 3),
    "score_predictions": (errors_of_scores, 3),
    "score_indif": (errors_of_indif_scores, 3),
}
"""What to ask, and the kurtosis of its noise: 3 for Gaussian, 6 for Laplace."""


def is_of_the_right_scale(errors: NDArray[np.float64], kurtosis: float) -> bool:
    """Whether the variance is 1 within five standard errors; their number shrinks with heavier tails."""
    error = math.sqrt((kurtosis - 1) / len(errors))
    return bool(abs(np.mean(errors**2) - 1) < 5 * error and abs(errors.mean()) < 5 / math.sqrt(len(errors)))


@pytest.mark.parametrize("factor", [1.0, 0.9, 1.1])
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_scale_is_accepted_and_others_are_rejected(question: str, factor: float) -> None:
    ask, kurtosis = QUESTIONS[question]
    noise: Any = SystemNoise() if factor == 1 else ScaledNoise(factor)
    with open_private(TABLE, SCHEMA, PURE if "pure" in question else BUDGET, mechanisms=noise) as table:
        errors = ask(table)

    accepted = is_of_the_right_scale(errors, kurtosis)

    assert accepted == (factor == 1)


@pytest.mark.parametrize("factor", [1.0, 0.9, 1.1])
def test_listed_values_reach_the_threshold_as_often_as_they_should(factor: float) -> None:
    """Keys about one standard deviation above the threshold are listed with the probability that follows."""
    budget = Budget.for_guarantee(3, 1e-6, thresholds=True)
    noise = Gaussian.for_rho(budget.rho, 1)
    cost = PartitionSelection.for_delta(budget.threshold_delta, noise)
    keys, count = 30_000, cost.threshold + round(noise.sigma)
    table = pa.table({"city": np.repeat([f"c{i}" for i in range(keys)], count)})
    mechanisms: Any = SystemNoise() if factor == 1 else ScaledNoise(factor)

    with open_private(table, Schema(attributes=(Open(name="city"),)), budget, mechanisms=mechanisms) as private:
        result: Any = private.discover_values("city", budget.rho, budget.threshold_delta).schema["city"]

    expected = 0.5 * (1 + math.erf((count - cost.threshold) / noise.sigma / math.sqrt(2)))
    error = math.sqrt(expected * (1 - expected) / keys)
    listed = len(result.all_values()) - 1
    assert (abs(listed / keys - expected) < 5 * error) == (factor == 1)
    assert list(result.values) == sorted(result.values)


def test_two_runs_never_have_the_same_noise() -> None:
    samples = []
    for _ in range(2):
        with open_private(TABLE, SCHEMA, BUDGET) as table:
            samples.append(table.measure([("a",)], [table.budget.rho])[0].raw)

    assert not np.array_equal(samples[0], samples[1])


LARGE = (
    Gaussian(sensitivity_squared=Fraction(1), sigma=2.0**50, lattice=0),
    Laplace(sensitivity=Fraction(1), scale=2.0**50),
)
"""Scales so large that two of these independent samples are equal once in a million runs."""


@pytest.mark.parametrize("cost", LARGE)
def test_every_cell_has_independent_noise(cost: Gaussian | Laplace) -> None:
    exact = np.zeros(2 * NOISE_CHUNK + 1, np.int64)

    samples = [table for _ in range(2) for table in SystemNoise().add_noise([(exact, cost), (exact, cost)])]

    numbers = np.concatenate(samples).tolist()
    assert len(set(numbers)) == len(numbers)


def test_each_answer_has_the_noise_of_its_cost_and_its_shape() -> None:
    """Answers of all sizes at once, none included; their noise is far below the distance between them."""
    costs: list[Gaussian | Laplace] = [
        Gaussian.for_rho(Fraction(1), 1),
        Laplace.for_epsilon(Fraction(1), 1),
        Gaussian.for_rho(Fraction(1, 100), 1),
    ]
    shapes = [(), (0,), (3, 5), (NOISE_CHUNK,), (2, NOISE_CHUNK - 1), (1, 1, 1)]
    answers = [(np.full(shape, 10**6 * i), costs[i % 3]) for i, shape in enumerate(shapes)]

    noisy = SystemNoise().add_noise(answers)

    assert [released.shape for released in noisy] == shapes
    for released, (exact, cost) in zip(noisy, answers, strict=True):
        steps = 2**cost.lattice if isinstance(cost, Gaussian) else 1
        assert (np.abs(released / steps - exact) < 1000).all()
    assert SystemNoise().add_noise([]) == []


def test_answers_measured_together_have_separate_scales() -> None:
    """As in the first test, for two answers of one call whose scales differ by ten."""
    costs = (Gaussian.for_rho(Fraction(1), 1), Gaussian.for_rho(Fraction(1, 100), 1))
    exact = np.zeros(CODES, np.int64)

    noisy = SystemNoise().add_noise([(exact, cost) for cost in costs])

    for released, cost in zip(noisy, costs, strict=True):
        assert is_of_the_right_scale(released / 2**cost.lattice / cost.sigma, 3)


# ── noise and charge ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("squared", [1, 2, 9, 18, Fraction(49, 3), 5_000])
@pytest.mark.parametrize("exponent", range(-8, 9, 4))
def test_opendp_computes_the_charge_of_every_noise_that_is_added(squared: int | Fraction, exponent: int) -> None:
    rho = Fraction(10) ** exponent / 3

    SystemNoise().add_noise([(np.zeros(1, np.int64), Gaussian.for_rho(rho, squared))])
    SystemNoise().add_noise([(np.zeros(1, np.int64), Laplace.for_epsilon(rho, math.ceil(squared)))])


@pytest.mark.parametrize(
    ("constructor", "cost"),
    [("make_gaussian", Gaussian.for_rho(Fraction(1, 7), 2)), ("make_laplace", Laplace.for_epsilon(Fraction(1, 7), 2))],
)
@pytest.mark.parametrize("factor", [1.0, 1 - 1e-9, 1 - 1e-11])
def test_noise_that_costs_more_than_its_charge_by_opendps_own_map_is_refused(
    monkeypatch: pytest.MonkeyPatch, constructor: str, cost: Gaussian | Laplace, factor: float
) -> None:
    original = getattr(opendp.measurements, constructor)
    monkeypatch.setattr(
        opendp.measurements, constructor, lambda *domain, scale: original(*domain, scale=scale * factor)
    )
    _opendp_measurement.cache_clear()

    with contextlib.nullcontext() if factor == 1 else pytest.raises(InternalError, match="OpenDP's privacy map"):
        SystemNoise().add_noise([(np.zeros(3, np.int64), cost)])
    _opendp_measurement.cache_clear()


def test_a_loss_that_is_no_number_is_refused() -> None:
    for loss in (math.nan, math.inf):
        with pytest.raises(InternalError, match="privacy map"):
            _check_privacy_map(loss, Fraction(1))
