"""The best of two estimates: the linear one, which is unbiased but noisy, and the model, which is neither.

The model's tables agree and have no negative counts, which removes most of the noise of large sparse tables. But what
is taken from negative cells is missing elsewhere, so that sums of many cells may be off by more than their own noise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsyn.synopsis.answering.linear import Linear, Table, spread


def blended(linear: Linear, model: Table) -> Linear:
    """The linear estimate drawn toward the model as far as they differ by noise alone (James, Stein 1961).

    For the interactions of j attributes together, j = 1, 2, …: if Σ (model − linear)² is no more than the variance of
    the linear estimates, V, the model is taken; else the linear estimate is moved toward it by V / Σ (model − linear)²
    of the way. So the result is about as far from the unbiased estimate as that may be from the truth, at most. The
    number of rows is the model's. ``model`` has the coefficients of its table; what is not known is left alone.
    """
    variances = spread(linear.variances, linear.shape)
    known, apart = np.isfinite(variances), model - linear.coefficients
    order = sum(np.ix_(*[np.minimum(np.arange(size), 1) for size in linear.shape]), np.zeros(linear.shape, np.int64))
    found = linear.coefficients.copy()
    for number in range(len(linear.shape) + 1):
        some = known & (order == number)
        squares, variance = float((apart[some] ** 2).sum()), float(variances[some].sum())
        part = 1.0 if number == 0 or squares <= variance else variance / squares
        found[some] += part * apart[some]
    return replace(linear, coefficients=found)
