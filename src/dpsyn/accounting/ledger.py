"""What was promised and spent on each dataset, over all its releases.

A run reserves its whole promise when it opens, records each draw before it happens, and gives the unspent part
back when it closes. A run that crashed keeps its reservation until somebody closes it. Costs are ρ of zCDP, which
add up over releases whatever their mechanisms, and the δ of thresholds.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpsyn.accounting import hash_chain
from dpsyn.accounting.budget import THRESHOLD_SHARE, Budget, MeasurementRecord
from dpsyn.accounting.budget import replay as replay_draws
from dpsyn.accounting.certificate import PRIVACY_FLAG
from dpsyn.accounting.checkpoint import LedgerCheckpoint
from dpsyn.accounting.conversion import epsilon_for, rho_for
from dpsyn.accounting.exact_numbers import Number, exact_fraction, format_exact, round_down
from dpsyn.accounting.hash_chain import LedgerEntry, LedgerHead, LedgerTransaction
from dpsyn.accounting.privacy_unit import PrivacyUnit
from dpsyn.accounting.reconcile import find_disagreements
from dpsyn.errors import BudgetError, DPSynError, LedgerError

_UNREADABLE_ENTRY_ERRORS = (DPSynError, LookupError, TypeError, ValueError, AttributeError)
"""What reading an entry raises that something other than DPSyn wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The most that all releases of a dataset may cost together.

    A tenth of δ is for thresholds; the rest goes with ρ into the tight conversion. So the dataset as a whole is
    (ε, δ)-DP with the ε shown.
    """

    rho: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if self.rho <= 0 or not 0 < self.delta < 1:
            raise BudgetError(
                f"a cap of ρ = {float(self.rho):g} and δ = {float(self.delta):g} bounds nothing; "
                f"give a positive ρ and a δ between 0 and 1, such as 1e-9"
            )

    @classmethod
    def for_guarantee(cls, epsilon: Number, delta: Number) -> Cap:
        """The cap that promises (ε, δ) for all releases together."""
        whole = round_down(exact_fraction(delta))
        if not 0 < whole < 1:
            raise BudgetError(f"δ is {delta}; a cap needs a δ from 1e-36 to below 1, such as 1e-9")
        return cls(rho=rho_for(epsilon, whole * (1 - THRESHOLD_SHARE), "zcdp"), delta=whole)

    @property
    def threshold_delta(self) -> Fraction:
        """What thresholds may be charged together."""
        return self.delta * THRESHOLD_SHARE

    @property
    def epsilon(self) -> float:
        """The ε of the whole dataset at δ."""
        return epsilon_for(self.rho, self.delta - self.threshold_delta, "zcdp")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAccount:
    """One run as the ledger knows it.

    ``rho`` and ``delta`` are what it holds: its whole promise, or what it drew once it is closed. ``spent_rho`` and
    ``spent_delta`` are what its draws cost so far.
    """

    run: str
    opened_at: str
    budget: Budget
    privacy_unit: PrivacyUnit
    rho: Fraction
    delta: Fraction
    head: LedgerHead
    uses_real_noise: bool = True
    measurements: tuple[dict[str, Any], ...] = ()
    spent_rho: Fraction = Fraction(0)
    spent_delta: Fraction = Fraction(0)
    closed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetAccount:
    """A dataset as the ledger knows it: its cap, if there is one, and its runs."""

    dataset: str
    cap: Cap | None = None
    runs: tuple[RunAccount, ...] = ()

    @property
    def privacy_unit(self) -> PrivacyUnit | None:
        """Whom its releases protect; None before the first one that drew something or still may."""
        return next((run.privacy_unit for run in self.runs if run.measurements or not run.closed), None)

    @property
    def rho(self) -> Fraction:
        """What all runs hold together."""
        return sum((run.rho for run in self.runs), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """What thresholds of all runs hold together."""
        return sum((run.delta for run in self.runs), Fraction(0))

    def epsilon(self, delta: Number) -> float:
        """The ε of all runs together at δ: by tight conversion of ρ, or the sum of promises if that is less.

        It is infinite if thresholds hold all of δ. It says what was used; what is guaranteed of releases that depend
        on earlier ones is the cap.
        """
        left = exact_fraction(delta) - self.delta
        converted = epsilon_for(self.rho, left, "zcdp") if left > 0 else float("inf")
        if sum(run.budget.delta for run in self.runs) > exact_fraction(delta):
            return converted
        return min(converted, float(sum(run.budget.epsilon for run in self.runs)))

    def epsilon_left(self, delta: Number | None = None) -> float | None:
        """The ε that one more release with Gaussian noise may promise at a δ, the cap's if none is given.

        It is None without a cap.

        It is less than the cap's own ε even before the first release: what one release costs is converted exactly,
        what all of them cost together by the coarser conversion that holds whatever they are.
        """
        if self.cap is None:
            return None
        left = self.cap.rho - self.rho
        return epsilon_for(left, self.cap.delta if delta is None else delta, "exact") if left > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerVerification:
    """What ``verify`` found: nothing is wrong if ``faults`` is empty."""

    entries: int
    head: LedgerHead | None
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger file; it is made by the first entry. Many processes may use it at once."""

    path: Path

    def set_cap(self, dataset: str, cap: Cap) -> LedgerHead:
        """Set or change the cap of a dataset; what was promised before stays promised."""
        _require_name(dataset)
        with hash_chain.open_transaction(self.path) as transaction:
            _refuse_lookalikes(dataset, _parse_accounts(_read_intact_entries(transaction, self.path), self.path))
            payload = {"rho": format_exact(cap.rho), "delta": format_exact(cap.delta)}
            return transaction.append(dataset, "", "cap", payload)

    def reserve(
        self, dataset: str, run: str, budget: Budget, privacy_unit: PrivacyUnit, *, uses_real_noise: bool = True
    ) -> LedgerHead:
        """Set the whole promise of a new run aside, or refuse it."""
        _require_name(dataset)
        with hash_chain.open_transaction(self.path) as transaction:
            known = _parse_accounts(_read_intact_entries(transaction, self.path), self.path)
            _refuse_lookalikes(dataset, known)
            _check_reservation(known.get(dataset, DatasetAccount(dataset=dataset)), budget, privacy_unit)
            if transaction.entries(run):
                raise LedgerError(f"run {run} is in the ledger already; take a new name, or resume it")
            payload = {
                "budget": budget.to_data(),
                "privacy_unit": privacy_unit.to_data(),
                PRIVACY_FLAG: uses_real_noise,
            }
            return transaction.append(dataset, run, "open", payload)

    def record(self, run: str, measurements: Sequence[MeasurementRecord], position: int) -> LedgerHead:
        """Write down draws before they happen, all or none; ``position`` is the number of draws before them."""
        with hash_chain.open_transaction(self.path) as transaction:
            dataset, drawn = self._require_open_run(transaction, run)
            if drawn != position:
                raise LedgerError(f"run {run} has other draws in the ledger than this process knows; it was used twice")
            return [transaction.append(dataset, run, "measurement", draw.to_data()) for draw in measurements][-1]

    def close(self, run: str) -> LedgerHead:
        """End a run, crashed ones included: what it drew stays spent, the rest of its promise is free again."""
        with hash_chain.open_transaction(self.path) as transaction:
            dataset, _ = self._require_open_run(transaction, run)
            rho, delta = _sum_costs(
                tuple(entry.data for entry in transaction.entries(run) if entry.kind == "measurement")
            )
            return transaction.append(dataset, run, "close", {"rho": format_exact(rho), "delta": format_exact(delta)})

    def datasets(self) -> tuple[DatasetAccount, ...]:
        """All datasets, in the order in which they appeared."""
        entries = hash_chain.read_entries(self.path)
        _refuse_faulty(hash_chain.find_faults(entries), self.path)
        return tuple(_parse_accounts(entries, self.path).values())

    def find_run(self, run: str) -> tuple[str, RunAccount]:
        """A run and the name of its dataset."""
        for dataset in self.datasets():
            for account in dataset.runs:
                if account.run == run:
                    return dataset.dataset, account
        raise LedgerError(f"there is no run {run} in {self.path}")

    def verify(self, against: Iterable[LedgerCheckpoint] = ()) -> LedgerVerification:
        """Check the chain, that no run spent more than its promise, and what releases recorded of it elsewhere.

        The certificates of a witness must say of their runs what this ledger recorded of them.
        """
        entries, witnesses = hash_chain.read_entries(self.path), tuple(against)
        faults = hash_chain.find_faults(entries) or _find_overspending(entries)
        if not faults:
            faults = hash_chain.find_faults(entries, [witness.head for witness in witnesses])
            stated = [certificate for witness in witnesses for certificate in witness.certificates]
            known = accounts_from_entries(entries)
            faults += [line for one in stated for line in find_disagreements(one, entries, known)]
        return LedgerVerification(
            entries=len(entries), head=entries[-1].head if entries else None, faults=tuple(faults)
        )

    def _require_open_run(self, transaction: LedgerTransaction, run: str) -> tuple[str, int]:
        """The dataset of an open run and the number of its draws."""
        dataset, kinds = transaction.count_kinds(run)
        if "open" not in kinds:
            raise LedgerError(f"there is no run {run} in {self.path}")
        if "close" in kinds:
            raise LedgerError(f"run {run} is closed; start a new one")
        return dataset, kinds.get("measurement", 0)


def accounts_from_entries(entries: Iterable[LedgerEntry]) -> dict[str, DatasetAccount]:
    """The datasets that a chain of entries tells of, in the order in which they appear."""
    caps: dict[str, Cap] = {}
    runs: dict[str, dict[str, RunAccount]] = {}
    for entry in entries:
        known = runs.setdefault(entry.dataset, {})
        if entry.kind == "cap":
            caps[entry.dataset] = Cap(rho=exact_fraction(entry.data["rho"]), delta=exact_fraction(entry.data["delta"]))
        elif entry.kind == "open":
            known[entry.run] = _open_run_account(entry, entry.data)
        elif entry.run in known:
            known[entry.run] = _apply_entry(known[entry.run], entry)
    return {
        name: DatasetAccount(dataset=name, cap=caps.get(name), runs=tuple(known.values()))
        for name, known in runs.items()
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
    )


def _apply_entry(run: RunAccount, entry: LedgerEntry) -> RunAccount:
    data = entry.data
    if entry.kind == "measurement":
        rho, delta = run.spent_rho + exact_fraction(data["rho"]), run.spent_delta + exact_fraction(data["delta"])
        return replace(run, measurements=(*run.measurements, data), spent_rho=rho, spent_delta=delta, head=entry.head)
    return replace(
        run, rho=exact_fraction(data["rho"]), delta=exact_fraction(data["delta"]), head=entry.head, closed=True
    )


def _check_reservation(known: DatasetAccount, budget: Budget, privacy_unit: PrivacyUnit) -> None:
    """Refuse a run that would break the cap or protects somebody else."""
    before = known.privacy_unit
    if before and _unit_identity(before) != _unit_identity(privacy_unit):
        raise LedgerError(
            f"releases of {known.dataset!r} protect {before.description}; this one would protect {privacy_unit.description}. "
            f"Costs of different units do not add up: use the first one, or another dataset name for other people"
        )
    cap = known.cap
    if cap and known.rho + budget.reserved_rho > cap.rho:
        sums = _describe_sums("ρ", cap.rho, known.rho, budget.reserved_rho)
        raise _cap_exceeded_error(known, cap, budget, f"{sums}. {_describe_remaining(known, cap, budget)}. Lower its ε")
    if cap and known.delta + budget.threshold_delta > cap.threshold_delta:
        sums = _describe_sums("δ of thresholds", cap.threshold_delta, known.delta, budget.threshold_delta)
        raise _cap_exceeded_error(
            known, cap, budget, f"{sums}. Lower its δ, list the values that it would buy in the schema"
        )


def _unit_identity(privacy_unit: PrivacyUnit) -> tuple[str, str, str]:
    return privacy_unit.neighbors, privacy_unit.id, privacy_unit.record


def _cap_exceeded_error(known: DatasetAccount, cap: Cap, budget: Budget, why: str) -> LedgerError:
    return LedgerError(
        f"this release asks for ε = {float(budget.epsilon):g} at δ = {float(budget.delta):g}, more than is left of the "
        f"cap of {known.dataset!r}, which is ε = {cap.epsilon:.6g} at δ = {float(cap.delta):g} for all releases "
        f"together: {why}, close abandoned runs (dpsyn ledger show lists them), or raise the cap (dpsyn ledger cap)"
    )


def _describe_sums(what: str, whole: Fraction, held: Fraction, asked: Fraction) -> str:
    """Why there is too little, in what the ledger adds up."""
    return (
        f"of {what} = {float(whole):.6g}, {float(held):.6g} is promised or spent, and this one needs {float(asked):.6g}"
    )


def _describe_remaining(known: DatasetAccount, cap: Cap, budget: Budget) -> str:
    """The ε that one more release may promise, at the cap's δ and at the one that was asked for."""
    left = known.epsilon_left()
    if not left:
        return "Nothing is left"
    words = f"One more release with Gaussian noise may promise up to ε = {_format_rounded_down(left)} at δ = {float(cap.delta):g}"
    noise_delta = budget.delta - budget.threshold_delta  # what thresholds take of δ is not for noise
    if budget.rho and noise_delta != cap.delta:
        words += f", or {_format_rounded_down(known.epsilon_left(noise_delta) or 0)} at the δ of this one"
    return words


def _format_rounded_down(epsilon: float) -> str:
    """Three digits, rounded down, so that a release may still ask for it."""
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
    """What the entries tell; refused if one of them, though chained, is not as DPSyn writes it."""
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
    found = []
    try:
        known = accounts_from_entries(entries)
    except _UNREADABLE_ENTRY_ERRORS as error:
        return [f"an entry is not as DPSyn writes it: {error}"]
    for dataset in known.values():
        for run in dataset.runs:
            try:
                replay_draws(run.budget, tuple(MeasurementRecord.from_data(data) for data in run.measurements))
            except DPSynError as error:
                found.append(f"run {run.run} of {dataset.dataset!r}: {error}")
            if run.closed and (run.rho, run.delta) != (run.spent_rho, run.spent_delta):
                found.append(f"run {run.run} of {dataset.dataset!r} closed with another sum than that of its draws")
    return found


def _sum_costs(measurements: tuple[dict[str, Any], ...]) -> tuple[Fraction, Fraction]:
    """What draws cost together, in the ledger's currency."""
    rho = sum((exact_fraction(data["rho"]) for data in measurements), Fraction(0))
    return rho, sum((exact_fraction(data["delta"]) for data in measurements), Fraction(0))


def _require_name(dataset: str) -> None:
    if not dataset:
        raise LedgerError("a ledger needs the name of the dataset; give one in the schema or with --dataset")
    if dataset != dataset.strip() or not dataset.isprintable():
        raise LedgerError(f"the dataset name {dataset!r} has spaces around it or characters that cannot be seen")


def _refuse_lookalikes(dataset: str, known: Iterable[str]) -> None:
    """Refuse a name that people would take for a known one: its budget would be counted apart."""
    for other in known:
        if other != dataset and _normalize_name(other) == _normalize_name(dataset):
            raise LedgerError(f"the ledger knows this dataset as {other!r}; use that name instead of {dataset!r}")


def _normalize_name(dataset: str) -> str:
    return unicodedata.normalize("NFKC", dataset).casefold()
