"""Which marginals to measure: from released scores to cliques and shares. Post-processing: it costs nothing."""

from dpsyn.selection.bases import LONGEST, basis_sets
from dpsyn.selection.combine import combine
from dpsyn.selection.covering import Room, covering_design
from dpsyn.selection.greedy import CELL_POWER, select_pairs
from dpsyn.selection.merging import Merged, merge
from dpsyn.selection.views import Covering, Every, Noise, Random, ViewPlan, Views, parse_views, plan_views
from dpsyn.selection.worthwhile import Choice, select_worthwhile, shrunk

__all__ = [
    "CELL_POWER",
    "LONGEST",
    "Choice",
    "Covering",
    "Every",
    "Merged",
    "Noise",
    "Random",
    "Room",
    "ViewPlan",
    "Views",
    "basis_sets",
    "combine",
    "covering_design",
    "merge",
    "parse_views",
    "plan_views",
    "select_pairs",
    "select_worthwhile",
    "shrunk",
]
