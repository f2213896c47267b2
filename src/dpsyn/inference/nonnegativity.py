"""Make tables non-negative without changing their totals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def norm_sub(values: Values, total: float) -> Values:
    """Subtract one constant from all cells and clip at 0, so that the sum is ``total``; zeros if that is not positive.

    The nearest non-negative table with that total (Wang et al.: Locally Differentially Private Frequency Estimation
    with Consistency, NDSS 2020).
    """
    start = np.zeros(1, np.int64)
    return norm_sub_each(values.ravel(), start, total).reshape(values.shape)


def norm_sub_each(vector: Values, starts: NDArray[np.int64], total: float) -> Values:
    """Norm-sub of every piece of a vector, all to the same total; pieces begin at ``starts`` and have a cell at least.

    The constant follows from the cells that stay positive: (their sum − total) / their number. Beginning with all
    cells, those that are not above the constant are given up until all are (Michelot 1986): the constant only
    grows, so that none is given up in error, and the result is that of sorting.
    """
    if total <= 0:
        return np.zeros_like(vector)
    lengths = np.diff(starts, append=len(vector))
    # seen from its piece's largest cell, every constant is negative: that cell stays, however small the total is
    shifted = vector - np.repeat(np.maximum.reduceat(vector, starts), lengths)
    constants, fewest = (np.add.reduceat(shifted, starts) - total) / lengths, lengths
    while True:
        spread = np.repeat(constants, lengths)
        above = shifted > spread
        staying = np.add.reduceat(above, starts, dtype=np.int64)
        if not (staying < fewest).any():
            found: Values = np.maximum(shifted - spread, 0.0)
            return found
        constants = (np.add.reduceat(np.where(above, shifted, 0.0), starts) - total) / staying
        fewest = np.minimum(staying, fewest)  # it only falls, whatever rounding does: so this comes to an end


def norm_cut(values: Values, total: float) -> Values:
    """Clip at 0, then set the smallest positive cells to 0 until the sum is ``total``; the last one in part.

    Large cells keep their values and small ones vanish. If clipping alone leaves less than ``total``, nothing is
    cut and the sum stays less.
    """
    clipped = np.maximum(values, 0.0).ravel()
    smallest_first = np.argsort(clipped, kind="stable")
    excess = clipped.sum() - total
    gone_before = np.cumsum(clipped[smallest_first]) - clipped[smallest_first]
    clipped[smallest_first] -= np.clip(excess - gone_before, 0.0, clipped[smallest_first])
    return clipped.reshape(values.shape)


# ── Make a table non-negative by taking what is missing from cells nearby ──


MAX_RIPPLE_WAVES = 1_000
"""Waves, at most; a few dozen are usual. What is left below the threshold after them stays."""


def ripple(values: Values, threshold: float, *, max_waves: int = MAX_RIPPLE_WAVES) -> Values:
    """Cells below −threshold become 0, and what they lacked is taken from the cells that differ in one attribute.

    Those may fall below −threshold in turn, and so on, until none does (PriView, SIGMOD 2014, section 4.4). The total
    stays. Where norm-sub takes from all cells alike, and so moves rows from the largest cells to empty ones, ripple
    takes from cells that have most values in common, so that sums over few attributes change little. Values between
    −threshold and 0 stay: the smaller the threshold, the more waves.
    """
    found = np.array(values, np.float64)
    neighbors = sum(size - 1 for size in found.shape)
    if neighbors == 0 or found.sum() <= -threshold * found.size:
        return found
    for _ in range(max_waves):
        lacking = np.where(found < -threshold, found, 0.0)
        if not lacking.any():
            break
        found -= lacking
        for axis in range(found.ndim):
            found += (lacking.sum(axis=axis, keepdims=True) - lacking) / neighbors
    return found
