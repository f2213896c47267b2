"""How far reconstructed tables are from the truth besides noise, judged by tables that were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dpsyn.marginals import Clique
from dpsyn.synopsis.answering.linear import Axes, linear_estimate, reflected, spread
from dpsyn.synopsis.answering.maxent import maximum_entropy
from dpsyn.synopsis.answering.modelled import held
from dpsyn.synopsis.answering.observing import measured, observed
from dpsyn.synopsis.answering.parts import Part
from dpsyn.synopsis.parts import Model, Release

TABLES = 12
"""Measured tables that are reconstructed for comparison."""

MOST_CELLS = 20_000
"""Of each of them: this is an estimate, and must not take longer than the answer."""


def model_error(releases: Sequence[Release], model: Model, clique: Clique, known: Sequence[Axes]) -> float | None:
    """The root mean square of what the cells of a reconstructed table are off by, apart from noise.

    Scores that were released tell it: how far the counts of these attributes are from what tables of fewer of them
    say. If there is none, and all pairs are known, measured tables of as many attributes tell how good such
    reconstructions are. None if there is neither.
    """
    scored = _scored(releases, model, clique)
    if scored is not None or not pairs_are_known(known, len(clique)):
        return scored
    return _judged_by_measured(releases, model, _shape(model, clique), known)


def _scored(releases: Sequence[Release], model: Model, clique: Clique) -> float | None:
    """From the last score of these attributes, Σ|counts − prediction|; as much as its noise if it is less than that.

    For errors like noise the root mean square is √(π/2) times the mean.
    """
    for release in reversed(releases):
        for scores in reversed(release.scores):
            found = [
                v for other, v in zip(scores.cliques, scores.values.tolist(), strict=True) if {*other} == {*clique}
            ]
            if found:
                distance = max(float(found[-1]), scores.deviation)
                return math.sqrt(math.pi / 2) * distance / math.prod(_shape(model, clique))
    return None


def _judged_by_measured(
    releases: Sequence[Release], model: Model, shape: tuple[int, ...], known: Sequence[Axes]
) -> float | None:
    """Measured tables are reconstructed as if only their sums over ``known`` had been measured.

    The components that a reconstruction had to guess are compared with those that were measured, whose noise is taken
    off: Σ (guess − measured)² − Σ variance is what guesses are wrong by, in squares, on average. As far as that is
    uncertain itself, its standard error is added.
    """
    count, rng, wrong = len(shape), np.random.default_rng(0), []
    for clique in _examples(releases, model, count, rng):
        linear = linear_estimate(_shape(model, clique), observed(releases, model.recoding, clique))
        counts = held(model, clique)
        if counts is None or not linear.complete:
            continue
        parts = [Part(axes, counts.sum(axis=_others(axes, count))) for axes in known]
        guess = reflected(maximum_entropy(linear.shape, parts).values, range(count))
        unknown = spread(~within_any(known, count), linear.shape)
        noise = spread(linear.variances, linear.shape)[unknown]
        wrong.append(float(((guess - linear.coefficients)[unknown] ** 2).sum() - noise.sum()))
    if not wrong:
        return None
    uncertain = float(np.std(wrong) / math.sqrt(len(wrong)))
    return math.sqrt((max(float(np.mean(wrong)), 0.0) + uncertain) / math.prod(shape))


def _examples(releases: Sequence[Release], model: Model, count: int, rng: np.random.Generator) -> list[Clique]:
    """Random attributes, so many at a time, of tables that were measured; small ones."""
    views = sorted({m.clique for _, m in measured(releases) if len(m.clique) >= count})
    views = [view for view in views if set(view) <= set(model.recoding.names)]
    found: list[Clique] = []
    for _ in range(TABLES if views else 0):
        view = views[rng.integers(len(views))]
        clique = tuple(view[place] for place in rng.permutation(len(view))[:count])
        if math.prod(_shape(model, clique)) <= MOST_CELLS:
            found.append(clique)
    return found


def _shape(model: Model, clique: Clique) -> tuple[int, ...]:
    return tuple(model.recoding.sizes[model.recoding.place_of(name)] for name in clique)


def _others(axes: Axes, count: int) -> Axes:
    return tuple(axis for axis in range(count) if axis not in axes)


def pairs_are_known(known: Sequence[Axes], count: int) -> bool:
    """Whether every two attributes are in a table together; if not, others may tell how they depend on each other."""
    return all(any({*pair} <= {*axes} for axes in known) for pair in combinations(range(count), 2))


def within_any(known: Sequence[Axes], count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which interactions, by an axis of length 2 for each attribute, lie within one of the known sets."""
    found = np.zeros((2,) * count, bool)
    for axes in known:
        found[tuple(slice(None) if axis in axes else 0 for axis in range(count))] = True
    return found
