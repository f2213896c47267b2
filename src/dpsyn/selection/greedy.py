"""Which pairs to measure: noise that a pair costs against dependence that is lost without it (PrivSyn, section 4.2)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

CELL_POWER = 2 / 3
"""ρᵢ ∝ cᵢ^(2/3) minimises Σ cᵢ/√ρᵢ, the expected noise of all chosen marginals together (PrivSyn, equation 4)."""


def select_pairs(
    scores: NDArray[np.float64], cells: NDArray[np.int64], rho: float, *, sensitivity: float = 1.0, most_cells: int
) -> NDArray[np.int64]:
    """Positions of the chosen pairs, in the order in which they were chosen.

    Minimises Σ_chosen Δ·cᵢ/√(πρᵢ) + Σ_others scoreᵢ over sets of pairs, greedily: each step takes the pair that lowers
    the sum most, until none does. With ρᵢ ∝ cᵢ^(2/3) and S = Σ cᵢ^(2/3) the first part is Δ·S^1.5/√(πρ).

    Args:
        scores: noisy InDif of every pair.
        cells: the number of cells of every pair.
        rho: what the marginals may cost together.
        sensitivity: how much one unit changes a marginal, in L2.
        most_cells: how many cells the chosen pairs may have together.
    """
    weights = cells.astype(np.float64) ** CELL_POWER
    price = sensitivity / math.sqrt(math.pi * rho)
    open_, spent, room = np.ones(len(scores), bool), 0.0, most_cells
    chosen: list[int] = []
    while True:
        gains = scores - price * ((spent + weights) ** 1.5 - spent**1.5)
        gains[~open_ | (cells > room)] = -np.inf
        best = int(np.argmax(gains)) if len(gains) else -1
        if best < 0 or gains[best] <= 0:
            return np.array(chosen, np.int64)
        chosen.append(best)
        open_[best] = False
        spent += weights[best]
        room -= int(cells[best])
