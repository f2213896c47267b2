"""What a plan asks for, step by step: values, mappings, 1-way marginals, rare codes merged, marginals, selection."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpsyn.accounting import exact, split
from dpsyn.errors import BudgetError
from dpsyn.marginals import Clique, Estimate
from dpsyn.plan import (
    MOST_CELLS,
    Layout,
    Plan,
    Rare,
    Shares,
    layout_of,
    marginal_shares,
    pure_steps,
    shares_of,
    single_shares,
)
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, silent
from dpsyn.recipes.recipe import Findings
from dpsyn.recipes.selecting import DPSynOptions, select_and_measure
from dpsyn.records import Codec
from dpsyn.schema import Open
from dpsyn.synopsis import Release, Stage, Synopsis, single_estimate
from dpsyn.transforms import Recoding, Reference, carried, compress, learn_mapping

FOR_VALUES = 0.3
"""The part of what 1-way marginals get that buys the values of open attributes, if there are any."""

MOST_CODES = 1_000
"""Codes of one attribute after merging, at most: pairs of such are the largest tables that can be measured."""

ROOM = 0.9
"""The part of all draws that the marginals of a plan may take; the rest is for what was not foreseen."""


def planned(
    table: PrivateTable,
    *,
    before: Synopsis | None = None,
    progress: Progress = silent,
    plan: Plan,
    options: DPSynOptions = DPSynOptions(),  # noqa: B008 -- frozen
) -> Findings:
    """Measure what a plan names, recoded as it says, and leave to selection what it leaves open.

    Privacy: spends the whole ρ of the budget and its pure steps. Recodings follow from the plan, which is public, and
    from answers of the gate.
    """
    work = _Work.begin(table, plan)
    progress("measuring every attribute", 0.0)
    work = work.with_values().with_mappings().with_singles().with_rare_merged()
    work = work.with_marginals(progress)
    table, found = work.table, work.findings()
    left = work.shares.selection
    if not left:
        return found
    measured = {frozenset(m.clique) for stage in work.stages for m in stage.marginals}
    options = replace(options, workload={**options.workload, **work.layout.workload})

    def allowed(clique: Clique) -> bool:
        return frozenset(clique) not in measured and work.layout.together(clique)

    return select_and_measure(table, found, before, left, options, progress, allowed)


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """A planned release on its way.

    Attributes:
        table: the table as it is recoded by now.
        plan: what is to be done.
        epsilon: the ε that decides between variants of the plan.
        layout: what the plan comes to.
        shares: the amounts of ρ that are left for each part of it.
        stages: what was measured so far.
    """

    table: PrivateTable
    plan: Plan
    epsilon: float
    layout: Layout
    shares: Shares
    stages: tuple[Stage, ...] = ()

    @classmethod
    def begin(cls, table: PrivateTable, plan: Plan) -> _Work:
        epsilon = float(table.budget.epsilon)
        layout = layout_of(plan, table.schema, epsilon)
        shares = shares_of(
            plan,
            layout,
            rho=float(table.budget.rho),
            sensitivity=math.sqrt(table.protection.l2_squared),
            rows=table.schema.expected_size,
        )
        _require_room(layout, table)
        return cls(table, plan, epsilon, layout, shares.of(table.budget.rho))

    # ── attributes by themselves ─────────────────────────────────────────────────────────────────────────

    def with_values(self) -> _Work:
        """Buy the values of open attributes."""
        opened = [a.name for a in self.table.schema.measured if isinstance(a, Open)]
        if not opened:
            return replace(self, table=self.table.recode(self.layout.recoding))
        table = self.table
        for_values, left = split(self.shares.singles, [exact(FOR_VALUES), 1 - exact(FOR_VALUES)])
        deltas = split(table.budget.threshold_delta, [1] * len(opened))
        for name, share, delta in zip(opened, split(for_values, [1] * len(opened)), deltas, strict=True):
            table = table.discover(name, share, delta)
        layout = _with_room(self.plan, table, self.epsilon, opened)
        learned = {mapping.of: self.shares.mappings[mapping.of] for mapping in layout.mappings}
        left += sum(self.shares.mappings.values()) - sum(learned.values())
        shares = replace(self.shares, singles=left, mappings=learned)
        return replace(self, table=table.recode(layout.recoding), layout=layout, shares=shares)

    def with_mappings(self) -> _Work:
        """Measure pairs of which one attribute follows from the other, and read off how."""
        if not self.layout.mappings:
            return self
        codec = Codec(self.table.schema)
        fine = self.table.recode(Recoding.fine(codec))
        cliques: list[Clique] = [(mapping.source, mapping.of) for mapping in self.layout.mappings]
        shares = [self.shares.mappings[mapping.of] for mapping in self.layout.mappings]
        pairs = fine.measure(cliques, shares, purpose="mapping, read off the marginal")
        places = {name: place for place, name in enumerate(codec.names)}
        references: dict[int, Reference] = {
            places[pair.clique[1]]: learn_mapping(
                pair.counts, anchor=places[pair.clique[0]], cells=codec.attributes[places[pair.clique[1]]].proper_cells
            )
            for pair in pairs
        }
        recoding = self.layout.recoding.refer(references)
        stage = Stage(fine.recoding, tuple(pairs))
        layout = replace(self.layout, recoding=recoding)
        return replace(self, table=self.table.recode(recoding), layout=layout, stages=(*self.stages, stage))

    def with_singles(self) -> _Work:
        """Measure 1-way marginals over codes, and histograms inside codes where there are finer cells."""
        shares = single_shares(self.layout, self.shares)
        stages = list(self.stages)
        cells = {name: share for (kind, name), share in shares.items() if kind == "cells"}
        if cells:
            fine = Recoding.fine(Codec(self.table.schema)).refer(self.layout.recoding.references)
            stages.append(_stage(self.table.recode(fine), cells, "histogram"))
        codes = {name: share for (kind, name), share in shares.items() if kind == "codes"}
        if plain := {name: share for name, share in codes.items() if name not in self.layout.joint}:
            stages.append(_stage(self.table, plain, "marginal"))
        if joint := dict(self.shares.joint) | {
            name: share for name, share in codes.items() if name in self.layout.joint
        }:
            stages.append(_stage(self.table, joint, "recoding, counts"))
        return replace(self, stages=tuple(stages))

    # ── several attributes together ──────────────────────────────────────────────────────────────────────

    def with_rare_merged(self) -> _Work:
        """Merge rare codes, and so many that all planned marginals can be measured."""
        cliques = self._cliques()
        most = MOST_CODES
        while True:
            recoding = self._merged(most)
            cells = list(_cells(recoding, cliques).values())
            fits = not cells or (max(cells) <= self.table.limits.cells and sum(cells) <= ROOM * self.table.draws_left)
            if fits or most == 1:
                return replace(self, table=self.table.recode(recoding))
            most = max(1, most * 2 // 3)

    def _merged(self, most: int) -> Recoding:
        recoding = self.layout.recoding
        for name in self.layout.recoding.names:
            estimate = self._single(name)
            if estimate is not None:
                rare = self.layout.rare[name]
                recoding = recoding.merge(name, compress(estimate.values, _threshold(estimate, rare, most)).grouping)
        return recoding

    def _single(self, name: str) -> Estimate | None:
        """The noisy counts of an attribute's codes; None if nothing was measured about it."""
        recoding, releases = self.layout.recoding, [Release("", self.stages)]
        if name in self.layout.singles:
            return single_estimate(releases, recoding, name)
        for stage in self.stages:
            for marginal in stage.marginals:
                if name in marginal.clique and (told := carried(marginal, stage.recoding, recoding)) is not None:
                    values = np.array(told.onto([name]))
                    return Estimate((name,), values, told.variance * told.values.size / values.size)
        return None

    def with_marginals(self, progress: Progress) -> _Work:
        """Measure the marginals that the plan names."""
        pure = pure_steps(self.layout, self.epsilon)
        stages = list(self.stages)
        if pure:
            progress(f"measuring {len(pure)} marginals with Laplace noise", 0.0)
            answers = self.table.measure_purely(list(pure), self._planned_steps(pure))
            stages.append(Stage(self.table.recoding, tuple(answers)))
        shares = marginal_shares(self.layout, self.shares, _cells(self.table.recoding, self._cliques()))
        if shares:
            progress(f"measuring {len(shares)} marginals", 0.0)
            answers = self.table.measure(list(shares), list(shares.values()))
            stages.append(Stage(self.table.recoding, tuple(answers)))
        return replace(self, stages=tuple(stages))

    def _planned_steps(self, pure: Mapping[Clique, Fraction]) -> list[Fraction]:
        """The budget's own pure steps, which are those of the plan rounded down to whole grains."""
        order = sorted(pure, key=lambda clique: -pure[clique])
        steps = dict(zip(order, self.table.budget.pure, strict=True))
        return [steps[clique] for clique in pure]

    def _cliques(self) -> list[Clique]:
        return [clique for wanted in self.layout.wanted for clique in wanted.cliques]

    def findings(self) -> Findings:
        """What was measured so far."""
        table = self.table
        return Findings(schema=table.schema, recoding=table.recoding, stages=self.stages, rows=table.public_rows())


def _require_room(layout: Layout, table: PrivateTable) -> None:
    """Refuse, before anything is paid, a plan whose first tables alone are more than a release may draw.

    Values that are still to be bought are not counted.
    """
    draws = _first_draws(layout)
    if draws > table.draws_left:
        raise BudgetError(
            f"mappings, joint attributes and 1-way marginals of the plan would draw {draws:,} noisy numbers, more than "
            f"{table.draws_left:,}; give attributes bins, or leave out a transform"
        )


def _first_draws(layout: Layout) -> int:
    """Noisy numbers in mappings, histograms and 1-way marginals."""
    fine, codes = dict(layout.recoding.origin), dict(zip(layout.recoding.names, layout.recoding.sizes, strict=True))
    mapped = sum(fine[mapping.source] * fine[mapping.of] for mapping in layout.mappings)
    return mapped + sum(fine[name] for name in layout.finer) + sum(codes[name] for name in layout.singles)


def _with_room(plan: Plan, table: PrivateTable, epsilon: float, bought: Sequence[str]) -> Layout:
    """The layout once values are bought, with as many of them told apart as a release may draw tables of."""
    most = min(MOST_CELLS, table.limits.cells)
    while True:
        layout = layout_of(plan, table.schema, epsilon, bought=bought, most=most)
        if most == 1 or _first_draws(layout) <= table.draws_left:
            return layout
        most //= 2


def _stage(table: PrivateTable, shares: Mapping[str, Fraction], purpose: str) -> Stage:
    answers = table.measure([(name,) for name in shares], list(shares.values()), purpose=purpose)
    return Stage(table.recoding, tuple(answers))


def _cells(recoding: Recoding, cliques: Sequence[Clique]) -> dict[Clique, int]:
    sizes = dict(zip(recoding.names, recoding.sizes, strict=True))
    return {clique: math.prod(sizes[name] for name in clique) for clique in cliques}


def _threshold(estimate: Estimate, rare: Rare, most: int) -> float:
    """The noisy count that a code must reach to be kept, so that not too many are."""
    kept = min(most, rare.most or most)
    values = np.sort(estimate.values)
    crowded = np.nextafter(values[-kept], np.inf) if len(values) > kept else -np.inf
    return max(rare.threshold * math.sqrt(estimate.variance), rare.rows, float(crowded))
