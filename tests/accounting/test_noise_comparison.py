from __future__ import annotations

import math

import pytest

from dpsyn.accounting import compare_noise_mechanisms, laplace_gaussian_crossover, max_marginals
from dpsyn.accounting.noise_comparison import NOISE_METHODS, laplace_advanced, laplace_paper
from dpsyn.errors import BudgetError

FIGURE = [(0.01, 1e-8, 18), (0.01, 1e-12, 28), (1.0, 1e-8, 19), (1.0, 1e-12, 28)]
"""The seed's figure: ε, δ, and where Laplace basic and Gaussian zCDP cross."""


@pytest.mark.parametrize(("epsilon", "delta", "expected"), FIGURE)
def test_the_crossovers_of_the_original_figure(epsilon: float, delta: float, expected: int) -> None:
    assert round(laplace_gaussian_crossover(epsilon, delta, "loose")) == expected


@pytest.mark.parametrize(("epsilon", "expected"), [(0.1, 12), (1.0, 15), (10.0, 21)])
def test_with_exact_accounting_laplace_wins_for_few_marginals_only(epsilon: float, expected: int) -> None:
    assert expected <= laplace_gaussian_crossover(epsilon, 1e-9) < expected + 1


@pytest.mark.parametrize(("epsilon", "delta", "_"), FIGURE)
def test_laplace_advanced_and_zcdp_differ_by_less_than_ten(epsilon: float, delta: float, _: int) -> None:
    for k in range(1, 201):
        difference = laplace_advanced(epsilon, delta, k) - laplace_paper(epsilon, delta, k)
        assert abs(difference) < 10


def test_the_recommendation_follows_the_crossover() -> None:
    for k in (1, 15, 16, 50):
        best = next(choice.name for choice in compare_noise_mechanisms(1, 1e-9, k) if choice.recommended)
        assert best == ("Laplace, basic composition" if k <= 15 else "Gaussian, exact")


def test_all_eight_methods_are_shown_and_exact_is_the_smallest_gaussian() -> None:
    choices = {choice.name: choice.std for choice in compare_noise_mechanisms(1, 1e-9, 50)}

    assert len(choices) == len(NOISE_METHODS) == 8
    assert choices["Laplace, basic composition"] == pytest.approx(math.sqrt(2) * 50)
    assert choices["Gaussian, exact"] == pytest.approx(5.495 * math.sqrt(50), rel=1e-4)
    assert choices["Gaussian, zCDP"] == pytest.approx(5.779 * math.sqrt(50), rel=1e-4)
    assert choices["Gaussian, zCDP as in the paper"] == pytest.approx(6.515 * math.sqrt(50), rel=1e-4)
    assert choices["Laplace, zCDP as in the paper"] == pytest.approx(6.515 * math.sqrt(2 * 50), rel=1e-4)
    names = ("advanced composition", "zCDP as in the paper", "zCDP", "exact")
    stds = [choices[f"Gaussian, {name}"] for name in names]
    assert stds == sorted(stds, reverse=True)


def test_advanced_composition_spends_the_whole_epsilon() -> None:
    step = math.sqrt(2) / laplace_advanced(1, 1e-9, 50)

    total = math.sqrt(2 * 50 * math.log(1e9)) * step + 50 * step * math.expm1(step)

    assert total == pytest.approx(1, rel=1e-12)


def test_without_delta_only_basic_composition_applies() -> None:
    (choice,) = compare_noise_mechanisms(1, 0, 1000)

    assert choice.name == "Laplace, basic composition"
    assert choice.recommended


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
        assert best.name == (
            "Laplace, basic composition" if k <= laplace_gaussian_crossover(epsilon, delta) else "Gaussian, exact"
        )


# ── neighboring relations, and marginals at constant error ──────────────────────────────────────────────────


def test_replaced_rows_double_laplace_noise_and_half_the_crossover() -> None:
    """The sensitivities of the paper: 1 and 1 if a row is added or removed, 2 and √2 if it is replaced."""
    added = {choice.name: choice.std for choice in compare_noise_mechanisms(1, 1e-9, 50)}
    replaced = {choice.name: choice.std for choice in compare_noise_mechanisms(1, 1e-9, 50, neighbors="replace")}

    for name, std in added.items():
        assert replaced[name] == pytest.approx(std * (2 if name.startswith("Laplace") else math.sqrt(2)))
    assert laplace_gaussian_crossover(1, 1e-9, neighbors="replace") == pytest.approx(
        laplace_gaussian_crossover(1, 1e-9) / 2
    )


def test_an_unknown_neighboring_relation_is_refused() -> None:
    for call in (
        lambda: compare_noise_mechanisms(1, 1e-9, 5, neighbors="both"),
        lambda: laplace_gaussian_crossover(1, 1e-9, neighbors="both"),
        lambda: max_marginals(1, 1e-9, 5, neighbors="both"),
    ):
        with pytest.raises(BudgetError, match="use add-remove or replace"):
            call()


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("delta", [0, 1e-9])
@pytest.mark.parametrize("std", [3, 40.5, 1000])
def test_one_marginal_more_than_the_most_has_too_much_noise(neighbors: str, delta: float, std: float) -> None:
    most = max_marginals(1, delta, std, neighbors=neighbors)

    assert most > 0
    for marginals, fits in ((most, True), (most + 1, False)):
        best = min(choice.std for choice in compare_noise_mechanisms(1, delta, marginals, neighbors=neighbors))
        assert (best <= std * (1 + 1e-12)) is fits


def test_marginals_at_constant_error_grow_with_n_for_pure_epsilon_and_with_its_square_otherwise() -> None:
    pure, with_delta, with_falling_delta = (
        [max_marginals(1, delta(rows), 1e-5 * rows) for rows in (10**8, 10**9)]
        for delta in (lambda rows: 0, lambda rows: 1e-9, lambda rows: rows**-2)
    )

    assert pure[1] / pure[0] == pytest.approx(10, rel=1e-2)
    assert with_delta[1] / with_delta[0] == pytest.approx(100, rel=1e-3)
    assert 80 < with_falling_delta[1] / with_falling_delta[0] < 95  # "close to quadratic", because δ falls with n


@pytest.mark.parametrize("std", [0, -1, math.inf, math.nan])
def test_a_standard_deviation_is_a_positive_number(std: float) -> None:
    with pytest.raises(BudgetError, match="standard deviation"):
        max_marginals(1, 1e-9, std)
