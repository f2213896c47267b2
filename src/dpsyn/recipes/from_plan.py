"""What a plan asks for, step by step: values, mappings, 1-way marginals, rare codes merged, marginals, selection."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpsyn.accounting import exact_fraction, split_exactly
from dpsyn.encoding import Codec, DifferenceCoding, Recoding, learn_mapping, merge_rare_values, project_to_recoding
from dpsyn.errors import BudgetError
from dpsyn.inference import MeasurementRound, Release, estimate_one_way
from dpsyn.marginals import Clique, Estimate
from dpsyn.plan import (
    MAX_TABLE_CELLS,
    Plan,
    PlanShares,
    RareThreshold,
    ResolvedPlan,
    divide_budget,
    marginal_shares,
    one_way_shares,
    pure_steps,
    resolve_plan,
)
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes.adaptive_selection import AdaptiveSelection, select_and_measure
from dpsyn.recipes.base import Measurements
from dpsyn.schema import Open
from dpsyn.synopsis import Synopsis

DISCOVERY_SHARE = 0.3
"""The part of what 1-way marginals get that buys the values of open attributes, if there are any."""

MAX_CODES = 1_000
"""Codes of one attribute after merging, at most: pairs of such are the largest tables that can be measured."""

MAX_DRAW_SHARE = 0.9
"""The part of all draws that the marginals of a plan may take; the rest is for what was not foreseen."""


def measure_plan(
    table: PrivateTable,
    *,
    previous: Synopsis | None = None,
    progress: Progress = ignore_progress,
    plan: Plan,
    options: AdaptiveSelection = AdaptiveSelection(),
) -> Measurements:
    """Measure what a plan names, recoded as it says, and leave to selection what it leaves open.

    Privacy: spends the whole ρ of the budget and its pure steps. Recodings follow from the plan, which is public, and
    from answers of the gate.
    """
    work = _Progress.begin(table, plan)
    progress("measuring every attribute", 0.0)
    work = work.discover_values().learn_mappings().measure_one_way().merge_rare_codes()
    work = work.measure_marginals(progress)
    table, found = work.table, work.measurements()
    left = work.shares.selection
    if not left:
        return found
    measured = {frozenset(m.clique) for stage in work.rounds for m in stage.marginals}
    options = replace(options, weights={**options.weights, **work.resolved.weights})

    def is_allowed(clique: Clique) -> bool:
        return frozenset(clique) not in measured and work.resolved.allows(clique)

    return select_and_measure(table, found, previous, left, options, progress, is_allowed)


@dataclass(frozen=True, slots=True, eq=False)
class _Progress:
    """A planned release on its way.

    Attributes:
        table: the table as it is recoded by now.
        plan: what is to be done.
        epsilon: the ε that decides between variants of the plan.
        resolved: what the plan comes to.
        shares: the amounts of ρ that are left for each part of it.
        rounds: what was measured so far.
    """

    table: PrivateTable
    plan: Plan
    epsilon: float
    resolved: ResolvedPlan
    shares: PlanShares
    rounds: tuple[MeasurementRound, ...] = ()

    @classmethod
    def begin(cls, table: PrivateTable, plan: Plan) -> _Progress:
        epsilon = float(table.budget.epsilon)
        layout = resolve_plan(plan, table.schema, epsilon)
        shares = divide_budget(
            plan,
            layout,
            rho=float(table.budget.rho),
            sensitivity=math.sqrt(table.privacy_unit.l2_sensitivity_squared),
            rows=table.schema.expected_size,
        )
        _check_room(layout, table)
        return cls(table, plan, epsilon, layout, shares.in_rho(table.budget.rho))

    # ── attributes by themselves ─────────────────────────────────────────────────────────────────────────

    def discover_values(self) -> _Progress:
        """Buy the values of open attributes."""
        opened = [a.name for a in self.table.schema.measured_attributes if isinstance(a, Open)]
        if not opened:
            return replace(self, table=self.table.recode(self.resolved.recoding))
        table = self.table
        for_values, left = split_exactly(
            self.shares.one_way, [exact_fraction(DISCOVERY_SHARE), 1 - exact_fraction(DISCOVERY_SHARE)]
        )
        deltas = split_exactly(table.budget.threshold_delta, [1] * len(opened))
        for name, share, delta in zip(opened, split_exactly(for_values, [1] * len(opened)), deltas, strict=True):
            table = table.discover_values(name, share, delta)
        layout = _resolve_within_room(self.plan, table, self.epsilon, opened)
        learned = {mapping.of: self.shares.mappings[mapping.of] for mapping in layout.mappings}
        left += sum(self.shares.mappings.values()) - sum(learned.values())
        shares = replace(self.shares, one_way=left, mappings=learned)
        return replace(self, table=table.recode(layout.recoding), resolved=layout, shares=shares)

    def learn_mappings(self) -> _Progress:
        """Measure pairs of which one attribute follows from the other, and read off how."""
        if not self.resolved.mappings:
            return self
        codec = Codec(self.table.schema)
        fine = self.table.recode(Recoding.fine(codec))
        cliques: list[Clique] = [(mapping.source, mapping.of) for mapping in self.resolved.mappings]
        shares = [self.shares.mappings[mapping.of] for mapping in self.resolved.mappings]
        pairs = fine.measure(cliques, shares, purpose="mapping, read off the marginal")
        places = {name: place for place, name in enumerate(codec.names)}
        references: dict[int, DifferenceCoding] = {
            places[pair.clique[1]]: learn_mapping(
                pair.counts,
                anchor=places[pair.clique[0]],
                modulus=codec.attributes[places[pair.clique[1]]].proper_cells,
            )
            for pair in pairs
        }
        recoding = self.resolved.recoding.code_differences(references)
        stage = MeasurementRound(fine.recoding, tuple(pairs))
        layout = replace(self.resolved, recoding=recoding)
        return replace(self, table=self.table.recode(recoding), resolved=layout, rounds=(*self.rounds, stage))

    def measure_one_way(self) -> _Progress:
        """Measure 1-way marginals over codes, and histograms inside codes where there are finer cells."""
        shares = one_way_shares(self.resolved, self.shares)
        stages = list(self.rounds)
        cells = {name: share for (kind, name), share in shares.items() if kind == "cells"}
        if cells:
            fine = Recoding.fine(Codec(self.table.schema)).code_differences(self.resolved.recoding.difference_codings)
            stages.append(_measure_round(self.table.recode(fine), cells, "histogram"))
        codes = {name: share for (kind, name), share in shares.items() if kind == "codes"}
        if plain := {name: share for name, share in codes.items() if name not in self.resolved.joint}:
            stages.append(_measure_round(self.table, plain, "marginal"))
        if joint := dict(self.shares.joint) | {
            name: share for name, share in codes.items() if name in self.resolved.joint
        }:
            stages.append(_measure_round(self.table, joint, "recoding, counts"))
        return replace(self, rounds=tuple(stages))

    # ── several attributes together ──────────────────────────────────────────────────────────────────────

    def merge_rare_codes(self) -> _Progress:
        """Merge rare codes, and so many that all planned marginals can be measured."""
        cliques = self._cliques()
        most = MAX_CODES
        while True:
            recoding = self._merge_codes(most)
            cells = list(_count_cells(recoding, cliques).values())
            fits = not cells or (
                max(cells) <= self.table.limits.max_marginal_cells
                and sum(cells) <= MAX_DRAW_SHARE * self.table.noisy_values_left
            )
            if fits or most == 1:
                return replace(self, table=self.table.recode(recoding))
            most = max(1, most * 2 // 3)

    def _merge_codes(self, max_codes: int) -> Recoding:
        recoding = self.resolved.recoding
        for name in self.resolved.recoding.names:
            estimate = self._one_way_estimate(name)
            if estimate is not None:
                rare = self.resolved.rare[name]
                recoding = recoding.merge(
                    name, merge_rare_values(estimate.values, _threshold(estimate, rare, max_codes)).grouping
                )
        return recoding

    def _one_way_estimate(self, name: str) -> Estimate | None:
        """The noisy counts of an attribute's codes; None if nothing was measured about it."""
        recoding, releases = self.resolved.recoding, [Release("", self.rounds)]
        if name in self.resolved.one_way:
            return estimate_one_way(releases, recoding, name)
        for stage in self.rounds:
            for marginal in stage.marginals:
                if (
                    name in marginal.clique
                    and (told := project_to_recoding(marginal, stage.recoding, recoding)) is not None
                ):
                    values = np.array(told.project([name]))
                    return Estimate((name,), values, told.variance * told.values.size / values.size)
        return None

    def measure_marginals(self, progress: Progress) -> _Progress:
        """Measure the marginals that the plan names."""
        pure = pure_steps(self.resolved, self.epsilon)
        stages = list(self.rounds)
        if pure:
            progress(f"measuring {len(pure)} marginals with Laplace noise", 0.0)
            answers = self.table.measure_laplace(list(pure), self._planned_steps(pure))
            stages.append(MeasurementRound(self.table.recoding, tuple(answers)))
        shares = marginal_shares(self.resolved, self.shares, _count_cells(self.table.recoding, self._cliques()))
        if shares:
            progress(f"measuring {len(shares)} marginals", 0.0)
            answers = self.table.measure(list(shares), list(shares.values()))
            stages.append(MeasurementRound(self.table.recoding, tuple(answers)))
        return replace(self, rounds=tuple(stages))

    def _planned_steps(self, pure: Mapping[Clique, Fraction]) -> list[Fraction]:
        """The budget's own pure steps, which are those of the plan rounded down to whole grains."""
        order = sorted(pure, key=lambda clique: -pure[clique])
        steps = dict(zip(order, self.table.budget.pure_epsilons, strict=True))
        return [steps[clique] for clique in pure]

    def _cliques(self) -> list[Clique]:
        return [clique for wanted in self.resolved.marginals for clique in wanted.cliques]

    def measurements(self) -> Measurements:
        """What was measured so far."""
        table = self.table
        return Measurements(
            schema=table.schema, recoding=table.recoding, rounds=self.rounds, row_count=table.public_row_count()
        )


def _check_room(layout: ResolvedPlan, table: PrivateTable) -> None:
    """Refuse, before anything is paid, a plan whose first tables alone are more than a release may draw.

    Values that are still to be bought are not counted.
    """
    draws = _count_first_draws(layout)
    if draws > table.noisy_values_left:
        raise BudgetError(
            f"mappings, joint attributes and 1-way marginals of the plan would draw {draws:,} noisy numbers, more than "
            f"{table.noisy_values_left:,}; give attributes bins, or leave out a transform"
        )


def _count_first_draws(layout: ResolvedPlan) -> int:
    """Noisy numbers in mappings, histograms and 1-way marginals."""
    fine, codes = dict(layout.recoding.origin), dict(zip(layout.recoding.names, layout.recoding.sizes, strict=True))
    mapped = sum(fine[mapping.source] * fine[mapping.of] for mapping in layout.mappings)
    return mapped + sum(fine[name] for name in layout.finer) + sum(codes[name] for name in layout.one_way)


def _resolve_within_room(plan: Plan, table: PrivateTable, epsilon: float, discovered: Sequence[str]) -> ResolvedPlan:
    """The layout once values are bought, with as many of them told apart as a release may draw tables of."""
    most = min(MAX_TABLE_CELLS, table.limits.max_marginal_cells)
    while True:
        layout = resolve_plan(plan, table.schema, epsilon, discovered=discovered, max_cells=most)
        if most == 1 or _count_first_draws(layout) <= table.noisy_values_left:
            return layout
        most //= 2


def _measure_round(table: PrivateTable, shares: Mapping[str, Fraction], purpose: str) -> MeasurementRound:
    answers = table.measure([(name,) for name in shares], list(shares.values()), purpose=purpose)
    return MeasurementRound(table.recoding, tuple(answers))


def _count_cells(recoding: Recoding, cliques: Sequence[Clique]) -> dict[Clique, int]:
    sizes = dict(zip(recoding.names, recoding.sizes, strict=True))
    return {clique: math.prod(sizes[name] for name in clique) for clique in cliques}


def _threshold(estimate: Estimate, rare: RareThreshold, max_codes: int) -> float:
    """The noisy count that a code must reach to be kept, so that not too many are."""
    kept = min(max_codes, rare.max_codes or max_codes)
    values = np.sort(estimate.values)
    crowded = np.nextafter(values[-kept], np.inf) if len(values) > kept else -np.inf
    return max(rare.threshold * math.sqrt(estimate.variance), rare.rows, float(crowded))
