"""How strongly two attributes depend on each other: Cramér's V and Spearman's correlation of a table of counts.

A table is given by its cells: the codes of both attributes and the count of each. Counts may be noisy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

CellCodes = NDArray[np.int64]
CellCounts = NDArray[Any]


def cramers_v(first: CellCodes, second: CellCodes, counts: CellCounts, *, noise_variance: float = 0.0) -> float:
    """√(χ²/(n·(min(r, c) − 1))) with r and c the numbers of values that occur; 0 if an attribute has only one.

    χ²/n is computed as Σ n_ij²/(n_i·n_j) − 1, a sum over non-empty cells only (Cramér 1946, section 21.9). Noise of
    variance σ² adds σ² to the expectation of each n_ij², which is subtracted, so that independent attributes are
    around 0. The noise of the sums n_i and n_j is neglected: they must be positive, and large beside it.
    """
    rows, columns = np.bincount(first, counts), np.bincount(second, counts)
    values = min(np.count_nonzero(rows), np.count_nonzero(columns))
    if values < 2:
        return 0.0
    chi_square = float(np.sum((counts**2 - noise_variance) / (rows[first] * columns[second]))) - 1
    return math.sqrt(min(1.0, max(0.0, chi_square / (values - 1))))


def spearman(first: CellCodes, second: CellCodes, counts: CellCounts) -> float:
    """The correlation of ranks; equal values share their mean rank. 0 if an attribute has only one value.

    Noise does not bias it: it is linear in the counts, but for that of their sums.
    """
    x, y = _centered_ranks(first, counts), _centered_ranks(second, counts)
    norm = math.sqrt(max(0.0, float(np.sum(counts * x**2))) * max(0.0, float(np.sum(counts * y**2))))
    return max(-1.0, min(1.0, float(np.sum(counts * x * y)) / norm)) if norm else 0.0


def _centered_ranks(codes: CellCodes, counts: CellCounts) -> NDArray[np.float64]:
    """For each cell the rank of its code among all rows, minus the mean rank."""
    rows = np.bincount(codes, counts)
    ranks = np.cumsum(rows) - (rows - 1) / 2
    centered: NDArray[np.float64] = (ranks - (rows.sum() + 1) / 2)[codes]
    return centered
