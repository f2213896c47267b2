"""Adaptive selection: noisy scores against a model decide which marginals are worth their noise.

It is the second half of recipe ``dpsyn``, and selects what a plan leaves open.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from numbers import Real

import numpy as np

from dpsyn.accounting import exact_fraction, split_exactly
from dpsyn.encoding import Grouping, Levels, Recoding
from dpsyn.errors import UserError, quote_argument
from dpsyn.inference import (
    MeasurementRound,
    PreviousReleases,
    Release,
    estimate_one_way,
    estimate_row_count,
    iterate_marginals,
    norm_sub,
)
from dpsyn.marginals import Clique, Estimate
from dpsyn.options import check_options
from dpsyn.plan import check_weights as check_plan_weights
from dpsyn.private import PrivateTable
from dpsyn.progress import MEASURE_MARGINALS, SCORE_AGAIN, SCORE_PAIRS, Progress
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.candidates import Candidates, IsAllowed, MergeLimits, clique_weight
from dpsyn.recipes.one_way import count_adaptive_passes, count_score_passes
from dpsyn.recipes.one_way_errors import OneWayErrors
from dpsyn.recipes.public_prior import Prior, PublicPair, choose_tested
from dpsyn.recipes.resolution import Counts, PredictedTable, Resolution, TableAtLevels, coarsen_recoding
from dpsyn.recipes.scoring import MIN_INTERACTION_SIGMAS, predict_tables, score_cliques
from dpsyn.schema import Schema
from dpsyn.selection import CELL_POWER, MarginalChoice, max_spread, select_visible
from dpsyn.suggestions import suggest_names

SELECTION_STEPS = (SCORE_PAIRS, MEASURE_MARGINALS, SCORE_AGAIN, MEASURE_MARGINALS)
"""The steps of ``select_and_measure``; the second round is left out where it does not pay off."""

TARGET_WEIGHT = 4.0
"""How much errors in marginals with the target count, unless its weight is given."""

VISIBLE_PART = 0.25
"""Where no pair is worth its noise, triples are scored if a distance of this part of the rows would stand out."""

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
        max_target_cliques: how many tables of three to five attributes that hold a target are scored, whether or not
            their pairs show anything.
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
    max_target_cliques: int = 500
    max_merged_cells: int = 4_096
    no_merge_below_error: float = 0.0003

    def __post_init__(self) -> None:
        check_options(
            self,
            second_round_ratio=0,
            triples_below_error=0,
            max_triple_cells=1,
            max_triples=0,
            max_target_cliques=0,
            max_merged_cells=0,
            no_merge_below_error=0,
        )
        check_share(self.score_share, "score_share")
        if not self.score_share:
            raise UserError("score_share is 0; scores need a part of the budget, such as 0.04")


@dataclass(frozen=True, slots=True, kw_only=True)
class Priorities:
    """What a release should be good at. All of it is public: choose it without looking at the data.

    Attributes:
        weights: how much errors in marginals with an attribute count; 1 for attributes that are not listed, and the
            product for a marginal.
        target: an attribute that is to be predicted from the others.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    target: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A table whose attributes can be measured together, and what was measured of them so far.

    Attributes:
        table: the private table, recoded.
        measurements: what was measured.
        levels: the levels of the attributes that may be measured more coarsely than the recoding has them.
        finest: one-way tables at a resolution that noise did not decide, for numbers and dates.
        finer: the recodings under which these are measured again, over the ranges of earlier rounds.
        unmerged: the recoding under which all others are measured again; that of the table by default.
        prior: a public table.
    """

    table: PrivateTable
    measurements: Measurements
    levels: Mapping[str, Levels] = field(default_factory=dict)
    finest: Mapping[str, Estimate] = field(default_factory=dict)
    finer: tuple[Recoding, ...] = ()
    unmerged: Recoding | None = None
    prior: Prior | None = None

    @property
    def values(self) -> Recoding:
        """The recoding in which one-way tables have all their values."""
        return self.unmerged or self.table.recoding


def resolution_of(prepared: Prepared, max_cells: int) -> Resolution:
    """The levels of a prepared table, with the largest number of cells of tables of three or more attributes."""
    table, limit = prepared.table, prepared.table.limits.max_marginal_cells
    sizes = dict(zip(table.recoding.names, table.recoding.sizes, strict=True))
    return Resolution(prepared.levels, sizes, min(max_cells, limit), limit)


def select_and_measure(
    prepared: Prepared,
    previous: PreviousReleases | None,
    rho: Fraction,
    options: AdaptiveSelection,
    progress: Progress,
    *,
    priorities: Priorities,
    is_allowed: IsAllowed = lambda _: True,
) -> Measurements:
    """Score pairs against a model and measure those that are worth their noise; score again if that pays off.

    Args:
        prepared: the table and its one-way marginals.
        previous: earlier releases of the same table.
        rho: what may be spent.
        options: how to select.
        progress: called with what is going on.
        priorities: what the release should be good at.
        is_allowed: whether attributes may be measured together.

    Privacy: spends ``rho``.
    """
    selection = _Selection(prepared, previous, options, priorities, is_allowed, progress)
    progress("scoring how pairs depend on each other", 0.0)
    selection, scored, rho = selection.score(rho)
    candidates = selection.candidates(scored, rho)
    division = candidates.divide(rho)
    triples = _second_round(candidates, division.choice, rho, options)
    if len(selection.table.recoding.names) > 2 and triples is not None:
        half, rest = split_rho(rho, 0.5)
        choice = candidates.choose(float(half), candidates.one_way.errors())
        if len(choice.positions):
            selection = selection.measure(candidates.tables_to_measure(choice), half)
            rho = rest
        progress("scoring pairs and triples against the model" if triples else "scoring pairs again", 0.0)
        selection, scored, rho = selection.score(rho, triples)
        candidates = selection.candidates(scored, rho)
        division = candidates.divide(rho)
    return selection.measure(
        candidates.tables_to_measure(division.choice),
        rho,
        one_way_share=division.one_way,
        one_way_parts=candidates.one_way.parts,
    ).measurements


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """Cliques with the model's predictions, their scores, and the part of these that hierarchies of lists show.

    ``unscored_pairs`` are those that could not stand out from the noise.
    """

    predictions: Sequence[PredictedTable]
    scores: Counts
    by_hierarchy: Mapping[Clique, float]
    unscored_pairs: Sequence[Clique]


@dataclass(frozen=True, slots=True, eq=False)
class _Selection:
    """The state of a selection: the prepared table, with everything that was measured."""

    prepared: Prepared
    previous: PreviousReleases | None
    options: AdaptiveSelection
    priorities: Priorities
    allows: IsAllowed
    progress: Progress

    @property
    def table(self) -> PrivateTable:
        return self.prepared.table

    @property
    def measurements(self) -> Measurements:
        return self.prepared.measurements

    @property
    def _releases(self) -> tuple[Release, ...]:
        rounds, prior = self.measurements.rounds, self.prepared.prior
        return (*(self.previous.releases if self.previous else ()), Release(prior.shrink(rounds) if prior else rounds))

    @property
    def _resolution(self) -> Resolution:
        return resolution_of(self.prepared, self.options.max_triple_cells)

    @property
    def _weights(self) -> dict[str, float]:
        weights = dict(self.priorities.weights)
        if self.priorities.target is not None:
            weights.setdefault(self.priorities.target, TARGET_WEIGHT)
        parts_of = self.table.schema.parts_of
        parts = {part: weight for name, weight in weights.items() for part in parts_of(name)}
        return _recoded_weights(self.table.recoding, parts)

    @property
    def _target(self) -> str | None:
        return _recoded_target(self.table.recoding, self.priorities.target)

    def _is_allowed(self, clique: Clique) -> bool:
        """Exclude attributes of a single value: nothing depends on them, and all tables could be merged with them."""
        resolution = self._resolution
        return all(resolution.sizes[name] > 1 for name in clique) and self.allows(clique)

    def score(self, rho: Fraction, triples: Sequence[Clique] = ()) -> tuple[_Selection, _Scored, Fraction]:
        """Score pairs, tables that hold the target, and some triples; returns what is left of ρ, too."""
        with_target = _target_cliques(self._resolution, self._target, self.options)
        resolution = self._resolution
        pairs: list[Clique] = [pair for pair in combinations(resolution.sizes, 2) if self._is_allowed(pair)]
        pairs = [pair for pair in pairs if resolution.is_measurable(pair, resolution.finest(pair))]
        visible = self._visible_pairs(pairs, float(rho) * self.options.score_share)
        prior = self.prepared.prior
        public = self._public_pairs(prior, pairs) if prior and not prior.tested else []
        if public:
            std = math.sqrt(self.table.privacy_unit.l1_sensitivity**2 / (2 * float(rho) * self.options.score_share))
            visible = choose_tested(public, [*visible, *with_target], std)
        every = dict.fromkeys([*visible, *with_target, *triples])
        cliques = [clique for clique in every if self._is_allowed(clique)]
        screened = {*with_target} - {*triples}
        score_rho, rho = split_rho(rho, self.options.score_share if cliques else 0.0)
        predictions = predict_tables(self.measurements, self.previous, cliques, self._resolution)
        unscored = [pair for pair in pairs if pair not in every]
        if prior and public:
            selection, scored = self._score_against_prior(prior, public, predictions, score_rho, screened)
            return selection, replace(scored, unscored_pairs=unscored), rho
        measurements, scores, by_hierarchy = score_cliques(
            self.table,
            self.measurements,
            predictions,
            score_rho,
            self._resolution,
            self._releases,
            self._target,
            screened,
        )
        return (
            self._with(measurements),
            _Scored(predictions, scores, by_hierarchy, unscored),
            rho,
        )

    def _public_pairs(self, prior: Prior, pairs: Sequence[Clique]) -> list[PublicPair]:
        """The pairs whose dependence the public table shows."""
        margins, rows = self._margins()
        trusted = prior.trusted_attributes(self.measurements.rounds)
        return prior.find_pairs(self.table.recoding, [p for p in pairs if trusted.issuperset(p)], margins, rows)

    def _margins(self) -> tuple[dict[str, Counts], float]:
        """The one-way tables, as far as they are known, and about how many rows there are."""
        releases, recoding = self._releases, self.table.recoding
        estimates = [estimate_one_way(releases, recoding, name) for name in recoding.names]
        rows = max(self.measurements.row_count or estimate_row_count(estimates), 1.0)
        return {e.clique[0]: norm_sub(e.values, rows) for e in estimates}, rows

    def _score_against_prior(
        self,
        prior: Prior,
        public: Sequence[PublicPair],
        predictions: Sequence[PredictedTable],
        rho: Fraction,
        screened: Collection[Clique],
    ) -> tuple[_Selection, _Scored]:
        """Score cliques against independence, and public pairs against what the public table predicts, too.

        All scores have the same noise. They decide whether the model follows the public table; for pairs of which it
        does, the prediction and the score against it are returned.
        """
        margins, rows = self._margins()
        recoding, releases, known = self.table.recoding, self._releases, {pair.clique for pair in public}
        found = [prior.predict(p, recoding, margins, rows) for p in predictions if p.clique in known]
        by_prior = [prediction for prediction in found if prediction is not None]
        share = len(by_prior) / (len(by_prior) + len(predictions))
        measurements, results = self.measurements, []
        for tables, part in zip((by_prior, predictions), split_rho(rho, share), strict=True):
            measurements, scores, by_hierarchy = score_cliques(
                self.table, measurements, tables, part, self._resolution, releases, self._target, screened
            )
            values = measurements.scores[-1].values.tolist() if tables else []
            noisy = {p.clique: float(value) for p, value in zip(tables, values, strict=False)}
            results.append((noisy, dict(zip([p.clique for p in tables], scores, strict=True)), by_hierarchy))
        (near, near_scores, near_shown), (noisy, scored, shown) = results
        both = {clique: (noisy[clique], near[clique]) for clique in near}
        prior = prior.trust(recoding, public, both, measurements.scores[-1].std, rows)
        followed = {marginal.clique for marginal in prior.pairs.marginals} if prior.pairs else set()
        replaced = {p.clique: p for p in by_prior if p.clique in followed}
        selection = replace(self, prepared=replace(self.prepared, prior=prior))
        return selection._with(measurements), _Scored(
            [replaced.get(p.clique, p) for p in predictions],
            np.array([near_scores[c] if c in replaced else score for c, score in scored.items()]),
            {**shown, **{clique: part for clique, part in near_shown.items() if clique in replaced}},
            (),
        )

    def _visible_pairs(self, pairs: Sequence[Clique], rho: float) -> Sequence[Clique]:
        """The pairs that could stand out from the noise of all scores."""
        releases = self._releases
        measured = {marginal.clique[0] for _, marginal in iterate_marginals(releases) if len(marginal.clique) == 1}
        names = [name for name in self.table.recoding.names if name in measured]
        estimates = [estimate_one_way(releases, self.table.recoding, name) for name in names]
        if not estimates:
            return pairs
        rows = max(self.measurements.row_count or estimate_row_count(estimates), 1.0)
        spreads = {name: max_spread(norm_sub(e.values, rows)) for name, e in zip(names, estimates, strict=True)}
        largest = 2 * rows * np.array([min(spreads.get(name, 1.0) for name in pair) for pair in pairs])
        std = math.sqrt(self.table.privacy_unit.l1_sensitivity**2 / (2 * rho))
        return [pairs[position] for position in select_visible(largest, std)]

    def candidates(self, scored: _Scored, rho: Fraction) -> Candidates:
        """The candidates of scored cliques."""
        rows = float(scored.predictions[0].counts.sum()) if scored.predictions else 1.0
        return Candidates.of(
            self.table,
            scored.predictions,
            scored.scores,
            rho,
            by_hierarchy=scored.by_hierarchy,
            resolution=self._resolution,
            one_way=OneWayErrors.of(self._releases, self.prepared.values, rows, self.prepared.finest),
            weights=self._weights,
            target=self._target,
            merging=MergeLimits(max_cells=self.options.max_merged_cells, min_error=self.options.no_merge_below_error),
            is_allowed=self._is_allowed,
            unscored_pairs=scored.unscored_pairs,
            follows_prior=self.measurements.public is not None and self.measurements.public.pairs is not None,
        )

    def measure(
        self,
        tables: Sequence[TableAtLevels],
        rho: Fraction,
        *,
        one_way_share: float = 0.0,
        one_way_parts: Mapping[str, float] | None = None,
    ) -> _Selection:
        """Measure marginals, and one-way marginals once more with a part of ρ, divided into ``one_way_parts``."""
        one_way_rho, rho = split_rho(rho, one_way_share if tables else 1.0)
        measurements = self.measurements
        if one_way_rho:
            measurements = measure_one_way_again(self.prepared, measurements, one_way_rho, one_way_parts or {})
        if tables:
            measurements = measure_tables(self.table, measurements, tables, rho, self._weights, self.progress)
        return self._with(measurements)

    def _with(self, measurements: Measurements) -> _Selection:
        prior = self.prepared.prior
        if prior:
            measurements = replace(measurements, public=prior.tables(measurements.rounds))
        return replace(self, prepared=replace(self.prepared, measurements=measurements))


def _second_round(
    candidates: Candidates, choice: MarginalChoice, rho: Fraction, options: AdaptiveSelection
) -> list[Clique] | None:
    """The triples of a second round, which may be none; None if such a round does not pay off.

    It does if the chosen tables hold much more signal than noise; or if none was worth its noise, but scores are
    precise enough to show triples whose pairs show nothing.
    """
    if not len(choice.positions):
        triples = _strongest_triples(candidates, options)
        score_rho = float(rho) * options.score_share
        std = math.sqrt(candidates.table.privacy_unit.l1_sensitivity**2 * len(triples) / (2 * score_rho))
        return triples if triples and MIN_INTERACTION_SIGMAS * std < VISIBLE_PART * candidates.rows else None
    if candidates.relative_error(choice) < options.triples_below_error:
        return _strongest_triples(candidates, options)
    some_left = len(choice.positions) < len(candidates.scored_cliques)
    return [] if some_left and candidates.signal_ratio(choice) < options.second_round_ratio else None


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
        if name not in measured and name not in [attribute.name for attribute in schema.modeled_attributes]:
            raise UserError(
                f"a weight is given for {quote_argument(name)}, which is not measured; "
                f"{suggest_names(name, measured, 'measured are ')}"
            )
    check_plan_weights(numbers)


def check_target(target: str | None, schema: Schema) -> None:
    """Refuse a target that is not modelled as one attribute."""
    modeled = [attribute.name for attribute in schema.modeled_attributes]
    if target is not None and target not in modeled:
        raise UserError(
            f"the target {quote_argument(target)} is not measured; "
            f"{suggest_names(target, modeled, 'give one of the attributes ')}"
        )


def check_share(share: float, name: str) -> None:
    """Refuse a part of the budget that is not between 0 and 1."""
    if not 0 <= share < 1:
        raise UserError(f"{name} is {share}; give a part of the budget, from 0 to below 1")


def split_rho(rho: Fraction, share: float) -> tuple[Fraction, Fraction]:
    """A part of ρ and the rest; together they are ρ, exactly."""
    part, rest = split_exactly(rho, [exact_fraction(share), 1 - exact_fraction(share)])
    return part, rest


def _recoded_target(recoding: Recoding, target: str | None) -> str | None:
    """The attribute of the recoding that holds the target."""
    names = recoding.names if target is not None else ()
    return next((name for name in names if target in (name, *recoding.joint_parts.get(name, ()))), None)


def _recoded_weights(recoding: Recoding, weights: Mapping[str, float]) -> dict[str, float]:
    """Weights of the recoded attributes: attributes that are measured as one get the largest of their weights."""
    parts = {name: (name, *recoding.joint_parts.get(name, ())) for name in recoding.names}
    given = {name: [weights[part] for part in members if part in weights] for name, members in parts.items()}
    return {name: max(values) for name, values in given.items() if values}


# ── what to measure ──────────────────────────────────────────────────────────────────────────────────────────


def _target_cliques(resolution: Resolution, target: str | None, options: AdaptiveSelection) -> list[Clique]:
    """Tables of three to five attributes that hold the target, as far as all of a size are few enough to be scored.

    What several attributes tell only together about the target shows in no pair.
    """
    found: list[Clique] = []
    if target is None:
        return found
    for size in (3, 4, 5):
        cliques = [c for c in combinations(resolution.sizes, size) if target in c]
        cliques = [
            c for c in cliques if resolution.count_cells(c, resolution.scoring_groups(c)) <= resolution.max_cells
        ]
        if len(found) + len(cliques) > options.max_target_cliques:
            break
        found += cliques
    return found


def _strongest_triples(candidates: Candidates, options: AdaptiveSelection) -> list[Clique]:
    """Triples of moderate size, ordered by the scores of their two strongest pairs."""
    strength = dict(zip(candidates.scored_cliques, candidates.scores.tolist(), strict=True))
    resolution = candidates.resolution

    def weakness(triple: Clique) -> float:
        _, *strongest = sorted(strength.get(pair, 0.0) for pair in combinations(triple, 2))
        return -math.fsum(strongest)

    best = {name: max((s for p, s in strength.items() if name in p), default=0.0) for name in resolution.sizes}
    strong_names = set(sorted(best, key=lambda name: -best[name])[:MAX_TRIPLE_ATTRIBUTES])
    triples: list[Clique] = list(combinations([name for name in resolution.sizes if name in strong_names], 3))
    small = [t for t in triples if resolution.count_cells(t, resolution.finest(t)) <= resolution.max_cells]
    return sorted(small, key=weakness)[: options.max_triples]


def measure_one_way_again(
    prepared: Prepared, measurements: Measurements, rho: Fraction, weights: Mapping[str, float]
) -> Measurements:
    """Measure every one-way marginal once more, with parts of ρ by weight.

    Numbers and dates are measured over the ranges of earlier rounds, because other ranges would cross these, and say
    less about them. Lists are measured by all their values: more cells of a one-way marginal cost nothing, and values
    that are too rare for tables of several attributes are many rows together.

    Privacy: spends ``rho``.
    """
    finer, values, table = prepared.finer, prepared.values, prepared.table
    numbers = finer[-1].names if finer else ()
    recodings = [(values, [name for name in values.names if name not in numbers])]
    recodings += [(recoding, list(numbers)) for recoding in finer]
    parts = split_exactly(
        rho,
        [weights.get(name, 1.0) / (len(finer) if name in numbers else 1) for _, names in recodings for name in names],
    )
    left = iter(parts)
    questions: list[tuple[Recoding, dict[Clique, Fraction]]] = [
        (recoding, {(name,): next(left) for name in names}) for recoding, names in recodings if names
    ]
    marginals = table.measure_recodings(questions)
    new = [MeasurementRound(r, tuple(measured)) for (r, _), measured in zip(questions, marginals, strict=True)]
    return replace(measurements, rounds=(*measurements.rounds, *new))


def measure_tables(
    table: PrivateTable,
    measurements: Measurements,
    tables: Sequence[TableAtLevels],
    rho: Fraction,
    weights: Mapping[str, float],
    progress: Progress,
) -> Measurements:
    """Add these marginals to the measurements.

    Marginals at different levels belong to different recodings, but are counted in one pass over the rows.

    Privacy: spends ``rho``, divided by (weight · cells)^(2/3), which minimizes the weighted sum of errors.
    """
    sizes = dict(zip(table.recoding.names, table.recoding.sizes, strict=True))
    cells = [math.prod(groups[n].size if n in groups else sizes[n] for n in clique) for clique, groups in tables]
    needs = [clique_weight(clique, weights) * c for (clique, _), c in zip(tables, cells, strict=True)]
    rhos = split_exactly(rho, [need**CELL_POWER for need in needs])
    progress(f"measuring {len(tables)} marginals", 0.0)
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
