"""Predict the noise of a plan's marginals and check a plan against a schema, without reading any data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from dpsyn.accounting import Budget, Laplace, PrivacyUnit, default_delta, exact_fraction
from dpsyn.errors import PlanError, UserError
from dpsyn.marginals import Clique
from dpsyn.plan.entries import LearnedMapping
from dpsyn.plan.plan import Plan
from dpsyn.plan.resolution import ResolvedPlan, resolve_plan
from dpsyn.plan.shares import PlanShares, budget_for_plan, divide_budget, marginal_shares, one_way_shares, pure_steps
from dpsyn.schema import Schema

PredictedKind = Literal["one-way", "histogram", "recoding", "mapping", "marginal"]

MAX_MERGED_CODES = 1_000
"""The largest number of codes of one attribute after merging."""


@dataclass(frozen=True, slots=True)
class PredictedMarginal:
    """A marginal that a plan measures, and its predicted noise.

    Attributes:
        kind: what it is measured for.
        clique: its attributes.
        cells: its number of cells, at most: rare codes are merged by noisy counts, so it may have fewer.
        mechanism: ``gaussian`` or ``laplace``.
        budget_share: the part of ρ, or for Laplace noise of ε, that it costs.
        std: the standard deviation of the noise in each cell.
        rows: rows per cell, with that many cells; for a mapping, rows per value that it maps from.
        error: the fraction of the rows that the noise is predicted to put into wrong cells.
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
    """Predict the noise of every marginal that a plan names, in the order in which they are measured.

    ``rows`` is the public expected size unless given. Nothing private is read.
    """
    size = rows or schema.expected_size
    if not size:
        raise UserError(
            "the schema has no expected_size, without which noise cannot be compared with signal; "
            "write it into the schema, or give the rows you expect, such as rows=50000 or --rows 50000"
        )
    resolved = resolve_plan(plan, schema, epsilon)
    pure = pure_steps(resolved, epsilon)
    unit = declared_unit(schema)
    delta = default_delta(schema.expected_size) if delta is None else delta
    budget = budget_for_plan(resolved, epsilon, delta, thresholds=bool(schema.open_attributes))
    return _Predictor(plan, resolved, budget, unit, size, epsilon).predict_all(pure)


def laplace_noise_warning(plan: Plan, schema: Schema, epsilon: float) -> str | None:
    """A warning about Laplace marginals whose share of ε is so small that they are pure noise; None if there are none.

    Such a share still takes budget from the Gaussian part. There is no warning if the table's size is not public.
    """
    rows, unit = schema.expected_size, declared_unit(schema)
    for clique, step in pure_steps(resolve_plan(plan, schema, epsilon), epsilon).items():
        std = Laplace.for_epsilon(step, unit.l1_sensitivity).std
        if rows and std > rows:
            return (
                f"the marginal of {', '.join(clique)} has so small a share of ε that the noise of a cell, "
                f"{std:,.0f}, exceeds the {rows:,} expected rows; give it more, or leave it out"
            )
    return None


def declared_unit(schema: Schema) -> PrivacyUnit:
    """The privacy unit and the neighboring relation that a schema declares."""
    declared = schema.privacy_unit
    return PrivacyUnit(
        neighbors=schema.neighbors, id=declared.id if declared else "", max_rows=declared.max_rows if declared else 1
    )


class _Predictor:
    """Goes through a plan in the order of a release."""

    def __init__(
        self, plan: Plan, resolved: ResolvedPlan, budget: Budget, unit: PrivacyUnit, rows: int, epsilon: float
    ) -> None:
        self.resolved, self.budget, self.unit, self.rows = resolved, budget, unit, rows
        self.epsilon = epsilon
        sensitivity = math.sqrt(unit.l2_sensitivity_squared)
        parts = divide_budget(plan, resolved, rho=float(budget.rho), sensitivity=sensitivity, rows=rows)
        self.shares: PlanShares = parts.in_rho(budget.rho)
        self.sizes = dict(zip(resolved.recoding.names, resolved.recoding.sizes, strict=True))

    def predict_all(self, pure: dict[Clique, Fraction]) -> list[PredictedMarginal]:
        origin = dict(self.resolved.recoding.origin)
        predicted = [self._mapping(mapping, origin) for mapping in self.resolved.mappings]
        predicted += self._histograms()
        one_way = self._one_way()
        predicted += one_way
        sizes = self._merged_sizes(one_way)
        predicted += [self._laplace(clique, math.prod(sizes[n] for n in clique), step) for clique, step in pure.items()]
        cells = {c: math.prod(sizes[n] for n in c) for planned in self.resolved.marginals for c in planned.cliques}
        shares = marginal_shares(self.resolved, self.shares, cells)
        return predicted + [self._gaussian("marginal", c, cells[c], rho) for c, rho in shares.items()]

    def _mapping(self, mapping: LearnedMapping, origin: dict[str, int]) -> PredictedMarginal:
        """The marginal that determines a mapping: the largest cell of each line must stand out from the noise."""
        cells = origin[mapping.source] * origin[mapping.of]
        marginal = self._gaussian("mapping", (mapping.source, mapping.of), cells, self.shares.mappings[mapping.of])
        return replace(marginal, rows=self.rows / origin[mapping.source])

    def _one_way(self) -> list[PredictedMarginal]:
        parts = one_way_shares(self.resolved, self.shares)
        codes = {name: share for (kind, name), share in parts.items() if kind == "codes"} | dict(self.shares.joint)
        kinds: dict[bool, PredictedKind] = {True: "recoding", False: "one-way"}
        return [
            self._gaussian(kinds[name in self.resolved.joint], (name,), self.sizes[name], share)
            for name, share in codes.items()
        ]

    def _histograms(self) -> list[PredictedMarginal]:
        origin, parts = dict(self.resolved.recoding.origin), one_way_shares(self.resolved, self.shares)
        return [
            self._gaussian("histogram", (name,), origin[name], share)
            for (kind, name), share in parts.items()
            if kind == "cells"
        ]

    def _merged_sizes(self, one_way: list[PredictedMarginal]) -> dict[str, int]:
        """The number of codes that can be left after merging: each must reach its threshold with the rows there are."""
        sizes = {name: min(size, MAX_MERGED_CODES) for name, size in self.sizes.items()}
        for marginal in one_way:
            (name,) = marginal.clique
            rare = self.resolved.rare[name]
            threshold = max(rare.threshold * marginal.std, rare.rows, 1.0)
            max_codes = min(int(self.rows / threshold) + 1, rare.max_codes or MAX_MERGED_CODES)
            sizes[name] = max(1, min(sizes[name], max_codes + 1))
        return sizes

    def _gaussian(self, kind: PredictedKind, clique: Clique, cells: int, rho: Fraction) -> PredictedMarginal:
        std = math.sqrt(self.unit.l2_sensitivity_squared / (2 * rho))
        return self._predict(kind, clique, cells, "gaussian", float(rho / self.budget.rho), std)

    def _laplace(self, clique: Clique, cells: int, step: Fraction) -> PredictedMarginal:
        std = Laplace.for_epsilon(step, self.unit.l1_sensitivity).std
        return self._predict("marginal", clique, cells, "laplace", float(step) / self.epsilon, std)

    def _predict(
        self, kind: PredictedKind, clique: Clique, cells: int, mechanism: str, share: float, std: float
    ) -> PredictedMarginal:
        error = min(1.0, cells * std * math.sqrt(2 / math.pi) / (2 * self.rows))
        return PredictedMarginal(kind, clique, cells, mechanism, share, std, self.rows / cells, error)


# ── whether a plan fits a schema, at every ε ─────────────────────────────────────────────────────────────────


def representative_epsilons(plan: Plan) -> list[float]:
    """One ε inside every range of ε in which the plan stays the same, ascending."""
    conditions = [entry.condition for entry in (*plan.transforms, *plan.marginals)]
    edges = sorted({end for c in conditions for end in (c.low, c.high) if 0 < end < math.inf})
    if not edges:
        return [1.0]
    inside = [edges[0] / 2, *(math.sqrt(a * b) for a, b in pairwise(edges)), edges[-1] * 2]
    return sorted({*inside, *edges})


def check_plan(plan: Plan, schema: Schema) -> None:
    """Raise a PlanError, with the path of the entry, if a plan does not fit a schema at some ε."""
    for epsilon in representative_epsilons(plan):
        check_plan_at(plan, schema, epsilon)


def check_plan_at(plan: Plan, schema: Schema, epsilon: float) -> None:
    """Raise a PlanError if a plan does not fit a schema at one ε."""
    resolved = resolve_plan(plan, schema, epsilon)
    divide_budget(plan, resolved, rho=1.0, sensitivity=1.0, rows=None)
    pure = pure_steps(resolved, epsilon)
    if pure and sum(pure.values()) >= exact_fraction(epsilon):
        raise PlanError("the marginals with Laplace noise take all of ε; leave some for the others", ("marginals",))
