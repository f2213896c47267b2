from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.accounting.exact_numbers import (
    GRAINS,
    exact_fraction,
    format_exact,
    round_down,
    round_down_to_digits,
    round_up,
    split_exactly,
)
from dpsyn.errors import BudgetError

fractions = st.fractions(min_value=0, max_value=10**6)
grains = st.integers(0, 10**40).map(lambda n: Fraction(n, GRAINS))
weights = st.lists(st.floats(0, 1e12, allow_nan=False), min_size=1, max_size=50).filter(any)


@given(grains, weights)
def test_shares_add_up_to_the_total_exactly(total: Fraction, weights: list[float]) -> None:
    shares = split_exactly(total, weights)

    assert sum(shares) == total


@given(grains, weights)
def test_a_share_is_its_proportion_to_within_a_grain(total: Fraction, weights: list[float]) -> None:
    shares = split_exactly(total, weights)

    whole = sum(exact_fraction(weight) for weight in weights)
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - total * exact_fraction(weight) / whole) <= Fraction(1, GRAINS)
        assert weight > 0 or share == 0


@given(fractions)
def test_costs_round_up_and_budgets_down_by_less_than_a_grain(value: Fraction) -> None:
    assert round_down(value) <= value <= round_up(value)
    assert round_up(value) - round_down(value) <= Fraction(1, GRAINS)


@given(st.floats(1e-20, 1e20))
def test_a_budget_from_a_formula_is_rounded_down_to_twelve_digits(value: float) -> None:
    assert Fraction(value) * (1 - Fraction(1, 10**11)) <= round_down_to_digits(value) <= Fraction(value)


@given(st.one_of(grains, fractions, fractions.map(lambda f: -f)))
def test_exact_numbers_survive_as_text(value: Fraction) -> None:
    assert exact_fraction(format_exact(value)) == value


def test_a_number_is_exactly_as_written() -> None:
    assert exact_fraction(0.1) == Fraction(1, 10)
    assert exact_fraction("1e-9") == exact_fraction(1e-9) == Fraction(1, 10**9)


@pytest.mark.parametrize(
    "nonsense", ["one", float("nan"), float("inf"), "1/0", "1e999999999", "1E-99_9999", "1" * 2000]
)
def test_invalid_values_are_refused(nonsense: float | str) -> None:
    with pytest.raises(BudgetError, match="number"):
        exact_fraction(nonsense)


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1]])
def test_weights_that_split_nothing_are_refused(weights: list[float]) -> None:
    with pytest.raises(BudgetError, match="weights"):
        split_exactly(Fraction(1), weights)


def test_a_total_finer_than_grains_is_refused() -> None:
    with pytest.raises(BudgetError, match="grains"):
        split_exactly(Fraction(1, 3), [1, 2])
