"""The arithmetic of privacy: costs of mechanisms, budgets, composition, the ledger and the certificate.

It never sees data.
"""

from dpsyn.accounting.budget import (
    Account,
    Budget,
    MeasurementRecord,
    Reduction,
    check_budget,
    combine_budgets,
    default_delta,
    delta_warning,
    marginal_cost,
)
from dpsyn.accounting.cap import Cap
from dpsyn.accounting.certificate import Certificate, RunOutcome
from dpsyn.accounting.checkpoint import LedgerCheckpoint, read_ledger_checkpoint
from dpsyn.accounting.composition import Composition, EpsilonBounds
from dpsyn.accounting.conversion import epsilon_for, rho_for, sigma_for
from dpsyn.accounting.costs import Exponential, Gaussian, Laplace, MechanismCost, PartitionSelection
from dpsyn.accounting.exact_numbers import exact_fraction, split_exactly
from dpsyn.accounting.hash_chain import LedgerHead
from dpsyn.accounting.large_epsilon import MAX_UNASKED_EPSILON, check_large_epsilon
from dpsyn.accounting.ledger import DatasetAccount, Ledger, LedgerVerification, RunAccount
from dpsyn.accounting.noise_comparison import (
    NoiseChoice,
    compare_noise_mechanisms,
    laplace_gaussian_crossover,
    max_marginals,
)
from dpsyn.accounting.privacy_unit import PrivacyUnit
from dpsyn.accounting.released_answer import ReleasedAnswer, hash_answer
from dpsyn.accounting.run import Run

__all__ = [
    "MAX_UNASKED_EPSILON",
    "Account",
    "Budget",
    "Cap",
    "Certificate",
    "Composition",
    "DatasetAccount",
    "EpsilonBounds",
    "Exponential",
    "Gaussian",
    "Laplace",
    "Ledger",
    "LedgerCheckpoint",
    "LedgerHead",
    "LedgerVerification",
    "MeasurementRecord",
    "MechanismCost",
    "NoiseChoice",
    "PartitionSelection",
    "PrivacyUnit",
    "Reduction",
    "ReleasedAnswer",
    "Run",
    "RunAccount",
    "RunOutcome",
    "check_budget",
    "check_large_epsilon",
    "combine_budgets",
    "compare_noise_mechanisms",
    "default_delta",
    "delta_warning",
    "epsilon_for",
    "exact_fraction",
    "hash_answer",
    "laplace_gaussian_crossover",
    "marginal_cost",
    "max_marginals",
    "read_ledger_checkpoint",
    "rho_for",
    "sigma_for",
    "split_exactly",
]
