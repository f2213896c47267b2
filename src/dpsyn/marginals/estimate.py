"""Estimates: tables of counts computed from released marginals, and their average by inverse variance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError, quote_argument
from dpsyn.marginals.marginal import Clique, Marginal


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A table of counts over a few attributes after post-processing: averaged, merged, consistent or non-negative.

    Attributes:
        clique: the attributes, one per axis.
        values: the counts; in general not whole numbers.
        variance: the variance of the noise of each cell as measured. It determines the weight of the table in averages.
        levels: for the attributes that the table counts more coarsely than the model does, the group of each of the
            model's codes; an axis of the table is over these groups.
    """

    clique: Clique
    values: NDArray[np.float64]
    variance: float
    levels: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, group_of in self.levels.items():
            if name not in self.clique or int(group_of.max()) + 1 != self.values.shape[self.clique.index(name)]:
                raise InternalError(f"the groups of {name!r} are not those of its axis")
        if self.values.ndim != len(self.clique) or len(set(self.clique)) < len(self.clique):
            raise InternalError(f"a table of {len(self.clique)} attributes has {self.values.ndim} axes")
        if not self.variance >= 0:
            raise InternalError(f"the variance of a table is {self.variance}; it must be 0 or more")
        self.values.setflags(write=False)

    @classmethod
    def of(cls, marginal: Marginal) -> Estimate:
        """The estimate that a released marginal gives on its own."""
        return cls(marginal.clique, marginal.counts, marginal.std**2)

    @property
    def total(self) -> float:
        """The sum of all counts."""
        return float(self.values.sum())

    def project(self, attributes: Sequence[str]) -> NDArray[np.float64]:
        """The counts over some of the attributes, summed over the others, in the given order."""
        summed_axes = tuple(axis for axis, name in enumerate(self.clique) if name not in attributes)
        kept = [name for name in self.clique if name in attributes]
        if len(kept) != len(attributes):
            raise InternalError(f"a table of {', '.join(self.clique)} is projected on {quote_argument(attributes)}")
        summed = self.values.sum(axis=summed_axes)
        projected: NDArray[np.float64] = np.transpose(summed, [kept.index(name) for name in attributes])
        return projected


# ── averages of tables with the same attributes ──────────────────────────────────────────────────────────────


EXACT_PRECISION = 1e12
"""The weight of a table without noise, relative to the best noisy table. Up to the precision of a float it decides
alone, and it is still a finite number."""


def relative_precisions(variances: Sequence[float]) -> NDArray[np.float64]:
    """The precisions (inverse variances) of tables, relative to that of the best noisy table, which is 1.

    A variance of zero gives ``EXACT_PRECISION``, an infinite one its inverse.
    """
    array = np.array(variances, np.float64)
    noisy = array[(array > 0) & np.isfinite(array)]
    with np.errstate(divide="ignore"):
        relative = (noisy.min() if len(noisy) else 1.0) / array
    return np.clip(relative, 1 / EXACT_PRECISION, EXACT_PRECISION)


def average_estimates(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Average tables of the same attributes at the same levels, weighted by inverse variance: the least variance.

    The result has one table for each such set, in the order of their first tables and with their axes.
    """
    by_attributes: dict[object, list[Estimate]] = defaultdict(list)
    for estimate in estimates:
        levels = sorted((name, group_of.tobytes()) for name, group_of in estimate.levels.items())
        by_attributes[frozenset(estimate.clique), tuple(levels)].append(estimate)
    return [tables[0] if len(tables) == 1 else _weighted_mean(tables) for tables in by_attributes.values()]


def _weighted_mean(tables: Sequence[Estimate]) -> Estimate:
    clique = tables[0].clique
    variances = [table.variance for table in tables]
    values = np.average([table.project(clique) for table in tables], axis=0, weights=relative_precisions(variances))
    with np.errstate(divide="ignore"):
        variance = 1 / np.sum(1 / np.array(variances, np.float64))
    return Estimate(clique, np.asarray(values, np.float64), float(variance), tables[0].levels)
