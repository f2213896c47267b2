"""How much the noise of what was released moves a reconstructed table.

A maximum entropy table p has the form exp Σ θ_S(x_S), S running over the known components. If known sums change by δ,
it changes by u = p·Σ λ_S(x_S) such that the known sums of u are δ, to first order. So the noise of the sums, which is
known, is carried over to the table: by solving for u if the table is small, else by drawing the noise anew many times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.synopsis.answering.linear import Axes, Linear, Shares, Table, reflected, spread
from dpsyn.synopsis.answering.outputs import folded

SMALL = 1_024
"""Cells up to which equations are solved; they take the cube of it."""

DRAWS, FEWEST = 100, 16
"""Times the noise is drawn anew, fewer for very large tables: a standard error is then known to 7 %, or to 18 %."""

MOST_NUMBERS = 2_000_000
"""Numbers of draws that are worked on together."""

SWEEPS = 20
"""Looks at all sums, at most."""

SETTLED = 0.02
"""Sums that lack less than this share of their deviation are met."""

FLOOR = 1e-6
"""What every cell has at least, as a share of the mean: other noise might have filled a cell that is empty now."""


def carried_deviations(values: Table, linear: Linear, known: Sequence[Axes], shares: Sequence[Shares | None]) -> Table:
    """The standard deviation of each output of a reconstructed table due to the noise of the sums it was made from.

    Draws come from a fixed seed, so that the same question has the same answer.
    """
    floored = values + max(FLOOR * float(values.mean()), np.finfo(float).tiny)
    if values.size <= SMALL:
        moves = _solved(floored, linear)
        return np.asarray(np.sqrt((folded(moves, [None, *shares]) ** 2).sum(axis=0)))
    rng = np.random.default_rng(0)
    draws = int(np.clip(MOST_NUMBERS // values.size, FEWEST, DRAWS))
    together, squares = max(1, MOST_NUMBERS // values.size), np.zeros(())
    for start in range(0, draws, together):
        moves = _drawn(floored, linear, known, min(together, draws - start), rng)
        squares = squares + (folded(moves, [None, *shares]) ** 2).sum(axis=0)
    return np.sqrt(squares / draws)


def _solved(values: Table, linear: Linear) -> Table:
    """How one deviation of each known coefficient moves the table: coefficients × cells.

    With B the basis of the known coefficients, as columns, and D = diag(p), u = DB(BᵀDB)⁻¹δ.
    """
    known = np.flatnonzero(np.isfinite(spread(linear.variances, linear.shape)))
    deviations = np.sqrt(spread(linear.variances, linear.shape).ravel()[known])
    units = np.zeros((len(known), values.size))
    units[np.arange(len(known)), known] = 1.0
    basis = reflected(units.reshape(-1, *values.shape), range(1, values.ndim + 1)).reshape(len(known), -1)
    weighted = basis * values.ravel()
    moved: Table = np.asarray(np.linalg.solve(weighted @ basis.T, weighted), np.float64) * deviations[:, None]
    return moved.reshape(-1, *values.shape)


def _drawn(values: Table, linear: Linear, known: Sequence[Axes], draws: int, rng: np.random.Generator) -> Table:
    """How draws of the noise move the table: draws × cells.

    As iterative proportional fitting does it: for each of the sums in turn, what it lacks is spread over its cells in
    proportion to them.
    """
    noise = linear.noise(draws, rng)
    parts: list[tuple[Axes, Table, Table]] = []
    for axes in known:
        gone = tuple(axis for axis in range(values.ndim) if axis not in axes)
        conditional = values / values.sum(axis=gone, keepdims=True)
        wanted = np.expand_dims(noise.sums(axes), tuple(axis + 1 for axis in gone))
        parts.append((tuple(axis + 1 for axis in gone), conditional, wanted))
    moved: NDArray[np.float64] = np.zeros((draws, *values.shape))
    for _ in range(SWEEPS):
        lack = 0.0
        for gone, conditional, wanted in parts:
            missing = wanted - moved.sum(axis=gone, keepdims=True)
            lack = max(lack, float(np.abs(missing).max() / max(wanted.std(), np.finfo(float).tiny)))
            moved += conditional * missing
        if lack <= SETTLED:
            break
    return moved
