"""Reconstruction of a table from some of its marginals: maximum entropy, least norm, linear program (PriView).

Maximum entropy is the method in use; the other two are for comparison.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference import norm_sub
from dpsyn.query.linear_estimation import Axes, Observation, QueryValues, estimate_linear


@dataclass(frozen=True, slots=True, eq=False)
class KnownMarginal:
    """A known marginal of a table.

    Attributes:
        axes: the attributes of the marginal.
        values: non-negative counts, with an axis for each of them.
    """

    axes: Axes
    values: QueryValues

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.axes) or not (self.values >= 0).all():
            raise InternalError(f"{len(self.axes)} attributes have sums of {self.values.ndim} axes, or negative ones")

    def summed_axes(self, count: int) -> tuple[int, ...]:
        """The attributes that are summed over, of a table with ``count`` attributes."""
        return tuple(axis for axis in range(count) if axis not in self.axes)

    def broadcast(self, shape: tuple[int, ...]) -> QueryValues:
        """The values with an axis of length 1 for every attribute that is summed over."""
        return self.values.reshape([size if axis in self.axes else 1 for axis, size in enumerate(shape)])


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction:
    """A table that was reconstructed from marginals.

    Attributes:
        values: the counts.
        max_gap: the largest difference between its sums and the known marginals.
        converged: whether the method converged.
    """

    values: QueryValues
    max_gap: float
    converged: bool


def find_max_gap(values: QueryValues, marginals: list[KnownMarginal]) -> float:
    """The largest difference between the sums of a table and the known marginals."""
    gaps = [np.abs(values.sum(axis=known.summed_axes(values.ndim)) - known.values).max() for known in marginals]
    return float(max(gaps, default=0.0))


def common_total(marginals: list[KnownMarginal]) -> float:
    """The number of rows: the mean of the marginals' totals, which should be equal."""
    return math.fsum(float(known.values.sum()) for known in marginals) / max(len(marginals), 1)


# ── Maximum entropy: the table with these marginals that assumes nothing else ────────────────────────────────


MAX_IPF_SWEEPS = 300
"""The maximum number of sweeps over all marginals. Ten to fifty are usual; marginals that contradict each other never
converge."""

IPF_TOLERANCE = 1e-5
"""Sweeps stop after one that moves less than this share of the rows."""


def maximum_entropy(
    shape: tuple[int, ...], marginals: list[KnownMarginal], *, max_sweeps: int = MAX_IPF_SWEEPS
) -> Reconstruction:
    """Iterative proportional fitting: all cells are scaled to match each of the marginals in turn, repeatedly.

    Starting from equal cells this converges to the table of maximum entropy with these marginals, if there is one
    (Csiszár, 1975). A cell for which a marginal is zero is zero, so only the other cells are computed: the cost of a
    sparse table is that of the cells that can be filled.
    """
    total = common_total(marginals)
    live = _possible_cells(shape, marginals) if total > 0 else np.empty(0, np.int64)
    values = np.zeros(math.prod(shape))
    if len(live) == 0:
        return Reconstruction(
            values.reshape(shape), find_max_gap(values.reshape(shape), marginals), converged=total <= 0
        )
    targets = [(sum_indices(known, shape, live), known.values.ravel()) for known in marginals]
    cells, converged = np.full(len(live), total / len(live)), False
    for _ in range(max_sweeps):
        previous = cells
        for indices, sums in targets:
            current = np.bincount(indices, cells, len(sums))
            cells = cells * np.divide(sums, current, out=np.zeros(len(sums)), where=current > 0)[indices]
        if np.abs(cells - previous).sum() <= IPF_TOLERANCE * total:
            converged = True
            break
    values[live] = cells
    table = values.reshape(shape)
    return Reconstruction(table, find_max_gap(table, marginals), converged)


def _possible_cells(shape: tuple[int, ...], marginals: list[KnownMarginal]) -> NDArray[np.int64]:
    """The flat indices of the cells for which no marginal is zero."""
    possible = np.ones(shape, bool)
    for known in marginals:
        possible &= known.broadcast(shape) > 0
    return np.flatnonzero(possible)


def sum_indices(marginal: KnownMarginal, shape: tuple[int, ...], live: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each cell the flat index of the sum that it counts for."""
    indices = np.unravel_index(live, shape)
    if not marginal.axes:
        return np.zeros(len(live), np.int64)
    return np.ravel_multi_index([indices[axis] for axis in marginal.axes], marginal.values.shape)


# ── Least norm, for comparison: maximum entropy is closer to the truth ───────────────────────────────────────


def least_norm(shape: tuple[int, ...], marginals: list[KnownMarginal]) -> Reconstruction:
    """The table whose unknown components are zero; of all tables with these marginals it has the least Σ cell².

    Negative cells are removed by norm-sub, after which the marginals are matched less closely.
    """
    observations = [Observation(known.axes, known.values, 1.0) for known in marginals]
    values = estimate_linear(shape, observations).table() if marginals else np.zeros(shape)
    table = norm_sub(values, common_total(marginals))
    return Reconstruction(table, find_max_gap(table, marginals), converged=True)


# ── Linear program, for comparison: its table has many zeros that no marginal implies ────────────────────────


def linear_program(shape: tuple[int, ...], marginals: list[KnownMarginal]) -> Reconstruction:
    """The non-negative table that minimizes the largest difference from any known sum (PriView, section 4.6).

    min τ such that Σ cells − τ + u = sum and Σ cells + τ − v = sum for every sum of every marginal, with u and v at
    least 0. The solution is one of many, a vertex of their set.
    """
    from dpsyn.constraints.linear_program import solve_linear_program  # loads the solver, which is slow

    count, cells = math.prod(shape), np.arange(math.prod(shape))
    targets = np.concatenate([known.values.ravel() for known in marginals])
    starts = np.cumsum([0, *(known.values.size for known in marginals)])
    rows = np.concatenate(
        [sum_indices(known, shape, cells) + start for known, start in zip(marginals, starts, strict=False)]
    )
    sums, ones = np.arange(len(targets)), np.ones(len(targets))
    tau = np.full(len(targets), count)
    solution = solve_linear_program(
        cost=np.eye(1, count + 1 + 2 * len(targets), count)[0],
        entries=np.concatenate([np.ones(2 * len(rows)), -ones, ones, ones, -ones]),
        rows=np.concatenate([rows, rows + len(targets), *2 * [sums, sums + len(targets)]]),
        columns=np.concatenate(
            [*2 * [np.tile(cells, len(marginals))], tau, tau, count + 1 + np.arange(2 * len(targets))]
        ),
        demand=np.concatenate([targets, targets]),
    )
    values = np.maximum(solution[:count], 0.0).reshape(shape)
    return Reconstruction(values, find_max_gap(values, marginals), converged=True)
