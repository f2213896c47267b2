"""Counts of adjacent ranges of a number or date, from noisy ones: neighbors inform each other, and tails fall off.

Neighboring ranges hold similar densities, so the logarithm of the density is modeled as a random walk of second order
over the ranges (Eilers and Marx: *Flexible smoothing with B-splines and penalties*, 1996). Its second differences have
a Cauchy distribution, which allows for edges, and its scale is estimated from the noisy counts by the maximum of the
evidence. So a smooth density is estimated from many counts at once, and a rough one follows its own.

A run of ranges at either end, or a gap inside, whose counts do not stand out from the noise is different: nothing is
known about it except that densities fall off from those that do stand out. There, densities fall by a constant factor
from range to range, and that factor is averaged over what the counts leave open. So an empty tail does not fill up with
noise, however many ranges it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.inference.empirical_bayes import posterior_counts

Values = NDArray[np.float64]

CLEAR_SIGMAS = 3.0
"""A count of at least this many standard deviations stands out from the noise."""

GAP_SIGMAS, MIN_GAP = 2.0, 3
"""A run of counts that do not stand out is a tail or a gap if its sum is below so many of its standard deviations;
inside, it has at least so many counts."""

SPIKE_SIGMAS, SPIKE_RATIO = 6.0, 3.0
"""A count that is so many standard deviations, and so many times, above what both neighbors' densities predict is a
spike: it says nothing about them."""

OUTLIER_SIGMAS, OUTLIER_ROUNDS = 3.0, 5
"""A count that is so many standard deviations from the smooth density keeps its value, and the others are smoothed
without it, in at most so many rounds."""

ROUGHNESSES = np.geomspace(0.02, 2.0, 8)
"""The scales of second differences of the logarithm that are tried: from a line to hardly any smoothing."""

FALLS = np.geomspace(1e-4, 0.8, 24)
"""The factors from range to range by which a density may fall in a tail or gap."""

FALL_DISPERSION = 0.5
"""The relative standard deviation of a count in a tail from one that falls by a constant factor."""

MAX_SHIFT = 1.5
"""Smoothing moves a count by so many standard deviations at most: values that people prefer, such as 55 between 54
and 56, may not be smooth although no single count shows it."""

MAX_NEWTON_STEPS, STEP_TOLERANCE = 60, 0.02
"""The maximum number of Newton steps; they end when no logarithm moves by more than the second number, and no count by
more than so many standard deviations of its noise."""

MAX_LOG_STEP = 1.5
"""No logarithm moves by more in one step: counts below the noise say little about it, so full steps would overshoot."""

MIN_RANGES = 4
"""Fewer ranges than this have no second differences to estimate a roughness from."""


def estimate_ordered_counts(values: Values, stds: Values, widths: Values, total: float | None = None) -> Values:
    """Non-negative counts of adjacent ranges.

    Args:
        values: the noisy counts, in the order of the ranges.
        stds: the standard deviation of the noise in each.
        widths: the widths of the ranges.
        total: their sum, if it is known better than from the noisy counts.
    """
    total = max(float(values.sum()) if total is None else total, 0.0)
    clear = values >= CLEAR_SIGMAS * stds
    if not clear.any() or len(values) < MIN_RANGES:
        counts, everywhere = posterior_counts(values, float(np.median(stds)))[0], np.ones(len(values), np.bool_)
        return _keep_total(counts, total, stds, clear, everywhere)
    empty = _find_gaps(values, stds, clear)
    solid = np.flatnonzero(~empty)
    counts = np.zeros(len(values))
    counts[solid] = _estimate_solid(values, stds, widths, solid)
    density = counts / widths
    spikes = _find_spikes(values, stds, widths, ~empty)
    for start, stop in _runs(empty):
        left = _nearest_density(density, empty, spikes, range(start - 1, -1, -1))
        right = _nearest_density(density, empty, spikes, range(stop, len(values)))
        part = slice(start, stop)
        counts[part] = _fall_off(values[part], stds[part], widths[part], left, right)
    return _keep_total(counts, total, stds, clear, ~empty)


def _keep_total(
    counts: Values, total: float, stds: Values, clear: NDArray[np.bool_], solid: NDArray[np.bool_]
) -> Values:
    """The counts with a total: what they lack or exceed is shared by those outside tails and gaps, by their variances.

    A clear count moves by one standard deviation at most. What is left then is shared by the others in proportion.
    """
    shares = np.where(solid, stds**2, 0.0)
    moved = np.maximum(counts + (total - float(counts.sum())) * shares / max(float(shares.sum()), 1e-12), 0.0)
    moved = np.where(clear, np.clip(moved, counts - stds, counts + stds), moved)
    for others in (solid & ~clear, ~clear, clear):
        rest, sum_of_others = total - float(moved[~others].sum()), float(moved[others].sum())
        if rest >= 0 and sum_of_others > 0:
            return np.asarray(np.where(others, moved * (rest / sum_of_others), moved), np.float64)
    return np.asarray(moved * (total / max(float(moved.sum()), 1e-12)), np.float64)


def _estimate_solid(values: Values, stds: Values, widths: Values, solid: NDArray[np.int64]) -> Values:
    """The counts of ranges outside tails and gaps.

    Of the smooth estimate and the one that knows nothing of order (``posterior_counts``), the one with the smaller
    estimated squared error is used (Stein's unbiased risk estimate 1981).
    """
    smooth, freedom = np.maximum(values, 0.0), 0.0
    spikes = _find_spikes(values, stds, widths, np.isin(np.arange(len(values)), solid))
    for _ in range(OUTLIER_ROUNDS):
        smooth, freedom = _smooth_runs(values, stds, widths, solid, spikes)
        outliers = ~spikes & (np.abs(values - smooth) > OUTLIER_SIGMAS * stds)
        outliers[np.setdiff1d(np.arange(len(values)), solid)] = False
        if not outliers.any():
            break
        spikes |= outliers
    apart, freedoms = posterior_counts(values[solid], float(np.median(stds)))
    risks = [
        float((((counts - values[solid]) / stds[solid]) ** 2).sum()) + 2 * parameters
        for counts, parameters in ((smooth[solid], freedom), (apart, float(freedoms.sum())))
    ]
    if risks[0] > risks[1]:
        return apart
    near, measured = MAX_SHIFT * stds[solid], values[solid]
    return np.asarray(np.maximum(np.clip(smooth[solid], measured - near, measured + near), 0.0), np.float64)


def _smooth_runs(
    values: Values, stds: Values, widths: Values, solid: NDArray[np.int64], spikes: NDArray[np.bool_]
) -> tuple[Values, float]:
    """Smooth the runs between gaps, without spikes; return the counts and the effective number of parameters."""
    smooth, freedom = np.maximum(values, 0.0), float(spikes.sum())
    regular = solid[~spikes[solid]]
    breaks = [index for index in range(1, len(regular)) if _is_broken(regular[index - 1], regular[index], spikes)]
    for run in np.split(regular, breaks):
        if len(run) >= MIN_RANGES:
            smooth[run], parameters = _smooth(values[run], stds[run], widths[run])
            freedom += parameters
        else:
            freedom += len(run)
    return smooth, freedom


def _is_broken(one: int, other: int, spikes: NDArray[np.bool_]) -> bool:
    """Whether there is a gap between two ranges, and not only spikes."""
    return not bool(spikes[one + 1 : other].all())


def _nearest_density(density: Values, empty: NDArray[np.bool_], spikes: NDArray[np.bool_], order: range) -> float:
    """The density next to a gap; that of a spike only if there is nothing else before the next gap."""
    first = 0.0
    for index in order:
        if empty[index]:
            break
        if not spikes[index]:
            return float(density[index])
        first = first or float(density[index])
    return first


def _runs(members: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """The first and the last index plus one of every run of members."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], members, [False]]).astype(np.int8))).tolist()
    return zip(edges[::2], edges[1::2], strict=True)


def _find_gaps(values: Values, stds: Values, clear: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The ranges that belong to a tail or a gap: runs whose sums do not stand out either."""
    gaps = np.zeros(len(values), np.bool_)
    for start, stop in _runs(~clear):
        if start == 0:
            gaps[: stop - _count_solid(values[:stop][::-1], stds[:stop][::-1])] = True
        elif stop == len(values):
            gaps[start + _count_solid(values[start:], stds[start:]) :] = True
        elif stop - start >= MIN_GAP:
            gaps[start:stop] = not _count_solid(values[start:stop], stds[start:stop])
    return gaps


def _count_solid(values: Values, stds: Values) -> int:
    """After how many ranges of a run, from the clear one before it, the sum of all others does not stand out."""
    sums, variances = np.cumsum(values[::-1])[::-1], np.cumsum(stds[::-1] ** 2)[::-1]
    thin = np.append(sums < GAP_SIGMAS * np.sqrt(variances), True)
    return int(np.argmax(thin))


def _find_spikes(values: Values, stds: Values, widths: Values, among: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The ranges whose density is far above that of both neighbors."""
    density = np.where(among, np.maximum(values, 0.0) / widths, 0.0)
    before, after = np.append(0.0, density[:-1]), np.append(density[1:], 0.0)
    predicted = np.maximum(before, after) * widths
    far = (values > predicted + SPIKE_SIGMAS * stds) & (values > SPIKE_RATIO * predicted)
    return np.asarray(among & far, np.bool_)


# ── tails and gaps ───────────────────────────────────────────────────────────────────────────────────────────


def _fall_off(values: Values, stds: Values, widths: Values, left: float, right: float) -> Values:
    """Counts of a run without clear ones, given the densities on its left and right, 0 if there are none.

    Every pair of factors predicts counts; the truth differs from them by a share. The result is the posterior mean over
    all pairs.
    """
    distance = np.arange(1, len(values) + 1)
    from_left = left * widths * FALLS[:, None] ** distance if left > 0 else np.zeros((1, len(values)))
    from_right = right * widths * FALLS[:, None] ** distance[::-1] if right > 0 else np.zeros((1, len(values)))
    means = from_left[:, None, :] + from_right[None, :, :]
    own = (FALL_DISPERSION * means) ** 2
    variances = own + stds**2
    logs = -0.5 * ((values - means) ** 2 / variances + np.log(variances)).sum(axis=-1)
    chances = np.exp(logs - logs.max())
    posterior = np.maximum(means + own / variances * (values - means), 0.0)
    return np.asarray((chances[..., None] * posterior).sum(axis=(0, 1)) / chances.sum(), np.float64)


# ── the random walk of logarithms of densities ───────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Fit:
    """The most probable logarithms of densities for a roughness.

    Attributes:
        logs: the logarithms.
        evidence: the logarithm of the evidence, by Laplace's method.
        bands: the banded Hessian matrix: its diagonal and the two below.
    """

    logs: Values
    evidence: float
    bands: Values


def _smooth(values: Values, stds: Values, widths: Values) -> tuple[Values, float]:
    """Positive counts of adjacent ranges, and the effective number of parameters."""
    logs = np.log(np.maximum(values, stds / 2) / widths)
    best: _Fit | None = None
    for roughness in ROUGHNESSES[::-1]:  # from rough to smooth, each from the one before
        found = _fit_logs(values, stds, widths, float(roughness), logs)
        logs = found.logs
        if best is None or found.evidence > best.evidence:
            best = found
    if best is None:
        return values, float(len(values))
    counts = widths * np.exp(best.logs)
    hessian = np.diag(best.bands[0])
    for offset in (1, 2):
        below = best.bands[offset, :-offset]
        hessian += np.diag(below, -offset) + np.diag(below, offset)
    parameters = float(((counts / stds) ** 2 * np.diag(np.linalg.inv(hessian))).sum())
    return np.asarray(counts, np.float64), parameters


def _fit_logs(values: Values, stds: Values, widths: Values, roughness: float, logs: Values) -> _Fit:
    """Newton's method on the posterior of the logarithms; second differences are reweighted in every step."""
    from scipy.linalg import cho_solve_banded, cholesky_banded  # takes 0.1 s to import

    def loss(at: Values) -> float:
        residuals = (values - widths * np.exp(np.minimum(at, 700.0))) / stds
        return 0.5 * float(residuals @ residuals) + float(np.log1p((np.diff(at, 2) / roughness) ** 2).sum())

    current = loss(logs)
    factor = bands = np.ones((3, len(values)))
    for _ in range(MAX_NEWTON_STEPS):
        counts = widths * np.exp(logs)
        precisions = (counts / stds) ** 2
        bands = _difference_bands(2 / (roughness**2 + np.diff(logs, 2) ** 2))
        gradient = (counts - values) * counts / stds**2 + _multiply_bands(bands, logs)
        bands[0] += precisions + 1e-9 * float(precisions.max()) + 1e-9
        factor = cholesky_banded(bands, lower=True, check_finite=False)
        step = -cho_solve_banded((factor, True), gradient, check_finite=False)
        step *= min(1.0, MAX_LOG_STEP / max(float(np.abs(step).max()), 1e-12))
        length = float((np.abs(step) * np.maximum(counts / stds, 1.0)).max())
        while (reached := loss(logs + step)) > current and length >= STEP_TOLERANCE:
            step, length = step / 2, length / 2
        logs, current = logs + step, reached
        if length < STEP_TOLERANCE:
            break
    evidence = -current - float(np.log(factor[0]).sum()) - (len(values) - 2) * float(np.log(roughness))
    return _Fit(logs, evidence, bands)


def _difference_bands(weights: Values) -> Values:
    """The sum of squared second differences, each with a weight, as a banded matrix."""
    bands = np.zeros((3, len(weights) + 2))
    for row, first in enumerate((1.0, -2.0, 1.0)):
        for offset, second in enumerate((1.0, -2.0, 1.0)[row:]):
            bands[offset, row : row + len(weights)] += weights * first * second
    return bands


def _multiply_bands(bands: Values, vector: Values) -> Values:
    result: Values = bands[0] * vector
    for offset in (1, 2):
        below = bands[offset, :-offset]
        result[offset:] += below * vector[:-offset]
        result[:-offset] += below * vector[offset:]
    return result
