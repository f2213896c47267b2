"""Chosen pairs that hang together, measured as one marginal (PrivSyn, section 4.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from dpsyn.marginals import Clique

MOST_CELLS = 5_000
"""γ: cells that a combined marginal may have (the paper's value)."""

MOST_CLIQUES = 200_000
"""Candidates looked at: a dense graph of many small attributes has more cliques than could ever be listed."""


def combine(
    pairs: Sequence[Clique], sizes: Mapping[str, int], *, most_cells: int = MOST_CELLS, most_cliques: int = MOST_CLIQUES
) -> list[Clique]:
    """The marginals to measure instead of the pairs: cliques of the pair graph, and the pairs that none covers.

    Cliques with at most ``most_cells`` cells are taken by their number of attributes, the largest first, and accepted
    if they have at most two attributes in common with those accepted before.
    """
    order = {name: place for place, name in enumerate(sizes)}
    edges: set[Clique] = {tuple(sorted(pair, key=order.__getitem__)) for pair in pairs}
    accepted: list[Clique] = []
    covered: set[str] = set()
    for clique in _larger_cliques(edges, sizes, order, most_cells, most_cliques):
        if len(covered.intersection(clique)) <= 2:
            accepted.append(clique)
            covered.update(clique)
    together = [set(clique) for clique in accepted]
    alone = [pair for pair in sorted(edges, key=_by(order)) if not any(set(pair) <= clique for clique in together)]
    return accepted + alone


def _larger_cliques(
    edges: set[Clique], sizes: Mapping[str, int], order: Mapping[str, int], most_cells: int, most_cliques: int
) -> list[Clique]:
    """Cliques of three attributes and more, those with most attributes first; then by size and name, for order's sake.

    Cliques grow by one attribute at a time, always a later one, so that each is found once.
    """
    later: dict[str, set[str]] = {name: set() for name in sizes}
    for first, second in edges:
        later[first].add(second)
    level = sorted(edges, key=_by(order))
    found: list[Clique] = []
    while level and len(found) < most_cliques:
        grown: list[Clique] = []
        for clique in level:
            cells = math.prod(sizes[name] for name in clique)
            shared = set.intersection(*(later[name] for name in clique))
            for name in sorted(shared, key=order.__getitem__):
                if cells * sizes[name] <= most_cells:
                    grown.append((*clique, name))
            if len(found) + len(grown) > most_cliques:
                break
        found += grown
        level = grown
    return sorted(found, key=lambda c: (-len(c), math.prod(sizes[name] for name in c), _by(order)(c)))


def _by(order: Mapping[str, int]) -> Callable[[Clique], list[int]]:
    """The key that sorts cliques by the order of their attributes."""
    return lambda clique: [order[name] for name in clique]
