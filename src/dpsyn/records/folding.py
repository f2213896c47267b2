"""Long lists of values, cut to what a person can look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Folding:
    """Which values are shown by themselves; all others are shown as one.

    Attributes:
        labels: what is shown, in the order of the values; the others come last.
        place_of_code: where each value is shown.
        folded: how many values share the last place; 0 if each has its own.
    """

    labels: tuple[str, ...]
    place_of_code: NDArray[np.int64]
    folded: int

    def sums(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """What is shown at each place, of a weight for each value."""
        totals: NDArray[np.float64] = np.bincount(self.place_of_code, weights, len(self.labels)).astype(np.float64)
        return totals


def fold(labels: tuple[str, ...], weights: NDArray[Any], most: int) -> Folding:
    """Show at most so many values, the heaviest; of equally heavy ones the first."""
    if len(labels) <= most:
        return Folding(labels, np.arange(len(labels)), 0)
    kept = np.sort(np.argsort(-weights, kind="stable")[: most - 1])
    places = np.full(len(labels), most - 1)
    places[kept] = np.arange(most - 1)
    others = len(labels) - len(kept)
    return Folding((*(labels[code] for code in kept), f"{others:,} others"), places, others)
