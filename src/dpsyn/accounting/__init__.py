"""The arithmetic of privacy: budgets, what steps cost, the certificate and the ledger. It never sees data."""

from dpsyn.accounting.account import Account, Draw, check_plan
from dpsyn.accounting.budget import Budget
from dpsyn.accounting.certificate import Certificate
from dpsyn.accounting.chain import Head
from dpsyn.accounting.choice import NoiseChoice, laplace_wins, noise_choices, noise_crossing
from dpsyn.accounting.composition import Composition, Figures
from dpsyn.accounting.conversion import epsilon_for, rho_for, sigma_for
from dpsyn.accounting.delta import default_delta, delta_warning
from dpsyn.accounting.exact import exact, split
from dpsyn.accounting.ledger import Cap, DatasetAccount, Ledger, RunAccount, Verification
from dpsyn.accounting.protection import Protection
from dpsyn.accounting.run import Run
from dpsyn.accounting.spends import Exponential, Gaussian, Laplace, Spend, Threshold
from dpsyn.accounting.witness import Witness, read_witness

__all__ = [
    "Account",
    "Budget",
    "Cap",
    "Certificate",
    "Composition",
    "DatasetAccount",
    "Draw",
    "Exponential",
    "Figures",
    "Gaussian",
    "Head",
    "Laplace",
    "Ledger",
    "NoiseChoice",
    "Protection",
    "Run",
    "RunAccount",
    "Spend",
    "Threshold",
    "Verification",
    "Witness",
    "check_plan",
    "default_delta",
    "delta_warning",
    "epsilon_for",
    "exact",
    "laplace_wins",
    "noise_choices",
    "noise_crossing",
    "read_witness",
    "rho_for",
    "sigma_for",
    "split",
]
