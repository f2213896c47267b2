"""Which marginals to measure: from released scores to cliques and shares. Post-processing: it costs nothing."""

from dpsyn.selection.combine import combine
from dpsyn.selection.greedy import CELL_POWER, select_pairs
from dpsyn.selection.worthwhile import Choice, select_worthwhile, shrunk

__all__ = ["CELL_POWER", "Choice", "combine", "select_pairs", "select_worthwhile", "shrunk"]
