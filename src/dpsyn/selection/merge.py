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
from dpsyn.selection.pair_selection import CELL_POWER

_MIN_GAIN = 1e-9
"""What a step must gain, relative: floating point is not to go on for ever."""

_MAX_GROWTH_CANDIDATES = 5_000_000
"""Marginals × attributes up to which they are looked at at all; beyond, that would take minutes."""

_NEARLY_BEST, _MAX_STEPS_AT_ONCE = 0.8, 1_000
"""Steps that gain so large a part of what the best one does are taken with it, if they do not touch each other."""


@dataclass(frozen=True, slots=True)
class MergedMarginals:
    """Marginals to measure instead of others.

    Attributes:
        cliques: their attributes.
        noise_factor: the error with which they tell the others, divided by what those would have by themselves.
    """

    cliques: list[Clique]
    noise_factor: float


def merge_marginals(
    cliques: Sequence[Clique],
    sizes: Mapping[str, int],
    *,
    importance: Mapping[str, float] | None = None,
    max_cells: int,
    is_allowed: Callable[[Clique], bool] = lambda _: True,
) -> MergedMarginals:
    """Let marginals grow by an attribute, and drop those they then hold, as long as the error of all gets less.

    A marginal i of cᵢ cells gets the share ρ·wᵢ/W with wᵢ = (importance·cᵢ)^(2/3) and W = Σ wᵢ. A table t inside of it,
    which is sums of its cells, has a variance of cᵢ/cₜ·W/(2ρwᵢ) by it, and 1 / the sum of precisions by all that hold
    it. So the error of everything asked for is, up to a factor, √W·Σ importanceₜ·√(cₜ/pₜ) with pₜ = Σ wᵢ/cᵢ over the
    marginals that hold t. Steps that lower it most come first.

    Args:
        cliques: the marginals asked for, of two attributes at least, none twice.
        sizes: the number of values of each attribute.
        importance: how much an error counts, by attribute, 1 where it is not said; that of a table is the product.
        max_cells: cells that a marginal may grow to, unless it becomes one that was asked for.
        is_allowed: whether attributes may be measured together.
    """
    if not 0 < len(cliques) * len(sizes) <= _MAX_GROWTH_CANDIDATES:
        return MergedMarginals(list(cliques), 1.0)
    growing = _GrowingMarginals(cliques, sizes, importance or {}, max_cells)
    alone = growing.error
    while steps := growing.best_steps(is_allowed):
        growing.update_changes(np.array([growing.grow(row, place) for row, place in steps]))
    return MergedMarginals(growing.cliques(), growing.error / alone)


class _GrowingMarginals:
    """Marginals while they grow, one a row; each row begins as one of those asked for."""

    def __init__(
        self, cliques: Sequence[Clique], sizes: Mapping[str, int], importance: Mapping[str, float], max_cells: int
    ) -> None:
        places = {name: place for place, name in enumerate(sizes)}
        asked = sorted(sorted(places[name] for name in clique) for clique in cliques)
        longest = max(map(len, asked))
        self.names, self.most_cells = tuple(sizes), max_cells
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
            self._add_precision(row, 1)
        self.needs = np.array([self.importance[held].prod() for held in self.held]) * np.sqrt(self.cells)
        self.changes = np.zeros((2, *self.held.shape))
        self.update_changes(np.ones((1, len(sizes)), np.bool_))

    @property
    def error(self) -> float:
        """√W·Σ importance·√(cells/precision)."""
        return math.sqrt(self.weights[self.alive].sum()) * float((self.needs / np.sqrt(self.precision)).sum())

    def cliques(self) -> list[Clique]:
        """The attributes of every marginal."""
        return [tuple(self.names[at] for at in np.flatnonzero(held)) for held in self.held[self.alive]]

    def best_steps(self, is_allowed: Callable[[Clique], bool]) -> list[tuple[int, int]]:
        """Rows and attributes that lower the error most, each after those before it; their tables do not touch."""
        steps: list[tuple[int, int]] = []
        while not steps and len(good := self._good_steps()):
            steps = self._separate_steps(good, is_allowed)
        return steps

    def _good_steps(self) -> NDArray[np.int64]:
        """Steps that gain nearly as much as the best one, which is the first: row·attributes + attribute."""
        weights = self.weights[self.alive].sum() + self.changes[0]
        errors = np.sqrt(weights) * ((self.needs / np.sqrt(self.precision)).sum() + self.changes[1])
        gains = (1 - errors / self.error).ravel()
        good = np.flatnonzero(gains >= max(float(gains.max()) * _NEARLY_BEST, _MIN_GAIN))
        return good[np.argsort(-gains[good], kind="stable")]

    def _separate_steps(self, good: NDArray[np.int64], is_allowed: Callable[[Clique], bool]) -> list[tuple[int, int]]:
        """Those of the steps that are allowed, do not touch each other and still gain once the others are taken."""
        steps: list[tuple[int, int]] = []
        weight, told = self.weights[self.alive].sum(), (self.needs / np.sqrt(self.precision)).sum()
        together, seen = [0] * len(self.names), 0
        for row, place in (divmod(step, len(self.names)) for step in good.tolist()):
            grown = sorted([*np.flatnonzero(self.held[row]).tolist(), place])
            if not is_allowed(tuple(self.names[at] for at in grown)):
                self.refused[row, place], self.changes[:, row, place] = True, (np.inf, 0.0)
                continue
            seen, bits = seen + 1, sum(1 << at for at in grown)
            if not any(together[at] & (bits ^ 1 << at) for at in grown):
                after = weight + self.changes[0, row, place], told + self.changes[1, row, place]
                if math.sqrt(after[0]) * after[1] < math.sqrt(weight) * told * (1 - _MIN_GAIN):
                    weight, told = after
                    steps.append((row, place))
                    together = [before | bits if bits >> at & 1 else before for at, before in enumerate(together)]
            if seen == _MAX_STEPS_AT_ONCE:
                break
        return steps

    def grow(self, row: int, attribute: int) -> NDArray[np.bool_]:
        """Let a row grow by an attribute; the attributes it has then."""
        grown: NDArray[np.bool_] = self.held[row].copy()
        grown[attribute] = True
        asked = np.flatnonzero(self.alive & ~self.grew & grown[self.asked].all(axis=1))
        larger = np.flatnonzero(self.alive & self.grew & self.held[:, attribute])
        for inside in {row, *asked.tolist(), *larger[~self.held[larger][:, ~grown].any(axis=1)].tolist()}:
            self._add_precision(inside, -1)
            self.alive[inside] = False
        self.held[row], self.alive[row], self.grew[row] = grown, True, True
        self.refused[row] = False  # with other attributes it may be another thing
        self.cells[row], self.weights[row] = self.sizes[grown].prod(), self._weight(grown)
        self._add_precision(row, 1)
        return grown

    def _weight(self, held: NDArray[np.bool_]) -> float:
        return float((self.sizes * self.importance)[held].prod() ** CELL_POWER)

    def _add_precision(self, row: int, sign: int) -> None:
        """Add what a row tells to the precision of all that it holds, or take it away."""
        self.precision[self.held[row][self.asked].all(axis=1)] += sign * self.weights[row] / self.cells[row]

    def update_changes(self, changed: NDArray[np.bool_]) -> None:
        """Work out anew what steps would change whose tables have two attributes of a changed one."""
        together = (changed.T.astype(np.float32) @ changed.astype(np.float32)) > 0
        kernels.growth_changes(
            self.held, self.alive, self.grew, self.refused, self.cells, self.weights, self.asked, self.starts,
            self.needs, self.precision, self.sizes, self.importance, self.most_cells, together, self.changes,
        )  # fmt: skip
