"""The targets of a fit: tables of counts over indexed attributes or levels of them, their total and their noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference.gibbs.layout import CliqueIndices, Level, order_by_size
from dpsyn.marginals import Estimate

CountArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A table of counts over variables given by their indices.

    Attributes:
        indices: the variables, attributes or levels, the one with most values last.
        values: the counts; some may be negative.
        variance: the variance of the noise of each cell.
    """

    indices: CliqueIndices
    values: CountArray
    variance: float

    def project_nonnegative(self) -> CountArray:
        """The nearest non-negative table with the same total: norm-sub, that is minus a constant and clipped at 0."""
        total = max(float(self.values.sum()), 0.0)
        falling = np.sort(self.values, axis=None)[::-1]
        excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
        kept = np.flatnonzero(falling > excess)
        nearest: CountArray = np.maximum(self.values - (excess[kept[-1]] if len(kept) else 0.0), 0.0)
        return nearest

    def shrink_interaction(self) -> CountArray:
        """The same with its interaction shrunk by what noise alone would cause: positive-part James-Stein (1961).

        The difference between the table and the product of its one-way marginals is multiplied by
        1 − (degrees of freedom) · variance / (its squared length).
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
        """Cells whose count is three standard deviations below 0.5: surely empty. Noise is rarely so small."""
        empty: NDArray[np.bool_] = self.values + 3 * np.sqrt(self.variance) < 0.5
        return empty


def _independence_table(counts: CountArray) -> CountArray:
    """The table with the same one-way marginals and independent attributes."""
    total = float(counts.sum())
    table = np.full((1,) * counts.ndim, total)
    for axis in range(counts.ndim):
        others = tuple(other for other in range(counts.ndim) if other != axis)
        table = table * (counts.sum(axis=others, keepdims=True) / total)
    return table


def build_targets(
    tables: Sequence[Estimate], names: Sequence[str], sizes: Sequence[int]
) -> tuple[tuple[Target, ...], tuple[Level, ...]]:
    """One target for each set of variables, and the levels among these.

    Tables of the same attributes at the same levels are averaged by inverse variance.
    """
    axes = {name: axis for axis, name in enumerate(names)}
    levels = collect_levels([table.levels for table in tables], names, sizes)
    all_sizes = [*sizes, *(level.size for level in levels)]
    targets: dict[CliqueIndices, Target] = {}
    for table in tables:
        if any(name not in axes for name in table.clique) or not table.clique:
            raise InternalError(f"a table of {', '.join(table.clique) or 'no attributes'} is not of this model")
        variables = [find_variable(axes[name], table.levels.get(name), sizes, levels) for name in table.clique]
        clique = order_by_size(variables, all_sizes)
        values = np.transpose(table.values, [variables.index(variable) for variable in clique])
        if tuple(all_sizes[variable] for variable in clique) != values.shape:
            raise InternalError(f"the table of {', '.join(table.clique)} does not fit the sizes of its attributes")
        target = Target(clique, values, table.variance)
        targets[clique] = _average_targets(targets[clique], target) if clique in targets else target
    ordered = sorted(targets, key=lambda clique: (len(clique), clique))
    return tuple(targets[clique] for clique in ordered), levels


def collect_levels(
    groups: Sequence[Mapping[str, NDArray[np.int64]]], names: Sequence[str], sizes: Sequence[int]
) -> tuple[Level, ...]:
    """The distinct levels of tables, by attribute, the finest first."""
    found = {
        (names.index(name), group_of.astype(np.int64).tobytes()): Level(names.index(name), group_of.astype(np.int64))
        for of_table in groups
        for name, group_of in of_table.items()
        if name in names
    }
    for level in found.values():
        if len(level.group_of) != sizes[level.attribute]:
            raise InternalError(f"a level of {names[level.attribute]!r} does not have a group for each of its values")
    return tuple(found[key] for key in sorted(found, key=lambda key: (key[0], -found[key].size, key[1])))


def find_variable(
    attribute: int, group_of: NDArray[np.int64] | None, sizes: Sequence[int], levels: Sequence[Level]
) -> int:
    """The index of an attribute, or of the level of it with these groups."""
    if group_of is None:
        return attribute
    for index, level in enumerate(levels, len(sizes)):
        if level.attribute == attribute and np.array_equal(level.group_of, group_of):
            return index
    raise InternalError("a table has a level that the model lacks")


def estimate_total(targets: Sequence[Target]) -> float:
    """The number of records: the mean of the targets' totals, weighted by inverse variance; at least 1.

    Targets whose total is not positive are ignored.
    """
    pairs = [(float(target.values.sum()), target.values.size * target.variance) for target in targets]
    pairs = [(total, variance) for total, variance in pairs if total > 0] or [(1.0, 0.0)]
    exact = [total for total, variance in pairs if variance <= 0]
    if exact:
        return max(1.0, float(np.mean(exact)))
    totals, variances = np.transpose(pairs)
    return max(1.0, float(np.average(totals, weights=1 / variances)))


def expected_noise_distance(targets: Sequence[Target], total: float) -> float:
    """The expected mean total variation distance that the noise of the tables causes: σ√(2/π) in every cell."""
    distances = [target.values.size * np.sqrt(2 / np.pi * target.variance) / (2 * total) for target in targets]
    return float(np.mean(distances))


def _average_targets(one: Target, other: Target) -> Target:
    if one.variance + other.variance <= 0:
        return Target(one.indices, (one.values + other.values) / 2, 0.0)
    share = other.variance / (one.variance + other.variance)
    return Target(one.indices, share * one.values + (1 - share) * other.values, share * one.variance)
