"""The best linear unbiased estimate (BLUE) of a table from noisy marginals, before negative counts are removed.

A table over attributes A is a sum of *components*, one for each subset S of A: the interaction of the attributes in S,
which sums to zero over each of them. In a suitable orthonormal basis, the noise of a marginal, which has the same
variance in every cell, is independent between components. So each component is estimated by itself, by the mean over
the marginals that contain S, weighted by inverse variance. There is no better linear unbiased estimate, and its
variance is known exactly. A component that no marginal contains stays unknown.

The basis of an attribute of n values is a reflection that maps the constant vector to the first axis: coefficient 0 is
the sum divided by √n, the other coefficients are contrasts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError

QueryValues = NDArray[np.float64]
Axes = tuple[int, ...]
"""Indices of some attributes of a query, ascending."""

_Number = TypeVar("_Number", bound=np.generic)

OutputWeights = NDArray[np.float64]
"""Outputs × codes: the fraction of each code's rows that counts for each output."""


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """Noisy sums of the counts over some of the attributes.

    Attributes:
        axes: the attributes of the query that are kept; none for a total.
        values: the sums, with an axis for each of them.
        variance: the variance of the noise in each sum; 0 if there is no noise.
    """

    axes: Axes
    values: QueryValues
    variance: float

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.axes) or not self.variance >= 0 or list(self.axes) != sorted(set(self.axes)):
            raise InternalError(f"{len(self.axes)} attributes were observed in {self.values.ndim} axes")


@dataclass(frozen=True, slots=True)
class Parity:
    """The noisy number of rows in which an even number of some binary attributes are 1, minus that of the others.

    Attributes:
        axes: the attributes of the query.
        value: the difference.
        variance: the variance of its noise.
    """

    axes: Axes
    value: float
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class LinearEstimate:
    """The best linear unbiased estimate of a table, by components.

    Attributes:
        coefficients: the coefficients in the basis above; 0 where they are unknown.
        variances: the variance of the coefficients of each interaction: an axis of length 2 for each attribute, with
            index 1 if the attribute is part of the interaction. Infinite where coefficients are unknown.
    """

    coefficients: QueryValues
    variances: QueryValues

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the attributes."""
        return self.coefficients.shape

    @property
    def complete(self) -> bool:
        """Whether every component is known."""
        return bool(np.isfinite(self.variances).all())

    def known_axes(self) -> list[Axes]:
        """The maximal sets of attributes whose table is known completely."""
        known = np.isfinite(self.variances)
        for axis in range(known.ndim):  # a table is known if its interaction is, and all tables within it are
            known[_axis_slice(axis, 1)] &= known[_axis_slice(axis, 0)]
        maximal = known.copy()
        for axis in range(known.ndim):
            maximal[_axis_slice(axis, 0)] &= ~known[_axis_slice(axis, 1)]
        return [tuple(np.flatnonzero(members).tolist()) for members in np.argwhere(maximal)]

    def table(self) -> QueryValues:
        """The estimate; unknown components count as zero."""
        return self.sums(tuple(range(len(self.shape))))

    def sums(self, axes: Axes) -> QueryValues:
        """The sums of the estimate over all attributes except these."""
        sums: QueryValues = _sum_over_others(self.coefficients[None], axes)[0]
        return sums

    def sum_std(self, axes: Axes) -> float:
        """The standard deviation of each sum of the estimate over all attributes except these."""
        kept = expand_interactions(self.variances, self.shape)[_interaction_slices(len(self.shape), axes)]
        return math.sqrt(float(kept.mean()) * self.coefficients.size / kept.size)

    def output_stds(self, weights: Sequence[OutputWeights | None]) -> QueryValues:
        """The standard deviation of Σ weights · estimate for all outputs; None for an attribute keeps its codes.

        For every output and attribute, the squares of the weights' coefficients sum to (Σw)²/n at coefficient 0 and to
        Σw² − (Σw)²/n over all others, whose variances are equal.
        """
        variances = self.variances
        for axis, (size, given) in enumerate(zip(self.shape, weights, strict=True)):
            if given is None:
                squares = np.tile([1 / size, 1 - 1 / size], (size, 1))
            else:
                constant = given.sum(axis=1) ** 2 / size
                squares = np.stack([constant, np.maximum((given**2).sum(axis=1) - constant, 0.0)], axis=1)
            variances = np.moveaxis(np.tensordot(squares, variances, (1, axis)), 0, axis)
        stds: QueryValues = np.sqrt(variances)
        return stds

    def sample_noise(self, samples: int, rng: np.random.Generator) -> NoiseSamples:
        """Independent samples of the noise in the known coefficients."""
        known = np.where(np.isfinite(self.variances), self.variances, 0.0)
        noise = rng.standard_normal((samples, *self.shape)) * np.sqrt(expand_interactions(known, self.shape))
        return NoiseSamples(noise)


@dataclass(frozen=True, slots=True, eq=False)
class NoiseSamples:
    """Samples of the noise of a linear estimate: samples × coefficients."""

    coefficients: QueryValues

    def sums(self, axes: Axes) -> QueryValues:
        """The noise in the sums over all attributes except these: samples × cells."""
        return _sum_over_others(self.coefficients, axes)


def estimate_linear(shape: tuple[int, ...], observations: Iterable[Observation | Parity]) -> LinearEstimate:
    """The best linear unbiased estimate of a table of this shape.

    Every coefficient of a table over A that a marginal over V determines has variance v·|V|/|A|, where v is the
    variance of a cell of the marginal and |·| is a number of cells.
    """
    sums, precisions = np.zeros(shape), np.zeros((2,) * len(shape))
    exact: list[tuple[Axes, QueryValues]] = []
    for observed in observations:
        if isinstance(observed, Parity):
            index = tuple(int(axis in observed.axes) for axis in range(len(shape)))
            sums[index] += observed.value * math.sqrt(math.prod(shape)) / observed.variance
            precisions[index] += math.prod(shape) / observed.variance
            continue
        folded = math.prod(shape) / observed.values.size  # cells of the table for each cell of the marginal
        coefficients = reflect(observed.values, range(len(observed.axes))) / math.sqrt(folded)
        box = _interaction_slices(len(shape), observed.axes)
        if observed.variance == 0:
            exact.append((observed.axes, coefficients))
        else:
            sums[box] += coefficients * folded / observed.variance
            precisions[box] += folded / observed.variance
    with np.errstate(divide="ignore"):
        variances = 1 / precisions
    weights = expand_interactions(precisions, shape)
    means = np.divide(sums, weights, out=np.zeros(shape), where=weights > 0)
    for axes, coefficients in exact:
        box = _interaction_slices(len(shape), axes)
        means[box], variances[box] = coefficients, 0.0
    for axis, size in enumerate(shape):
        if size == 1:  # an attribute of one value has no contrasts
            variances[_axis_slice(axis, 1)] = variances[_axis_slice(axis, 0)]
    return LinearEstimate(means, variances)


def reflect(values: QueryValues, axes: Iterable[int]) -> QueryValues:
    """Counts to coefficients along some axes, or back: the reflection is its own inverse."""
    reflected = np.array(values, np.float64)
    for axis in axes:
        size = reflected.shape[axis]
        if size > 1:
            mirror = np.full(size, 1 / math.sqrt(size))
            mirror[0] -= 1.0
            along = np.tensordot(reflected, mirror, (axis, 0)) / (1 - 1 / math.sqrt(size))
            reflected -= np.moveaxis(np.multiply.outer(along, mirror), -1, axis)
    return reflected


def coefficient_basis(chosen: NDArray[np.intp], shape: tuple[int, ...]) -> QueryValues:
    """The tables of which one coefficient, by its flat index, is 1 and all others are 0: coefficients × cells."""
    units = np.zeros((len(chosen), math.prod(shape)))
    units[np.arange(len(chosen)), chosen] = 1.0
    return reflect(units.reshape(-1, *shape), range(1, len(shape) + 1))


def _sum_over_others(coefficients: QueryValues, axes: Axes) -> QueryValues:
    """Sums of several tables over all attributes except some; the first axis is over the tables."""
    shape = coefficients.shape[1:]
    folded = math.prod(shape) / math.prod([shape[axis] for axis in axes])
    kept = coefficients[(slice(None), *_interaction_slices(len(shape), axes))]
    return reflect(kept, range(1, len(axes) + 1)) * math.sqrt(folded)


def _interaction_slices(count: int, axes: Axes) -> tuple[int | slice, ...]:
    """The index of the coefficients, or of their variances, of all interactions of some attributes."""
    return tuple(slice(None) if axis in axes else 0 for axis in range(count))


def _axis_slice(axis: int, index: int) -> tuple[slice | int, ...]:
    return (*[slice(None)] * axis, index)


def expand_interactions(values: NDArray[_Number], shape: tuple[int, ...]) -> NDArray[_Number]:
    """Repeat one number for each interaction (an axis of length 2 for each attribute) for all its coefficients."""
    expanded: NDArray[_Number] = values[np.ix_(*[np.minimum(np.arange(size), 1) for size in shape])]
    return expanded


# ── Shrinkage: from the linear estimate, which is unbiased but noisy, to the model, which is biased but less noisy ──


def shrink_to_model(linear: LinearEstimate, model: QueryValues) -> LinearEstimate:
    """The linear estimate, shrunk to the model as far as they differ by noise alone (James, Stein 1961).

    For all interactions of j attributes together, j = 1, 2, …: if Σ (model − linear)² is at most V, the variance of the
    linear estimates, the model is used. Otherwise the linear estimate is moved toward the model by the fraction
    V / Σ (model − linear)². So the result is at most about as far from the unbiased estimate as this is expected to be
    from the truth. The number of rows is that of the model. ``model`` holds the coefficients of its table; unknown
    components stay unchanged.
    """
    variances = expand_interactions(linear.variances, linear.shape)
    known, difference = np.isfinite(variances), model - linear.coefficients
    order = sum(np.ix_(*[np.minimum(np.arange(size), 1) for size in linear.shape]), np.zeros(linear.shape, np.int64))
    shrunk = linear.coefficients.copy()
    for attribute_count in range(len(linear.shape) + 1):
        group = known & (order == attribute_count)
        squares, variance = float((difference[group] ** 2).sum()), float(variances[group].sum())
        fraction = 1.0 if attribute_count == 0 or squares <= variance else variance / squares
        shrunk[group] += fraction * difference[group]
    return replace(linear, coefficients=shrunk)
