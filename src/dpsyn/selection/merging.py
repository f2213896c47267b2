"""Chosen marginals that hang together, measured as fewer and larger ones where that means less noise.

Four triples of four attributes with two values each have 32 cells, all four attributes together 16: measured as one
table with the share of the four, each of the triples is told better, and so is what none of them tells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.marginals import Clique
from dpsyn.selection import kernels
from dpsyn.selection.greedy import CELL_POWER

_LEAST_GAIN = 1e-9
"""What a step must gain, relative: floating point is not to go on for ever."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Marginals to measure instead of others.

    Attributes:
        cliques: their attributes.
        noise: the error with which they tell the others, divided by what those would have by themselves.
    """

    cliques: list[Clique]
    noise: float


def merge(
    cliques: Sequence[Clique],
    sizes: Mapping[str, int],
    *,
    importance: Mapping[str, float] | None = None,
    most_cells: int,
    allowed: Callable[[Clique], bool] = lambda _: True,
) -> Merged:
    """Let marginals grow by an attribute, and drop those they then hold, as long as the error of all gets less.

    A marginal i of cᵢ cells gets the share ρ·wᵢ/W with wᵢ = (importance·cᵢ)^(2/3) and W = Σ wᵢ. A table t inside of it,
    which is sums of its cells, has a variance of cᵢ/cₜ·W/(2ρwᵢ) by it, and 1 / the sum of precisions by all that hold
    it. So the error of everything asked for is, up to a factor, √W·Σ importanceₜ·√(cₜ/pₜ) with pₜ = Σ wᵢ/cᵢ over the
    marginals that hold t. Each step is the one that lowers it most.

    Args:
        cliques: the marginals asked for, none twice.
        sizes: the number of values of each attribute.
        importance: how much an error counts, by attribute, 1 where it is not said; that of a table is the product.
        most_cells: cells that a marginal may grow to, unless it becomes one that was asked for.
        allowed: whether attributes may be measured together.
    """
    if not cliques:
        return Merged([], 1.0)
    growing = _Growing(cliques, sizes, importance or {}, most_cells)
    alone = growing.error
    while (step := growing.best_step()) is not None:
        if allowed(growing.clique(*step)):
            growing.take(*step)
        else:
            growing.refuse(*step)
    found = [growing.clique(row) for row in np.flatnonzero(growing.alive).tolist()]
    return Merged(found, growing.error / alone)


class _Growing:
    """Marginals while they grow, one a row; each row begins as one of those asked for."""

    def __init__(
        self, cliques: Sequence[Clique], sizes: Mapping[str, int], importance: Mapping[str, float], most_cells: int
    ) -> None:
        places = {name: place for place, name in enumerate(sizes)}
        asked = sorted(sorted(places[name] for name in clique) for clique in cliques)
        longest = max(2, *map(len, asked))
        self.names, self.most_cells = tuple(sizes), most_cells
        self.sizes = np.array(list(sizes.values()), np.float64)
        self.importance = np.array([importance.get(name, 1.0) for name in sizes])
        self.asked = np.array([clique + clique[-1:] * (longest - len(clique)) for clique in asked], np.int64)
        begins = self.asked[:, 0] * len(sizes) + self.asked[:, 1]
        self.starts = np.searchsorted(begins, np.arange(len(sizes) ** 2 + 1))
        self.held = np.zeros((len(asked), len(sizes)), np.bool_)
        self.held[np.arange(len(asked))[:, None], self.asked] = True
        self.alive, self.grew = np.ones(len(asked), np.bool_), np.zeros(len(asked), np.bool_)
        self.refused = np.zeros(self.held.shape, np.bool_)
        self.cells = np.array([self.sizes[held].prod() for held in self.held])
        self.weights = np.array([self._weight(held) for held in self.held])
        self.precision = np.zeros(len(asked))
        for row in range(len(asked)):
            self._tell(row, 1)
        self.needs = np.array([self.importance[held].prod() for held in self.held]) * np.sqrt(self.cells)
        self.changes = np.zeros((2, *self.held.shape))
        self._look(np.ones(len(sizes), np.bool_))

    @property
    def error(self) -> float:
        """√W·Σ importance·√(cells/precision)."""
        return math.sqrt(self.weights[self.alive].sum()) * float((self.needs / np.sqrt(self.precision)).sum())

    def clique(self, row: int, place: int | None = None) -> Clique:
        """The attributes of a row, and one more."""
        return tuple(name for at, name in enumerate(self.names) if self.held[row, at] or at == place)

    def best_step(self) -> tuple[int, int] | None:
        """The row and the attribute that lower the error most; None if nothing does."""
        weight = self.weights[self.alive].sum() + self.changes[0]
        errors = np.sqrt(weight) * ((self.needs / np.sqrt(self.precision)).sum() + self.changes[1])
        row, place = divmod(int(np.argmin(errors)), len(self.names))
        return (row, place) if errors[row, place] < self.error * (1 - _LEAST_GAIN) else None

    def take(self, row: int, place: int) -> None:
        """Let a row grow by an attribute."""
        grown = self.held[row].copy()
        grown[place] = True
        for inside in np.flatnonzero(self.alive & ~(self.held & ~grown).any(axis=1)).tolist():
            self._tell(inside, -1)
            self.alive[inside] = False
        self.held[row], self.alive[row], self.grew[row] = grown, True, True
        self.cells[row], self.weights[row] = self.sizes[grown].prod(), self._weight(grown)
        self._tell(row, 1)
        self._look(grown)

    def refuse(self, row: int, place: int) -> None:
        """Never let a row grow by an attribute."""
        self.refused[row, place] = True
        self.changes[0, row, place] = np.inf

    def _weight(self, held: NDArray[np.bool_]) -> float:
        return float((self.sizes * self.importance)[held].prod() ** CELL_POWER)

    def _tell(self, row: int, sign: int) -> None:
        """Add what a row tells to the precision of all that it holds, or take it away."""
        self.precision[self.held[row][self.asked].all(axis=1)] += sign * self.weights[row] / self.cells[row]

    def _look(self, changed: NDArray[np.bool_]) -> None:
        """Work out anew what steps would change that have two attributes at least in common with those."""
        kernels.growth_changes(
            self.held, self.alive, self.grew, self.refused, self.cells, self.weights, self.asked, self.starts,
            self.needs, self.precision, self.sizes, self.importance, self.most_cells, changed, self.changes,
        )  # fmt: skip
