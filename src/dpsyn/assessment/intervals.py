"""Confidence intervals of what follows from noisy numbers: ratios, and coefficients of regressions."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Z = 1.959963984540054
"""The quantile of the normal distribution for intervals of 95 %."""

MIN_EIGENVALUE_STDS = 6.0
"""A matrix of noisy moments is inverted if its smallest eigenvalue is at least this many times the standard deviation
of an entry, times the square root of its size: the largest eigenvalue of noise alone is about twice that product."""


def ratio_interval(
    numerator: tuple[float, float],
    numerator_std: float,
    denominator: float,
    denominator_std: float,
    limits: tuple[float, float],
) -> tuple[float, float]:
    """A 95 % interval of a ratio of two noisy numbers, by Fieller's method: all ratios that the noise allows.

    A ratio r is allowed if numerator − r·denominator is within its noise. That is exact if both have independent normal
    noise, whatever the denominator is, also if it may be 0. ``numerator`` is the noisy number itself, or two ends
    between which its value before noise lies if it was rounded. The ratio is known to lie within ``limits``; if the
    noise allows none of these, as an unusually large one can, all of them are possible.
    """

    def is_allowed(ratio: float) -> bool:
        reach = Z * math.hypot(numerator_std, ratio * denominator_std)
        return numerator[0] - reach <= ratio * denominator <= numerator[1] + reach

    ends = {*limits}
    for number in numerator:
        quadratic = denominator**2 - (Z * denominator_std) ** 2, -2 * number * denominator
        roots = np.roots([*quadratic, number**2 - (Z * numerator_std) ** 2])
        ends |= {float(root.real) for root in roots if root.imag == 0 and limits[0] < root.real < limits[1]}
    allowed = [pair for pair in pairwise(sorted(ends)) if is_allowed(sum(pair) / 2)]
    return (allowed[0][0], allowed[-1][1]) if allowed else limits


def solve_noisy_moments(
    gram: NDArray[np.float64],
    gram_stds: NDArray[np.float64],
    cross: NDArray[np.float64],
    cross_stds: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """The coefficients b of a regression, G·b = g, and their standard errors by the noise; None if noise hides them.

    The noise of r = g − G·b is linear in the noise of the moments, which are independent but for G being symmetric.
    Its covariance, carried through the inverse of G, is that of b to first order.
    """
    size = len(cross)
    smallest = float(np.linalg.eigvalsh(gram)[0])
    if smallest < MIN_EIGENVALUE_STDS * math.sqrt(size) * float(gram_stds.max(initial=0.0)) or smallest <= 0:
        return None
    inverse = np.linalg.inv(gram)
    solution = inverse @ cross
    variances = gram_stds**2
    covariance = np.diag(cross_stds**2 + variances @ solution**2)
    shared = np.outer(solution, solution) * variances
    covariance += shared - np.diag(np.diag(shared))
    return solution, np.sqrt(np.diag(inverse @ covariance @ inverse))
