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
from dpsyn.selection import PredictedErrors

MIN_VARIANCE, MIN_PRECISION = 1e-9, 1e-12
"""Bounds that keep divisions finite, for tables without noise and for those that were not measured."""

NOISE_SCALES = 12
"""At so many scales of noise the errors of one-way tables are simulated; between them they are interpolated."""


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

    def spend(self, rho: float, sensitivity: float) -> float:
        """What another ρ adds to each precision, divided equally."""
        return 2 * rho / len(self.names) / sensitivity**2

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
