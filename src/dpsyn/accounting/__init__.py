"""The arithmetic of privacy: budgets, what steps cost, the certificate and the ledger. It never sees data."""

from dpsyn.accounting.conversion import epsilon_for, rho_for, sigma_for
from dpsyn.accounting.exact import exact, split

__all__ = [
    "epsilon_for",
    "exact",
    "rho_for",
    "sigma_for",
    "split",
]
