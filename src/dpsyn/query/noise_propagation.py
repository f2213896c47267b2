"""How much the noise of what was released moves a reconstructed table.

A maximum entropy table p has the form exp Σ θ_S(x_S), S running over the known components. If known sums change by δ,
it changes by u = p·Σ λ_S(x_S) such that the known sums of u are δ, to first order. So the noise of the sums, which is
known, is carried over to the table: by solving for u if the table is small, else by drawing the noise anew many times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.query.blue import Axes, LinearEstimate, OutputWeights, QueryValues, expand_interactions, reflect
from dpsyn.query.query import contract_axes

MAX_SOLVED_CELLS = 1_024
"""Cells up to which equations are solved; they take the cube of it."""

NOISE_SAMPLES, MIN_NOISE_SAMPLES = 100, 16
"""Times the noise is drawn anew, fewer for very large tables: a standard error is then known to 7 %, or to 18 %."""

MAX_NUMBERS_AT_ONCE = 2_000_000
"""Numbers of draws that are worked on together."""

MAX_NOISE_SWEEPS = 20
"""Looks at all sums, at most."""

NOISE_TOLERANCE = 0.02
"""Sums that lack less than this share of their deviation are met."""

CELL_FLOOR_SHARE = 1e-6
"""What every cell has at least, as a share of the mean: other noise might have filled a cell that is empty now."""


def propagate_noise(
    values: QueryValues, linear: LinearEstimate, known: Sequence[Axes], weights: Sequence[OutputWeights | None]
) -> QueryValues:
    """The standard deviation of each output of a reconstructed table due to the noise of the sums it was made from.

    Draws come from a fixed seed, so that the same question has the same answer.
    """
    floored = values + max(CELL_FLOOR_SHARE * float(values.mean()), np.finfo(float).tiny)
    if values.size <= MAX_SOLVED_CELLS:
        moves = _solve_responses(floored, linear)
        return np.asarray(np.sqrt((contract_axes(moves, [None, *weights]) ** 2).sum(axis=0)))
    rng = np.random.default_rng(0)
    draws = int(np.clip(MAX_NUMBERS_AT_ONCE // values.size, MIN_NOISE_SAMPLES, NOISE_SAMPLES))
    together, squares = max(1, MAX_NUMBERS_AT_ONCE // values.size), np.zeros(())
    for start in range(0, draws, together):
        moves = _sample_responses(floored, linear, known, min(together, draws - start), rng)
        squares = squares + (contract_axes(moves, [None, *weights]) ** 2).sum(axis=0)
    return np.sqrt(squares / draws)


def _solve_responses(values: QueryValues, linear: LinearEstimate) -> QueryValues:
    """How one deviation of each known coefficient moves the table: coefficients × cells.

    With B the basis of the known coefficients, as columns, and D = diag(p), u = DB(BᵀDB)⁻¹δ.
    """
    known = np.flatnonzero(np.isfinite(expand_interactions(linear.variances, linear.shape)))
    deviations = np.sqrt(expand_interactions(linear.variances, linear.shape).ravel()[known])
    units = np.zeros((len(known), values.size))
    units[np.arange(len(known)), known] = 1.0
    basis = reflect(units.reshape(-1, *values.shape), range(1, values.ndim + 1)).reshape(len(known), -1)
    weighted = basis * values.ravel()
    moved: QueryValues = np.asarray(np.linalg.solve(weighted @ basis.T, weighted), np.float64) * deviations[:, None]
    return moved.reshape(-1, *values.shape)


def _sample_responses(
    values: QueryValues, linear: LinearEstimate, known: Sequence[Axes], samples: int, rng: np.random.Generator
) -> QueryValues:
    """How draws of the noise move the table: draws × cells.

    As iterative proportional fitting does it: for each of the sums in turn, what it lacks is spread over its cells in
    proportion to them.
    """
    noise = linear.sample_noise(samples, rng)
    parts: list[tuple[Axes, QueryValues, QueryValues]] = []
    for axes in known:
        gone = tuple(axis for axis in range(values.ndim) if axis not in axes)
        conditional = values / values.sum(axis=gone, keepdims=True)
        wanted = np.expand_dims(noise.sums(axes), tuple(axis + 1 for axis in gone))
        parts.append((tuple(axis + 1 for axis in gone), conditional, wanted))
    moved: NDArray[np.float64] = np.zeros((samples, *values.shape))
    for _ in range(MAX_NOISE_SWEEPS):
        lack = 0.0
        for gone, conditional, wanted in parts:
            missing = wanted - moved.sum(axis=gone, keepdims=True)
            lack = max(lack, float(np.abs(missing).max() / max(wanted.std(), np.finfo(float).tiny)))
            moved += conditional * missing
        if lack <= NOISE_TOLERANCE:
            break
    return moved
