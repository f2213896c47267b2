"""The certificate: what a release promised, what it drew, and two recomputations of what that costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpsyn.accounting.account import Account, Draw, replay
from dpsyn.accounting.budget import Budget
from dpsyn.accounting.chain import Head
from dpsyn.accounting.composition import Figures
from dpsyn.accounting.protection import Protection
from dpsyn.accounting.spends import Exponential, Gaussian, Laplace, Spend, Threshold
from dpsyn.errors import BudgetError, InternalError

FORMAT = 1
"""The version of the certificate's plain data."""

STAMP = "differentially_private"
"""Where plain data says whether the noise was real: nothing is guaranteed of a run whose noise came from a test."""

_STAMPS = (STAMP, "private")  # as it was called first; people took that for "keep this to yourself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A checked statement about one run; made by ``Certificate.of``, which recomputes its figures.

    What holds for a run that decides on its way how much to spend is the promise, which no course of it can
    exceed. The figures say what its draws cost; they are a guarantee of their own only if the draws were fixed in
    advance or the promise was used up.

    Attributes:
        account: the promise and the draws.
        figures: ε of the draws, recomputed in every way that applies.
        protection: whom it protects.
        dataset: the name of the dataset; may be empty.
        run: the name of the run.
        noise_is_private: False if a test injected the noise.
        declared_public: what was taken as publicly known on the steward's word.
        head: the ledger's last entry about this run; None if no ledger was kept.
    """

    account: Account
    figures: Figures
    protection: Protection
    dataset: str
    run: str
    noise_is_private: bool
    declared_public: tuple[str, ...]
    head: Head | None

    @classmethod
    def of(
        cls,
        account: Account,
        protection: Protection,
        *,
        dataset: str = "",
        run: str = "",
        noise_is_private: bool = True,
        declared_public: tuple[str, ...] = (),
        head: Head | None = None,
        stated: float | None = None,
    ) -> Certificate:
        """Recompute the cost of an account's draws; more than the promise is an InternalError.

        ``stated`` is a figure that the draws are said to cost by privacy loss distributions, see ``from_data``.
        """
        budget = account.budget
        figures = account.total.figures(budget.epsilon, budget.delta, stated)
        if account.total.delta > budget.delta or figures.epsilon > budget.epsilon:
            raise InternalError(
                f"the draws cost ε = {float(figures.epsilon):.9g} at δ = {float(budget.delta):g}, more than the "
                f"promised {float(budget.epsilon):.9g}; do not publish this release, and please report it"
            )
        return cls(
            account=account,
            figures=figures,
            protection=protection,
            dataset=dataset,
            run=run,
            noise_is_private=noise_is_private,
            declared_public=declared_public,
            head=head,
        )

    def __repr__(self) -> str:
        budget = self.account.budget
        return (
            f"Certificate(ε = {float(budget.epsilon):g}, δ = {float(budget.delta):g}, {len(self.account.draws)} draws)"
        )

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "format": FORMAT,
            STAMP: self.noise_is_private,
            "dataset": self.dataset,
            "run": self.run,
            "promise": self.account.budget.to_data(),
            "protection": self.protection.to_data(),
            "certified_epsilon": float(self.figures.epsilon),
            "figures": self.figures.to_data(),
            "draws": [draw.to_data() for draw in self.account.draws],
            "declared_public": list(self.declared_public),
            "ledger_head": self.head.to_data() if self.head else None,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any], *, recompute: bool = True) -> Certificate:
        """Read a certificate back; its figures are recomputed from its draws and must agree.

        Its budget must keep the promise however it is spent, for that is what holds for a run of many decisions.
        Without ``recompute`` its figure by privacy loss distributions is not computed anew where a closed formula
        shows that the draws cost no more. That is as much of a proof and a hundred times as fast.
        """
        if data.get("format") != FORMAT:
            raise BudgetError(f"this certificate has format {data.get('format')}; this DPSyn reads format {FORMAT}")
        try:
            budget = Budget.from_data(data["promise"])
            if not budget.worst_case.keeps(budget.epsilon, budget.delta):
                raise BudgetError("the budget of this certificate does not keep its promise; it was changed")
            certificate = cls.of(
                replay(budget, tuple(Draw.from_data(draw) for draw in data["draws"])),
                Protection(**data["protection"]),
                dataset=str(data["dataset"]),
                run=str(data["run"]),
                noise_is_private=stamped_private(data),
                declared_public=tuple(str(fact) for fact in data["declared_public"]),
                head=Head(**data["ledger_head"]) if data["ledger_head"] else None,
                stated=None if recompute else data["figures"]["pld"],
            )
        except (KeyError, TypeError) as error:
            raise BudgetError(f"this certificate is not as DPSyn writes it: {error}") from None
        if not math.isclose(data["certified_epsilon"], certificate.figures.epsilon, rel_tol=1e-6):
            raise BudgetError(
                f"this certificate states ε = {data['certified_epsilon']}, but its draws cost "
                f"{float(certificate.figures.epsilon):.9g}; it was changed after it was written"
            )
        return certificate

    def summary(self) -> str:
        """The promise and what the draws cost, in words."""
        return "\n\n".join([_stamp(self), _promise(self), _figures(self), _scope(self)]) + "\n"

    def text(self, *, draws: bool = True) -> str:
        """The certificate in words; without its draws where a table of them follows."""
        listed = _draws(self) if draws else ""
        parts = [_stamp(self), _promise(self), _figures(self), listed, _public(self), _scope(self)]
        return "\n\n".join(part for part in parts if part) + "\n"


def stamped_private(data: Mapping[str, Any]) -> bool:
    """Whether plain data says that the noise was real, under the name of today or the first one; a KeyError if not."""
    stamps = [data[name] for name in _STAMPS if name in data]
    if not stamps:
        raise KeyError(STAMP)
    return all(stamp is True for stamp in stamps)


def _stamp(certificate: Certificate) -> str:
    title = "Privacy certificate" + (f" for {certificate.dataset}" if certificate.dataset else "")
    if certificate.noise_is_private:
        return title
    return (
        f"{title}\n\nNOT PRIVATE. The noise of this run came from a test, not from the operating system.\n"
        f"Nothing made from it may be published; the figures below do not apply to it."
    )


def _promise(certificate: Certificate) -> str:
    budget, epsilon = certificate.account.budget, float(certificate.account.budget.epsilon)
    odds = f"at most {math.exp(epsilon):.3g} times" if epsilon < 20 else f"at most e^{epsilon:g} times"
    but = f", except with probability {float(budget.delta):g}" if budget.delta else ""
    return (
        f"Promise: ε = {epsilon:g}, δ = {float(budget.delta):g}, against {certificate.protection.words}.\n"
        f"Whatever anyone concludes from the release is {odds} as likely\n"
        f"as it would be after {certificate.protection.words}{but}."
    )


def _figures(certificate: Certificate) -> str:
    figures, budget = certificate.figures, certificate.account.budget
    kept = "Certified: the promise is kept. The recorded draws cost"
    verdict = kept if certificate.noise_is_private else "Not certified. With real noise the recorded draws would cost"
    lines = [f"{verdict} in ε at this δ, recomputed:"]
    if figures.pld is not None:
        lines.append(f"  {_up(figures.pld):>12}  by privacy loss distributions (dp_accounting, rounded up)")
    if math.isfinite(figures.zcdp):
        coarse = "; coarser here, it uses the sum of costs only" if figures.zcdp > budget.epsilon else ""
        lines.append(f"  {_up(figures.zcdp):>12}  by zero-concentrated differential privacy, tight conversion{coarse}")
    if figures.added is not None:
        lines.append(f"  {_up(figures.added):>12}  by adding up the pure steps")
    total = certificate.account.total
    spent = f"Spent: ρ = {float(total.rho):.6g} of {float(budget.reserved_rho):.6g} reserved"
    if budget.threshold_delta:
        spent += f"; δ = {float(total.delta):.3g} of {float(budget.threshold_delta):.3g} for thresholds"
    return "\n".join([*lines, f"{spent}.", *_unspent(certificate)])


def _unspent(certificate: Certificate) -> list[str]:
    if certificate.figures.epsilon > certificate.account.budget.epsilon * Fraction(999, 1000):
        return []
    return ["Not everything was spent. Unless the draws were fixed in advance, what holds is the promise."]


def _draws(certificate: Certificate) -> str:
    draws = certificate.account.draws
    counted = Counter(type(draw.spend).__name__ for draw in draws)
    kinds = ", ".join(f"{number} {name}" for name, number in counted.items()) or "none"
    lines = [f"Draws: {kinds}."]
    lines += [f"  {i:>4}  {draw.purpose}: {words_of(draw.spend)}" for i, draw in enumerate(draws, start=1)]
    return "\n".join(lines)


def words_of(spend: Spend) -> str:
    """A step in words: "Gaussian noise, σ = 5.5 counts, ρ = 0.0166"."""
    match spend:
        case Gaussian():
            return f"Gaussian noise, σ = {spend.sigma:.6g} counts, ρ = {float(spend.rho):.4g}"
        case Laplace():
            return f"Laplace noise, scale {spend.scale:.6g} counts, ε = {float(spend.pure[0]):.4g}"
        case Exponential():
            times = f" {spend.draws} times, together" if spend.draws > 1 else ","
            return f"exponential mechanism{times} ε = {float(spend.charged):.4g}"
        case Threshold():
            return f"{words_of(spend.noise)}; listed from {spend.cut} on, δ = {float(spend.charged):.3g}"
    raise InternalError(f"there are no words for a step of type {type(spend).__name__}")


def _public(certificate: Certificate) -> str:
    if not certificate.declared_public:
        return "Declared public: nothing beyond the names and domains in the schema."
    lines = ["Declared public, on the steward's word, and not protected:"]
    return "\n".join([*lines, *(f"  {fact}" for fact in certificate.declared_public)])


def _scope(certificate: Certificate) -> str:
    head = certificate.head
    if head is None:
        return "Scope: this run only. No ledger was kept, so other releases of the same data are not counted."
    return (
        f"Scope: run {certificate.run}, recorded in the ledger as far as entry {head.sequence}, {head.hash}.\n"
        f"Other releases of the same data add to what is spent; the ledger shows the total."
    )


def _up(epsilon: float | Fraction) -> str:
    """Seven significant digits, rounded up, so that what is printed is still true."""
    if epsilon == 0:
        return "0"
    unit = Fraction(10) ** (math.floor(math.log10(epsilon)) - 6)
    return f"{float(math.ceil(Fraction(epsilon) / unit) * unit):.7g}"
