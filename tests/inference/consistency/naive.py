"""Slow, obviously correct twins of the consistency steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from dpsyn.marginals import Clique

Cells = dict[tuple[int, ...], float]


def closure(cliques: Sequence[Clique]) -> list[tuple[str, ...]]:
    """The empty set and the intersections of every choice of two or more cliques, small ones first, then by name."""
    result: set[tuple[str, ...]] = {()}
    for number in range(2, len(cliques) + 1):
        for chosen in itertools.combinations(cliques, number):
            result.add(tuple(sorted(set.intersection(*(set(clique) for clique in chosen)))))
    return sorted(result, key=lambda names: (len(names), names))


def project(cells: Cells, clique: Clique, names: Sequence[str]) -> Cells:
    """The projection to some attributes."""
    sums: Cells = {}
    for cell, value in cells.items():
        kept = tuple(cell[clique.index(name)] for name in names)
        sums[kept] = sums.get(kept, 0.0) + value
    return sums


def agree(tables: list[Cells], cliques: Sequence[Clique], variances: Sequence[float], total: float) -> list[Cells]:
    """One pass of mutual consistency, cell by cell."""
    tables = [dict(table) for table in tables]
    for table in tables:
        missing = total - sum(table.values())
        for cell in table:
            table[cell] += missing / len(table)
    for names in closure(cliques):
        holders = [position for position, clique in enumerate(cliques) if set(names) <= set(clique)]
        if names and len(holders) > 1:
            _agree_on(names, holders, tables, cliques, variances)
    return tables


def _agree_on(
    names: Sequence[str],
    holders: Sequence[int],
    tables: list[Cells],
    cliques: Sequence[Clique],
    variances: Sequence[float],
) -> None:
    sums = {position: project(tables[position], cliques[position], names) for position in holders}
    folded = {position: len(tables[position]) / len(sums[position]) for position in holders}
    weights = {position: 1 / (variances[position] * folded[position]) for position in holders}
    for cell in sums[holders[0]]:
        target = sum(weights[position] * sums[position][cell] for position in holders) / sum(weights.values())
        for position in holders:
            for inner in tables[position]:
                if tuple(inner[cliques[position].index(name)] for name in names) == cell:
                    tables[position][inner] += (target - sums[position][cell]) / folded[position]


def norm_sub(values: Sequence[float], total: float) -> list[float]:
    """Find the constant by bisection."""
    if total <= 0:
        return [0.0] * len(values)
    low, high = min(values) - total, max(values)
    for _ in range(200):
        middle = (low + high) / 2
        if math.fsum(max(value - middle, 0.0) for value in values) > total:
            low = middle
        else:
            high = middle
    return [max(value - high, 0.0) for value in values]


def norm_cut(values: Sequence[float], total: float) -> list[float]:
    """Cut the smallest positive cell repeatedly."""
    left = [max(value, 0.0) for value in values]
    while (excess := math.fsum(left) - max(total, 0.0)) > 0 and any(left):
        smallest = min((value, position) for position, value in enumerate(left) if value > 0)[1]
        left[smallest] = max(left[smallest] - excess, 0.0)
    return left


def ripple(cells: Cells, shape: Sequence[int], threshold: float, rounds: int) -> Cells:
    """Wave after wave: every cell below −threshold becomes 0, and each neighbor gives its part of the deficit."""
    neighbors = sum(size - 1 for size in shape)
    if neighbors == 0 or sum(cells.values()) <= -threshold * len(cells):
        return cells
    for _ in range(rounds):
        lacking = {cell: value for cell, value in cells.items() if value < -threshold}
        cells = {cell: 0.0 if cell in lacking else value for cell, value in cells.items()}
        for cell, deficit in lacking.items():
            for other in cells:
                if sum(one != two for one, two in zip(cell, other, strict=True)) == 1:
                    cells[other] += deficit / neighbors
    return cells
