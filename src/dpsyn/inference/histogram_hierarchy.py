"""One histogram from noisy counts at several resolutions: cells, bins, and any groups of cells in between.

Counts over coarse groups are precise sums, counts over fine groups show spikes and shape. Generalized least squares
combines all of them into the best linear unbiased estimate. ``cell_counts`` makes it non-negative.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError

Values = NDArray[np.float64]
Codes = NDArray[np.int64]

MAX_COMBINED_ATOMS = 1_000
"""The maximum number of atoms of partitions that cross each other whose covariance is computed, which takes a tenth of
a second."""

MIN_INFORMATION = 0.5
"""A partition that crosses others counts by what it has in common with them, unless it tells this share of what one of
them does."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupCounts:
    """Noisy counts of groups of cells.

    Attributes:
        group_of: the group of every cell; groups are numbered from 0 without gaps.
        values: the noisy count of each group.
        variance: the variance of the noise of each count.
    """

    group_of: Codes
    values: Values
    variance: float

    def __post_init__(self) -> None:
        if int(self.group_of.max()) + 1 != len(self.values) or not self.variance > 0:
            raise InternalError("a histogram needs a noisy count for each of its groups")


@dataclass(frozen=True, slots=True, eq=False)
class TreeLevel:
    """A level of nested groups, given what was measured about them and inside them.

    Attributes:
        parent_of: the group of the next coarser level that each group belongs to.
        variances: the variance of each group's count, from its own measurement and those inside it.
        sums: for each parent, the sum of the variances of its groups.
    """

    parent_of: Codes
    variances: Values
    sums: Values


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """A measured partition of the atoms into groups.

    Attributes:
        group_of: the group of every atom.
        values: the noisy count of each group.
        variance: the mean variance of their noise.
        measured: whether the counts were measured; false for atoms whose counts follow from those of other partitions.
    """

    group_of: Codes
    values: Values
    variance: float
    measured: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """The best linear unbiased estimate of a histogram.

    Attributes:
        atom_of: the atom of every cell. Atoms are the finest groups that the measurements distinguish.
        values: the estimated count of each atom; it may be negative.
        spread: where the estimate's covariance comes from: levels of nested groups, atoms first; or, if measured
            partitions cross, the covariance matrix itself.
        partitions: the measured partitions of atoms, the finest first.
    """

    atom_of: Codes
    values: Values
    spread: tuple[TreeLevel, ...] | Values
    partitions: tuple[Partition, ...]

    def sums(self, group_of: Codes) -> tuple[Values, Values] | None:
        """The estimated counts of groups of atoms, given the group of every cell, and their variances.

        None if an atom has cells of several groups.
        """
        group = np.zeros(len(self.values), np.int64)
        group[self.atom_of] = group_of
        if not np.array_equal(group[self.atom_of], group_of):
            return None
        return self.sum_atoms(group)

    def sum_atoms(self, group: Codes) -> tuple[Values, Values]:
        """The estimated counts of groups of atoms, given the group of every atom, and their variances."""
        atoms = np.arange(len(group))
        return self.sum_parts(group, atoms, np.ones(len(group)), int(group.max()) + 1)

    def sum_parts(self, output: Codes, atom: Codes, part: Values, size: int) -> tuple[Values, Values]:
        """The estimated counts of sums of parts of atoms, and their variances.

        Args:
            output: the sum that each part belongs to; pairs of a sum and an atom are unique.
            atom: the atom of each part.
            part: the part of the atom's count.
            size: the number of sums.
        """
        sums = as_floats(np.bincount(output, part * self.values[atom], size))
        if isinstance(self.spread, tuple):
            return sums, self._tree_variances(output, atom, part, size, self.spread)
        weights = np.zeros((size, len(self.values)))
        weights[output, atom] = part
        return sums, np.maximum(((weights @ self.spread) * weights).sum(axis=1), 0.0)

    @staticmethod
    def _tree_variances(output: Codes, node: Codes, weight: Values, size: int, levels: Sequence[TreeLevel]) -> Values:
        """The variances of sums of parts of atoms, from the levels of a tree.

        Given the count of a parent, its groups have the covariance diag(v) − vvᵀ/Σv and depend on that count by the
        fractions v/Σv. So a sum with weights w of the groups has a part inside the parent, and counts for the parent
        with the weight Σvw/Σv.
        """
        variances = np.zeros(size)
        for level in levels:
            own = level.variances[node]
            variances += np.bincount(output, own * weight**2, size)
            if not len(level.sums):
                break
            pairs, pair_of = np.unique(output * len(level.sums) + level.parent_of[node], return_inverse=True)
            output, node = np.divmod(pairs, len(level.sums))
            inside = np.bincount(pair_of, own * weight)
            variances -= np.bincount(output, inside**2 / level.sums[node], size)
            weight = inside / level.sums[node]
        return np.maximum(variances, 0.0)

    @property
    def variances(self) -> Values:
        """The variance of each atom's count."""
        return self.sum_atoms(np.arange(len(self.values)))[1]

    @property
    def parent_of(self) -> Codes:
        """The group of each atom in the second finest partition; 0 if there is one only."""
        if len(self.partitions) < 2:
            return np.zeros(len(self.values), np.int64)
        return self.partitions[1].group_of


def as_floats(values: NDArray[Any]) -> Values:
    """The values as floats."""
    return np.asarray(values, np.float64)


# ── least squares ────────────────────────────────────────────────────────────────────────────────────────────


def combine_counts(evidence: Sequence[GroupCounts]) -> Histogram:
    """Combine noisy counts at several resolutions by generalized least squares.

    Nested partitions form a tree, on which least squares take two passes (Hay et al.: *Boosting the accuracy of
    differentially private histograms through consistency*, 2010). A partition that crosses one that tells more counts
    by what both have in common. If both tell about the same, all are combined by their covariance matrix.
    """
    averaged = sorted(_average_same_groups(evidence), key=lambda counts: -len(counts.values))
    chain, crossing = _nest(averaged)
    if any(_information(counts) > MIN_INFORMATION * _information(chain[-1]) for counts in crossing):
        atom_of = functools.reduce(refine, [counts.group_of for counts in averaged])
        if int(atom_of.max()) < MAX_COMBINED_ATOMS:
            return _combine_crossing(averaged, atom_of)
    return _combine_tree(_merge_to_unions(chain, crossing))


@dataclass(frozen=True, slots=True, eq=False)
class _NestedCounts:
    """Noisy counts of groups that are unions of finer groups; ``variances`` has that of each."""

    group_of: Codes
    values: Values
    variances: Values


def _nest(averaged: Sequence[GroupCounts]) -> tuple[list[GroupCounts], list[GroupCounts]]:
    """Nested partitions from fine to coarse, and those that cross them.

    Of two partitions that cross, the one stays that tells more: more groups, or less noise.
    """
    chain, crossing = [averaged[0]], []
    for counts in averaged[1:]:
        while (
            len(chain) > 1
            and _information(counts) > _information(chain[-1])
            and not is_union(counts.group_of, chain[-1].group_of)
        ):
            crossing.append(chain.pop())
        (chain if is_union(counts.group_of, chain[-1].group_of) else crossing).append(counts)
    return chain, crossing


def _information(counts: GroupCounts) -> float:
    return len(counts.values) / counts.variance


def _merge_to_unions(chain: Sequence[GroupCounts], crossing: Sequence[GroupCounts]) -> list[_NestedCounts]:
    """The chain, and what crossing partitions have in common with it: their groups are merged until they are unions."""
    nested = [_NestedCounts(each.group_of, each.values, np.full(len(each.values), each.variance)) for each in chain]
    for counts in crossing:
        merged = join_partitions(nested[-1].group_of, counts.group_of)
        group = merged[first_cells(counts.group_of)]
        sums, members = np.bincount(group, counts.values), np.bincount(group)
        nested.append(_NestedCounts(merged, as_floats(sums), as_floats(counts.variance * members)))
    return nested


def is_union(coarse: Codes, fine: Codes) -> bool:
    """Whether groups are unions of finer groups."""
    return np.array_equal(coarse[first_cells(fine)][fine], coarse)


def join_partitions(one: Codes, other: Codes) -> Codes:
    """The finest partition that is coarser than both; groups in the order of their first cells."""
    group_of = one
    while True:
        first = np.full(int(other.max()) + 1, len(one))
        np.minimum.at(first, other, group_of)
        merged = first[other]
        again = np.full(int(one.max()) + 1, len(one))
        np.minimum.at(again, one, merged)
        merged = again[one]
        if np.array_equal(merged, group_of):
            break
        group_of = merged
    return refine(group_of, np.zeros(len(group_of), np.int64))


def _combine_tree(chain: Sequence[_NestedCounts]) -> Histogram:
    """Least squares on nested partitions: estimates from below, then what parents know from above."""
    finest = chain[0]
    first_cell = first_cells(finest.group_of)
    estimates, variances = [finest.values], [finest.variances]
    parents = []
    for fine, coarse in pairwise(chain):
        parent_of = coarse.group_of[first_cells(fine.group_of)]
        sums = np.bincount(parent_of, estimates[-1], len(coarse.values))
        below = np.bincount(parent_of, variances[-1], len(coarse.values))
        weight = below / (below + coarse.variances)
        parents.append((parent_of, sums, below))
        estimates.append(as_floats(sums + weight * (coarse.values - sums)))
        variances.append(as_floats(below * (1 - weight)))
    values = estimates[-1]
    for (parent_of, sums, below), own, variance in zip(
        reversed(parents), reversed(estimates[:-1]), reversed(variances[:-1]), strict=True
    ):
        values = own + ((values - sums) / below)[parent_of] * variance
    levels = [
        TreeLevel(parent_of, variance, as_floats(below))
        for (parent_of, _, below), variance in zip(parents, variances, strict=False)
    ]
    top = TreeLevel(np.zeros(len(variances[-1]), np.int64), variances[-1], np.zeros(0))
    partitions = tuple(
        Partition(counts.group_of[first_cell], counts.values, float(counts.variances.mean())) for counts in chain
    )
    return Histogram(finest.group_of, as_floats(values), (*levels, top), partitions)


def _combine_crossing(averaged: Sequence[GroupCounts], atom_of: Codes) -> Histogram:
    """Least squares on partitions that cross, by the covariance matrix of their atoms."""
    atoms, first_cell = int(atom_of.max()) + 1, first_cells(atom_of)
    precision, projected = np.zeros((atoms, atoms)), np.zeros(atoms)
    for counts in averaged:
        group = counts.group_of[first_cell]
        precision += (group[:, None] == group[None, :]) / counts.variance
        projected += counts.values[group] / counts.variance
    if len(averaged[0].values) < atoms:  # then some atoms were not measured by themselves; they are spread evenly
        precision[np.diag_indices(atoms)] += 1e-6 / max(counts.variance for counts in averaged)
    covariance = as_floats(np.linalg.inv(precision))
    partitions = tuple(Partition(counts.group_of[first_cell], counts.values, counts.variance) for counts in averaged)
    if len(averaged[0].values) < atoms:
        atoms_apart = Partition(np.arange(atoms), covariance @ projected, averaged[0].variance, measured=False)
        partitions = (atoms_apart, *partitions)
    return Histogram(atom_of, covariance @ projected, covariance, partitions)


def first_cells(group_of: Codes) -> Codes:
    """The first cell of each group."""
    first = np.zeros(int(group_of.max()) + 1, np.int64)
    first[group_of[::-1]] = np.arange(len(group_of))[::-1]
    return first


def _average_same_groups(evidence: Sequence[GroupCounts]) -> list[GroupCounts]:
    """One entry for each partition: counts of the same groups are averaged by inverse variance."""
    by_groups: dict[bytes, list[GroupCounts]] = {}
    for counts in evidence:
        by_groups.setdefault(counts.group_of.astype(np.int64).tobytes(), []).append(counts)
    averaged = []
    for same in by_groups.values():
        precision = sum(1 / counts.variance for counts in same)
        mean = sum(counts.values / counts.variance for counts in same) / precision
        averaged.append(GroupCounts(same[0].group_of, np.asarray(mean, np.float64), 1 / precision))
    return averaged


def refine(one: Codes, other: Codes) -> Codes:
    """The coarsest partition that is finer than both; groups in the order of their first cells."""
    _, first, group = np.unique(one * (int(other.max()) + 1) + other, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first, kind="stable"), kind="stable")
    return np.asarray(rank[group], np.int64)
