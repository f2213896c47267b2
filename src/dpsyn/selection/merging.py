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

_NEARLY_BEST, _MOST_STEPS = 0.8, 1_000
"""Steps that gain so large a part of what the best one does are taken with it, if they do not touch each other."""


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
    marginals that hold t. Steps that lower it most come first.

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
    while steps := growing.best_steps():
        growing.look(np.array([growing.take(row, place, allowed) for row, place in steps]))
    return Merged(growing.cliques(), growing.error / alone)


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
        self.look(np.ones((1, len(sizes)), np.bool_))

    @property
    def error(self) -> float:
        """√W·Σ importance·√(cells/precision)."""
        return math.sqrt(self.weights[self.alive].sum()) * float((self.needs / np.sqrt(self.precision)).sum())

    def cliques(self) -> list[Clique]:
        """The attributes of every marginal."""
        return [tuple(self.names[at] for at in np.flatnonzero(held)) for held in self.held[self.alive]]

    def best_steps(self) -> list[tuple[int, int]]:
        """Rows and attributes that lower the error most, and whose tables have at most one attribute in common."""
        weight = self.weights[self.alive].sum() + self.changes[0]
        errors = np.sqrt(weight) * ((self.needs / np.sqrt(self.precision)).sum() + self.changes[1])
        gains = (1 - errors / self.error).ravel()
        least = max(float(gains.max()) * _NEARLY_BEST, _LEAST_GAIN)
        good = np.flatnonzero(gains >= least)
        steps, together = [], np.zeros((len(self.names), len(self.names)), np.bool_)
        for step in good[np.argsort(-gains[good], kind="stable")][:_MOST_STEPS].tolist():
            row, place = divmod(step, len(self.names))
            grown = np.append(np.flatnonzero(self.held[row]), place)
            one, other = grown[:, None], grown[None, :]
            if not (together[one, other] & (one != other)).any():
                together[one, other] = True
                steps.append((row, place))
        return steps

    def take(self, row: int, place: int, allowed: Callable[[Clique], bool]) -> NDArray[np.bool_]:
        """Let a row grow by an attribute, if that is allowed; the attributes it has then, or would have."""
        grown: NDArray[np.bool_] = self.held[row].copy()
        grown[place] = True
        if not allowed(tuple(self.names[at] for at in np.flatnonzero(grown))):
            self.refused[row, place] = True
            return grown
        near = np.flatnonzero(self.alive & self.held[:, place])
        for inside in [row, *near[~self.held[near][:, ~grown].any(axis=1)].tolist()]:
            self._tell(inside, -1)
            self.alive[inside] = False
        self.held[row], self.alive[row], self.grew[row] = grown, True, True
        self.cells[row], self.weights[row] = self.sizes[grown].prod(), self._weight(grown)
        self._tell(row, 1)
        return grown

    def _weight(self, held: NDArray[np.bool_]) -> float:
        return float((self.sizes * self.importance)[held].prod() ** CELL_POWER)

    def _tell(self, row: int, sign: int) -> None:
        """Add what a row tells to the precision of all that it holds, or take it away."""
        self.precision[self.held[row][self.asked].all(axis=1)] += sign * self.weights[row] / self.cells[row]

    def look(self, changed: NDArray[np.bool_]) -> None:
        """Work out anew what steps would change whose tables have two attributes of a changed one."""
        together = (changed.T.astype(np.float32) @ changed.astype(np.float32)) > 0
        kernels.growth_changes(
            self.held, self.alive, self.grew, self.refused, self.cells, self.weights, self.asked, self.starts,
            self.needs, self.precision, self.sizes, self.importance, self.most_cells, together, self.changes,
        )  # fmt: skip
