"""Means and regressions from sums of weights over rows: which sums they need, and what follows from noisy ones.

All values are clipped to the schema's bounds and scaled to −1 … 1, so one row changes each sum by at most one unit.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from dpsyn.assessment.cell_values import CellValues, group_cells, read_cell_values
from dpsyn.assessment.intervals import Z, ratio_interval, solve_noisy_moments
from dpsyn.encoding import Codec, RecodedColumn, Recoding
from dpsyn.marginals import Clique
from dpsyn.schema import Schema
from dpsyn.schema.formula import Formula

MEAN_STEPS = 2**20
"""Steps between 0 and the largest scaled value in the sum of a mean."""

MOMENT_STEPS = 2**10
"""Steps between 0 and the largest scaled value in moments; a product of two has as many as ``MEAN_STEPS``."""

_GROUPED = " in at most 500 groups"
"""What the attributes of regressions are called beside those of means, whose cells are finer."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightedSum:
    """A sum over rows of a weight of each cell.

    Attributes:
        purpose: what the ledger calls it.
        clique: the attributes whose cells have weights.
        weights: the weight of each cell, in whole numbers.
        unit: what a weight of one unit stands for: the sum is divided by it.
    """

    purpose: str
    clique: Clique
    weights: NDArray[np.int64]
    unit: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and the ends of its 95 % interval; infinite ends if noise hides it."""

    value: float
    low: float
    high: float


Numbers = Sequence[tuple[float, float]]
"""Sums, divided by their units, each with the standard deviation of its noise; 0 for those of a public table."""


def make_recoding(schema: Schema, means: Container[str], regressors: Container[str]) -> Recoding:
    """The attributes of means in their cells, and those of regressions in at most 500 groups of adjacent cells."""
    codec = Codec(schema)
    columns = [
        RecodedColumn(name, (source,), (np.arange(codec.fine_sizes[source]),))
        for source, name in enumerate(codec.names)
        if name in means
    ]
    columns += [
        RecodedColumn(name + _GROUPED, (source,), (group_cells(codec.fine_sizes[source]).group_of,))
        for source, name in enumerate(codec.names)
        if name in regressors
    ]
    return Recoding(tuple(columns), codec.domain)


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of an attribute over the rows where it is not missing."""

    name: str
    values: CellValues

    @classmethod
    def of(cls, schema: Schema, name: str) -> Mean:
        """The mean of an attribute of a schema."""
        return cls(name, read_cell_values(next(a for a in schema.modeled_attributes if a.name == name)))

    def sums(self) -> list[WeightedSum]:
        """The sum of the scaled values, and the number of rows that have one."""
        return [
            WeightedSum(f"sum of {self.name}", (self.name,), self.values.weights(MEAN_STEPS), MEAN_STEPS),
            WeightedSum(f"rows with {self.name}", (self.name,), self.values.present(), 1),
        ]

    def solve(self, numbers: Numbers) -> Estimate:
        """The mean, with an interval that includes the rounding of values to cells."""
        (total, total_std), (rows, rows_std) = numbers
        values = self.values
        bounds = values.center - values.half_range, values.center + values.half_range
        ends = ratio_interval((total, total), total_std, rows, rows_std, (-1.0, 1.0))
        rounding = values.rounding + values.half_range / (2 * MEAN_STEPS)
        low, high = (
            values.center + values.half_range * end + sign * rounding for end, sign in zip(ends, (-1, 1), strict=True)
        )
        value = values.center + values.half_range * (total / rows if rows > 0 else 0.0)
        return Estimate(min(max(value, bounds[0]), bounds[1]), max(low, bounds[0]), min(high, bounds[1]))


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient of a linear regression with an intercept, of values in at most 500 groups."""

    name: str
    regressors: tuple[str, ...]
    outcome: str
    values: dict[str, CellValues]

    @classmethod
    def of(cls, schema: Schema, name: str, formula: Formula) -> Coefficient:
        """The coefficient of an attribute in a formula whose terms are single numbers."""
        regressors = tuple(term[0].name for term in formula.terms)
        attributes = {attribute.name: attribute for attribute in schema.modeled_attributes}
        values = {
            each: read_cell_values(attributes[each]).merge(group_cells(attributes[each].cells))
            for each in (formula.outcome, *regressors)
        }
        return cls(name, regressors, formula.outcome, values)

    def sums(self) -> list[WeightedSum]:
        """The moments: of the regressors with the constant and each other, then of the outcome with all of these."""
        anywhere = self.regressors[0]
        ones = np.ones(len(self.values[anywhere].numbers), np.int64)
        return [
            WeightedSum("rows of a regression", (anywhere + _GROUPED,), ones, 1),
            *(self._moment(pair) for pair in combinations_with_replacement(("", *self.regressors), 2) if any(pair)),
            *(self._moment((regressor, self.outcome)) for regressor in ("", *self.regressors)),
        ]

    def solve(self, numbers: Numbers) -> Estimate:
        """The coefficient in units of the attributes."""
        size = len(self.regressors) + 1
        gram, gram_stds = np.zeros((size, size)), np.zeros((size, size))
        for (i, j), (value, std) in zip(combinations_with_replacement(range(size), 2), numbers, strict=False):
            gram[i, j] = gram[j, i] = value
            gram_stds[i, j] = gram_stds[j, i] = std
        cross, cross_stds = np.array(numbers[-size:]).T
        unit = self.values[self.outcome].half_range / self.values[self.name].half_range
        solved = solve_noisy_moments(gram, gram_stds, cross, cross_stds)
        if solved is None:
            return Estimate(0.0, -math.inf, math.inf)
        position = 1 + self.regressors.index(self.name)
        value, error = (unit * float(part[position]) for part in solved)
        return Estimate(value, value - Z * error, value + Z * error)

    def _moment(self, names: tuple[str, str]) -> WeightedSum:
        """The sum of the product of two attributes; an empty name is the constant 1."""
        first, second = names
        if not first:
            weights = self.values[second].weights(MOMENT_STEPS)
            return WeightedSum(f"sum of {second}", (second + _GROUPED,), weights, MOMENT_STEPS)
        if first == second:
            weights = self.values[first].weights(MOMENT_STEPS) ** 2
            return WeightedSum(f"sum of {first} squared", (first + _GROUPED,), weights, MOMENT_STEPS**2)
        product = np.multiply.outer(*(self.values[name].weights(MOMENT_STEPS) for name in names))
        clique = first + _GROUPED, second + _GROUPED
        return WeightedSum(f"sum of {first} times {second}", clique, product, MOMENT_STEPS**2)
