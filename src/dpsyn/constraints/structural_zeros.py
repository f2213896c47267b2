"""Structural zeros: factors over the codes of a model that encode the rules of a schema.

A code represents several cells, and a cell several values. A combination of codes in which no values satisfy the rules
is a structural zero. A combination in which some values do gets the probability implied by the released histograms:
two numbers in the same bin, for example, are in ascending order with probability one half.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import Grouping, RecodedColumn, Recoding
from dpsyn.marginals import Estimate, Factor
from dpsyn.schema import Schema
from dpsyn.schema.constraint_model import (
    PARTS_OF_TIMESTAMPS,
    OrderConstraint,
    Scale,
    StructuralZero,
    SumConstraint,
    compile_constraints,
)

FactorTable = NDArray[np.float64]

MAX_FACTOR_CELLS = 2**20
"""Cells of a factor; rules on more combinations are enforced only by the repair of rows."""

HISTOGRAM_SMOOTHING = 1e-9
"""The fraction of an attribute's weight that is added to each of its cells, so that no cell counts as impossible."""

_SAMPLES = 64
"""Values sampled for each code of a sum. A possible total that no sample has gets the weight of half a sample."""


def build_constraint_factors(
    schema: Schema, recoding: Recoding, histograms: Mapping[str, FactorTable]
) -> tuple[Factor, ...]:
    """One factor for each set of attributes of the recoding that share a rule.

    Args:
        schema: its rules.
        recoding: the attributes of the model.
        histograms: weights over the cells of each measured attribute.
    """
    model = compile_constraints(schema)
    if not model.row_constraints:
        return ()
    codes = _Codes(recoding, [_smooth(histograms[name]) for name in model.names])
    factors: dict[tuple[int, ...], FactorTable] = {}
    dates: dict[tuple[int, ...], int] = {}
    for rule in model.row_constraints:
        if any(index in recoding.difference_codings for index in rule.indices):
            continue  # a difference alone does not determine a cell: the repair of rows enforces such rules
        match rule:
            case StructuralZero():
                tables = _structural_zero_tables(rule, codes)
            case OrderConstraint():
                tables = _order_tables(rule, codes)
            case SumConstraint():
                tables = _sum_tables(rule, codes)
        for axes, table in tables:
            if (table < 1).any():
                factors[axes] = factors[axes] * table if axes in factors else table
                if rule.number == PARTS_OF_TIMESTAMPS:
                    dates[axes] = axes.index(codes.column_of(rule.indices[0]))
    for axes, date in dates.items():
        factors[axes] = _ignore_even_parts(factors[axes], date)
    factors = {axes: table for axes, table in factors.items() if (table < 1).any()}
    names = recoding.names
    return tuple(Factor(tuple(names[axis] for axis in axes), table) for axes, table in sorted(factors.items()))


def _smooth(weights: FactorTable) -> FactorTable:
    smoothed: FactorTable = weights + HISTOGRAM_SMOOTHING * max(float(weights.sum()), 1.0)
    return smoothed


class _Codes:
    """The codes of a recoding and the weights of the cells that they represent."""

    def __init__(self, recoding: Recoding, weights: Sequence[FactorTable]) -> None:
        self.columns, self.weights = recoding.columns, weights
        self._column_of = {source: axis for axis, c in enumerate(recoding.columns) for source in c.sources}

    def column_of(self, source: int) -> int:
        """The axis of the recoding that a measured attribute is part of."""
        return self._column_of[source]

    def size(self, column: int) -> int:
        """The number of codes of an attribute."""
        return self.columns[column].size

    def selected_share(self, column: int, masks: Mapping[int, NDArray[np.bool_]]) -> FactorTable:
        """For each code, the fraction of its weight in the selected cells; exactly 0 or 1 if none or all is."""
        inside = _code_weights(self.columns[column], [self.weights[s] * masks.get(s, 1) for s in self._sources(column)])
        whole = _code_weights(self.columns[column], [self.weights[s] for s in self._sources(column)])
        return inside / whole

    def cell_probabilities(self, source: int) -> FactorTable:
        """For each code, the probability of each cell of a measured attribute."""
        column = self.columns[self.column_of(source)]
        digits = column.tables[column.sources.index(source)]
        by_digit = Grouping(digits).sums(self.weights[source])
        within = self.weights[source] / by_digit[digits]
        return _digit_probabilities(column, column.sources.index(source), self.weights)[:, digits] * within

    def _sources(self, column: int) -> tuple[int, ...]:
        return self.columns[column].sources


def _code_weights(column: RecodedColumn, weights: Sequence[FactorTable]) -> FactorTable:
    """The weight of each code, with its source attributes treated as independent."""
    joint = np.ones(1)
    for table, weight in zip(column.tables, weights, strict=True):
        joint = np.multiply.outer(joint, Grouping(table).sums(weight)).ravel()
    return joint if column.merged is None else Grouping(column.merged).sums(joint)


def _digit_probabilities(column: RecodedColumn, axis: int, weights: Sequence[FactorTable]) -> FactorTable:
    """For each code, the probability of each digit of one of its sources."""
    sums = [Grouping(table).sums(weights[s]) for s, table in zip(column.sources, column.tables, strict=True)]
    joint = reduce(lambda one, other: np.multiply.outer(one, other).ravel(), sums, np.ones(1))
    codes = np.arange(len(joint)) if column.merged is None else column.merged
    digits = np.unravel_index(np.arange(len(joint)), column.radices)[axis]
    table = np.zeros((column.size, column.radices[axis]))
    np.add.at(table, (codes, digits), joint)
    shares: FactorTable = table / table.sum(axis=1, keepdims=True)
    return shares


FactorTables = Iterator[tuple[tuple[int, ...], FactorTable]]
"""Axes of the recoding, ascending, with a table over their codes."""


def _structural_zero_tables(rule: StructuralZero, codes: _Codes) -> FactorTables:
    masks: dict[int, dict[int, NDArray[np.bool_]]] = {}
    for source, mask in rule.selection:
        masks.setdefault(codes.column_of(source), {})[source] = mask
    columns = tuple(sorted(masks))
    if math.prod(codes.size(column) for column in columns) <= MAX_FACTOR_CELLS:
        parts = [codes.selected_share(column, masks[column]) for column in columns]
        yield columns, 1 - reduce(np.multiply.outer, parts)


CLEAR_RATIO = 2.0
"""A code of dates prefers a weekday if it has so many times the mean share of its weekdays."""


def _ignore_even_parts(table: FactorTable, date: int) -> FactorTable:
    """The factor of a date and another part with 1 for everything that is possible, unless the date clearly decides.

    A code of many days has each weekday about equally often. What the noisy counts of its days add to that is noise,
    and would make the weekday depend on the date. A code whose days are few, or one of which is frequent, decides.
    """
    rows = np.moveaxis(table, date, 0).reshape(table.shape[date], -1)
    possible = rows > 0
    mean = rows.sum(axis=1, keepdims=True) / np.maximum(possible.sum(axis=1, keepdims=True), 1)
    even = rows.max(axis=1, keepdims=True) <= CLEAR_RATIO * mean
    rows = np.where(even, possible.astype(np.float64), rows)
    moved = np.moveaxis(table, date, 0).shape
    return np.moveaxis(rows.reshape(moved), 0, date)


# ── orders ───────────────────────────────────────────────────────────────────────────────────────────────────


def _order_tables(rule: OrderConstraint, codes: _Codes) -> FactorTables:
    """A table for every two of the ordered attributes, unless both are part of the same joint attribute."""
    for left, right in combinations(rule.scales, 2):
        columns = codes.column_of(left.index), codes.column_of(right.index)
        cells = len(left.missing) * len(right.missing)
        if columns[0] == columns[1] or cells > 16 * MAX_FACTOR_CELLS:
            continue
        shares = (
            codes.cell_probabilities(left.index)
            @ _order_probabilities(left, right, rule.strict)
            @ codes.cell_probabilities(right.index).T
        )
        shares = np.where(shares > 1 - 1e-9, 1.0, np.maximum(shares, 0.0))
        yield (columns, shares) if columns[0] < columns[1] else (columns[::-1], shares.T)


def _order_probabilities(left: Scale, right: Scale, strict: bool) -> FactorTable:
    """The probability that two values, uniform within their cells, ascend; exactly 0 or 1 if that is certain."""
    table = (left.high[:, None] + strict <= right.low[None, :]).astype(np.float64)
    unsure = (left.low[:, None] + strict <= right.high[None, :]) & (table == 0)
    one, other = np.nonzero(unsure)
    low, high = left.low[one].astype(np.float64), left.high[one].astype(np.float64) + 1
    begin, end = right.low[other].astype(np.float64), right.high[other].astype(np.float64) + 1
    probability = (_below(end, low, high) - _below(begin, low, high)) / (end - begin)
    table[unsure] = np.clip(probability, 0.01, 1.0)
    table[left.missing, :] = 1.0
    table[:, right.missing] = 1.0
    return table


def _below(point: FactorTable, low: FactorTable, high: FactorTable) -> FactorTable:
    """The integral, up to ``point``, of the fraction of the interval low … high that is below x."""
    inside = np.clip(point, low, high) - low
    total: FactorTable = inside**2 / (2 * (high - low)) + np.maximum(point - high, 0.0)
    return total


# ── sums ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _sum_tables(rule: SumConstraint, codes: _Codes) -> FactorTables:
    """How often parts add up to a total of each code, estimated from a few samples for each code."""
    columns = [codes.column_of(scale.index) for scale in rule.scales]
    sizes = [codes.size(column) for column in columns]
    total = codes.columns[columns[0]]
    if len(set(columns)) < len(columns) or len(total.sources) > 1 or math.prod(sizes) > MAX_FACTOR_CELLS:
        return
    random = np.random.default_rng(0)
    samples = [_sample_values(scale, codes.cell_probabilities(scale.index), random) for scale in rule.scales[1:]]
    sums, missing = samples[0]
    for values, empty in samples[1:]:
        sums = sums[..., None, :] + values
        missing = missing[..., None, :] | empty
    shares = _shares_of_total(rule.scales[0], total.tables[0], sizes[0], sums, missing)
    shares = np.where(_possible_sums(rule, codes), np.maximum(shares, 0.5 / _SAMPLES), 0.0)
    order = np.argsort(columns)
    yield tuple(sorted(columns)), np.transpose(shares, order)


def _sample_values(
    scale: Scale, probabilities: FactorTable, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Values for each code, codes × samples, and which of them are missing."""
    ends = np.cumsum(probabilities, axis=1)
    uniform = random.random((len(probabilities), _SAMPLES))
    cells = np.stack([np.searchsorted(row, row[-1] * at, side="right") for row, at in zip(ends, uniform, strict=True)])
    cells = np.minimum(cells, probabilities.shape[1] - 1)
    steps = random.integers(scale.first[cells], scale.last[cells] + 1)
    return scale.to_common_scale(steps), scale.missing[cells]


def _shares_of_total(
    scale: Scale, code_of: NDArray[np.int64], size: int, sums: NDArray[np.int64], missing: NDArray[np.bool_]
) -> FactorTable:
    """For each code of the total and each combination of parts, the fraction of samples in it, relative to the best."""
    proper = np.flatnonzero(~scale.missing)
    proper = proper[np.argsort(scale.low[proper], kind="stable")]
    at = np.clip(np.searchsorted(scale.low[proper], sums, side="right") - 1, 0, len(proper) - 1)
    outside = (sums < scale.low[proper][at]) | (sums > scale.high[proper][at])
    codes = np.where(missing | outside, size, code_of[proper[at]])
    shape, combos = sums.shape[:-1], math.prod(sums.shape[:-1])
    flat = codes.reshape(combos, -1) + np.arange(combos)[:, None] * (size + 1)
    counts = np.bincount(flat.ravel(), minlength=combos * (size + 1)).reshape(combos, size + 1)[:, :size].astype(float)
    shares = counts / np.maximum(counts.max(axis=1, keepdims=True), 1.0)
    empty = missing.reshape(combos, -1).mean(axis=1, keepdims=True)
    shares = empty + (1 - empty) * shares
    shares[:, np.unique(code_of[scale.missing])] = 1.0
    table: FactorTable = np.moveaxis(shares.reshape(*shape, size), -1, 0)
    return table


def _possible_sums(rule: SumConstraint, codes: _Codes) -> NDArray[np.bool_]:
    """Which combinations of codes have values that add up, or a missing value."""
    least, most, empty = [], [], []
    for scale in rule.scales:
        possible_cells = codes.cell_probabilities(scale.index) > 0
        proper = possible_cells & ~scale.missing
        least.append(np.where(proper, scale.low, 2**60).min(axis=1))
        most.append(np.where(proper, scale.high, -(2**60)).max(axis=1))
        empty.append((possible_cells & scale.missing).any(axis=1))
    low, high = (reduce(np.add.outer, ends[1:]) for ends in (least, most))
    adds = (low <= most[0].reshape(-1, *(1,) * low.ndim)) & (high >= least[0].reshape(-1, *(1,) * low.ndim))
    possible: NDArray[np.bool_] = adds | reduce(np.logical_or.outer, empty)
    return possible


# ── structural zeros of released tables ──────────────────────────────────────────────────────────────────────


def apply_structural_zeros(estimate: Estimate, factors: Sequence[Factor], total: float | None = None) -> Estimate:
    """Set the cells of a table that no row can be in to zero; with a total, scale the others to add up to it.

    This removes the noise in those cells: they are known to be zero without a measurement.
    """
    values = np.array(estimate.values)
    for factor in factors:
        shared = [name for name in estimate.clique if name in factor.clique]
        if not shared:
            continue
        others = tuple(axis for axis, name in enumerate(factor.clique) if name not in shared)
        possible = (factor.shares > 0).any(axis=others)
        remaining = [name for name in factor.clique if name in shared]
        possible = np.transpose(possible, [remaining.index(name) for name in shared])
        for axis, name in enumerate(shared):
            if name in estimate.levels:  # a group is possible if one of its values is
                possible = _any_in_group(possible, axis, estimate.levels[name])
        values *= possible.reshape(
            [n if name in shared else 1 for n, name in zip(values.shape, estimate.clique, strict=True)]
        )
    if total is not None and values.sum() > 0:
        values *= total / values.sum()
    return replace(estimate, values=values)


def _any_in_group(mask: NDArray[np.bool_], axis: int, group_of: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which groups along an axis have a value whose entry is true."""
    moved = np.moveaxis(mask, axis, 0)
    groups = np.zeros((int(group_of.max()) + 1, *moved.shape[1:]), np.bool_)
    np.logical_or.at(groups, group_of, moved)
    return np.moveaxis(groups, 0, axis)
