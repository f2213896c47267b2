"""Released counts and the algebra on them."""

from dpsyn.marginals.marginal import Clique, Marginal

__all__ = ["Clique", "Marginal"]
