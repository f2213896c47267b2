"""The counts that are likely behind noisy ones, none of them negative and none impossible."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

CLEAR_SIGMAS = 6.0
"""So many standard deviations above zero a count is as it was measured."""

COUNT_LEVELS = 60
"""Counts above zero that are told apart below that, each a constant factor above the one before."""

EM_ROUNDS = 20
"""Few, so that the distribution stays smooth: with many it would fall apart into spikes."""

MAX_SAMPLE_CELLS, BLOCK_CELLS = 20_000, 4_096
"""Cells that the distribution of counts is found from, and cells that are worked on at a time."""


def posterior_mean_counts(values: Values, std: float) -> Values:
    """The expected count of each cell, given its noisy one and how noisy counts are distributed over all cells.

    Clipping takes a rare value for one that never occurs. Here the distribution of true counts over the cells is found
    that explains the noisy ones best (Kiefer and Wolfowitz 1956, by expectation maximisation), and each count is its
    mean given what was measured (Robbins 1956): near the measured value where that stands out from the noise, a small
    positive number where it does not, and the smaller the more of the cells seem to be empty.

    Args:
        values: noisy counts of cells that have much in common, such as all values of one attribute.
        std: the standard deviation of their noise; if it is 0 negative counts are set to 0 and that is all.
    """
    flat = values.ravel()
    if std <= 0 or not flat.size:
        return np.maximum(values, 0.0)
    unclear = np.flatnonzero(flat < CLEAR_SIGMAS * std)
    found: Values = flat.copy()
    if unclear.size:
        levels = np.concatenate([[0.0], np.geomspace(std / 10, 1.5 * CLEAR_SIGMAS * std, COUNT_LEVELS)])
        weights = _estimate_prior(flat[unclear[:: -(-unclear.size // MAX_SAMPLE_CELLS)]], levels, std)
        for start in range(0, unclear.size, BLOCK_CELLS):
            some = unclear[start : start + BLOCK_CELLS]
            shares = _likelihoods(flat[some], levels, std) * weights
            found[some] = shares @ levels / shares.sum(axis=1)
    return found.reshape(values.shape)


def _estimate_prior(sample: Values, levels: Values, std: float) -> Values:
    """How likely each level is."""
    likelihoods = _likelihoods(sample, levels, std)
    weights = np.full(len(levels), 1 / len(levels))
    for _ in range(EM_ROUNDS):
        weights *= (likelihoods / (likelihoods @ weights)[:, None]).mean(axis=0)
    return weights


def _likelihoods(values: Values, levels: Values, std: float) -> Values:
    """How likely each value is at each level, up to a factor of its own: cells × levels."""
    logs = -0.5 * ((values[:, None] - levels) / std) ** 2
    likelihoods: Values = np.exp(logs - logs.max(axis=1, keepdims=True))
    return likelihoods
