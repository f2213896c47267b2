"""What records are drawn toward: tables of counts, and how strongly each is followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference.gibbs.layout import CliqueIndices, order_by_size
from dpsyn.marginals import Estimate

CountArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A table of counts over attributes given by their places.

    Attributes:
        indices: the attributes, the one with most values last.
        values: the counts; some may be negative.
        variance: of the noise in each cell.
    """

    indices: CliqueIndices
    values: CountArray
    variance: float

    def project_nonnegative(self) -> CountArray:
        """The nearest table without negative counts that has the same total: all less a constant, then clipped."""
        total = max(float(self.values.sum()), 0.0)
        falling = np.sort(self.values, axis=None)[::-1]
        excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
        kept = np.flatnonzero(falling > excess)
        nearest: CountArray = np.maximum(self.values - (excess[kept[-1]] if len(kept) else 0.0), 0.0)
        return nearest

    def shrink_interaction(self) -> CountArray:
        """The same, its interaction shrunk by what noise makes of none: positive-part James and Stein (1961).

        What lies between the table and the independent one of its sides is multiplied by 1 − (degrees of freedom) ·
        variance / (its squared length).
        """
        values = self.project_nonnegative()
        if values.ndim < 2 or self.variance <= 0 or values.sum() <= 0:
            return values
        independent = _independence_table(values)
        length = float(np.sum((values - independent) ** 2))
        noise = float(np.prod([size - 1 for size in values.shape])) * self.variance
        kept = 1 - noise / length if length > noise else 0.0
        nearest: CountArray = independent + kept * (values - independent)
        return nearest

    def surely_empty_cells(self) -> NDArray[np.bool_]:
        """Cells that hold no record beyond three standard deviations: known zeros, for noise is rarely so small."""
        empty: NDArray[np.bool_] = self.values + 3 * np.sqrt(self.variance) < 0.5
        return empty


def _independence_table(counts: CountArray) -> CountArray:
    """The table that its attributes would have if each were as it is and told nothing of the others."""
    total = float(counts.sum())
    table = np.full((1,) * counts.ndim, total)
    for axis in range(counts.ndim):
        others = tuple(other for other in range(counts.ndim) if other != axis)
        table = table * (counts.sum(axis=others, keepdims=True) / total)
    return table


def build_targets(tables: Sequence[Estimate], names: Sequence[str], sizes: Sequence[int]) -> tuple[Target, ...]:
    """One target for each set of attributes: tables of the same attributes are averaged by their variance."""
    places = {name: place for place, name in enumerate(names)}
    found: dict[CliqueIndices, Target] = {}
    for table in tables:
        if any(name not in places for name in table.clique) or not table.clique:
            raise InternalError(f"a table of {', '.join(table.clique) or 'no attributes'} is not of this model")
        clique = order_by_size((places[name] for name in table.clique), sizes)
        if tuple(sizes[place] for place in clique) != table.project([names[place] for place in clique]).shape:
            raise InternalError(f"the table of {', '.join(table.clique)} does not fit the sizes of its attributes")
        target = Target(clique, table.project([names[place] for place in clique]), table.variance)
        found[clique] = _average_targets(found[clique], target) if clique in found else target
    return tuple(found[clique] for clique in sorted(found, key=lambda clique: (len(clique), clique)))


def estimate_total(targets: Sequence[Target]) -> float:
    """The number of records that the tables speak of, each weighted by how well it knows; one at least.

    Tables without records are of no model and count as unknown.
    """
    known = [(float(target.values.sum()), target.values.size * target.variance) for target in targets]
    known = [(total, noise) for total, noise in known if total > 0] or [(1.0, 0.0)]
    exact = [total for total, noise in known if noise <= 0]
    if exact:
        return max(1.0, float(np.mean(exact)))
    totals, noises = np.transpose(known)
    return max(1.0, float(np.average(totals, weights=1 / noises)))


def expected_noise_distance(targets: Sequence[Target], total: float) -> float:
    """The mean total variation distance that the noise of the tables is expected to make: σ√(2/π) in every cell."""
    apart = [target.values.size * np.sqrt(2 / np.pi * target.variance) / (2 * total) for target in targets]
    return float(np.mean(apart))


def _average_targets(one: Target, other: Target) -> Target:
    if one.variance + other.variance <= 0:
        return Target(one.indices, (one.values + other.values) / 2, 0.0)
    share = other.variance / (one.variance + other.variance)
    return Target(one.indices, share * one.values + (1 - share) * other.values, share * one.variance)
