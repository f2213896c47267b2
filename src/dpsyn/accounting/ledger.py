"""The ledger: the privacy budget reserved and spent on each dataset, over all of its releases.

A ledger is begun on purpose, by ``Ledger.create``; a path that does not exist is a mistake. A run reserves its whole
budget when it opens, records each measurement before it happens, and returns the unspent budget when it closes. A run
that crashed keeps its reservation until somebody closes it. Costs are ρ of zCDP, which add up over releases whatever
their mechanisms, and the δ of partition selection. If all releases of a dataset are pure, their ε add up, too, and it
is enough that one of the two sums is within the cap (``DatasetAccount.fits_as_pure``).
"""

from __future__ import annotations

import contextlib
import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpsyn.accounting import hash_chain
from dpsyn.accounting.budget import MAX_EPSILON, Budget, MeasurementRecord, replay
from dpsyn.accounting.cap import Cap
from dpsyn.accounting.certificate import PRIVACY_FLAG, RunOutcome, parse_privacy_flag, plain_recipe
from dpsyn.accounting.checkpoint import LedgerCheckpoint
from dpsyn.accounting.conversion import epsilon_for
from dpsyn.accounting.exact_numbers import Number, exact_fraction, format_exact, format_short
from dpsyn.accounting.hash_chain import BEGIN_KIND, LedgerEntry, LedgerHead, LedgerTransaction
from dpsyn.accounting.head_store import head_path, load_head, store_head
from dpsyn.accounting.privacy_unit import PrivacyUnit
from dpsyn.accounting.reconcile import find_disagreements, why_not_comparable
from dpsyn.errors import BudgetError, DPSynError, LedgerError, quote_argument

_UNREADABLE_ENTRY_ERRORS = (
    DPSynError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""The errors of reading an entry that was not written by DPSyn."""

_JOURNAL_KEY = "journal_key"
"""What opens the answer to a measurement in the journal of its run, in the data of an entry."""

_MAX_COST = MAX_EPSILON**2
"""More than any run can cost in ρ: pure steps with the largest ε together cost half of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAccount:
    """One run as the ledger records it.

    ``rho`` and ``delta`` are what it holds: its whole budget while it is open, and what it spent once it is closed.
    ``spent_rho`` and ``spent_delta`` are what its measurements cost so far. ``journal_keys`` open their answers in the
    journal of the run. ``outcome`` is None while it is open.
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
    declared_public: tuple[str, ...] = ()
    measurements: tuple[dict[str, Any], ...] = ()
    journal_keys: tuple[str, ...] = field(default=(), repr=False)
    spent_rho: Fraction = Fraction(0)
    spent_delta: Fraction = Fraction(0)
    closed: bool = False
    outcome: RunOutcome | None = None


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

    @property
    def pure_epsilon(self) -> Fraction | None:
        """The sum of the ε of all runs that measured something or still may; None if one of them is not pure."""
        runs = [run for run in self.runs if run.measurements or not run.closed]
        if not all(run.budget.is_pure for run in runs):
            return None
        return sum((run.budget.epsilon for run in runs), Fraction(0))

    def fits_as_pure(self, cap: Cap, budget: Budget) -> bool:
        """Whether one more run is within a cap because it and all others are pure, and their ε add up to at most ε.

        Privacy: of all outcomes of a dataset's releases, let A be those whose ρ add up to at most that of the cap, and
        B the others, whose ε do. Both sums only grow from measurement to measurement. So releases that refuse what
        exceeds ρ have the outcomes A with the same probabilities, and are (ε, δ)-DP together; releases that refuse what
        exceeds ε have the outcomes B with the same ones, and are (ε, 0)-DP. For every event S and neighboring tables,
        P(S) = P(S ∩ A) + P(S ∩ B) ≤ e^ε·Q(S ∩ A) + δ + e^ε·Q(S ∩ B) = e^ε·Q(S) + δ.
        """
        held = self.pure_epsilon
        return held is not None and budget.is_pure and held + budget.epsilon <= Fraction(cap.epsilon)

    @property
    def pure_epsilon_left(self) -> float:
        """The largest ε of one more pure release, if all others are pure; 0 if there is no cap, or nothing is left."""
        if self.cap is None or self.pure_epsilon is None:
            return 0.0
        left = self.cap.epsilon - float(self.pure_epsilon)
        return left if left > self.cap.epsilon * 1e-9 else 0.0  # the ε of a cap is rounded up by less than that

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
    """The result of ``Ledger.verify``: as far as it can know, the ledger is intact if ``faults`` is empty.

    Attributes:
        entries: the number of entries.
        head: the last entry.
        faults: what is wrong, in sentences; first what is wrong with the ledger by itself.
        intact: whether the ledger is intact by itself, so that all faults concern files that were compared with it.
        not_compared: what was given and cannot be compared with a ledger, in sentences.
        remembered: the last entry that this account of the computer had seen before; None if it had seen none, and
            then it cannot know whether later entries were cut off.
    """

    entries: int
    head: LedgerHead | None
    faults: tuple[str, ...]
    intact: bool = True
    not_compared: tuple[str, ...] = ()
    remembered: LedgerHead | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger file that exists; ``Ledger.create`` begins one. Many processes may use it at the same time."""

    path: Path

    @classmethod
    def create(cls, path: str | Path, caps: Mapping[str, Cap] = {}) -> Ledger:
        """Begin a ledger in a new file, with the caps of some datasets."""
        for dataset in caps:
            _require_name(dataset)
        ledger = cls(Path(path))
        head = hash_chain.create_chain(ledger.path)
        store_head(head.hash, head, ledger.path)
        for dataset, cap in caps.items():
            ledger.set_cap(dataset, cap)
        return ledger

    def set_cap(self, dataset: str, cap: Cap) -> LedgerHead:
        """Set or change the cap of a dataset; earlier runs keep the budget they reserved."""
        _require_name(dataset)
        with self._open_transaction() as transaction:
            _refuse_lookalikes(dataset, _parse_accounts(_read_intact_entries(transaction, self.path), self.path))
            payload = {"rho": format_exact(cap.rho), "delta": format_exact(cap.delta)}
            return transaction.append(dataset, "", "cap", payload)

    def check_room(self, dataset: str, budget: Budget) -> None:
        """Refuse a budget for which the cap has no room, before ``reserve`` decides it; nothing is reserved."""
        _require_name(dataset)
        account = next((each for each in self.datasets() if each.dataset == dataset), DatasetAccount(dataset=dataset))
        _check_cap(account, budget)

    def reserve(
        self,
        dataset: str,
        run: str,
        budget: Budget,
        privacy_unit: PrivacyUnit,
        *,
        uses_real_noise: bool = True,
        recipe: Mapping[str, Any] = {},
        declared_public: Sequence[str] = (),
    ) -> LedgerHead:
        """Reserve the whole budget of a new run, or refuse it."""
        _require_name(dataset)
        with self._open_transaction() as transaction:
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
                "declared_public": list(declared_public),
            }
            return transaction.append(dataset, run, "open", payload)

    def record(
        self, run: str, measurements: Sequence[MeasurementRecord], position: int, keys: Sequence[str] = ()
    ) -> LedgerHead:
        """Record measurements before anyone sees their answers, all or none.

        ``position`` is the number of earlier ones, and ``keys`` open the answers in the journal of the run: whoever
        can read an answer there can read it because its charge is recorded here.
        """
        with self._open_transaction() as transaction:
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

    def close(self, run: str, outcome: RunOutcome = RunOutcome()) -> LedgerHead:  # noqa: B008 -- frozen
        """End a run, also a crashed one: what it spent stays spent, the rest of its budget is returned."""
        with self._open_transaction() as transaction:
            dataset, _ = self._require_open_run(transaction, run)
            with _explain_unreadable_entries(self.path):
                rho, delta = _sum_costs([e.data for e in transaction.entries(run) if e.kind == "measurement"])
            payload = {"rho": format_exact(rho), "delta": format_exact(delta), **outcome.to_data()}
            return transaction.append(dataset, run, "close", payload)

    def datasets(self) -> tuple[DatasetAccount, ...]:
        """All datasets, in the order of their first entries."""
        entries, remembered = self._read()
        _refuse_faulty(hash_chain.find_faults(entries), self.path)
        if remembered and _find_lost_end(entries, remembered):
            raise _lost_end_error(entries[0].hash, remembered, self.path)
        return tuple(_parse_accounts(entries, self.path).values())

    def require_heads(self, heads: Iterable[LedgerHead]) -> None:
        """Refuse a ledger that lacks entries recorded elsewhere: it was cut, or replaced by an older copy."""
        faults = hash_chain.find_faults(self._read()[0], heads)
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

        The certificates of a checkpoint must agree with what this ledger recorded about their runs, and the numbers of
        a synopsis with its certificates; ``dpsyn.read_ledger_checkpoint`` reads both.
        """
        entries, remembered = self._read()
        accounts, faults = _check_accounts(entries)
        faults += _find_lost_end(entries, remembered)
        intact, not_compared = not faults, []
        runs = [run.run for dataset in accounts.values() for run in dataset.runs]
        for checkpoint in against:
            name = f"{checkpoint.path}: " if checkpoint.path else ""
            found = list(checkpoint.faults)
            if intact:
                found += hash_chain.find_faults(entries, [checkpoint.head])
            for number, certificate in enumerate(checkpoint.certificates if intact else (), start=1):
                if reason := why_not_comparable(certificate, runs):
                    not_compared.append(f"{name}release {number} {reason}")
                elif certificate:
                    found += find_disagreements(certificate, entries, accounts)
            faults += [f"{name}{fault}" for fault in found]
        if not faults:
            store_head(entries[0].hash, entries[-1].head, self.path)
        return LedgerVerification(
            entries=len(entries),
            head=entries[-1].head if entries else None,
            faults=tuple(faults),
            intact=intact,
            not_compared=tuple(not_compared),
            remembered=remembered,
        )

    @contextlib.contextmanager
    def _open_transaction(self) -> Iterator[LedgerTransaction]:
        """A transaction in a ledger that has all entries which this account saw in it."""
        with hash_chain.open_transaction(self.path) as transaction:
            ledger_id, remembered = _recall(transaction)
            if remembered and transaction.hash_of(remembered.sequence) != remembered.hash:
                raise _lost_end_error(ledger_id, remembered, self.path)
            yield transaction
            head = transaction.head()
        if head:  # it is on disk now
            store_head(ledger_id, head, self.path)

    def _read(self) -> tuple[tuple[LedgerEntry, ...], LedgerHead | None]:
        """All entries, and the last one that this account saw before; that is read first, because it never leads."""
        with hash_chain.open_reading(self.path) as reading:
            _, remembered = _recall(reading)
            return reading.entries(), remembered

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
    measurements: dict[tuple[str, str], list[LedgerEntry]] = defaultdict(list)
    for entry in entries:
        if entry.kind == BEGIN_KIND:
            continue
        accounts = runs.setdefault(entry.dataset, {})
        if entry.kind == "measurement":
            measurements[entry.dataset, entry.run].append(entry)
        elif entry.kind == "cap":
            rho, delta = _read_cost(entry.data)
            caps[entry.dataset] = Cap(rho=rho, delta=delta)
        elif entry.kind == "open":
            accounts[entry.run] = _open_run_account(entry, entry.data)
        elif entry.run in accounts:
            accounts[entry.run] = _apply_entry(accounts[entry.run], entry)
    return {
        name: DatasetAccount(
            dataset=name,
            cap=caps.get(name),
            runs=tuple(_add_measurements(run, measurements[name, run.run]) for run in accounts.values()),
        )
        for name, accounts in runs.items()
    }


def _open_run_account(entry: LedgerEntry, data: dict[str, Any]) -> RunAccount:
    budget = Budget.from_data(data["budget"])
    if not 0 < budget.reserved_rho <= _MAX_COST or not 0 < budget.epsilon <= MAX_EPSILON or budget.delta > 1:
        raise BudgetError(f"run {entry.run} states a budget that no release has")
    datetime.fromisoformat(entry.time)
    return RunAccount(
        run=entry.run,
        opened_at=entry.time,
        budget=budget,
        privacy_unit=PrivacyUnit(**data["privacy_unit"]),
        rho=budget.reserved_rho,
        delta=budget.threshold_delta,
        head=entry.head,
        uses_real_noise=parse_privacy_flag(data),
        recipe=plain_recipe(data["recipe"]),
        declared_public=tuple(str(fact) for fact in data["declared_public"]),
    )


def _apply_entry(run: RunAccount, entry: LedgerEntry) -> RunAccount:
    rho, delta = _read_cost(entry.data)
    outcome = RunOutcome.from_data(entry.data)
    return replace(run, rho=rho, delta=delta, head=entry.head, closed=True, outcome=outcome)


def _add_measurements(run: RunAccount, entries: Sequence[LedgerEntry]) -> RunAccount:
    """The run with its measurements, all at once: one after another would take a time that grows with their square."""
    if not entries:
        return run
    measurements = tuple(entry.data for entry in entries)
    keys = tuple(str(data.pop(_JOURNAL_KEY)) for data in measurements)
    rho, delta = _sum_costs(measurements)
    head = run.head if run.head.sequence > entries[-1].sequence else entries[-1].head
    return replace(run, measurements=measurements, journal_keys=keys, spent_rho=rho, spent_delta=delta, head=head)


def _check_reservation(account: DatasetAccount, budget: Budget, privacy_unit: PrivacyUnit) -> None:
    """Refuse a run that would exceed the cap or has another privacy unit."""
    previous = account.privacy_unit
    if previous and _unit_identity(previous) != _unit_identity(privacy_unit):
        raise LedgerError(
            f"earlier releases of {account.dataset!r} protect against {previous.description}; this one would protect "
            f"against {privacy_unit.description}. Costs of different privacy units do not add up: use the same unit, "
            "or another dataset name for other people"
        )
    _check_cap(account, budget)


def _check_cap(account: DatasetAccount, budget: Budget) -> None:
    """Refuse a run that would exceed the cap."""
    cap = account.cap
    if cap and account.fits_as_pure(cap, budget):
        return
    if cap and account.rho + budget.reserved_rho > cap.rho:
        sums = _describe_sums("ρ", cap.rho, account.rho, budget.reserved_rho)
        if budget.is_pure and (held := account.pure_epsilon) is not None:
            sums = _describe_sums("ε", Fraction(cap.epsilon), held, budget.epsilon)
        advice = f"{_describe_remaining(account, cap, budget)}. Lower its ε"
        raise _cap_exceeded_error(account, cap, budget, f"{sums}. {advice}")
    if cap and account.delta + budget.threshold_delta > cap.threshold_delta:
        sums = _describe_sums("δ for partition selection", cap.threshold_delta, account.delta, budget.threshold_delta)
        advice = "Lower its δ, list the values that it would discover in the schema"
        raise _cap_exceeded_error(account, cap, budget, f"{sums}. {advice}")


def _unit_identity(privacy_unit: PrivacyUnit) -> tuple[str, str, str]:
    return privacy_unit.neighbors, privacy_unit.id, privacy_unit.record


def _cap_exceeded_error(account: DatasetAccount, cap: Cap, budget: Budget, why: str) -> LedgerError:
    asked, allowed = (f"ε = {float(each.epsilon):.6g} at δ = {format_short(each.delta)}" for each in (budget, cap))
    return LedgerError(
        f"this release asks for {asked}, more than is left of the cap of {account.dataset!r}, which is {allowed} for "
        f"all releases together: {why}, close abandoned runs (dpsyn ledger show), or raise it (dpsyn ledger set-cap)"
    )


def _describe_sums(what: str, cap: Fraction, held: Fraction, requested: Fraction) -> str:
    return (
        f"of {what} = {float(cap):.6g}, {float(held):.6g} is reserved or spent, "
        f"and this release needs {float(requested):.6g}"
    )


def _describe_remaining(account: DatasetAccount, cap: Cap, budget: Budget) -> str:
    """The largest ε of one more release like the requested one: pure, or at the cap's δ and at the requested δ."""
    if budget.is_pure:
        by_rho = math.sqrt(2 * max(cap.rho - account.rho, Fraction(0)))  # a pure release costs ρ = ε²/2
        pure = max(account.pure_epsilon_left, by_rho)
        return f"One more may use up to ε = {_format_rounded_down(pure)} at δ = 0" if pure else "Nothing is left"
    left = account.epsilon_left()
    if not left:
        return "Nothing is left"
    at_cap = f"ε = {_format_rounded_down(left)} at δ = {format_short(cap.delta)}"
    text = f"One more with Gaussian noise may use up to {at_cap}"
    noise_delta = budget.delta - budget.threshold_delta  # the δ of partition selection is not for noise
    if noise_delta != cap.delta:
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
    with _explain_unreadable_entries(path):
        return accounts_from_entries(entries)


@contextlib.contextmanager
def _explain_unreadable_entries(path: Path) -> Iterator[None]:
    try:
        yield
    except _UNREADABLE_ENTRY_ERRORS as error:
        raise LedgerError(
            f"the ledger {path} has an entry that this DPSyn cannot read ({type(error).__name__}: {error}); "
            f"it was written by a newer DPSyn or by something else: run dpsyn ledger verify"
        ) from None


def _refuse_faulty(faults: list[str], path: Path) -> None:
    if faults:
        raise LedgerError(f"the ledger {path} was tampered with: {faults[0]}; run dpsyn ledger verify")


def _recall(ledger: LedgerTransaction) -> tuple[str, LedgerHead | None]:
    """The hash that identifies a ledger, and the last entry that this account saw in it."""
    ledger_id = str(ledger.hash_of(1))
    return ledger_id, load_head(ledger_id)


def _find_lost_end(entries: tuple[LedgerEntry, ...], remembered: LedgerHead | None) -> list[str]:
    """A fault if the last entry that this account saw is not there."""
    if remembered is None or remembered in (entry.head for entry in entries[remembered.sequence - 1 :][:1]):
        return []
    return [_describe_lost_end(remembered)]


def _describe_lost_end(remembered: LedgerHead) -> str:
    return (
        f"entry {remembered.sequence}, which this account of the computer saw in it, is not there any more: its end "
        "was cut off, or an older copy was put in its place"
    )


def _lost_end_error(ledger_id: str, remembered: LedgerHead, path: Path) -> LedgerError:
    return LedgerError(
        f"the ledger {path} was tampered with or restored: {_describe_lost_end(remembered)}. Use the newest copy. If "
        f"it is lost, what the missing entries recorded is still spent: remove {head_path(ledger_id)}, and lower the "
        "cap by what the releases since then cost, which their certificates state"
    )


def _check_accounts(entries: tuple[LedgerEntry, ...]) -> tuple[dict[str, DatasetAccount], list[str]]:
    """The datasets of the entries, and what is wrong with the chain or with a run."""
    if faults := hash_chain.find_faults(entries):
        return {}, faults
    try:
        accounts = accounts_from_entries(entries)
    except _UNREADABLE_ENTRY_ERRORS as error:
        return {}, [f"an entry is not as DPSyn writes it: {error}"]
    return accounts, _find_overspending(accounts)


def _find_overspending(accounts: Mapping[str, DatasetAccount]) -> list[str]:
    faults = []
    for dataset in accounts.values():
        for run in dataset.runs:
            try:
                replay(run.budget, tuple(MeasurementRecord.from_data(data) for data in run.measurements))
            except _UNREADABLE_ENTRY_ERRORS as error:
                faults.append(f"run {run.run} of {dataset.dataset!r}: {error}")
            if run.closed and (run.rho, run.delta) != (run.spent_rho, run.spent_delta):
                faults.append(
                    f"run {run.run} of {dataset.dataset!r} was closed with another cost than that of its measurements"
                )
    return faults


def _sum_costs(measurements: Sequence[Mapping[str, Any]]) -> tuple[Fraction, Fraction]:
    """The sums of ρ and δ of recorded measurements."""
    costs = [_read_cost(data) for data in measurements]
    return sum((rho for rho, _ in costs), Fraction(0)), sum((delta for _, delta in costs), Fraction(0))


def _read_cost(data: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    """The ρ and the δ of an entry; numbers that no run can cost are refused."""
    rho, delta = exact_fraction(data["rho"]), exact_fraction(data["delta"])
    if not 0 <= rho <= _MAX_COST or not 0 <= delta <= 1:
        raise BudgetError("it states a cost that no release has")
    return rho, delta


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
