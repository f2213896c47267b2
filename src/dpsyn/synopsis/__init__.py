"""The released artifact: the synopsis, its file, its release folder, and the comparison of rows with it."""

from dpsyn.synopsis.comparison import MarginalComparison, ReleaseComparison, compare_rows
from dpsyn.synopsis.ledger_checkpoint import read_ledger_checkpoint
from dpsyn.synopsis.replicates import Replicates
from dpsyn.synopsis.synopsis import Synopsis

__all__ = [
    "MarginalComparison",
    "ReleaseComparison",
    "Replicates",
    "Synopsis",
    "compare_rows",
    "read_ledger_checkpoint",
]
