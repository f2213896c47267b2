"""Whether a plan fits a schema, at every budget."""

from __future__ import annotations

import math
from itertools import pairwise

from dpsyn.accounting import exact
from dpsyn.errors import SchemaError
from dpsyn.plan.layout import layout_of
from dpsyn.plan.plan import Plan
from dpsyn.plan.shares import pure_steps, shares_of
from dpsyn.schema import Schema


def budgets_of(plan: Plan) -> list[float]:
    """An ε inside of every range within which the plan stays the same, ascending."""
    conditions = [entry.condition for entry in (*plan.transforms, *plan.marginals)]
    edges = sorted({end for c in conditions for end in (c.low, c.high) if 0 < end < math.inf})
    if not edges:
        return [1.0]
    inside = [edges[0] / 2, *(math.sqrt(a * b) for a, b in pairwise(edges)), edges[-1] * 2]
    return sorted({*inside, *edges})


def check_plan(plan: Plan, schema: Schema) -> None:
    """Refuse a plan that does not fit a schema at some ε; an error leads to the entry."""
    for epsilon in budgets_of(plan):
        check_plan_at(plan, schema, epsilon)


def check_plan_at(plan: Plan, schema: Schema, epsilon: float) -> None:
    """Refuse a plan that does not fit a schema at one ε."""
    layout = layout_of(plan, schema, epsilon)
    shares_of(plan, layout, rho=1.0, sensitivity=1.0, rows=None)
    pure = pure_steps(layout, epsilon)
    if pure and sum(pure.values()) >= exact(epsilon):
        raise SchemaError("the marginals with laplace noise take all of ε; leave some for the others", ("marginals",))
