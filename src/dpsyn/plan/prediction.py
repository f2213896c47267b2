"""How noisy the tables of a plan will be, without looking at any data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from dpsyn.accounting import Budget, PrivacyUnit, default_delta, exact_fraction
from dpsyn.errors import PlanError, UserError
from dpsyn.marginals import Clique
from dpsyn.plan.entries import LearnedMapping
from dpsyn.plan.plan import Plan
from dpsyn.plan.resolution import ResolvedPlan, resolve_plan
from dpsyn.plan.shares import PlanShares, budget_for_plan, divide_budget, marginal_shares, one_way_shares, pure_steps
from dpsyn.schema import Schema

PredictedKind = Literal["1-way", "histogram", "recoding", "mapping", "marginal"]

MAX_MERGED_CODES = 1_000
"""Codes of one attribute after merging, at most."""


@dataclass(frozen=True, slots=True)
class PredictedMarginal:
    """A table that a plan measures, and its noise.

    Attributes:
        kind: what it is measured for.
        clique: its attributes.
        cells: how many it has, at most: rare codes are merged by noisy counts, so it may have fewer.
        mechanism: ``gaussian`` or ``laplace``.
        budget_share: the part of ρ, or for Laplace noise of ε, that it costs.
        std: the standard deviation of the noise in each cell.
        rows: rows per cell, if there are as many cells; for a mapping, rows for each value that it maps from.
        error: the part of the rows that the noise is predicted to put into wrong cells.
    """

    kind: PredictedKind
    clique: Clique
    cells: int
    mechanism: str
    budget_share: float
    std: float
    rows: float
    error: float

    @property
    def is_mostly_noise(self) -> bool:
        """Whether the noise of a cell exceeds what a cell holds on average."""
        return self.std > self.rows


def predict_noise(
    plan: Plan, schema: Schema, epsilon: float, *, delta: float | None = None, rows: int | None = None
) -> list[PredictedMarginal]:
    """The noise of every table that a plan names, in the order in which they are measured.

    ``rows`` is the public expected size unless given. Nothing private is read.
    """
    size = rows or schema.expected_size
    if not size:
        raise UserError(
            "the schema has no expected_size, and without one noise cannot be told from signal; "
            "write it into the schema, or give the rows you expect, such as rows=50000 or --rows 50000"
        )
    layout = resolve_plan(plan, schema, epsilon)
    pure = pure_steps(layout, epsilon)
    protection = _privacy_unit(schema)
    promise = default_delta(schema.expected_size) if delta is None else delta
    budget = budget_for_plan(layout, epsilon, promise, thresholds=bool(schema.open_attributes))
    return _Predictor(plan, layout, budget, protection, size, epsilon).predict_all(pure)


def laplace_noise_warning(plan: Plan, schema: Schema, epsilon: float) -> str | None:
    """What to say of marginals with so small a share of ε that they tell nothing; None if there are none.

    Such a share still takes from the Gaussian part. Nothing is said if the size of the table is not public.
    """
    rows, protection = schema.expected_size, _privacy_unit(schema)
    for clique, step in pure_steps(resolve_plan(plan, schema, epsilon), epsilon).items():
        deviation = math.sqrt(2) * float(protection.l1_sensitivity / step)
        if rows and deviation > rows:
            return (
                f"the marginal of {', '.join(clique)} has so small a share of ε that the noise of a cell, "
                f"{deviation:,.0f}, exceeds the {rows:,} rows there are expected to be; give it more, or leave it out"
            )
    return None


def _privacy_unit(schema: Schema) -> PrivacyUnit:
    unit = schema.privacy_unit.max_rows if schema.privacy_unit else 1
    return PrivacyUnit(
        neighbors=schema.neighbors, max_rows=unit, id=schema.privacy_unit.id if schema.privacy_unit else ""
    )


class _Predictor:
    """Goes through a plan as a release does."""

    def __init__(
        self, plan: Plan, layout: ResolvedPlan, budget: Budget, protection: PrivacyUnit, rows: int, epsilon: float
    ) -> None:
        self.layout, self.budget, self.protection, self.rows = layout, budget, protection, rows
        self.epsilon = epsilon
        sensitivity = math.sqrt(protection.l2_sensitivity_squared)
        parts = divide_budget(plan, layout, rho=float(budget.rho), sensitivity=sensitivity, rows=rows)
        self.shares: PlanShares = parts.in_rho(budget.rho)
        self.sizes = dict(zip(layout.recoding.names, layout.recoding.sizes, strict=True))

    def predict_all(self, pure: dict[Clique, Fraction]) -> list[PredictedMarginal]:
        origin = dict(self.layout.recoding.origin)
        found = [self._mapping(mapping, origin) for mapping in self.layout.mappings]
        found += self._histograms()
        singles = self._one_way()
        found += singles
        kept = self._merged_sizes(singles)
        found += [self._laplace(clique, math.prod(kept[n] for n in clique), step) for clique, step in pure.items()]
        cells = {c: math.prod(kept[n] for n in c) for wanted in self.layout.marginals for c in wanted.cliques}
        shares = marginal_shares(self.layout, self.shares, cells)
        return found + [self._gaussian("marginal", clique, cells[clique], share) for clique, share in shares.items()]

    def _mapping(self, mapping: LearnedMapping, origin: dict[str, int]) -> PredictedMarginal:
        """The marginal that a mapping is read off: what counts is whether the fullest cell of each line stands out."""
        cells = origin[mapping.source] * origin[mapping.of]
        found = self._gaussian("mapping", (mapping.source, mapping.of), cells, self.shares.mappings[mapping.of])
        return replace(found, rows=self.rows / origin[mapping.source])

    def _one_way(self) -> list[PredictedMarginal]:
        parts = one_way_shares(self.layout, self.shares)
        codes = {name: share for (kind, name), share in parts.items() if kind == "codes"} | dict(self.shares.joint)
        kinds: dict[bool, PredictedKind] = {True: "recoding", False: "1-way"}
        return [
            self._gaussian(kinds[name in self.layout.joint], (name,), self.sizes[name], share)
            for name, share in codes.items()
        ]

    def _histograms(self) -> list[PredictedMarginal]:
        origin, parts = dict(self.layout.recoding.origin), one_way_shares(self.layout, self.shares)
        return [
            self._gaussian("histogram", (name,), origin[name], share)
            for (kind, name), share in parts.items()
            if kind == "cells"
        ]

    def _merged_sizes(self, singles: list[PredictedMarginal]) -> dict[str, int]:
        """Codes that can be left after merging: each must reach its threshold, and all rows are only so many."""
        kept = {name: min(size, MAX_MERGED_CODES) for name, size in self.sizes.items()}
        for single in singles:
            (name,) = single.clique
            rare = self.layout.rare[name]
            threshold = max(rare.threshold * single.std, rare.rows, 1.0)
            most = min(int(self.rows / threshold) + 1, rare.max_codes or MAX_MERGED_CODES)
            kept[name] = max(1, min(kept[name], most + 1))
        return kept

    def _gaussian(self, kind: PredictedKind, clique: Clique, cells: int, share: Fraction) -> PredictedMarginal:
        deviation = math.sqrt(self.protection.l2_sensitivity_squared / (2 * share))
        return self._predict(kind, clique, cells, "gaussian", float(share / self.budget.rho), deviation)

    def _laplace(self, clique: Clique, cells: int, step: Fraction) -> PredictedMarginal:
        deviation = math.sqrt(2) * float(self.protection.l1_sensitivity / step)
        return self._predict("marginal", clique, cells, "laplace", float(step) / self.epsilon, deviation)

    def _predict(
        self, kind: PredictedKind, clique: Clique, cells: int, mechanism: str, part: float, deviation: float
    ) -> PredictedMarginal:
        wrong = min(1.0, cells * deviation * math.sqrt(2 / math.pi) / (2 * self.rows))
        return PredictedMarginal(kind, clique, cells, mechanism, part, deviation, self.rows / cells, wrong)


# ── Whether a plan fits a schema, at every budget ──


def representative_epsilons(plan: Plan) -> list[float]:
    """An ε inside of every range within which the plan stays the same, ascending."""
    conditions = [entry.condition for entry in (*plan.transforms, *plan.marginals)]
    edges = sorted({end for c in conditions for end in (c.low, c.high) if 0 < end < math.inf})
    if not edges:
        return [1.0]
    inside = [edges[0] / 2, *(math.sqrt(a * b) for a, b in pairwise(edges)), edges[-1] * 2]
    return sorted({*inside, *edges})


def check_plan(plan: Plan, schema: Schema) -> None:
    """Refuse a plan that does not fit a schema at some ε; an error leads to the entry."""
    for epsilon in representative_epsilons(plan):
        check_plan_at(plan, schema, epsilon)


def check_plan_at(plan: Plan, schema: Schema, epsilon: float) -> None:
    """Refuse a plan that does not fit a schema at one ε."""
    layout = resolve_plan(plan, schema, epsilon)
    divide_budget(plan, layout, rho=1.0, sensitivity=1.0, rows=None)
    pure = pure_steps(layout, epsilon)
    if pure and sum(pure.values()) >= exact_fraction(epsilon):
        raise PlanError("the marginals with laplace noise take all of ε; leave some for the others", ("marginals",))
