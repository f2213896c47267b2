"""The privacy budget: a guarantee (ε, δ), what it allows to spend, and the account of what was spent.

A budget consists of ρ for Gaussian noise, the ε of pure steps, and δ for partition selection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpsyn.accounting.composition import FFT_ERROR, MAX_PLD_EPSILON, Composition, log_delta
from dpsyn.accounting.conversion import MARGIN, largest_mu, positive_boundary, rho_for
from dpsyn.accounting.costs import (
    LATTICE_OVERHEAD,
    Exponential,
    Gaussian,
    Laplace,
    MechanismCost,
    PartitionSelection,
    cost_from_data,
    pure_rho,
)
from dpsyn.accounting.exact_numbers import (
    Number,
    exact_fraction,
    format_exact,
    format_short,
    round_down,
    round_down_to_digits,
    round_up,
    split_exactly,
)
from dpsyn.accounting.privacy_unit import PrivacyUnit
from dpsyn.errors import BudgetError

CALIBRATION_ROOMS = (1e-5, 1e-4, 1e-3)
"""The part of ε that calibration leaves free, because the certificate, which rounds up, must stay below ε. The first is
enough unless there are pure steps whose ε add up to nearly all of it; then the certificate decides which one is."""

THRESHOLD_SHARE = Fraction(1, 10)
"""The part of δ for partition selection, if there is any; the rest is for noise."""


MAX_EPSILON = 10**6
"""Above it the noise is too small for 64-bit numbers. Tests of algorithms without noise use this value."""

MAX_DELTA = 0.001
"""δ is the probability that somebody is not protected at all; a larger one is surely a typing error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The guarantee of one release and what it may spend; made by ``Budget.for_guarantee``.

    Measurements that stay within all parts are certified within (ε, δ): Gaussian steps that cost at most ``rho``
    together, pure steps that can be matched to planned ones of at least their ε (or share the only one that is
    planned), and partition selections that are charged at most ``threshold_delta`` together.

    Attributes:
        epsilon: the ε of the guarantee.
        delta: the δ of the guarantee, partition selection included.
        rho: what Gaussian steps may cost together.
        pure_epsilons: the ε of the pure steps, fixed before the first measurement.
        threshold_delta: the part of δ for partition selection.
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction
    pure_epsilons: tuple[Fraction, ...] = ()
    threshold_delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        parts = (self.epsilon, self.delta, self.rho, self.threshold_delta, *self.pure_epsilons)
        if any(round_down(part) != part or part < 0 for part in parts):
            raise BudgetError("a budget consists of whole grains of 10⁻³⁶; make one with Budget.for_guarantee")

    @classmethod
    def for_guarantee(
        cls, epsilon: Number, delta: Number, *, pure_epsilons: Sequence[Number] = (), thresholds: bool = False
    ) -> Budget:
        """The largest budget with the guarantee (ε, δ).

        Args:
            epsilon: ε, more than 0.
            delta: δ, less than 1; 0 if all steps are pure.
            pure_epsilons: the ε of the Laplace and exponential steps that are mixed in.
            thresholds: whether values are discovered by partition selection, which takes a tenth of δ.
        """
        whole_epsilon, whole_delta = round_down(exact_fraction(epsilon)), round_down(exact_fraction(delta))
        steps = tuple(sorted((round_down(exact_fraction(step)) for step in pure_epsilons), reverse=True))
        _check_guarantee(whole_epsilon, whole_delta, steps, thresholds)
        if exact_fraction(delta) > whole_delta == 0:
            raise BudgetError(f"δ is {delta}, too small to be accounted for; give at least 1e-36, or 0 for pure steps")
        threshold_delta = round_down(whole_delta * THRESHOLD_SHARE) if thresholds else Fraction(0)
        return cls(
            epsilon=whole_epsilon,
            delta=whole_delta,
            rho=_gaussian_rho(whole_epsilon, whole_delta - threshold_delta, steps),
            pure_epsilons=steps,
            threshold_delta=threshold_delta,
        )

    @classmethod
    def for_pure_steps(cls, epsilon: Number, weights: Sequence[Number], delta: Number = 0, **options: bool) -> Budget:
        """A budget of pure steps alone, which split ε in proportion to the weights."""
        return cls.for_guarantee(
            epsilon, delta, pure_epsilons=split_exactly(round_down(exact_fraction(epsilon)), weights), **options
        )

    @property
    def is_pure(self) -> bool:
        """Whether the release is (ε, 0)-DP, whatever δ is: all steps are pure, and their ε add up to at most ε."""
        no_delta = self.rho == 0 and self.threshold_delta == 0
        return no_delta and sum(self.pure_epsilons) <= self.epsilon

    @property
    def amount(self) -> Fraction:
        """What marginals divide among themselves: ρ for Gaussian noise; ε for Laplace noise, if the budget is pure."""
        return sum(self.pure_epsilons, Fraction(0)) if self.is_pure else self.rho

    def split_rho(self, weights: Sequence[Number]) -> tuple[Fraction, ...]:
        """Split ρ in proportion to the weights; the parts add up to ρ exactly."""
        return split_exactly(self.rho, weights)

    @property
    def reserved_rho(self) -> Fraction:
        """The ρ that the ledger reserves: ρ of the Gaussian steps and Σε²/2 of the pure ones."""
        return self.rho + pure_rho(self.pure_epsilons)

    @property
    def worst_case(self) -> Composition:
        """The most expensive run within the budget, with Gaussian noise on the coarsest allowed lattice."""
        mu_squared = round_up(2 * self.rho * (1 + LATTICE_OVERHEAD))
        return Composition(
            rho=self.reserved_rho, mu_squared=mu_squared, pure_epsilons=self.pure_epsilons, delta=self.threshold_delta
        )

    @property
    def worst_epsilon(self) -> float:
        """The ε at δ of the most expensive run within the budget; at most the ε of the guarantee."""
        return float(min(self.worst_case.epsilon_bounds(self.epsilon, self.delta).epsilon, self.epsilon))

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
        raise BudgetError(
            f"δ is {format_short(delta)}; give a small probability, such as 1e-9, and at most {MAX_DELTA}"
        )
    if any(step <= 0 for step in pure_epsilons):
        raise BudgetError(f"a pure step has ε = {format_exact(min(pure_epsilons))}; give each a positive one")
    if thresholds and delta == 0:
        raise BudgetError(
            "δ is 0, but discovering values by partition selection needs a δ, such as 1e-9: with pure ε, a value that "
            "a single row has could never be left out for certain. Give a δ, or list the values in the schema"
        )


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
        rhos = (_calibrate_rho(epsilon, delta, pure_epsilons, room) for room in CALIBRATION_ROOMS)
        rho = next((rho for rho in rhos if not pure_epsilons or _is_certified(epsilon, delta, rho, pure_epsilons)), rho)
    if rho <= 0 and sum(pure_epsilons) > epsilon:
        raise _pure_overspending_error(pure_epsilons, epsilon)
    if rho <= 0 and not pure_epsilons:
        raise BudgetError(
            f"ε = {float(epsilon):g} and δ = {format_short(delta)} leave nothing for Gaussian noise; "
            f"give a δ such as 1e-9, or plan pure steps"
        )
    return round_down(max(rho, Fraction(0)))


def _calibrate_rho(epsilon: Fraction, delta: Fraction, pure_epsilons: tuple[Fraction, ...], room: float) -> Fraction:
    mu = _largest_mu_beside_pure(float(epsilon) * (1 - room), float(delta), pure_epsilons)
    return round_down_to_digits(mu**2 / 2 / (1 + float(LATTICE_OVERHEAD)))


def _is_certified(epsilon: Fraction, delta: Fraction, rho: Fraction, pure_epsilons: tuple[Fraction, ...]) -> bool:
    """Whether the certificate of a run that spends all of this would stay within (ε, δ)."""
    planned = Budget(epsilon=epsilon, delta=delta, rho=rho, pure_epsilons=pure_epsilons)
    return planned.worst_case.epsilon_bounds(epsilon, delta).epsilon <= epsilon


def _pure_overspending_error(pure_epsilons: tuple[Fraction, ...], epsilon: Fraction) -> BudgetError:
    return BudgetError(
        f"the pure steps cost ε = {float(sum(pure_epsilons)):.6g} together, more than the ε = {float(epsilon):.6g} of "
        f"the guarantee allows; give them smaller shares"
    )


def _largest_mu_beside_pure(epsilon: float, delta: float, pure_epsilons: tuple[Fraction, ...]) -> float:
    """The largest μ of a Gaussian step that is (ε, δ)-DP together with the pure steps; 0 if there is none."""
    if not pure_epsilons:
        return largest_mu(epsilon, delta * (1 - 2 * MARGIN))
    max_log_delta = math.log(delta - 2 * FFT_ERROR)
    mu = positive_boundary(lambda mu: log_delta(epsilon, mu, pure_epsilons) <= max_log_delta)[0]
    return mu if log_delta(epsilon, mu, pure_epsilons) <= max_log_delta else 0.0


# ── the account of a run ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementRecord:
    """One measurement: its mechanism and cost, and its purpose, such as "marginal of age, sex".

    Attributes:
        purpose: what was measured.
        cost: the mechanism, and with it the cost.
        answer_hash: the SHA-256 of the released answer (``hash_answer``); empty before there is one.
    """

    purpose: str
    cost: MechanismCost
    answer_hash: str = ""

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON, with the cost as ρ and δ, which the ledger adds up."""
        cost = {"rho": format_exact(self.cost.rho), "delta": format_exact(self.cost.delta)}
        return {"purpose": self.purpose, "mechanism": self.cost.to_data(), **cost, "answer_hash": self.answer_hash}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> MeasurementRecord:
        """Read a measurement back; the cost it states must be the cost of its mechanism."""
        try:
            record = cls(
                purpose=str(data["purpose"]),
                cost=cost_from_data(data["mechanism"]),
                answer_hash=str(data["answer_hash"]),
            )
            agrees = record.to_data() == data
        except BudgetError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            raise BudgetError(f"a measurement is not recorded as DPSyn writes it: {type(error).__name__}") from None
        if not agrees:
            raise BudgetError(f"the measurement of {record.purpose!r} states a cost that is not that of its mechanism")
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A budget and the measurements charged to it; start with ``Account(budget=…)`` and continue with ``charge``.

    The checks are sums of exact numbers. They suffice: whatever passes is dominated by the worst case of the budget,
    which was certified before the first measurement (``check_budget``).
    """

    budget: Budget
    measurements: tuple[MeasurementRecord, ...] = ()
    total: Composition = field(default_factory=Composition)

    def charge(self, measurement: MeasurementRecord) -> Account:
        """The account with one more measurement, or a BudgetError that leaves this one as it was."""
        total = self.total.compose(measurement.cost)
        if excess := _describe_excess(self.budget, total):
            raise BudgetError(
                f"{measurement.purpose}: with it the run would spend {excess}; measure less, or use a larger budget"
            )
        return Account(budget=self.budget, measurements=(*self.measurements, measurement), total=total)

    def require_own_step(self, cost: MechanismCost) -> Account:
        """This account, or a BudgetError if all planned steps of the cost's pure ε are used.

        A run that lost a step would otherwise take one that is planned for a later measurement.
        """
        planned, used = self.budget.pure_epsilons, self.total.pure_epsilons
        if len(planned) > 1 and any(0 < planned.count(step) <= used.count(step) for step in cost.pure_epsilons):
            raise BudgetError("nothing is left of the budget")
        return self


def combine_budgets(budgets: Sequence[Budget]) -> Budget:
    """What several runs may spend together."""
    zero = Fraction(0)
    return Budget(
        epsilon=sum((budget.epsilon for budget in budgets), zero),
        delta=sum((budget.delta for budget in budgets), zero),
        rho=sum((budget.rho for budget in budgets), zero),
        pure_epsilons=tuple(sorted((step for budget in budgets for step in budget.pure_epsilons), reverse=True)),
        threshold_delta=sum((budget.threshold_delta for budget in budgets), zero),
    )


def check_budget(budget: Budget) -> None:
    """Certify the worst case of a budget; refuse a budget whose worst case exceeds its guarantee."""
    bounds = budget.worst_case.epsilon_bounds(budget.epsilon, budget.delta)
    if budget.threshold_delta > budget.delta or bounds.epsilon > budget.epsilon:
        raise BudgetError(
            f"the worst case of this budget costs ε = {float(bounds.epsilon):.9g}, more than the guarantee of "
            f"{float(budget.epsilon):.9g}; give a larger ε, or make a budget of your own with Budget.for_guarantee"
        )


def replay(budget: Budget, measurements: tuple[MeasurementRecord, ...]) -> Account:
    """The account of a recorded run; measurements beyond the budget, which no run makes, are a BudgetError.

    It is enough to check all of them together: what fits into a budget together also fits one after another.
    """
    total = Composition.of([measurement.cost for measurement in measurements])
    if excess := _describe_excess(budget, total):
        raise BudgetError(f"a recorded run spent more than its budget: {excess}; the record was changed")
    return Account(budget=budget, measurements=measurements, total=total)


def _describe_excess(budget: Budget, total: Composition) -> str:
    """Which part of a budget a composition exceeds; empty if it exceeds none."""
    if total.gaussian_rho > budget.rho:
        return _compare_with_budget("ρ of Gaussian noise", total.gaussian_rho, budget.rho)
    if total.delta > budget.threshold_delta:
        return _compare_with_budget("δ of partition selection", total.delta, budget.threshold_delta)
    if not _fits_pure_steps(total.pure_epsilons, budget.pure_epsilons):
        return _compare_with_budget("pure ε", sum(total.pure_epsilons), sum(budget.pure_epsilons))
    return ""


def _compare_with_budget(what: str, spent: Fraction | int, planned: Fraction | int) -> str:
    return f"{what} = {float(spent):.9g}, but the budget is {float(planned):.9g}"


MIN_SHARE_LEFT = Fraction(1, 1000)
"""Less than this part of a planned cost counts as nothing: its noise would be thirty times the planned one, or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """By how much the measurements of a resumed run are reduced because answers that were charged are lost.

    What is left of the budget is divided among the measurements to come in proportion to their planned costs. So a run
    that planned to spend its whole budget still ends within it.

    Attributes:
        rho: the part of the planned ρ that a Gaussian measurement gets.
        pure: the part of the planned ε that a pure step gets. Lost steps stay used, so it is 1 if several were planned:
            the others keep theirs (``Account.require_own_step``), and no step is left for the lost ones.
        delta: the part of the planned δ that partition selection gets.
    """

    rho: Fraction = Fraction(1)
    pure: Fraction = Fraction(1)
    delta: Fraction = Fraction(1)

    @classmethod
    def after_loss(cls, account: Account, planned: Sequence[MechanismCost]) -> Reduction:
        """The reduction for a run, given all its charges and the planned costs of the answers that are stored."""
        budget, spent = account.budget, account.total
        kept = Composition.of(planned)
        pure = Fraction(1)
        if len(budget.pure_epsilons) == 1:
            pure = _share_left(budget.pure_epsilons[0], sum(spent.pure_epsilons), sum(kept.pure_epsilons))
        return cls(
            rho=_share_left(budget.rho, spent.gaussian_rho, kept.gaussian_rho),
            pure=pure,
            delta=_share_left(budget.threshold_delta, spent.delta, kept.delta),
        )

    def apply(self, cost: MechanismCost) -> MechanismCost:
        """The mechanism with the part of its cost that is left for it; a BudgetError if nothing is left."""
        match cost:
            case Gaussian() if self.rho != 1:
                return Gaussian.for_rho(_require_some(round_down(cost.rho * self.rho)), cost.sensitivity_squared)
            case Laplace() if self.pure != 1:
                epsilon = _require_some(round_down(cost.pure_epsilons[0] * self.pure))
                return Laplace.for_epsilon(epsilon, cost.sensitivity)
            case Exponential() if self.pure != 1:
                return Exponential.for_epsilon(
                    _require_some(round_down(cost.charged_epsilon * self.pure)),
                    cost.sensitivity,
                    monotone=cost.monotone,
                    selections=cost.selections,
                )
            case PartitionSelection():
                noise = self.apply(cost.noise)
                if noise != cost.noise or self.delta != 1:
                    delta = _require_some(round_down(cost.delta * self.delta))
                    return PartitionSelection.for_delta(delta, noise, cost.max_rows)  # type: ignore[arg-type]
        return cost


def _share_left(planned: Fraction, spent: Fraction | int, kept: Fraction | int) -> Fraction:
    """What is left of a part of the budget, as a share of what the measurements to come plan to spend of it."""
    if spent == kept:
        return Fraction(1)
    if kept >= planned:
        return Fraction(0)
    share = min(Fraction(1), (planned - spent) / (planned - kept))
    return share if share >= MIN_SHARE_LEFT else Fraction(0)


def _require_some(amount: Fraction) -> Fraction:
    if amount <= 0:
        raise BudgetError("nothing is left of the budget")
    return amount


def _fits_pure_steps(used: tuple[Fraction, ...], planned: tuple[Fraction, ...]) -> bool:
    """Whether every used step can be matched to a planned one of at least its ε; both are given largest first.

    If only one step is planned, any number of steps may share it, each chosen after the earlier answers: whatever they
    are, together they are one step with the sum of their ε (Rogers, Roth, Ullman and Vadhan 2016).
    """
    if len(planned) == 1:
        return sum(used) <= planned[0]
    return len(used) <= len(planned) and all(u <= p for u, p in zip(used, planned, strict=False))


# ── which δ to use for a table of a publicly known size ──────────────────────────────────────────────────────


DEFAULT_DELTA = 1e-9
"""One in 10⁹; ``default_delta`` uses less for tables of more than about 30 000 expected rows."""


def default_delta(expected_size: int | None) -> float:
    """The default δ of a release: min(1e-9, 1/expected²)."""
    return min(DEFAULT_DELTA, 1 / expected_size**2) if expected_size else DEFAULT_DELTA


def delta_warning(delta: Number, expected_size: int | None) -> str | None:
    """A warning if δ is large for a table of the expected size, otherwise None.

    δ is the probability that somebody is not protected at all. If δ were near 1/rows, a mechanism that sometimes
    publishes a random row would be allowed.
    """
    if not expected_size or exact_fraction(delta) * expected_size**2 <= 1:
        return None
    return (
        f"δ = {format_short(exact_fraction(delta))} is large for a table of about {expected_size:,} rows: "
        f"use at most 1/{expected_size:,}² = {1 / expected_size**2:.1g}"
    )


def marginal_cost(budget: Budget, amount: Fraction, privacy_unit: PrivacyUnit) -> Gaussian | Laplace:
    """The noise of a marginal that spends a part of ``budget.amount``: Laplace noise if the budget is pure."""
    if budget.is_pure:
        return Laplace.for_epsilon(amount, privacy_unit.l1_sensitivity)
    return Gaussian.for_rho(amount, privacy_unit.l2_sensitivity_squared)
