"""Marginals: released noisy counts, estimates, factors, the algebra on these, and comparisons of them with rows."""

from dpsyn.marginals.comparison import (
    Association,
    AttributeComparison,
    Comparison,
    GroupComparison,
    Metric,
    PairComparison,
    PairTable,
)
from dpsyn.marginals.estimate import Estimate, average_estimates
from dpsyn.marginals.factor import Factor
from dpsyn.marginals.marginal import Clique, Marginal

__all__ = [
    "Association",
    "AttributeComparison",
    "Clique",
    "Comparison",
    "Estimate",
    "Factor",
    "GroupComparison",
    "Marginal",
    "Metric",
    "PairComparison",
    "PairTable",
    "average_estimates",
]
