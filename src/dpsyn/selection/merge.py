"""Merging of selected marginals: overlapping ones are measured as fewer and larger ones where that means less noise.

The four triples of four binary attributes have 32 cells, all four attributes together have 16. Measured as one table
with the budget of the four, each triple has less noise, and the four-way interaction is measured, too.
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
"""The minimum relative gain of a step, so that rounding errors cannot cause endless steps."""

_MAX_GROWTH_CANDIDATES = 5_000_000
"""The maximum of marginals × attributes for which merging is tried; beyond, it would take minutes."""

_NEARLY_BEST, _MAX_STEPS_AT_ONCE = 0.8, 1_000
"""Steps with at least this share of the best gain are taken together with the best one, up to this number of steps, if
their tables do not overlap."""


@dataclass(frozen=True, slots=True)
class MergedMarginals:
    """Marginals to measure instead of the selected ones.

    Attributes:
        cliques: their attributes.
        noise_factor: the error of the selected marginals when they are computed from these, divided by their error when
            they are measured themselves.
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
    """Grow marginals by attributes, and drop those that a larger one then holds, as long as the total error falls.

    A marginal i of cᵢ cells gets the budget ρ·wᵢ/W with wᵢ = (importance·cᵢ)^(2/3) and W = Σ wᵢ. A requested table t
    that it holds is a projection of it and has the variance cᵢ/cₜ·W/(2ρwᵢ) by it, and 1 / the sum of precisions by all
    marginals that hold it. So the total error of the requested tables is, up to a factor, √W·Σ importanceₜ·√(cₜ/pₜ)
    with pₜ = Σ wᵢ/cᵢ over the marginals that hold t. Steps that lower it most come first.

    Args:
        cliques: the requested marginals, each of at least two attributes, without repetition.
        sizes: the number of values of each attribute.
        importance: the weight of errors by attribute, 1 by default; that of a table is the product.
        max_cells: the maximum number of cells of a grown marginal, unless it is a requested one.
        is_allowed: whether attributes may be measured together.
    """
    if not 0 < len(cliques) * len(sizes) <= _MAX_GROWTH_CANDIDATES:
        return MergedMarginals(list(cliques), 1.0)
    growing = _GrowingMarginals(cliques, sizes, importance or {}, max_cells)
    unmerged_error = growing.error
    while steps := growing.best_steps(is_allowed):
        growing.update_changes(np.array([growing.grow(row, attribute) for row, attribute in steps]))
    return MergedMarginals(growing.cliques(), growing.error / unmerged_error)


class _GrowingMarginals:
    """Marginals while they grow, one per row; each row begins as one of the requested tables."""

    def __init__(
        self, cliques: Sequence[Clique], sizes: Mapping[str, int], importance: Mapping[str, float], max_cells: int
    ) -> None:
        indices = {name: index for index, name in enumerate(sizes)}
        requested = sorted(sorted(indices[name] for name in clique) for clique in cliques)
        longest = max(map(len, requested))
        self.names, self.max_cells = tuple(sizes), max_cells
        self.sizes = np.array(list(sizes.values()), np.float64)
        self.importance = np.array([importance.get(name, 1.0) for name in sizes])
        self.requested = np.array([clique + clique[-1:] * (longest - len(clique)) for clique in requested], np.int64)
        first_pairs = self.requested[:, 0] * len(sizes) + self.requested[:, 1]
        self.starts = np.searchsorted(first_pairs, np.arange(len(sizes) ** 2 + 1))
        self.held = np.zeros((len(requested), len(sizes)), np.bool_)
        self.held[np.arange(len(requested))[:, None], self.requested] = True
        self.alive, self.grew = np.ones(len(requested), np.bool_), np.zeros(len(requested), np.bool_)
        self.refused = np.zeros(self.held.shape, np.bool_)
        self.cells = np.array([self.sizes[held].prod() for held in self.held])
        self.weights = np.array([self._weight(held) for held in self.held])
        self.precision = np.zeros(len(requested))
        for row in range(len(requested)):
            self._add_precision(row, 1)
        self.needs = np.array([self.importance[held].prod() for held in self.held]) * np.sqrt(self.cells)
        self.changes = np.zeros((2, *self.held.shape))
        self.update_changes(np.ones((1, len(sizes)), np.bool_))

    @property
    def error(self) -> float:
        """The total error √W·Σ importance·√(cells/precision), up to a factor."""
        return math.sqrt(self.weights[self.alive].sum()) * float((self.needs / np.sqrt(self.precision)).sum())

    def cliques(self) -> list[Clique]:
        """The attributes of every marginal."""
        return [tuple(self.names[axis] for axis in np.flatnonzero(held)) for held in self.held[self.alive]]

    def best_steps(self, is_allowed: Callable[[Clique], bool]) -> list[tuple[int, int]]:
        """The rows and attributes that lower the error most; each step still gains after those before it."""
        steps: list[tuple[int, int]] = []
        while not steps and len(good := self._good_steps()):
            steps = self._separate_steps(good, is_allowed)
        return steps

    def _good_steps(self) -> NDArray[np.int64]:
        """The steps that gain nearly as much as the best one, which comes first, as row·attributes + attribute."""
        weights = self.weights[self.alive].sum() + self.changes[0]
        errors = np.sqrt(weights) * ((self.needs / np.sqrt(self.precision)).sum() + self.changes[1])
        gains = (1 - errors / self.error).ravel()
        good = np.flatnonzero(gains >= max(float(gains.max()) * _NEARLY_BEST, _MIN_GAIN))
        return good[np.argsort(-gains[good], kind="stable")]

    def _separate_steps(self, good: NDArray[np.int64], is_allowed: Callable[[Clique], bool]) -> list[tuple[int, int]]:
        """The steps that are allowed, whose tables do not overlap, and that still gain after the steps before them."""
        steps: list[tuple[int, int]] = []
        weight, error = self.weights[self.alive].sum(), (self.needs / np.sqrt(self.precision)).sum()
        together, seen = [0] * len(self.names), 0
        for row, attribute in (divmod(step, len(self.names)) for step in good.tolist()):
            grown = sorted([*np.flatnonzero(self.held[row]).tolist(), attribute])
            if not is_allowed(tuple(self.names[axis] for axis in grown)):
                self.refused[row, attribute], self.changes[:, row, attribute] = True, (np.inf, 0.0)
                continue
            seen, bits = seen + 1, sum(1 << axis for axis in grown)
            if not any(together[axis] & (bits ^ 1 << axis) for axis in grown):
                changed = weight + self.changes[0, row, attribute], error + self.changes[1, row, attribute]
                if math.sqrt(changed[0]) * changed[1] < math.sqrt(weight) * error * (1 - _MIN_GAIN):
                    weight, error = changed
                    steps.append((row, attribute))
                    together = [mask | bits if bits >> axis & 1 else mask for axis, mask in enumerate(together)]
            if seen == _MAX_STEPS_AT_ONCE:
                break
        return steps

    def grow(self, row: int, attribute: int) -> NDArray[np.bool_]:
        """Grow a row by an attribute; returns the attributes that it has then."""
        grown: NDArray[np.bool_] = self.held[row].copy()
        grown[attribute] = True
        ungrown = np.flatnonzero(self.alive & ~self.grew & grown[self.requested].all(axis=1))
        larger = np.flatnonzero(self.alive & self.grew & self.held[:, attribute])
        for inside in {row, *ungrown.tolist(), *larger[~self.held[larger][:, ~grown].any(axis=1)].tolist()}:
            self._add_precision(inside, -1)
            self.alive[inside] = False
        self.held[row], self.alive[row], self.grew[row] = grown, True, True
        self.refused[row] = False  # with other attributes the answer may differ
        self.cells[row], self.weights[row] = self.sizes[grown].prod(), self._weight(grown)
        self._add_precision(row, 1)
        return grown

    def _weight(self, held: NDArray[np.bool_]) -> float:
        return float((self.sizes * self.importance)[held].prod() ** CELL_POWER)

    def _add_precision(self, row: int, sign: int) -> None:
        """Add the precision of a row to all requested tables that it holds, or subtract it."""
        self.precision[self.held[row][self.requested].all(axis=1)] += sign * self.weights[row] / self.cells[row]

    def update_changes(self, changed: NDArray[np.bool_]) -> None:
        """Recompute the changes by steps whose tables have two attributes in common with a changed one."""
        together = (changed.T.astype(np.float32) @ changed.astype(np.float32)) > 0
        kernels.growth_changes(
            self.held, self.alive, self.grew, self.refused, self.cells, self.weights, self.requested, self.starts,
            self.needs, self.precision, self.sizes, self.importance, self.max_cells, together, self.changes,
        )  # fmt: skip
