"""Recipe ``planned``: what a plan names is measured, recoded as it says; selection takes care of what it leaves open.

In this order: values of open attributes, mappings, one-way marginals, rare codes merged, marginals, selection.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import msgspec
import numpy as np

from dpsyn.accounting import Budget, exact_fraction, split_exactly
from dpsyn.encoding import Codec, DifferenceCoding, Recoding, learn_mapping, merge_rare_values, project_to_recoding
from dpsyn.errors import BudgetError, UserError
from dpsyn.inference import MeasurementRound, PreviousReleases, Release, estimate_one_way
from dpsyn.marginals import Clique, Estimate
from dpsyn.options import text_option
from dpsyn.plan import (
    MAX_TABLE_CELLS,
    Plan,
    PlanShares,
    RareThreshold,
    ResolvedPlan,
    budget_for_plan,
    divide_budget,
    laplace_noise_warning,
    marginal_shares,
    one_way_shares,
    pure_steps,
    resolve_plan,
)
from dpsyn.private import PrivateTable
from dpsyn.progress import MEASURE_MARGINALS, MEASURE_ONE_WAY, Progress, Step, ignore_progress
from dpsyn.recipes.adaptive_selection import (
    SELECTION_STEPS,
    AdaptiveSelection,
    Prepared,
    Priorities,
    check_target,
    check_weights,
    count_selection_passes,
    select_and_measure,
)
from dpsyn.recipes.base import Measurements, Recipe
from dpsyn.schema import Schema

DISCOVERY_SHARE = 0.3
"""The part of the one-way budget that discovers the values of open attributes, if there are any."""

MAX_CODES = 1_000
"""Codes of one attribute after merging: pairs of such attributes are the largest marginals that can be measured."""

MAX_NOISY_SHARE = 0.9
"""The part of all noisy values of a release that the marginals of a plan may take; the rest is a reserve."""

PLAN_PASSES = 4
"""Further passes that a plan may take: for mappings, histograms inside codes, joint attributes and Laplace noise."""


@dataclass(frozen=True, kw_only=True)
class Planned(Recipe):
    r"""Measure what a plan names, and select what it leaves open.

    >>> from dpsyn import Plan
    >>> plan = Plan.from_yaml("dpsyn_plan: 1\nmarginals: [[age, income]]")
    >>> Planned(plan=plan).plan.marginals[0].of
    ('age', 'income')

    Attributes:
        plan: what the data owner knows about the table: which columns belong together, which follow from which, which
            marginals matter. Public: make it without looking at the data, or from what was released. It may name the
            synthesis method, too; one that is given to the recipe takes precedence.
        selection: how further marginals are selected, if the plan leaves budget for that.
        weights: how much errors in marginals with an attribute count; the plan's own weights take precedence.
        target: an attribute that is to be predicted from the others; for what is selected, as in recipe ``dpsyn``.
    """

    name: ClassVar[str] = "planned"
    summary: ClassVar[str] = "Measures what a plan file names, recoded as it says, and selects what it leaves open."
    steps: ClassVar[tuple[Step, ...]] = (MEASURE_ONE_WAY, MEASURE_MARGINALS, MEASURE_MARGINALS, *SELECTION_STEPS)

    plan: Plan = text_option(Plan(), parse=Plan.load, type_words="FILE", to_data=msgspec.to_builtins)  # noqa: RUF009 -- frozen
    selection: AdaptiveSelection = AdaptiveSelection()  # noqa: RUF009 -- frozen
    weights: Mapping[str, float] = field(default_factory=dict)
    target: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weights", dict(self.weights))  # later changes of the caller's dictionary do not count
        if self.synthesis is Recipe.synthesis:  # the default object itself, so that Gibbs() can be asked for
            object.__setattr__(self, "synthesis", self.plan.synthesis_method() or self.synthesis)

    def check(self, schema: Schema, previous: PreviousReleases | None) -> None:
        """Refuse a plan or weights that do not fit the schema, and earlier releases."""
        super().check(schema, previous)
        if previous is not None:
            raise UserError("a plan cannot extend a synopsis yet; measure the table anew, or use another recipe")
        self.plan.check(schema)
        check_weights(self.weights, schema)
        check_target(self.target, schema)

    def plan_budget(self, schema: Schema, epsilon: float, delta: float) -> Budget:
        """The budget with the pure steps that the plan's Laplace marginals need."""
        if message := laplace_noise_warning(self.plan, schema, epsilon):
            warnings.warn(message, UserWarning, stacklevel=4)
        resolved = resolve_plan(self.plan, schema, epsilon)
        return budget_for_plan(resolved, epsilon, delta, thresholds=bool(schema.open_attributes))

    def declared_public(self) -> tuple[str, ...]:
        """The plan, by its digest and description."""
        return (self.plan.declared_public(),)

    def measure(
        self, table: PrivateTable, *, previous: PreviousReleases | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """Measure what the plan names, recoded as it says, then select what it leaves open.

        Privacy: spends the whole ρ of the budget and its pure steps. Recodings follow from the plan, which is public,
        and from answers of the gate.
        """
        state = _PlanState.begin(table, self.plan)
        progress("measuring every attribute", 0.0)
        state = state.discover_values().learn_mappings().measure_one_way().merge_rare_codes()
        state = state.measure_marginals(progress)
        if not state.shares.selection:
            return state.measurements()
        measured = {frozenset(marginal.clique) for round_ in state.rounds for marginal in round_.marginals}

        def is_allowed(clique: Clique) -> bool:
            return frozenset(clique) not in measured and state.resolved.allows(clique)

        return select_and_measure(
            Prepared(state.table, state.measurements()),
            previous,
            state.shares.selection,
            self.selection,
            progress,
            priorities=Priorities(weights={**self.weights, **state.resolved.weights}, target=self.target),
            is_allowed=is_allowed,
        )

    def max_passes(self, schema: Schema) -> int:
        """As recipe ``dpsyn``, and those of the plan's own steps."""
        return count_selection_passes(schema, self.selection) + PLAN_PASSES


@dataclass(frozen=True, slots=True, eq=False)
class _PlanState:
    """How far the steps of a plan are carried out.

    Attributes:
        table: the table, recoded as far as the steps are done.
        plan: the plan.
        epsilon: the ε that decides between variants of the plan.
        resolved: the plan at this ε.
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
    def begin(cls, table: PrivateTable, plan: Plan) -> _PlanState:
        epsilon = float(table.budget.epsilon)
        resolved = resolve_plan(plan, table.schema, epsilon)
        shares = divide_budget(
            plan,
            resolved,
            rho=float(table.budget.rho),
            sensitivity=math.sqrt(table.privacy_unit.l2_sensitivity_squared),
            rows=table.schema.expected_size,
        )
        _check_room(resolved, table)
        return cls(table, plan, epsilon, resolved, shares.in_rho(table.budget.rho))

    # ── attributes by themselves ─────────────────────────────────────────────────────────────────────────

    def discover_values(self) -> _PlanState:
        """Discover the values of open attributes."""
        open_names = [attribute.name for attribute in self.table.schema.open_attributes]
        if not open_names:
            return replace(self, table=self.table.recode(self.resolved.recoding))
        table = self.table
        discovery_rho, rest = split_exactly(
            self.shares.one_way, [exact_fraction(DISCOVERY_SHARE), 1 - exact_fraction(DISCOVERY_SHARE)]
        )
        deltas = split_exactly(table.budget.threshold_delta, [1] * len(open_names))
        for name, rho, delta in zip(
            open_names, split_exactly(discovery_rho, [1] * len(open_names)), deltas, strict=True
        ):
            table = table.discover_values(name, rho, delta)
        resolved = _resolve_within_room(self.plan, table, self.epsilon, open_names)
        learned = {mapping.of: self.shares.mappings[mapping.of] for mapping in resolved.mappings}
        rest += sum(self.shares.mappings.values()) - sum(learned.values())
        shares = replace(self.shares, one_way=rest, mappings=learned)
        return replace(self, table=table.recode(resolved.recoding), resolved=resolved, shares=shares)

    def learn_mappings(self) -> _PlanState:
        """Measure pairs in which one attribute follows from the other, and derive the mapping."""
        if not self.resolved.mappings:
            return self
        codec = Codec(self.table.schema)
        fine = self.table.recode(Recoding.fine(codec))
        cliques: list[Clique] = [(mapping.source, mapping.of) for mapping in self.resolved.mappings]
        shares = [self.shares.mappings[mapping.of] for mapping in self.resolved.mappings]
        pairs = fine.measure(cliques, shares, purpose="mapping, read off the marginal")
        positions = {name: position for position, name in enumerate(codec.names)}
        codings: dict[int, DifferenceCoding] = {
            positions[pair.clique[1]]: learn_mapping(
                pair.counts,
                anchor=positions[pair.clique[0]],
                modulus=codec.attributes[positions[pair.clique[1]]].proper_cells,
            )
            for pair in pairs
        }
        recoding = self.resolved.recoding.code_differences(codings)
        learned = MeasurementRound(fine.recoding, tuple(pairs))
        resolved = replace(self.resolved, recoding=recoding)
        return replace(self, table=self.table.recode(recoding), resolved=resolved, rounds=(*self.rounds, learned))

    def measure_one_way(self) -> _PlanState:
        """Measure one-way marginals over codes, and histograms inside codes where there are finer cells."""
        shares = one_way_shares(self.resolved, self.shares)
        rounds = list(self.rounds)
        cells = {name: share for (kind, name), share in shares.items() if kind == "cells"}
        if cells:
            fine = Recoding.fine(Codec(self.table.schema)).code_differences(self.resolved.recoding.difference_codings)
            rounds.append(_measure_round(self.table.recode(fine), cells, "histogram"))
        codes = {name: share for (kind, name), share in shares.items() if kind == "codes"}
        if plain := {name: share for name, share in codes.items() if name not in self.resolved.joint}:
            rounds.append(_measure_round(self.table, plain, "marginal"))
        if joint := dict(self.shares.joint) | {
            name: share for name, share in codes.items() if name in self.resolved.joint
        }:
            rounds.append(_measure_round(self.table, joint, "recoding, counts"))
        return replace(self, rounds=tuple(rounds))

    # ── several attributes together ──────────────────────────────────────────────────────────────────────

    def merge_rare_codes(self) -> _PlanState:
        """Merge rare codes, and more of them until all planned marginals can be measured."""
        cliques = self._cliques()
        max_codes = MAX_CODES
        while True:
            recoding = self._merge_codes(max_codes)
            cells = list(_count_cells(recoding, cliques).values())
            fits = not cells or (
                max(cells) <= self.table.limits.max_marginal_cells
                and sum(cells) <= MAX_NOISY_SHARE * self.table.noisy_values_left
            )
            if fits or max_codes == 1:
                return replace(self, table=self.table.recode(recoding))
            max_codes = max(1, max_codes * 2 // 3)

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
        recoding, releases = self.resolved.recoding, [Release(self.rounds)]
        if name in self.resolved.one_way:
            return estimate_one_way(releases, recoding, name)
        for round_ in self.rounds:
            for marginal in round_.marginals:
                if (
                    name in marginal.clique
                    and (projected := project_to_recoding(marginal, round_.recoding, recoding)) is not None
                ):
                    values = np.array(projected.project([name]))
                    return Estimate((name,), values, projected.variance * projected.values.size / values.size)
        return None

    def measure_marginals(self, progress: Progress) -> _PlanState:
        """Measure the marginals that the plan names."""
        pure = pure_steps(self.resolved, self.epsilon)
        rounds = list(self.rounds)
        if pure:
            progress(f"measuring {len(pure)} marginals with Laplace noise", 0.0)
            answers = self.table.measure_laplace(list(pure), self._planned_steps(pure))
            rounds.append(MeasurementRound(self.table.recoding, tuple(answers)))
        shares = marginal_shares(self.resolved, self.shares, _count_cells(self.table.recoding, self._cliques()))
        if shares:
            progress(f"measuring {len(shares)} marginals", 0.0)
            answers = self.table.measure(list(shares), list(shares.values()))
            rounds.append(MeasurementRound(self.table.recoding, tuple(answers)))
        return replace(self, rounds=tuple(rounds))

    def _planned_steps(self, pure: Mapping[Clique, Fraction]) -> list[Fraction]:
        """The pure steps of the budget: those of the plan, rounded down to the budget's grain."""
        order = sorted(pure, key=lambda clique: -pure[clique])
        steps = dict(zip(order, self.table.budget.pure_epsilons, strict=True))
        return [steps[clique] for clique in pure]

    def _cliques(self) -> list[Clique]:
        return [clique for planned in self.resolved.marginals for clique in planned.cliques]

    def measurements(self) -> Measurements:
        """What was measured so far."""
        table = self.table
        return Measurements(
            schema=table.schema, recoding=table.recoding, rounds=self.rounds, row_count=table.public_row_count()
        )


def _check_room(resolved: ResolvedPlan, table: PrivateTable) -> None:
    """Refuse, before anything is spent, a plan whose first steps alone exceed the limit of noisy values.

    Values that are still to be discovered are not counted.
    """
    count = _count_first_values(resolved)
    if count > table.noisy_values_left:
        raise BudgetError(
            f"mappings, joint attributes and one-way marginals of the plan need {count:,} noisy values, more than "
            f"{table.noisy_values_left:,}; give attributes bins, or leave out a transform"
        )


def _count_first_values(resolved: ResolvedPlan) -> int:
    """Count the noisy values in mappings, histograms and one-way marginals."""
    fine, codes = (
        dict(resolved.recoding.origin),
        dict(zip(resolved.recoding.names, resolved.recoding.sizes, strict=True)),
    )
    mapped = sum(fine[mapping.source] * fine[mapping.of] for mapping in resolved.mappings)
    return mapped + sum(fine[name] for name in resolved.finer) + sum(codes[name] for name in resolved.one_way)


def _resolve_within_room(plan: Plan, table: PrivateTable, epsilon: float, discovered: Sequence[str]) -> ResolvedPlan:
    """Resolve the plan after values were discovered, distinguishing as many of them as the limit allows."""
    max_cells = min(MAX_TABLE_CELLS, table.limits.max_marginal_cells)
    while True:
        resolved = resolve_plan(plan, table.schema, epsilon, discovered=discovered, max_cells=max_cells)
        if max_cells == 1 or _count_first_values(resolved) <= table.noisy_values_left:
            return resolved
        max_cells //= 2


def _measure_round(table: PrivateTable, shares: Mapping[str, Fraction], purpose: str) -> MeasurementRound:
    answers = table.measure([(name,) for name in shares], list(shares.values()), purpose=purpose)
    return MeasurementRound(table.recoding, tuple(answers))


def _count_cells(recoding: Recoding, cliques: Sequence[Clique]) -> dict[Clique, int]:
    sizes = dict(zip(recoding.names, recoding.sizes, strict=True))
    return {clique: math.prod(sizes[name] for name in clique) for clique in cliques}


def _threshold(estimate: Estimate, rare: RareThreshold, max_codes: int) -> float:
    """The noisy count that a code must reach to be kept, so that at most ``max_codes`` are."""
    kept = min(max_codes, rare.max_codes or max_codes)
    values = np.sort(estimate.values)
    lowest = np.nextafter(values[-kept], np.inf) if len(values) > kept else -np.inf
    return max(rare.threshold * math.sqrt(estimate.variance), rare.rows, float(lowest))
