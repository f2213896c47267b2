"""How much the noise of what was released moves a reconstructed table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsyn.synopsis.answering.linear import Axes, Linear, Shares, Table
from dpsyn.synopsis.answering.outputs import folded

DRAWS = 200
"""Times the noise is drawn anew: a standard error is then known to 5 %."""

FEWEST = 16
"""Draws for tables so large that more would take long: known to 18 %."""

MOST_NUMBERS = 4_000_000
"""Numbers of all draws together."""

SWEEPS = 40
"""Looks at all sums, at most."""

SETTLED = 0.01
"""Sums that lack less than this share of their deviation are met."""

FLOOR = 1e-6
"""What every cell has at least, as a share of the mean: noise may fill a cell that is empty by now."""


def redrawn_deviations(values: Table, linear: Linear, known: Sequence[Axes], shares: Sequence[Shares | None]) -> Table:
    """The standard deviation of each output of a reconstructed table due to the noise of the sums it was made from.

    The known noise is drawn anew many times; each time the change of the sums is carried over to the table as iterative
    proportional fitting does it, to first order: for each of the sums in turn, what it lacks is spread over its cells
    in proportion to them. The draws come from a fixed seed, so that the same question has the same answer.
    """
    rng = np.random.default_rng(0)
    draws = int(np.clip(MOST_NUMBERS // values.size, FEWEST, DRAWS))
    together = max(1, MOST_NUMBERS // values.size)
    floored = values + max(FLOOR * float(values.mean()), np.finfo(float).tiny)
    squares, done = np.zeros(()), 0
    while done < draws:
        part = min(together, draws - done)
        moved = _carried(floored, linear, known, part, rng)
        squares = squares + (folded(moved, [None, *shares]) ** 2).sum(axis=0)
        done += part
    found: Table = np.sqrt(squares / draws)
    return found


def _carried(values: Table, linear: Linear, known: Sequence[Axes], draws: int, rng: np.random.Generator) -> Table:
    """How draws of the noise change a table: draws × cells."""
    noise = linear.noise(draws, rng)
    parts = []
    for axes in known:
        gone = tuple(axis for axis in range(values.ndim) if axis not in axes)
        conditional = values / values.sum(axis=gone, keepdims=True)
        wanted = noise.sums(axes).reshape(
            [draws, *(size if axis in axes else 1 for axis, size in enumerate(values.shape))]
        )
        parts.append((tuple(axis + 1 for axis in gone), conditional, wanted))
    moved = np.zeros((draws, *values.shape))
    for _ in range(SWEEPS):
        lack = 0.0
        for gone, conditional, wanted in parts:
            missing = wanted - moved.sum(axis=gone, keepdims=True)
            lack = max(lack, float(np.abs(missing).max() / max(wanted.std(), np.finfo(float).tiny)))
            moved += conditional * missing
        if lack <= SETTLED or len(parts) == 1:
            break
    return moved
