"""Model error: how far reconstructed tables are from the truth apart from noise, estimated from released numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from dpsyn.inference.measurements import Model, Release, iterate_marginals
from dpsyn.marginals import Clique
from dpsyn.query.linear_estimation import Axes, estimate_linear, expand_interactions, reflect
from dpsyn.query.model_marginals import model_marginal
from dpsyn.query.observations import collect_observations
from dpsyn.query.reconstruction import KnownMarginal, maximum_entropy

COMPARISON_TABLES = 12
"""The number of measured tables that are reconstructed for comparison."""

COMPARISON_SWEEPS = 50
"""The maximum number of sweeps of iterative proportional fitting for each of them."""

MAX_COMPARISON_CELLS = 20_000
"""The maximum number of cells of each of them: the estimate must not take longer than the answer."""


def estimate_model_error(
    releases: tuple[Release, ...], model: Model, clique: Clique, known: Sequence[Axes]
) -> float | None:
    """The root mean square error of the cells of a reconstructed table, apart from noise.

    It comes from released scores: the distance between the counts of these attributes and a prediction from tables of
    fewer of them. If there is no score and all pairs are known, it comes from measured tables, which show how accurate
    such reconstructions are. None if there is neither.
    """
    from_scores = _error_from_scores(releases, model, clique)
    if from_scores is not None or not pairs_are_known(known, len(clique)):
        return from_scores
    squared_error = _error_from_measured_tables(releases, model, known, len(clique))
    return None if squared_error is None else math.sqrt(squared_error / math.prod(_shape(model, clique)))


def _error_from_scores(releases: Sequence[Release], model: Model, clique: Clique) -> float | None:
    """The error from the last score of these attributes, Σ|counts − prediction|, but at least the std of its noise.

    For normal errors the root mean square is √(π/2) times the mean absolute error.
    """
    for release in reversed(releases):
        for scores in (each for each in reversed(release.scores) if each.are_distances):
            for other, value in zip(scores.cliques, scores.values.tolist(), strict=True):
                if {*other} == {*clique}:
                    distance = max(float(value), scores.std)
                    return math.sqrt(math.pi / 2) * distance / math.prod(_shape(model, clique))
    return None


def _error_from_measured_tables(
    releases: tuple[Release, ...], model: Model, known: Sequence[Axes], count: int
) -> float | None:
    """The squared error of reconstructions, summed over cells; None if no suitable table was measured.

    Measured tables are reconstructed as if only their sums over ``known`` had been measured. The components that a
    reconstruction had to guess are compared with the measured ones, and the noise of these is subtracted:
    Σ (guess − measured)² − Σ variance. The standard error of the mean over tables is added, for its uncertainty. If no
    table of this number of attributes was measured, tables of fewer attributes are used, which rather underestimates
    the error.
    """
    rng, errors = np.random.default_rng(0), []
    for clique, sums in _sample_comparison_tables(releases, model, known, count, rng):
        linear = estimate_linear(_shape(model, clique), collect_observations(releases, model.recoding, clique))
        counts, unknown = model_marginal(model, clique), ~interactions_within(sums, len(clique))
        if counts is None or not linear.complete or not unknown.any():
            continue
        marginals = [KnownMarginal(axes, counts.sum(axis=_other_axes(axes, len(clique)))) for axes in sums]
        guess = reflect(
            maximum_entropy(linear.shape, marginals, max_sweeps=COMPARISON_SWEEPS).values, range(len(clique))
        )
        difference = (guess - linear.coefficients)[expand_interactions(unknown, linear.shape)]
        noise = expand_interactions(linear.variances, linear.shape)[expand_interactions(unknown, linear.shape)]
        errors.append(float((difference**2).sum() - noise.sum()))
    if not errors:
        return None
    return max(float(np.mean(errors)), 0.0) + float(np.std(errors)) / math.sqrt(len(errors))


def _sample_comparison_tables(
    releases: Sequence[Release], model: Model, known: Sequence[Axes], count: int, rng: np.random.Generator
) -> Iterator[tuple[Clique, list[Axes]]]:
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
            yield clique, [axes for axes in sorted(sums) if not any({*axes} < {*other} for other in sums)]


def _shape(model: Model, clique: Clique) -> tuple[int, ...]:
    return tuple(model.recoding.sizes[model.recoding.index_of(name)] for name in clique)


def _other_axes(axes: Axes, count: int) -> Axes:
    return tuple(axis for axis in range(count) if axis not in axes)


def pairs_are_known(known: Sequence[Axes], count: int) -> bool:
    """Whether every two attributes are in a known table together; if not, they may depend through others."""
    return all(any({*pair} <= {*axes} for axes in known) for pair in combinations(range(count), 2))


def interactions_within(known: Sequence[Axes], count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which interactions, with an axis of length 2 for each attribute, lie within one of the known sets."""
    within = np.zeros((2,) * count, bool)
    for axes in known:
        within[tuple(slice(None) if axis in axes else 0 for axis in range(count))] = True
    return within
