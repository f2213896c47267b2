"""Which marginals are worth measuring beyond those there are: noisy scores against a model, then what pays.

It is the second half of the default recipe, and what a plan leaves open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import exact_fraction, split_exactly
from dpsyn.encoding import Recoding, contingency_table
from dpsyn.inference import MeasurementRound, Model, Release, Scores, fit_model, norm_sub
from dpsyn.marginals import Clique
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.one_way import count_cells, measurable_pairs
from dpsyn.selection import (
    CELL_POWER,
    MarginalChoice,
    MergedMarginals,
    merge_marginals,
    select_marginals,
    shrink_scores,
)
from dpsyn.synopsis import Synopsis

Counts = NDArray[np.float64]

IsAllowed = Callable[[Clique], bool]
"""Whether attributes may be measured together."""

MAX_TRIPLE_ATTRIBUTES = 120
"""Attributes whose triples are looked at; they have 280 840."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveSelection:
    """The constants of the recipe.

    Attributes:
        initial_share: the part of ρ for a first look at every attribute, which also tells about how many rows there are.
        max_one_way_share: the largest part of ρ that 1-way marginals get if anything else is measured; if they should get
            more, they get all of it.
        score_share: the part of ρ for each round of scores.
        rare_sigmas: values with a noisy count below so many standard deviations are merged.
        second_round_ratio: if chosen pairs are predicted to be off by less than this part of what they tell, half of their budget
            goes to a second round, which looks at all pairs again, given what the first ones told.
        triples_below_error: if they are predicted to be off by less than this share of the rows, it looks at triples, too.
        max_triple_cells: cells of a triple.
        max_triples: triples that are scored: those of the strongest pairs.
        max_merged_cells: cells up to which chosen tables grow together where that means less noise.
        no_merge_below_error: if tables are predicted to be off by less than this share of the rows, none grows: noise does not matter,
            and rows follow smaller tables more closely.
        weights: how much errors in tables with an attribute count, 1 for those that are not listed; that of a table is
            the product over its attributes.
    """

    initial_share: float = 0.05
    max_one_way_share: float = 0.7
    score_share: float = 0.04
    rare_sigmas: float = 3.0
    second_round_ratio: float = 0.27
    triples_below_error: float = 0.01
    max_triple_cells: int = 20_000
    max_triples: int = 3_000
    max_merged_cells: int = 4_096
    no_merge_below_error: float = 0.0003
    weights: Mapping[str, float] = field(default_factory=dict)


def select_and_measure(
    table: PrivateTable,
    measurements: Measurements,
    previous: Synopsis | None,
    rho: Fraction,
    options: AdaptiveSelection,
    progress: Progress,
    allowed: IsAllowed = lambda _: True,
) -> Measurements:
    """Score pairs against a model, measure what is worth its noise; then pairs and triples again if it pays.

    Privacy: spends ``rho`` of ρ.
    """
    progress("scoring how pairs depend on each other", 0.0)
    options = replace(options, weights=_weights(table.recoding, options.weights))
    allowed = _exclude_constants(table, allowed)
    pairs, left = [pair for pair in measurable_pairs(table) if allowed(pair)], rho
    guesses = _predict_tables(measurements, previous, pairs)
    for_scores, left = split_share(left, options.score_share if pairs else 0.0)
    measurements, scores = _score(table, measurements, pairs, guesses, for_scores)
    candidates = _Candidates(table, pairs, scores, guesses, options, allowed)
    choice = candidates.choose(left)
    accurate = candidates.deserves_triples(choice)
    if len(table.recoding.names) > 2 and (accurate or candidates.deserves_second_round(choice)):
        half, rest = split_share(left, 0.5)
        measurements = measure_cliques(
            table, measurements, candidates.tables(candidates.choose(half)), half, options, progress
        )
        progress("scoring pairs and triples against the model" if accurate else "scoring pairs again", 0.0)
        triples = _triples(table, pairs, scores, options) if accurate else []
        cliques = [*pairs, *(triple for triple in triples if allowed(triple))]
        guesses = _predict_tables(measurements, previous, cliques)
        for_scores, left = split_share(rest, options.score_share)
        measurements, scores = _score(table, measurements, cliques, guesses, for_scores)
        candidates = _Candidates(table, cliques, scores, guesses, options, allowed)
        choice = candidates.choose(left)
    return measure_cliques(table, measurements, candidates.tables(choice), left, options, progress)


def _weights(recoding: Recoding, weights: Mapping[str, float]) -> dict[str, float]:
    """A workload by what is measured: several attributes that are measured as one have the largest of their weights."""
    parts = {name: (name, *recoding.joint_parts.get(name, ())) for name in recoding.names}
    told = {name: [weights[part] for part in own if part in weights] for name, own in parts.items()}
    return {name: max(weights) for name, weights in told.items() if weights}


def _exclude_constants(table: PrivateTable, allowed: IsAllowed) -> IsAllowed:
    """The same, without attributes of a single value: nothing depends on them, and tables could grow by them all."""
    constant = {column.name for column in table.recoding.columns if column.size == 1}
    return lambda clique: constant.isdisjoint(clique) and allowed(clique)


def split_share(rho: Fraction, part: float) -> tuple[Fraction, Fraction]:
    """A part of a share, and the rest; together they are the share, exactly."""
    one, other = split_exactly(rho, [exact_fraction(part), 1 - exact_fraction(part)])
    return one, other


# ── what the present model says ──────────────────────────────────────────────────────────────────────────────


def _predict_tables(measurements: Measurements, previous: Synopsis | None, cliques: Sequence[Clique]) -> list[Counts]:
    """Tables as they are told by what was released so far; attributes are independent if no pair was measured."""
    releases = (*(previous.releases if previous else ()), Release("", measurements.rounds))
    model = fit_model(measurements.schema, measurements.recoding, releases, total=measurements.row_count)
    if model.distribution is None:
        return _independent_tables(model, cliques)
    records = model.distribution.records
    names, sizes, scale = model.recoding.names, model.recoding.sizes, model.total / records.shape[1]
    return [_count_records(records, names, sizes, clique) * scale for clique in cliques]


def _independent_tables(model: Model, cliques: Sequence[Clique]) -> list[Counts]:
    singles = {table.clique[0]: norm_sub(table.values, model.total) for table in model.tables}
    total = max(model.total, 1.0)
    return [reduce(np.multiply.outer, [singles[name] / total for name in clique]) * total for clique in cliques]


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
    """The findings with noisy distances from guesses added, and those distances, shrunk by their noise."""
    if not cliques:
        return measurements, np.empty(0)
    values = table.score_predictions(cliques, predictions, rho)
    deviation = math.sqrt(len(cliques) * table.privacy_unit.score_sensitivity(1) ** 2 / (2 * rho))
    lengths = np.array([len(clique) for clique in cliques])
    sharpened = values.copy()
    for length in set(lengths.tolist()):
        sharpened[lengths == length] = shrink_scores(values[lengths == length], deviation)
    scores = Scores("distance from the model", tuple(cliques), values, deviation)
    return replace(measurements, scores=(*measurements.scores, scores)), sharpened


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Marginals that may be measured, how far the model is from them, and what it says they are."""

    table: PrivateTable
    cliques: Sequence[Clique]
    scores: Counts
    predictions: Sequence[Counts]
    options: AdaptiveSelection
    allowed: IsAllowed

    def choose(self, rho: Fraction) -> MarginalChoice:
        """Which of them are worth their noise."""
        return select_marginals(
            self.scores,
            self.predictions,
            float(rho),
            sensitivity=math.sqrt(self.table.privacy_unit.l2_sensitivity_squared),
            max_total_cells=self.table.noisy_values_left // 2,
            importance=np.array([_weight(clique, self.options) for clique in self.cliques]),
            noise_factor=lambda places: self._merge(places).noise_factor,
        )

    def tables(self, choice: MarginalChoice) -> list[Clique]:
        """What to measure so that the chosen ones are told best."""
        if len(choice.positions) and self._predicted_error(choice) < self.options.no_merge_below_error:
            return [self.cliques[place] for place in choice.positions]
        return self._merge(choice.positions).cliques

    def deserves_second_round(self, choice: MarginalChoice) -> bool:
        """Whether chosen ones tell much more than their noise, so that the others can be judged by them."""
        left_out = 0 < len(choice.positions) < len(self.scores)
        return left_out and choice.errors.sum() < self.options.second_round_ratio * self.scores[choice.positions].sum()

    def deserves_triples(self, choice: MarginalChoice) -> bool:
        """Whether there are chosen ones, and they are predicted to be off by a small share of the rows only."""
        return len(choice.positions) > 0 and self._predicted_error(choice) < self.options.triples_below_error

    def _predicted_error(self, choice: MarginalChoice) -> float:
        """How far chosen ones are predicted to be off, as a share of the rows."""
        return float(np.mean(choice.errors)) / (2 * max(float(self.predictions[0].sum()), 1.0))

    def _merge(self, places: NDArray[np.int64]) -> MergedMarginals:
        """The tables that those at these places are best measured in, if they have no more cells than may be drawn."""
        chosen = [self.cliques[place] for place in places]
        grown = merge_marginals(
            chosen,
            dict(zip(self.table.recoding.names, self.table.recoding.sizes, strict=True)),
            importance=self.options.weights,
            max_cells=min(self.options.max_merged_cells, self.table.limits.max_marginal_cells),
            is_allowed=self.allowed,
        )
        few = sum(count_cells(self.table, grown.cliques)) <= self.table.noisy_values_left // 2
        return grown if few else MergedMarginals(chosen, 1.0)


def _weight(clique: Clique, options: AdaptiveSelection) -> float:
    return math.prod(options.weights.get(name, 1.0) for name in clique)


def _triples(table: PrivateTable, pairs: Sequence[Clique], scores: Counts, options: AdaptiveSelection) -> list[Clique]:
    """Triples of moderate size whose two strongest pairs are the strongest."""
    strength = dict(zip(pairs, scores.tolist(), strict=True))

    def weakness(triple: Clique) -> float:
        _, *strongest = sorted(strength.get(pair, 0.0) for pair in combinations(triple, 2))
        return -math.fsum(strongest)

    best = {name: max((s for p, s in strength.items() if name in p), default=0.0) for name in table.recoding.names}
    names = sorted(best, key=lambda name: -best[name])[
        :MAX_TRIPLE_ATTRIBUTES
    ]  # the triples of all would be too many to list
    triples: list[Clique] = list(combinations([name for name in table.recoding.names if name in set(names)], 3))
    most = min(options.max_triple_cells, table.limits.max_marginal_cells)
    small = [triple for triple, cells in zip(triples, count_cells(table, triples), strict=True) if cells <= most]
    return sorted(small, key=weakness)[: options.max_triples]


def measure_cliques(
    table: PrivateTable,
    measurements: Measurements,
    cliques: Sequence[Clique],
    rho: Fraction,
    options: AdaptiveSelection,
    progress: Progress,
) -> Measurements:
    """The findings with these marginals added; if none is worth it, the 1-way marginals are measured once more."""
    cliques = list(cliques) or [(name,) for name in table.recoding.names]
    progress(f"measuring {len(cliques)} marginals", 0.0)
    sizes = zip(cliques, count_cells(table, cliques), strict=True)
    shares = split_exactly(rho, [(_weight(clique, options) * cells) ** CELL_POWER for clique, cells in sizes])
    stage = MeasurementRound(table.recoding, tuple(table.measure(cliques, shares)))
    return replace(measurements, rounds=(*measurements.rounds, stage))
