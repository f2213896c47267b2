"""Model error: how far reconstructed tables are from the truth apart from noise, estimated from released numbers.

Maximum entropy assumes that interactions that were not measured are absent. If that were true of the population, the
counts of a table would still differ from the reconstruction as a sample does: by a variance that is proportional to the
count (Poisson). Interactions that are present add to that. So the variance of a cell is modelled as φ·count
(*quasi-Poisson*; McCullagh and Nelder, 1989), and the *dispersion* φ is estimated from what was released.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from dpsyn.inference.measurements import Model, Release, iterate_marginals
from dpsyn.marginals import Clique
from dpsyn.query.linear_estimation import (
    Axes,
    LinearEstimate,
    QueryValues,
    coefficient_basis,
    estimate_linear,
    expand_interactions,
    reflect,
)
from dpsyn.query.model_marginals import model_marginal
from dpsyn.query.noise_propagation import CELL_FLOOR_SHARE
from dpsyn.query.observations import collect_observations
from dpsyn.query.reconstruction import KnownMarginal, maximum_entropy

COMPARISON_TABLES = 12
"""The number of measured tables that are reconstructed for comparison."""

COMPARISON_SWEEPS = 50
"""The maximum number of sweeps of iterative proportional fitting for each of them."""

MAX_COMPARISON_CELLS = 20_000
"""The maximum number of cells of each of them: the estimate must not take longer than the answer."""

MAX_LEVERAGE_CELLS = 512
"""The maximum number of cells for which leverages are solved for; that takes time in proportion to its cube."""

DISPERSION_SWEEPS = 10
"""The number of times that the weights of cells are computed from the dispersion, and the dispersion from them."""

TRUNCATED_MEAN = math.sqrt(2 / math.pi)
"""The mean of the positive half of a normal distribution, in standard deviations."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelVariances:
    """The variance of each cell of a reconstructed table around the truth, apart from noise that was propagated.

    Attributes:
        unknown: due to interactions that are not known: the dispersion φ times the variance of sampling.
        hidden: due to rows that noise has hidden; it replaces the propagated noise where that is less.
        estimated: whether a released number allowed an estimate of φ. If not, it is as large as it can be.
    """

    unknown: QueryValues
    hidden: QueryValues
    estimated: bool


def estimate_model_variances(
    releases: tuple[Release, ...],
    model: Model,
    clique: Clique,
    linear: LinearEstimate,
    known: Sequence[Axes],
    table: QueryValues,
) -> ModelVariances:
    """The variances of the cells of a table that was reconstructed from its known sums.

    A reconstruction is taken to be no worse than a table of zeros, apart from sampling: φ ≤ 1 + Σ count² / Σ count.
    """
    cells = _assess_cells(table, linear, known)
    largest = 1 + float((table**2).sum()) / max(float(table.sum()), np.finfo(float).tiny)
    dispersion = estimate_dispersion(releases, model, clique, known, cells.sampling)
    used = largest if dispersion is None else min(dispersion, largest)
    return ModelVariances(used * cells.sampling, cells.hidden, estimated=dispersion is not None)


@dataclass(frozen=True, slots=True, eq=False)
class CellVariances:
    """How far the cells of a reconstructed table may be from the truth.

    Attributes:
        sampling: the variance of a Poisson count around the table that has its known sums: count·(1 − h), where the
            *leverage* h of a cell is the share of its variance that the known sums determine.
        hidden: that of rows that noise may have hidden: the mean square of an exponential distribution, 2·mean².
        guessed: the noise of the known sums in the components that were guessed; 0 in a large table.
    """

    sampling: QueryValues
    hidden: QueryValues
    guessed: QueryValues


def _assess_cells(table: QueryValues, linear: LinearEstimate, known: Sequence[Axes]) -> CellVariances:
    """The variances of the cells of a table that was reconstructed from its known sums.

    With B the basis of the known coefficients, as rows, and D = diag(counts), leverages are the diagonal of BᵀR, where
    R = (BDBᵀ)⁻¹BD shows how the table responds to the coefficients. In a large table the leverage of a cell is taken to
    be its largest share in a known sum, which is less.
    """
    rows = _hidden_rows(table, linear, known)
    counts, hidden = table + rows, 2 * rows**2
    if counts.size > MAX_LEVERAGE_CELLS:
        sums = [counts.sum(axis=_other_axes(axes, counts.ndim), keepdims=True) for axes in known]
        shares = [np.divide(counts, each, out=np.zeros(counts.shape), where=each > 0) for each in sums]
        return CellVariances(counts * (1 - np.maximum.reduce(shares)), hidden, np.zeros(counts.shape))
    floored = (counts + max(CELL_FLOOR_SHARE * float(counts.mean()), np.finfo(float).tiny)).ravel()
    inside = np.flatnonzero(expand_interactions(interactions_within(known, counts.ndim), counts.shape))
    basis = coefficient_basis(inside, counts.shape).reshape(len(inside), -1)
    responses = np.linalg.solve((basis * floored) @ basis.T, basis * floored)
    noise = expand_interactions(linear.variances, linear.shape).ravel()[inside]
    leverages, guessed = (basis * responses).sum(axis=0), noise @ (responses - basis) ** 2
    sampling = counts * np.clip(1 - leverages.reshape(counts.shape), 0.0, 1.0)
    return CellVariances(sampling, hidden, guessed.reshape(counts.shape))


def _hidden_rows(table: QueryValues, linear: LinearEstimate, known: Sequence[Axes]) -> QueryValues:
    """The rows of each cell that noise may have hidden.

    A sum that was measured as 0 with a standard deviation of σ may be √(2/π)·σ. First-order propagation of noise does
    not show that, because it changes counts in proportion to themselves. If attributes were independent, a cell would
    have its share of all rows, and of each known sum: the least of these, with and without the noise of the sums.
    """
    total, count = float(table.sum()), table.ndim
    one_way = (table.sum(axis=_other_axes((axis,), count), keepdims=True) for axis in range(count))
    shares = [sums / max(total, np.finfo(float).tiny) for sums in one_way]
    without = with_noise = total * math.prod(shares, start=np.ones(()))
    for axes in known:
        others = _other_axes(axes, count)
        share, sums = (
            math.prod([shares[axis] for axis in others], start=np.ones(())),
            table.sum(axis=others, keepdims=True),
        )
        without = np.minimum(without, sums * share)
        with_noise = np.minimum(with_noise, (sums + TRUNCATED_MEAN * linear.sum_std(axes)) * share)
    return np.broadcast_to(with_noise - without, table.shape)


# ── Dispersion ───────────────────────────────────────────────────────────────────────────────────────────────


def estimate_dispersion(
    releases: tuple[Release, ...], model: Model, clique: Clique, known: Sequence[Axes], sampling: QueryValues
) -> float | None:
    """φ, the variance of a count around its reconstruction relative to that of sampling; None if nothing shows it.

    ``sampling`` is the variance of sampling of each cell. A score of these attributes shows φ directly. Otherwise there
    are scores of the pairs that no released marginal has, in some recipes, and measured tables show how large the
    interactions of more attributes are, or of all that are unknown if pairs have no scores. If only pairs were
    measured, they are compared with independent attributes, as if interactions of more attributes were as large.
    """
    whole = _dispersion_from_scores(releases, [clique], sampling)
    if whole is not None:
        return max(whole, 1.0)
    pairs = _unknown_pairs(known, len(clique))
    of_pairs = _dispersion_from_scores(releases, [tuple(clique[axis] for axis in pair) for pair in pairs], sampling)
    assumed = known if of_pairs is None else [*known, *pairs]
    for sums in (assumed, [(axis,) for axis in range(len(clique))]):
        of_others = _dispersion_from_measured_tables(releases, model, sums, len(clique))
        if of_others is not None:
            return (of_pairs or 0.0) + of_others
    return None


def _dispersion_from_scores(
    releases: Sequence[Release], cliques: Sequence[Clique], sampling: QueryValues
) -> float | None:
    """φ from the last score of each of some sets of attributes; None if one of them has no score.

    A score is a distance D = Σ|counts − prediction|, but at least the standard deviation of its noise. Squares add up.
    For normal errors of variance φ·v, D = √(2/π)·√φ·Σ√v.
    """
    wanted, squares = {frozenset(clique) for clique in cliques}, 0.0
    for release in reversed(releases):
        for scores in (each for each in reversed(release.scores) if each.are_distances):
            for clique, value in zip(scores.cliques, scores.values.tolist(), strict=True):
                if frozenset(clique) in wanted:
                    wanted.remove(frozenset(clique))
                    squares += max(float(value), scores.std) ** 2
    if wanted or not cliques:
        return None
    return math.pi / 2 * squares / max(float(np.sqrt(sampling).sum()) ** 2, np.finfo(float).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """A measured table, reconstructed as if it had not been measured.

    Attributes:
        difference: what was measured minus the reconstruction, in the components that were unknown to it.
        noise: the variance of the noise in them, including rows that it has hidden from the guess.
        sampling: the variance of a Poisson count in these components.
    """

    difference: QueryValues
    noise: QueryValues
    sampling: QueryValues

    def weigh(self, dispersion: float) -> tuple[float, float]:
        """Sums whose ratio is the dispersion.

        Cells have the weights of quasi-likelihood. A row more or less is no evidence about a cell that should be empty.
        """
        weights = self.sampling / (self.noise + 1 + dispersion * self.sampling) ** 2
        excess = weights * (self.difference**2 - self.noise)
        return float(excess.sum()), float((weights * self.sampling).sum())


def _dispersion_from_measured_tables(
    releases: tuple[Release, ...], model: Model, known: Sequence[Axes], count: int
) -> float | None:
    """φ from measured tables; at least 1, that of sampling.

    The standard error of the mean over tables is added, for its uncertainty. If no table of this number of attributes
    was measured, tables of fewer attributes are used.
    """
    comparisons = list(_compare_measured_tables(releases, model, known, count))
    if not comparisons:
        return None
    dispersion, error = 1.0, 0.0
    for _ in range(DISPERSION_SWEEPS):
        excess, expected = np.transpose([comparison.weigh(dispersion) for comparison in comparisons])
        scale = max(float(expected.sum()), np.finfo(float).tiny)
        ratio = float(excess.sum()) / scale
        error = math.sqrt(float(((excess - ratio * expected) ** 2).sum())) / scale
        dispersion = max(ratio, 1.0)
    return dispersion + error


def _compare_measured_tables(
    releases: tuple[Release, ...], model: Model, known: Sequence[Axes], count: int
) -> Iterator[Comparison]:
    """Measured tables, reconstructed as if only their sums over ``known`` had been measured."""
    rng = np.random.default_rng(0)
    for clique, sums in _sample_comparison_tables(releases, model, known, count, rng):
        comparison = _compare_table(releases, model, clique, sums)
        if comparison is not None:
            yield comparison


@lru_cache(maxsize=64)  # queries come in series and are compared with the same tables
def _compare_table(
    releases: tuple[Release, ...], model: Model, clique: Clique, sums: tuple[Axes, ...]
) -> Comparison | None:
    """One measured table and its reconstruction; None if it has no unknown components."""
    measured, unknown = _measured_table(releases, model, clique), ~interactions_within(sums, len(clique))
    if measured is None or not unknown.any():
        return None
    linear, counts = measured
    marginals = [KnownMarginal(axes, counts.sum(axis=_other_axes(axes, len(clique)))) for axes in sums]
    guess = maximum_entropy(linear.shape, marginals, max_sweeps=COMPARISON_SWEEPS).values
    inside, guessed = expand_interactions(unknown, linear.shape), reflect(guess, range(len(clique)))
    cells = _assess_cells(guess, linear, sums)
    noise = float(expand_interactions(linear.variances, linear.shape)[inside].sum()) / guess.size
    return Comparison(
        difference=reflect(np.where(inside, linear.coefficients - guessed, 0.0), range(len(clique))),
        noise=noise + np.maximum(cells.hidden, cells.guessed),
        sampling=cells.sampling,
    )


@lru_cache(maxsize=64)
def _measured_table(
    releases: tuple[Release, ...], model: Model, clique: Clique
) -> tuple[LinearEstimate, QueryValues] | None:
    """The best linear estimate of a measured table, and its counts in the model; None if it was not measured."""
    linear = estimate_linear(_shape(model, clique), collect_observations(releases, model.recoding, clique))
    counts = model_marginal(model, clique)
    return None if counts is None or not linear.complete else (linear, counts)


def _sample_comparison_tables(
    releases: Sequence[Release], model: Model, known: Sequence[Axes], count: int, rng: np.random.Generator
) -> Iterator[tuple[Clique, tuple[Axes, ...]]]:
    """Random attributes of measured tables, as many as possible up to ``count``, and which of their sums are known."""
    views = sorted({m.clique for _, m in iterate_marginals(releases) if {*m.clique} <= {*model.recoding.names}})
    size = min(count, max(map(len, views), default=0))
    views = [view for view in views if len(view) >= size]
    for _ in range(COMPARISON_TABLES if views else 0):
        view = views[rng.integers(len(views))]
        clique = tuple(view[index] for index in rng.permutation(len(view))[:size])
        replaced = sorted(rng.permutation(count)[:size].tolist())  # the attributes of the query that they stand for
        sums = {tuple(index for index, axis in enumerate(replaced) if axis in axes) for axes in known}
        if math.prod(_shape(model, clique)) <= MAX_COMPARISON_CELLS:
            yield clique, tuple(axes for axes in sorted(sums) if not any({*axes} < {*other} for other in sums))


def _shape(model: Model, clique: Clique) -> tuple[int, ...]:
    return tuple(model.recoding.sizes[model.recoding.index_of(name)] for name in clique)


def _other_axes(axes: Axes, count: int) -> Axes:
    return tuple(axis for axis in range(count) if axis not in axes)


def _unknown_pairs(known: Sequence[Axes], count: int) -> list[Axes]:
    """The pairs of attributes that are in no known table together."""
    return [pair for pair in combinations(range(count), 2) if not any({*pair} <= {*axes} for axes in known)]


def pairs_are_known(known: Sequence[Axes], count: int) -> bool:
    """Whether every two attributes are in a known table together; if not, they may depend through others."""
    return not _unknown_pairs(known, count)


def interactions_within(known: Sequence[Axes], count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which interactions, with an axis of length 2 for each attribute, lie within one of the known sets."""
    within = np.zeros((2,) * count, bool)
    for axes in known:
        within[tuple(slice(None) if axis in axes else 0 for axis in range(count))] = True
    return within
