"""The cap of a dataset: the limit on what all of its releases may cost together."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsyn.accounting.budget import THRESHOLD_SHARE
from dpsyn.accounting.conversion import epsilon_for, rho_for
from dpsyn.accounting.exact_numbers import Number, exact_fraction, format_short, round_down
from dpsyn.errors import BudgetError


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The limit on what all releases of a dataset may cost together.

    A tenth of δ is for partition selection; the rest goes with ρ into the tight conversion. So all releases of the
    dataset together are (ε, δ)-DP with the ε shown.
    """

    rho: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if self.rho <= 0 or not 0 < self.delta < 1:
            raise BudgetError(
                f"a cap of ρ = {float(self.rho):g} and δ = {format_short(self.delta)} is not valid; "
                f"give a positive ρ and a δ between 0 and 1, such as 1e-9"
            )

    @classmethod
    def for_guarantee(cls, epsilon: Number, delta: Number) -> Cap:
        """The cap that guarantees (ε, δ) for all releases together."""
        whole = round_down(exact_fraction(delta))
        if not 0 < whole < 1:
            raise BudgetError(f"δ is {delta}; a cap needs a δ from 1e-36 to below 1, such as 1e-9")
        return cls(rho=rho_for(epsilon, whole * (1 - THRESHOLD_SHARE), "zcdp"), delta=whole)

    @property
    def threshold_delta(self) -> Fraction:
        """The part of δ for partition selection, over all releases."""
        return self.delta * THRESHOLD_SHARE

    @property
    def epsilon(self) -> float:
        """The ε of all releases of the dataset together, at δ."""
        return epsilon_for(self.rho, self.delta - self.threshold_delta, "zcdp")
