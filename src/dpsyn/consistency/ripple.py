"""Make a table non-negative by taking what is missing from cells nearby."""

from __future__ import annotations

import numpy as np

from dpsyn.consistency.nonnegative import Values

ROUNDS = 1_000
"""Waves, at most; a few dozen are usual. What is left below the threshold after them stays."""


def ripple(values: Values, threshold: float, *, rounds: int = ROUNDS) -> Values:
    """Cells below −threshold become 0, and what they lacked is taken from the cells that differ in one attribute.

    Those may fall below −threshold in turn, and so on, until none does (PriView, SIGMOD 2014, section 4.4). The total
    stays. Where norm-sub takes from all cells alike, and so moves rows from the largest cells to empty ones, ripple
    takes from cells that have most values in common, so that sums over few attributes change little. Values between
    −threshold and 0 stay: the smaller the threshold, the more waves.
    """
    found = np.array(values, np.float64)
    neighbours = sum(size - 1 for size in found.shape)
    if neighbours == 0 or found.sum() <= -threshold * found.size:
        return found
    for _ in range(rounds):
        lacking = np.where(found < -threshold, found, 0.0)
        if not lacking.any():
            break
        found -= lacking
        for axis in range(found.ndim):
            found += (lacking.sum(axis=axis, keepdims=True) - lacking) / neighbours
    return found
