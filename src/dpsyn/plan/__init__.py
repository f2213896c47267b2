"""What a steward knows about a table, written down once: plans, their files, and what they come to at a budget."""

from dpsyn.plan.checking import budgets_of, check_plan
from dpsyn.plan.layout import Layout, Rare, Wanted, layout_of
from dpsyn.plan.plan import Plan
from dpsyn.plan.shares import Shares, by_cells, pure_steps, shares_of

__all__ = [
    "Layout",
    "Plan",
    "Rare",
    "Shares",
    "Wanted",
    "budgets_of",
    "by_cells",
    "check_plan",
    "layout_of",
    "pure_steps",
    "shares_of",
]
