"""One release's dealings with the ledger: open, record each draw before it happens, close, certify."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from dpsyn.accounting.account import Account, Draw, check_plan, replay
from dpsyn.accounting.budget import Budget
from dpsyn.accounting.certificate import Certificate
from dpsyn.accounting.chain import Head
from dpsyn.accounting.ledger import Ledger
from dpsyn.accounting.protection import Protection
from dpsyn.accounting.spends import Exponential, Gaussian, Laplace, Spend, Threshold
from dpsyn.errors import BudgetError, LedgerError


@dataclass(slots=True, kw_only=True)
class Run:
    """A release in progress; the only value here that changes. Make it with ``Run.open`` or ``Run.resume``.

    Attributes:
        name: a random name, under which the ledger knows it.
        dataset: the dataset it draws from.
        protection: whom it protects.
        account: what it drew so far.
        ledger: where it is recorded; None counts this run only.
        noise_is_private: False if a test injected the noise; the certificate says so for ever.
        head: the ledger's last entry about this run.
        closed: whether it ended.
    """

    name: str
    dataset: str
    protection: Protection
    account: Account
    ledger: Ledger | None
    noise_is_private: bool = True
    head: Head | None = None
    closed: bool = False
    _closing: Head | None = field(default=None, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    _process: int = field(default_factory=os.getpid, repr=False, compare=False)

    @classmethod
    def open(
        cls,
        budget: Budget,
        protection: Protection,
        *,
        dataset: str = "",
        ledger: Ledger | None = None,
        noise_is_private: bool = True,
    ) -> Run:
        """Certify the worst case of a budget and reserve it; no row may be read before this returns."""
        check_plan(budget)
        name = secrets.token_hex(8)
        head = None
        if ledger:
            head = ledger.reserve(dataset, name, budget, protection, noise_is_private=noise_is_private)
        return cls(
            name=name,
            dataset=dataset,
            protection=protection,
            account=Account(budget=budget),
            ledger=ledger,
            noise_is_private=noise_is_private,
            head=head,
        )

    @classmethod
    def resume(cls, ledger: Ledger, name: str, *, last: Head | None = None) -> Run:
        """Go on with a run that was interrupted; what it recorded is spent, whether or not it was drawn.

        A closed run is refused, unless ``last`` is given, its last entry before it was closed: then it can be certified
        once more as it was, but it draws nothing.
        """
        dataset, known = ledger.run(name)
        if known.closed and last is None:
            raise LedgerError(f"run {name} is closed; start a new one")
        account = replay(known.budget, tuple(Draw.from_data(data) for data in known.draws))
        return cls(
            name=name,
            dataset=dataset,
            protection=known.protection,
            account=account,
            ledger=ledger,
            noise_is_private=known.noise_is_private,
            head=last if known.closed else known.head,
            closed=known.closed,
            _closing=known.head if known.closed else None,
        )

    def record(self, purpose: str, spend: Spend) -> None:
        """Pay for a draw; only when this has returned may it happen."""
        self.record_all([Draw(purpose=purpose, spend=spend)])

    def record_all(self, draws: Sequence[Draw]) -> None:
        """Pay for draws, for all or none; only when this has returned may they happen.

        Draws beyond the budget are a BudgetError and are not recorded; a ledger that cannot be written is a
        LedgerError.
        """
        with self._lock:  # threads that share a run pay one after the other
            after = self.account
            for draw in draws:
                self._check_open(draw.purpose)
                _check_sensitivity(draw.purpose, draw.spend, self.protection)
                after = after.charge(draw)
            if self.ledger and draws:
                self.head = self.ledger.record(self.name, draws, len(self.account.draws))
            self.account = after

    def close(self) -> None:
        """End the run and give the unspent part of its promise back; a second call does nothing."""
        if self.ledger and not self.closed:
            self._closing = self.ledger.close(self.name)
        self.head = self._closing or self.head
        self.closed = True

    def certificate(self, declared_public: Sequence[str] = ()) -> Certificate:
        """Recompute what the recorded draws cost; ``declared_public`` lists what the schema took as known."""
        return Certificate.of(
            self.account,
            self.protection,
            dataset=self.dataset,
            run=self.name,
            noise_is_private=self.noise_is_private,
            declared_public=tuple(declared_public),
            head=self.head,
        )

    def _check_open(self, purpose: str) -> None:
        if os.getpid() != self._process:
            raise BudgetError(f"{purpose}: this run belongs to another process; open one here")
        if self.closed:
            raise BudgetError(f"{purpose}: this run is closed; start a new one")


def _check_sensitivity(purpose: str, spend: Spend, protection: Protection) -> None:
    """Refuse a spend whose sensitivity is below that of a marginal or of a score, which is the least there is."""
    if isinstance(spend, Threshold):
        if spend.rows < protection.rows:
            raise BudgetError(f"{purpose}: the threshold is for {spend.rows} rows; a unit has {protection.rows}")
        spend = spend.noise
    if isinstance(spend, Gaussian) and spend.sensitivity_squared < protection.l2_squared:
        raise BudgetError(f"{purpose}: the noise is for Δ² = {spend.sensitivity_squared}, not {protection.l2_squared}")
    if isinstance(spend, Laplace | Exponential) and spend.sensitivity < protection.rows:
        raise BudgetError(f"{purpose}: the noise is for Δ = {spend.sensitivity}; a unit has {protection.rows} rows")
    if isinstance(spend, Exponential) and spend.monotone and protection.neighbours == "replace":
        raise BudgetError(f"{purpose}: where units are replaced, one score can rise while another falls")
    if isinstance(spend, Laplace) and spend.sensitivity < protection.l1:
        raise BudgetError(f"{purpose}: the noise is for Δ = {spend.sensitivity}, not {protection.l1}")
