"""The data owner's knowledge about a table as a file: plans, what they come to at an ε, predictions, drafts."""

from dpsyn.plan.draft import draft_plan
from dpsyn.plan.entries import check_weights
from dpsyn.plan.exploration import Dependence, Exploration, ExploredCell, ExploredTable, select_forest
from dpsyn.plan.plan import Plan
from dpsyn.plan.prediction import (
    PredictedMarginal,
    check_plan,
    laplace_noise_warning,
    predict_noise,
    representative_epsilons,
)
from dpsyn.plan.resolution import MAX_TABLE_CELLS, PlannedMarginals, RareThreshold, ResolvedPlan, resolve_plan
from dpsyn.plan.shares import (
    PlanShares,
    budget_for_plan,
    divide_budget,
    marginal_shares,
    one_way_shares,
    pure_steps,
    split_by_cells,
)

__all__ = [
    "MAX_TABLE_CELLS",
    "Dependence",
    "Exploration",
    "ExploredCell",
    "ExploredTable",
    "Plan",
    "PlanShares",
    "PlannedMarginals",
    "PredictedMarginal",
    "RareThreshold",
    "ResolvedPlan",
    "budget_for_plan",
    "check_plan",
    "check_weights",
    "divide_budget",
    "draft_plan",
    "laplace_noise_warning",
    "marginal_shares",
    "one_way_shares",
    "predict_noise",
    "pure_steps",
    "representative_epsilons",
    "resolve_plan",
    "select_forest",
    "split_by_cells",
]
