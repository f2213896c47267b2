"""Adaptive marginal selection: which marginals are worth their noise, given the error of the current model.

The error that a marginal would have after its measurement is predicted from released numbers, before any budget is
spent on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.inference.nonnegativity import norm_sub_each
from dpsyn.selection import kernels
from dpsyn.selection.pair_selection import CELL_POWER

SIMULATED_NOISE_SCALES = 9
"""The number of noise scales at which errors are simulated; between them they are interpolated."""

USUAL_DISPERSION = 0.2
"""The relative standard deviation of true counts from a smooth table that predictions assume."""

SIMULATED_CELLS = 1 << 20
"""The number of cells that are simulated at a time: some ten megabytes."""


@dataclass(frozen=True, slots=True, eq=False)
class PredictedErrors:
    """The predicted error ‖estimate − truth‖₁ of several tables, as a function of the standard deviation of the noise.

    After negative counts are removed, the error of a table of c cells is much less than c·σ·√(2/π): most cells of a
    sparse table are empty and stay empty. So the prediction adds noise to the model's table and projects it, which
    costs nothing.

    Attributes:
        stds: the standard deviations at which errors were simulated, ascending.
        errors: tables × standard deviations.
    """

    stds: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def simulate(
        cls,
        tables: Sequence[NDArray[np.float64]],
        stds: NDArray[np.float64],
        parameters: Sequence[int | None] | None = None,
    ) -> PredictedErrors:
        """Simulate the measurement of tables once at each noise scale, always with the same random numbers.

        ``parameters`` has the number of parameters of each table that is smoothed (``inference/table_smoothing.py``):
        of the noise in c cells, that of the parameters stays, and that of the parts of differences which are kept.
        """
        free = np.array([math.inf if number is None else number for number in parameters or [None] * len(tables)])
        rng, errors, first = np.random.default_rng(0), np.empty((len(tables), len(stds))), 0
        while first < len(tables):
            sizes = np.cumsum([table.size for table in tables[first:]])
            stop = first + max(1, int(np.searchsorted(sizes, SIMULATED_CELLS, side="right")))
            cells = np.concatenate([table.ravel() for table in tables[first:stop]])
            starts = np.concatenate([[0], sizes[: stop - first - 1]])
            totals = np.add.reduceat(cells, starts)
            noise = rng.standard_normal(len(cells))
            lengths = np.diff([*starts, len(cells)])
            spread = cells + (USUAL_DISPERSION * cells) ** 2
            for column, std in enumerate(stds):
                kept = free[first:stop] + np.add.reduceat(spread / (spread + std**2), starts)
                part = np.repeat(np.sqrt(np.minimum(1.0, kept / lengths)), lengths)
                projected = norm_sub_each(cells + std * part * noise, starts, totals)
                errors[first:stop, column] = np.add.reduceat(np.abs(projected - cells), starts)
            first = stop
        return cls(stds, errors)

    def interpolate(self, stds: NDArray[np.float64]) -> NDArray[np.float64]:
        """The error of each table at its own noise scale, interpolated in the logarithm of the scale."""
        knots = np.log(self.stds)
        logs = np.clip(np.log(stds), knots[0], knots[-1])
        left = np.clip(np.searchsorted(knots, logs) - 1, 0, len(knots) - 2)
        part = (logs - knots[left]) / (knots[left + 1] - knots[left])
        tables = np.arange(len(self.errors))
        result: NDArray[np.float64] = self.errors[tables, left] * (1 - part) + self.errors[tables, left + 1] * part
        return result


COMPARED_BUDGETS = 40
"""The number of total weights that are compared; more give no better selection."""


CLEAR_SIGMAS = 6.0
"""A distance that stands out from its noise by so many standard deviations is returned as measured."""

PRIOR_PARTS = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 60)])
"""The parts of the largest possible distance that the prior of ``estimate_distances`` distinguishes."""

EM_ROUNDS = 20
"""Rounds of expectation maximization. Few rounds keep the prior smooth; with many it degenerates into spikes."""

MAX_SAMPLE, BLOCK = 20_000, 4_096
"""The maximum number of scores that the prior is estimated from, and the number of scores processed at a time."""


def max_spread(counts: NDArray[np.float64]) -> float:
    """The largest part of the rows in which two tables with the same counts of an attribute can differ in it.

    It is 2(1 − m), where m is the part of the most frequent value: they differ only where one has a rarer value.
    """
    return min(1.0, 2 * max(0.0, 1 - float(counts.max()) / max(float(counts.sum()), 1.0)))


def max_distance(table: NDArray[np.float64]) -> float:
    """The largest distance that counts can have from a model's table, if their one-way tables are those of the model.

    Let rows of the counts and of the model be equal in one attribute; then they differ in the others in at most the sum
    of ``max_spread``. Binary attributes of which a value is rare have hardly any distance to show, however they depend
    on others.
    """
    others = (tuple(other for other in range(table.ndim) if other != axis) for axis in range(table.ndim))
    spreads = sorted(max_spread(table.sum(axis=axes)) for axes in others)
    return 2 * max(float(table.sum()), 1.0) * min(1.0, math.fsum(spreads[:-1]))


def estimate_distances(
    scores: NDArray[np.float64], std: float, explained: NDArray[np.float64], largest: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The posterior means of distances, given noisy scores (empirical Bayes).

    A score is √(distance² + explained²) and noise. With many attributes noise exceeds most distances: half of them
    would look large, and so would their mean. So each distance is a part of the largest possible one, and the prior of
    these parts is the distribution that explains all scores best (Kiefer and Wolfowitz 1956). What stands out from the
    noise stays as it is; of the rest, tables that cannot be far from the model are not.

    Args:
        scores: the noisy scores.
        std: the standard deviation of their noise.
        explained: the part of each score that is no distance from the model.
        largest: the largest distance that each table can have (``max_distance``).
    """
    distances: NDArray[np.float64] = np.sqrt(np.maximum(np.maximum(scores, 0.0) ** 2 - explained**2, 0.0))
    unclear = np.flatnonzero(scores < explained + CLEAR_SIGMAS * std)
    if std <= 0 or not len(unclear):
        return distances

    def likelihoods(positions: NDArray[np.int64]) -> NDArray[np.float64]:
        means = np.hypot(np.multiply.outer(largest[positions], PRIOR_PARTS), explained[positions, None])
        logs = -0.5 * ((scores[positions, None] - means) / std) ** 2
        result: NDArray[np.float64] = np.exp(logs - logs.max(axis=1, keepdims=True))
        return result

    sample = likelihoods(unclear[:: -(-len(unclear) // MAX_SAMPLE)])
    prior = np.full(len(PRIOR_PARTS), 1 / len(PRIOR_PARTS))
    for _ in range(EM_ROUNDS):
        prior *= (sample / (sample @ prior)[:, None]).mean(axis=0)
    for start in range(0, len(unclear), BLOCK):
        block = unclear[start : start + BLOCK]
        posteriors = likelihoods(block) * prior
        distances[block] = largest[block] * (posteriors @ PRIOR_PARTS) / posteriors.sum(axis=1)
    return distances


def select_visible(largest: NDArray[np.float64], std: float) -> NDArray[np.int64]:
    """The positions of the tables that are worth a score: those that could stand out from the noise of all scores.

    Scores share a budget, so each makes the others noisier: the noise of m scores is ``std``·√m, and the largest of
    them is about √(2 ln 2m) times that by chance. A table whose largest possible distance is below that tells nothing,
    and is left out.

    Args:
        largest: the largest distance that each table can have from the model.
        std: the noise of a score that has the whole budget.
    """
    order = np.argsort(-largest, kind="stable")
    numbers = np.arange(1, len(largest) + 1)
    visible = np.flatnonzero(largest[order] >= std * np.sqrt(numbers * 2 * np.log(2 * numbers)))
    return np.sort(order[: visible[-1] + 1 if len(visible) else 0])


@dataclass(frozen=True, slots=True, eq=False)
class MarginalChoice:
    """The selected marginals.

    Attributes:
        positions: their positions among the candidates, the one with most gain per weight first.
        errors: the predicted error of each after its measurement.
    """

    positions: NDArray[np.int64]
    errors: NDArray[np.float64]


def add_background(errors: NDArray[np.float64], background: NDArray[np.float64]) -> NDArray[np.float64]:
    """What marginals are off by if their one-way tables are off by ``background``, too: the mean of two resolutions.

    At a fine resolution, independent errors add up like standard deviations, so that a weak dependence matters little
    where one-way tables are poor. At a coarse one, where people look at correlations, the background does not count.
    """
    total: NDArray[np.float64] = (errors + np.hypot(errors, background)) / 2
    return total


def predict_errors(
    tables: Sequence[NDArray[np.float64]],
    rho: float,
    *,
    sensitivity: float = 1.0,
    importance: NDArray[np.float64] | None = None,
    parameters: Sequence[int | None] | None = None,
) -> PredictedErrors:
    """The predicted errors of tables that share a budget of at most ρ, whichever of them are measured."""
    cells = np.array([table.size for table in tables], np.int64)
    weights = (cells if importance is None else importance * cells) ** CELL_POWER
    finest = sensitivity * math.sqrt(1 / (2 * rho))
    coarsest = finest * math.sqrt(weights.sum() / weights.min())
    stds = np.geomspace(finest, max(coarsest, 2 * finest), SIMULATED_NOISE_SCALES)
    return PredictedErrors.simulate(tables, stds, parameters)


def select_marginals(
    scores: NDArray[np.float64],
    model_tables: Sequence[NDArray[np.float64]],
    rho: float,
    *,
    sensitivity: float = 1.0,
    max_total_cells: int,
    importance: NDArray[np.float64] | None = None,
    lost: NDArray[np.float64] | None = None,
    background: NDArray[np.float64] | None = None,
    predicted: PredictedErrors | None = None,
    noise_factor: Callable[[NDArray[np.int64]], float] = lambda _: 1.0,
    alternatives: NDArray[np.int64] | None = None,
) -> MarginalChoice:
    """Select the marginals to measure with a budget of ρ.

    Without a measurement, a marginal is off by its score, ‖counts − model‖₁; with it, by the predicted error of its
    noise and what its level loses. Both come on top of a background of errors that stay in any case (see
    ``add_background``). The gain is the difference. Budgets are in proportion to the weights (importance·cells)^(2/3),
    which minimizes the weighted sum of c/√ρ. For each of several total weights, hence for each noise level, marginals
    with a positive gain are selected by gain per weight until the total is reached. The noise level with the largest
    total gain wins.

    Args:
        scores: the released distances between the counts and the model.
        model_tables: the model's tables of the candidates.
        rho: the zCDP budget ρ of all selected marginals together.
        sensitivity: the L2 sensitivity of one marginal.
        max_total_cells: the maximum number of cells of all selected marginals together.
        importance: the weight of an error in each marginal; equal weights by default.
        lost: the part of each score that a measurement does not remove, because its level is too coarse; 0 by default.
        background: the error of each marginal that stays in any case; 0 by default.
        predicted: the errors of the tables, if they were simulated before.
        noise_factor: the factor by which the noise of the selected marginals changes if they are measured in a better
            way, such as merged. The selection is then repeated with it, because less noise makes more marginals worth
            measuring.
        alternatives: candidates of the same number are alternatives, such as a marginal at several levels, of which one
            is selected at most.

    Privacy: post-processing of the released scores and the model; it costs nothing.
    """
    if not len(scores):
        return MarginalChoice(np.empty(0, np.int64), np.empty(0))
    cells = np.array([table.size for table in model_tables], np.int64)
    importance = np.ones(len(cells)) if importance is None else importance
    lost = np.zeros(len(cells)) if lost is None else lost
    background = np.zeros(len(cells)) if background is None else background
    weights = (importance * cells) ** CELL_POWER
    finest = sensitivity * math.sqrt(1 / (2 * rho))
    predicted = predicted or predict_errors(model_tables, rho, sensitivity=sensitivity, importance=importance)
    unmeasured = add_background(scores, background)

    def select(finest: float) -> MarginalChoice:
        best_gain, best = 0.0, MarginalChoice(np.empty(0, np.int64), np.empty(0))
        for total_weight in np.geomspace(weights.min(), weights.sum(), COMPARED_BUDGETS):
            errors = predicted.interpolate(finest * np.sqrt(total_weight / weights))
            gains = importance * (unmeasured - add_background(lost + errors, background))
            if alternatives is None:
                order = np.argsort(-gains / weights, kind="stable")
                order = order[gains[order] > 0]
                fits = (np.cumsum(weights[order]) <= total_weight * (1 + 1e-9)) & (
                    np.cumsum(cells[order]) <= max_total_cells
                )
                order = order[fits]
            else:
                order = _choose_alternatives(gains, weights, cells, alternatives, total_weight, max_total_cells)
            if gains[order].sum() > best_gain:
                best_gain, best = float(gains[order].sum()), MarginalChoice(order, errors[order])
        return best

    first = select(finest)
    factor = noise_factor(first.positions)
    return first if factor == 1 else select(finest * factor)


def _choose_alternatives(
    gains: NDArray[np.float64],
    weights: NDArray[np.float64],
    cells: NDArray[np.int64],
    alternatives: NDArray[np.int64],
    max_weight: float,
    max_cells: int,
) -> NDArray[np.int64]:
    """Select at most one candidate of each set of alternatives, by gain per weight, up to a total weight.

    Of a set, only the candidates on the upper hull of gain over weight matter. Going from one to the next is a step
    with a gain and a weight of its own; steps are taken in the order of their gain per weight (the greedy solution of
    the multiple-choice knapsack problem, Sinha and Zoltners 1979).
    """
    order = np.lexsort((weights, alternatives))
    order = order[gains[order] > 0]
    candidates, before, slopes = kernels.hull_steps(order, alternatives, weights, gains)
    more_weight = weights[candidates] - np.where(before < 0, 0.0, weights[before])
    more_cells = cells[candidates] - np.where(before < 0, 0, cells[before])
    steps = np.lexsort((candidates, more_weight, alternatives[candidates], -slopes))
    fits = (np.cumsum(more_weight[steps]) <= max_weight * (1 + 1e-9)) & (np.cumsum(more_cells[steps]) <= max_cells)
    taken = candidates[steps[: len(steps) if fits.all() else int(np.argmin(fits))]]
    chosen = dict(zip(alternatives[taken].tolist(), taken.tolist(), strict=True))  # of each set, the last step counts
    return np.array(list(chosen.values()), np.int64)
