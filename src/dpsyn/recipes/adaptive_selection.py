"""Adaptive selection: noisy scores against a model decide which marginals are worth their noise.

It is the second half of recipe ``dpsyn``, and selects what a plan leaves open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations, product
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import exact_fraction, split_exactly
from dpsyn.encoding import Grouping, Levels, RecodedColumn, Recoding, contingency_table
from dpsyn.errors import UserError, quote_argument
from dpsyn.inference import (
    MeasurementRound,
    Model,
    PreviousReleases,
    Release,
    Scores,
    estimate_one_way,
    fit_model,
    norm_sub,
)
from dpsyn.marginals import Clique
from dpsyn.options import check_options
from dpsyn.plan import check_weights as check_plan_weights
from dpsyn.private import NoisyScores, PrivateTable
from dpsyn.progress import Progress
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.one_way import count_adaptive_passes, count_cells, count_score_passes, measurable_pairs
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
    levels: Mapping[str, Levels] | None = None,
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
        levels: the levels of the attributes that may be measured more coarsely than the recoding has them.

    Privacy: spends ``rho``.
    """
    progress("scoring how pairs depend on each other", 0.0)
    weights = _recoded_weights(table.recoding, weights)
    is_allowed = _exclude_constants(table, is_allowed)
    resolution = Resolution(levels or {})
    pairs = [pair for pair in measurable_pairs(table) if is_allowed(pair)]
    predictions = _predict_tables(measurements, previous, pairs)
    score_rho, rho = split_rho(rho, options.score_share if pairs else 0.0)
    measurements, scores = _score(table, measurements, pairs, predictions, score_rho, resolution)
    candidates = _Candidates.of(table, pairs, scores, predictions, options, weights, is_allowed, resolution)
    choice = candidates.choose(rho)
    with_triples = candidates.deserves_triples(choice)
    if len(table.recoding.names) > 2 and (with_triples or candidates.deserves_second_round(choice)):
        half, rest = split_rho(rho, 0.5)
        selected = candidates.tables_to_measure(candidates.choose(half))
        measurements = measure_tables(table, measurements, selected, half, weights, progress)
        progress("scoring pairs and triples against the model" if with_triples else "scoring pairs again", 0.0)
        triples = _strongest_triples(table, pairs, scores, options) if with_triples else []
        cliques = [*pairs, *(triple for triple in triples if is_allowed(triple))]
        predictions = _predict_tables(measurements, previous, cliques)
        score_rho, rho = split_rho(rest, options.score_share)
        measurements, scores = _score(table, measurements, cliques, predictions, score_rho, resolution)
        candidates = _Candidates.of(table, cliques, scores, predictions, options, weights, is_allowed, resolution)
        choice = candidates.choose(rho)
    return measure_tables(table, measurements, candidates.tables_to_measure(choice), rho, weights, progress)


def count_selection_passes(schema: Schema, options: AdaptiveSelection) -> int:
    """Passes that one-way marginals and ``select_and_measure`` take at most, and that of a public row count."""
    scores = count_score_passes(schema) + count_score_passes(schema, options.max_triples * options.max_triple_cells)
    return count_adaptive_passes(schema) + 1 + int(schema.row_count_is_public) + scores + 2


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


# ── at which level ───────────────────────────────────────────────────────────────────────────────────────────


Groups = Mapping[str, Grouping]
"""For the attributes of a table that it counts at a coarser level, the groups of their codes."""

TableAtLevels = tuple[Clique, Groups]
"""A marginal to measure: its attributes, and the levels of those that are measured more coarsely."""

SCORED_GROUPS = 8
"""Pairs are scored at the finest level of at most so many groups, triples at that of half as many, which gives all of
them the same number of cells. Eight groups show the whole distance of two numbers from independence."""

LEVEL_POWER = 0.85
"""A level of k groups loses k^(−0.85) of what an attribute tells about others. Fitted to six tables
(``bench/levels.py``): the rule is within .05 of the mean loss of k × k groups for k = 2 … 12, and within .19 of that of
each table."""


@dataclass(frozen=True, slots=True, eq=False)
class Resolution:
    """The levels at which tables can be measured.

    Attributes:
        levels: the levels of the attributes that have several.
    """

    levels: Mapping[str, Levels]

    def scored(self, clique: Clique) -> Groups:
        """The groups of a clique's attributes by which it is scored."""
        size = max(2, round(SCORED_GROUPS ** (2 / max(2, len(clique)))))
        return {name: self.levels[name].at_most(size) for name in clique if name in self.levels}

    def options(self, clique: Clique) -> list[Groups]:
        """All levels at which a clique may be measured; those of its attributes have similar numbers of groups."""
        names = [name for name in clique if name in self.levels]
        choices = [[(name, level) for level in self.levels[name].groups] for name in names]
        return [
            dict(choice)
            for choice in product(*choices)
            if max((level.size for _, level in choice), default=1)
            <= MAX_LEVEL_RATIO * min((level.size for _, level in choice), default=1)
        ]

    def kept_share(self, groups: Groups) -> float:
        """The part of a table's distance from the model that it shows at these levels."""
        return math.prod([1 - math.pow(level.size, -LEVEL_POWER) for level in groups.values()])

    def coarser(self, groups: Groups) -> Groups:
        """Those of the groups that are coarser than the codes of the model."""
        return {name: level for name, level in groups.items() if level.size < len(level.group_of)}


MAX_LEVEL_RATIO = 3
"""The number of groups of one attribute is at most so many times that of another one in the same table."""


def coarsen_table(counts: Counts, clique: Clique, groups: Groups) -> Counts:
    """A table with the codes of some attributes merged into groups."""
    for name, level in groups.items():
        axis = clique.index(name)
        moved = np.moveaxis(counts, axis, 0)
        order = np.argsort(level.group_of, kind="stable")
        starts = np.searchsorted(level.group_of[order], np.arange(level.size))
        counts = np.moveaxis(np.add.reduceat(moved[order], starts, axis=0), 0, axis)
    return counts


def coarsen_recoding(recoding: Recoding, groups: Groups) -> Recoding:
    """A recoding with the codes of some attributes merged into groups."""
    for name, level in groups.items():
        recoding = recoding.merge(name, level)
    return recoding


# ── what to measure ──────────────────────────────────────────────────────────────────────────────────────────


def _score(
    table: PrivateTable,
    measurements: Measurements,
    cliques: Sequence[Clique],
    predictions: Sequence[Counts],
    rho: Fraction,
    resolution: Resolution,
) -> tuple[Measurements, Counts]:
    """Measure the distances of marginals from predictions; return them shrunk by their noise, and record them."""
    if not cliques:
        return measurements, np.empty(0)
    if resolution.levels:
        noisy = _score_at_levels(table, cliques, predictions, rho, resolution)
        by_chance = _distances_by_chance(measurements, cliques, predictions, resolution)
    else:
        by_chance = np.zeros(len(cliques))
        noisy = table.score_predictions(cliques, predictions, rho)
    lengths = np.array([len(clique) for clique in cliques])
    values = noisy.values
    shrunk = np.where(by_chance > 0, np.sqrt(np.maximum(values**2 - by_chance**2, 0.0)), values)
    for length in set(lengths.tolist()):
        shrunk[lengths == length] = shrink_scores(shrunk[lengths == length], noisy.std)
    scores = Scores("distance from the model", tuple(cliques), values, noisy.std)
    return replace(measurements, scores=(*measurements.scores, scores)), shrunk


def _score_at_levels(
    table: PrivateTable,
    cliques: Sequence[Clique],
    predictions: Sequence[Counts],
    rho: Fraction,
    resolution: Resolution,
) -> NoisyScores:
    """The noisy distances of marginals at their scored levels, all in one question."""
    columns: dict[tuple[str, int], RecodedColumn] = {}
    scored = [resolution.scored(clique) for clique in cliques]
    for clique, groups in zip(cliques, scored, strict=True):
        for name in clique:
            column = table.recoding.columns[table.recoding.index_of(name)]
            size = groups[name].size if name in groups else column.size
            if (name, size) not in columns:
                regrouped = column.regroup(groups[name]) if name in groups else column
                columns[name, size] = replace(regrouped, name=f"{name} at {size}" if name in groups else name)
    recoding = Recoding(tuple(columns.values()), table.recoding.origin)
    sizes = [{name: groups[name].size for name in groups} for groups in scored]
    named = [
        tuple(f"{name} at {of[name]}" if name in of else name for name in clique)
        for clique, of in zip(cliques, sizes, strict=True)
    ]
    coarse = [coarsen_table(*question) for question in zip(predictions, cliques, scored, strict=True)]
    return table.recode(recoding).score_predictions(named, coarse, rho)


CHANCE_SAMPLES = 8
"""How many tables are simulated to find the distance that is due to chance."""


def _distances_by_chance(
    measurements: Measurements, cliques: Sequence[Clique], predictions: Sequence[Counts], resolution: Resolution
) -> Counts:
    """The distances that marginals would have if the model were right, by sampling and by the noise of one-way counts.

    A table of n rows differs from its expected counts, and these were estimated from noisy one-way counts. Small tables
    would have large scores from that alone. It is simulated from released numbers.
    """
    releases, rng = [Release(measurements.rounds)], np.random.default_rng(0)
    stds: dict[tuple[str, int], float] = {}
    distances = np.zeros(len(cliques))
    for index, (clique, counts) in enumerate(zip(cliques, predictions, strict=True)):
        groups = resolution.scored(clique)
        expected = np.maximum(coarsen_table(counts, clique, groups), 0.0)
        errors = []
        for axis, (name, size) in enumerate(zip(clique, expected.shape, strict=True)):
            if (name, size) not in stds:
                level = {name: groups[name]} if name in groups else {}
                one_way = estimate_one_way(releases, coarsen_recoding(measurements.recoding, level), name)
                stds[name, size] = math.sqrt(one_way.variance)
            sums = expected.sum(axis=tuple(other for other in range(expected.ndim) if other != axis))
            shape = [-1 if other == axis else 1 for other in range(expected.ndim)]
            errors.append((stds[name, size] / np.maximum(sums, stds[name, size])).reshape(shape))
        for _ in range(CHANCE_SAMPLES):
            relative = sum(error * rng.standard_normal(error.shape) for error in errors)
            distances[index] += np.abs(rng.poisson(expected) - expected * (1 + relative)).sum() / CHANCE_SAMPLES
    return distances


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Marginals that may be measured, each at one or more levels, with their scores and the model's predictions.

    Attributes:
        table: the private table.
        cliques: the attributes of each candidate.
        groups: the levels of each candidate.
        clique_numbers: candidates of the same number have the same attributes; one of them is measured at most.
        scores: the distance between the counts of each candidate and the model that a measurement would remove.
        predictions: the model's tables of the candidates.
        options: how to select.
        weights: how much errors count, by attribute.
        is_allowed: whether attributes may be measured together.
    """

    table: PrivateTable
    cliques: Sequence[Clique]
    groups: Sequence[Groups]
    clique_numbers: NDArray[np.int64]
    scores: Counts
    predictions: Sequence[Counts]
    options: AdaptiveSelection
    weights: Mapping[str, float]
    is_allowed: IsAllowed

    @classmethod
    def of(
        cls,
        table: PrivateTable,
        cliques: Sequence[Clique],
        scores: Counts,
        predictions: Sequence[Counts],
        options: AdaptiveSelection,
        weights: Mapping[str, float],
        is_allowed: IsAllowed,
        resolution: Resolution,
    ) -> _Candidates:
        """The candidates of some cliques, given the score of each clique and the model's table of it."""
        entries = [
            (number, clique, groups) for number, clique in enumerate(cliques) for groups in resolution.options(clique)
        ]
        return cls(
            table,
            [clique for _, clique, _ in entries],
            [resolution.coarser(groups) for _, _, groups in entries],
            np.array([number for number, _, _ in entries], np.int64),
            np.array([scores[number] * resolution.kept_share(groups) for number, _, groups in entries]),
            [coarsen_table(predictions[number], clique, groups) for number, clique, groups in entries],
            options,
            weights,
            is_allowed,
        )

    @property
    def _several_levels(self) -> bool:
        return len(self.cliques) > len(set(self.clique_numbers.tolist())) or any(self.groups)

    def choose(self, rho: Fraction) -> MarginalChoice:
        """Select the candidates that are worth their noise."""
        return select_marginals(
            self.scores,
            self.predictions,
            float(rho),
            sensitivity=math.sqrt(self.table.privacy_unit.l2_sensitivity_squared),
            max_total_cells=self.table.noisy_values_left // 2,
            importance=np.array([_clique_weight(clique, self.weights) for clique in self.cliques]),
            noise_factor=lambda positions: 1.0 if self._several_levels else self._merge(positions).noise_factor,
            alternatives=self.clique_numbers if self._several_levels else None,
        )

    def tables_to_measure(self, choice: MarginalChoice) -> list[TableAtLevels]:
        """The marginals in which the chosen candidates are measured with the least noise.

        Those at coarser levels are measured as they are.
        """
        coarse: list[TableAtLevels] = [(self.cliques[p], self.groups[p]) for p in choice.positions if self.groups[p]]
        fine = np.array([position for position in choice.positions if not self.groups[position]], np.int64)
        if len(choice.positions) and self._predicted_error(choice) < self.options.no_merge_below_error:
            return [*((self.cliques[position], {}) for position in fine), *coarse]
        return [*((clique, {}) for clique in self._merge(fine).cliques), *coarse]

    def deserves_second_round(self, choice: MarginalChoice) -> bool:
        """Whether the chosen candidates hold much more signal than noise, so that others can be judged by them."""
        some_left = 0 < len(choice.positions) < len(set(self.clique_numbers.tolist()))
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


def measure_tables(
    table: PrivateTable,
    measurements: Measurements,
    tables: Sequence[TableAtLevels],
    rho: Fraction,
    weights: Mapping[str, float],
    progress: Progress,
) -> Measurements:
    """Add these marginals to the measurements; without any, the one-way marginals are measured once more.

    Marginals at different levels belong to different recodings, but are counted in one pass over the rows.

    Privacy: spends ``rho``, divided by (weight · cells)^(2/3), which minimizes the weighted sum of errors.
    """
    tables = list(tables) or [((name,), {}) for name in table.recoding.names]
    progress(f"measuring {len(tables)} marginals", 0.0)
    sizes = dict(zip(table.recoding.names, table.recoding.sizes, strict=True))
    shares = [
        (_clique_weight(clique, weights) * math.prod(groups[n].size if n in groups else sizes[n] for n in clique))
        ** CELL_POWER
        for clique, groups in tables
    ]
    rhos = split_exactly(rho, shares)
    if not any(groups for _, groups in tables):
        new = [MeasurementRound(table.recoding, tuple(table.measure([clique for clique, _ in tables], rhos)))]
        return replace(measurements, rounds=(*measurements.rounds, *new))
    parts: list[tuple[dict[str, Grouping | None], dict[Clique, Fraction]]] = []
    for (clique, groups), part_rho in zip(tables, rhos, strict=True):
        wanted = {name: groups.get(name) for name in clique}
        part = next((p for p in parts if clique not in p[1] and _is_compatible(p[0], wanted)), None)
        if part is None:
            part = ({}, {})
            parts.append(part)
        part[0].update(wanted)
        part[1][clique] = part_rho
    recodings = [
        coarsen_recoding(table.recoding, {name: level for name, level in levels.items() if level is not None})
        if any(levels.values())
        else table.recoding
        for levels, _ in parts
    ]
    marginals = table.measure_recodings([(r, of_part) for r, (_, of_part) in zip(recodings, parts, strict=True)])
    new = [MeasurementRound(r, tuple(measured)) for r, measured in zip(recodings, marginals, strict=True)]
    return replace(measurements, rounds=(*measurements.rounds, *new))


def _is_compatible(levels: Mapping[str, Grouping | None], wanted: Mapping[str, Grouping | None]) -> bool:
    """Whether tables at these levels can share a recoding."""
    return all(levels[name] is level for name, level in wanted.items() if name in levels)
