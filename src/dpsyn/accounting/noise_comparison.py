"""Comparison of noise mechanisms for k marginals: the standard deviation per cell by six methods, and their crossover.

All methods guarantee (ε, δ) for k marginals of sensitivity 1 with equal shares of the budget. For other privacy units
or neighboring relations, Laplace noise grows with the L1 and Gaussian noise with the L2 sensitivity (``PrivacyUnit``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dpsyn.accounting.conversion import ConversionMethod, positive_boundary, rho_for
from dpsyn.accounting.exact_numbers import exact_fraction
from dpsyn.errors import BudgetError

MIN_COMPARED_EPSILON, MAX_COMPARED_EPSILON, MIN_COMPARED_DELTA = 1e-9, 1e6, 1e-36
"""Between these bounds all six formulas are finite and in the right order; nobody needs smaller or larger values."""

StdFunction = Callable[[float, float, float], float]


def laplace_basic(epsilon: float, delta: float, k: float) -> float:
    """Laplace noise with ε/k each, by basic composition: √2·k/ε. It needs no δ."""
    return math.sqrt(2) * k / epsilon


def laplace_advanced(epsilon: float, delta: float, k: float) -> float:
    """Laplace noise with ε₀ each, by advanced composition: √2/ε₀."""
    return math.sqrt(2) / _advanced_composition_epsilon(epsilon, delta, k)


def laplace_zcdp(epsilon: float, delta: float, k: float, method: Literal["zcdp", "loose"] = "zcdp") -> float:
    """Laplace noise that is ε₀²/2-zCDP each, with kε₀²/2 = ρ: √(k/ρ)."""
    return math.sqrt(k / rho_for(epsilon, delta, method))


def gaussian_advanced(epsilon: float, delta: float, k: float) -> float:
    """Gaussian noise that is (ε₀, δ₀)-DP each, by advanced composition: √(2 ln(1.25/δ₀))/ε₀.

    Half of δ is for the composition, the other half is shared, δ₀ = δ/2k. The formula holds for ε₀ < 1.
    """
    each = min(_advanced_composition_epsilon(epsilon, delta / 2, k), 1.0)
    return math.sqrt(2 * math.log(1.25 * 2 * k / delta)) / each


def gaussian_zcdp(epsilon: float, delta: float, k: float, method: ConversionMethod = "zcdp") -> float:
    """Gaussian noise that is ρ/k-zCDP each: √(k/2ρ)."""
    return math.sqrt(k / (2 * rho_for(epsilon, delta, method)))


def gaussian_exact(epsilon: float, delta: float, k: float) -> float:
    """Gaussian noise, composed exactly as one Gaussian: √k/μ. This is the method of DPSyn."""
    return gaussian_zcdp(epsilon, delta, k, "exact")


NOISE_METHODS: dict[str, StdFunction] = {
    "Laplace, basic composition": laplace_basic,
    "Laplace, advanced composition": laplace_advanced,
    "Laplace, zCDP": laplace_zcdp,
    "Gaussian, advanced composition": gaussian_advanced,
    "Gaussian, zCDP": gaussian_zcdp,
    "Gaussian, exact": gaussian_exact,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseChoice:
    """A method to measure k marginals and its standard deviation per cell; ``recommended`` marks the smallest."""

    name: str
    std: float
    recommended: bool


def compare_noise_mechanisms(epsilon: float, delta: float, marginals: int) -> tuple[NoiseChoice, ...]:
    """All six methods for a number of marginals; with δ = 0 only Laplace noise with basic composition applies."""
    if marginals < 1:
        raise BudgetError(f"there are {marginals} marginals; give at least 1")
    if not MIN_COMPARED_EPSILON <= float(exact_fraction(epsilon)) <= MAX_COMPARED_EPSILON:
        raise BudgetError(f"ε is {epsilon}; give a number from 1e-9 to 1e6, such as 1")
    if delta != 0 and not MIN_COMPARED_DELTA <= delta < 1:
        raise BudgetError(f"δ is {delta}; give 0, or a probability from 1e-36 to below 1, such as 1e-9")
    methods = NOISE_METHODS if delta else {"Laplace, basic composition": laplace_basic}
    stds = {name: std_of(epsilon, delta, marginals) for name, std_of in methods.items()}
    best = min(stds, key=lambda name: stds[name])
    return tuple(NoiseChoice(name=name, std=std, recommended=name == best) for name, std in stds.items())


def laplace_gaussian_crossover(epsilon: float, delta: float, method: ConversionMethod = "exact") -> float:
    """The real number of marginals up to which Laplace noise with basic composition beats Gaussian noise.

    √2·k/ε = √(k/2ρ) at k = ε²/4ρ.
    """
    return float(exact_fraction(epsilon) ** 2 / (4 * rho_for(epsilon, delta, method)))


def laplace_wins(epsilon: float, delta: float, marginals: int) -> bool:
    """Whether Laplace noise is smaller for this number of marginals; if δ is 0, it always is."""
    return delta == 0 or marginals <= laplace_gaussian_crossover(epsilon, delta)


def _advanced_composition_epsilon(epsilon: float, delta: float, k: float) -> float:
    """ε₀ with √(2k ln(1/δ))·ε₀ + k·ε₀·(e^ε₀ − 1) = ε (Dwork, Rothblum and Vadhan 2010), rounded down."""
    root = math.sqrt(2 * k * math.log(1 / delta))

    def fits(step: float) -> bool:
        return step < 700 and root * step + k * step * math.expm1(step) <= epsilon

    return positive_boundary(fits)[0]
