"""What released tables say about a set of attributes, before anything is clipped: the best linear unbiased estimate.

A table over attributes A is a sum of *components*, one for each subset S of A: the interaction of the attributes in S,
which sums to zero over each of them. In an orthonormal basis made for them the noise of a marginal, which is the same
in every cell, is independent between components. So each component is estimated by itself, by the mean over the
marginals that hold S, weighted by inverse variance; there is no better linear unbiased estimate, and its variance is
known exactly. A component that no marginal holds stays unknown.

The basis of an attribute of n values is a reflection that turns the constant vector into the first axis: place 0 is
the sum divided by √n, the other places hold contrasts.
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
"""Places of some attributes of a query, ascending."""

_Number = TypeVar("_Number", bound=np.generic)

OutputWeights = NDArray[np.float64]
"""Outputs × codes: which part of each code's rows counts for each output."""


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """Noisy sums of the counts over some of the attributes.

    Attributes:
        axes: which attributes of the query; none for a total.
        values: the sums, an axis for each.
        variance: of the noise in each; 0 if there is none.
    """

    axes: Axes
    values: QueryValues
    variance: float

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.axes) or not self.variance >= 0 or list(self.axes) != sorted(set(self.axes)):
            raise InternalError(f"{len(self.axes)} attributes were observed in {self.values.ndim} axes")


@dataclass(frozen=True, slots=True)
class Parity:
    """The noisy number of rows in which an even number of some binary attributes are 1, less that of the others.

    Attributes:
        axes: which attributes of the query.
        value: the difference.
        variance: of its noise.
    """

    axes: Axes
    value: float
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class LinearEstimate:
    """The best linear unbiased estimate of a table, by components.

    Attributes:
        coefficients: in the basis above; 0 where nothing is known.
        variances: of a coefficient by the attributes it is an interaction of: an axis for each attribute, 1 if it is
            one of them. Infinite where nothing is known.
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
        """The largest sets of attributes about whose table everything is known."""
        whole = np.isfinite(self.variances)
        for axis in range(whole.ndim):  # a table is known if its interaction is, and all tables within it are
            whole[_axis_slice(axis, 1)] &= whole[_axis_slice(axis, 0)]
        largest = whole.copy()
        for axis in range(whole.ndim):
            largest[_axis_slice(axis, 0)] &= ~whole[_axis_slice(axis, 1)]
        return [tuple(np.flatnonzero(places).tolist()) for places in np.argwhere(largest)]

    def table(self) -> QueryValues:
        """The estimate; unknown components count as zero."""
        return self.sums(tuple(range(len(self.shape))))

    def sums(self, axes: Axes) -> QueryValues:
        """Its sums over all attributes but these."""
        found: QueryValues = _sum_over_others(self.coefficients[None], axes)[0]
        return found

    def output_stds(self, weights: Sequence[OutputWeights | None]) -> QueryValues:
        """The standard deviation of Σ shares · estimate for all outputs; None for an attribute leaves its codes.

        For every output and attribute, the squares of the weights' coefficients sum to (Σw)²/n at place 0 and to
        Σw² − (Σw)²/n at all others, whose variances are equal.
        """
        variances = self.variances
        for axis, (size, given) in enumerate(zip(self.shape, weights, strict=True)):
            if given is None:
                squares = np.tile([1 / size, 1 - 1 / size], (size, 1))
            else:
                constant = given.sum(axis=1) ** 2 / size
                squares = np.stack([constant, np.maximum((given**2).sum(axis=1) - constant, 0.0)], axis=1)
            variances = np.moveaxis(np.tensordot(squares, variances, (1, axis)), 0, axis)
        found: QueryValues = np.sqrt(variances)
        return found

    def sample_noise(self, samples: int, rng: np.random.Generator) -> NoiseSamples:
        """The noise of what is known, drawn anew several times."""
        known = np.where(np.isfinite(self.variances), self.variances, 0.0)
        drawn = rng.standard_normal((samples, *self.shape)) * np.sqrt(expand_interactions(known, self.shape))
        return NoiseSamples(drawn)


@dataclass(frozen=True, slots=True, eq=False)
class NoiseSamples:
    """Draws of the noise of a linear estimate: draws × coefficients."""

    coefficients: QueryValues

    def sums(self, axes: Axes) -> QueryValues:
        """The noise in the sums over all attributes but these: draws × cells."""
        return _sum_over_others(self.coefficients, axes)


def estimate_linear(shape: tuple[int, ...], observations: Iterable[Observation | Parity]) -> LinearEstimate:
    """The best linear unbiased estimate of a table of this shape.

    A coefficient of a table over A that a marginal over V tells has variance v·|V|/|A|, whichever it is: v is the
    variance of a cell of the marginal, |·| counts cells.
    """
    sums, precisions = np.zeros(shape), np.zeros((2,) * len(shape))
    exact: list[tuple[Axes, QueryValues]] = []
    for seen in observations:
        if isinstance(seen, Parity):
            place = tuple(int(axis in seen.axes) for axis in range(len(shape)))
            sums[place] += seen.value * math.sqrt(math.prod(shape)) / seen.variance
            precisions[place] += math.prod(shape) / seen.variance
            continue
        folded = math.prod(shape) / seen.values.size
        coefficients = reflect(seen.values, range(len(seen.axes))) / math.sqrt(folded)
        box = _interaction_slices(len(shape), seen.axes)
        if seen.variance == 0:
            exact.append((seen.axes, coefficients))
        else:
            sums[box] += coefficients * folded / seen.variance
            precisions[box] += folded / seen.variance
    with np.errstate(divide="ignore"):
        variances = 1 / precisions
    weights = expand_interactions(precisions, shape)
    found = np.divide(sums, weights, out=np.zeros(shape), where=weights > 0)
    for axes, coefficients in exact:
        box = _interaction_slices(len(shape), axes)
        found[box], variances[box] = coefficients, 0.0
    for axis, size in enumerate(shape):
        if size == 1:  # there is no contrast between the values of an attribute that has one
            variances[_axis_slice(axis, 1)] = variances[_axis_slice(axis, 0)]
    return LinearEstimate(found, variances)


def reflect(values: QueryValues, axes: Iterable[int]) -> QueryValues:
    """Counts to coefficients along some axes, or back: the reflection is its own inverse."""
    found = np.array(values, np.float64)
    for axis in axes:
        size = found.shape[axis]
        if size > 1:
            mirror = np.full(size, 1 / math.sqrt(size))
            mirror[0] -= 1.0
            along = np.tensordot(found, mirror, (axis, 0)) / (1 - 1 / math.sqrt(size))
            found -= np.moveaxis(np.multiply.outer(along, mirror), -1, axis)
    return found


def _sum_over_others(coefficients: QueryValues, axes: Axes) -> QueryValues:
    """Sums of several tables over all attributes but some; the first axis counts the tables."""
    shape = coefficients.shape[1:]
    folded = math.prod(shape) / math.prod([shape[axis] for axis in axes])
    taken = coefficients[(slice(None), *_interaction_slices(len(shape), axes))]
    return reflect(taken, range(1, len(axes) + 1)) * math.sqrt(folded)


def _interaction_slices(count: int, axes: Axes) -> tuple[int | slice, ...]:
    """The coefficients, or their variances, of all interactions of some attributes."""
    return tuple(slice(None) if axis in axes else 0 for axis in range(count))


def _axis_slice(axis: int, index: int) -> tuple[slice | int, ...]:
    return (*[slice(None)] * axis, index)


def expand_interactions(values: NDArray[_Number], shape: tuple[int, ...]) -> NDArray[_Number]:
    """One number for each interaction, an axis of length 2 for each attribute, for all coefficients of it."""
    found: NDArray[_Number] = values[np.ix_(*[np.minimum(np.arange(size), 1) for size in shape])]
    return found


# ── The best of two estimates: the linear one, which is unbiased but noisy, and the model, which is neither ──


def shrink_to_model(linear: LinearEstimate, model: QueryValues) -> LinearEstimate:
    """The linear estimate drawn toward the model as far as they differ by noise alone (James, Stein 1961).

    For the interactions of j attributes together, j = 1, 2, …: if Σ (model − linear)² is no more than the variance of
    the linear estimates, V, the model is taken; else the linear estimate is moved toward it by V / Σ (model − linear)²
    of the way. So the result is about as far from the unbiased estimate as that may be from the truth, at most. The
    number of rows is the model's. ``model`` has the coefficients of its table; what is not known is left alone.
    """
    variances = expand_interactions(linear.variances, linear.shape)
    known, apart = np.isfinite(variances), model - linear.coefficients
    order = sum(np.ix_(*[np.minimum(np.arange(size), 1) for size in linear.shape]), np.zeros(linear.shape, np.int64))
    found = linear.coefficients.copy()
    for number in range(len(linear.shape) + 1):
        some = known & (order == number)
        squares, variance = float((apart[some] ** 2).sum()), float(variances[some].sum())
        part = 1.0 if number == 0 or squares <= variance else variance / squares
        found[some] += part * apart[some]
    return replace(linear, coefficients=found)
