"""Tables of numbers and dates from noisy ones: cells that are close to each other inform each other.

A table of two numbers has many cells, and noise drowns most of them. Made non-negative one by one, cells that are empty
keep a part of their noise, and correlations fade. But numbers that depend on each other do so smoothly: the logarithm
of a table is nearly a sum of one-way terms and of products of a few scores of each number (the association models of
Goodman 1979; with normal scores, linear by linear, it is the Gaussian copula). So such a table is fitted to the noisy
counts by least squares, with its one-way marginals fixed. True counts differ from the fit by sampling and by what it
cannot express; how much the latter is follows from the noisy counts (empirical Bayes), and so does the part of each
difference that is kept. A table that is not smooth thereby follows its own counts, and a count that is far from the fit
keeps its value.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.inference.empirical_bayes import normal_quantiles
from dpsyn.inference.nonnegativity import norm_sub
from dpsyn.marginals import Estimate

Values = NDArray[np.float64]

DEGREE = 2
"""The scores of a number in products: its normal score and the square of that, so that relations may be curved."""

MAX_PARAMETER_SHARE, MAX_PARAMETERS, MAX_CELLS = 0.6, 200, 5_000
"""A table is fitted if it has at most so many parameters for each degree of freedom, so many in all, and so many
cells."""

DISPERSIONS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0)
"""The relative standard deviations of true counts from the fit that are tried."""

CLEAR_SIGMAS, CLEAR_ROUNDS = 4.0, 3
"""A count that is so many standard deviations from the fit keeps its value, and the others are fitted without it, in at
most so many rounds."""

SMOOTHED_VARIANCE = 0.25
"""The variance of smoothed one-way counts of a number as a part of that of the linear estimate: .1 to .9 on tables of
people, the less the more noise there is."""

MAX_STEPS, MAX_SWEEPS = 40, 50
"""The maximum number of steps of a fit, and of sweeps that rake a table to its one-way marginals."""

MAX_STEP = 1.5
"""No parameter moves by more in one step."""

MIN_SHARE = 1e-6
"""The least part of the rows in a one-way marginal, so that logarithms are finite."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderedAttributes:
    """The attributes whose codes are in order.

    Attributes:
        names: these attributes.
        with_missing: those of them whose last code is that of missing values, which has no place in the order.
    """

    names: Collection[str]
    with_missing: Collection[str] = ()


def count_parameters(shape: Sequence[int], ordered: Sequence[bool]) -> int | None:
    """The number of parameters of the fit of a table; None if a table of this shape is not smoothed.

    Args:
        shape: the number of codes on each axis.
        ordered: whether the codes of each axis are in order.
    """
    scores = [min(DEGREE, size - 1) if in_order else size - 1 for size, in_order in zip(shape, ordered, strict=True)]
    parameters = math.prod(count + 1 for count in scores) - 1 - sum(scores)
    freedom = math.prod(shape) - 1 - sum(size - 1 for size in shape)
    is_smoothed = (
        len(shape) > 1
        and min(shape) > 1
        and any(ordered)
        and 0 < parameters <= min(MAX_PARAMETERS, MAX_PARAMETER_SHARE * freedom)
        and math.prod(shape) <= MAX_CELLS
    )
    return parameters if is_smoothed else None


@np.errstate(all="ignore")
def smooth_tables(
    estimates: Sequence[Estimate], ordered: OrderedAttributes, rows: float, possible: Sequence[Values | None]
) -> list[Estimate]:
    """Smooth the tables of several attributes that hold a number or date; others stay.

    One-way marginals are estimated first, from all tables that have them. So smoothed tables are consistent with them,
    and with each other in these.

    Args:
        estimates: tables as measured, and one-way tables; one for each set of attributes and levels.
        ordered: the attributes whose codes are in order.
        rows: the number of rows.
        possible: for each table, the part of each cell that constraints allow; None if they allow all.
    """
    tables = [
        rows > 0
        and estimate.variance > 0
        and count_parameters(estimate.values.shape, [name in ordered.names for name in estimate.clique]) is not None
        for estimate in estimates
    ]
    one_way = {estimate.clique[0]: estimate for estimate in estimates if len(estimate.clique) == 1}
    attributes = {n for estimate, smoothed in zip(estimates, tables, strict=True) if smoothed for n in estimate.clique}
    margins = {
        name: combine_margins(one_way[name], estimates, name in ordered.names, rows)
        for name in attributes & one_way.keys()
    }
    result = []
    for estimate, smoothed, allowed in zip(estimates, tables, possible, strict=True):
        if len(estimate.clique) == 1:
            result.append(margins.get(estimate.clique[0], estimate))
        elif smoothed and margins.keys() >= set(estimate.clique):
            result.append(_smooth_table(estimate, margins, ordered, allowed))
        else:
            result.append(estimate)
    return result


def combine_margins(one_way: Estimate, estimates: Sequence[Estimate], is_ordered: bool, rows: float) -> Estimate:
    """The one-way table of an attribute, updated by each larger table that holds the attribute (Kalman 1960)."""
    name = one_way.clique[0]
    values = norm_sub(one_way.values, rows)
    variances = np.full(len(values), one_way.variance * (SMOOTHED_VARIANCE if is_ordered else 1.0))
    for table in estimates:
        if len(table.clique) < 2 or name not in table.clique:
            continue
        group_of = table.levels.get(name, np.arange(len(values)))
        counts = table.project([name])
        noise = table.variance * table.values.size / len(counts)
        sums, spread = np.bincount(group_of, values), np.bincount(group_of, variances)
        counts = counts + (sums.sum() - counts.sum()) / len(counts)
        gain = spread / np.maximum(spread + noise, 1e-300)
        share = variances / np.maximum(spread[group_of], 1e-300)
        values = values + share * (gain * (counts - sums))[group_of]
        variances = variances * (1 - share * gain[group_of])
    values = np.maximum(norm_sub(values, rows), MIN_SHARE * rows)
    return replace(one_way, values=values * (rows / values.sum()), variance=float(variances.mean()))


def _smooth_table(
    estimate: Estimate, margins: Mapping[str, Estimate], ordered: OrderedAttributes, possible: Values | None
) -> Estimate:
    targets, bases = [], []
    for name in estimate.clique:
        counts = margins[name].values
        if name in estimate.levels:
            counts = np.asarray(np.bincount(estimate.levels[name], counts), np.float64)
        targets.append(counts)
        in_order, has_missing = name in ordered.names, name in ordered.with_missing
        bases.append(_score_codes(counts, has_missing) if in_order else _tell_apart(counts))
    std, scores = math.sqrt(estimate.variance), _multiply_scores(bases)
    clear, found = np.zeros(estimate.values.shape, np.bool_), np.zeros(estimate.values.shape, np.bool_)
    for _ in range(CLEAR_ROUNDS):
        clear |= found
        fit = _Fit.start(estimate.values, std, targets, scores, possible, clear).improve()
        values, part, found = _keep_differences(estimate.values, fit.table, std, clear)
        if not found.any():
            break
    share = min(1.0, (scores.shape[1] + float(part.sum())) / values.size)
    values = rake(values, targets)
    if not (np.isfinite(values).all() and share > 0):  # marginals that contradict the constraints
        return estimate
    return replace(estimate, values=values, variance=estimate.variance * share)


def _keep_differences(
    values: Values, fit: Values, std: float, clear: NDArray[np.bool_]
) -> tuple[Values, Values, NDArray[np.bool_]]:
    """The fit, with the part of each difference of the counts from it that is not noise; those parts; new clear counts.

    A true count has a variance from the fit that is the fitted count, by sampling, plus its square times that of the
    dispersion, which is the most likely one. Clear counts stay.
    """
    difference = np.where(clear, 0.0, values - fit)

    def likelihood(dispersion: float) -> float:
        variances = std**2 + fit + (dispersion * fit) ** 2
        return -float((np.log(variances) + np.minimum(difference**2 / variances, CLEAR_SIGMAS**2)).sum())

    spread = fit + (max(DISPERSIONS, key=likelihood) * fit) ** 2
    found = np.abs(difference) > CLEAR_SIGMAS * np.sqrt(spread + std**2)
    part = np.where(clear | found, 1.0, spread / (spread + std**2))
    kept = np.where(clear, values, fit + part * difference)
    return np.maximum(kept, 0.0), part, found


# ── the smooth table ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """A table exp(one-way terms + Σ θ·scores) with given one-way marginals, and what it is fitted to."""

    noisy: Values
    std: float
    margins: Sequence[Values]
    design: Values
    table: Values

    @classmethod
    def start(
        cls,
        noisy: Values,
        std: float,
        margins: Sequence[Values],
        design: Values,
        possible: Values | None,
        clear: NDArray[np.bool_],
    ) -> _Fit:
        """Start from independent attributes, as far as constraints allow their combinations.

        Clear counts are left out: they are not part of the table, nor of its marginals.
        """
        if clear.any():
            possible = np.where(clear, 0.0, 1.0 if possible is None else possible)
            margins = [_without(counts, np.where(clear, noisy, 0.0), axis) for axis, counts in enumerate(margins)]
            noisy = np.where(clear, 0.0, noisy)
        total = float(margins[0].sum())
        table = np.full((1,) * noisy.ndim, total)
        for axis, counts in enumerate(margins):
            table = table * _along(counts / total, axis, noisy.ndim)
        table = np.maximum(table, MIN_SHARE**2 * total)
        return cls(noisy, std, margins, design, table if possible is None else rake(table * possible, margins))

    @property
    def error(self) -> float:
        """The squared distance from the noisy counts, in variances of their noise."""
        return float(((self.noisy - self.table) ** 2).sum()) / self.std**2

    def improve(self) -> _Fit:
        """Least squares by the method of Levenberg (1944) and Marquardt (1963)."""
        fit, error, damping = self, self.error, 1e-2
        for _ in range(MAX_STEPS):
            try:
                slopes = fit._slopes()
            except np.linalg.LinAlgError:  # hardly any cell is left
                break
            normal = slopes.T @ slopes / fit.std**2
            gradient = slopes.T @ (fit.noisy - fit.table).ravel() / fit.std**2
            better = None
            while better is None and damping < 1e6:
                ridge = damping * np.diag(normal) + 1e-6 * (1 + float(np.diag(normal).max()) * 1e-6)
                try:
                    step: Values = np.linalg.solve(normal + np.diag(ridge), gradient).astype(np.float64)
                except np.linalg.LinAlgError:
                    damping *= 8
                    continue
                step *= min(1.0, MAX_STEP / max(float(np.abs(step).max()), 1e-12))
                trial = fit._move(step)
                better = trial if trial.error < error else None
                damping = damping * 8 if better is None else max(damping / 5, 1e-4)
            if better is None:
                break
            gain, fit, error = error - better.error, better, better.error
            if gain < 1e-3 * max(1, fit.design.shape[1]):
                break
        return fit

    def _move(self, step: Values) -> _Fit:
        logs = np.clip((self.design @ step).reshape(self.table.shape), -20.0, 20.0)
        return replace(self, table=rake(self.table * np.exp(logs), self.margins))

    def _slopes(self) -> Values:
        """The derivatives of the cells by the parameters, with one-way marginals fixed.

        From each column of scores its projection on one-way terms is removed, by least squares weighted by the cells.
        """
        cells, terms = self.table.ravel(), _one_way_terms(self.table.shape)
        weighted = cells[:, None] * terms
        normal = terms.T @ weighted + 1e-9 * float(cells.sum()) * np.eye(terms.shape[1])
        explained = terms @ np.linalg.solve(normal, weighted.T @ self.design)
        slopes: Values = cells[:, None] * (self.design - explained)
        return slopes


def rake(table: Values, margins: Sequence[Values]) -> Values:
    """Scale a table to its one-way marginals in turn (Deming and Stephan 1940), as far as its zeros allow."""
    for _ in range(MAX_SWEEPS):
        widest = 0.0
        for axis, counts in enumerate(margins):
            sums = table.sum(axis=tuple(other for other in range(table.ndim) if other != axis))
            widest = max(widest, float(np.abs(sums - counts).max()))
            table = table * _along(counts / np.maximum(sums, 1e-300) * (sums > 0), axis, table.ndim)
        if widest < 1e-3:
            break
    return table


def _without(counts: Values, apart: Values, axis: int) -> Values:
    """A one-way marginal without some counts of the table, scaled to what is left of all."""
    left = counts - apart.sum(axis=tuple(other for other in range(apart.ndim) if other != axis))
    left = np.maximum(left, MIN_SHARE * float(counts.sum()))
    rest: Values = left * (max(float(counts.sum() - apart.sum()), MIN_SHARE * float(counts.sum())) / float(left.sum()))
    return rest


def _along(values: Values, axis: int, axes: int) -> Values:
    return values.reshape([-1 if other == axis else 1 for other in range(axes)])


def _one_way_terms(shape: Sequence[int]) -> Values:
    """Cells × one-way terms: 1 where a cell has the code of the term."""
    codes = np.indices(shape).reshape(len(shape), -1)
    return np.concatenate([np.eye(size)[code] for size, code in zip(shape, codes, strict=True)], axis=1)


def _score_codes(counts: Values, has_missing: bool) -> Values:
    """Codes × scores: powers of normal scores, orthonormal by the counts; missing has a score of its own."""
    size = len(counts) - has_missing
    shares = np.maximum(counts[:size], 1e-9) / max(float(counts[:size].sum()), 1e-9)
    normal = normal_quantiles(np.clip(np.cumsum(shares) - shares / 2, MIN_SHARE, 1 - MIN_SHARE))
    powers = np.column_stack([normal**degree for degree in range(min(DEGREE, size - 1) + 1)])
    orthonormal = np.linalg.qr(powers * np.sqrt(shares)[:, None])[0] / np.sqrt(shares)[:, None]
    scores = np.zeros((len(counts), orthonormal.shape[1] - 1 + has_missing))
    scores[:size, : orthonormal.shape[1] - 1] = orthonormal[:, 1:]
    if has_missing:
        scores[size, -1] = 1.0
    return scores


def _tell_apart(counts: Values) -> Values:
    """Codes × scores of categories: each but the first has its own."""
    return np.eye(len(counts))[:, 1:]


def _multiply_scores(bases: Sequence[Values]) -> Values:
    """Cells × products of scores of two or more attributes."""
    shape, columns = [len(scores) for scores in bases], []
    for size in range(2, len(bases) + 1):
        for axes in combinations(range(len(bases)), size):
            products = np.ones((*(1,) * len(bases), 1))
            for axis in axes:
                own_axes = [-1 if other == axis else 1 for other in range(len(bases))]
                products = products[..., :, None] * bases[axis].reshape([*own_axes, 1, bases[axis].shape[1]])
                products = products.reshape(*products.shape[:-2], -1)
            columns.append(np.broadcast_to(products, (*shape, products.shape[-1])).reshape(math.prod(shape), -1))
    return np.concatenate(columns, axis=1)
