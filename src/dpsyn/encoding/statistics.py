"""An attribute of a table in a few numbers, from the counts of its values: missing values, mean and quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.marginals.comparison import QUANTILES, AttributeStatistics
from dpsyn.schema import Attribute, Integer, Ordinal, Ranged, Real

Counts = NDArray[Any]
Steps = NDArray[np.int64]


def summarize_ranges(
    attribute: Ranged, first: Steps, last: Steps, counts: Counts, missing: float
) -> AttributeStatistics:
    """The statistics of a number or date.

    Args:
        attribute: what is public about it.
        first: the first lattice step of each range of values, ascending.
        last: its last step, which may be the first.
        counts: how many rows are in each range, at least 0. Their values are assumed to be spread evenly over it.
        missing: how many rows have no value.
    """
    present = float(counts.sum())
    total = present + float(missing)
    if present <= 0:
        return AttributeStatistics(missing=1.0 if total else 0.0)
    sums = np.cumsum(counts, dtype=np.float64)
    targets = np.array(QUANTILES) * sums[-1]
    index = np.searchsorted(sums, targets, side="left")
    part = 1 - (sums[index] - targets) / counts[index]
    steps = np.minimum(first[index] + np.floor(part * (last - first + 1)[index]).astype(np.int64), last[index])
    mean = None
    if isinstance(attribute, Integer | Real):
        middle = (attribute.values_at(first).astype(np.float64) + attribute.values_at(last).astype(np.float64)) / 2
        mean = float(np.sum(counts * middle)) / present
    quantiles = tuple(map(attribute.text_at, steps.tolist()))
    return AttributeStatistics(missing=float(missing) / total, mean=mean, quantiles=quantiles)


def summarize_list(attribute: Attribute, counts: Counts) -> AttributeStatistics:
    """The statistics of an attribute of listed values, given how many rows have each of its cells, at least 0."""
    total = float(counts.sum())
    missing = float(counts[attribute.proper_cells :].sum())
    ordered = counts[: len(attribute.values) or attribute.codes or 0] if isinstance(attribute, Ordinal) else counts[:0]
    quantiles: tuple[str, ...] = ()
    if ordered.sum() > 0:
        sums, labels = np.cumsum(ordered, dtype=np.float64), attribute.labels()
        index = np.searchsorted(sums, np.array(QUANTILES) * sums[-1], side="left")
        quantiles = tuple(labels[position] for position in index.tolist())
    return AttributeStatistics(missing=missing / total if total > 0 else 0.0, quantiles=quantiles)
