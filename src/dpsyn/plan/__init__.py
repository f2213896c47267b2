"""What a steward knows about a table, written down once: plans, their files, and what they come to at a budget."""

from dpsyn.plan.checking import budgets_of, check_plan
from dpsyn.plan.drafting import draft_plan
from dpsyn.plan.entries import check_weights
from dpsyn.plan.exploring import Dependence, Exploration, explored
from dpsyn.plan.layout import MOST_CELLS, Layout, Rare, layout_of
from dpsyn.plan.plan import Plan
from dpsyn.plan.predicting import Predicted, laplace_warning, predict
from dpsyn.plan.shares import Shares, budget_of, by_cells, marginal_shares, pure_steps, shares_of, single_shares
from dpsyn.plan.wanted import Wanted

__all__ = [
    "MOST_CELLS",
    "Dependence",
    "Exploration",
    "Layout",
    "Plan",
    "Predicted",
    "Rare",
    "Shares",
    "Wanted",
    "budget_of",
    "budgets_of",
    "by_cells",
    "check_plan",
    "check_weights",
    "draft_plan",
    "explored",
    "laplace_warning",
    "layout_of",
    "marginal_shares",
    "predict",
    "pure_steps",
    "shares_of",
    "single_shares",
]
