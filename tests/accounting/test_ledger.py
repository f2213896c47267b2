from __future__ import annotations

import multiprocessing
import os
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

from dpsyn.accounting import (
    Budget,
    Cap,
    Gaussian,
    Ledger,
    LedgerCheckpoint,
    LedgerHead,
    PartitionSelection,
    PrivacyUnit,
    Run,
)
from dpsyn.accounting import hash_chain as chained
from dpsyn.accounting.budget import Account, MeasurementRecord
from dpsyn.errors import BudgetError, LedgerError
from tests.accounting.ledger_processes import open_until_refused

SMALL = Budget.for_guarantee(0.1, 1e-9)
ROWS = PrivacyUnit()
ROOT = Path(__file__).parents[2]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "l.db")


def spend_all(ledger: Ledger, dataset: str = "survey", measurements: int = 3) -> Run:
    """A run that spends its whole budget and stays open."""
    run = Run.open(SMALL, ROWS, dataset=dataset, ledger=ledger)
    for i, rho in enumerate(SMALL.split_rho([1] * measurements)):
        run.charge(f"marginal {i}", Gaussian.for_rho(rho, 1))
    return run


def tamper(ledger: Ledger, *statements: str) -> None:
    """Change the file behind the ledger's back."""
    connection = sqlite3.connect(ledger.path)
    with connection:
        for statement in ("DROP TRIGGER no_change", "DROP TRIGGER no_removal", *statements):
            connection.execute(statement)
    connection.close()


# ── reserved budgets ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_open_run_holds_its_whole_budget_and_a_closed_one_what_it_spent(ledger: Ledger) -> None:
    run = Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)
    run.charge("marginal", Gaussian.for_rho(SMALL.rho / 4, 1))
    (before,) = ledger.datasets()

    run.close()

    (after,) = ledger.datasets()
    assert before.rho == SMALL.reserved_rho
    assert before.runs[0].spent_rho == after.runs[0].spent_rho == run.account.total.rho
    assert after.rho == run.account.total.rho < SMALL.reserved_rho / 3
    assert ledger.verify().faults == ()


def test_pure_steps_and_thresholds_are_reserved_too(ledger: Ledger) -> None:
    budget = Budget.for_guarantee(1, 1e-9, pure_epsilons=["0.5"], thresholds=True)

    Run.open(budget, ROWS, dataset="survey", ledger=ledger)

    (account,) = ledger.datasets()
    assert account.rho == budget.rho + Fraction(1, 8)
    assert account.delta == Fraction(1, 10**10)


def test_a_release_beyond_the_cap_is_refused_and_leaves_no_trace(ledger: Ledger) -> None:
    ledger.set_cap("survey", Cap(rho=SMALL.rho * 2, delta=Fraction(1, 10**9)))
    spend_all(ledger).close()
    spend_all(ledger)
    before = ledger.verify()

    with pytest.raises(LedgerError, match="cap of 'survey'"):
        Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)

    assert ledger.verify() == before


def test_a_refusal_states_what_was_requested_and_an_epsilon_that_is_granted(ledger: Ledger) -> None:
    ledger.set_cap("clinic", Cap.for_guarantee(3, 1e-8))
    Run.open(Budget.for_guarantee(2, 1e-9), ROWS, dataset="clinic", ledger=ledger)

    with pytest.raises(LedgerError) as refused:
        Run.open(Budget.for_guarantee("2.5", 1e-9), ROWS, dataset="clinic", ledger=ledger)

    message = str(refused.value)
    assert message.startswith("this release asks for ε = 2.5 at δ = 1e-09, more than is left of the cap of 'clinic'")
    assert "which is ε = 3 at δ = 1e-08 for all releases together" in message
    left = re.search(r"may use up to ε = (\S+) at δ = 1e-08, or (\S+) at the δ of this one", message)
    assert left is not None
    assert 2 < float(left[1]) < float(left[2]) < 2.5  # at a smaller δ the same noise has a larger ε
    with pytest.raises(LedgerError, match="cap of"):
        Run.open(Budget.for_guarantee(float(left[2]) + 0.01, 1e-9), ROWS, dataset="clinic", ledger=ledger)
    Run.open(Budget.for_guarantee(left[2], 1e-9), ROWS, dataset="clinic", ledger=ledger)


def test_a_refusal_states_that_nothing_is_left(ledger: Ledger) -> None:
    ledger.set_cap("survey", Cap(rho=SMALL.rho, delta=Fraction(1, 10**9)))
    spend_all(ledger)

    with pytest.raises(LedgerError, match="Nothing is left"):
        Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)


def test_pure_steps_are_refused_in_the_same_words(ledger: Ledger) -> None:
    ledger.set_cap("clinic", Cap.for_guarantee(1, 1e-8))

    with pytest.raises(LedgerError, match=r"asks for ε = 3 at δ = 0, .* up to ε = 0\.9\d* at δ = 1e-08\. Lower its ε"):
        Run.open(Budget.for_pure_steps(3, [1]), ROWS, dataset="clinic", ledger=ledger)


def test_thresholds_beyond_the_cap_are_refused(ledger: Ledger) -> None:
    ledger.set_cap("survey", Cap.for_guarantee(100, 1e-9))
    budget = Budget.for_guarantee(0.1, "1e-9", thresholds=True)
    Run.open(budget, ROWS, dataset="survey", ledger=ledger)

    with pytest.raises(LedgerError, match=r"δ for partition selection .* Lower its δ"):
        Run.open(budget, ROWS, dataset="survey", ledger=ledger)


def test_closing_makes_room_and_raising_the_cap_does(ledger: Ledger) -> None:
    ledger.set_cap("survey", Cap(rho=SMALL.rho, delta=Fraction(1, 10**9)))
    crashed = Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)

    ledger.close(crashed.name)
    Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)
    ledger.set_cap("survey", Cap(rho=SMALL.rho * 2, delta=Fraction(1, 10**9)))
    Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)

    with pytest.raises(LedgerError, match="closed"):
        crashed.charge("marginal", Gaussian.for_rho(SMALL.rho, 1))


def test_each_dataset_has_its_own_cap(ledger: Ledger) -> None:
    ledger.set_cap("survey", Cap(rho=SMALL.rho / 2, delta=Fraction(1, 10**9)))

    Run.open(SMALL, ROWS, dataset="census", ledger=ledger)

    assert [account.dataset for account in ledger.datasets()] == ["survey", "census"]


@pytest.mark.parametrize("other", [PrivacyUnit(neighbors="replace"), PrivacyUnit(id="person", max_rows=2)])
def test_another_unit_or_relation_is_refused(ledger: Ledger, other: PrivacyUnit) -> None:
    spend_all(ledger).close()

    with pytest.raises(LedgerError, match="do not add up"):
        Run.open(SMALL, other, dataset="survey", ledger=ledger)


def test_more_rows_of_the_same_person_are_the_same_unit(ledger: Ledger) -> None:
    Run.open(SMALL, PrivacyUnit(id="person", max_rows=2), dataset="survey", ledger=ledger)

    assert Run.open(SMALL, PrivacyUnit(id="person", max_rows=5), dataset="survey", ledger=ledger)


def test_a_cap_is_shown_as_the_guarantee_it_came_from() -> None:
    cap = Cap.for_guarantee(10, 1e-8)

    assert cap.epsilon == pytest.approx(10, rel=1e-8)
    assert cap.threshold_delta == Fraction(1, 10**9)


@pytest.mark.parametrize("delta", [0, 1e-40, 1, 1.05, -1e-9, float("nan")])
def test_a_cap_whose_delta_is_no_probability_is_refused(delta: float) -> None:
    with pytest.raises(BudgetError, match=r"give|needs"):
        Cap.for_guarantee(4, delta)


def test_an_invalid_cap_cannot_be_made() -> None:
    for rho, delta in ((Fraction(0), Fraction(1, 9)), (Fraction(1), Fraction(1)), (Fraction(1), Fraction(0))):
        with pytest.raises(BudgetError, match="is not valid"):
            Cap(rho=rho, delta=delta)


def test_costs_are_shown_as_epsilon(ledger: Ledger) -> None:
    for _ in range(4):
        spend_all(ledger).close()

    (account,) = ledger.datasets()

    assert 0.2 < account.epsilon(1e-9) < 0.22  # four times ρ, twice ε, and zCDP is a little coarser


@pytest.mark.parametrize("epsilon", [0.01, 1, 20, 100])
def test_what_is_left_can_be_used_by_one_more_release_and_hardly_more(ledger: Ledger, epsilon: float) -> None:
    ledger.set_cap("survey", Cap.for_guarantee(epsilon, 1e-9))
    first = Budget.for_guarantee(epsilon / 2, 1e-9)
    Run.open(first, ROWS, dataset="survey", ledger=ledger)
    (account,) = ledger.datasets()
    left = account.epsilon_left()
    assert left is not None

    with pytest.raises(LedgerError, match="cap of"):
        ledger.reserve("survey", "more", Budget.for_guarantee(left * 1.1, 1e-9), ROWS)
    ledger.reserve("survey", "left", Budget.for_guarantee(left, 1e-9), ROWS)

    assert 0 < left < epsilon


def test_nothing_is_left_if_the_cap_was_lowered_and_without_a_cap_it_is_unknown(ledger: Ledger) -> None:
    spend_all(ledger)
    (free,) = ledger.datasets()
    ledger.set_cap("survey", Cap.for_guarantee(0.001, 1e-9))
    (capped,) = ledger.datasets()

    assert free.epsilon_left() is None
    assert capped.epsilon_left() == 0


def test_a_dataset_without_a_name_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="name of the dataset"):
        Run.open(SMALL, ROWS, ledger=ledger)


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_resumed_where_it_was(ledger: Ledger) -> None:
    first, second = SMALL.split_rho([1, 1])
    crashed = Run.open(SMALL, ROWS, dataset="survey", ledger=ledger, uses_real_noise=False)
    crashed.charge("one", Gaussian.for_rho(first, 1))

    run = Run.resume(ledger, crashed.name)
    run.charge("two", Gaussian.for_rho(second, 1))
    run.close()

    assert [measurement.purpose for measurement in run.account.measurements] == ["one", "two"]
    assert run.uses_real_noise is False
    with pytest.raises(LedgerError, match="closed"):
        crashed.charge("two", Gaussian.for_rho(second, 1))
    with pytest.raises(LedgerError, match="closed"):
        Run.resume(ledger, crashed.name)


def test_two_processes_cannot_go_on_with_one_run(ledger: Ledger) -> None:
    mine = Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)
    theirs = Run.resume(ledger, mine.name)
    theirs.charge("marginal", Gaussian.for_rho(SMALL.rho, 1))

    with pytest.raises(LedgerError, match="two processes use the same run"):
        mine.charge("marginal", Gaussian.for_rho(SMALL.rho, 1))


def test_an_overspend_is_refused_and_not_recorded(ledger: Ledger) -> None:
    run = spend_all(ledger)
    before = ledger.verify()

    with pytest.raises(ValueError, match="ρ of Gaussian noise"):
        run.charge("one more", Gaussian.for_rho(SMALL.rho / 1000, 1))

    assert ledger.verify() == before


def test_measurements_are_charged_together_or_not_at_all(ledger: Ledger) -> None:
    measurements = [
        MeasurementRecord(purpose=f"marginal {i}", cost=Gaussian.for_rho(SMALL.rho / 4, 1)) for i in range(5)
    ]
    run = Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)
    before = ledger.verify()

    with pytest.raises(BudgetError, match="marginal 4"):
        run.charge_all(measurements)

    assert ledger.verify() == before
    assert run.account.measurements == ()
    run.charge_all(measurements[:4])
    assert ledger.verify().head == run.ledger_head
    assert len(ledger.datasets()[0].runs[0].measurements) == 4


def test_a_closed_run_can_be_certified_again_as_it_was_and_measures_nothing(ledger: Ledger) -> None:
    run = spend_all(ledger, measurements=1)
    before = run.certificate()
    run.close()

    again = Run.resume(ledger, run.name, last_head=before.ledger_head)

    assert again.certificate() == before
    with pytest.raises(BudgetError, match="closed"):
        again.charge("more", Gaussian.for_rho(SMALL.rho / 1000, 1))
    again.close()
    assert again.certificate() == run.certificate()


def test_the_certificate_names_the_last_entry(ledger: Ledger) -> None:
    run = spend_all(ledger)
    run.close()

    certificate = run.certificate()

    assert certificate.ledger_head == ledger.verify().head
    assert "recorded in the ledger up to entry 5" in certificate.text()


def test_unknown_runs_and_ledgers_are_named(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        ledger.datasets()
    spend_all(ledger)
    with pytest.raises(LedgerError, match="there is no run 'nobody'"):
        ledger.close("nobody")


# ── tampering ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE entries SET payload = replace(payload, '0', '1') WHERE sequence = 3", "entry 3 was changed"),
        ("UPDATE entries SET time = '2001-01-01' WHERE sequence = 2", "entry 2 was changed"),
        ("UPDATE entries SET dataset = 'other' WHERE sequence = 4", "entry 4 was changed"),
        ("UPDATE entries SET kind = 'cap' WHERE sequence = 4", "entry 4 was changed"),
        ("UPDATE entries SET run = 'other' WHERE sequence = 1", "entry 1 was changed"),
        ("UPDATE entries SET hash = 'abc' WHERE sequence = 5", "entry 5 was changed"),
        ("UPDATE entries SET payload = x'00ff' WHERE sequence = 2", "entry 2 was changed"),
        ("DELETE FROM entries WHERE sequence = 3", "entry 3 is missing"),
        ("DELETE FROM entries WHERE sequence = 1", "entry 1 is missing"),
        ("INSERT INTO entries VALUES (6, '', '', '', 'draw', '{}', 'x', 'y')", "entry 6 does not follow"),
    ],
)
def test_a_change_or_a_deletion_is_found(ledger: Ledger, statement: str, message: str) -> None:
    spend_all(ledger).close()

    tamper(ledger, statement)

    assert any(message in fault for fault in ledger.verify().faults)
    with pytest.raises(LedgerError, match="tampered"):
        Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)


def test_reordering_is_found(ledger: Ledger) -> None:
    spend_all(ledger).close()

    swaps = [(2, 99), (3, 2), (99, 3)]
    tamper(ledger, *(f"UPDATE entries SET sequence = {new} WHERE sequence = {old}" for old, new in swaps))

    assert ledger.verify().faults


def test_a_gap_closed_by_renumbering_is_found(ledger: Ledger) -> None:
    spend_all(ledger).close()

    tamper(
        ledger,
        "DELETE FROM entries WHERE sequence = 3",
        "UPDATE entries SET sequence = sequence - 1 WHERE sequence > 3",
    )

    assert ledger.verify().faults


def test_truncation_is_found_by_a_recorded_head(ledger: Ledger) -> None:
    run = spend_all(ledger)
    run.close()
    head = run.certificate().ledger_head
    assert head is not None

    tamper(ledger, "DELETE FROM entries WHERE sequence > 3")

    assert ledger.verify().faults == ()
    assert "cut or rewritten" in ledger.verify([LedgerCheckpoint(head)]).faults[0]


def test_rewriting_the_whole_file_is_found_by_a_recorded_head(ledger: Ledger) -> None:
    head = spend_all(ledger).ledger_head
    assert head is not None

    ledger.path.unlink()
    spend_all(ledger)

    assert ledger.verify().faults == ()
    assert ledger.verify([LedgerCheckpoint(head)]).faults


def test_a_head_stays_valid_when_the_ledger_grows(ledger: Ledger) -> None:
    head = spend_all(ledger).ledger_head
    assert head is not None

    spend_all(ledger, "census").close()

    assert ledger.verify([LedgerCheckpoint(head)]).faults == ()
    assert ledger.verify([LedgerCheckpoint(LedgerHead(head.sequence, "0" * 64))]).faults


def test_a_consistent_forgery_of_an_overspend_is_found(ledger: Ledger) -> None:
    run = spend_all(ledger)
    ledger.record(run.name, [MeasurementRecord(purpose="smuggled", cost=Gaussian.for_rho(SMALL.rho, 1))], 3)

    assert "spent more than its budget" in ledger.verify().faults[0]


def test_an_entry_that_makes_no_sense_is_found(ledger: Ledger) -> None:
    spend_all(ledger)
    with chained.open_transaction(ledger.path) as transaction:
        transaction.append("survey", "x", "open", {"nonsense": True})

    assert "not as DPSyn writes it" in ledger.verify().faults[0]
    with pytest.raises(LedgerError, match="cannot read"):
        ledger.datasets()
    with pytest.raises(LedgerError, match="cannot read"):
        Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)


@pytest.mark.parametrize("statement", ["UPDATE entries SET time = ''", "DELETE FROM entries"])
def test_the_file_itself_refuses_changes(ledger: Ledger, statement: str) -> None:
    spend_all(ledger)
    connection = sqlite3.connect(ledger.path)

    with pytest.raises(sqlite3.IntegrityError, match="never"):
        connection.execute(statement)

    connection.close()


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to look like one" * 40, b"\0" * 4096])
def test_another_file_is_not_taken_for_a_ledger(ledger: Ledger, content: bytes) -> None:
    ledger.path.write_bytes(content)

    with pytest.raises(LedgerError, match=r"cannot be|not a ledger"):
        ledger.verify()
    with pytest.raises(LedgerError, match=r"cannot be|not a ledger"):
        Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)
    assert ledger.path.read_bytes() == content


def test_a_database_of_somebody_else_is_left_alone(ledger: Ledger) -> None:
    connection = sqlite3.connect(ledger.path)
    connection.execute("CREATE TABLE cats (name TEXT)")
    connection.close()

    with pytest.raises(LedgerError, match="not a ledger"):
        Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_eight_processes_at_once_never_exceed_the_cap(ledger: Ledger) -> None:
    ledger.set_cap("survey", Cap(rho=SMALL.rho * 21 + SMALL.rho / 2, delta=Fraction(1, 10**9)))
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=open_until_refused, args=(ledger.path, SMALL, i, results)) for i in range(8)]

    for process in processes:
        process.start()
    opened = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()

    (account,) = ledger.datasets()
    assert account.cap is not None
    assert account.rho <= account.cap.rho
    assert sum(opened) == len(account.runs) == 21
    assert ledger.verify().faults == ()


@pytest.mark.check
def test_a_killed_process_leaves_its_charges_and_an_intact_ledger(ledger: Ledger) -> None:
    chance = random.Random(7)
    run = Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)

    for _ in range(15):
        command = [sys.executable, "-m", "tests.accounting.ledger_processes", str(ledger.path), run.name]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        reported = [int(line) for line in process.communicate()[0].split()]
        recorded = len(ledger.find_run(run.name)[1].measurements)
        assert recorded >= max(reported, default=1)
        assert ledger.verify().faults == ()

    resumed = Run.resume(ledger, run.name)
    assert len(resumed.account.measurements) >= 15
    assert ledger.datasets()[0].rho == SMALL.reserved_rho


@pytest.fixture
def unprivileged_folder() -> Iterator[Path]:
    """A folder that anybody may use, for a test that gives up the rights of root."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(name)


def as_nobody(action: Callable[[], object]) -> None:
    """Run something without the right to write everywhere."""
    if os.geteuid() != 0:
        action()
        return
    os.seteuid(65534)
    try:
        action()
    finally:
        os.seteuid(0)


def test_a_read_only_ledger_refuses_the_release_before_any_row_is_read(unprivileged_folder: Path) -> None:
    ledger = Ledger(unprivileged_folder / "l.db")
    run = spend_all(ledger)
    os.chmod(ledger.path, 0o444)

    def attempts() -> None:
        with pytest.raises(LedgerError, match="cannot be written"):
            Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)
        with pytest.raises(LedgerError, match="cannot be written"):
            run.close()
        assert ledger.verify().faults == ()

    as_nobody(attempts)


def test_a_missing_folder_refuses_the_release(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be written"):
        Run.open(SMALL, ROWS, dataset="survey", ledger=Ledger(tmp_path / "nowhere" / "l.db"))


def open_many(ledger: Ledger) -> None:
    for _ in range(100):
        Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)


@pytest.mark.parametrize("extra", [0, 4096])
def test_a_full_disk_refuses_the_release_and_leaves_the_ledger_intact(ledger: Ledger, extra: int) -> None:
    run = spend_all(ledger, measurements=30)
    before = ledger.verify()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ledger.path.stat().st_size + extra, limits[1]))

    try:
        with pytest.raises(LedgerError, match="cannot be written"):
            open_many(ledger)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert before.head is not None
    assert ledger.verify([LedgerCheckpoint(before.head)]).faults == ()
    run.close()


def test_a_threshold_is_charged_its_delta(ledger: Ledger) -> None:
    budget = Budget.for_guarantee(1, 1e-9, thresholds=True)
    run = Run.open(budget, ROWS, dataset="survey", ledger=ledger)
    run.charge("places", PartitionSelection.for_delta(budget.threshold_delta / 4, Gaussian.for_rho(budget.rho / 2, 1)))

    run.close()

    assert ledger.datasets()[0].delta == budget.threshold_delta / 4


def test_threads_that_share_a_run_are_charged_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget.for_guarantee(1, 1e-9)
    run = Run.open(budget, PrivacyUnit())
    charge = Account.charge

    def slowly(account: Account, measurement: MeasurementRecord) -> Account:
        after = charge(account, measurement)
        time.sleep(0.01)  # time for another thread to see the old account
        return after

    def charge_once(_: int) -> bool:
        try:
            run.charge("marginal", Gaussian.for_rho(budget.rho, 1))
        except BudgetError:
            return False
        return True

    monkeypatch.setattr(Account, "charge", slowly)
    with ThreadPoolExecutor(8) as pool:
        charged = sum(pool.map(charge_once, range(8)))

    assert charged == 1
    assert len(run.account.measurements) == 1


def test_a_forked_process_cannot_spend_the_run_of_its_parent() -> None:
    budget = Budget.for_guarantee(1, 1e-9)
    run = Run.open(budget, PrivacyUnit())
    run._process = os.getpid() + 1

    with pytest.raises(BudgetError, match="another process"):
        run.charge("marginal", Gaussian.for_rho(budget.rho, 1))


@pytest.mark.parametrize("name", [" people", "people ", "peo\u200bple", "People", "ｐeople"])
def test_a_name_that_looks_like_a_known_one_is_refused(tmp_path: Path, name: str) -> None:
    ledger = Ledger(tmp_path / "l.db")
    ledger.set_cap("people", Cap.for_guarantee(1, 1e-9))

    with pytest.raises(LedgerError, match=r"spaces around it|has this dataset as"):
        Run.open(Budget.for_guarantee(1, 1e-9), PrivacyUnit(), dataset=name, ledger=ledger)
