"""The released artefact: what was measured, what it cost, its file, its folder, and rows compared with it."""

from dpsyn.synopsis.comparison import (
    AttributeComparison,
    MarginalComparison,
    PairComparison,
    ReleaseComparison,
    ReleaseDistance,
    ReleasedPairTable,
    compare_rows,
)
from dpsyn.synopsis.synopsis import OutputFormat, Synopsis

__all__ = [
    "AttributeComparison",
    "MarginalComparison",
    "OutputFormat",
    "PairComparison",
    "ReleaseComparison",
    "ReleaseDistance",
    "ReleasedPairTable",
    "Synopsis",
    "compare_rows",
]
