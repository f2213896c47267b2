"""Lower bounds of the privacy loss from scores of runs with and without a canary.

Both are valid for any statistic and any mechanism: they rest on binomial counts alone (Clopper and Pearson 1934).

- *Gaussian DP* (Dong, Roth and Su 2022): if a mechanism is μ-GDP, every test has Φ⁻¹(TPR) − Φ⁻¹(FPR) ≤ μ. One test,
  whether the likelihood ratio is above 1, is nearly the best for small μ (Nasr et al. 2023).
- *(ε, δ)-DP*: every test has TPR ≤ e^ε·FPR + δ. The test is chosen on one half of the runs and counted on the other.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

Scores = NDArray[np.float64]

_MAX_THRESHOLDS = 200
"""Thresholds that are tried on the first half of the runs."""


def clopper_pearson(successes: NDArray[np.int64], trials: int, alpha: float) -> tuple[Scores, Scores]:
    """Lower and upper bounds of a probability; each fails with probability at most α."""
    found = np.asarray(successes, np.float64)
    with np.errstate(invalid="ignore"):
        low = np.where(found > 0, betaincinv(np.maximum(found, 1), trials - found + 1, alpha), 0.0)
        high = np.where(found < trials, betaincinv(found + 1, np.maximum(trials - found, 1), 1 - alpha), 1.0)
    return low, high


def bound_mu(with_canary: Scores, without: Scores, alpha: float) -> float:
    """A lower bound of μ that fails with probability at most α; 0 if nothing is shown."""
    detected, _ = clopper_pearson(np.array([(with_canary > 0).sum()]), len(with_canary), alpha / 2)
    _, mistaken = clopper_pearson(np.array([(without > 0).sum()]), len(without), alpha / 2)
    if detected[0] <= 0 or mistaken[0] >= 1:
        return 0.0
    return max(0.0, float(ndtri(detected[0]) - ndtri(mistaken[0])))


def bound_epsilon(with_canary: Scores, without: Scores, delta: float, alpha: float) -> float:
    """A lower bound of ε at δ that fails with probability at most α; 0 if nothing is shown."""
    pairs = ((with_canary, without), (-without, -with_canary))
    return max(0.0, *(_bound_epsilon_one_way(*pair, delta, alpha / 2) for pair in pairs))


def _bound_epsilon_one_way(positive: Scores, negative: Scores, delta: float, alpha: float) -> float:
    """The bound by tests that find the first kind of runs at high scores."""
    half, other_half = len(positive) // 2, len(negative) // 2
    both = np.concatenate([positive[:half], negative[:other_half]])
    thresholds = np.unique(np.quantile(both, np.linspace(0, 1, _MAX_THRESHOLDS), method="lower"))
    losses = _losses(positive[:half], negative[:other_half], thresholds, delta, alpha)
    best = thresholds[[int(np.argmax(losses))]]
    return float(_losses(positive[half:], negative[other_half:], best, delta, alpha)[0])


def _losses(positive: Scores, negative: Scores, thresholds: Scores, delta: float, alpha: float) -> Scores:
    """Lower bounds of ε by the tests score ≥ threshold; −∞ where nothing is shown."""
    found, mistaken = (len(s) - np.searchsorted(np.sort(s), thresholds, "left") for s in (positive, negative))
    low, _ = clopper_pearson(found, len(positive), alpha / 2)
    _, high = clopper_pearson(mistaken, len(negative), alpha / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > delta, np.log(np.maximum(low - delta, 0) / high), -math.inf)
