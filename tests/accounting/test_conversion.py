from __future__ import annotations

import math
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.accounting import epsilon_for, rho_for, sigma_for
from dpsyn.accounting.conversion import ConversionMethod, gaussian_log_delta, zcdp_log_delta
from dpsyn.errors import BudgetError
from tests.accounting import naive

epsilons = st.floats(math.log(1e-3), math.log(1e6)).map(math.exp)
deltas = st.floats(math.log(1e-30), math.log(1e-2)).map(math.exp)
methods = st.sampled_from(("exact", "zcdp", "loose"))


@pytest.mark.parametrize(
    ("epsilon", "method", "sigma"),
    [
        (0.1, "exact", "50.21"),
        (0.1, "zcdp", "53.13"),
        (0.1, "loose", "64.46"),
        (1, "exact", "5.495"),
        (1, "zcdp", "5.779"),
        (1, "loose", "6.515"),
        (10, "exact", "0.6502"),
        (10, "zcdp", "0.6770"),
        (10, "loose", "0.7138"),
    ],
)
def test_the_noise_of_one_marginal_is_that_of_the_design(epsilon: float, method: ConversionMethod, sigma: str) -> None:
    digits = len(sigma.partition(".")[2])

    result = sigma_for(rho_for(epsilon, 1e-9, method), Fraction(1))

    assert f"{result:.{digits}f}" == sigma


@settings(deadline=None)
@given(epsilons, deltas, methods)
def test_converting_there_and_back_keeps_epsilon(epsilon: float, delta: float, method: ConversionMethod) -> None:
    back = epsilon_for(rho_for(epsilon, delta, method), delta, method)

    assert math.isclose(back, epsilon, rel_tol=1e-8)


@settings(deadline=None)
@given(epsilons, deltas, st.floats(1.001, 10), methods)
def test_a_larger_epsilon_or_delta_gives_more_rho(
    epsilon: float, delta: float, factor: float, method: ConversionMethod
) -> None:
    assert rho_for(epsilon, delta, method) < rho_for(epsilon * factor, delta, method)
    assert rho_for(epsilon, delta / factor, method) < rho_for(epsilon, delta, method)


@settings(deadline=None)
@given(epsilons, deltas)
def test_the_exact_method_gives_the_most_rho_and_the_loose_method_the_least(epsilon: float, delta: float) -> None:
    assert rho_for(epsilon, delta, "loose") < rho_for(epsilon, delta, "zcdp") < rho_for(epsilon, delta, "exact")


@settings(deadline=None)
@given(epsilons, deltas)
def test_a_budget_keeps_its_guarantee_in_the_formula_it_came_from(epsilon: float, delta: float) -> None:
    mu = math.sqrt(2 * rho_for(epsilon, delta, "exact"))

    assert float(gaussian_log_delta(np.float64(epsilon), mu)) <= math.log(delta)
    assert zcdp_log_delta(epsilon, float(rho_for(epsilon, delta, "zcdp"))) <= math.log(delta)


@pytest.mark.parametrize("mu", [0.003, 0.0099, 0.0101, 0.2, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("epsilon", [-2.0, 0.0, 0.01, 0.5, 3.0, 20.0])
def test_the_log_space_formula_is_the_integral(epsilon: float, mu: float) -> None:
    expected = naive.gaussian_delta(epsilon, mu)

    result = math.exp(float(gaussian_log_delta(np.float64(epsilon), mu)))

    assert result == pytest.approx(expected, rel=1e-4, abs=1e-11)


@pytest.mark.parametrize("sigma", [0.5, 2.0, 5.495, 50.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_exact_formula_agrees_with_dp_accounting(epsilon: float, sigma: float) -> None:
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp_accounting.GaussianDpEvent(sigma))

    result = math.exp(float(gaussian_log_delta(np.float64(epsilon), 1 / sigma)))

    assert result == pytest.approx(accountant.get_delta(epsilon), rel=1e-4, abs=1e-15)  # it adds truncated tails


@pytest.mark.parametrize("epsilon", [1e-3, 1e-2, 1.0, 100.0, 1e4, 1e6])
@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-9])
def test_nothing_overflows_from_tiny_to_huge(epsilon: float, delta: float) -> None:
    rho = rho_for(epsilon, delta)

    if rho:  # the smallest are below a grain
        assert epsilon_for(rho, delta) == pytest.approx(epsilon, rel=1e-8)


@given(st.fractions(Fraction(1, 10**12), 10**6), st.integers(1, 1000))
def test_sigma_is_the_smallest_float_whose_cost_fits_the_share(rho: Fraction, squared: int) -> None:
    sigma = sigma_for(rho, Fraction(squared))

    assert Fraction(squared) / (2 * Fraction(sigma) ** 2) <= rho
    assert Fraction(squared) / (2 * Fraction(math.nextafter(sigma, 0)) ** 2) > rho


def test_nothing_spent_is_nothing_lost() -> None:
    assert epsilon_for(0, 1e-9) == 0
    assert epsilon_for(1e-30, 1e-9) == 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-9), (-1, 1e-9), (1, 0), (1, 1), (1, 2)])
def test_an_invalid_guarantee_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(BudgetError, match=r"[εδ] is"):
        rho_for(epsilon, delta)
