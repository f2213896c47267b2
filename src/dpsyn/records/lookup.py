"""From a step of a lattice to its cell, without a search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MOST_BUCKETS = 1 << 16
_MOST_CLIMBS = 6
"""Where more edges than this crowd in one bucket, a search is as fast."""


class CellLookup:
    """Finds the cell of every step, as a binary search over the cells' edges would, in a few table look-ups.

    Steps are dropped into equal buckets, a power of two wide. A table holds the cell of each bucket's first step;
    from there a step climbs over the edges that lie inside its bucket, of which there are one or two.
    """

    def __init__(self, edges: NDArray[np.int64]) -> None:
        self._edges = edges
        self._shift = max(0, int(edges[-1] - 1).bit_length() - _MOST_BUCKETS.bit_length() + 1)
        starts = np.arange((int(edges[-1] - 1) >> self._shift) + 1, dtype=np.int64) << self._shift
        self._first = np.searchsorted(edges, starts, side="right") - 1
        ends = np.searchsorted(edges, starts + (1 << self._shift) - 1, side="right") - 1
        self._climbs = int((np.minimum(ends, len(edges) - 2) - self._first).max())

    def __call__(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cell of every step."""
        if self._climbs > _MOST_CLIMBS:
            return np.searchsorted(self._edges, steps, side="right") - 1
        cell: NDArray[np.int64] = self._first[steps >> self._shift]
        for _ in range(self._climbs):
            cell += steps >= self._edges[cell + 1]
        return cell
