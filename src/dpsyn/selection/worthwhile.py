"""Which marginals are worth their noise, given how wrong the present model is about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.selection.greedy import CELL_POWER
from dpsyn.selection.predict import DEVIATIONS, PredictedErrors

GUESSES = 40
"""Sizes of the choice that are compared; more find nothing better."""


def shrunk(scores: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    """Noisy scores drawn together toward their mean as far as they differ by noise alone (empirical Bayes).

    If all of what they differ by is noise, none of them is special, however large the largest one is.
    """
    if len(scores) < 2:
        return scores
    spread = float(scores.var(ddof=1))
    kept = max(0.0, 1 - deviation**2 / spread) if spread > 0 else 0.0
    result: NDArray[np.float64] = scores.mean() + kept * (scores - scores.mean())
    return result


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Marginals that are worth measuring.

    Attributes:
        places: their positions, the most worthwhile first.
        errors: the error that each is predicted to have then.
    """

    places: NDArray[np.int64]
    errors: NDArray[np.float64]


def select_worthwhile(
    scores: NDArray[np.float64],
    guesses: Sequence[NDArray[np.float64]],
    rho: float,
    *,
    sensitivity: float = 1.0,
    most_cells: int,
    importance: NDArray[np.float64] | None = None,
    noise: Callable[[NDArray[np.int64]], float] = lambda _: 1.0,
) -> Choice:
    """The marginals to measure with ρ.

    A marginal that is measured trades its score, ‖counts − model‖₁, for the predicted error of its noise. Shares go as
    (importance·cells)^(2/3), by which the weighted sum of c/√ρ is least. For each of several sums of weights, hence for
    each noise level, the marginals that gain are taken by gain per weight until the sum is reached; the level with the
    largest gain of all wins.

    Args:
        scores: how far the counts are from the model, as released.
        guesses: the model's tables.
        rho: what the marginals may cost together.
        sensitivity: how much one unit changes a marginal, in L2.
        most_cells: how many cells they may have together.
        importance: how much an error in each counts; by default alike.
        noise: what becomes of the noise of chosen ones if they are measured in a better way, as a factor. The choice is
            then made again with it: less noise makes more of them worthwhile.
    """
    if not len(scores):
        return Choice(np.empty(0, np.int64), np.empty(0))
    cells = np.array([guess.size for guess in guesses], np.int64)
    importance = np.ones(len(cells)) if importance is None else importance
    weights = (importance * cells) ** CELL_POWER
    finest = sensitivity * math.sqrt(1 / (2 * rho))
    coarsest = finest * math.sqrt(weights.sum() / weights.min())
    predicted = PredictedErrors.simulate(guesses, np.geomspace(finest, max(coarsest, 2 * finest), DEVIATIONS))

    def best(finest: float) -> Choice:
        most, chosen = 0.0, Choice(np.empty(0, np.int64), np.empty(0))
        for room in np.geomspace(weights.min(), weights.sum(), GUESSES):
            errors = predicted.at(finest * np.sqrt(room / weights))
            gains = importance * (scores - errors)
            order = np.argsort(-gains / weights, kind="stable")
            order = order[gains[order] > 0]
            fits = (np.cumsum(weights[order]) <= room * (1 + 1e-9)) & (np.cumsum(cells[order]) <= most_cells)
            order = order[fits]
            if gains[order].sum() > most:
                most, chosen = float(gains[order].sum()), Choice(order, errors[order])
        return chosen

    first = best(finest)
    factor = noise(first.places)
    return first if factor == 1 else best(finest * factor)
