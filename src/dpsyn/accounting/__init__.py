"""The arithmetic of privacy: budgets, what steps cost, the certificate and the ledger. It never sees data."""

from dpsyn.accounting.choice import NoiseChoice, crossing, laplace_wins, noise_choices
from dpsyn.accounting.conversion import epsilon_for, rho_for, sigma_for
from dpsyn.accounting.exact import exact, split
from dpsyn.accounting.protection import Protection
from dpsyn.accounting.spends import Exponential, Gaussian, Laplace, Spend, Threshold

__all__ = [
    "Exponential",
    "Gaussian",
    "Laplace",
    "NoiseChoice",
    "Protection",
    "Spend",
    "Threshold",
    "crossing",
    "epsilon_for",
    "exact",
    "laplace_wins",
    "noise_choices",
    "rho_for",
    "sigma_for",
    "split",
]
