"""Candidates for measurement: cliques at levels, with what is gained by measuring each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsyn.marginals import Clique
from dpsyn.private import PrivateTable
from dpsyn.recipes.one_way_errors import OneWayErrors, background_errors
from dpsyn.recipes.resolution import Counts, Groups, PredictedTable, Resolution, TableAtLevels, count_all_cells
from dpsyn.selection import (
    CELL_POWER,
    MarginalChoice,
    MergedMarginals,
    PredictedErrors,
    add_background,
    merge_marginals,
    predict_errors,
    select_marginals,
)

IsAllowed = Callable[[Clique], bool]
"""Whether attributes may be measured together."""

ONE_WAY_SHARES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
"""The parts of ρ for one-way tables that are compared."""

MAX_COMBINED_RATIO = 1.5
"""A pair is worth measuring beside a prior if its noise is at most so many times the distance of the prior."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeLimits:
    """When selected marginals are merged into larger ones.

    Attributes:
        max_cells: the maximum number of cells of a merged marginal.
        min_error: marginals are not merged if their predicted error is below this fraction of the rows.
    """

    max_cells: int
    min_error: float


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """How ρ is divided between one-way tables and larger ones.

    Attributes:
        one_way: the part of one-way tables.
        choice: the larger tables.
        error: the predicted error of all cliques together, by their weight.
    """

    one_way: float
    choice: MarginalChoice
    error: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Candidates:
    """Marginals that may be measured, each at one or more levels, with their scores and the model's predictions.

    Attributes:
        table: the private table.
        resolution: the levels that there are.
        one_way: the errors of one-way tables.
        weights: how much errors count, by attribute.
        target: the attribute that is to be predicted.
        merging: when selected marginals are merged.
        is_allowed: whether attributes may be measured together.
        scored_cliques: everything that was scored.
        unscored_pairs: all other pairs; what one-way tables are off by counts for them as well.
        scores: the distances of these from the model.
        cliques: the attributes of each candidate.
        groups: the levels of each candidate.
        clique_numbers: the position of each candidate's clique in ``scored_cliques``; of those with the same number one
            is measured at most.
        lost: the part of each candidate's distance from the model that stays because of the level.
        predictions: the model's tables of the candidates.
        predicted: the errors of their noise.
    """

    table: PrivateTable
    resolution: Resolution
    one_way: OneWayErrors
    weights: Mapping[str, float]
    target: str | None
    merging: MergeLimits
    is_allowed: IsAllowed
    scored_cliques: Sequence[Clique]
    unscored_pairs: Sequence[Clique]
    scores: Counts
    cliques: Sequence[Clique]
    groups: Sequence[Groups]
    clique_numbers: NDArray[np.int64]
    lost: Counts
    predictions: Sequence[Counts]
    predicted: PredictedErrors | None

    @property
    def rows(self) -> float:
        """About how many rows there are."""
        return max(float(self.one_way.tables[0].sum()), 1.0)

    @classmethod
    def of(
        cls,
        table: PrivateTable,
        predictions: Sequence[PredictedTable],
        scores: Counts,
        rho: Fraction,
        *,
        by_hierarchy: Mapping[Clique, float],
        resolution: Resolution,
        one_way: OneWayErrors,
        weights: Mapping[str, float],
        target: str | None,
        merging: MergeLimits,
        is_allowed: IsAllowed,
        unscored_pairs: Sequence[Clique] = (),
        follows_prior: bool = False,
    ) -> Candidates:
        """The candidates of some cliques, given the score of each clique and the model's table of it.

        ``by_hierarchy`` has the part of the score that a pair shows at the coarser level of a list. If the model
        ``follows_prior``, measured tables are combined with its predictions: precisions add up.
        """
        entries = [
            (number, predicted, groups)
            for number, predicted in enumerate(predictions)
            if scores[number] > 0
            for groups in resolution.options(predicted.clique)
        ]
        distances = np.array([scores[number] for number, _, _ in entries])
        kept = np.array([_kept_share(resolution, p.clique, groups, by_hierarchy) for _, p, groups in entries])
        tables = [predicted.at(groups) for _, predicted, groups in entries]
        cliques = [predicted.clique for _, predicted, _ in entries]
        importance = np.array([clique_weight(clique, weights) for clique in cliques])
        sensitivity = math.sqrt(table.privacy_unit.l2_sensitivity_squared)
        predicted = (
            predict_errors(
                tables,
                float(rho),
                sensitivity=sensitivity,
                importance=importance,
                parameters=[resolution.count_parameters(c, t.shape) for c, t in zip(cliques, tables, strict=True)],
            )
            if tables
            else None
        )
        if predicted and follows_prior:
            pairs = np.array([len(clique) == 2 for clique in cliques])[:, None]
            ratios = predicted.errors / distances[:, None]
            combined = predicted.errors / np.hypot(ratios, 1.0)
            worth = pairs & (ratios < MAX_COMBINED_RATIO)
            predicted = replace(predicted, errors=np.where(worth, combined, predicted.errors))
        return cls(
            table=table,
            resolution=resolution,
            one_way=one_way,
            weights=weights,
            target=target,
            merging=merging,
            is_allowed=is_allowed,
            scored_cliques=[predicted.clique for predicted in predictions],
            unscored_pairs=unscored_pairs,
            scores=scores,
            cliques=cliques,
            groups=[resolution.coarser(groups) for _, _, groups in entries],
            clique_numbers=np.array([number for number, _, _ in entries], np.int64),
            lost=distances * (1 - kept),
            predictions=tables,
            predicted=predicted,
        )

    @property
    def _several_levels(self) -> bool:
        return len(self.cliques) > len(set(self.clique_numbers.tolist())) or any(self.groups)

    def divide(self, rho: Fraction, shares: Sequence[float] = ONE_WAY_SHARES) -> Division:
        """Divide ρ between one-way tables and larger ones, so that the predicted error of all cliques is smallest.

        An unmeasured clique is off by its distance from the model, a measured one by its noise and what its level
        loses; both are off by their one-way tables, too. What is measured of pairs also tells about one-way tables.
        """
        divisions = [self._predict_division(float(rho), share) for share in shares]
        return min(divisions, key=lambda division: division.error)

    def _predict_division(self, rho: float, share: float) -> Division:
        sensitivity = math.sqrt(self.table.privacy_unit.l2_sensitivity_squared)
        spent = self.one_way.spend(share * rho, sensitivity)
        choice = self.choose((1 - share) * rho, self.one_way.errors(spent))
        shapes = [self.predictions[position].shape for position in choice.positions]
        weights = [clique_weight(self.cliques[p], self.weights) for p in choice.positions]
        parts = np.array([(w * math.prod(shape)) ** CELL_POWER for w, shape in zip(weights, shapes, strict=True)])
        variances = sensitivity**2 * parts.sum() / (2 * max((1 - share) * rho, 1e-300) * parts)
        learned = self.one_way.learned_from(
            zip([self.cliques[position] for position in choice.positions], shapes, variances, strict=True)
        )
        errors = self.one_way.errors(spent + learned)
        left = self.scores.copy()
        left[self.clique_numbers[choice.positions]] = choice.errors + self.lost[choice.positions]
        counts = np.array([len(clique) == 2 for clique in self.scored_cliques], np.bool_) | (self.scores > 0)
        importance = counts * np.array([clique_weight(clique, self.weights) for clique in self.scored_cliques])
        background = background_errors(self.scored_cliques, errors, self.target)
        error = float((importance * add_background(left, background)).sum())
        unscored = background_errors(self.unscored_pairs, errors, self.target)
        importance = np.array([clique_weight(clique, self.weights) for clique in self.unscored_pairs])
        error += float((importance * add_background(np.zeros(len(unscored)), unscored)).sum())
        return Division(share, choice, error)

    def choose(self, rho: float, one_way: Mapping[str, float]) -> MarginalChoice:
        """Select the candidates that are worth their noise, given the errors of one-way tables."""
        if not self.cliques or rho <= 0:
            return MarginalChoice(np.empty(0, np.int64), np.empty(0))
        return select_marginals(
            self.scores[self.clique_numbers],
            self.predictions,
            rho,
            sensitivity=math.sqrt(self.table.privacy_unit.l2_sensitivity_squared),
            max_total_cells=self.table.noisy_values_left // 2,
            importance=np.array([clique_weight(clique, self.weights) for clique in self.cliques]),
            lost=self.lost,
            background=background_errors(self.cliques, one_way, self.target),
            predicted=self.predicted,
            noise_factor=lambda positions: 1.0 if self._several_levels else self._merge(positions).noise_factor,
            alternatives=self.clique_numbers if self._several_levels else None,
        )

    def tables_to_measure(self, choice: MarginalChoice) -> list[TableAtLevels]:
        """The marginals in which the chosen candidates are measured with the least noise.

        Those at coarser levels are measured as they are.
        """
        coarse: list[TableAtLevels] = [(self.cliques[p], self.groups[p]) for p in choice.positions if self.groups[p]]
        fine = np.array([position for position in choice.positions if not self.groups[position]], np.int64)
        if len(choice.positions) and self.relative_error(choice) < self.merging.min_error:
            return [*((self.cliques[position], {}) for position in fine), *coarse]
        return [*((clique, {}) for clique in self._merge(fine).cliques), *coarse]

    def signal_ratio(self, choice: MarginalChoice) -> float:
        """The predicted error of the chosen candidates as a part of what they remove."""
        removed = self.scores[self.clique_numbers[choice.positions]] - self.lost[choice.positions]
        return float(choice.errors.sum() / max(removed.sum(), 1e-300))

    def relative_error(self, choice: MarginalChoice) -> float:
        """The predicted distance of the chosen marginals from the truth, as a fraction of the rows."""
        return float(np.mean(choice.errors)) / (2 * self.rows)

    def _merge(self, positions: NDArray[np.int64]) -> MergedMarginals:
        """Merge the candidates at these positions where that means less noise, within the limits of a release."""
        chosen = [self.cliques[position] for position in positions]
        merged = merge_marginals(
            chosen,
            self.resolution.sizes,
            importance=self.weights,
            max_cells=min(self.merging.max_cells, self.table.limits.max_marginal_cells),
            is_allowed=self.is_allowed,
        )
        cells = count_all_cells(self.resolution, [(clique, {}) for clique in merged.cliques])
        return merged if cells <= self.table.noisy_values_left // 2 else MergedMarginals(chosen, 1.0)


def clique_weight(clique: Clique, weights: Mapping[str, float]) -> float:
    """How much errors in a marginal count: the product of the weights of its attributes."""
    return math.prod(weights.get(name, 1.0) for name in clique)


def _kept_share(resolution: Resolution, clique: Clique, groups: Groups, by_hierarchy: Mapping[Clique, float]) -> float:
    """The part of a clique's distance that it shows at a level.

    Of larger tables than pairs, at most all is shown that was seen at the level at which they were scored.
    """
    if len(clique) < 3:
        return resolution.kept_share(groups, by_hierarchy.get(clique, 1.0))
    return min(1.0, resolution.kept_share(groups) / resolution.kept_share(resolution.scoring_groups(clique)))
