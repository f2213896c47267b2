"""Marginals: released noisy counts, estimates computed from them, factors, and the algebra on these."""

from dpsyn.marginals.estimate import Estimate, average_estimates
from dpsyn.marginals.factor import Factor
from dpsyn.marginals.marginal import Clique, Marginal

__all__ = ["Clique", "Estimate", "Factor", "Marginal", "average_estimates"]
