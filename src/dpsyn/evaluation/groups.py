"""Groups of rows: how far the synthetic rows of each group are from its real rows.

Privacy: computed from the real rows without protection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.evaluation.tables import CodeColumns, EvaluationTables, make_generator
from dpsyn.marginals import GroupComparison, Metric
from dpsyn.marginals.comparison import SMALL_GROUP_ROWS, WIDE_ERROR

RESAMPLES = 20
"""Bootstrap samples of both tables, for the standard error of a distance."""

Weights = NDArray[np.float64]


def compare_groups(tables: EvaluationTables, by: Sequence[str], seed: int) -> tuple[GroupComparison, ...]:
    """For each value of the attributes the mean distance of all other attributes, within the group."""
    return tuple(group for name in by for group in _compare_attribute(tables, name, seed))


def _compare_attribute(tables: EvaluationTables, name: str, seed: int) -> Iterator[GroupComparison]:
    view, axis, rng = tables.bins, tables.axis_of(name), make_generator(seed, f"groups of {name}")
    others = [other for other in range(len(view.sizes)) if other != axis]
    real, synthetic = view.tables[:2]
    sizes = [np.bincount(table[axis], minlength=view.sizes[axis]) for table in view.tables]
    marginals = [_count(table, axis, others, view.sizes) for table in view.tables]
    distances = [_mean_distances(marginals[0], marginal) for marginal in marginals[1:]]
    resampled = []
    for _ in range(RESAMPLES):
        weights = [np.asarray(rng.poisson(1, table.shape[1]), np.float64) for table in (real, synthetic)]
        counted = [_count(t, axis, others, view.sizes, w) for t, w in zip((real, synthetic), weights, strict=True)]
        resampled.append(_mean_distances(*counted))
    errors = np.std(resampled, axis=0)
    for group, label in enumerate(tables.domains[axis].attribute.labels()):
        rows, synthetic_rows = int(sizes[0][group]), int(sizes[1][group])
        if rows or synthetic_rows:
            yield GroupComparison(
                attribute=name,
                group=label,
                rows=rows,
                synthetic_rows=synthetic_rows,
                distance=Metric(
                    synthetic=float(distances[0][group]),
                    floor=float(distances[1][group]),
                    independent=float(distances[2][group]),
                ),
                error=float(errors[group]),
                attributes=len(others),
                small=rows < SMALL_GROUP_ROWS or bool(errors[group] > WIDE_ERROR),
            )


def _count(
    table: CodeColumns, axis: int, others: Sequence[int], sizes: Sequence[int], weights: Weights | None = None
) -> list[Weights]:
    """The marginals of the attribute of groups with each other attribute; rows may have weights."""
    groups = table[axis].astype(np.int64)
    return [
        np.bincount(groups * sizes[other] + table[other], weights, sizes[axis] * sizes[other])
        .reshape(sizes[axis], sizes[other])
        .astype(np.float64)
        for other in others
    ]


def _mean_distances(first: Sequence[Weights], second: Sequence[Weights]) -> Weights:
    """For each group the mean over attributes of the distance between its shares in two tables; 1 if one is empty."""
    distances = []
    for one, other in zip(first, second, strict=True):
        totals = one.sum(axis=1, keepdims=True), other.sum(axis=1, keepdims=True)
        shares = [table / np.maximum(total, 1e-12) for table, total in zip((one, other), totals, strict=True)]
        distance = np.abs(shares[0] - shares[1]).sum(axis=1) / 2
        distances.append(np.where((totals[0] > 0).ravel() & (totals[1] > 0).ravel(), distance, 1.0))
    mean: Weights = np.mean(distances, axis=0)
    return mean
