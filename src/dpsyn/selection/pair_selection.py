"""Which pairs to measure: noise that a pair costs against dependence that is lost without it (PrivSyn, section 4.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.marginals import Clique

CELL_POWER = 2 / 3
"""ρᵢ ∝ cᵢ^(2/3) minimises Σ cᵢ/√ρᵢ, the expected noise of all chosen marginals together (PrivSyn, equation 4)."""


def select_pairs(
    scores: NDArray[np.float64], cells: NDArray[np.int64], rho: float, *, sensitivity: float = 1.0, max_total_cells: int
) -> NDArray[np.int64]:
    """Positions of the chosen pairs, in the order in which they were chosen.

    Minimises Σ_chosen Δ·cᵢ/√(πρᵢ) + Σ_others scoreᵢ over sets of pairs, greedily: each step takes the pair that lowers
    the sum most, until none does. With ρᵢ ∝ cᵢ^(2/3) and S = Σ cᵢ^(2/3) the first part is Δ·S^1.5/√(πρ).

    Args:
        scores: noisy InDif of every pair.
        cells: the number of cells of every pair.
        rho: what the marginals may cost together.
        sensitivity: how much one unit changes a marginal, in L2.
        max_total_cells: how many cells the chosen pairs may have together.
    """
    weights = cells.astype(np.float64) ** CELL_POWER
    price = sensitivity / math.sqrt(math.pi * rho)
    open_, spent, room = np.ones(len(scores), bool), 0.0, max_total_cells
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


# ── Chosen pairs that hang together, measured as one marginal (PrivSyn, section 4.3) ──


MAX_COMBINED_CELLS = 5_000
"""γ: cells that a combined marginal may have (the paper's value)."""

MAX_CANDIDATE_CLIQUES = 200_000
"""Candidates looked at: a dense graph of many small attributes has more cliques than could ever be listed."""


def combine_pairs(
    pairs: Sequence[Clique],
    sizes: Mapping[str, int],
    *,
    max_cells: int = MAX_COMBINED_CELLS,
    max_cliques: int = MAX_CANDIDATE_CLIQUES,
) -> list[Clique]:
    """The marginals to measure instead of the pairs: cliques of the pair graph, and the pairs that none covers.

    Cliques with at most ``max_cells`` cells are taken by their number of attributes, the largest first, and accepted
    if they have at most two attributes in common with those accepted before.
    """
    order = {name: place for place, name in enumerate(sizes)}
    edges: set[Clique] = {tuple(sorted(pair, key=order.__getitem__)) for pair in pairs}
    accepted: list[Clique] = []
    covered: set[str] = set()
    for clique in _larger_cliques(edges, sizes, order, max_cells, max_cliques):
        if len(covered.intersection(clique)) <= 2:
            accepted.append(clique)
            covered.update(clique)
    together = [set(clique) for clique in accepted]
    alone = [
        pair for pair in sorted(edges, key=_order_key(order)) if not any(set(pair) <= clique for clique in together)
    ]
    return accepted + alone


def _larger_cliques(
    edges: set[Clique], sizes: Mapping[str, int], order: Mapping[str, int], max_cells: int, max_cliques: int
) -> list[Clique]:
    """Cliques of three attributes and more, those with most attributes first; then by size and name, for order's sake.

    Cliques grow by one attribute at a time, always a later one, so that each is found once.
    """
    later: dict[str, set[str]] = {name: set() for name in sizes}
    for first, second in edges:
        later[first].add(second)
    level = sorted(edges, key=_order_key(order))
    found: list[Clique] = []
    while level and len(found) < max_cliques:
        grown: list[Clique] = []
        for clique in level:
            cells = math.prod(sizes[name] for name in clique)
            shared = set.intersection(*(later[name] for name in clique))
            for name in sorted(shared, key=order.__getitem__):
                if cells * sizes[name] <= max_cells:
                    grown.append((*clique, name))
            if len(found) + len(grown) > max_cliques:
                break
        found += grown
        level = grown
    return sorted(found, key=lambda c: (-len(c), math.prod(sizes[name] for name in c), _order_key(order)(c)))


def _order_key(order: Mapping[str, int]) -> Callable[[Clique], list[int]]:
    """The key that sorts cliques by the order of their attributes."""
    return lambda clique: [order[name] for name in clique]
