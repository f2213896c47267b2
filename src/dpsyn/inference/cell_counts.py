"""Non-negative counts of cells, from the best linear estimate of a histogram.

The estimate is made non-negative from the top down: first the counts of coarse groups that were measured together,
then those inside each of them, whose sum stays. So a spike is never diluted by the thin cells around it, and thin cells
never add up to more than was measured for all of them.

Where cells are in order, as those of numbers and dates are, more is known. Neighbors inform each other about the coarse
groups and about the slope of the density inside them (``density_smoothing``). Round values are more frequent than
others. A spike is in the count of its cell and of every range around it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.inference.density_smoothing import estimate_ordered_counts
from dpsyn.inference.empirical_bayes import normal_quantiles, posterior_mean_counts
from dpsyn.inference.histogram_hierarchy import Histogram, Partition, as_floats, first_cells, is_union, refine
from dpsyn.inference.nonnegativity import norm_sub

Values = NDArray[np.float64]
Codes = NDArray[np.int64]

CLEAR_SIGMAS = 4.0
"""A count this many standard deviations above an even spread is a spike of its own. Among a thousand cells, noise alone
reaches it once in thirty histograms."""

LIKELY_SIGMAS, MAX_SPIKES, SPIKE_ROUNDS = 3.0, 200, 2
"""The standard deviations of a value that is likely to be a spike; the maximum number of spikes of a histogram; and how
often they are looked for, the second time by an estimate of the others without them."""

FALSE_SPIKES = 0.05
"""The part of the spikes that may be noise (the false discovery rate of Benjamini and Hochberg 1995), if the density is
as smooth as expected; in practice noise passes somewhat more often."""

DISPERSIONS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0)
"""The relative standard deviations of true counts from an even spread inside their parents that are tried."""

MAX_SUM_SHARE = 0.25
"""Counts of ranges are followed if their variance is at most this part of that of sums of finer counts."""

USUAL_DISPERSION = 0.2
"""The relative standard deviation by which true counts of ranges differ from expected ones, apart from sampling."""

HEAVY_SHARE, HEAVY_SIGMAS, MIN_PARTS = 1 / 10, 16.0, 8
"""A range that holds this share of the rows and so many standard deviations of the noise is divided before it is made
non-negative, if it has at least so many parts: it is coarser than the noise demands, because cells were not finer when
it was measured."""

MAX_SHIFT, NOT_EMPTY_SIGMAS = 1.5, 0.5
"""A count inside a range is moved toward what is expected by so many standard deviations at most, if at least so many
are expected."""

MAX_SLOPE = 3.0
"""The logarithm of a density changes by at most this much from the middle of a group to its edge."""

CLASS_ROUNDS, CLASS_SIGMAS = 10, 2.0
"""Rounds in which the factors of round values are estimated, and by how many standard deviations a class of values must
differ from what is expected to get one."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """What is public about the cells of an attribute.

    Attributes:
        widths: the number of values in each cell.
        ordered: how many cells, from the first, are in the order of their values. That of missing is not, and none are
            for categories.
        roundness: for each cell, a number that is the larger the rounder its value is; 0 for a cell of several values.
        likely_spikes: whether a cell is a value that often stands for something else, such as 0, a bound or 99 999.
    """

    widths: Values
    ordered: int
    roundness: Codes
    likely_spikes: NDArray[np.bool_]

    @classmethod
    def without_order(cls, widths: Values) -> Cells:
        """Cells of categories."""
        return cls(widths, 0, np.zeros(len(widths), np.int64), np.zeros(len(widths), np.bool_))


def estimate_cell_counts(histogram: Histogram, cells: Cells, total: float | None = None) -> Values:
    """Non-negative counts of all cells; counts inside an atom are spread by what is known of the density there.

    Args:
        histogram: the linear estimate.
        cells: what is public about the cells.
        total: the sum of all counts, if it is known better than from the histogram; for cells in order.
    """
    partitions = _nested_ranges(histogram, cells) if cells.ordered else None
    if partitions is not None:
        return _spread_ordered(histogram, cells, partitions, total)
    atom_of = histogram.atom_of
    widths = as_floats(np.bincount(atom_of, cells.widths, len(histogram.values)))
    counts = _spread_unordered(histogram, widths)
    weights: Values = counts[atom_of] * cells.widths / widths[atom_of]
    return weights


# ── cells without an order ───────────────────────────────────────────────────────────────────────────────────


def _spread_unordered(histogram: Histogram, widths: Values) -> Values:
    """Non-negative counts of atoms, by those of their parents in the second finest partition."""
    parent_of = histogram.parent_of
    parents = int(parent_of.max()) + 1
    stds = np.sqrt(histogram.variances)
    if parents == 1 or parents == len(histogram.values):
        return _scale_to_total(posterior_mean_counts(histogram.values, float(np.median(stds))), histogram.values, stds)
    sums, variances = histogram.sum_atoms(parent_of)
    parent_stds = np.sqrt(variances)
    totals = _scale_to_total(posterior_mean_counts(sums, float(np.median(parent_stds))), sums, parent_stds)
    result = np.zeros(len(histogram.values))
    order = np.argsort(parent_of, kind="stable")
    for members, total in zip(np.split(order, np.cumsum(np.bincount(parent_of))[:-1]), totals, strict=True):
        result[members] = spread_in_parent(histogram.values[members], stds[members], widths[members], float(total))
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


# ── cells in order ───────────────────────────────────────────────────────────────────────────────────────────


def _nested_ranges(histogram: Histogram, cells: Cells) -> list[Partition] | None:
    """The partitions by which ordered counts are made non-negative, from coarse to fine.

    A coarse partition is left out if it is noisier than a finer one and its counts say little more than the sums of
    finer counts do, which have the variance of all of these together. So is one that crosses a finer one. None if a
    partition has groups that are not ranges of cells.
    """
    kept = [histogram.partitions[0]]
    for partition in histogram.partitions[1:]:
        is_precise = all(
            partition.variance < max(1.01, MAX_SUM_SHARE * len(finer.values) / len(partition.values)) * finer.variance
            for finer in kept
        )
        if is_precise and is_union(partition.group_of, kept[-1].group_of):
            kept.append(partition)
    are_ranges = all(_are_ranges(partition.group_of[histogram.atom_of], cells.ordered) for partition in kept)
    return kept[::-1] if are_ranges else None


def _are_ranges(group_of: Codes, ordered: int) -> bool:
    """Whether groups are ranges of ordered cells, numbered in their order, and none holds unordered cells as well."""
    inside = group_of[:ordered]
    if (np.diff(inside) < 0).any() or inside[0] != 0 or (np.diff(inside) > 1).any():
        return False
    return not np.isin(group_of[ordered:], inside).any()


def _spread_ordered(histogram: Histogram, cells: Cells, partitions: Sequence[Partition], total: float | None) -> Values:
    """Non-negative counts of ordered cells: of the coarsest ranges first, then of atoms inside them.

    Spikes are found by what the coarsest ranges let expect, and the others are estimated again without them.
    """
    atom_of = histogram.atom_of
    others, spikes = histogram, np.zeros(len(histogram.values))
    expected = _expect_inside(others, cells, partitions, total)
    if len(partitions) == 1:
        return expected.density
    likely = _sum_cells(cells.likely_spikes, atom_of) > 0
    finer = _finer_partitions(histogram, partitions[0])
    for _ in range(SPIKE_ROUNDS):
        spikes = _find_spikes(finer, expected, likely) if finer else spikes
        if not spikes.any():
            break
        others = replace(histogram, values=histogram.values - spikes)
        rest = None if total is None else max(total - float(spikes.sum()), 0.0)
        expected = _expect_inside(others, cells, partitions, rest)
    stds = np.sqrt(others.variances)
    counts = _spread_in_parents(others.values, stds, expected.atoms, expected.parents, expected.totals) + spikes
    widths = np.where(expected.density > 0, expected.density, 1e-12 * cells.widths)
    return np.asarray(widths * _divide(counts, _sum_cells(widths, atom_of))[atom_of], np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Expected:
    """What the counts of the coarsest ranges let expect inside them.

    Attributes:
        totals: the counts of these ranges.
        parents: the range of every atom.
        atoms: the expected count of every atom.
        density: that of every cell, apart from round values.
    """

    totals: Values
    parents: Codes
    atoms: Values
    density: Values


def _expect_inside(
    histogram: Histogram, cells: Cells, partitions: Sequence[Partition], total: float | None
) -> _Expected:
    """Estimate the coarsest ranges, and what to expect inside them."""
    ranges = [partition.group_of[histogram.atom_of] for partition in partitions]
    parent_of, atom_of = ranges[0], histogram.atom_of
    if len(ranges) > 2:
        parent_of = _divide_heavy(histogram, parent_of, ranges[1], HEAVY_SHARE, MIN_PARTS, HEAVY_SIGMAS)
    values, stds = _sum_atoms(histogram, parent_of)
    inside = int(parent_of[cells.ordered - 1]) + 1
    widths = _sum_cells(cells.widths, parent_of)
    totals = np.maximum(values, 0.0)
    known = None if total is None else max(total - float(totals[inside:].sum()), 0.0)
    totals[:inside] = estimate_ordered_counts(values[:inside], stds[:inside], widths[:inside], known)
    if len(ranges) > 2:
        totals = _restore_sums(totals, np.maximum(_sum_atoms(histogram, ranges[0])[0], 0.0), ranges[0], parent_of)
    density = _slope_inside_groups(totals, parent_of, cells)
    parents = parent_of[first_cells(atom_of)]
    single = _sum_cells(cells.widths, atom_of) == 1
    classes = np.where(single, _sum_cells(cells.roundness, atom_of), 0).astype(np.int64)
    even, stds = _sum_cells(density, atom_of), np.sqrt(histogram.variances)
    return _Expected(
        totals, parents, _favor_round_values(histogram.values, stds, even, parents, totals, classes), density
    )


def _finer_partitions(histogram: Histogram, coarsest: Partition) -> list[Partition]:
    """All measured partitions that divide the groups of one, from coarse to fine; noisy ones show spikes, too."""
    return [
        partition
        for partition in reversed(histogram.partitions)
        if partition.measured
        and len(partition.values) > len(coarsest.values)
        and is_union(coarsest.group_of, partition.group_of)
    ]


def _find_spikes(partitions: Sequence[Partition], expected: _Expected, likely: NDArray[np.bool_]) -> Values:
    """By how much atoms exceed what is expected of them, for those that are spikes; 0 for the others.

    A spike is in the count of its atom and of every range around it inside its parent, so the excess of all of them
    together shows it: their mean, by inverse variance. The clearest spike is found first; then it is expected, too.

    Ranges were divided into single values where their noisy counts were high. So a value is one of as many that could
    have been found as if all ranges like its own had been divided, and a single spike must stand out from the noise of
    all of these. Several that stand out nearly as far make each other more likely: as many are spikes as leave no more
    than a part of them to noise.
    """
    excesses, precisions = [], []
    for partition in partitions:
        sums = np.bincount(partition.group_of, expected.atoms, len(partition.values))
        inside = np.bincount(partition.group_of)[partition.group_of] < np.bincount(expected.parents)[expected.parents]
        excesses.append(partition.values - sums)
        spread = partition.variance + np.minimum(sums + (USUAL_DISPERSION * sums) ** 2, partition.variance)
        precisions.append(inside / spread[partition.group_of])
    total = np.sum(precisions, axis=0)
    groups, stds = [partition.group_of for partition in partitions], np.sqrt(_divide(np.ones(len(total)), total))
    own_std = math.sqrt(partitions[-1].variance)
    tests = np.full(len(total), float(len(total)))
    for group in groups[:-1]:
        tests = np.maximum(tests, np.bincount(group)[group] * float(group.max() + 1))
    candidates, spikes = np.zeros(len(total)), np.zeros(len(total))
    for number in range(1, MAX_SPIKES + 1):
        pairs = zip(excesses, groups, precisions, strict=True)
        mean = np.sum([excess[group] * precision for excess, group, precision in pairs], axis=0) * stds**2
        found = np.where(total > 0, np.minimum(mean, excesses[-1][groups[-1]] + own_std), 0.0)
        sigmas = np.where(likely, LIKELY_SIGMAS, -normal_quantiles(np.minimum(FALSE_SPIKES * number / tests, 0.5)))
        best = int(np.argmax(found - sigmas * stds))
        if found[best] < LIKELY_SIGMAS * stds[best] or found[best] <= 0:
            break
        candidates[best] += found[best]
        for excess, group in zip(excesses, groups, strict=True):
            excess[group[best]] -= found[best]
        if found[best] >= sigmas[best] * stds[best]:
            spikes = candidates.copy()
    return spikes


def divide_into_ranges(histogram: Histogram, cells: Cells, max_share: float) -> Codes:
    """The range of every cell: the ranges that are smoothed, divided where they hold more than a share of the rows.

    Their sums are more precise than those of other ranges. Atoms, for cells without an order.
    """
    partitions = _nested_ranges(histogram, cells) if cells.ordered else None
    if partitions is None:
        return histogram.atom_of
    range_of = partitions[0].group_of[histogram.atom_of]
    for partition in partitions[1:]:
        range_of = _divide_heavy(histogram, range_of, partition.group_of[histogram.atom_of], max_share, 2)
    return range_of


def _divide_heavy(
    histogram: Histogram, parent_of: Codes, part_of: Codes, share: float, min_parts: int, min_sigmas: float = 0.0
) -> Codes:
    """The ranges of cells, with those divided into their parts that hold far more than others."""
    values, _ = _sum_atoms(histogram, parent_of)
    _, stds = _sum_atoms(histogram, part_of)
    parts = np.bincount(parent_of[first_cells(part_of)])
    enough = max(share * max(float(values.sum()), 0.0), min_sigmas * float(np.median(stds)))
    heavy = ((values >= enough) & (parts >= min_parts))[parent_of]
    labels = np.where(heavy, len(parts) + part_of, parent_of)
    return refine(labels, np.zeros(len(labels), np.int64))


def _restore_sums(counts: Values, sums: Values, parent_of: Codes, part_of: Codes) -> Values:
    """The counts of parts with the sums of their parents; counts of whole parents stay."""
    parents = parent_of[first_cells(part_of)]
    divided = np.bincount(parents) > 1
    factors = np.where(divided, _divide(sums, _sum_cells(counts, parents)), 1.0)
    return np.asarray(counts * factors[parents], np.float64)


def _sum_atoms(histogram: Histogram, range_of: Codes) -> tuple[Values, Values]:
    """The estimated counts of ranges of cells, and their standard deviations."""
    group = np.zeros(len(histogram.values), np.int64)
    group[histogram.atom_of] = range_of
    values, variances = histogram.sum_atoms(group)
    return values, np.sqrt(variances)


def _sum_cells(values: NDArray[Any], group_of: Codes) -> Values:
    return as_floats(np.bincount(group_of, values))


def _divide(values: Values, by: NDArray[Any]) -> Values:
    """The quotients; 0 where the divisor is."""
    return np.asarray(np.divide(values, by, out=np.zeros(len(values)), where=by > 0), np.float64)


def _slope_inside_groups(counts: Values, group_of: Codes, cells: Cells) -> Values:
    """Counts of cells inside groups whose logarithmic density runs in a line between those of their neighbors."""
    widths = _sum_cells(cells.widths, group_of)
    inside = int(group_of[cells.ordered - 1]) + 1
    logs = np.log(np.maximum(counts[:inside], 1e-9) / widths[:inside])
    wide = np.flatnonzero(widths[:inside] > 1)  # single values may be spikes: they say nothing about their neighbors
    slopes = np.zeros((2, inside))
    if len(wide) > 1:
        steps = np.clip(np.diff(logs[wide]) / 2, -MAX_SLOPE, MAX_SLOPE)
        slopes[0, wide[1:]], slopes[1, wide[:-1]] = -steps, steps  # from the middle to the left and to the right edge
        slopes[0, wide[0]], slopes[1, wide[-1]] = -slopes[1, wide[0]], -slopes[0, wide[-1]]
    ends = np.cumsum(cells.widths[: cells.ordered])
    group = group_of[: cells.ordered]
    starts = np.cumsum(widths[:inside]) - widths[:inside]
    position = (ends - cells.widths[: cells.ordered] / 2 - starts[group]) / widths[group]  # from 0 to 1
    to_left, to_right = np.maximum(1 - 2 * position, 0), np.maximum(2 * position - 1, 0)
    density = cells.widths.copy()
    density[: cells.ordered] *= np.exp(slopes[0, group] * to_left + slopes[1, group] * to_right)
    return np.asarray(density * _divide(counts, _sum_cells(density, group_of))[group_of], np.float64)


def _favor_round_values(
    values: Values, stds: Values, expected: Values, parents: Codes, totals: Values, classes: Codes
) -> Values:
    """Expected counts with a factor for each class of round values, which people write more often than others.

    The counts of all values of a class together show its factor, however noisy each of them is. A rounder class whose
    counts do not show one has that of the class before.
    """
    count = int(classes.max()) + 1
    factors, sizes = np.ones(count), np.bincount(classes, minlength=count)
    found, errors = np.bincount(classes, values, count), np.sqrt(np.bincount(classes, stds**2, count))
    scaled = expected
    for _ in range(CLASS_ROUNDS if count > 1 else 0):
        scaled = expected * factors[classes]
        scaled = scaled * _divide(totals, _sum_cells(scaled, parents))[parents]
        predicted = np.bincount(classes, scaled, count)
        differs = (np.abs(found - predicted) > CLASS_SIGMAS * errors) & (sizes > 0) & (predicted > 0)
        if not differs.any():
            break
        factors = np.where(differs, factors * np.maximum(found, errors / 2) / np.maximum(predicted, 1e-9), factors)
        factors[1:] = np.where(differs[1:], factors[1:], np.maximum.accumulate(factors[1:]))
    return scaled


def _spread_in_parents(values: Values, stds: Values, expected: Values, parents: Codes, totals: Values) -> Values:
    """Non-negative counts inside parents, whose sums are ``totals``.

    True counts differ from what is expected by a share that is the same for all, the one of the greatest likelihood;
    each count is its posterior mean. It is moved by a limited number of standard deviations (Efron and Morris 1972), so
    that a value that is not like the others is not lost; the limit is high where hardly any rows are expected.
    """
    variances = stds**2
    lacking = totals - np.bincount(parents, values, len(totals))
    shifted = values + (lacking / np.maximum(np.bincount(parents, variances, len(totals)), 1e-12))[parents] * variances
    even = expected * _divide(totals, np.bincount(parents, expected, len(totals)))[parents]
    deviations = shifted - even
    clear = deviations > CLEAR_SIGMAS * stds
    own = (_estimate_dispersion(deviations[~clear], stds[~clear], even[~clear]) * even) ** 2
    follows = np.where(clear, 1.0, own / (own + np.maximum(variances, 1e-12)))
    counts = even + follows * deviations
    near = np.where(even >= NOT_EMPTY_SIGMAS * stds, MAX_SHIFT, CLEAR_SIGMAS) * stds
    limited = np.clip(counts, shifted - near, shifted + near)
    return _keep_sums(limited, np.maximum(follows, limited != counts) * variances, even, parents, totals)


def _estimate_dispersion(deviations: Values, stds: Values, expected: Values) -> float:
    """The relative standard deviation of true counts from expected ones that explains noisy deviations best."""

    def log_likelihood(dispersion: float) -> float:
        variances = np.maximum((dispersion * expected) ** 2 + stds**2, 1e-12)
        return -0.5 * float((deviations**2 / variances + np.log(variances)).sum())

    return max(DISPERSIONS, key=log_likelihood)


def _keep_sums(counts: Values, variances: Values, expected: Values, parents: Codes, totals: Values) -> Values:
    """Non-negative counts with the given sums: what a parent lacks is shared by its members' posterior variances."""
    counts = np.maximum(counts, 0.0)
    for _ in range(MAX_SUM_ROUNDS):
        lacking = totals - np.bincount(parents, counts, len(totals))
        shares = np.where((counts > 0) | (lacking[parents] > 0), variances, 0.0)
        moved = shares * _divide(lacking, np.bincount(parents, shares, len(totals)))[parents]
        counts = np.maximum(counts + moved, 0.0)
        if np.abs(moved).max(initial=0.0) < 1e-3:
            break
    sums = as_floats(np.bincount(parents, counts, len(totals)))
    fallback: Values = expected * _divide(totals, np.bincount(parents, expected, len(totals)))[parents]
    return np.asarray(np.where((sums > 0)[parents], counts * _divide(totals, sums)[parents], fallback), np.float64)


MAX_SUM_ROUNDS = 20
"""Rounds in which what parents lack is shared by their members; what is left then is removed in proportion."""
