"""One histogram from noisy counts at several resolutions: cells, bins, and any groups of cells in between.

Counts over coarse groups are precise sums, counts over fine groups show spikes and shape. Generalized least squares
combines all of them into the best linear unbiased estimate. It is then made non-negative from the top down: first the
sums of the *parents*, a partition of the cells into groups that were measured together, then the counts inside each
parent, whose sum stays. So a spike is never diluted by the thin cells around it, and thin cells never add up to more
than was measured for all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference.empirical_bayes import posterior_mean_counts
from dpsyn.inference.nonnegativity import norm_sub

Values = NDArray[np.float64]
Codes = NDArray[np.int64]

CLEAR_SIGMAS = 4.0
"""A count this many standard deviations above an even spread is a spike of its own. Among a thousand cells, noise alone
reaches it once in thirty histograms."""


MAX_COMBINED_ATOMS = 1_000
"""The maximum number of atoms of three or more partitions whose covariance is computed, which takes a tenth of a
second."""


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
class Histogram:
    """The best linear unbiased estimate of a histogram.

    Attributes:
        atom_of: the atom of every cell. Atoms are the finest groups that the measurements distinguish.
        values: the estimated count of each atom; it may be negative.
        covariance: their covariance, as a matrix; or as a vector of variances as measured, from which ``known`` is
            subtracted.
        parent_of: the parent of each atom.
        known: with a vector, what the sum of each parent lowers every covariance inside it by.
    """

    atom_of: Codes
    values: Values
    covariance: Values
    parent_of: Codes
    known: Values = field(default_factory=lambda: np.zeros(1))

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
        size = int(group.max()) + 1
        sums = np.bincount(group, self.values, size)
        if self.covariance.ndim == 1:
            inside = np.bincount(group * len(self.known) + self.parent_of, minlength=size * len(self.known))
            lowered = (inside.reshape(size, -1) ** 2) @ self.known
            return _as_floats(sums), np.maximum(np.bincount(group, self.covariance, size) - lowered, 0.0)
        half = np.zeros((size, len(group)))
        np.add.at(half, group, self.covariance)
        variances = np.zeros(size)
        np.add.at(variances, group, half[group, np.arange(len(group))])
        return _as_floats(sums), np.maximum(variances, 0.0)

    @property
    def variances(self) -> Values:
        """The variance of each atom's count."""
        return self.covariance - self.known[self.parent_of] if self.covariance.ndim == 1 else np.diag(self.covariance)

    def to_weights(self, widths: Values) -> Values:
        """Non-negative counts of all cells.

        Args:
            widths: the number of values in each cell; counts inside an atom are spread in proportion to them.
        """
        atom_widths = _as_floats(np.bincount(self.atom_of, widths, len(self.values)))
        counts = self._nonnegative_atoms(atom_widths)
        weights: Values = counts[self.atom_of] * widths / atom_widths[self.atom_of]
        return weights

    def _nonnegative_atoms(self, widths: Values) -> Values:
        parents = int(self.parent_of.max()) + 1
        stds = np.sqrt(self.variances)
        if parents == 1 or parents == len(self.values):
            return _scale_to_total(posterior_mean_counts(self.values, float(np.median(stds))), self.values, stds)
        sums, variances = self.sum_atoms(self.parent_of)
        parent_stds = np.sqrt(variances)
        totals = _scale_to_total(posterior_mean_counts(sums, float(np.median(parent_stds))), sums, parent_stds)
        result = np.zeros(len(self.values))
        order = np.argsort(self.parent_of, kind="stable")
        for members, total in zip(np.split(order, np.cumsum(np.bincount(self.parent_of))[:-1]), totals, strict=True):
            result[members] = spread_in_parent(self.values[members], stds[members], widths[members], float(total))
        return result


def _scale_to_total(means: Values, values: Values, stds: Values) -> Values:
    """Posterior means with the sum of the noisy counts: what they lack or exceed is shared by unclear counts."""
    total = max(float(values.sum()), 0.0)
    clear = values >= CLEAR_SIGMAS * stds
    rest = total - float(means[clear].sum())
    unclear = float(means[~clear].sum())
    if rest <= 0 or unclear <= 0:
        return np.asarray(np.where(clear, means, 0.0) * (total / max(float(means[clear].sum()), 1e-12)), np.float64)
    return np.asarray(np.where(clear, means, means * (rest / unclear)), np.float64)


def spread_in_parent(values: Values, stds: Values, widths: Values, total: float) -> Values:
    """Non-negative counts inside a parent, whose sum is ``total``.

    Spikes, which are far above an even spread, keep their counts. The others are shrunk toward an even spread by what
    noise alone would cause (positive-part James-Stein 1961), and norm-sub makes them non-negative.
    """
    if total <= 0:
        return np.zeros(len(values))
    shifted = values + (total - float(values.sum())) * stds**2 / max(float((stds**2).sum()), 1e-12)
    spikes = np.zeros(len(values), np.bool_)
    while True:
        rest = max(total - float(shifted[spikes].sum()), 0.0)
        others = np.where(spikes, 0.0, widths)
        even = rest * others / max(float(others.sum()), 1e-12)
        more = ~spikes & (shifted > even + CLEAR_SIGMAS * stds)
        if not more.any():
            break
        spikes |= more
    result = np.where(spikes, shifted, 0.0)
    thin = np.flatnonzero(~spikes)
    if not len(thin) or rest <= 0:
        return np.asarray(result * (total / max(float(result.sum()), 1e-12)), np.float64)
    deviations = shifted[thin] - even[thin]
    deviations -= deviations.mean()
    noise = float((stds[thin] ** 2).sum()) * max(len(thin) - 1, 0) / len(thin)
    length = float((deviations**2).sum())
    kept = 1 - noise / length if length > noise else 0.0
    result[thin] = norm_sub(even[thin] + kept * deviations, rest)
    return result


def _as_floats(values: NDArray[Any]) -> Values:
    return np.asarray(values, np.float64)


def combine_counts(evidence: Sequence[GroupCounts]) -> Histogram:
    """Combine noisy counts at several resolutions by generalized least squares.

    Of the measured partitions, the second finest holds the parents. Of more than two partitions with many
    atoms, such as the values of a long list, the two finest are combined.
    """
    averaged = sorted(_average_same_groups(evidence), key=lambda counts: -len(counts.values))
    if len(averaged) == 1:
        only = averaged[0]
        variance = np.full(len(only.values), only.variance)
        return Histogram(only.group_of, only.values, variance, np.zeros(len(only.values), np.int64))
    atom_of = functools.reduce(_refine, [counts.group_of for counts in averaged])
    atoms = int(atom_of.max()) + 1
    if len(averaged) == 2 or atoms > MAX_COMBINED_ATOMS:
        combined = _combine_nested(averaged)
        if combined is not None:
            return combined
    first_cell = _first_cells(atom_of)
    precision, projected = np.zeros((atoms, atoms)), np.zeros(atoms)
    for counts in averaged:
        group = counts.group_of[first_cell]
        precision += (group[:, None] == group[None, :]) / counts.variance
        projected += counts.values[group] / counts.variance
    if len(averaged[0].values) < atoms:  # then some atoms were not measured by themselves; they are spread evenly
        precision[np.diag_indices(atoms)] += 1e-6 / max(counts.variance for counts in averaged)
    covariance = _as_floats(np.linalg.inv(precision))
    return Histogram(atom_of, covariance @ projected, covariance, averaged[1].group_of[first_cell])


def _combine_nested(averaged: Sequence[GroupCounts]) -> Histogram | None:
    """Combine the finest partition with the finest one whose groups are unions of its groups; None if there is none.

    All atoms of a group are shifted equally, so that their sum becomes the weighted mean of both measurements.
    """
    finest, *others = averaged
    first_cell, atoms = _first_cells(finest.group_of), len(finest.values)
    variances = np.full(atoms, finest.variance)
    for counts in others:
        parent = counts.group_of[first_cell]
        if np.array_equal(parent[finest.group_of], counts.group_of):
            members, sums = np.bincount(parent), np.bincount(parent, finest.values)
            weight = finest.variance * members / (finest.variance * members + counts.variance)
            values = finest.values + ((counts.values - sums) * weight / members)[parent]
            return Histogram(finest.group_of, values, variances, parent, finest.variance * weight / members)
    return None


def _first_cells(group_of: Codes) -> Codes:
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


def _refine(one: Codes, other: Codes) -> Codes:
    """The coarsest partition that is finer than both; groups in the order of their first cells."""
    _, first, group = np.unique(one * (int(other.max()) + 1) + other, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first, kind="stable"), kind="stable")
    return np.asarray(rank[group], np.int64)
