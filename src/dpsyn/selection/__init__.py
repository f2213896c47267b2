"""Marginal selection: from released scores to the cliques to measure and their budgets; view schemes; basis sets.

Post-processing: it costs no privacy budget.
"""

from dpsyn.selection.basis_sets import MAX_BASIS_ITEMS, build_basis_sets
from dpsyn.selection.covering_design import BlockCapacity, build_covering_design
from dpsyn.selection.marginal_selection import (
    MarginalChoice,
    PredictedErrors,
    add_background,
    estimate_distances,
    max_distance,
    max_spread,
    predict_errors,
    select_marginals,
    select_visible,
)
from dpsyn.selection.merge import MergedMarginals, merge_marginals
from dpsyn.selection.pair_selection import CELL_POWER, combine_pairs, select_pairs
from dpsyn.selection.views import (
    AllViews,
    CoveringViews,
    RandomViews,
    ViewNoise,
    ViewScheme,
    ViewSelection,
    parse_views,
    select_views,
)

__all__ = [
    "CELL_POWER",
    "MAX_BASIS_ITEMS",
    "AllViews",
    "BlockCapacity",
    "CoveringViews",
    "MarginalChoice",
    "MergedMarginals",
    "PredictedErrors",
    "RandomViews",
    "ViewNoise",
    "ViewScheme",
    "ViewSelection",
    "add_background",
    "build_basis_sets",
    "build_covering_design",
    "combine_pairs",
    "estimate_distances",
    "max_distance",
    "max_spread",
    "merge_marginals",
    "parse_views",
    "predict_errors",
    "select_marginals",
    "select_pairs",
    "select_views",
    "select_visible",
]
