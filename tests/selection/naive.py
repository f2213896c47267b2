"""Selection, slowly and obviously."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations


def cost(chosen: Sequence[int], scores: Sequence[float], cells: Sequence[int], rho: float) -> float:
    """The expected error of a choice: noise of chosen pairs with ρᵢ ∝ cᵢ^(2/3), and scores of the others."""
    whole = sum(cells[i] ** (2 / 3) for i in chosen)
    noise = sum(cells[i] / math.sqrt(math.pi * rho * cells[i] ** (2 / 3) / whole) for i in chosen)
    return noise + sum(score for i, score in enumerate(scores) if i not in chosen)


def greedy(scores: Sequence[float], cells: Sequence[int], rho: float) -> list[int]:
    """Add the pair that lowers the cost most, until none does."""
    chosen: list[int] = []
    while True:
        others = [i for i in range(len(scores)) if i not in chosen]
        best = min(others, key=lambda i: cost([*chosen, i], scores, cells, rho), default=None)
        if best is None or cost([*chosen, best], scores, cells, rho) >= cost(chosen, scores, cells, rho):
            return chosen
        chosen.append(best)


def cliques(pairs: Sequence[tuple[str, ...]], sizes: Mapping[str, int], most_cells: int) -> set[tuple[str, ...]]:
    """All sets of three attributes and more, each two of them a pair, with few enough cells."""
    edges = {frozenset(pair) for pair in pairs}
    found = set()
    for length in range(3, len(sizes) + 1):
        for names in combinations(sizes, length):
            linked = all(frozenset(pair) in edges for pair in combinations(names, 2))
            if linked and math.prod(sizes[name] for name in names) <= most_cells:
                found.add(names)
    return found
