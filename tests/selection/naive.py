"""Slow, obviously correct twins of the selection."""

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


def cliques(pairs: Sequence[tuple[str, ...]], sizes: Mapping[str, int], max_cells: int) -> set[tuple[str, ...]]:
    """All sets of three attributes and more, each two of them a pair, with few enough cells."""
    edges = {frozenset(pair) for pair in pairs}
    result = set()
    for length in range(3, len(sizes) + 1):
        for names in combinations(sizes, length):
            linked = all(frozenset(pair) in edges for pair in combinations(names, 2))
            if linked and math.prod(sizes[name] for name in names) <= max_cells:
                result.add(names)
    return result


def shared_error(
    measured: Sequence[frozenset[str]],
    asked: Sequence[frozenset[str]],
    sizes: Mapping[str, int],
    importance: Mapping[str, float],
) -> float:
    """Σ importance·cells·σ over the requested tables, each estimated from all measured ones that hold it; ρ = ½."""

    def product(numbers: Mapping[str, float], names: frozenset[str]) -> float:
        return math.prod(numbers[name] for name in names)

    weights = [(product(sizes, own) * product(importance, own)) ** (2 / 3) for own in measured]
    shares = [weight / sum(weights) for weight in weights]
    error = 0.0
    for wanted in asked:
        cells = product(sizes, wanted)
        variances = [
            product(sizes, own) / cells / share for own, share in zip(measured, shares, strict=True) if wanted <= own
        ]
        error += product(importance, wanted) * cells / math.sqrt(sum(1 / variance for variance in variances))
    return error


def error_after_best_step(
    measured: Sequence[frozenset[str]],
    asked: Sequence[frozenset[str]],
    sizes: Mapping[str, int],
    importance: Mapping[str, float],
    max_cells: int,
) -> float:
    """The least error that is reached if one table grows by one attribute and those inside of it are dropped."""
    errors = [math.inf]
    for own in measured:
        for name in set(sizes) - own:
            larger = own | {name}
            rest = [other for other in measured if not other <= larger]
            fits = math.prod(sizes[name] for name in larger) <= max_cells or larger in measured
            if fits and len(rest) < len(measured) - 1:
                errors.append(shared_error([*rest, larger], asked, sizes, importance))
    return min(errors)
