"""What measuring a marginal would leave of its error, told from released numbers before anything is paid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.inference.nonnegativity import norm_sub
from dpsyn.selection.pair_selection import CELL_POWER

SIMULATED_NOISE_SCALES = 9
"""Noise scales at which errors are simulated; between them they are interpolated."""


@dataclass(frozen=True, slots=True, eq=False)
class PredictedErrors:
    """The error ‖estimate − truth‖₁ that each of several tables would have, by the deviation of its noise.

    Once negative counts are removed, a table of c cells is off by much less than c·σ·√(2/π): most cells of a sparse
    table are empty and stay so. Hence noise is added to a guess of the table and projected, which is free.

    Attributes:
        stds: ascending scales at which errors were simulated.
        errors: tables × scales.
    """

    stds: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def simulate(cls, tables: Sequence[NDArray[np.float64]], stds: NDArray[np.float64]) -> PredictedErrors:
        """Simulate the measurement of guessed tables once at each scale, with the same random numbers every time."""
        rng = np.random.default_rng(0)
        errors = np.empty((len(tables), len(stds)))
        for place, guess in enumerate(tables):
            noise = rng.standard_normal(guess.shape)
            for scale, deviation in enumerate(stds):
                projected = norm_sub(guess + deviation * noise, float(guess.sum()))
                errors[place, scale] = np.abs(projected - guess).sum()
        return cls(stds, errors)

    def interpolate(self, stds: NDArray[np.float64]) -> NDArray[np.float64]:
        """The error of each table at a scale of its own, interpolated in the logarithm of the scale."""
        known = np.log(self.stds)
        asked = np.clip(np.log(stds), known[0], known[-1])
        left = np.clip(np.searchsorted(known, asked) - 1, 0, len(known) - 2)
        part = (asked - known[left]) / (known[left + 1] - known[left])
        tables = np.arange(len(self.errors))
        found: NDArray[np.float64] = self.errors[tables, left] * (1 - part) + self.errors[tables, left + 1] * part
        return found


# ── Which marginals are worth their noise, given how wrong the present model is about them ──


COMPARED_BUDGETS = 40
"""Sizes of the choice that are compared; more find nothing better."""


def shrink_scores(scores: NDArray[np.float64], std: float) -> NDArray[np.float64]:
    """Noisy scores drawn together toward their mean as far as they differ by noise alone (empirical Bayes).

    If all of what they differ by is noise, none of them is special, however large the largest one is.
    """
    if len(scores) < 2:
        return scores
    spread = float(scores.var(ddof=1))
    kept = max(0.0, 1 - std**2 / spread) if spread > 0 else 0.0
    result: NDArray[np.float64] = scores.mean() + kept * (scores - scores.mean())
    return result


@dataclass(frozen=True, slots=True, eq=False)
class MarginalChoice:
    """Marginals that are worth measuring.

    Attributes:
        positions: their positions, the most worthwhile first.
        errors: the error that each is predicted to have then.
    """

    positions: NDArray[np.int64]
    errors: NDArray[np.float64]


def select_marginals(
    scores: NDArray[np.float64],
    model_tables: Sequence[NDArray[np.float64]],
    rho: float,
    *,
    sensitivity: float = 1.0,
    max_total_cells: int,
    importance: NDArray[np.float64] | None = None,
    noise_factor: Callable[[NDArray[np.int64]], float] = lambda _: 1.0,
) -> MarginalChoice:
    """The marginals to measure with ρ.

    A marginal that is measured trades its score, ‖counts − model‖₁, for the predicted error of its noise. Shares go as
    (importance·cells)^(2/3), by which the weighted sum of c/√ρ is least. For each of several sums of weights, hence for
    each noise level, the marginals that gain are taken by gain per weight until the sum is reached; the level with the
    largest gain of all wins.

    Args:
        scores: how far the counts are from the model, as released.
        model_tables: the model's tables.
        rho: what the marginals may cost together.
        sensitivity: how much one unit changes a marginal, in L2.
        max_total_cells: how many cells they may have together.
        importance: how much an error in each counts; by default alike.
        noise_factor: what becomes of the noise of chosen ones if they are measured in a better way, as a factor. The choice is
            then made again with it: less noise makes more of them worthwhile.
    """
    if not len(scores):
        return MarginalChoice(np.empty(0, np.int64), np.empty(0))
    cells = np.array([guess.size for guess in model_tables], np.int64)
    importance = np.ones(len(cells)) if importance is None else importance
    weights = (importance * cells) ** CELL_POWER
    finest = sensitivity * math.sqrt(1 / (2 * rho))
    coarsest = finest * math.sqrt(weights.sum() / weights.min())
    predicted = PredictedErrors.simulate(
        model_tables, np.geomspace(finest, max(coarsest, 2 * finest), SIMULATED_NOISE_SCALES)
    )

    def best(finest: float) -> MarginalChoice:
        most, chosen = 0.0, MarginalChoice(np.empty(0, np.int64), np.empty(0))
        for room in np.geomspace(weights.min(), weights.sum(), COMPARED_BUDGETS):
            errors = predicted.interpolate(finest * np.sqrt(room / weights))
            gains = importance * (scores - errors)
            order = np.argsort(-gains / weights, kind="stable")
            order = order[gains[order] > 0]
            fits = (np.cumsum(weights[order]) <= room * (1 + 1e-9)) & (np.cumsum(cells[order]) <= max_total_cells)
            order = order[fits]
            if gains[order].sum() > most:
                most, chosen = float(gains[order].sum()), MarginalChoice(order, errors[order])
        return chosen

    first = best(finest)
    factor = noise_factor(first.positions)
    return first if factor == 1 else best(finest * factor)
