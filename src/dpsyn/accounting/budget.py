"""The promise (ε, δ) and what it buys: ρ for Gaussian steps, pure steps, and δ for thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpsyn.accounting.composition import FFT_ERROR, MAX_PLD_EPSILON, Composition, log_delta
from dpsyn.accounting.conversion import MARGIN, largest_mu, positive_boundary, rho_for
from dpsyn.accounting.costs import LATTICE_OVERHEAD, MechanismCost, cost_from_data, pure_rho
from dpsyn.accounting.exact_numbers import (
    Number,
    exact_fraction,
    format_exact,
    round_down,
    round_down_to_digits,
    round_up,
    split_exactly,
)
from dpsyn.errors import BudgetError, InternalError

CALIBRATION_ROOM = 1e-5
"""The part of ε that calibration leaves free, so that the certificate, which rounds against us, keeps the promise."""

THRESHOLD_SHARE = Fraction(1, 10)
"""The part of δ that goes to thresholds where there are any; the rest is for noise."""


MAX_EPSILON = 10**6
"""Beyond it the noise is below what 64 bits hold; tests of algorithms without noise use it."""

MAX_DELTA = 0.001
"""A δ is a probability that somebody is not protected at all; a larger one is a slip of the finger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one release promises and may spend; made by ``Budget.plan``.

    Whatever stays within the parts is certified within (ε, δ): Gaussian steps that cost at most ``rho``
    together, pure steps that can be matched to planned ones of at least their ε (or share the only one that is
    planned), and thresholds that are charged at most ``threshold_delta`` together.

    Attributes:
        epsilon: the ε of the promise.
        delta: the δ of the promise, thresholds included.
        rho: what Gaussian steps may cost together.
        pure_epsilons: the ε of the pure steps, fixed before the first draw.
        threshold_delta: the part of δ for thresholds.
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction
    pure_epsilons: tuple[Fraction, ...] = ()
    threshold_delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        parts = (self.epsilon, self.delta, self.rho, self.threshold_delta, *self.pure_epsilons)
        if any(round_down(part) != part or part < 0 for part in parts):
            raise BudgetError("a budget consists of whole grains of 10⁻³⁶; make one with Budget.plan")

    @classmethod
    def for_guarantee(
        cls, epsilon: Number, delta: Number, *, pure_epsilons: Sequence[Number] = (), thresholds: bool = False
    ) -> Budget:
        """The largest budget that keeps the promise (ε, δ).

        Args:
            epsilon: ε, more than 0.
            delta: δ, less than 1; 0 if all steps are pure.
            pure_epsilons: the ε of the Laplace and exponential steps that are mixed in.
            thresholds: whether keys will be bought by thresholds, which take a tenth of δ.
        """
        promise = round_down(exact_fraction(epsilon)), round_down(exact_fraction(delta))
        steps = tuple(sorted((round_down(exact_fraction(step)) for step in pure_epsilons), reverse=True))
        _check_guarantee(*promise, steps, thresholds)
        if exact_fraction(delta) > promise[1] == 0:
            raise BudgetError(f"δ is {delta}, less than can be counted; give at least 1e-36, or 0 for pure steps")
        kept = round_down(promise[1] * THRESHOLD_SHARE) if thresholds else Fraction(0)
        rho = _gaussian_rho(promise[0], promise[1] - kept, steps)
        return cls(epsilon=promise[0], delta=promise[1], rho=rho, pure_epsilons=steps, threshold_delta=kept)

    @classmethod
    def for_pure_steps(cls, epsilon: Number, weights: Sequence[Number], delta: Number = 0, **options: bool) -> Budget:
        """A budget of pure steps alone, whose ε are shares of the promised one."""
        return cls.for_guarantee(
            epsilon, delta, pure_epsilons=split_exactly(round_down(exact_fraction(epsilon)), weights), **options
        )

    def split_rho(self, weights: Sequence[Number]) -> tuple[Fraction, ...]:
        """Split ρ in proportion to the weights; the sum of shares is ρ, exactly."""
        return split_exactly(self.rho, weights)

    @property
    def reserved_rho(self) -> Fraction:
        """What the ledger sets aside: ρ of the Gaussian steps and Σε²/2 of the pure ones."""
        return self.rho + pure_rho(self.pure_epsilons)

    @property
    def worst_case(self) -> Composition:
        """The costliest run within the budget, with Gaussian noise on the coarsest lattice allowed."""
        mu_squared = round_up(2 * self.rho * (1 + LATTICE_OVERHEAD))
        return Composition(
            rho=self.reserved_rho, mu_squared=mu_squared, pure_epsilons=self.pure_epsilons, delta=self.threshold_delta
        )

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON, every number exact."""
        numbers = {name: format_exact(getattr(self, name)) for name in _NUMBER_FIELDS}
        return {**numbers, "pure_epsilons": [format_exact(step) for step in self.pure_epsilons]}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Budget:
        """Read a budget back from plain data."""
        numbers = {name: exact_fraction(data[name]) for name in _NUMBER_FIELDS}
        return cls(**numbers, pure_epsilons=tuple(exact_fraction(step) for step in data["pure_epsilons"]))


_NUMBER_FIELDS = ("epsilon", "delta", "rho", "threshold_delta")


def _check_guarantee(epsilon: Fraction, delta: Fraction, pure_epsilons: tuple[Fraction, ...], thresholds: bool) -> None:
    if epsilon <= 0:
        raise BudgetError(f"ε is {format_exact(epsilon)}; give a positive number, such as 1")
    if epsilon > MAX_EPSILON:
        raise BudgetError(f"ε is {float(epsilon):g}, which protects nobody; give at most {MAX_EPSILON:,}")
    if not 0 <= delta <= MAX_DELTA:
        raise BudgetError(f"δ is {float(delta):g}; give a small probability, such as 1e-9, and at most {MAX_DELTA}")
    if any(step <= 0 for step in pure_epsilons):
        raise BudgetError(f"a pure step has ε = {format_exact(min(pure_epsilons))}; give each a positive one")
    if thresholds and delta == 0:
        raise BudgetError("δ is 0, but values that are bought by a threshold need a δ, such as 1e-9")


def _gaussian_rho(epsilon: Fraction, delta: Fraction, pure_epsilons: tuple[Fraction, ...]) -> Fraction:
    """The ρ that is left for Gaussian steps beside the pure ones."""
    rho = Fraction(0)
    if max(pure_epsilons, default=epsilon) > epsilon:
        raise _pure_overspending_error(pure_epsilons, epsilon)
    if delta > 0 and (epsilon > MAX_PLD_EPSILON or (pure_epsilons and delta < 100 * FFT_ERROR)):
        rho = rho_for(epsilon, float(delta) * (1 - 2 * MARGIN), "zcdp") * exact_fraction(1 - 2 * MARGIN) - pure_rho(
            pure_epsilons
        )
    elif delta > 0:
        rho = round_down_to_digits(
            _largest_mu_beside_pure(float(epsilon) * (1 - CALIBRATION_ROOM), float(delta), pure_epsilons) ** 2
            / 2
            / (1 + float(LATTICE_OVERHEAD))
        )
    if rho <= 0 and sum(pure_epsilons) > epsilon:
        raise _pure_overspending_error(pure_epsilons, epsilon)
    if rho <= 0 and not pure_epsilons:
        raise BudgetError(
            f"ε = {float(epsilon):g} and δ = {float(delta):g} leave nothing for Gaussian noise; "
            f"give a δ such as 1e-9, or plan pure steps"
        )
    return round_down(max(rho, Fraction(0)))


def _pure_overspending_error(pure_epsilons: tuple[Fraction, ...], epsilon: Fraction) -> BudgetError:
    return BudgetError(
        f"the pure steps cost ε = {float(sum(pure_epsilons)):.6g} together, more than the promised "
        f"{float(epsilon):.6g} allows; give them smaller shares"
    )


def _largest_mu_beside_pure(epsilon: float, delta: float, pure_epsilons: tuple[Fraction, ...]) -> float:
    """The largest μ of a Gaussian step that keeps (ε, δ) together with the pure steps; 0 if there is none."""
    if not pure_epsilons:
        return largest_mu(epsilon, delta * (1 - 2 * MARGIN))
    goal = math.log(delta - 2 * FFT_ERROR)
    mu = positive_boundary(lambda mu: log_delta(epsilon, mu, pure_epsilons) <= goal)[0]
    return mu if log_delta(epsilon, mu, pure_epsilons) <= goal else 0.0


# ── A running account: what was drawn so far, and whether one more draw stays within the budget ──


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementRecord:
    """One private step and what it was for, such as "marginal age, sex"."""

    purpose: str
    cost: MechanismCost

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON, with the cost in the ledger's currency."""
        cost = {"rho": format_exact(self.cost.rho), "delta": format_exact(self.cost.delta)}
        return {"purpose": self.purpose, "mechanism": self.cost.to_data(), **cost}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> MeasurementRecord:
        """Read a draw back; the cost it states must be the cost of its step."""
        draw = cls(purpose=str(data["purpose"]), cost=cost_from_data(data["mechanism"]))
        if draw.to_data() != data:
            raise BudgetError(f"the draw for {draw.purpose!r} states a cost that is not that of its step")
        return draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A budget and what was drawn from it; start with ``Account(budget=…)`` and go on with ``charge``.

    The checks are sums of exact numbers. They suffice: whatever passes is dominated by the worst case of the
    budget, whose certificate was computed before the first draw (``check_plan``).
    """

    budget: Budget
    measurements: tuple[MeasurementRecord, ...] = ()
    total: Composition = field(default_factory=Composition)

    def charge(self, measurement: MeasurementRecord) -> Account:
        """The account after one more draw, or a BudgetError that leaves this one as it was."""
        total = self.total.compose(measurement.cost)
        planned = self.budget
        gaussian = total.rho - pure_rho(total.pure_epsilons)
        if gaussian > planned.rho:
            raise _overspending_error(measurement, "ρ of Gaussian noise", gaussian, planned.rho)
        if total.delta > planned.threshold_delta:
            raise _overspending_error(measurement, "δ of thresholds", total.delta, planned.threshold_delta)
        if not _fits_pure_steps(total.pure_epsilons, planned.pure_epsilons):
            raise _overspending_error(
                measurement, "pure ε", sum(total.pure_epsilons, Fraction(0)), sum(planned.pure_epsilons, Fraction(0))
            )
        return Account(budget=planned, measurements=(*self.measurements, measurement), total=total)


def check_budget(budget: Budget) -> None:
    """Recompute the certificate of the worst case of a budget; refuse a budget that does not keep its promise."""
    figures = budget.worst_case.epsilon_bounds(budget.epsilon, budget.delta)
    if budget.threshold_delta > budget.delta or figures.epsilon > budget.epsilon:
        raise BudgetError(
            f"this budget certifies ε = {float(figures.epsilon):.9g} at worst, more than the promised "
            f"{float(budget.epsilon):.9g}; make it with Budget.plan"
        )


def replay(budget: Budget, measurements: tuple[MeasurementRecord, ...]) -> Account:
    """The account of a run whose draws are known; draws beyond the budget are an InternalError."""
    account = Account(budget=budget)
    for draw in measurements:
        try:
            account = account.charge(draw)
        except BudgetError as error:
            raise InternalError(f"a recorded run spent more than its promise: {error}") from None
    return account


def _fits_pure_steps(used: tuple[Fraction, ...], planned: tuple[Fraction, ...]) -> bool:
    """Whether every used step can have a planned one of at least its ε; both are given largest first.

    If a single step is planned, any number of steps may share it, each chosen after the answers before it: whatever
    they are, together they are one step of the sum of their ε (Rogers, Roth, Ullman and Vadhan 2016).
    """
    if len(planned) == 1:
        return sum(used) <= planned[0]
    return len(used) <= len(planned) and all(u <= p for u, p in zip(used, planned, strict=False))


def _overspending_error(measurement: MeasurementRecord, what: str, would: Fraction, planned: Fraction) -> BudgetError:
    return BudgetError(
        f"{measurement.purpose}: with it the run would spend {what} = {float(would):.9g}, but only {float(planned):.9g} "
        f"is planned; ask for less, or plan a larger budget"
    )


# ── Which δ to promise, given how many people a table is publicly expected to hold ──


DEFAULT_DELTA = 1e-9
"""One in a thousand million; less where a table is expected to be larger than about 30 000 rows squared."""


def default_delta(expected_size: int | None) -> float:
    """The δ of a release that does not say otherwise: min(1e-9, 1/expected²)."""
    return min(DEFAULT_DELTA, 1 / expected_size**2) if expected_size else DEFAULT_DELTA


def delta_warning(delta: Number, expected_size: int | None) -> str | None:
    """What is wrong with a δ that is large for so many rows; None if nothing is.

    δ is the probability that somebody is not protected at all; a mechanism that publishes a random row now and then
    would be allowed if δ were near 1/rows.
    """
    if not expected_size or exact_fraction(delta) * expected_size**2 <= 1:
        return None
    return (
        f"δ = {float(exact_fraction(delta)):g} is large for a table of about {expected_size:,} rows: "
        f"guarantee at most 1/{expected_size:,}² = {1 / expected_size**2:.1g}"
    )
