"""Slow twins: privacy losses by brute force, straight from the definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np


def discrete_gaussian_delta(epsilon: float, sigma: float, shift: int) -> float:
    """Σ max(0, P(x) − e^ε P(x − shift)) over the whole numbers, for the discrete Gaussian P."""
    points = np.arange(-60 * math.ceil(sigma) - shift, 60 * math.ceil(sigma) + shift + 1, dtype=np.float64)
    weights = np.exp(-(points**2) / (2 * sigma**2))
    moved = np.exp(-((points - shift) ** 2) / (2 * sigma**2))
    return float(np.maximum(0, weights - math.exp(epsilon) * moved).sum() / weights.sum())


def discrete_tail(log_weight_of: np.ndarray, count: int) -> float:
    """P(noise ≥ count) from the log weights of −n … n."""
    weights = np.exp(log_weight_of)
    middle = len(weights) // 2
    return float(weights[middle + count :].sum() / weights.sum())


def responses_delta(epsilon: float, steps: Sequence[float]) -> float:
    """δ(ε) of several randomized responses, over all their outcomes."""
    total = 0.0
    for truths in itertools.product((True, False), repeat=len(steps)):
        same = math.prod(1 / (1 + math.exp(-step if true else step)) for step, true in zip(steps, truths, strict=True))
        other = math.prod(1 / (1 + math.exp(step if true else -step)) for step, true in zip(steps, truths, strict=True))
        total += max(0.0, same - math.exp(epsilon) * other)
    return total


def gaussian_delta(epsilon: float, mu: float) -> float:
    """∫ max(0, φ(x−μ) − e^ε φ(x)) dx by the trapezoidal rule."""
    points = np.linspace(-40, 40 + mu, 2_000_001)
    density = np.exp(-((points - mu) ** 2) / 2) - math.exp(epsilon) * np.exp(-(points**2) / 2)
    return float(np.maximum(0, density).sum() * (points[1] - points[0]) / math.sqrt(2 * math.pi))
