from __future__ import annotations

import math

import pytest

from dpsyn.accounting import compare_noise_mechanisms, laplace_gaussian_crossover, laplace_wins
from dpsyn.accounting.noise_comparison import NOISE_METHODS, laplace_advanced, laplace_zcdp
from dpsyn.errors import BudgetError

FIGURE = [(0.01, 1e-8, 18), (0.01, 1e-12, 28), (1.0, 1e-8, 19), (1.0, 1e-12, 28)]
"""The seed's figure: ε, δ, and where Laplace basic and Gaussian zCDP cross."""


@pytest.mark.parametrize(("epsilon", "delta", "expected"), FIGURE)
def test_the_crossovers_of_the_original_figure(epsilon: float, delta: float, expected: int) -> None:
    assert round(laplace_gaussian_crossover(epsilon, delta, "loose")) == expected


@pytest.mark.parametrize(("epsilon", "expected"), [(0.1, 12), (1.0, 15), (10.0, 21)])
def test_with_exact_accounting_laplace_wins_for_few_marginals_only(epsilon: float, expected: int) -> None:
    assert laplace_wins(epsilon, 1e-9, expected)
    assert not laplace_wins(epsilon, 1e-9, expected + 1)


@pytest.mark.parametrize(("epsilon", "delta", "_"), FIGURE)
def test_laplace_advanced_and_zcdp_differ_by_less_than_ten(epsilon: float, delta: float, _: int) -> None:
    for k in range(1, 201):
        difference = laplace_advanced(epsilon, delta, k) - laplace_zcdp(epsilon, delta, k, "loose")
        assert abs(difference) < 10


def test_the_recommendation_follows_the_crossover() -> None:
    for k in (1, 15, 16, 50):
        best = next(choice.name for choice in compare_noise_mechanisms(1, 1e-9, k) if choice.recommended)
        assert best == ("Laplace, basic composition" if k <= 15 else "Gaussian, exact")


def test_all_six_methods_are_shown_and_exact_is_the_smallest_gaussian() -> None:
    choices = {choice.name: choice.std for choice in compare_noise_mechanisms(1, 1e-9, 50)}

    assert len(choices) == len(NOISE_METHODS) == 6
    assert choices["Laplace, basic composition"] == pytest.approx(math.sqrt(2) * 50)
    assert choices["Gaussian, exact"] == pytest.approx(5.495 * math.sqrt(50), rel=1e-4)
    assert choices["Gaussian, zCDP"] == pytest.approx(5.779 * math.sqrt(50), rel=1e-4)
    assert choices["Gaussian, advanced composition"] > choices["Gaussian, zCDP"] > choices["Gaussian, exact"]


def test_advanced_composition_spends_the_whole_epsilon() -> None:
    step = math.sqrt(2) / laplace_advanced(1, 1e-9, 50)

    total = math.sqrt(2 * 50 * math.log(1e9)) * step + 50 * step * math.expm1(step)

    assert total == pytest.approx(1, rel=1e-12)


def test_without_delta_only_basic_composition_applies() -> None:
    (choice,) = compare_noise_mechanisms(1, 0, 1000)

    assert choice.name == "Laplace, basic composition"
    assert choice.recommended
    assert laplace_wins(1, 0, 1000)


@pytest.mark.parametrize(
    ("epsilon", "delta", "marginals"),
    [
        (0, 1e-9, 5),
        (-1, 1e-9, 5),
        (1e9, 1e-9, 5),
        (1, 1, 5),
        (1, -1e-9, 5),
        (1, 1e-40, 5),
        (1, math.nan, 5),
        (1, 1e-9, 0),
    ],
)
def test_invalid_values_are_refused(epsilon: float, delta: float, marginals: int) -> None:
    with pytest.raises(BudgetError, match="give"):
        compare_noise_mechanisms(epsilon, delta, marginals)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 10, 1e6])
@pytest.mark.parametrize("delta", [1e-36, 1e-9, 0.1, 0.999])
def test_within_the_allowed_range_every_method_is_finite_and_the_best_follows_the_crossover(
    epsilon: float, delta: float
) -> None:
    for k in (1, 20, 10**9):
        choices = compare_noise_mechanisms(epsilon, delta, k)

        best = min(choices, key=lambda choice: choice.std)
        assert all(0 < choice.std < math.inf for choice in choices)
        assert best.name == ("Laplace, basic composition" if laplace_wins(epsilon, delta, k) else "Gaussian, exact")
