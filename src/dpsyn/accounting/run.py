"""A run: one release and its record in the ledger. It is opened, charged before each measurement, closed, certified."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpsyn.accounting.budget import Account, Budget, MeasurementRecord, check_budget, replay
from dpsyn.accounting.certificate import Certificate, RunOutcome, plain_recipe
from dpsyn.accounting.costs import MechanismCost, check_sensitivity
from dpsyn.accounting.hash_chain import LedgerHead
from dpsyn.accounting.ledger import Ledger
from dpsyn.accounting.privacy_unit import PrivacyUnit
from dpsyn.errors import BudgetError, LedgerError


@dataclass(slots=True, kw_only=True)
class Run:
    """A release in progress, the only mutable value of this package. Make it with ``Run.open`` or ``Run.resume``.

    Attributes:
        name: a random name that identifies the run in the ledger.
        dataset: the name of the dataset.
        privacy_unit: the privacy unit and the neighboring relation.
        account: the budget and the measurements so far.
        ledger: where the run is recorded; None accounts for this run only.
        uses_real_noise: False if a test injected the noise; the certificate then states so permanently.
        recipe: what identifies the recipe, as plain JSON data.
        declared_public: facts that the data owner declared public.
        ledger_head: the ledger's last entry about this run.
        closed: whether the run ended.
    """

    name: str
    dataset: str
    privacy_unit: PrivacyUnit
    account: Account
    ledger: Ledger | None
    uses_real_noise: bool = True
    recipe: dict[str, Any] = field(default_factory=dict)
    declared_public: tuple[str, ...] = ()
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
        recipe: Mapping[str, Any] = {},
        declared_public: Sequence[str] = (),
    ) -> Run:
        """Certify the worst case of a budget and reserve it; no row may be read before this returns."""
        check_budget(budget)
        name, plain = secrets.token_hex(8), plain_recipe(recipe)
        head = None
        if ledger:
            head = ledger.reserve(
                dataset,
                name,
                budget,
                privacy_unit,
                uses_real_noise=uses_real_noise,
                recipe=plain,
                declared_public=declared_public,
            )
        return cls(
            name=name,
            dataset=dataset,
            privacy_unit=privacy_unit,
            account=Account(budget=budget),
            ledger=ledger,
            uses_real_noise=uses_real_noise,
            recipe=plain,
            declared_public=tuple(declared_public),
            ledger_head=head,
        )

    @classmethod
    def resume(cls, ledger: Ledger, name: str, *, last_head: LedgerHead | None = None) -> Run:
        """Continue a run that was interrupted; its recorded measurements are spent, whether or not they were made.

        A closed run is refused, unless ``last_head`` is given, its last entry before it was closed. Then it can be
        certified again as it was, but it makes no new measurements.
        """
        dataset, recorded = ledger.find_run(name)
        if recorded.closed and last_head is None:
            raise LedgerError(f"run {name} is closed; start a new one")
        account = replay(recorded.budget, tuple(MeasurementRecord.from_data(data) for data in recorded.measurements))
        return cls(
            name=name,
            dataset=dataset,
            privacy_unit=recorded.privacy_unit,
            account=account,
            ledger=ledger,
            uses_real_noise=recorded.uses_real_noise,
            recipe=recorded.recipe,
            declared_public=recorded.declared_public,
            ledger_head=last_head if recorded.closed else recorded.head,
            closed=recorded.closed,
            _closing_head=recorded.head if recorded.closed else None,
        )

    def charge(self, purpose: str, cost: MechanismCost) -> None:
        """Charge one measurement; only when this returns may anyone see its answer."""
        self.charge_all([MeasurementRecord(purpose=purpose, cost=cost)])

    def check_charge(self, measurements: Sequence[MeasurementRecord]) -> Account:
        """The account after these measurements; those beyond the budget are a BudgetError. Nothing is charged yet."""
        account = self.account
        for measurement in measurements:
            self._check_open(measurement.purpose)
            check_sensitivity(measurement.purpose, measurement.cost, self.privacy_unit)
            account = account.charge(measurement)
        return account

    def charge_all(self, measurements: Sequence[MeasurementRecord], keys: Sequence[str] = ()) -> None:
        """Charge measurements, all or none; only when this returns may anyone see their answers.

        Measurements beyond the budget are a BudgetError and are not recorded; a ledger that cannot be written is a
        LedgerError. ``keys`` open the answers that a journal holds sealed; the ledger records them with the charges.
        """
        with self._lock:  # threads that share a run are charged one after the other
            account = self.check_charge(measurements)
            if self.ledger and measurements:
                position = len(self.account.measurements)
                self.ledger_head = self.ledger.record(self.name, measurements, position, keys)
            self.account = account

    def close(self, outcome: RunOutcome = RunOutcome()) -> None:  # noqa: B008 -- frozen
        """End the run and return its unspent budget; a second call does nothing."""
        if self.ledger and not self.closed:
            self._closing_head = self.ledger.close(self.name, outcome)
        self.ledger_head = self._closing_head or self.ledger_head
        self.closed = True

    def certificate(self, outcome: RunOutcome = RunOutcome()) -> Certificate:  # noqa: B008 -- frozen
        """Recompute the cost of the measurements."""
        return Certificate.from_account(
            self.account,
            self.privacy_unit,
            dataset=self.dataset,
            run=self.name,
            uses_real_noise=self.uses_real_noise,
            declared_public=self.declared_public,
            ledger_head=self.ledger_head,
            recipe=self.recipe,
            outcome=outcome,
        )

    def _check_open(self, purpose: str) -> None:
        if os.getpid() != self._process:
            raise BudgetError(f"{purpose}: this run belongs to another process; open one here")
        if self.closed:
            raise BudgetError(f"{purpose}: this run is closed; start a new one")
