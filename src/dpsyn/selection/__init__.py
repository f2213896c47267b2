"""Which marginals to measure: from released scores to cliques and shares. Post-processing: it costs nothing."""

from dpsyn.selection.combine import combine
from dpsyn.selection.greedy import CELL_POWER, select_pairs

__all__ = ["CELL_POWER", "combine", "select_pairs"]
