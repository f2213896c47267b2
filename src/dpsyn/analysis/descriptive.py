"""Means, quantiles and correlations of one table, with the variances that sampling its rows causes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
import pyarrow as pa

from dpsyn.analysis.columns import find_groups, read_numbers, read_ranks
from dpsyn.analysis.conclusion import FloatArray
from dpsyn.schema import Schema

CorrelationMethod = Literal["pearson", "spearman"]
"""The correlation of values, or of ranks."""

MIN_ROWS = 3
"""Rows of a group; the variance of fewer is no estimate."""


@dataclass(frozen=True, slots=True)
class TableEstimates:
    """What a statistic of one table gave.

    Attributes:
        values: the estimate and its variance by term, where the rows allow one.
        missing_rows: the number of rows that were left out because a value is missing.
    """

    values: dict[str, tuple[float, float]]
    missing_rows: int


Statistic = Callable[[pa.Table], TableEstimates]


def mean_of(schema: Schema, name: str, by: Sequence[str]) -> Statistic:
    """The mean of an attribute, in each group; of truth values it is the share of true ones."""

    def estimate(values: FloatArray) -> list[tuple[str, float, float]]:
        return [("", float(values.mean()), float(values.var(ddof=1)) / values.size)]

    return lambda table: _estimate_groups(table, schema, name, by, estimate)


def quantiles_of(schema: Schema, name: str, by: Sequence[str], probabilities: Sequence[float]) -> Statistic:
    """Quantiles of an attribute, in each group.

    The variance is Woodruff's: that of the share of rows below the quantile, in the scale of the values.
    """
    labels = [f"{probability:g}" if len(probabilities) > 1 else "" for probability in probabilities]
    width = NormalDist().inv_cdf(0.975)

    def estimate(values: FloatArray) -> list[tuple[str, float, float]]:
        found = []
        for label, probability in zip(labels, probabilities, strict=True):
            spread = width * np.sqrt(probability * (1 - probability) / values.size)
            below, at, above = np.quantile(values, np.clip(probability + spread * np.array([-1, 0, 1]), 0, 1))
            found.append((label, float(at), float(((above - below) / (2 * width)) ** 2)))
        return found

    return lambda table: _estimate_groups(table, schema, name, by, estimate)


def correlation_of(schema: Schema, first: str, second: str, method: CorrelationMethod) -> Statistic:
    """The correlation of two attributes, with the variance (1 − r²)²/(n − 1) that it has for normal values."""

    def estimate(table: pa.Table) -> TableEstimates:
        if method == "spearman":
            columns = [read_ranks(table, schema, name) for name in (first, second)]
        else:
            columns = [read_numbers(table, name) for name in (first, second)]
        known = ~np.isnan(columns).any(0)
        x, y = (column[known] for column in columns)
        values = {}
        if x.size >= MIN_ROWS and np.ptp(x) > 0 and np.ptp(y) > 0:
            x, y = (_rank(x), _rank(y)) if method == "spearman" else (x, y)
            r = float(np.corrcoef(x, y)[0, 1])
            values[""] = (r, (1 - r**2) ** 2 / (x.size - 1))
        return TableEstimates(values, int(table.num_rows - known.sum()))

    return estimate


def _rank(values: FloatArray) -> FloatArray:
    """Ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks


def _estimate_groups(
    table: pa.Table,
    schema: Schema,
    name: str,
    by: Sequence[str],
    estimate: Callable[[FloatArray], list[tuple[str, float, float]]],
) -> TableEstimates:
    values, found = read_numbers(table, name), {}
    known = ~np.isnan(values)
    for group, rows in find_groups(table, schema, by).items():
        used = values[rows[known[rows]]]
        if used.size >= MIN_ROWS:
            for label, value, variance in estimate(used):
                found[", ".join(filter(None, (group, label)))] = (value, variance)
    return TableEstimates(found, int(table.num_rows - known.sum()))
