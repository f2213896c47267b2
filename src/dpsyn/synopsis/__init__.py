"""The released artifact: the synopsis, its file, its release folder, and the comparison of rows with it."""

from dpsyn.synopsis.comparison import (
    AttributeComparison,
    MarginalComparison,
    PairComparison,
    ReleaseComparison,
    ReleaseDistance,
    ReleasedPairTable,
    compare_rows,
)
from dpsyn.synopsis.synopsis import Synopsis

__all__ = [
    "AttributeComparison",
    "MarginalComparison",
    "PairComparison",
    "ReleaseComparison",
    "ReleaseDistance",
    "ReleasedPairTable",
    "Synopsis",
    "compare_rows",
]
