"""Comparison of noise mechanisms for k marginals: standard deviations per cell, crossovers, and how k grows with n.

All methods guarantee (ε, δ) for k marginals with equal shares of the budget. The formulas are for sensitivity 1: one
row is added or removed. Laplace noise grows with the L1 and Gaussian noise with the L2 sensitivity of the neighboring
relation: by 2 and by √2 if one row is replaced (bounded DP).

*The paper* is Li, Zhang and Wang, *DPSyn: Experiences in the NIST Differential Privacy Data Synthesis Challenges*. It
compares five methods, and converts ρ by the ``loose`` formula of ``accounting/conversion.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dpsyn.accounting.conversion import ConversionMethod, positive_boundary, rho_for
from dpsyn.accounting.exact_numbers import exact_fraction
from dpsyn.accounting.privacy_unit import PrivacyUnit
from dpsyn.errors import BudgetError

MIN_COMPARED_EPSILON, MAX_COMPARED_EPSILON, MIN_COMPARED_DELTA = 1e-9, 1e6, 1e-36
"""Between these bounds all formulas are finite and in the right order; nobody needs smaller or larger values."""

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


def laplace_paper(epsilon: float, delta: float, k: float) -> float:
    """The same with the paper's conversion of ρ."""
    return laplace_zcdp(epsilon, delta, k, "loose")


def gaussian_advanced(epsilon: float, delta: float, k: float) -> float:
    """Gaussian noise that is (ε₀, δ₀)-DP each, by advanced composition: √(2 ln(1.25/δ₀))/ε₀.

    Half of δ is for the composition, the other half is shared, δ₀ = δ/2k. The formula holds for ε₀ < 1.
    """
    each = min(_advanced_composition_epsilon(epsilon, delta / 2, k), 1.0)
    return math.sqrt(2 * math.log(1.25 * 2 * k / delta)) / each


def gaussian_zcdp(epsilon: float, delta: float, k: float, method: ConversionMethod = "zcdp") -> float:
    """Gaussian noise that is ρ/k-zCDP each: √(k/2ρ)."""
    return math.sqrt(k / (2 * rho_for(epsilon, delta, method)))


def gaussian_paper(epsilon: float, delta: float, k: float) -> float:
    """The same with the paper's conversion of ρ."""
    return gaussian_zcdp(epsilon, delta, k, "loose")


def gaussian_exact(epsilon: float, delta: float, k: float) -> float:
    """Gaussian noise, composed exactly as one Gaussian: √k/μ. This is the method of DPSyn."""
    return gaussian_zcdp(epsilon, delta, k, "exact")


NOISE_METHODS: dict[str, StdFunction] = {
    "Laplace, basic composition": laplace_basic,
    "Laplace, advanced composition": laplace_advanced,
    "Laplace, zCDP as in the paper": laplace_paper,
    "Laplace, zCDP": laplace_zcdp,
    "Gaussian, advanced composition": gaussian_advanced,
    "Gaussian, zCDP as in the paper": gaussian_paper,
    "Gaussian, zCDP": gaussian_zcdp,
    "Gaussian, exact": gaussian_exact,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseChoice:
    """A method to measure k marginals and its standard deviation per cell; ``recommended`` marks the smallest."""

    name: str
    std: float
    recommended: bool


def compare_noise_mechanisms(
    epsilon: float, delta: float, marginals: int, *, neighbors: str = "add-remove"
) -> tuple[NoiseChoice, ...]:
    """All eight methods for a number of marginals; with δ = 0 only Laplace noise with basic composition applies.

    >>> [choice.name for choice in compare_noise_mechanisms(1, 1e-9, 50) if choice.recommended]
    ['Gaussian, exact']

    Args:
        epsilon: the ε of the guarantee for all marginals together.
        delta: its δ; 0 for pure ε.
        marginals: how many marginals share the budget equally.
        neighbors: the neighboring relation, ``add-remove`` or ``replace`` (one row).
    """
    _check_budget(epsilon, delta)
    if marginals < 1:
        raise BudgetError(f"there are {marginals} marginals; give at least 1")
    methods = NOISE_METHODS if delta else {"Laplace, basic composition": laplace_basic}
    stds = {
        name: sensitivity_of(name, neighbors) * std_of(epsilon, delta, marginals) for name, std_of in methods.items()
    }
    best = min(stds, key=lambda name: stds[name])
    return tuple(NoiseChoice(name=name, std=std, recommended=name == best) for name, std in stds.items())


def sensitivity_of(method: str, neighbors: str) -> float:
    """The sensitivity of a marginal that a method's noise is in proportion to: in L1 for Laplace noise, else in L2."""
    unit = PrivacyUnit(neighbors=neighbors)
    return float(unit.l1_sensitivity) if method.startswith("Laplace") else math.sqrt(unit.l2_sensitivity_squared)


def laplace_gaussian_crossover(
    epsilon: float, delta: float, method: ConversionMethod = "exact", *, neighbors: str = "add-remove"
) -> float:
    """The real number of marginals up to which Laplace noise with basic composition beats Gaussian noise.

    √2·Δ₁·k/ε = Δ₂·√(k/2ρ) at k = ε²/4ρ · (Δ₂/Δ₁)². With ``loose``, the conversion that the paper uses, the crossovers
    are those of its figure:

    >>> [round(laplace_gaussian_crossover(e, d, "loose")) for e in (0.01, 1) for d in (1e-8, 1e-12)]
    [18, 28, 19, 28]
    """
    unit = PrivacyUnit(neighbors=neighbors)
    ratio = unit.l2_sensitivity_squared / unit.l1_sensitivity**2
    return float(exact_fraction(epsilon) ** 2 / (4 * rho_for(epsilon, delta, method)) * ratio)


def max_marginals(epsilon: float, delta: float, std: float, *, neighbors: str = "add-remove") -> int:
    """The largest number of marginals whose counts all have at most this standard deviation, by the best mechanism.

    Laplace noise allows k = std·ε/(√2·Δ₁) and Gaussian noise k = 2ρ·(std/Δ₂)². So if the noise may be a fixed share of
    the rows n, the number of marginals grows with n for pure ε, and with n² for (ε, δ).

    >>> [max_marginals(1, 1e-9, 1e-5 * rows) for rows in (10**7, 10**8, 10**9)]
    [331, 33114, 3311483]

    Args:
        epsilon: the ε of the guarantee for all marginals together.
        delta: its δ; 0 for pure ε.
        std: the standard deviation of a count, in rows.
        neighbors: the neighboring relation, ``add-remove`` or ``replace`` (one row).
    """
    _check_budget(epsilon, delta)
    if not 0 < std < math.inf:
        raise BudgetError(f"the standard deviation is {std}; give a positive number of rows, such as 10")
    unit, variance = PrivacyUnit(neighbors=neighbors), exact_fraction(std) ** 2
    laplace = math.isqrt(math.floor(variance * exact_fraction(epsilon) ** 2 / (2 * unit.l1_sensitivity**2)))
    if delta == 0:
        return laplace
    return max(laplace, math.floor(2 * rho_for(epsilon, delta) * variance / unit.l2_sensitivity_squared))


def _check_budget(epsilon: float, delta: float) -> None:
    if not MIN_COMPARED_EPSILON <= float(exact_fraction(epsilon)) <= MAX_COMPARED_EPSILON:
        raise BudgetError(f"ε is {epsilon}; give a number from 1e-9 to 1e6, such as 1")
    if delta != 0 and not MIN_COMPARED_DELTA <= delta < 1:
        raise BudgetError(f"δ is {delta}; give 0, or a probability from 1e-36 to below 1, such as 1e-9")


def _advanced_composition_epsilon(epsilon: float, delta: float, k: float) -> float:
    """ε₀ with √(2k ln(1/δ))·ε₀ + k·ε₀·(e^ε₀ − 1) = ε (Dwork, Rothblum and Vadhan 2010), rounded down."""
    root = math.sqrt(2 * k * math.log(1 / delta))

    def fits(step: float) -> bool:
        return step < 700 and root * step + k * step * math.expm1(step) <= epsilon

    return positive_boundary(fits)[0]
