"""Which marginals to measure: from released scores to cliques and shares. Post-processing: it costs nothing."""

from dpsyn.selection.bases import LONGEST, basis_sets
from dpsyn.selection.combine import combine
from dpsyn.selection.greedy import CELL_POWER, select_pairs
from dpsyn.selection.worthwhile import Choice, select_worthwhile, shrunk

__all__ = [
    "CELL_POWER",
    "LONGEST",
    "Choice",
    "basis_sets",
    "combine",
    "select_pairs",
    "select_worthwhile",
    "shrunk",
]
