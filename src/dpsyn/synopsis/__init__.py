"""The released artefact: what was measured, what it cost, its file, its folder, and rows compared with it."""

from dpsyn.synopsis.comparison import MarginalComparison, ReleaseComparison, compare_rows
from dpsyn.synopsis.synopsis import OutputFormat, Synopsis

__all__ = ["MarginalComparison", "OutputFormat", "ReleaseComparison", "Synopsis", "compare_rows"]
