"""How noisy the tables of a plan will be, without looking at any data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from dpsyn.accounting import Budget, Protection, default_delta
from dpsyn.errors import UserError
from dpsyn.marginals import Clique
from dpsyn.plan.entries import Mapping
from dpsyn.plan.layout import Layout, layout_of
from dpsyn.plan.plan import Plan
from dpsyn.plan.shares import Shares, budget_of, marginal_shares, pure_steps, shares_of, single_shares
from dpsyn.schema import Open, Schema

Kind = Literal["1-way", "histogram", "recoding", "mapping", "marginal"]

MOST_CODES = 1_000
"""Codes of one attribute after merging, at most."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """A table that a plan measures, and its noise.

    Attributes:
        kind: what it is measured for.
        clique: its attributes.
        cells: how many it has, at most: rare codes are merged by noisy counts, so it may have fewer.
        mechanism: ``gaussian`` or ``laplace``.
        part: the part of ρ, or for Laplace noise of ε, that it costs.
        deviation: the standard deviation of the noise in each cell.
        rows: rows per cell, if there are as many cells; for a mapping, rows for each value that it maps from.
        wrong: the part of the rows that the noise is predicted to put into wrong cells.
    """

    kind: Kind
    clique: Clique
    cells: int
    mechanism: str
    part: float
    deviation: float
    rows: float
    wrong: float

    @property
    def drowned(self) -> bool:
        """Whether the noise of a cell exceeds what a cell holds on average."""
        return self.deviation > self.rows


def predict(
    plan: Plan, schema: Schema, epsilon: float, *, delta: float | None = None, rows: int | None = None
) -> list[Predicted]:
    """The noise of every table that a plan names, in the order in which they are measured.

    ``rows`` is the public expected size unless given. Nothing private is read.
    """
    size = rows or schema.expected_size
    if not size:
        raise UserError(
            "the schema has no expected_size, and without one noise cannot be told from signal; "
            "write it into the schema, or give the rows you expect, such as rows=50000 or --rows 50000"
        )
    layout = layout_of(plan, schema, epsilon)
    pure = pure_steps(layout, epsilon)
    protection = _protection(schema)
    opened = any(isinstance(attribute, Open) for attribute in schema.measured)
    promise = default_delta(schema.expected_size) if delta is None else delta
    budget = budget_of(layout, epsilon, promise, thresholds=opened)
    return _Predictor(plan, layout, budget, protection, size, epsilon).all(pure)


def laplace_warning(plan: Plan, schema: Schema, epsilon: float) -> str | None:
    """What to say of marginals with so small a share of ε that they tell nothing; None if there are none.

    Such a share still takes from the Gaussian part. Nothing is said if the size of the table is not public.
    """
    rows, protection = schema.expected_size, _protection(schema)
    for clique, step in pure_steps(layout_of(plan, schema, epsilon), epsilon).items():
        deviation = math.sqrt(2) * float(protection.l1 / step)
        if rows and deviation > rows:
            return (
                f"the marginal of {', '.join(clique)} has so small a share of ε that the noise of a cell, "
                f"{deviation:,.0f}, exceeds the {rows:,} rows there are expected to be; give it more, or leave it out"
            )
    return None


def _protection(schema: Schema) -> Protection:
    unit = schema.unit.rows if schema.unit else 1
    return Protection(neighbours=schema.neighbours, rows=unit, unit=schema.unit.id if schema.unit else "")


class _Predictor:
    """Goes through a plan as a release does."""

    def __init__(
        self, plan: Plan, layout: Layout, budget: Budget, protection: Protection, rows: int, epsilon: float
    ) -> None:
        self.layout, self.budget, self.protection, self.rows = layout, budget, protection, rows
        self.epsilon = epsilon
        sensitivity = math.sqrt(protection.l2_squared)
        parts = shares_of(plan, layout, rho=float(budget.rho), sensitivity=sensitivity, rows=rows)
        self.shares: Shares = parts.of(budget.rho)
        self.sizes = dict(zip(layout.recoding.names, layout.recoding.sizes, strict=True))

    def all(self, pure: dict[Clique, Fraction]) -> list[Predicted]:
        origin = dict(self.layout.recoding.origin)
        found = [self._mapping(mapping, origin) for mapping in self.layout.mappings]
        found += self._histograms()
        singles = self._singles()
        found += singles
        kept = self._kept(singles)
        found += [self._laplace(clique, math.prod(kept[n] for n in clique), step) for clique, step in pure.items()]
        cells = {c: math.prod(kept[n] for n in c) for wanted in self.layout.wanted for c in wanted.cliques}
        shares = marginal_shares(self.layout, self.shares, cells)
        return found + [self._gaussian("marginal", clique, cells[clique], share) for clique, share in shares.items()]

    def _mapping(self, mapping: Mapping, origin: dict[str, int]) -> Predicted:
        """The marginal that a mapping is read off: what counts is whether the fullest cell of each line stands out."""
        cells = origin[mapping.source] * origin[mapping.of]
        found = self._gaussian("mapping", (mapping.source, mapping.of), cells, self.shares.mappings[mapping.of])
        return replace(found, rows=self.rows / origin[mapping.source])

    def _singles(self) -> list[Predicted]:
        parts = single_shares(self.layout, self.shares)
        codes = {name: share for (kind, name), share in parts.items() if kind == "codes"} | dict(self.shares.joint)
        kinds: dict[bool, Kind] = {True: "recoding", False: "1-way"}
        return [
            self._gaussian(kinds[name in self.layout.joint], (name,), self.sizes[name], share)
            for name, share in codes.items()
        ]

    def _histograms(self) -> list[Predicted]:
        origin, parts = dict(self.layout.recoding.origin), single_shares(self.layout, self.shares)
        return [
            self._gaussian("histogram", (name,), origin[name], share)
            for (kind, name), share in parts.items()
            if kind == "cells"
        ]

    def _kept(self, singles: list[Predicted]) -> dict[str, int]:
        """Codes that can be left after merging: each must reach its threshold, and all rows are only so many."""
        kept = {name: min(size, MOST_CODES) for name, size in self.sizes.items()}
        for single in singles:
            (name,) = single.clique
            rare = self.layout.rare[name]
            threshold = max(rare.threshold * single.deviation, rare.rows, 1.0)
            most = min(int(self.rows / threshold) + 1, rare.most or MOST_CODES)
            kept[name] = max(1, min(kept[name], most + 1))
        return kept

    def _gaussian(self, kind: Kind, clique: Clique, cells: int, share: Fraction) -> Predicted:
        deviation = math.sqrt(self.protection.l2_squared / (2 * share))
        return self._predicted(kind, clique, cells, "gaussian", float(share / self.budget.rho), deviation)

    def _laplace(self, clique: Clique, cells: int, step: Fraction) -> Predicted:
        deviation = math.sqrt(2) * float(self.protection.l1 / step)
        return self._predicted("marginal", clique, cells, "laplace", float(step) / self.epsilon, deviation)

    def _predicted(
        self, kind: Kind, clique: Clique, cells: int, mechanism: str, part: float, deviation: float
    ) -> Predicted:
        wrong = min(1.0, cells * deviation * math.sqrt(2 / math.pi) / (2 * self.rows))
        return Predicted(kind, clique, cells, mechanism, part, deviation, self.rows / cells, wrong)
