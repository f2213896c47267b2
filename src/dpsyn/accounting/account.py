"""A running account: what was drawn so far, and whether one more draw stays within the budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpsyn.accounting.budget import Budget
from dpsyn.accounting.composition import Composition
from dpsyn.accounting.exact import text_of
from dpsyn.accounting.spends import Spend, pure_rho, spend_from_data
from dpsyn.errors import BudgetError, InternalError


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One private step and what it was for, such as "marginal age, sex"."""

    purpose: str
    spend: Spend

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON, with the cost in the ledger's currency."""
        cost = {"rho": text_of(self.spend.rho), "delta": text_of(self.spend.delta)}
        return {"purpose": self.purpose, "spend": self.spend.to_data(), **cost}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Draw:
        """Read a draw back; the cost it states must be the cost of its step."""
        draw = cls(purpose=str(data["purpose"]), spend=spend_from_data(data["spend"]))
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
    draws: tuple[Draw, ...] = ()
    total: Composition = field(default_factory=Composition)

    def charge(self, draw: Draw) -> Account:
        """The account after one more draw, or a BudgetError that leaves this one as it was."""
        total = self.total.then(draw.spend)
        planned = self.budget
        gaussian = total.rho - pure_rho(total.pure)
        if gaussian > planned.rho:
            raise _overspent(draw, "ρ of Gaussian noise", gaussian, planned.rho)
        if total.delta > planned.threshold_delta:
            raise _overspent(draw, "δ of thresholds", total.delta, planned.threshold_delta)
        if not _matched(total.pure, planned.pure):
            raise _overspent(draw, "pure ε", sum(total.pure, Fraction(0)), sum(planned.pure, Fraction(0)))
        return Account(budget=planned, draws=(*self.draws, draw), total=total)


def check_plan(budget: Budget) -> None:
    """Recompute the certificate of the worst case of a budget; refuse a budget that does not keep its promise."""
    figures = budget.worst_case.figures(budget.epsilon, budget.delta)
    if budget.threshold_delta > budget.delta or figures.epsilon > budget.epsilon:
        raise BudgetError(
            f"this budget certifies ε = {float(figures.epsilon):.9g} at worst, more than the promised "
            f"{float(budget.epsilon):.9g}; make it with Budget.plan"
        )


def replay(budget: Budget, draws: tuple[Draw, ...]) -> Account:
    """The account of a run whose draws are known; draws beyond the budget are an InternalError."""
    account = Account(budget=budget)
    for draw in draws:
        try:
            account = account.charge(draw)
        except BudgetError as error:
            raise InternalError(f"a recorded run spent more than its promise: {error}") from None
    return account


def _matched(used: tuple[Fraction, ...], planned: tuple[Fraction, ...]) -> bool:
    """Whether every used step can have a planned one of at least its ε; both are given largest first.

    If a single step is planned, any number of steps may share it, each chosen after the answers before it: whatever
    they are, together they are one step of the sum of their ε (Rogers, Roth, Ullman and Vadhan 2016).
    """
    if len(planned) == 1:
        return sum(used) <= planned[0]
    return len(used) <= len(planned) and all(u <= p for u, p in zip(used, planned, strict=False))


def _overspent(draw: Draw, what: str, would: Fraction, planned: Fraction) -> BudgetError:
    return BudgetError(
        f"{draw.purpose}: with it the run would spend {what} = {float(would):.9g}, but only {float(planned):.9g} "
        f"is planned; ask for less, or plan a larger budget"
    )
