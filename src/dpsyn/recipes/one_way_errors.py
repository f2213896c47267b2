"""The predicted errors of one-way tables, given what was measured and what more is spent on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import Recoding
from dpsyn.inference import Release, estimate_one_way, iterate_marginals, norm_sub
from dpsyn.marginals import Clique, Estimate
from dpsyn.selection import CELL_POWER, PredictedErrors

MIN_VARIANCE, MIN_PRECISION = 1e-9, 1e-12
"""Bounds that keep divisions finite, for tables without noise and for those that were not measured."""

MIN_PART = 0.01
"""The smallest error of a table, as a part of the largest one: what looks like a single value may have others."""

NOISE_SCALES = 12
"""At so many scales of noise the errors of one-way tables are simulated; between them they are interpolated."""

SIMULATIONS = 16
"""How often the measurement of each one-way table is simulated to divide ρ among them."""


def divide_by_error(tables: Sequence[NDArray[np.float64]], std: float) -> NDArray[np.float64]:
    """The parts of ρ with which one-way tables are measured, so that the sum of their errors is smallest.

    The error of a table at the noise σ is about kσ, where k counts the cells that noise changes: after negative counts
    are removed, few of a list with many empty values. The sum of kσ with σ² ∝ 1/ρ is smallest for ρ ∝ k^(2/3).

    Args:
        tables: the counts, as far as they are known.
        std: the noise that they would have with equal parts.
    """
    simulated = PredictedErrors.simulate([table for table in tables for _ in range(SIMULATIONS)], np.array([std]))
    errors = simulated.errors.reshape(len(tables), SIMULATIONS).mean(axis=1)
    weights = np.maximum(errors, MIN_PART * errors.max(initial=0.0) + MIN_PRECISION) ** CELL_POWER
    parts: NDArray[np.float64] = weights / weights.sum()
    return parts


@dataclass(frozen=True, eq=False)
class OneWayErrors:
    """What the one-way tables of a recoding are off by, ‖estimate − truth‖₁, as a function of their noise.

    Attributes:
        names: the attributes.
        tables: the current estimates.
        precisions: the inverse variance of the cells of each, by everything that was measured.
    """

    names: tuple[str, ...]
    tables: tuple[NDArray[np.float64], ...]
    precisions: NDArray[np.float64]

    @classmethod
    def of(
        cls, releases: Sequence[Release], recoding: Recoding, total: float, finest: Mapping[str, Estimate]
    ) -> OneWayErrors:
        """The errors of the one-way tables that follow from some releases.

        ``finest`` has those of numbers and dates, whose codes are as coarse as noise makes them: what a number is off
        by counts at a resolution that does not depend on it.
        """
        measured = {marginal.clique[0] for _, marginal in iterate_marginals(releases) if len(marginal.clique) == 1}
        estimates = [
            finest[name]
            if name in finest
            else estimate_one_way(releases, recoding, name)
            if name in measured
            else Estimate((name,), np.full(size, total / size), math.inf)
            for name, size in zip(recoding.names, recoding.sizes, strict=True)
        ]
        tables = tuple(norm_sub(estimate.values, total) for estimate in estimates)
        one_way = cls(recoding.names, tables, np.array([1 / max(e.variance, MIN_VARIANCE) for e in estimates]))
        larger = [
            (marginal.clique, marginal.raw.shape, marginal.std**2)
            for _, marginal in iterate_marginals(releases)
            if len(marginal.clique) > 1
        ]
        return replace(one_way, precisions=one_way.precisions + one_way.learned_from(larger))

    def learned_from(self, larger: Iterable[tuple[Clique, Sequence[int], float]]) -> NDArray[np.float64]:
        """What larger tables add to the precision of one-way tables; each has attributes, a shape and a variance.

        Summed over its other attributes, a table of variance v has variance v·cells/k over k groups of an attribute;
        over groups of several codes, it says that much less about each code.
        """
        added = dict.fromkeys(self.names, 0.0)
        sizes = dict(zip(self.names, (len(table) for table in self.tables), strict=True))
        for clique, shape, variance in larger:
            cells = math.prod(shape)
            for name, groups in zip(clique, shape, strict=True):
                if name in added:
                    added[name] += min(1.0, groups / sizes[name]) / (max(variance, MIN_VARIANCE) * cells / groups)
        return np.array(list(added.values()))

    @cached_property
    def parts(self) -> dict[str, float]:
        """The parts of another ρ with which each table is measured again."""
        std = 1 / math.sqrt(max(float(np.median(self.precisions)), MIN_PRECISION))
        return dict(zip(self.names, divide_by_error(self.tables, std).tolist(), strict=True))

    def spend(self, rho: float, sensitivity: float) -> NDArray[np.float64]:
        """What another ρ adds to each precision."""
        return 2 * rho * np.array([self.parts[name] for name in self.names]) / sensitivity**2

    def errors(self, more: NDArray[np.float64] | float = 0.0) -> dict[str, float]:
        """The error of each one-way table if its precision grows by ``more``."""
        stds = 1 / np.sqrt(np.maximum(self.precisions + more, MIN_PRECISION))
        return dict(zip(self.names, self._predicted_errors.interpolate(stds).tolist(), strict=True))

    @cached_property
    def _predicted_errors(self) -> PredictedErrors:
        coarsest = float(1 / np.sqrt(max(self.precisions.min(), MIN_PRECISION)))
        return PredictedErrors.simulate(self.tables, np.geomspace(coarsest / 1e3, coarsest, NOISE_SCALES))


def background_errors(
    cliques: Sequence[Clique], one_way: Mapping[str, float], target: str | None
) -> NDArray[np.float64]:
    """The error of each clique that is due to its one-way tables: independent errors, so their squares add up.

    Where the target depends on others counts by itself, however fine their shape is.
    """
    return np.sqrt(
        [0.0 if target in clique else math.fsum([one_way[name] ** 2 for name in clique]) for clique in cliques]
    )
