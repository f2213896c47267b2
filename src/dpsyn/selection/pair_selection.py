"""PrivSyn's marginal selection: which pairs to measure (section 4.2), and how to combine them (section 4.3).

A pair is measured if the noise that it adds is less than the dependence that is lost without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.marginals import Clique

CELL_POWER = 2 / 3
"""ρᵢ ∝ cᵢ^(2/3) minimizes Σ cᵢ/√ρᵢ, the expected noise of all chosen marginals together (PrivSyn, equation 4)."""


def select_pairs(
    scores: NDArray[np.float64], cells: NDArray[np.int64], rho: float, *, sensitivity: float = 1.0, max_total_cells: int
) -> NDArray[np.int64]:
    """Select pairs greedily (PrivSyn, section 4.2); returns their positions in the order in which they were selected.

    Minimizes Σ_chosen Δ·cᵢ/√(πρᵢ) + Σ_others scoreᵢ over sets of pairs: each step selects the pair that lowers the
    sum most, until none does. With ρᵢ ∝ cᵢ^(2/3) and S = Σ cᵢ^(2/3) the first part is Δ·S^1.5/√(πρ).

    Args:
        scores: noisy InDif of every pair.
        cells: the number of cells of every pair.
        rho: the zCDP budget ρ of all selected marginals together.
        sensitivity: Δ, the L2 sensitivity of one marginal.
        max_total_cells: the maximum number of cells of all selected pairs together.

    Privacy: post-processing of the released scores; it costs nothing.
    """
    weights = cells.astype(np.float64) ** CELL_POWER
    noise_scale = sensitivity / math.sqrt(math.pi * rho)
    open_, total_weight, cells_left = np.ones(len(scores), bool), 0.0, max_total_cells
    chosen: list[int] = []
    while True:
        gains = scores - noise_scale * ((total_weight + weights) ** 1.5 - total_weight**1.5)
        gains[~open_ | (cells > cells_left)] = -np.inf
        best = int(np.argmax(gains)) if len(gains) else -1
        if best < 0 or gains[best] <= 0:
            return np.array(chosen, np.int64)
        chosen.append(best)
        open_[best] = False
        total_weight += weights[best]
        cells_left -= int(cells[best])


# ── combine marginals (PrivSyn, section 4.3) ─────────────────────────────────────────────────────────────────


MAX_COMBINED_CELLS = 5_000
"""γ: the maximum number of cells of a combined marginal (the paper's value)."""

MAX_CANDIDATE_CLIQUES = 200_000
"""The maximum number of candidates: a dense graph of many small attributes has more cliques than can be listed."""


def combine_pairs(
    pairs: Sequence[Clique],
    sizes: Mapping[str, int],
    *,
    max_cells: int = MAX_COMBINED_CELLS,
    max_cliques: int = MAX_CANDIDATE_CLIQUES,
) -> list[Clique]:
    """Combine pairs into larger marginals: cliques of the graph of pairs, and the pairs that no clique covers.

    Cliques with at most ``max_cells`` cells are considered by their number of attributes, the largest first, and
    accepted if they have at most two attributes in common with those accepted before.
    """
    order = {name: index for index, name in enumerate(sizes)}
    edges: set[Clique] = {tuple(sorted(pair, key=order.__getitem__)) for pair in pairs}
    accepted: list[Clique] = []
    covered: set[str] = set()
    for clique in _larger_cliques(edges, sizes, order, max_cells, max_cliques):
        if len(covered.intersection(clique)) <= 2:
            accepted.append(clique)
            covered.update(clique)
    accepted_sets = [set(clique) for clique in accepted]
    uncovered = [
        pair
        for pair in sorted(edges, key=_order_key(order))
        if not any(set(pair) <= clique for clique in accepted_sets)
    ]
    return accepted + uncovered


def _larger_cliques(
    edges: set[Clique], sizes: Mapping[str, int], order: Mapping[str, int], max_cells: int, max_cliques: int
) -> list[Clique]:
    """Cliques of at least three attributes, those with most attributes first, then by cells and by attribute order.

    Cliques grow by one attribute at a time, always a later one, so each is listed once.
    """
    later: dict[str, set[str]] = {name: set() for name in sizes}
    for first, second in edges:
        later[first].add(second)
    level = sorted(edges, key=_order_key(order))
    cliques: list[Clique] = []
    while level and len(cliques) < max_cliques:
        grown: list[Clique] = []
        for clique in level:
            cells = math.prod(sizes[name] for name in clique)
            shared = set.intersection(*(later[name] for name in clique))
            for name in sorted(shared, key=order.__getitem__):
                if cells * sizes[name] <= max_cells:
                    grown.append((*clique, name))
            if len(cliques) + len(grown) > max_cliques:
                break
        cliques += grown
        level = grown
    return sorted(cliques, key=lambda c: (-len(c), math.prod(sizes[name] for name in c), _order_key(order)(c)))


def _order_key(order: Mapping[str, int]) -> Callable[[Clique], list[int]]:
    """The key that sorts cliques by the order of their attributes."""
    return lambda clique: [order[name] for name in clique]
