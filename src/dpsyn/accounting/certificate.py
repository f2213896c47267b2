"""The certificate: what a release promised, what it drew, and two recomputations of what that costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpsyn.accounting.budget import Account, Budget, MeasurementRecord, replay
from dpsyn.accounting.composition import EpsilonBounds
from dpsyn.accounting.costs import Exponential, Gaussian, Laplace, MechanismCost, PartitionSelection
from dpsyn.accounting.hash_chain import LedgerHead
from dpsyn.accounting.privacy_unit import PrivacyUnit
from dpsyn.errors import BudgetError, InternalError

CERTIFICATE_FORMAT = 1
"""The version of the certificate's plain data."""

PRIVACY_FLAG = "differentially_private"
"""Where plain data says whether the noise was real: nothing is guaranteed of a run whose noise came from a test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A checked statement about one run; made by ``Certificate.of``, which recomputes its figures.

    What holds for a run that decides on its way how much to spend is the promise, which no course of it can
    exceed. The figures say what its draws cost; they are a guarantee of their own only if the draws were fixed in
    advance or the promise was used up.

    Attributes:
        account: the promise and the draws.
        epsilon_bounds: ε of the draws, recomputed in every way that applies.
        privacy_unit: whom it protects.
        dataset: the name of the dataset; may be empty.
        run: the name of the run.
        uses_real_noise: False if a test injected the noise.
        declared_public: what was taken as publicly known on the steward's word.
        ledger_head: the ledger's last entry about this run; None if no ledger was kept.
    """

    account: Account
    epsilon_bounds: EpsilonBounds
    privacy_unit: PrivacyUnit
    dataset: str
    run: str
    uses_real_noise: bool
    declared_public: tuple[str, ...]
    ledger_head: LedgerHead | None

    @classmethod
    def from_account(
        cls,
        account: Account,
        privacy_unit: PrivacyUnit,
        *,
        dataset: str = "",
        run: str = "",
        uses_real_noise: bool = True,
        declared_public: tuple[str, ...] = (),
        ledger_head: LedgerHead | None = None,
        stated_epsilon: float | None = None,
    ) -> Certificate:
        """Recompute the cost of an account's draws; more than the promise is an InternalError.

        ``stated_epsilon`` is a figure that the draws are said to cost by privacy loss distributions, see ``from_data``.
        """
        budget = account.budget
        figures = account.total.epsilon_bounds(budget.epsilon, budget.delta, stated_epsilon)
        if account.total.delta > budget.delta or figures.epsilon > budget.epsilon:
            raise InternalError(
                f"the draws cost ε = {float(figures.epsilon):.9g} at δ = {float(budget.delta):g}, more than the "
                f"promised {float(budget.epsilon):.9g}; do not publish this release, and please report it"
            )
        return cls(
            account=account,
            epsilon_bounds=figures,
            privacy_unit=privacy_unit,
            dataset=dataset,
            run=run,
            uses_real_noise=uses_real_noise,
            declared_public=declared_public,
            ledger_head=ledger_head,
        )

    def __repr__(self) -> str:
        budget = self.account.budget
        return f"Certificate(ε = {float(budget.epsilon):g}, δ = {float(budget.delta):g}, {len(self.account.measurements)} draws)"

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "format": CERTIFICATE_FORMAT,
            PRIVACY_FLAG: self.uses_real_noise,
            "dataset": self.dataset,
            "run": self.run,
            "guarantee": self.account.budget.to_data(),
            "privacy_unit": self.privacy_unit.to_data(),
            "certified_epsilon": float(self.epsilon_bounds.epsilon),
            "epsilon_bounds": self.epsilon_bounds.to_data(),
            "measurements": [draw.to_data() for draw in self.account.measurements],
            "declared_public": list(self.declared_public),
            "ledger_head": self.ledger_head.to_data() if self.ledger_head else None,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any], *, recompute: bool = True) -> Certificate:
        """Read a certificate back; its figures are recomputed from its draws and must agree.

        Its budget must keep the promise however it is spent, for that is what holds for a run of many decisions.
        Without ``recompute`` its figure by privacy loss distributions is not computed anew where a closed formula
        shows that the draws cost no more. That is as much of a proof and a hundred times as fast.
        """
        if data.get("format") != CERTIFICATE_FORMAT:
            raise BudgetError(
                f"this certificate has format {data.get('format')}; this DPSyn reads format {CERTIFICATE_FORMAT}"
            )
        try:
            budget = Budget.from_data(data["guarantee"])
            if not budget.worst_case.satisfies(budget.epsilon, budget.delta):
                raise BudgetError("the budget of this certificate does not keep its promise; it was changed")
            certificate = cls.from_account(
                replay(budget, tuple(MeasurementRecord.from_data(draw) for draw in data["measurements"])),
                PrivacyUnit(**data["privacy_unit"]),
                dataset=str(data["dataset"]),
                run=str(data["run"]),
                uses_real_noise=parse_privacy_flag(data),
                declared_public=tuple(str(fact) for fact in data["declared_public"]),
                ledger_head=LedgerHead(**data["ledger_head"]) if data["ledger_head"] else None,
                stated_epsilon=None if recompute else data["epsilon_bounds"]["pld"],
            )
        except (KeyError, TypeError) as error:
            raise BudgetError(f"this certificate is not as DPSyn writes it: {error}") from None
        if not math.isclose(data["certified_epsilon"], certificate.epsilon_bounds.epsilon, rel_tol=1e-6):
            raise BudgetError(
                f"this certificate states ε = {data['certified_epsilon']}, but its draws cost "
                f"{float(certificate.epsilon_bounds.epsilon):.9g}; it was changed after it was written"
            )
        return certificate

    def summary(self) -> str:
        """The promise and what the draws cost, in words."""
        return (
            "\n\n".join([_title_text(self), _guarantee_text(self), _epsilon_bounds_text(self), _scope_text(self)])
            + "\n"
        )

    def text(self, *, measurements: bool = True) -> str:
        """The certificate in words; without its draws where a table of them follows."""
        listed = _measurements_text(self) if measurements else ""
        parts = [
            _title_text(self),
            _guarantee_text(self),
            _epsilon_bounds_text(self),
            listed,
            _declared_public_text(self),
            _scope_text(self),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"


def parse_privacy_flag(data: Mapping[str, Any]) -> bool:
    """Whether plain data says that the noise was real; a KeyError if it says nothing."""
    return data[PRIVACY_FLAG] is True


def _title_text(certificate: Certificate) -> str:
    title = "Privacy certificate" + (f" for {certificate.dataset}" if certificate.dataset else "")
    if certificate.uses_real_noise:
        return title
    return (
        f"{title}\n\nNOT PRIVATE. The noise of this run came from a test, not from the operating system.\n"
        f"Nothing made from it may be published; the figures below do not apply to it."
    )


def _guarantee_text(certificate: Certificate) -> str:
    budget, epsilon = certificate.account.budget, float(certificate.account.budget.epsilon)
    odds = f"at most {math.exp(epsilon):.3g} times" if epsilon < 20 else f"at most e^{epsilon:g} times"
    but = f", except with probability {float(budget.delta):g}" if budget.delta else ""
    return (
        f"Promise: ε = {epsilon:g}, δ = {float(budget.delta):g}, against {certificate.privacy_unit.description}.\n"
        f"Whatever anyone concludes from the release is {odds} as likely\n"
        f"as it would be after {certificate.privacy_unit.description}{but}."
    )


def _epsilon_bounds_text(certificate: Certificate) -> str:
    figures, budget = certificate.epsilon_bounds, certificate.account.budget
    kept = "Certified: the promise is kept. The recorded draws cost"
    verdict = kept if certificate.uses_real_noise else "Not certified. With real noise the recorded draws would cost"
    lines = [f"{verdict} in ε at this δ, recomputed:"]
    if figures.pld is not None:
        lines.append(
            f"  {_format_rounded_up(figures.pld):>12}  by privacy loss distributions (dp_accounting, rounded up)"
        )
    if math.isfinite(figures.zcdp):
        coarse = "; coarser here, it uses the sum of costs only" if figures.zcdp > budget.epsilon else ""
        lines.append(
            f"  {_format_rounded_up(figures.zcdp):>12}  by zero-concentrated differential privacy, tight conversion{coarse}"
        )
    if figures.basic is not None:
        lines.append(f"  {_format_rounded_up(figures.basic):>12}  by adding up the pure steps")
    total = certificate.account.total
    spent = f"Spent: ρ = {float(total.rho):.6g} of {float(budget.reserved_rho):.6g} reserved"
    if budget.threshold_delta:
        spent += f"; δ = {float(total.delta):.3g} of {float(budget.threshold_delta):.3g} for thresholds"
    return "\n".join([*lines, f"{spent}.", *_unspent_text(certificate)])


def _unspent_text(certificate: Certificate) -> list[str]:
    if certificate.epsilon_bounds.epsilon > certificate.account.budget.epsilon * Fraction(999, 1000):
        return []
    return ["Not everything was spent. Unless the draws were fixed in advance, what holds is the promise."]


def _measurements_text(certificate: Certificate) -> str:
    draws = certificate.account.measurements
    counted = Counter(type(draw.cost).__name__ for draw in draws)
    kinds = ", ".join(f"{number} {name}" for name, number in counted.items()) or "none"
    lines = [f"Draws: {kinds}."]
    lines += [f"  {i:>4}  {draw.purpose}: {describe_cost(draw.cost)}" for i, draw in enumerate(draws, start=1)]
    return "\n".join(lines)


def describe_cost(cost: MechanismCost) -> str:
    """A step in words: "Gaussian noise, σ = 5.5 counts, ρ = 0.0166"."""
    match cost:
        case Gaussian():
            return f"Gaussian noise, σ = {cost.sigma:.6g} counts, ρ = {float(cost.rho):.4g}"
        case Laplace():
            return f"Laplace noise, scale {cost.scale:.6g} counts, ε = {float(cost.pure_epsilons[0]):.4g}"
        case Exponential():
            times = f" {cost.selections} times, together" if cost.selections > 1 else ","
            return f"exponential mechanism{times} ε = {float(cost.charged_epsilon):.4g}"
        case PartitionSelection():
            return f"{describe_cost(cost.noise)}; listed from {cost.threshold} on, δ = {float(cost.charged_delta):.3g}"
    raise InternalError(f"there are no words for a step of type {type(cost).__name__}")


def _declared_public_text(certificate: Certificate) -> str:
    if not certificate.declared_public:
        return "Declared public: nothing beyond the names and domains in the schema."
    lines = ["Declared public, on the steward's word, and not protected:"]
    return "\n".join([*lines, *(f"  {fact}" for fact in certificate.declared_public)])


def _scope_text(certificate: Certificate) -> str:
    head = certificate.ledger_head
    if head is None:
        return "Scope: this run only. No ledger was kept, so other releases of the same data are not counted."
    return (
        f"Scope: run {certificate.run}, recorded in the ledger as far as entry {head.sequence}, {head.hash}.\n"
        f"Other releases of the same data add to what is spent; the ledger shows the total."
    )


def _format_rounded_up(epsilon: float | Fraction) -> str:
    """Seven significant digits, rounded up, so that what is printed is still true."""
    if epsilon == 0:
        return "0"
    unit = Fraction(10) ** (math.floor(math.log10(epsilon)) - 6)
    return f"{float(math.ceil(Fraction(epsilon) / unit) * unit):.7g}"
