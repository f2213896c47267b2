"""Conversion from (ε, δ) to ρ and back, by three methods.

A Gaussian step with sensitivity Δ (in L2) and standard deviation σ costs ρ = Δ²/2σ². The methods to convert a total ρ:

- ``exact``: all steps are Gaussian, so together they are one Gaussian with μ² = Σ(Δ/σ)² = 2ρ, and
  δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)  (Balle and Wang 2018, theorem 8; equality, so nothing is lost);
- ``zcdp``: any steps that are ρ-zCDP together:
  δ(ε) = min over α > 1 of e^((α−1)(αρ−ε)) / (α−1) · (1 − 1/α)^α  (Canonne, Kamath and Steinke 2020);
- ``loose``: the formula of the original DPSyn, ε = ρ + 2√(ρ ln(1/δ))  (Bun and Steinke 2016, proposition 1.3).

Everything is computed as a logarithm of δ, so ε from 10⁻³ to 10⁶ and δ down to 10⁻³⁰⁰ neither overflow nor cancel. A
budget is rounded down and an ε rounded up, by a relative 10⁻¹⁰ (``MARGIN``), a thousand times the error of floating
point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting.exact_numbers import Number, exact_fraction, round_down_to_digits
from dpsyn.errors import BudgetError

ConversionMethod = Literal["exact", "zcdp", "loose"]
Floats = NDArray[np.float64]

MARGIN = 1e-10
"""The relative amount by which results are rounded to the safe side."""

_GAUSS = ((-math.sqrt(0.6), 5 / 9), (0.0, 8 / 9), (math.sqrt(0.6), 5 / 9))
"""Nodes and weights of Gauss–Legendre quadrature with three points."""


def rho_for(epsilon: Number, delta: Number, method: ConversionMethod = "exact") -> Fraction:
    """The largest ρ with the guarantee (ε, δ), rounded down."""
    e, d = _parse_guarantee(epsilon, delta)
    if method == "loose":
        log = math.log(1 / d)
        rho = (e / (math.sqrt(log + e) + math.sqrt(log))) ** 2
    elif method == "zcdp":
        rho = positive_boundary(lambda rho: zcdp_log_delta(e, rho) <= math.log(d))[0]
    else:
        rho = largest_mu(e, d) ** 2 / 2
    return round_down_to_digits(rho * (1 - MARGIN))


def epsilon_for(rho: Number, delta: Number, method: ConversionMethod = "exact") -> float:
    """The smallest ε that a total of ρ guarantees at δ, rounded up."""
    r, d = float(exact_fraction(rho)), _parse_delta(delta)
    if r < 0:
        raise BudgetError(f"ρ is {rho}; a cost is at least 0")
    if r == 0:
        return 0.0
    if method == "loose":
        return (r + 2 * math.sqrt(r * math.log(1 / d))) * (1 + MARGIN)
    return _search_epsilon(r, d, method)


@lru_cache(maxsize=1024)  # the worst case of a budget is certified again and again
def _search_epsilon(rho: float, delta: float, method: ConversionMethod) -> float:
    log_delta = zcdp_log_delta if method == "zcdp" else _exact_log_delta
    if log_delta(0.0, rho) <= math.log(delta):
        return 0.0
    return positive_boundary(lambda e: log_delta(e, rho) > math.log(delta))[1] * (1 + MARGIN)


def sigma_for(rho: Fraction, sensitivity_squared: Fraction) -> float:
    """The smallest float σ with Δ²/2σ² ≤ ρ, in exact arithmetic."""
    if rho <= 0:
        raise BudgetError(f"ρ = {rho} is too little for any noise scale; give every marginal a positive share of ρ")
    target = sensitivity_squared / (2 * rho)
    sigma = math.sqrt(target)
    while Fraction(sigma) ** 2 < target:
        sigma = math.nextafter(sigma, math.inf)
    while Fraction(math.nextafter(sigma, 0)) ** 2 >= target:
        sigma = math.nextafter(sigma, 0)
    return sigma


@lru_cache(maxsize=1024)
def largest_mu(epsilon: float, delta: float) -> float:
    """The largest μ for which one Gaussian step with Δ/σ = μ is (ε, δ)-DP, to the precision of a float."""
    return positive_boundary(lambda mu: float(gaussian_log_delta(np.float64(epsilon), mu)) <= math.log(delta))[0]


def gaussian_log_delta(epsilon: Floats | np.float64, mu: float) -> Floats:
    """ln δ(ε) of a Gaussian step with Δ/σ = μ, for any real ε.

    With x = ε/μ − μ/2, y = ε/μ + μ/2, the density φ and Mills' ratio m = (1−Φ)/φ the formula becomes
    δ = φ(x)·(m(x) − m(y)), because e^ε φ(y) = φ(x): no large factor is left. For small μ the difference is
    the integral of −m′(t) = 1 − t·m(t) from x to y, which does not cancel. Far out, e^(−x²/2) bounds δ.
    """
    from scipy.special import log_ndtr  # takes 0.2 s to import

    e = np.asarray(epsilon, dtype=np.float64)
    x, y = e / mu - mu / 2, e / mu + mu / 2
    near = np.clip(x, -5, 38)
    tail = -(near**2) / 2 - math.log(2 * math.pi) / 2 + np.log(_mills_difference(near, mu))
    low = np.minimum(x, -5)
    body = log_ndtr(-low) + np.log1p(-np.exp(np.minimum(e + log_ndtr(-y) - log_ndtr(-low), -1e-300)))
    return np.where(x > 38, -(x**2) / 2, np.where(x < -5, body, tail))


def _mills_difference(x: Floats, mu: float) -> Floats:
    """m(x) − m(x+μ) for Mills' ratio m, without cancellation."""
    if mu > 0.01:
        return _mills(x) - _mills(x + mu)
    half, center = mu / 2, x + mu / 2
    nodes = [(center + half * node, weight) for node, weight in _GAUSS]
    return np.asarray(half * np.sum([weight * (1 - t * _mills(t)) for t, weight in nodes], axis=0))


def _mills(t: Floats) -> Floats:
    from scipy.special import erfcx

    return np.asarray(math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2)))


def _exact_log_delta(epsilon: float, rho: float) -> float:
    return float(gaussian_log_delta(np.float64(epsilon), math.sqrt(2 * rho)))


def zcdp_log_delta(epsilon: float, rho: float) -> float:
    """ln δ(ε) of anything that is ρ-zCDP, by the best order α = 1 + a.

    Every α gives a valid bound; the best one is the root of (2α−1)ρ − ε + ln(1 − 1/α), which increases in α.
    """
    a = positive_boundary(lambda a: (2 * a + 1) * rho - epsilon - math.log1p(1 / a) < 0)[0]
    log_delta = a * ((a + 1) * rho - epsilon) - a * math.log1p(1 / a) - math.log1p(a)
    return min(log_delta, 0.0)


def positive_boundary(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Bracket the boundary of a condition that holds for small positive numbers: last holds, next fails."""
    low, high = -200.0, 200.0  # natural logarithms
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(math.exp(middle)) else (low, middle)
    return math.exp(low), math.exp(high)


def _parse_guarantee(epsilon: Number, delta: Number) -> tuple[float, float]:
    e = float(exact_fraction(epsilon))
    if e <= 0:
        raise BudgetError(f"ε is {epsilon}; give a positive number, such as 1")
    return e, _parse_delta(delta)


def _parse_delta(delta: Number) -> float:
    d = float(exact_fraction(delta))
    if not 0 < d < 1:
        raise BudgetError(f"δ is {delta}; Gaussian noise needs a δ between 0 and 1, such as 1e-9")
    return d
