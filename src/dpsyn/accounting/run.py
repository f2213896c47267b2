"""One release's dealings with the ledger: open, record each draw before it happens, close, certify."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from dpsyn.accounting.budget import Account, Budget, MeasurementRecord, check_budget, replay
from dpsyn.accounting.certificate import Certificate
from dpsyn.accounting.costs import Exponential, Gaussian, Laplace, MechanismCost, PartitionSelection
from dpsyn.accounting.hash_chain import LedgerHead
from dpsyn.accounting.ledger import Ledger
from dpsyn.accounting.privacy_unit import PrivacyUnit
from dpsyn.errors import BudgetError, LedgerError


@dataclass(slots=True, kw_only=True)
class Run:
    """A release in progress; the only value here that changes. Make it with ``Run.open`` or ``Run.resume``.

    Attributes:
        name: a random name, under which the ledger knows it.
        dataset: the dataset it draws from.
        privacy_unit: whom it protects.
        account: what it drew so far.
        ledger: where it is recorded; None counts this run only.
        uses_real_noise: False if a test injected the noise; the certificate says so for ever.
        ledger_head: the ledger's last entry about this run.
        closed: whether it ended.
    """

    name: str
    dataset: str
    privacy_unit: PrivacyUnit
    account: Account
    ledger: Ledger | None
    uses_real_noise: bool = True
    ledger_head: LedgerHead | None = None
    closed: bool = False
    _closing_head: LedgerHead | None = field(default=None, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    _process: int = field(default_factory=os.getpid, repr=False, compare=False)

    @classmethod
    def open(
        cls,
        budget: Budget,
        privacy_unit: PrivacyUnit,
        *,
        dataset: str = "",
        ledger: Ledger | None = None,
        uses_real_noise: bool = True,
    ) -> Run:
        """Certify the worst case of a budget and reserve it; no row may be read before this returns."""
        check_budget(budget)
        name = secrets.token_hex(8)
        head = None
        if ledger:
            head = ledger.reserve(dataset, name, budget, privacy_unit, uses_real_noise=uses_real_noise)
        return cls(
            name=name,
            dataset=dataset,
            privacy_unit=privacy_unit,
            account=Account(budget=budget),
            ledger=ledger,
            uses_real_noise=uses_real_noise,
            ledger_head=head,
        )

    @classmethod
    def resume(cls, ledger: Ledger, name: str, *, last_head: LedgerHead | None = None) -> Run:
        """Go on with a run that was interrupted; what it recorded is spent, whether or not it was drawn.

        A closed run is refused, unless ``last_head`` is given, its last entry before it was closed: then it can be certified
        once more as it was, but it draws nothing.
        """
        dataset, known = ledger.find_run(name)
        if known.closed and last_head is None:
            raise LedgerError(f"run {name} is closed; start a new one")
        account = replay(known.budget, tuple(MeasurementRecord.from_data(data) for data in known.measurements))
        return cls(
            name=name,
            dataset=dataset,
            privacy_unit=known.privacy_unit,
            account=account,
            ledger=ledger,
            uses_real_noise=known.uses_real_noise,
            ledger_head=last_head if known.closed else known.head,
            closed=known.closed,
            _closing_head=known.head if known.closed else None,
        )

    def charge(self, purpose: str, cost: MechanismCost) -> None:
        """Pay for a draw; only when this has returned may it happen."""
        self.charge_all([MeasurementRecord(purpose=purpose, cost=cost)])

    def charge_all(self, measurements: Sequence[MeasurementRecord]) -> None:
        """Pay for draws, for all or none; only when this has returned may they happen.

        Draws beyond the budget are a BudgetError and are not recorded; a ledger that cannot be written is a
        LedgerError.
        """
        with self._lock:  # threads that share a run pay one after the other
            after = self.account
            for draw in measurements:
                self._check_open(draw.purpose)
                _check_sensitivity(draw.purpose, draw.cost, self.privacy_unit)
                after = after.charge(draw)
            if self.ledger and measurements:
                self.ledger_head = self.ledger.record(self.name, measurements, len(self.account.measurements))
            self.account = after

    def close(self) -> None:
        """End the run and give the unspent part of its promise back; a second call does nothing."""
        if self.ledger and not self.closed:
            self._closing_head = self.ledger.close(self.name)
        self.ledger_head = self._closing_head or self.ledger_head
        self.closed = True

    def certificate(self, declared_public: Sequence[str] = ()) -> Certificate:
        """Recompute what the recorded draws cost; ``declared_public`` lists what the schema took as known."""
        return Certificate.from_account(
            self.account,
            self.privacy_unit,
            dataset=self.dataset,
            run=self.name,
            uses_real_noise=self.uses_real_noise,
            declared_public=tuple(declared_public),
            ledger_head=self.ledger_head,
        )

    def _check_open(self, purpose: str) -> None:
        if os.getpid() != self._process:
            raise BudgetError(f"{purpose}: this run belongs to another process; open one here")
        if self.closed:
            raise BudgetError(f"{purpose}: this run is closed; start a new one")


def _check_sensitivity(purpose: str, cost: MechanismCost, privacy_unit: PrivacyUnit) -> None:
    """Refuse a spend whose sensitivity is below that of a marginal or of a score, which is the least there is."""
    if isinstance(cost, PartitionSelection):
        if cost.max_rows < privacy_unit.max_rows:
            raise BudgetError(
                f"{purpose}: the threshold is for {cost.max_rows} rows; a unit has {privacy_unit.max_rows}"
            )
        cost = cost.noise
    if isinstance(cost, Gaussian) and cost.sensitivity_squared < privacy_unit.l2_sensitivity_squared:
        raise BudgetError(
            f"{purpose}: the noise is for Δ² = {cost.sensitivity_squared}, not {privacy_unit.l2_sensitivity_squared}"
        )
    if isinstance(cost, Laplace | Exponential) and cost.sensitivity < privacy_unit.max_rows:
        raise BudgetError(
            f"{purpose}: the noise is for Δ = {cost.sensitivity}; a unit has {privacy_unit.max_rows} rows"
        )
    if isinstance(cost, Exponential) and cost.monotone and privacy_unit.neighbors == "replace":
        raise BudgetError(f"{purpose}: where units are replaced, one score can rise while another falls")
    if isinstance(cost, Laplace) and cost.sensitivity < privacy_unit.l1_sensitivity:
        raise BudgetError(f"{purpose}: the noise is for Δ = {cost.sensitivity}, not {privacy_unit.l1_sensitivity}")
