"""The ledger: the privacy budget reserved and spent on each dataset, over all of its releases.

A run reserves its whole budget when it opens, records each measurement before it happens, and returns the unspent
budget when it closes. A run that crashed keeps its reservation until somebody closes it. Costs are ρ of zCDP, which add
up over releases whatever their mechanisms, and the δ of partition selection.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpsyn.accounting import hash_chain
from dpsyn.accounting.budget import THRESHOLD_SHARE, Budget, MeasurementRecord, replay
from dpsyn.accounting.certificate import PRIVACY_FLAG, plain_recipe
from dpsyn.accounting.checkpoint import LedgerCheckpoint
from dpsyn.accounting.conversion import epsilon_for, rho_for
from dpsyn.accounting.exact_numbers import Number, exact_fraction, format_exact, round_down
from dpsyn.accounting.hash_chain import LedgerEntry, LedgerHead, LedgerTransaction
from dpsyn.accounting.privacy_unit import PrivacyUnit
from dpsyn.accounting.reconcile import find_disagreements
from dpsyn.errors import BudgetError, DPSynError, LedgerError, quote_argument

_UNREADABLE_ENTRY_ERRORS = (DPSynError, LookupError, TypeError, ValueError, AttributeError)
"""The errors of reading an entry that was not written by DPSyn."""

_JOURNAL_KEY = "journal_key"
"""What opens the answer to a measurement in the journal of its run, in the data of an entry."""


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
                f"a cap of ρ = {float(self.rho):g} and δ = {float(self.delta):g} is not valid; "
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAccount:
    """One run as the ledger records it.

    ``rho`` and ``delta`` are what it holds: its whole budget while it is open, and what it spent once it is closed.
    ``spent_rho`` and ``spent_delta`` are what its measurements cost so far. ``journal_keys`` open their answers in the
    journal of the run.
    """

    run: str
    opened_at: str
    budget: Budget
    privacy_unit: PrivacyUnit
    rho: Fraction
    delta: Fraction
    head: LedgerHead
    uses_real_noise: bool = True
    recipe: dict[str, Any] = field(default_factory=dict, hash=False)
    measurements: tuple[dict[str, Any], ...] = ()
    journal_keys: tuple[str, ...] = field(default=(), repr=False)
    spent_rho: Fraction = Fraction(0)
    spent_delta: Fraction = Fraction(0)
    closed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetAccount:
    """A dataset as the ledger records it: its cap, if there is one, and its runs."""

    dataset: str
    cap: Cap | None = None
    runs: tuple[RunAccount, ...] = ()

    @property
    def privacy_unit(self) -> PrivacyUnit | None:
        """The privacy unit of its releases; None before the first run that measured something or still may."""
        return next((run.privacy_unit for run in self.runs if run.measurements or not run.closed), None)

    @property
    def rho(self) -> Fraction:
        """The ρ that all runs hold together."""
        return sum((run.rho for run in self.runs), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """The δ for partition selection that all runs hold together."""
        return sum((run.delta for run in self.runs), Fraction(0))

    def epsilon(self, delta: Number) -> float:
        """The ε of all runs together at δ: by tight conversion of ρ, or the sum of their guarantees if that is less.

        It is infinite if partition selection holds all of δ. It is the cost so far; the guarantee of releases that
        depend on earlier ones is the cap.
        """
        left = exact_fraction(delta) - self.delta
        converted = epsilon_for(self.rho, left, "zcdp") if left > 0 else float("inf")
        if sum(run.budget.delta for run in self.runs) > exact_fraction(delta):
            return converted
        return min(converted, float(sum(run.budget.epsilon for run in self.runs)))

    def epsilon_left(self, delta: Number | None = None) -> float | None:
        """The largest ε of one more release with Gaussian noise at a δ, by default that of the cap; None without a cap.

        It is less than the ε of the cap even before the first release: the cost of one release is converted exactly,
        the cost of all releases together by the coarser conversion that holds whatever their mechanisms.
        """
        if self.cap is None:
            return None
        left = self.cap.rho - self.rho
        return epsilon_for(left, self.cap.delta if delta is None else delta, "exact") if left > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerVerification:
    """The result of ``Ledger.verify``: the ledger is intact if ``faults`` is empty."""

    entries: int
    head: LedgerHead | None
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger file; the first entry creates it. Many processes may use it at the same time."""

    path: Path

    def set_cap(self, dataset: str, cap: Cap) -> LedgerHead:
        """Set or change the cap of a dataset; earlier runs keep the budget they reserved."""
        _require_name(dataset)
        with hash_chain.open_transaction(self.path) as transaction:
            _refuse_lookalikes(dataset, _parse_accounts(_read_intact_entries(transaction, self.path), self.path))
            payload = {"rho": format_exact(cap.rho), "delta": format_exact(cap.delta)}
            return transaction.append(dataset, "", "cap", payload)

    def reserve(
        self,
        dataset: str,
        run: str,
        budget: Budget,
        privacy_unit: PrivacyUnit,
        *,
        uses_real_noise: bool = True,
        recipe: Mapping[str, Any] = {},
    ) -> LedgerHead:
        """Reserve the whole budget of a new run, or refuse it."""
        _require_name(dataset)
        with hash_chain.open_transaction(self.path) as transaction:
            accounts = _parse_accounts(_read_intact_entries(transaction, self.path), self.path)
            _refuse_lookalikes(dataset, accounts)
            _check_reservation(accounts.get(dataset, DatasetAccount(dataset=dataset)), budget, privacy_unit)
            if transaction.entries(run):
                raise LedgerError(f"run {run} is in the ledger already; use a new name, or resume it")
            payload = {
                "budget": budget.to_data(),
                "privacy_unit": privacy_unit.to_data(),
                PRIVACY_FLAG: uses_real_noise,
                "recipe": plain_recipe(recipe),
            }
            return transaction.append(dataset, run, "open", payload)

    def record(
        self, run: str, measurements: Sequence[MeasurementRecord], position: int, keys: Sequence[str] = ()
    ) -> LedgerHead:
        """Record measurements before anyone sees their answers, all or none.

        ``position`` is the number of earlier ones, and ``keys`` open the answers in the journal of the run: whoever
        can read an answer there can read it because its charge is recorded here.
        """
        with hash_chain.open_transaction(self.path) as transaction:
            dataset, recorded = self._require_open_run(transaction, run)
            if recorded != position:
                raise LedgerError(
                    f"run {run} has {recorded:,} measurements in the ledger, but this process made {position:,}; "
                    "two processes use the same run"
                )
            payloads = [
                record.to_data() | {_JOURNAL_KEY: key}
                for record, key in zip(measurements, keys or [""] * len(measurements), strict=True)
            ]
            return [transaction.append(dataset, run, "measurement", payload) for payload in payloads][-1]

    def close(self, run: str) -> LedgerHead:
        """End a run, also a crashed one: what it spent stays spent, the rest of its budget is returned."""
        with hash_chain.open_transaction(self.path) as transaction:
            dataset, _ = self._require_open_run(transaction, run)
            rho, delta = _sum_costs([e.data for e in transaction.entries(run) if e.kind == "measurement"])
            return transaction.append(dataset, run, "close", {"rho": format_exact(rho), "delta": format_exact(delta)})

    def datasets(self) -> tuple[DatasetAccount, ...]:
        """All datasets, in the order of their first entries."""
        entries = hash_chain.read_entries(self.path)
        _refuse_faulty(hash_chain.find_faults(entries), self.path)
        return tuple(_parse_accounts(entries, self.path).values())

    def require_heads(self, heads: Iterable[LedgerHead]) -> None:
        """Refuse a ledger that lacks entries recorded elsewhere: it was cut, or replaced by an older copy."""
        faults = hash_chain.find_faults(hash_chain.read_entries(self.path), heads)
        if faults:
            raise LedgerError(f"the ledger {self.path} was cut or replaced: {faults[0]}; restore it from a backup")

    def find_run(self, run: str) -> tuple[str, RunAccount]:
        """A run and the name of its dataset."""
        for dataset in self.datasets():
            for account in dataset.runs:
                if account.run == run:
                    return dataset.dataset, account
        raise LedgerError(f"there is no run {quote_argument(run)} in {self.path}")

    def verify(self, against: Iterable[LedgerCheckpoint] = ()) -> LedgerVerification:
        """Check the chain of hashes, that no run exceeded its budget, and the checkpoints recorded elsewhere.

        The certificates of a checkpoint must agree with what this ledger recorded about their runs.
        """
        entries, checkpoints = hash_chain.read_entries(self.path), tuple(against)
        faults = hash_chain.find_faults(entries) or _find_overspending(entries)
        if not faults:
            faults = hash_chain.find_faults(entries, [checkpoint.head for checkpoint in checkpoints])
            certificates = [certificate for checkpoint in checkpoints for certificate in checkpoint.certificates]
            accounts = accounts_from_entries(entries)
            faults += [line for one in certificates for line in find_disagreements(one, entries, accounts)]
        return LedgerVerification(
            entries=len(entries), head=entries[-1].head if entries else None, faults=tuple(faults)
        )

    def _require_open_run(self, transaction: LedgerTransaction, run: str) -> tuple[str, int]:
        """The dataset of an open run and the number of its measurements."""
        dataset, kinds = transaction.count_kinds(run)
        if "open" not in kinds:
            raise LedgerError(f"there is no run {quote_argument(run)} in {self.path}")
        if "close" in kinds:
            raise LedgerError(f"run {run} is closed; start a new one")
        return dataset, kinds.get("measurement", 0)


def accounts_from_entries(entries: Iterable[LedgerEntry]) -> dict[str, DatasetAccount]:
    """The datasets of a chain of entries, in the order of their first entries."""
    caps: dict[str, Cap] = {}
    runs: dict[str, dict[str, RunAccount]] = {}
    for entry in entries:
        accounts = runs.setdefault(entry.dataset, {})
        if entry.kind == "cap":
            caps[entry.dataset] = Cap(rho=exact_fraction(entry.data["rho"]), delta=exact_fraction(entry.data["delta"]))
        elif entry.kind == "open":
            accounts[entry.run] = _open_run_account(entry, entry.data)
        elif entry.run in accounts:
            accounts[entry.run] = _apply_entry(accounts[entry.run], entry)
    return {
        name: DatasetAccount(dataset=name, cap=caps.get(name), runs=tuple(accounts.values()))
        for name, accounts in runs.items()
    }


def _open_run_account(entry: LedgerEntry, data: dict[str, Any]) -> RunAccount:
    budget = Budget.from_data(data["budget"])
    return RunAccount(
        run=entry.run,
        opened_at=entry.time,
        budget=budget,
        privacy_unit=PrivacyUnit(**data["privacy_unit"]),
        rho=budget.reserved_rho,
        delta=budget.threshold_delta,
        head=entry.head,
        uses_real_noise=data[PRIVACY_FLAG],
        recipe=plain_recipe(data["recipe"]),
    )


def _apply_entry(run: RunAccount, entry: LedgerEntry) -> RunAccount:
    data = entry.data
    if entry.kind == "measurement":
        key = data.pop(_JOURNAL_KEY)
        rho, delta = run.spent_rho + exact_fraction(data["rho"]), run.spent_delta + exact_fraction(data["delta"])
        return replace(
            run,
            measurements=(*run.measurements, data),
            journal_keys=(*run.journal_keys, str(key)),
            spent_rho=rho,
            spent_delta=delta,
            head=entry.head,
        )
    return replace(
        run, rho=exact_fraction(data["rho"]), delta=exact_fraction(data["delta"]), head=entry.head, closed=True
    )


def _check_reservation(account: DatasetAccount, budget: Budget, privacy_unit: PrivacyUnit) -> None:
    """Refuse a run that would exceed the cap or has another privacy unit."""
    previous = account.privacy_unit
    if previous and _unit_identity(previous) != _unit_identity(privacy_unit):
        raise LedgerError(
            f"earlier releases of {account.dataset!r} protect against {previous.description}; this one would protect "
            f"against {privacy_unit.description}. Costs of different privacy units do not add up: use the same unit, "
            "or another dataset name for other people"
        )
    cap = account.cap
    if cap and account.rho + budget.reserved_rho > cap.rho:
        sums = _describe_sums("ρ", cap.rho, account.rho, budget.reserved_rho)
        advice = f"{_describe_remaining(account, cap, budget)}. Lower its ε"
        raise _cap_exceeded_error(account, cap, budget, f"{sums}. {advice}")
    if cap and account.delta + budget.threshold_delta > cap.threshold_delta:
        sums = _describe_sums("δ for partition selection", cap.threshold_delta, account.delta, budget.threshold_delta)
        advice = "Lower its δ, list the values that it would discover in the schema"
        raise _cap_exceeded_error(account, cap, budget, f"{sums}. {advice}")


def _unit_identity(privacy_unit: PrivacyUnit) -> tuple[str, str, str]:
    return privacy_unit.neighbors, privacy_unit.id, privacy_unit.record


def _cap_exceeded_error(account: DatasetAccount, cap: Cap, budget: Budget, why: str) -> LedgerError:
    return LedgerError(
        f"this release asks for ε = {float(budget.epsilon):g} at δ = {float(budget.delta):g}, more than is left of the "
        f"cap of {account.dataset!r}, which is ε = {cap.epsilon:.6g} at δ = {float(cap.delta):g} for all releases "
        f"together: {why}, close abandoned runs (dpsyn ledger show lists them), or raise the cap (dpsyn ledger set-cap)"
    )


def _describe_sums(what: str, cap: Fraction, held: Fraction, requested: Fraction) -> str:
    return (
        f"of {what} = {float(cap):.6g}, {float(held):.6g} is reserved or spent, "
        f"and this release needs {float(requested):.6g}"
    )


def _describe_remaining(account: DatasetAccount, cap: Cap, budget: Budget) -> str:
    """The largest ε of one more release, at the cap's δ and at the requested δ."""
    left = account.epsilon_left()
    if not left:
        return "Nothing is left"
    text = (
        f"One more release with Gaussian noise may use up to ε = {_format_rounded_down(left)} "
        f"at δ = {float(cap.delta):g}"
    )
    noise_delta = budget.delta - budget.threshold_delta  # the δ of partition selection is not for noise
    if budget.rho and noise_delta != cap.delta:
        text += f", or {_format_rounded_down(account.epsilon_left(noise_delta) or 0)} at the δ of this one"
    return text


def _format_rounded_down(epsilon: float) -> str:
    """Three digits, rounded down, so a release may still use it."""
    if epsilon <= 0:
        return "0"
    unit = Fraction(10) ** (math.floor(math.log10(epsilon)) - 2)
    return f"{float(Fraction(epsilon) // unit * unit):.12g}"


def _read_intact_entries(transaction: LedgerTransaction, path: Path) -> tuple[LedgerEntry, ...]:
    """All entries, refused if somebody tampered with them."""
    entries = transaction.entries()
    _refuse_faulty(hash_chain.find_faults(entries), path)
    return entries


def _parse_accounts(entries: tuple[LedgerEntry, ...], path: Path) -> dict[str, DatasetAccount]:
    """The datasets of the entries; refused if an entry, although its hash is right, is not as DPSyn writes it."""
    try:
        return accounts_from_entries(entries)
    except _UNREADABLE_ENTRY_ERRORS as error:
        raise LedgerError(
            f"the ledger {path} has an entry that this DPSyn cannot read ({type(error).__name__}: {error}); "
            f"it was written by a newer DPSyn or by something else: run dpsyn ledger verify"
        ) from None


def _refuse_faulty(faults: list[str], path: Path) -> None:
    if faults:
        raise LedgerError(f"the ledger {path} was tampered with: {faults[0]}; run dpsyn ledger verify")


def _find_overspending(entries: tuple[LedgerEntry, ...]) -> list[str]:
    faults = []
    try:
        accounts = accounts_from_entries(entries)
    except _UNREADABLE_ENTRY_ERRORS as error:
        return [f"an entry is not as DPSyn writes it: {error}"]
    for dataset in accounts.values():
        for run in dataset.runs:
            try:
                replay(run.budget, tuple(MeasurementRecord.from_data(data) for data in run.measurements))
            except DPSynError as error:
                faults.append(f"run {run.run} of {dataset.dataset!r}: {error}")
            if run.closed and (run.rho, run.delta) != (run.spent_rho, run.spent_delta):
                faults.append(
                    f"run {run.run} of {dataset.dataset!r} was closed with another cost than that of its measurements"
                )
    return faults


def _sum_costs(measurements: Sequence[Mapping[str, Any]]) -> tuple[Fraction, Fraction]:
    """The sums of ρ and δ of recorded measurements."""
    rho = sum((exact_fraction(data["rho"]) for data in measurements), Fraction(0))
    return rho, sum((exact_fraction(data["delta"]) for data in measurements), Fraction(0))


def _require_name(dataset: str) -> None:
    if not dataset:
        raise LedgerError("a ledger needs the name of the dataset; give one in the schema or with --dataset")
    if dataset != dataset.strip() or not dataset.isprintable():
        raise LedgerError(f"the dataset name {dataset!r} has spaces around it or invisible characters")


def _refuse_lookalikes(dataset: str, names: Iterable[str]) -> None:
    """Refuse a name that is easily taken for one in the ledger: its budget would be counted separately."""
    for other in names:
        if other != dataset and _normalize_name(other) == _normalize_name(dataset):
            raise LedgerError(f"the ledger has this dataset as {other!r}; use that name instead of {dataset!r}")


def _normalize_name(dataset: str) -> str:
    return unicodedata.normalize("NFKC", dataset).casefold()
