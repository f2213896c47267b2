"""Non-negativity: norm-sub, norm-cut and ripple make tables non-negative and keep, or set, their totals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def norm_sub(values: Values, total: float) -> Values:
    """Norm-sub: subtract one constant from all cells and clip at 0, such that the sum is ``total``.

    All cells become 0 if the total is not positive. The result is the nearest non-negative table with that total (Wang
    et al.: Locally Differentially Private Frequency Estimation with Consistency, NDSS 2020).
    """
    start = np.zeros(1, np.int64)
    return norm_sub_each(values.ravel(), start, total).reshape(values.shape)


def norm_sub_each(vector: Values, starts: NDArray[np.int64], total: float | Values) -> Values:
    """Norm-sub of every piece of a vector, all to one total or each to its own.

    Pieces begin at ``starts``; none is empty.

    The constant follows from the cells that stay positive: (their sum − total) / their number. The search begins with
    all cells and drops those that are not above the constant until all are (Michelot 1986). The constant only grows,
    so no cell is dropped in error, and the result is the same as by sorting.
    """
    lengths = np.diff(starts, append=len(vector))
    if np.any(np.asarray(total) <= 0):
        empty = np.broadcast_to(np.asarray(total) <= 0, starts.shape)
        kept = norm_sub_each(vector, starts, np.where(empty, 1.0, total)) if not empty.all() else vector
        return np.asarray(np.where(np.repeat(empty, lengths), 0.0, kept), np.float64)
    # relative to the largest cell of its piece every constant is negative: that cell stays, however small the total is
    shifted = vector - np.repeat(np.maximum.reduceat(vector, starts), lengths)
    constants, min_staying = (np.add.reduceat(shifted, starts) - total) / lengths, lengths
    while True:
        spread = np.repeat(constants, lengths)
        above = shifted > spread
        staying = np.add.reduceat(above, starts, dtype=np.int64)
        if not (staying < min_staying).any():
            result: Values = np.maximum(shifted - spread, 0.0)
            return result
        constants = (np.add.reduceat(np.where(above, shifted, 0.0), starts) - total) / staying
        min_staying = np.minimum(staying, min_staying)  # it only falls, whatever rounding does, so the loop ends


def norm_cut(values: Values, total: float) -> Values:
    """Norm-cut: clip at 0, then set the smallest positive cells to 0 until the sum is ``total``; the last one in part.

    Large cells keep their values and small ones vanish. If the sum after clipping is already below ``total``, nothing
    is cut and the sum stays below.
    """
    clipped = np.maximum(values, 0.0).ravel()
    smallest_first = np.argsort(clipped, kind="stable")
    excess = clipped.sum() - total
    cut_before = np.cumsum(clipped[smallest_first]) - clipped[smallest_first]
    clipped[smallest_first] -= np.clip(excess - cut_before, 0.0, clipped[smallest_first])
    return clipped.reshape(values.shape)


MAX_RIPPLE_WAVES = 1_000
"""The maximum number of waves; a few dozen are usual. Cells that are still below −threshold after them stay."""


def ripple(values: Values, threshold: float, *, max_waves: int = MAX_RIPPLE_WAVES) -> Values:
    """Ripple: cells below −threshold become 0, and their deficit is taken from the cells that differ in one attribute.

    These may fall below −threshold in turn, and so on, until none does (PriView, SIGMOD 2014, section 4.4). The total
    does not change. Norm-sub takes the same from all cells, and so moves rows from the largest cells to empty ones.
    Ripple takes from cells that have most values in common, so projections to few attributes change little. Values
    between −threshold and 0 stay: the smaller the threshold, the more waves.
    """
    result = np.array(values, np.float64)
    neighbors = sum(size - 1 for size in result.shape)
    if neighbors == 0 or result.sum() <= -threshold * result.size:
        return result
    for _ in range(max_waves):
        deficit = np.where(result < -threshold, result, 0.0)
        if not deficit.any():
            break
        result -= deficit
        for axis in range(result.ndim):
            result += (deficit.sum(axis=axis, keepdims=True) - deficit) / neighbors
    return result
