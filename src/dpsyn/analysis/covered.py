"""Means, quantiles and correlations from a table that was measured, with intervals from its noise and from sampling.

All are ratios of sums of counts: A/B. Whether it is θ shows in A − θB, which has the mean 0 then, and a variance that
is known: that of the noise, and that of sampling. An interval has all θ that A − θB does not reject (Fieller 1954). It
holds also if B is hardly larger than its noise; then it may have no end but those of the values.

A number that was measured in groups of values, together with others, has the values inside a group by its own
histogram. That histogram has noise, too. And dependence inside groups is not known: an interval reaches from none to
as much as between groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dpsyn.analysis.columns import cell_text, is_number
from dpsyn.analysis.conclusion import Conclusion, FloatArray, check_level, plain_number
from dpsyn.analysis.descriptive import MIN_ROWS, CorrelationMethod
from dpsyn.inference.redraw import Uncertainty
from dpsyn.query.answer import noise_quantile
from dpsyn.query.covered_counts import CoveredCounts, GroupedAxis
from dpsyn.schema import Categorical, Integer, Ordinal, Real, Schema

Bounds = tuple[float, float]

MAX_INNER_SHARE = 0.75
"""A larger share of the variance inside groups is taken as this: dependence between so few groups tells little."""

MIN_DEVIATIONS = 2.0
"""A group is left out unless its rows are at least so many standard deviations of their noise."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two sums of counts.

    Attributes:
        sums: the numerator A and the denominator B.
        noise: the covariance matrix of both that is due to the noise.
        sampling: that which is due to sampling of the private table, up to multiples of (A, B)ᵀ(A, B), which do not
            matter for a ratio.
        bounds: the smallest and the largest value.
        shift: by how much dependence inside groups of values would change the ratio, if it is as between groups.
    """

    sums: tuple[float, float]
    noise: FloatArray
    sampling: FloatArray
    bounds: Bounds
    shift: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether there are enough rows, and their number is clearly larger than its noise."""
        return self.sums[1] >= max(MIN_ROWS, MIN_DEVIATIONS * math.sqrt(float(self.noise[1, 1])))

    @property
    def estimate(self) -> float:
        """A/B, moved by half of the shift, within the bounds."""
        return float(np.clip(self.sums[0] / self.sums[1] + self.shift / 2, *self.bounds))

    @property
    def variances(self) -> tuple[float, float]:
        """The variances of A/B due to noise and to sampling, where B is far from 0."""
        contrast = np.array([1.0, -self.sums[0] / self.sums[1]]) / self.sums[1]
        noise, sampling = (max(float(contrast @ part @ contrast), 0.0) for part in (self.noise, self.sampling))
        return noise, sampling

    def interval(self, quantile: float) -> Bounds:
        """All θ for which |A − θB| is at most ``quantile`` standard deviations, with and without the shift."""
        (top, bottom), covariance = self.sums, (self.noise + self.sampling) * quantile**2
        squared = bottom**2 - float(covariance[1, 1])
        linear = top * bottom - float(covariance[0, 1])
        constant = top**2 - float(covariance[0, 0])
        if squared <= 0:
            return self.bounds
        root = math.sqrt(max(linear**2 - squared * constant, 0.0))
        ends = [(linear - root) / squared + min(self.shift, 0.0), (linear + root) / squared + max(self.shift, 0.0)]
        low, high = np.clip(ends, *self.bounds)
        return float(low), float(high)


@dataclass(frozen=True, slots=True)
class StepQuantile:
    """A quantile of listed values: the first at which the share of rows up to it reaches a probability.

    Attributes:
        values: the values, ascending.
        excess: for each value, the rows up to it beyond the wanted share of all rows.
        noise: the variances of the excess due to the noise.
        sampling: those due to sampling.
        is_known: whether there are enough rows, and their number is clearly larger than its noise.
    """

    values: FloatArray
    excess: FloatArray
    noise: FloatArray
    sampling: FloatArray
    is_known: bool

    @property
    def estimate(self) -> float:
        """The first value up to which there are enough rows."""
        return self._first(self.excess >= 0)

    @property
    def variances(self) -> tuple[float, float]:
        """Woodruff's: from the interval of one standard deviation, divided as the variances of the excess are."""
        low, high = self.interval(1.0)
        at = int(np.searchsorted(self.values, self.estimate))
        total, variance = float(self.noise[at] + self.sampling[at]), ((high - low) / 2) ** 2
        share = float(self.noise[at]) / total if total > 0 else 0.0
        return variance * share, variance * (1 - share)

    def interval(self, quantile: float) -> Bounds:
        """All values that the excess does not reject: it is not negative there, and not positive at the one before."""
        width = quantile * np.sqrt(self.noise + self.sampling)
        return self._first(self.excess + width >= 0), self._first(self.excess - width >= 0)

    def _first(self, reached: Any) -> float:
        found = np.flatnonzero(reached)
        return float(self.values[found[0] if len(found) else -1])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Covered(Conclusion):
    """Estimates from released tables that hold all attributes of a statistic.

    Attributes:
        parts: the estimate of each term.
        laplace: whether some noise has a Laplace distribution, whose tails are longer.
        kind: what counts as uncertain.
    """

    parts: tuple[Ratio | StepQuantile, ...]
    laplace: bool
    kind: Uncertainty

    @property
    def estimate(self) -> Any:
        """A number, or an array with one number for each term."""
        return self._plain([part.estimate for part in self.parts])

    @property
    def standard_error(self) -> Any:
        """The standard error of each term."""
        return self._plain([math.sqrt(sum(part.variances)) for part in self.parts])

    @property
    def degrees_of_freedom(self) -> int | None:
        """None: the variance of the noise is known."""
        return None

    @property
    def sampling_share(self) -> Any:
        """The part of the variance that a private table without noise would have, too."""
        variances = [part.variances for part in self.parts]
        return self._plain([own / (noise + own) if noise + own > 0 else 0.0 for noise, own in variances])

    @property
    def uncertainty(self) -> Uncertainty:
        """What counts as uncertain."""
        return self.kind

    @property
    def replicates(self) -> int | None:
        """None: it does not come from replicates."""
        return None

    def interval(self, level: float | None = None) -> tuple[Any, Any]:
        """The lower and the upper end of a confidence interval for each term."""
        quantile = noise_quantile(check_level(self.level if level is None else level), laplace=self.laplace)
        ends = [part.interval(quantile) for part in self.parts]
        return self._plain([low for low, _ in ends]), self._plain([high for _, high in ends])

    def _plain(self, values: Sequence[float]) -> Any:
        return plain_number(np.array(values if self.terms else values[0]))


# ── statistics ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class CoveredStatistics:
    """Statistics of counts: the first attribute has the values, further ones the groups.

    Attributes:
        schema: what is public.
        counts: the counts.
        one_way: the counts of one attribute alone; None if they are not known.
        rows_per_unit: how many rows of one privacy unit there are at most: those may be alike, so the variance of
            sampling is up to so many times as large.
        kind: what counts as uncertain.
    """

    schema: Schema
    counts: CoveredCounts
    one_way: Callable[[str], CoveredCounts | None]
    rows_per_unit: int
    kind: Uncertainty

    @property
    def cells_of_quantiles(self) -> int:
        """The size of the arrays by which quantiles are computed."""
        return int(self.counts.unbiased_counts.size * len(self.counts.unbiased_counts))

    def means(self, bounds: Bounds) -> dict[str, Ratio]:
        """The mean in each group."""
        values, known = self._axis_values(0)
        weights, counts = np.stack([values, known]), self.counts.unbiased_counts.reshape(len(values), -1)
        inner, found = self._inner(0), {}
        overall = float(values @ counts.sum(1)) / max(float(known @ counts.sum(1)), MIN_ROWS)
        for group, name in enumerate(self._groups()):
            ratio = self._ratio(self._in_group(weights, group), bounds)
            if inner is not None and ratio.sums[1] > 0:
                noise = ratio.noise + np.diag([inner.noise(counts[:, group]), 0.0])
                deviation = ratio.sums[0] / ratio.sums[1] - overall
                ratio = replace(ratio, noise=noise, shift=deviation * inner.share / (1 - inner.share))
            found[name] = ratio
        return found

    def quantiles(self, probabilities: Sequence[float]) -> dict[str, StepQuantile]:
        """Quantiles in each group."""
        values, known = self._axis_values(0)
        ascending = np.argsort(values, kind="stable")
        ascending = ascending[known[ascending]]
        up_to = np.zeros((len(ascending), len(values)))
        for position, cell in enumerate(ascending):
            up_to[position:, cell] = 1.0
        counts, sampling = (
            each.reshape(len(values), -1) for each in (self.counts.unbiased_counts, self._sampling_variances())
        )
        found = {}
        for group, name in enumerate(self._groups()):
            total, std = float(counts[known, group].sum()), self._noise_stds(known[None], group)[0]
            for probability in probabilities:
                weights, label = up_to - probability * known, f"{probability:g}" if len(probabilities) > 1 else ""
                found[", ".join(filter(None, (name, label)))] = StepQuantile(
                    values=values[ascending],
                    excess=weights @ counts[:, group],
                    noise=self._noise_stds(weights, group) ** 2,
                    sampling=weights**2 @ sampling[:, group],
                    is_known=total >= max(MIN_ROWS, MIN_DEVIATIONS * std),
                )
        return found

    def _noise_stds(self, weights: FloatArray, group: int) -> FloatArray:
        return np.sqrt(self.counts.noise_variances(self._in_group(weights, group)))

    def _in_group(self, weights: FloatArray, group: int) -> FloatArray:
        """Weights of values, sums × values, as weights of counts: 0 outside one group."""
        shape = self.counts.unbiased_counts.shape
        spread = np.zeros((len(weights), shape[0], math.prod(shape[1:])))
        spread[:, :, group] = weights
        return spread.reshape(len(weights), *shape)

    def describe_missing_rows(self, axes: int = 1) -> list[str]:
        """How many rows are left out because a value is missing: of the first attribute, or of the first two."""
        inside = np.ones(self.counts.unbiased_counts.shape, np.bool_)
        for axis in range(axes):
            inside &= self._axis_values(axis)[1].reshape(-1, *[1] * (inside.ndim - 1 - axis))
        missing = float(self.counts.non_negative_counts[~inside].sum())
        if missing < 0.5:
            return []
        total = float(self.counts.non_negative_counts.sum())
        return [f"Rows with a missing value are left out: about {missing:,.0f} of {total:,.0f}."]

    def correlation(self, method: CorrelationMethod) -> Ratio | None:
        """The correlation of two attributes: S_xy/√(S_xx·S_yy), linear in the counts to first order."""
        (x, x_known), (y, y_known) = self._axis_values(0), self._axis_values(1)
        inside = np.outer(x_known, y_known)
        counts = self.counts.unbiased_counts * inside
        total = float(counts.sum())
        if total < MIN_ROWS:
            return None
        shares = counts / total
        make_scores = _rank_scores if method == "spearman" else _centered_scores
        scores = [make_scores(values, shares.sum(1 - axis)) for axis, values in enumerate((x, y))]
        (u, move_u), (v, move_v) = scores
        squares = [float((shares.sum(1 - axis) * each**2).sum()) for axis, each in enumerate((u, v))]
        if min(squares) <= 0:
            return None
        product = np.outer(u, v) + move_u(shares @ v)[:, None] + move_v(u @ shares)[None, :]
        square_u = u**2 + move_u(2 * shares.sum(1) * u)
        square_v = v**2 + move_v(2 * shares.sum(0) * v)
        ratio = math.sqrt(squares[1] / squares[0])
        scale = ratio * square_u[:, None] / 2 + square_v[None, :] / (2 * ratio)
        weights = np.stack([product, scale]) * inside
        found = self._ratio(weights, (-1.0, 1.0))
        kept, noise = 1.0, 0.0
        for inner, slopes in ((self._inner(0), counts @ v), (self._inner(1), u @ counts)):
            if inner is not None:
                kept *= 1 - inner.share
                noise += inner.noise(slopes)
        shift = found.sums[0] / found.sums[1] * (1 / kept - 1)
        return replace(found, noise=found.noise + np.diag([noise, 0.0]), shift=shift)

    def _inner(self, axis: int) -> _InnerValues | None:
        """The values of an attribute inside the groups in which it was measured; None if it was measured by values."""
        name = self.counts.query.names[axis]
        grouped = self.counts.groups_of(name)
        return None if grouped is None else _InnerValues(*self._axis_values(axis), grouped, self.one_way(name))

    def _ratio(self, weights: FloatArray, bounds: Bounds) -> Ratio:
        flat, counts = weights.reshape(2, -1), self.counts.unbiased_counts.ravel()
        top, bottom = (flat @ counts).tolist()
        sampling = (flat * self._sampling_variances().ravel()) @ flat.T
        return Ratio((top, bottom), self.counts.noise_covariance(weights), sampling, bounds)

    def _sampling_variances(self) -> FloatArray:
        """The variances of counts due to sampling, those of independent Poisson counts."""
        if self.kind == "noise":
            return np.zeros(self.counts.unbiased_counts.shape)
        return self.counts.non_negative_counts * self.rows_per_unit

    def _axis_values(self, axis: int) -> tuple[FloatArray, Any]:
        """The numbers of an attribute, and which are not missing."""
        name = self.counts.query.names[axis]
        attribute, cells = self.schema[name], self.counts.query.axes[name].listed_cells
        known = cells < attribute.proper_cells
        if isinstance(attribute, Integer | Real):  # a cell counts as its middle
            edges = attribute.grid().edges
            first, last = (attribute.values_at(edges[:-1]), attribute.values_at(edges[1:] - 1))
            numbers = (np.asarray(first, np.float64) + np.asarray(last, np.float64)) / 2
        elif isinstance(attribute, Ordinal) and not is_number(self.schema, name):
            numbers = np.arange(attribute.proper_cells, dtype=np.float64)
        elif isinstance(attribute, Categorical):
            numbers = np.array([float(value) for value in attribute.all_values()])
        else:
            numbers = np.array([0.0, 1.0])
        return np.append(numbers, 0.0)[np.where(known, cells, -1)], known

    def _groups(self) -> Iterator[str]:
        """The name of each combination of values of the further attributes."""
        texts = []
        for name in self.counts.query.names[1:]:
            column = self.counts.query.axes[name].values
            texts.append([f"{name}={cell_text(value)}" for value in (column.to_pylist() if column is not None else ())])
        return (", ".join(each) for each in product(*texts))


class _InnerValues:
    """Values of an attribute inside the groups in which it was measured together with others.

    Attributes:
        share: the share of the variance of the values that lies inside groups.
    """

    def __init__(self, values: FloatArray, known: Any, grouped: GroupedAxis, one_way: CoveredCounts | None) -> None:
        group_of, sizes = grouped.group_of, np.maximum(grouped.counts, 0.0)
        shares = grouped.shares * known[:, None]
        inside = np.maximum(shares.sum(0), math.ulp(1.0))
        means = (values @ shares) / inside
        rows = sizes * shares.sum(0)
        variance = float((rows * ((values[:, None] - means) ** 2 * shares).sum(0) / inside).sum())
        between = float((rows * (means - (rows @ means) / max(float(rows.sum()), math.ulp(1.0))) ** 2).sum())
        total = variance + between
        self.share = min(variance / total, MAX_INNER_SHARE) if total > 0 else 0.0
        self._deviations = np.where(known, values - means[group_of], 0.0) / np.maximum(sizes, MIN_ROWS)[group_of]
        self._group_of, self._one_way, self._groups = group_of, one_way, len(sizes)

    def noise(self, slopes: FloatArray) -> float:
        """The variance of Σ slopes · values due to the noise of the histogram, where a slope counts for its group."""
        if self._one_way is None:
            return 0.0
        by_group = np.bincount(self._group_of, slopes, self._groups)[self._group_of]
        return float(self._one_way.noise_variances((by_group * self._deviations)[None])[0])


def _centered_scores(values: FloatArray, shares: FloatArray) -> tuple[FloatArray, Any]:
    """Values minus their mean. To first order their sums do not move when the mean does."""
    return values - float((values * shares).sum()), np.zeros_like


def _rank_scores(values: FloatArray, shares: FloatArray) -> tuple[FloatArray, Any]:
    """The share of rows below a value plus half of that at it, minus a half, and how sums of them move with counts.

    A row of value k adds 1 to the rows below all larger values, and a half at its own.
    """
    order = np.argsort(values, kind="stable")
    position = np.argsort(order, kind="stable")
    below = (np.cumsum(shares[order]) - shares[order] / 2)[position]

    def move(weights: FloatArray) -> FloatArray:
        """Σᵢ wᵢ·∂scoreᵢ/∂(share of k), for each k."""
        ordered = weights[order]
        above = (np.cumsum(ordered[::-1])[::-1] - ordered / 2)[position]
        return np.asarray(above - float((weights * below).sum()))

    return below - 0.5, move
