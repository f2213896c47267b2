"""Empirical Bayes: the posterior mean of true counts given noisy ones. No count is negative, and none is impossible."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Values = NDArray[np.float64]

CLEAR_SIGMAS = 6.0
"""A noisy count of at least this many standard deviations is returned as measured."""

COUNT_LEVELS = 60
"""The number of positive counts that the prior distinguishes below that, each a constant factor above the previous."""

EM_ROUNDS = 20
"""Rounds of expectation maximization. Few rounds keep the prior smooth; with many it degenerates into spikes."""

MAX_SAMPLE_CELLS, BLOCK_CELLS = 20_000, 4_096
"""The maximum number of cells that the prior is estimated from, and the number of cells processed at a time."""


def posterior_mean_counts(values: Values, std: float) -> Values:
    """The posterior mean of each count, given its noisy count and the distribution of noisy counts over all cells.

    Clipping would turn a rare value into one that never occurs. Here the prior is the distribution of true counts that
    explains the noisy ones best (Kiefer and Wolfowitz 1956, by expectation maximization), and each count is its
    posterior mean (Robbins 1956): close to the noisy count if that stands out from the noise, otherwise a small
    positive number, which is the smaller the more cells seem to be empty.

    Args:
        values: noisy counts of similar cells, such as all values of one attribute.
        std: the standard deviation of the noise; if it is 0, only negative counts are set to 0.
    """
    return posterior_counts(values, std)[0]


def posterior_counts(values: Values, std: float) -> tuple[Values, Values]:
    """The same, and how much each mean follows its noisy count: the posterior variance over that of the noise.

    The sum of the latter is the effective number of parameters of the estimate.
    """
    flat = values.ravel()
    if std <= 0 or not flat.size:
        return np.maximum(values, 0.0), np.ones(values.shape)
    unclear = np.flatnonzero(flat < CLEAR_SIGMAS * std)
    means: Values = flat.copy()
    freedoms = np.ones(flat.shape)
    if unclear.size:
        levels = np.concatenate([[0.0], np.geomspace(std / 10, 1.5 * CLEAR_SIGMAS * std, COUNT_LEVELS)])
        weights = _estimate_prior(flat[unclear[:: -(-unclear.size // MAX_SAMPLE_CELLS)]], levels, std)
        for start in range(0, unclear.size, BLOCK_CELLS):
            block = unclear[start : start + BLOCK_CELLS]
            posteriors = _likelihoods(flat[block], levels, std) * weights
            sums = posteriors.sum(axis=1)
            means[block] = posteriors @ levels / sums
            freedoms[block] = (posteriors @ levels**2 / sums - means[block] ** 2) / std**2
    return means.reshape(values.shape), freedoms.reshape(values.shape)


def _estimate_prior(sample: Values, levels: Values, std: float) -> Values:
    """The prior probability of each level."""
    likelihoods = _likelihoods(sample, levels, std)
    weights = np.full(len(levels), 1 / len(levels))
    for _ in range(EM_ROUNDS):
        weights *= (likelihoods / (likelihoods @ weights)[:, None]).mean(axis=0)
    return weights


def _likelihoods(values: Values, levels: Values, std: float) -> Values:
    """The likelihood of each value at each level, up to a factor per value: cells × levels."""
    logs = -0.5 * ((values[:, None] - levels) / std) ** 2
    likelihoods: Values = np.exp(logs - logs.max(axis=1, keepdims=True))
    return likelihoods


def normal_quantiles(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quantiles of the standard normal distribution."""
    return np.asarray(ndtri(probabilities), np.float64)
