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

from dpsyn.accounting import exact, split
from dpsyn.consistency import norm_sub
from dpsyn.marginals import Clique
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress
from dpsyn.recipes.compressing import cells_of, measurable_pairs
from dpsyn.recipes.recipe import Findings
from dpsyn.selection import CELL_POWER, Choice, Merged, merge, select_worthwhile, shrunk
from dpsyn.synopsis import Model, Release, Scores, Stage, Synopsis, fit_model
from dpsyn.transforms import Recoding

Table = NDArray[np.float64]

Allowed = Callable[[Clique], bool]
"""Whether attributes may be measured together."""

MOST_NAMES = 120
"""Attributes whose triples are looked at; they have 280 840."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DPSynOptions:
    """The constants of the recipe.

    Attributes:
        first: the part of ρ for a first look at every attribute, which also tells about how many rows there are.
        most_singles: the largest part of ρ that 1-way marginals get if anything else is measured; if they should get
            more, they get all of it.
        scores: the part of ρ for each round of scores.
        rare: values with a noisy count below so many standard deviations are merged.
        telling: if chosen pairs are predicted to be off by less than this part of what they tell, half of their budget
            goes to a second round, which looks at all pairs again, given what the first ones told.
        accurate: if they are predicted to be off by less than this share of the rows, it looks at triples, too.
        most_cells: cells of a triple.
        most_triples: triples that are scored: those of the strongest pairs.
        most_grown: cells up to which chosen tables grow together where that means less noise.
        exact: if tables are predicted to be off by less than this share of the rows, none grows: noise does not matter,
            and rows follow smaller tables more closely.
        workload: how much errors in tables with an attribute count, 1 for those that are not listed; that of a table is
            the product over its attributes.
    """

    first: float = 0.05
    most_singles: float = 0.7
    scores: float = 0.04
    rare: float = 3.0
    telling: float = 0.27
    accurate: float = 0.01
    most_cells: int = 20_000
    most_triples: int = 3_000
    most_grown: int = 4_096
    exact: float = 0.0003
    workload: Mapping[str, float] = field(default_factory=dict)


def select_and_measure(
    table: PrivateTable,
    found: Findings,
    before: Synopsis | None,
    share: Fraction,
    options: DPSynOptions,
    progress: Progress,
    allowed: Allowed = lambda _: True,
) -> Findings:
    """Score pairs against a model, measure what is worth its noise; then pairs and triples again if it pays.

    Privacy: spends ``share`` of ρ.
    """
    progress("scoring how pairs depend on each other", 0.0)
    options = replace(options, workload=_weights(table.recoding, options.workload))
    allowed = _varying(table, allowed)
    pairs, left = [pair for pair in measurable_pairs(table) if allowed(pair)], share
    guesses = _guesses(found, before, pairs)
    for_scores, left = parts(left, options.scores if pairs else 0.0)
    found, scores = _scored(table, found, pairs, guesses, for_scores)
    candidates = _Candidates(table, pairs, scores, guesses, options, allowed)
    choice = candidates.choice(left)
    accurate = candidates.accurate(choice)
    if len(table.recoding.names) > 2 and (accurate or candidates.telling(choice)):
        half, rest = parts(left, 0.5)
        found = measured(table, found, candidates.tables(candidates.choice(half)), half, options, progress)
        progress("scoring pairs and triples against the model" if accurate else "scoring pairs again", 0.0)
        triples = _triples(table, pairs, scores, options) if accurate else []
        cliques = [*pairs, *(triple for triple in triples if allowed(triple))]
        guesses = _guesses(found, before, cliques)
        for_scores, left = parts(rest, options.scores)
        found, scores = _scored(table, found, cliques, guesses, for_scores)
        candidates = _Candidates(table, cliques, scores, guesses, options, allowed)
        choice = candidates.choice(left)
    return measured(table, found, candidates.tables(choice), left, options, progress)


def _weights(recoding: Recoding, workload: Mapping[str, float]) -> dict[str, float]:
    """A workload by what is measured: several attributes that are measured as one have the largest of their weights."""
    parts = {name: (name, *recoding.parts.get(name, ())) for name in recoding.names}
    told = {name: [workload[part] for part in own if part in workload] for name, own in parts.items()}
    return {name: max(weights) for name, weights in told.items() if weights}


def _varying(table: PrivateTable, allowed: Allowed) -> Allowed:
    """The same, without attributes of a single value: nothing depends on them, and tables could grow by them all."""
    constant = {column.name for column in table.recoding.columns if column.size == 1}
    return lambda clique: constant.isdisjoint(clique) and allowed(clique)


def parts(share: Fraction, part: float) -> tuple[Fraction, Fraction]:
    """A part of a share, and the rest; together they are the share, exactly."""
    one, other = split(share, [exact(part), 1 - exact(part)])
    return one, other


# ── what the present model says ──────────────────────────────────────────────────────────────────────────────


def _guesses(found: Findings, before: Synopsis | None, cliques: Sequence[Clique]) -> list[Table]:
    """Tables as they are told by what was released so far; attributes are independent if no pair was measured."""
    releases = (*(before.releases if before else ()), Release("", found.stages))
    model = fit_model(found.schema, found.recoding, releases, total=found.rows)
    if model.fitted is None:
        return _products(model, cliques)
    records = model.fitted.records
    names, sizes, scale = model.recoding.names, model.recoding.sizes, model.total / records.shape[1]
    return [_counted(records, names, sizes, clique) * scale for clique in cliques]


def _products(model: Model, cliques: Sequence[Clique]) -> list[Table]:
    singles = {table.clique[0]: norm_sub(table.values, model.total) for table in model.tables}
    total = max(model.total, 1.0)
    return [reduce(np.multiply.outer, [singles[name] / total for name in clique]) * total for clique in cliques]


def _counted(columns: NDArray[np.unsignedinteger], names: Sequence[str], sizes: Sequence[int], clique: Clique) -> Table:
    places = [names.index(name) for name in clique]
    shape = [sizes[place] for place in places]
    cells = np.ravel_multi_index([columns[place] for place in places], shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


# ── what to measure ──────────────────────────────────────────────────────────────────────────────────────────


def _scored(
    table: PrivateTable, found: Findings, cliques: Sequence[Clique], guesses: Sequence[Table], share: Fraction
) -> tuple[Findings, Table]:
    """The findings with noisy distances from guesses added, and those distances, shrunk by their noise."""
    if not cliques:
        return found, np.empty(0)
    values = table.score(cliques, guesses, share)
    deviation = math.sqrt(len(cliques) * table.protection.score(1) ** 2 / (2 * share))
    lengths = np.array([len(clique) for clique in cliques])
    sharpened = values.copy()
    for length in set(lengths.tolist()):
        sharpened[lengths == length] = shrunk(values[lengths == length], deviation)
    scores = Scores("distance from the model", tuple(cliques), values, deviation)
    return replace(found, scores=(*found.scores, scores)), sharpened


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Marginals that may be measured, how far the model is from them, and what it says they are."""

    table: PrivateTable
    cliques: Sequence[Clique]
    scores: Table
    guesses: Sequence[Table]
    options: DPSynOptions
    allowed: Allowed

    def choice(self, share: Fraction) -> Choice:
        """Which of them are worth their noise."""
        return select_worthwhile(
            self.scores,
            self.guesses,
            float(share),
            sensitivity=math.sqrt(self.table.protection.l2_squared),
            most_cells=self.table.draws_left // 2,
            importance=np.array([_importance(clique, self.options) for clique in self.cliques]),
            noise=lambda places: self._grown(places).noise,
        )

    def tables(self, choice: Choice) -> list[Clique]:
        """What to measure so that the chosen ones are told best."""
        if len(choice.places) and self._distance(choice) < self.options.exact:
            return [self.cliques[place] for place in choice.places]
        return self._grown(choice.places).cliques

    def telling(self, choice: Choice) -> bool:
        """Whether chosen ones tell much more than their noise, so that the others can be judged by them."""
        left_out = 0 < len(choice.places) < len(self.scores)
        return left_out and choice.errors.sum() < self.options.telling * self.scores[choice.places].sum()

    def accurate(self, choice: Choice) -> bool:
        """Whether there are chosen ones, and they are predicted to be off by a small share of the rows only."""
        return len(choice.places) > 0 and self._distance(choice) < self.options.accurate

    def _distance(self, choice: Choice) -> float:
        """How far chosen ones are predicted to be off, as a share of the rows."""
        return float(np.mean(choice.errors)) / (2 * max(float(self.guesses[0].sum()), 1.0))

    def _grown(self, places: NDArray[np.int64]) -> Merged:
        """The tables that those at these places are best measured in, if they have no more cells than may be drawn."""
        chosen = [self.cliques[place] for place in places]
        grown = merge(
            chosen,
            dict(zip(self.table.recoding.names, self.table.recoding.sizes, strict=True)),
            importance=self.options.workload,
            most_cells=min(self.options.most_grown, self.table.limits.cells),
            allowed=self.allowed,
        )
        few = sum(cells_of(self.table, grown.cliques)) <= self.table.draws_left // 2
        return grown if few else Merged(chosen, 1.0)


def _importance(clique: Clique, options: DPSynOptions) -> float:
    return math.prod(options.workload.get(name, 1.0) for name in clique)


def _triples(table: PrivateTable, pairs: Sequence[Clique], scores: Table, options: DPSynOptions) -> list[Clique]:
    """Triples of moderate size whose two strongest pairs are the strongest."""
    strength = dict(zip(pairs, scores.tolist(), strict=True))

    def weakness(triple: Clique) -> float:
        _, *strongest = sorted(strength.get(pair, 0.0) for pair in combinations(triple, 2))
        return -math.fsum(strongest)

    best = {name: max((s for p, s in strength.items() if name in p), default=0.0) for name in table.recoding.names}
    names = sorted(best, key=lambda name: -best[name])[:MOST_NAMES]  # the triples of all would be too many to list
    triples: list[Clique] = list(combinations([name for name in table.recoding.names if name in set(names)], 3))
    most = min(options.most_cells, table.limits.cells)
    small = [triple for triple, cells in zip(triples, cells_of(table, triples), strict=True) if cells <= most]
    return sorted(small, key=weakness)[: options.most_triples]


def measured(
    table: PrivateTable,
    found: Findings,
    cliques: Sequence[Clique],
    share: Fraction,
    options: DPSynOptions,
    progress: Progress,
) -> Findings:
    """The findings with these marginals added; if none is worth it, the 1-way marginals are measured once more."""
    cliques = list(cliques) or [(name,) for name in table.recoding.names]
    progress(f"measuring {len(cliques)} marginals", 0.0)
    sizes = zip(cliques, cells_of(table, cliques), strict=True)
    shares = split(share, [(_importance(clique, options) * cells) ** CELL_POWER for clique, cells in sizes])
    stage = Stage(table.recoding, tuple(table.measure(cliques, shares)))
    return replace(found, stages=(*found.stages, stage))
