"""A table that is to be worked out from its sums over some of its attributes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference import norm_sub
from dpsyn.query.blue import Axes, Observation, QueryValues, estimate_linear


@dataclass(frozen=True, slots=True, eq=False)
class KnownMarginal:
    """The sums of a table over all attributes but some.

    Attributes:
        axes: the attributes that stay.
        values: non-negative counts, an axis for each.
    """

    axes: Axes
    values: QueryValues

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.axes) or not (self.values >= 0).all():
            raise InternalError(f"{len(self.axes)} attributes have sums of {self.values.ndim} axes, or negative ones")

    def summed_axes(self, count: int) -> tuple[int, ...]:
        """The attributes that are summed over, of so many."""
        return tuple(axis for axis in range(count) if axis not in self.axes)

    def broadcast(self, shape: tuple[int, ...]) -> QueryValues:
        """The values with an axis of length 1 for every attribute that is summed over."""
        return self.values.reshape([size if axis in self.axes else 1 for axis, size in enumerate(shape)])


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction:
    """A table that was worked out from its sums.

    Attributes:
        values: the counts.
        max_gap: by how much its sums differ from those it was made from, at most.
        converged: whether more work would change it.
    """

    values: QueryValues
    max_gap: float
    converged: bool


def find_max_gap(values: QueryValues, marginals: list[KnownMarginal]) -> float:
    """The largest difference between the sums of a table and what they should be."""
    gaps = [np.abs(values.sum(axis=part.summed_axes(values.ndim)) - part.values).max() for part in marginals]
    return float(max(gaps, default=0.0))


def common_total(marginals: list[KnownMarginal]) -> float:
    """The number of rows that all parts have, up to what they disagree by."""
    return math.fsum(float(part.values.sum()) for part in marginals) / max(len(marginals), 1)


# ── The table of largest entropy among those with given sums: what they say, and nothing else ──


MAX_IPF_SWEEPS = 300
"""Looks at all sums, at most. Ten to fifty are usual; sums that no table has at once never settle."""

IPF_TOLERANCE = 1e-5
"""A sweep that moves less than this share of the rows is the last."""


def maximum_entropy(
    shape: tuple[int, ...], marginals: list[KnownMarginal], *, max_sweeps: int = MAX_IPF_SWEEPS
) -> Reconstruction:
    """Iterative proportional fitting: all cells are scaled to match each of the sums in turn, again and again.

    Starting from equal cells this tends to the table of largest entropy with these sums, if there is one (Csiszár,
    1975). A cell in which any of the sums is zero is zero, so that only the others are worked on: a sparse table costs
    as much as the cells that can be filled.
    """
    total = common_total(marginals)
    live = _possible_cells(shape, marginals) if total > 0 else np.empty(0, np.int64)
    values = np.zeros(math.prod(shape))
    if len(live) == 0:
        return Reconstruction(
            values.reshape(shape), find_max_gap(values.reshape(shape), marginals), converged=total <= 0
        )
    wanted = [(sum_indices(part, shape, live), part.values.ravel()) for part in marginals]
    cells, settled = np.full(len(live), total / len(live)), False
    for _ in range(max_sweeps):
        before = cells
        for places, sums in wanted:
            present = np.bincount(places, cells, len(sums))
            cells = cells * np.divide(sums, present, out=np.zeros(len(sums)), where=present > 0)[places]
        if np.abs(cells - before).sum() <= IPF_TOLERANCE * total:
            settled = True
            break
    values[live] = cells
    found = values.reshape(shape)
    return Reconstruction(found, find_max_gap(found, marginals), settled)


def _possible_cells(shape: tuple[int, ...], marginals: list[KnownMarginal]) -> NDArray[np.int64]:
    """The cells, by their flat places, in which no sum is zero."""
    possible = np.ones(shape, bool)
    for part in marginals:
        possible &= part.broadcast(shape) > 0
    return np.flatnonzero(possible)


def sum_indices(marginal: KnownMarginal, shape: tuple[int, ...], live: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each cell the place of the sum that it counts for."""
    places = np.unravel_index(live, shape)
    if not marginal.axes:
        return np.zeros(len(live), np.int64)
    return np.ravel_multi_index([places[axis] for axis in marginal.axes], marginal.values.shape)


# ── The smallest table, in squares, among those with given sums. For comparison: maximum entropy is nearer the truth ──


def least_norm(shape: tuple[int, ...], marginals: list[KnownMarginal]) -> Reconstruction:
    """The table whose unknown components are zero, which has the least Σ cell² of all with these sums.

    Negative cells are removed by norm-sub, after which the sums are met less closely.
    """
    known = [Observation(part.axes, part.values, 1.0) for part in marginals]
    values = estimate_linear(shape, known).table() if marginals else np.zeros(shape)
    found = norm_sub(values, common_total(marginals))
    return Reconstruction(found, find_max_gap(found, marginals), converged=True)


# ── A table whose sums are as near to given ones as can be. For comparison: it has many zeros that nothing asks for ──


def linear_program(shape: tuple[int, ...], marginals: list[KnownMarginal]) -> Reconstruction:
    """The non-negative table that minimises the largest difference of any sum (PriView, section 4.6).

    min τ such that Σ cells − τ + u = sum and Σ cells + τ − v = sum for every sum of every part, with u and v at least
    0; one of many solutions, a corner of their set.
    """
    from dpsyn.constraints.linear_program import solve_linear_program  # loads the solver, which takes a while

    count, cells = math.prod(shape), np.arange(math.prod(shape))
    wanted = np.concatenate([part.values.ravel() for part in marginals])
    starts = np.cumsum([0, *(part.values.size for part in marginals)])
    rows = np.concatenate(
        [sum_indices(part, shape, cells) + start for part, start in zip(marginals, starts, strict=False)]
    )
    sums, ones = np.arange(len(wanted)), np.ones(len(wanted))
    tau = np.full(len(wanted), count)
    found = solve_linear_program(
        cost=np.eye(1, count + 1 + 2 * len(wanted), count)[0],
        entries=np.concatenate([np.ones(2 * len(rows)), -ones, ones, ones, -ones]),
        rows=np.concatenate([rows, rows + len(wanted), *2 * [sums, sums + len(wanted)]]),
        columns=np.concatenate(
            [*2 * [np.tile(cells, len(marginals))], tau, tau, count + 1 + np.arange(2 * len(wanted))]
        ),
        demand=np.concatenate([wanted, wanted]),
    )
    values = np.maximum(found[:count], 0.0).reshape(shape)
    return Reconstruction(values, find_max_gap(values, marginals), converged=True)
