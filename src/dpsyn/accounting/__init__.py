"""The arithmetic of privacy: budgets, what steps cost, the certificate and the ledger. It never sees data."""

from dpsyn.accounting.conversion import epsilon_for, rho_for, sigma_for
from dpsyn.accounting.exact import exact, split
from dpsyn.accounting.protection import Protection
from dpsyn.accounting.spends import Exponential, Gaussian, Laplace, Spend, Threshold

__all__ = [
    "Exponential",
    "Gaussian",
    "Laplace",
    "Protection",
    "Spend",
    "Threshold",
    "epsilon_for",
    "exact",
    "rho_for",
    "sigma_for",
    "split",
]
