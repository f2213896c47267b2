"""The noise has the scale that was paid for: not less, and not more.

One body judges the right scale and scales that are off by a tenth, through what the gate releases. With N draws the
variance of Gaussian noise is known to √(2/N); the limits lie five standard errors away on either side, so a sound
sampler fails once in a million runs. A scale that is off by a tenth moves the variance by 19 or 21 %, at least ten
standard errors, and so is rejected as surely.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from dpsyn.accounting import Budget, Gaussian, Laplace, PartitionSelection
from dpsyn.private import PrivateTable, SystemNoise, open_private
from dpsyn.private.mechanisms import NOISE_CHUNK
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


def deviations_of_marginals(table: PrivateTable) -> NDArray[np.float64]:
    """Noise of a marginal, in units of what was paid for; most cells are empty."""
    (found,) = table.measure([("a", "b")], [table.budget.rho])
    spend = Gaussian.for_rho(table.budget.rho, 1)
    assert found.std == spend.sigma
    return ((found.counts - EXACT) / spend.sigma).ravel()


def deviations_of_pure_marginals(table: PrivateTable) -> NDArray[np.float64]:
    """Laplace noise of a marginal, in units of its standard deviation."""
    (found,) = table.measure_laplace([("a", "b")], table.budget.pure_epsilons)
    scale = Laplace.for_epsilon(table.budget.pure_epsilons[0], 1).scale
    return ((found.counts - EXACT) / (math.sqrt(2) * scale)).ravel()


def deviations_of_histograms(table: PrivateTable) -> NDArray[np.float64]:
    """Noise of a fine histogram."""
    found = table.measure_fine_histogram("a", table.budget.rho)
    return (found.counts - 2) / Gaussian.for_rho(table.budget.rho, 1).sigma


def deviations_of_scores(table: PrivateTable) -> NDArray[np.float64]:
    """Noise of many scores at once: Δ² grows with their number."""
    number = 6_000
    found = table.score_predictions([("b",)] * number, [np.array([CODES, CODES])] * number, table.budget.rho)
    return found / Gaussian.for_rho(table.budget.rho, number).sigma


def deviations_of_dependence(table: PrivateTable) -> NDArray[np.float64]:
    """Noise of many InDif scores: a row changes each by up to 4."""
    number = 6_000
    found = table.score_indif([("b", "c")] * number, table.budget.rho)
    counts = np.array([[CODES, 0], [CODES / 2, CODES / 2]])
    expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    exact = int(np.abs(counts - expected).sum())
    return (found - exact) / Gaussian.for_rho(table.budget.rho, number * 16).sigma


Question = Callable[[PrivateTable], NDArray[np.float64]]
QUESTIONS: dict[str, tuple[Question, float]] = {
    "measure": (deviations_of_marginals, 3),
    "measure_purely": (deviations_of_pure_marginals, 6),
    "fine_histogram": (deviations_of_histograms, 3),
    "score": (deviations_of_scores, 3),
    "dependence": (deviations_of_dependence, 3),
}
"""What to ask, and the kurtosis of its noise: 3 for Gaussian, 6 for Laplace."""


def is_of_the_right_scale(deviations: NDArray[np.float64], kurtosis: float) -> bool:
    """Whether the variance is 1 within five standard errors; their number shrinks with heavier tails."""
    error = math.sqrt((kurtosis - 1) / len(deviations))
    return bool(abs(np.mean(deviations**2) - 1) < 5 * error and abs(deviations.mean()) < 5 / math.sqrt(len(deviations)))


@pytest.mark.parametrize("factor", [1.0, 0.9, 1.1])
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_scale_is_accepted_and_others_are_rejected(question: str, factor: float) -> None:
    ask, kurtosis = QUESTIONS[question]
    noise: Any = SystemNoise() if factor == 1 else ScaledNoise(factor)
    with open_private(TABLE, SCHEMA, BUDGET, mechanisms=noise) as table:
        deviations = ask(table)

    accepted = is_of_the_right_scale(deviations, kurtosis)

    assert accepted == (factor == 1)


@pytest.mark.parametrize("factor", [1.0, 0.9, 1.1])
def test_listed_values_reach_the_threshold_as_often_as_they_should(factor: float) -> None:
    """Keys about one standard deviation above the threshold are listed with the probability that follows."""
    budget = Budget.for_guarantee(3, 1e-6, thresholds=True)
    noise = Gaussian.for_rho(budget.rho, 1)
    spend = PartitionSelection.for_delta(budget.threshold_delta, noise)
    number, count = 30_000, spend.threshold + round(noise.sigma)
    table = pa.table({"city": np.repeat([f"c{i}" for i in range(number)], count)})
    mechanisms: Any = SystemNoise() if factor == 1 else ScaledNoise(factor)

    with open_private(table, Schema(attributes=(Open(name="city"),)), budget, mechanisms=mechanisms) as private:
        found: Any = private.discover_values("city", budget.rho, budget.threshold_delta).schema["city"]

    expected = 0.5 * (1 + math.erf((count - spend.threshold) / noise.sigma / math.sqrt(2)))
    error = math.sqrt(expected * (1 - expected) / number)
    listed = len(found.all_values()) - 1
    assert (abs(listed / number - expected) < 5 * error) == (factor == 1)
    assert list(found.values) == sorted(found.values)


def test_two_runs_never_draw_the_same_noise() -> None:
    drawn = []
    for _ in range(2):
        with open_private(TABLE, SCHEMA, BUDGET) as table:
            drawn.append(table.measure([("a",)], [table.budget.rho])[0].raw)

    assert not np.array_equal(drawn[0], drawn[1])


LARGE = (
    Gaussian(sensitivity_squared=Fraction(1), sigma=2.0**50, lattice=0),
    Laplace(sensitivity=Fraction(1), scale=2.0**50),
)
"""Scales so large that two of so many independent draws are equal once in a million runs."""


@pytest.mark.parametrize("spend", LARGE)
def test_every_cell_has_noise_of_its_own(spend: Gaussian | Laplace) -> None:
    exact = np.zeros(2 * NOISE_CHUNK + 1, np.int64)

    drawn = [table for _ in range(2) for table in SystemNoise().add_noise([(exact, spend), (exact, spend)])]

    numbers = np.concatenate(drawn).tolist()
    assert len(set(numbers)) == len(numbers)


def test_each_answer_has_the_noise_of_its_own_spend_in_its_own_place() -> None:
    """Answers of all sizes at once, none included; their noise is far below the distance between them."""
    spends: list[Gaussian | Laplace] = [
        Gaussian.for_rho(Fraction(1), 1),
        Laplace.for_epsilon(Fraction(1), 1),
        Gaussian.for_rho(Fraction(1, 100), 1),
    ]
    shapes = [(), (0,), (3, 5), (NOISE_CHUNK,), (2, NOISE_CHUNK - 1), (1, 1, 1)]
    answers = [(np.full(shape, 10**6 * i), spends[i % 3]) for i, shape in enumerate(shapes)]

    noisy = SystemNoise().add_noise(answers)

    assert [released.shape for released in noisy] == shapes
    for released, (exact, spend) in zip(noisy, answers, strict=True):
        steps = 2**spend.lattice if isinstance(spend, Gaussian) else 1
        assert (np.abs(released / steps - exact) < 1000).all()
    assert SystemNoise().add_noise([]) == []


def test_answers_drawn_together_have_scales_of_their_own() -> None:
    """As in the first test, for two answers of one call whose scales differ by ten."""
    spends = (Gaussian.for_rho(Fraction(1), 1), Gaussian.for_rho(Fraction(1, 100), 1))
    exact = np.zeros(CODES, np.int64)

    noisy = SystemNoise().add_noise([(exact, spend) for spend in spends])

    for released, spend in zip(noisy, spends, strict=True):
        assert is_of_the_right_scale(released / 2**spend.lattice / spend.sigma, 3)
