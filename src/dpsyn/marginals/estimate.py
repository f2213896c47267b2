"""Counts worked out from released ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.marginals.marginal import Clique, Marginal


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A table of counts over a few attributes that post-processing made: averaged, merged, consistent, non-negative.

    Attributes:
        clique: the attributes, one per axis.
        values: the counts; not whole numbers in general.
        variance: of the noise in each cell as it was measured; how much the table is worth beside others.
    """

    clique: Clique
    values: NDArray[np.float64]
    variance: float

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.clique) or len(set(self.clique)) < len(self.clique):
            raise InternalError(f"a table of {len(self.clique)} attributes has {self.values.ndim} axes")
        if not self.variance >= 0:
            raise InternalError(f"the variance of a table is {self.variance}")
        self.values.setflags(write=False)

    @classmethod
    def of(cls, marginal: Marginal) -> Estimate:
        """What a released marginal says by itself."""
        return cls(marginal.clique, marginal.counts, marginal.std**2)

    @property
    def total(self) -> float:
        """The sum of all counts."""
        return float(self.values.sum())

    def project(self, attributes: Sequence[str]) -> NDArray[np.float64]:
        """The counts over some of the attributes, in the order given."""
        gone = tuple(axis for axis, name in enumerate(self.clique) if name not in attributes)
        kept = [name for name in self.clique if name in attributes]
        summed = self.values.sum(axis=gone)
        projected: NDArray[np.float64] = np.transpose(summed, [kept.index(name) for name in attributes])
        return projected


# ── Several tables of the same attributes make one ──


EXACT_PRECISION = 1e12
"""How many times the best noisy table a table without noise counts: as if alone, to the precision of a float, and
still a number to calculate with."""


def relative_precisions(variances: Sequence[float]) -> NDArray[np.float64]:
    """How much tables are worth beside each other: the inverse of their variances, at most 1 if there is noise.

    A variance of zero counts ``EXACT`` times the best other one, an infinite one so many times less.
    """
    given = np.array(variances, np.float64)
    noisy = given[(given > 0) & np.isfinite(given)]
    with np.errstate(divide="ignore"):
        relative = (noisy.min() if len(noisy) else 1.0) / given
    return np.clip(relative, 1 / EXACT_PRECISION, EXACT_PRECISION)


def average_estimates(estimates: Sequence[Estimate]) -> list[Estimate]:
    """One table for each set of attributes: the mean weighted by inverse variance, which has the least variance.

    Its axes are those of the first of its tables, and the sets come in the order of their first tables.
    """
    same: dict[frozenset[str], list[Estimate]] = defaultdict(list)
    for estimate in estimates:
        same[frozenset(estimate.clique)].append(estimate)
    return [tables[0] if len(tables) == 1 else _weighted_mean(tables) for tables in same.values()]


def _weighted_mean(tables: Sequence[Estimate]) -> Estimate:
    clique = tables[0].clique
    variances = [table.variance for table in tables]
    values = np.average([table.project(clique) for table in tables], axis=0, weights=relative_precisions(variances))
    with np.errstate(divide="ignore"):
        variance = 1 / np.sum(1 / np.array(variances, np.float64))
    return Estimate(clique, np.asarray(values, np.float64), float(variance))
