"""Adaptive selection: noisy scores against a model decide which marginals are worth their noise.

It is the second half of recipe ``dpsyn``, and selects what a plan leaves open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import exact_fraction, split_exactly
from dpsyn.encoding import Recoding, contingency_table
from dpsyn.errors import UserError, quote_argument
from dpsyn.inference import MeasurementRound, Model, PreviousReleases, Release, Scores, fit_model, norm_sub
from dpsyn.marginals import Clique
from dpsyn.options import check_options
from dpsyn.plan import check_weights as check_plan_weights
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.one_way import count_cells, count_one_way_passes, count_score_passes, measurable_pairs
from dpsyn.schema import Schema
from dpsyn.selection import (
    CELL_POWER,
    MarginalChoice,
    MergedMarginals,
    merge_marginals,
    select_marginals,
    shrink_scores,
)

Counts = NDArray[np.float64]

IsAllowed = Callable[[Clique], bool]
"""Whether attributes may be measured together."""

MAX_TRIPLE_ATTRIBUTES = 120
"""Triples are formed from the attributes with the strongest pairs only: 120 attributes have 280 840 triples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveSelection:
    """How marginals are selected by noisy scores; ``bench/ablation.py`` measures what each step is worth.

    Attributes:
        score_share: the part of the remaining ρ that each round of scores spends.
        second_round_ratio: if the predicted error of the selected pairs is below this fraction of their score, half of
            their budget goes to a second round, which scores all pairs again, given the first ones.
        triples_below_error: if the predicted error of the selected pairs is below this fraction of the rows, the
            second round scores triples as well.
        max_triple_cells: the largest number of cells of a triple.
        max_triples: how many triples are scored: those that contain the strongest pairs.
        max_merged_cells: selected marginals are merged into larger ones, where that means less noise, up to this number
            of cells.
        no_merge_below_error: if the predicted error is below this fraction of the rows, marginals are not merged:
            noise does not matter then, and rows follow smaller tables more closely.
    """

    score_share: float = 0.04
    second_round_ratio: float = 0.27
    triples_below_error: float = 0.01
    max_triple_cells: int = 20_000
    max_triples: int = 3_000
    max_merged_cells: int = 4_096
    no_merge_below_error: float = 0.0003

    def __post_init__(self) -> None:
        check_options(
            self,
            second_round_ratio=0,
            triples_below_error=0,
            max_triple_cells=1,
            max_triples=0,
            max_merged_cells=0,
            no_merge_below_error=0,
        )
        check_share(self.score_share, "score_share")
        if not self.score_share:
            raise UserError("score_share is 0; scores need a part of the budget, such as 0.04")


def select_and_measure(
    table: PrivateTable,
    measurements: Measurements,
    previous: PreviousReleases | None,
    rho: Fraction,
    options: AdaptiveSelection,
    progress: Progress,
    *,
    weights: Mapping[str, float],
    is_allowed: IsAllowed = lambda _: True,
) -> Measurements:
    """Score pairs against a model and measure those that are worth their noise; score again if that pays off.

    Args:
        table: the private table, recoded.
        measurements: what was measured so far.
        previous: earlier releases of the same table.
        rho: what may be spent.
        options: how to select.
        progress: called with what is going on.
        weights: how much errors in marginals with an attribute count; 1 for attributes that are not listed.
        is_allowed: whether attributes may be measured together.

    Privacy: spends ``rho``.
    """
    progress("scoring how pairs depend on each other", 0.0)
    weights = _recoded_weights(table.recoding, weights)
    is_allowed = _exclude_constants(table, is_allowed)
    pairs = [pair for pair in measurable_pairs(table) if is_allowed(pair)]
    predictions = _predict_tables(measurements, previous, pairs)
    score_rho, rho = split_rho(rho, options.score_share if pairs else 0.0)
    measurements, scores = _score(table, measurements, pairs, predictions, score_rho)
    candidates = _Candidates(table, pairs, scores, predictions, options, weights, is_allowed)
    choice = candidates.choose(rho)
    with_triples = candidates.deserves_triples(choice)
    if len(table.recoding.names) > 2 and (with_triples or candidates.deserves_second_round(choice)):
        half, rest = split_rho(rho, 0.5)
        selected = candidates.cliques_to_measure(candidates.choose(half))
        measurements = measure_cliques(table, measurements, selected, half, weights, progress)
        progress("scoring pairs and triples against the model" if with_triples else "scoring pairs again", 0.0)
        triples = _strongest_triples(table, pairs, scores, options) if with_triples else []
        cliques = [*pairs, *(triple for triple in triples if is_allowed(triple))]
        predictions = _predict_tables(measurements, previous, cliques)
        score_rho, rho = split_rho(rest, options.score_share)
        measurements, scores = _score(table, measurements, cliques, predictions, score_rho)
        candidates = _Candidates(table, cliques, scores, predictions, options, weights, is_allowed)
        choice = candidates.choose(rho)
    return measure_cliques(table, measurements, candidates.cliques_to_measure(choice), rho, weights, progress)


def count_selection_passes(schema: Schema, options: AdaptiveSelection) -> int:
    """Passes that one-way marginals and ``select_and_measure`` take at most, and that of a public row count."""
    scores = count_score_passes(schema) + count_score_passes(schema, options.max_triples * options.max_triple_cells)
    return count_one_way_passes(schema) + 1 + int(schema.row_count_is_public) + scores + 2


def check_weights(weights: Mapping[str, float], schema: Schema) -> None:
    """Refuse attribute weights that are no numbers, or of attributes that are not measured."""
    if any(isinstance(weight, bool) or not isinstance(weight, Real) for weight in weights.values()):
        raise UserError(
            f"weights={quote_argument(weights)} are no attribute weights; give numbers, such as {{'income': 4}}"
        )
    numbers = {name: float(weight) for name, weight in weights.items()}
    measured = [attribute.name for attribute in schema.measured_attributes]
    for name in numbers:
        if name not in measured:
            raise UserError(
                f"a weight is given for {quote_argument(name)}, which is not measured; measured are "
                f"{', '.join(measured)}"
            )
    check_plan_weights(numbers)


def check_share(share: float, name: str) -> None:
    """Refuse a part of the budget that is not between 0 and 1."""
    if not 0 <= share < 1:
        raise UserError(f"{name} is {share}; give a part of the budget, from 0 to below 1")


def split_rho(rho: Fraction, share: float) -> tuple[Fraction, Fraction]:
    """A part of ρ and the rest; together they are ρ, exactly."""
    part, rest = split_exactly(rho, [exact_fraction(share), 1 - exact_fraction(share)])
    return part, rest


def _recoded_weights(recoding: Recoding, weights: Mapping[str, float]) -> dict[str, float]:
    """Weights of the recoded attributes: attributes that are measured as one get the largest of their weights."""
    parts = {name: (name, *recoding.joint_parts.get(name, ())) for name in recoding.names}
    given = {name: [weights[part] for part in members if part in weights] for name, members in parts.items()}
    return {name: max(values) for name, values in given.items() if values}


def _exclude_constants(table: PrivateTable, is_allowed: IsAllowed) -> IsAllowed:
    """Exclude attributes of a single value: nothing depends on them, and every marginal could be merged with them."""
    constant = {column.name for column in table.recoding.columns if column.size == 1}
    return lambda clique: constant.isdisjoint(clique) and is_allowed(clique)


# ── what the current model predicts ──────────────────────────────────────────────────────────────────────────


def _predict_tables(
    measurements: Measurements, previous: PreviousReleases | None, cliques: Sequence[Clique]
) -> list[Counts]:
    """Predict marginals from everything released so far; attributes are independent if no pair was measured."""
    releases = (*(previous.releases if previous else ()), Release(measurements.rounds))
    model = fit_model(measurements.schema, measurements.recoding, releases, total=measurements.row_count)
    if model.distribution is None:
        return _independent_tables(model, cliques)
    records = model.distribution.records
    names, sizes, scale = model.recoding.names, model.recoding.sizes, model.total / records.shape[1]
    return [_count_records(records, names, sizes, clique) * scale for clique in cliques]


def _independent_tables(model: Model, cliques: Sequence[Clique]) -> list[Counts]:
    one_way = {table.clique[0]: norm_sub(table.values, model.total) for table in model.tables}
    total = max(model.total, 1.0)
    return [reduce(np.multiply.outer, [one_way[name] / total for name in clique]) * total for clique in cliques]


def _count_records(
    columns: NDArray[np.unsignedinteger], names: Sequence[str], sizes: Sequence[int], clique: Clique
) -> Counts:
    axes = [names.index(name) for name in clique]
    return contingency_table([columns[axis] for axis in axes], [sizes[axis] for axis in axes]).astype(np.float64)


# ── what to measure ──────────────────────────────────────────────────────────────────────────────────────────


def _score(
    table: PrivateTable,
    measurements: Measurements,
    cliques: Sequence[Clique],
    predictions: Sequence[Counts],
    rho: Fraction,
) -> tuple[Measurements, Counts]:
    """Measure the distances of marginals from predictions; return them shrunk by their noise, and record them."""
    if not cliques:
        return measurements, np.empty(0)
    noisy = table.score_predictions(cliques, predictions, rho)
    lengths = np.array([len(clique) for clique in cliques])
    shrunk = noisy.values.copy()
    for length in set(lengths.tolist()):
        shrunk[lengths == length] = shrink_scores(noisy.values[lengths == length], noisy.std)
    scores = Scores("distance from the model", tuple(cliques), noisy.values, noisy.std)
    return replace(measurements, scores=(*measurements.scores, scores)), shrunk


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Marginals that may be measured, with their scores and the model's predictions of them."""

    table: PrivateTable
    cliques: Sequence[Clique]
    scores: Counts
    predictions: Sequence[Counts]
    options: AdaptiveSelection
    weights: Mapping[str, float]
    is_allowed: IsAllowed

    def choose(self, rho: Fraction) -> MarginalChoice:
        """Select the candidates that are worth their noise."""
        return select_marginals(
            self.scores,
            self.predictions,
            float(rho),
            sensitivity=math.sqrt(self.table.privacy_unit.l2_sensitivity_squared),
            max_total_cells=self.table.noisy_values_left // 2,
            importance=np.array([_clique_weight(clique, self.weights) for clique in self.cliques]),
            noise_factor=lambda positions: self._merge(positions).noise_factor,
        )

    def cliques_to_measure(self, choice: MarginalChoice) -> list[Clique]:
        """The marginals in which the chosen candidates are measured with the least noise."""
        if len(choice.positions) and self._predicted_error(choice) < self.options.no_merge_below_error:
            return [self.cliques[position] for position in choice.positions]
        return self._merge(choice.positions).cliques

    def deserves_second_round(self, choice: MarginalChoice) -> bool:
        """Whether the chosen candidates hold much more signal than noise, so that others can be judged by them."""
        some_left = 0 < len(choice.positions) < len(self.scores)
        return some_left and choice.errors.sum() < self.options.second_round_ratio * self.scores[choice.positions].sum()

    def deserves_triples(self, choice: MarginalChoice) -> bool:
        """Whether candidates were chosen and their predicted error is a small fraction of the rows."""
        return len(choice.positions) > 0 and self._predicted_error(choice) < self.options.triples_below_error

    def _predicted_error(self, choice: MarginalChoice) -> float:
        """The predicted distance of the chosen marginals from the truth, as a fraction of the rows."""
        return float(np.mean(choice.errors)) / (2 * max(float(self.predictions[0].sum()), 1.0))

    def _merge(self, positions: NDArray[np.int64]) -> MergedMarginals:
        """Merge the candidates at these positions where that means less noise, within the limits of a release."""
        chosen = [self.cliques[position] for position in positions]
        merged = merge_marginals(
            chosen,
            dict(zip(self.table.recoding.names, self.table.recoding.sizes, strict=True)),
            importance=self.weights,
            max_cells=min(self.options.max_merged_cells, self.table.limits.max_marginal_cells),
            is_allowed=self.is_allowed,
        )
        fits = sum(count_cells(self.table, merged.cliques)) <= self.table.noisy_values_left // 2
        return merged if fits else MergedMarginals(chosen, 1.0)


def _clique_weight(clique: Clique, weights: Mapping[str, float]) -> float:
    return math.prod(weights.get(name, 1.0) for name in clique)


def _strongest_triples(
    table: PrivateTable, pairs: Sequence[Clique], scores: Counts, options: AdaptiveSelection
) -> list[Clique]:
    """Triples of moderate size, ordered by the scores of their two strongest pairs."""
    strength = dict(zip(pairs, scores.tolist(), strict=True))

    def weakness(triple: Clique) -> float:
        _, *strongest = sorted(strength.get(pair, 0.0) for pair in combinations(triple, 2))
        return -math.fsum(strongest)

    best = {name: max((s for p, s in strength.items() if name in p), default=0.0) for name in table.recoding.names}
    strong_names = set(sorted(best, key=lambda name: -best[name])[:MAX_TRIPLE_ATTRIBUTES])
    triples: list[Clique] = list(combinations([name for name in table.recoding.names if name in strong_names], 3))
    max_cells = min(options.max_triple_cells, table.limits.max_marginal_cells)
    small = [triple for triple, cells in zip(triples, count_cells(table, triples), strict=True) if cells <= max_cells]
    return sorted(small, key=weakness)[: options.max_triples]


def measure_cliques(
    table: PrivateTable,
    measurements: Measurements,
    cliques: Sequence[Clique],
    rho: Fraction,
    weights: Mapping[str, float],
    progress: Progress,
) -> Measurements:
    """Add these marginals to the measurements; without any, the one-way marginals are measured once more.

    Privacy: spends ``rho``, divided by (weight · cells)^(2/3), which minimizes the weighted sum of errors.
    """
    cliques = list(cliques) or [(name,) for name in table.recoding.names]
    progress(f"measuring {len(cliques)} marginals", 0.0)
    sizes = zip(cliques, count_cells(table, cliques), strict=True)
    rhos = split_exactly(rho, [(_clique_weight(clique, weights) * cells) ** CELL_POWER for clique, cells in sizes])
    new = MeasurementRound(table.recoding, tuple(table.measure(cliques, rhos)))
    return replace(measurements, rounds=(*measurements.rounds, new))
