"""How far reconstructed tables are from the truth besides noise, judged by tables that were measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from dpsyn.inference.measurements import Model, Release
from dpsyn.marginals import Clique
from dpsyn.query.blue import Axes, estimate_linear, expand_interactions, reflect
from dpsyn.query.model_marginals import model_marginal
from dpsyn.query.observations import collect_observations, iterate_marginals
from dpsyn.query.reconstruction import KnownMarginal, maximum_entropy

COMPARISON_TABLES = 12
"""Measured tables that are reconstructed for comparison."""

COMPARISON_SWEEPS = 50
"""Of fitting each of them."""

MAX_COMPARISON_CELLS = 20_000
"""Of each of them: this is an estimate, and must not take longer than the answer."""


def estimate_model_error(
    releases: tuple[Release, ...], model: Model, clique: Clique, known: Sequence[Axes]
) -> float | None:
    """The root mean square of what the cells of a reconstructed table are off by, apart from noise.

    Scores that were released tell it: how far the counts of these attributes are from what tables of fewer of them
    say. If there is none, and all pairs are known, measured tables tell how good such reconstructions are. None if
    there is neither.
    """
    scored = _error_from_scores(releases, model, clique)
    if scored is not None or not pairs_are_known(known, len(clique)):
        return scored
    squared = _error_from_measured_tables(releases, model, known, len(clique))
    return None if squared is None else math.sqrt(squared / math.prod(_shape(model, clique)))


def _error_from_scores(releases: Sequence[Release], model: Model, clique: Clique) -> float | None:
    """From the last score of these attributes, Σ|counts − prediction|; as much as its noise if it is less than that.

    For errors like noise the root mean square is √(π/2) times the mean.
    """
    for release in reversed(releases):
        for scores in reversed(release.scores):
            for other, value in zip(scores.cliques, scores.values.tolist(), strict=True):
                if {*other} == {*clique}:
                    distance = max(float(value), scores.std)
                    return math.sqrt(math.pi / 2) * distance / math.prod(_shape(model, clique))
    return None


def _error_from_measured_tables(
    releases: tuple[Release, ...], model: Model, known: Sequence[Axes], count: int
) -> float | None:
    """What reconstructions are off by, as a sum of squares; None if no table was measured that could tell.

    Measured tables are reconstructed as if only their sums over ``known`` had been measured. The components that a
    reconstruction had to guess are compared with those that were measured, whose noise is taken off:
    Σ (guess − measured)² − Σ variance. As far as the mean is uncertain itself, its standard error is added. If no table
    with so many attributes was measured, some of the attributes stand for all: an underestimate, rather.
    """
    rng, wrong = np.random.default_rng(0), []
    for clique, sums in _sample_comparison_tables(releases, model, known, count, rng):
        linear = estimate_linear(_shape(model, clique), collect_observations(releases, model.recoding, clique))
        counts, unknown = model_marginal(model, clique), ~interactions_within(sums, len(clique))
        if counts is None or not linear.complete or not unknown.any():
            continue
        parts = [KnownMarginal(axes, counts.sum(axis=_other_axes(axes, len(clique)))) for axes in sums]
        guess = reflect(maximum_entropy(linear.shape, parts, max_sweeps=COMPARISON_SWEEPS).values, range(len(clique)))
        apart = (guess - linear.coefficients)[expand_interactions(unknown, linear.shape)]
        noise = expand_interactions(linear.variances, linear.shape)[expand_interactions(unknown, linear.shape)]
        wrong.append(float((apart**2).sum() - noise.sum()))
    if not wrong:
        return None
    return max(float(np.mean(wrong)), 0.0) + float(np.std(wrong)) / math.sqrt(len(wrong))


def _sample_comparison_tables(
    releases: Sequence[Release], model: Model, known: Sequence[Axes], count: int, rng: np.random.Generator
) -> Iterator[tuple[Clique, list[Axes]]]:
    """Random attributes of tables that were measured, as many as possible, and which of their sums count as known."""
    views = sorted({m.clique for _, m in iterate_marginals(releases) if {*m.clique} <= {*model.recoding.names}})
    number = min(count, max(map(len, views), default=0))
    views = [view for view in views if len(view) >= number]
    for _ in range(COMPARISON_TABLES if views else 0):
        view = views[rng.integers(len(views))]
        clique = tuple(view[place] for place in rng.permutation(len(view))[:number])
        standing = sorted(rng.permutation(count)[:number].tolist())  # for these attributes of the question
        sums = {tuple(place for place, axis in enumerate(standing) if axis in axes) for axes in known}
        if math.prod(_shape(model, clique)) <= MAX_COMPARISON_CELLS:
            yield clique, [axes for axes in sorted(sums) if not any({*axes} < {*other} for other in sums)]


def _shape(model: Model, clique: Clique) -> tuple[int, ...]:
    return tuple(model.recoding.sizes[model.recoding.index_of(name)] for name in clique)


def _other_axes(axes: Axes, count: int) -> Axes:
    return tuple(axis for axis in range(count) if axis not in axes)


def pairs_are_known(known: Sequence[Axes], count: int) -> bool:
    """Whether every two attributes are in a table together; if not, others may tell how they depend on each other."""
    return all(any({*pair} <= {*axes} for axes in known) for pair in combinations(range(count), 2))


def interactions_within(known: Sequence[Axes], count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which interactions, by an axis of length 2 for each attribute, lie within one of the known sets."""
    found = np.zeros((2,) * count, bool)
    for axes in known:
        found[tuple(slice(None) if axis in axes else 0 for axis in range(count))] = True
    return found
