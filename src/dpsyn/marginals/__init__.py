"""Released counts, what is worked out from them, and the algebra on both."""

from dpsyn.marginals.estimate import Estimate
from dpsyn.marginals.factor import Factor
from dpsyn.marginals.itemsets import ItemsetCounts
from dpsyn.marginals.marginal import Clique, Marginal

__all__ = ["Clique", "Estimate", "Factor", "ItemsetCounts", "Marginal"]
