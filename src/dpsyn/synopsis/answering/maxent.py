"""The table of largest entropy among those with given sums: what they say, and nothing else."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsyn.synopsis.answering.parts import Part, Reconstruction, common_total, widest_gap

SWEEPS = 300
"""Looks at all sums, at most. Ten to fifty are usual; sums that no table has at once never settle."""

SETTLED = 1e-5
"""A sweep that moves less than this share of the rows is the last."""


def maximum_entropy(shape: tuple[int, ...], parts: list[Part], *, sweeps: int = SWEEPS) -> Reconstruction:
    """Iterative proportional fitting: all cells are scaled to match each of the sums in turn, again and again.

    Starting from equal cells this tends to the table of largest entropy with these sums, if there is one (Csiszár,
    1975). A cell in which any of the sums is zero is zero, so that only the others are worked on: a sparse table costs
    as much as the cells that can be filled.
    """
    total = common_total(parts)
    live = _possible(shape, parts) if total > 0 else np.empty(0, np.int64)
    values = np.zeros(math.prod(shape))
    if len(live) == 0:
        return Reconstruction(values.reshape(shape), widest_gap(values.reshape(shape), parts), settled=total <= 0)
    wanted = [(sums_of(part, shape, live), part.values.ravel()) for part in parts]
    cells, settled = np.full(len(live), total / len(live)), False
    for _ in range(sweeps):
        before = cells
        for places, sums in wanted:
            present = np.bincount(places, cells, len(sums))
            cells = cells * np.divide(sums, present, out=np.zeros(len(sums)), where=present > 0)[places]
        if np.abs(cells - before).sum() <= SETTLED * total:
            settled = True
            break
    values[live] = cells
    found = values.reshape(shape)
    return Reconstruction(found, widest_gap(found, parts), settled)


def _possible(shape: tuple[int, ...], parts: list[Part]) -> NDArray[np.int64]:
    """The cells, by their flat places, in which no sum is zero."""
    possible = np.ones(shape, bool)
    for part in parts:
        possible &= part.spread(shape) > 0
    return np.flatnonzero(possible)


def sums_of(part: Part, shape: tuple[int, ...], live: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each cell the place of the sum that it counts for."""
    places = np.unravel_index(live, shape)
    if not part.axes:
        return np.zeros(len(live), np.int64)
    return np.ravel_multi_index([places[axis] for axis in part.axes], part.values.shape)
