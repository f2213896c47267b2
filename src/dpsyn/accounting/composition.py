"""Composition: the cost of several steps together, by zCDP, by privacy loss distributions, and by adding pure ε.

**Why one Gaussian and a list of pure steps suffice**, although a run chooses its steps adaptively: fix two neighboring
tables and a bit that states which one is the true table. A Brownian motion with unit drift if the bit is 1, observed
for μ² units of time, can answer any sequence of Gaussian steps whose μᵢ² add up to at most μ², each chosen after the
earlier answers, by letting time continue for μᵢ² (Smith and Thakurta 2022). A randomized response to the bit with
parameter ε can answer one ε-DP step, chosen as late as one likes (Kairouz, Oh and Viswanath 2015), and also several
whose ε, chosen adaptively, add up to at most its own: together they are one interactive ε-DP mechanism (Rogers, Roth,
Ullman and Vadhan 2016), and such a mechanism is post-processing of the response whatever happens between its steps
(Vadhan and Wang 2021). So the whole run is post-processing of one Gaussian with that μ and of independent randomized
responses with the ε that were fixed before the first measurement, in whatever order they are used. The privacy loss
distribution of that product is computed here by ``dp_accounting``, rounded towards a larger ε.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dpsyn.accounting.conversion import MARGIN, Floats, epsilon_for, gaussian_log_delta
from dpsyn.accounting.costs import MechanismCost, pure_rho

MAX_PLD_EPSILON = 50
"""Above it no privacy loss distribution is computed: the certified ε is then that of zCDP."""

PLD_INTERVAL = 1e-4
"""The grid of privacy losses, relative to ε."""

FFT_ERROR = 1e-14
"""The error in δ that floating point may cause when loss distributions are convolved; it is subtracted from δ."""

_MAX_ATOMS = 2**17


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """Several steps together, in any order, chosen adaptively or not.

    Attributes:
        rho: the sum of costs in zCDP.
        mu_squared: the sum of (Δ/σ)² over the Gaussian steps.
        pure_epsilons: the ε of all pure steps, largest first.
        delta: the sum of δ over the partition selections.
    """

    rho: Fraction = Fraction(0)
    mu_squared: Fraction = Fraction(0)
    pure_epsilons: tuple[Fraction, ...] = ()
    delta: Fraction = Fraction(0)

    @classmethod
    def of(cls, costs: Sequence[MechanismCost]) -> Composition:
        """The composition of these steps."""
        pure = (step for cost in costs for step in cost.pure_epsilons)
        return cls(
            rho=sum((cost.rho for cost in costs), Fraction(0)),
            mu_squared=sum((cost.mu_squared for cost in costs), Fraction(0)),
            pure_epsilons=tuple(sorted(pure, reverse=True)),
            delta=sum((cost.delta for cost in costs), Fraction(0)),
        )

    @property
    def gaussian_rho(self) -> Fraction:
        """The part of ρ that the Gaussian steps cost."""
        return self.rho - pure_rho(self.pure_epsilons)

    def compose(self, cost: MechanismCost) -> Composition:
        """This composition and one more step."""
        return Composition(
            rho=self.rho + cost.rho,
            mu_squared=self.mu_squared + cost.mu_squared,
            pure_epsilons=tuple(sorted(self.pure_epsilons + cost.pure_epsilons, reverse=True))
            if cost.pure_epsilons
            else self.pure_epsilons,
            delta=self.delta + cost.delta,
        )

    def epsilon_bounds(self, epsilon: Fraction, delta: Fraction, stated_epsilon: float | None = None) -> EpsilonBounds:
        """The smallest ε that each kind of accounting certifies at δ, for a guarantee of ε.

        A ``stated_epsilon`` by the privacy loss distribution is accepted without computing it if a closed formula
        proves it. That takes milliseconds, while importing the library of loss distributions takes a second alone.
        """
        left = float(delta - self.delta)
        if not self.mu_squared and not self.pure_epsilons:
            return EpsilonBounds(zcdp=0.0, pld=0.0, basic=Fraction(0))
        basic = None if self.mu_squared or delta < self.delta else sum(self.pure_epsilons, Fraction(0))
        if left <= 0:
            return EpsilonBounds(zcdp=math.inf, pld=None, basic=basic)
        zcdp = epsilon_for(self.rho, left * (1 - MARGIN), "zcdp")
        smaller = min(zcdp, float(epsilon))
        if smaller <= 0 or epsilon > MAX_PLD_EPSILON:
            return EpsilonBounds(zcdp=zcdp, pld=None, basic=basic)
        if (
            stated_epsilon is not None
            and 0 < stated_epsilon <= epsilon
            and self._satisfies_closed_form(stated_epsilon, left)
        ):
            return EpsilonBounds(zcdp=zcdp, pld=stated_epsilon, basic=basic)
        pld = pld_epsilon(self.mu_squared, self.pure_epsilons, left * (1 - MARGIN), smaller * PLD_INTERVAL)
        return EpsilonBounds(zcdp=zcdp, pld=pld, basic=basic)

    def satisfies(self, epsilon: Fraction, delta: Fraction) -> bool:
        """Whether a closed formula proves that the steps are (ε, δ)-DP; it takes milliseconds for any numbers."""
        left = float(delta - self.delta)
        if not self.mu_squared and sum(self.pure_epsilons) <= epsilon and delta >= self.delta:
            return True
        if left <= 0:
            return False
        if epsilon <= MAX_PLD_EPSILON and self._satisfies_closed_form(math.nextafter(float(epsilon), 0), left):
            return True
        return epsilon_for(self.rho, left * (1 - MARGIN), "zcdp") <= epsilon

    def _satisfies_closed_form(self, epsilon: float, delta: float) -> bool:
        """Whether the formula of one Gaussian and randomized responses proves (ε, δ)-DP."""
        return bool(self.mu_squared) and log_delta(epsilon, math.sqrt(self.mu_squared), self.pure_epsilons) <= math.log(
            delta
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonBounds:
    """The ε of a composition, computed in several ways; each of them is a valid bound.

    Attributes:
        zcdp: ε by tight conversion of the sum of ρ; a theorem for discrete noise chosen adaptively.
        pld: ε by the privacy loss distribution; None where it is not computed.
        basic: the sum of pure ε; None if there is Gaussian noise.
    """

    zcdp: float
    pld: float | None
    basic: Fraction | None

    @property
    def epsilon(self) -> float | Fraction:
        """The certified ε: the smallest of the bounds."""
        return min(bound for bound in (self.zcdp, self.pld, self.basic) if bound is not None)

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON; infinity is written as null."""
        finite = self.zcdp if math.isfinite(self.zcdp) else None
        return {"zcdp": finite, "pld": self.pld, "basic": None if self.basic is None else float(self.basic)}


@lru_cache(maxsize=1024)
def pld_epsilon(
    mu_squared: Fraction, pure_epsilons: tuple[Fraction, ...], delta: float, interval: float
) -> float | None:
    """The smallest ε at δ of a Gaussian step and pure steps together, by dp_accounting, rounded up.

    None if δ is too small for floating point.
    """
    truncation = min(-50.0, math.log(delta) - 20)
    parts = [_gaussian_pld(math.sqrt(mu_squared), truncation, interval)] if mu_squared else []
    parts += [_pure_pld(step, times, math.exp(truncation), interval) for step, times in Counter(pure_epsilons).items()]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part, math.exp(truncation))
    certain = delta - FFT_ERROR if pure_epsilons else delta
    epsilon = float(whole.get_epsilon_for_delta(certain)) if certain > 0 else math.inf
    return epsilon * (1 + MARGIN) if math.isfinite(epsilon) else None


def _gaussian_pld(mu: float, log_truncation: float, interval: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution  # takes a second to import

    return privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=interval, log_mass_truncation_bound=log_truncation
    )


def _pure_pld(step: Fraction, times: int, truncation: float, interval: float) -> Any:
    """Randomized responses on the grid by connecting the dots, whose error is of second order in the interval."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    ends = {math.floor(-step / interval), math.ceil(-step / interval)}
    ends |= {math.floor(step / interval), math.ceil(step / interval)}
    grid = np.array(sorted(ends))
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots(
        interval, grid, _randomized_response_delta(grid * interval, float(step))
    )
    return privacy_loss_distribution.PrivacyLossDistribution(pmf).self_compose(times, truncation)


def _randomized_response_delta(epsilon: Floats, step: float) -> Floats:
    """δ(ε) of a randomized response: 1 − e^ε below −step, a straight line in e^ε to 0 at step."""
    inside = np.minimum(epsilon, step)
    line = np.exp(inside) * np.expm1(step - inside) / (1 + math.exp(step))  # exactly 0 from step on
    return np.where(epsilon < -step, -np.expm1(np.minimum(epsilon, 0)), line)


def log_delta(epsilon: float, mu: float, pure_epsilons: tuple[Fraction, ...]) -> float:
    """ln δ(ε) of a Gaussian step and pure steps together: the mean of δ(ε − loss) over the losses of the pure ones."""
    from scipy.special import logsumexp

    losses, probabilities = pure_losses(pure_epsilons, epsilon * PLD_INTERVAL / 1000)
    return float(logsumexp(gaussian_log_delta(epsilon - losses, mu), b=probabilities))


@lru_cache(maxsize=8)
def pure_losses(pure_epsilons: tuple[Fraction, ...], grid: float) -> tuple[Floats, Floats]:
    """The privacy losses of randomized responses and their probabilities, rounded up to a grid if there are many."""
    from scipy.special import gammaln

    losses: Floats = np.zeros(1)
    probabilities: Floats = np.ones(1)
    for step, times in Counter(pure_epsilons).items():
        ups = np.arange(times + 1)
        ways = gammaln(times + 1) - gammaln(ups + 1) - gammaln(times - ups + 1)
        logs = ways - ups * math.log1p(math.exp(-step)) - (times - ups) * math.log1p(math.exp(step))
        losses = np.add.outer(losses, float(step) * (2 * ups - times)).ravel()
        probabilities = np.multiply.outer(probabilities, np.exp(logs)).ravel()
        if len(losses) > _MAX_ATOMS:
            cells, where = np.unique(np.ceil(losses / grid), return_inverse=True)
            losses, probabilities = cells * grid, np.asarray(np.bincount(where, probabilities), np.float64)
    return losses, probabilities
