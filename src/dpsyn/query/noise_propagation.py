"""Noise propagation: the standard error of a reconstructed table, from the noise of the released marginals.

A maximum entropy table p has the form exp Σ θ_S(x_S), where S runs over the known components. If known sums change by
δ, the table changes, to first order, by the u = p·Σ λ_S(x_S) whose known sums are δ. The distribution of the noise in
the sums is known and is propagated to the table: by solving for u if the table is small, otherwise by sampling the
noise many times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.query.linear_estimation import (
    Axes,
    LinearEstimate,
    OutputWeights,
    QueryValues,
    coefficient_basis,
    expand_interactions,
)
from dpsyn.query.query import contract_axes

MAX_SOLVED_CELLS = 1_024
"""The maximum number of cells for which equations are solved; that takes time in proportion to its cube."""

NOISE_SAMPLES, MIN_NOISE_SAMPLES = 100, 16
"""The number of noise samples, and the minimum for very large tables: a standard error is then accurate to 7 %, or to
18 %."""

MAX_NUMBERS_AT_ONCE = 2_000_000
"""The maximum size of the arrays of samples that are processed together."""

MAX_NOISE_SWEEPS = 20
"""The maximum number of sweeps over all sums."""

NOISE_TOLERANCE = 0.02
"""Sums count as met if they differ by less than this share of their standard deviation."""

CELL_FLOOR_SHARE = 1e-6
"""The minimum count of a cell, as a share of the mean: other noise might have filled a cell that is empty now."""


def propagate_noise(
    values: QueryValues, linear: LinearEstimate, known: Sequence[Axes], weights: Sequence[OutputWeights | None]
) -> QueryValues:
    """The standard deviation of each output of a reconstructed table due to the noise of the sums it was made from.

    Samples come from a fixed seed, so the same query always has the same answer.
    """
    floored = values + max(CELL_FLOOR_SHARE * float(values.mean()), np.finfo(float).tiny)
    if values.size <= MAX_SOLVED_CELLS:
        responses = _solve_responses(floored, linear)
        return np.asarray(np.sqrt((contract_axes(responses, [None, *weights]) ** 2).sum(axis=0)))
    rng = np.random.default_rng(0)
    samples = int(np.clip(MAX_NUMBERS_AT_ONCE // values.size, MIN_NOISE_SAMPLES, NOISE_SAMPLES))
    batch, squares = max(1, MAX_NUMBERS_AT_ONCE // values.size), np.zeros(())
    for start in range(0, samples, batch):
        responses = _sample_responses(floored, linear, known, min(batch, samples - start), rng)
        squares = squares + (contract_axes(responses, [None, *weights]) ** 2).sum(axis=0)
    return np.sqrt(squares / samples)


def _solve_responses(values: QueryValues, linear: LinearEstimate) -> QueryValues:
    """How one standard deviation of each known coefficient changes the table: coefficients × cells.

    With B the basis of the known coefficients, as columns, and D = diag(p), u = DB(BᵀDB)⁻¹δ.
    """
    known = np.flatnonzero(np.isfinite(expand_interactions(linear.variances, linear.shape)))
    stds = np.sqrt(expand_interactions(linear.variances, linear.shape).ravel()[known])
    basis = coefficient_basis(known, values.shape).reshape(len(known), -1)
    weighted = basis * values.ravel()
    responses: QueryValues = np.asarray(np.linalg.solve(weighted @ basis.T, weighted), np.float64) * stds[:, None]
    return responses.reshape(-1, *values.shape)


def _sample_responses(
    values: QueryValues, linear: LinearEstimate, known: Sequence[Axes], samples: int, rng: np.random.Generator
) -> QueryValues:
    """How samples of the noise change the table: samples × cells.

    As in iterative proportional fitting, the missing part of each sum in turn is spread over its cells in proportion to
    them.
    """
    noise = linear.sample_noise(samples, rng)
    parts: list[tuple[Axes, QueryValues, QueryValues]] = []
    for axes in known:
        summed = tuple(axis for axis in range(values.ndim) if axis not in axes)
        conditional = values / values.sum(axis=summed, keepdims=True)
        target = np.expand_dims(noise.sums(axes), tuple(axis + 1 for axis in summed))
        parts.append((tuple(axis + 1 for axis in summed), conditional, target))
    responses: NDArray[np.float64] = np.zeros((samples, *values.shape))
    for _ in range(MAX_NOISE_SWEEPS):
        max_missing = 0.0
        for summed, conditional, target in parts:
            missing = target - responses.sum(axis=summed, keepdims=True)
            max_missing = max(max_missing, float(np.abs(missing).max() / max(target.std(), np.finfo(float).tiny)))
            responses += conditional * missing
        if max_missing <= NOISE_TOLERANCE:
            break
    return responses
