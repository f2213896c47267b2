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
from dataclasses import replace
from fractions import Fraction
from multiprocessing.context import ForkServerContext, SpawnContext
from pathlib import Path

import pytest

from dpsyn.accounting import (
    Budget,
    Cap,
    DatasetAccount,
    Gaussian,
    Ledger,
    LedgerCheckpoint,
    LedgerHead,
    PartitionSelection,
    PrivacyUnit,
    Run,
    RunAccount,
)
from dpsyn.accounting import hash_chain as chained
from dpsyn.accounting.budget import Account, MeasurementRecord
from dpsyn.accounting.head_store import STATE_FOLDER_VARIABLE, head_path, load_head, store_head
from dpsyn.errors import BudgetError, LedgerError
from tests.accounting.ledger_processes import open_until_refused, without_locks

SMALL = Budget.for_guarantee(0.1, 1e-9)
WHOLE = Gaussian.for_rho(SMALL.rho, 1)
ROWS = PrivacyUnit()
ROOT = Path(__file__).parents[2]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "l.db")


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


def remembered(ledger: Ledger) -> Path:
    """Where this account remembers the last entry that it saw in a ledger."""
    with chained.open_reading(ledger.path) as reading:
        path = head_path(str(reading.hash_of(1)))
    assert path is not None
    return path


def forget(ledger: Ledger) -> None:
    """What this account remembers of a ledger is gone, as for an account that never saw it."""
    remembered(ledger).unlink(missing_ok=True)


USES: dict[str, Callable[[Ledger], object]] = {
    "set_cap": lambda ledger: ledger.set_cap("survey", Cap.for_guarantee(1, 1e-9)),
    "reserve": lambda ledger: ledger.reserve("survey", "new", SMALL, ROWS),
    "record": lambda ledger: ledger.record("old", [MeasurementRecord(purpose="m", cost=WHOLE)], 0),
    "close": lambda ledger: ledger.close("old"),
    "datasets": lambda ledger: ledger.datasets(),
    "find_run": lambda ledger: ledger.find_run("old"),
}
"""Every use of a ledger but ``verify``."""


# ── beginning ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("use", [*USES.values(), Ledger.verify], ids=[*USES, "verify"])
def test_a_ledger_that_does_not_exist_is_refused_with_the_command_that_begins_one(
    tmp_path: Path, use: Callable[[Ledger], object]
) -> None:
    path = tmp_path / "ledgre.db"

    with pytest.raises(LedgerError, match=f"there is no ledger {path}; .* begin .* dpsyn ledger new {path}"):
        use(Ledger(path))

    assert list(tmp_path.iterdir()) == []


def test_a_new_ledger_is_empty_and_a_different_one_each_time(tmp_path: Path) -> None:
    one, other = (Ledger.create(tmp_path / name) for name in ("a.db", "b.db"))

    assert one.datasets() == other.datasets() == ()
    assert one.verify().entries == 1
    assert one.verify().faults == ()
    assert one.verify().head != other.verify().head
    assert {path.name for path in tmp_path.iterdir()} == {"a.db", "b.db"}


@pytest.mark.parametrize("content", [b"", b"name,age", None])
def test_a_ledger_is_not_begun_in_a_file_that_exists(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "l.db"
    if content is None:
        spend_all(Ledger.create(path))
    else:
        path.write_bytes(content)
    before = path.read_bytes()

    with pytest.raises(LedgerError, match=r"l\.db exists already"):
        Ledger.create(path)

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_ledger_is_begun_with_caps_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="name of the dataset"):
        Ledger.create(tmp_path / "l.db", caps={"": Cap.for_guarantee(1, 1e-9)})
    assert list(tmp_path.iterdir()) == []

    ledger = Ledger.create(tmp_path / "l.db", caps={"survey": Cap.for_guarantee(1, 1e-9)})

    assert [(account.dataset, account.cap) for account in ledger.datasets()] == [("survey", Cap.for_guarantee(1, 1e-9))]


def test_one_of_many_begins_the_ledger(tmp_path: Path) -> None:
    def begin(_: int) -> bool:
        try:
            Ledger.create(tmp_path / "l.db")
        except LedgerError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        begun = sum(pool.map(begin, range(8)))

    assert begun == 1
    assert Ledger(tmp_path / "l.db").verify().faults == ()


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
    assert message.startswith("this release asks for ε = 2.5 at δ = 1e-9, more than is left of the cap of 'clinic'")
    assert "which is ε = 3 at δ = 1e-8 for all releases together" in message
    left = re.search(r"may use up to ε = (\S+) at δ = 1e-8, or (\S+) at the δ of this one", message)
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


def test_pure_steps_are_refused_in_terms_of_epsilon(ledger: Ledger) -> None:
    ledger.set_cap("clinic", Cap.for_guarantee(1, 1e-8))

    with pytest.raises(
        LedgerError, match=r"asks for ε = 3 at δ = 0, .* needs 3\. One .* ε = 1 at δ = 0\. Lower"
    ) as error:
        Run.open(Budget.for_pure_steps(3, [1]), ROWS, dataset="clinic", ledger=ledger)
    assert "ρ" not in str(error.value)


PURE = Budget.for_guarantee(1, 0, pure_epsilons=[1])


def test_pure_releases_add_up_by_their_epsilon(ledger: Ledger) -> None:
    """Their ρ, ε²/2 each, is far beyond that of the cap; the sum of their ε is not."""
    ledger.set_cap("clinic", Cap.for_guarantee(2, 1e-8))
    for _ in range(2):
        Run.open(PURE, ROWS, dataset="clinic", ledger=ledger)

    with pytest.raises(
        LedgerError, match=r"of ε = 2, 2 is reserved or spent, and this release needs 1\. Nothing is left"
    ):
        Run.open(PURE, ROWS, dataset="clinic", ledger=ledger)
    assert ledger.datasets()[0].pure_epsilon == 2
    assert ledger.verify().faults == ()


def test_a_refusal_states_what_is_left_for_pure_releases(ledger: Ledger) -> None:
    ledger.set_cap("clinic", Cap.for_guarantee("2.5", 1e-8))
    for _ in range(2):
        Run.open(PURE, ROWS, dataset="clinic", ledger=ledger)

    with pytest.raises(
        LedgerError, match=r"of ε = 2\.5, 2 is .* needs 1\. One more may use up to ε = 0\.5 at δ = 0\. Lower"
    ):
        Run.open(PURE, ROWS, dataset="clinic", ledger=ledger)
    Run.open(Budget.for_guarantee("0.5", 0, pure_epsilons=["0.5"]), ROWS, dataset="clinic", ledger=ledger)


def test_a_refusal_of_a_pure_release_beside_gaussian_noise_states_the_pure_epsilon_that_fits(ledger: Ledger) -> None:
    ledger.set_cap("clinic", Cap.for_guarantee(2, 1e-8))
    Run.open(SMALL, ROWS, dataset="clinic", ledger=ledger)

    with pytest.raises(LedgerError, match=r"of ρ = .* this release needs 0\.5\. One more may use") as error:
        Run.open(PURE, ROWS, dataset="clinic", ledger=ledger)
    left = re.search(r"up to ε = (\S+) at δ = 0", str(error.value))
    assert left is not None
    with pytest.raises(LedgerError):
        Run.open(Budget.for_pure_steps(float(left[1]) + 0.01, [1]), ROWS, dataset="clinic", ledger=ledger)
    Run.open(Budget.for_pure_steps(left[1], [1]), ROWS, dataset="clinic", ledger=ledger)


@pytest.mark.parametrize("order", [(PURE, SMALL), (SMALL, PURE)], ids=["gaussian last", "pure last"])
def test_beside_gaussian_noise_pure_releases_add_up_as_rho(ledger: Ledger, order: tuple[Budget, Budget]) -> None:
    ledger.set_cap("clinic", Cap.for_guarantee(2, 1e-8))
    Run.open(order[0], ROWS, dataset="clinic", ledger=ledger)

    with pytest.raises(LedgerError, match="more than is left of the cap"):
        Run.open(order[1], ROWS, dataset="clinic", ledger=ledger)


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
    assert "recorded in the ledger up to entry 6" in certificate.text()


def test_unknown_runs_and_ledgers_are_named(ledger: Ledger) -> None:
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
        ("INSERT INTO entries VALUES (7, '', '', '', 'draw', '{}', 'x', 'y')", "entry 7 does not follow"),
        ("DELETE FROM entries", "entry 1 is missing: the ledger is empty"),
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
    forget(ledger)

    assert ledger.verify().faults == ()
    assert "cut or rewritten" in ledger.verify([LedgerCheckpoint(head)]).faults[0]


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_ledger_whose_end_was_cut_off_is_refused(ledger: Ledger, use: Callable[[Ledger], object]) -> None:
    ledger.reserve("survey", "old", SMALL, ROWS)
    spend_all(ledger).close()
    tamper(ledger, "DELETE FROM entries WHERE sequence > 2")
    before = ledger.path.read_bytes()

    with pytest.raises(LedgerError, match=r"entry 7, which .* is not there any more: its end was cut off") as refused:
        use(ledger)

    assert f"remove {remembered(ledger)}, and lower the cap" in str(refused.value)
    assert ledger.path.read_bytes() == before
    assert "entry 7" in ledger.verify().faults[0]


def test_an_older_copy_of_a_ledger_is_refused(ledger: Ledger) -> None:
    spend_all(ledger).close()
    copy = ledger.path.read_bytes()
    spend_all(ledger).close()
    newest = ledger.path.read_bytes()

    ledger.path.write_bytes(copy)

    with pytest.raises(LedgerError, match="entry 11"):
        Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)
    ledger.path.write_bytes(newest)
    assert ledger.verify().faults == ()


def test_two_copies_that_both_grow_are_two_ledgers_of_one_dataset_and_the_second_is_refused(ledger: Ledger) -> None:
    spend_all(ledger).close()
    copy = Ledger(ledger.path.with_name("copy.db"))
    copy.path.write_bytes(ledger.path.read_bytes())
    spend_all(copy)

    with pytest.raises(LedgerError, match="entry 10"):
        spend_all(ledger)


def test_after_the_advice_was_followed_the_ledger_can_be_used_again(ledger: Ledger) -> None:
    spend_all(ledger).close()
    tamper(ledger, "DELETE FROM entries WHERE sequence > 2")
    with pytest.raises(LedgerError) as refused:
        ledger.datasets()
    named = re.search(r"remove (\S+\.json)", str(refused.value))
    assert named is not None

    Path(named[1]).unlink()

    ledger.set_cap("survey", Cap.for_guarantee(1, 1e-9))
    assert spend_all(ledger)


def test_an_account_that_only_verifies_remembers_what_it_saw(ledger: Ledger) -> None:
    spend_all(ledger).close()
    forget(ledger)
    first, second = ledger.verify(), ledger.verify()

    tamper(ledger, "DELETE FROM entries WHERE sequence > 3")

    assert first.remembered is None
    assert second.remembered == second.head == first.head
    assert ledger.verify().faults != ()


def test_what_is_remembered_lags_behind_the_ledger_and_never_leads_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[int] = []

    def crash(ledger_id: str, head: LedgerHead, path: Path) -> None:
        with chained.open_reading(path) as reading:
            assert reading.hash_of(head.sequence) == head.hash  # it is in the file already
        stored.append(head.sequence)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dpsyn.accounting.ledger.store_head", crash)
        with pytest.raises(KeyboardInterrupt):
            ledger.reserve("survey", "crashed", SMALL, ROWS)

    assert stored == [2]
    assert ledger.find_run("crashed")[1].rho == SMALL.reserved_rho
    assert ledger.verify().faults == ()
    spend_all(ledger)


def test_what_is_remembered_never_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that read the ledger earlier may be the last to store what it saw."""
    monkeypatch.setenv(STATE_FOLDER_VARIABLE, str(tmp_path))
    for sequence in (4, 5, 3):
        store_head("0" * 64, LedgerHead(sequence, f"{sequence}" * 64), tmp_path / "l.db")

    assert load_head("0" * 64) == LedgerHead(5, "5" * 64)


@pytest.mark.parametrize("content", [b"", b"\0" * 80, b"{}", b"[" * 5000, b'{"sequence": 1, "hash": 5}', b"\xff"])
def test_a_damaged_memory_locks_nobody_out(ledger: Ledger, content: bytes) -> None:
    remembered(ledger).write_bytes(content)

    spend_all(ledger)

    assert ledger.verify().remembered == ledger.verify().head


def test_a_ledger_works_where_nothing_can_be_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(STATE_FOLDER_VARIABLE, str(tmp_path / "file" / "below"))

    ledger = Ledger.create(tmp_path / "l.db")
    spend_all(ledger)

    assert ledger.verify().faults == ()
    assert ledger.verify().remembered is None


def test_an_account_without_a_home_remembers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (STATE_FOLDER_VARIABLE, "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/somebody")
    found = head_path("0" * 64)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError))

    assert found == Path("/somebody/.local/state/dpsyn/ledgers") / f"{'0' * 32}.json"
    assert head_path("0" * 64) is None
    assert head_path("../" * 20) is None


def test_rewriting_the_whole_file_is_found_by_a_recorded_head(ledger: Ledger) -> None:
    head = spend_all(ledger).ledger_head
    assert head is not None

    ledger.path.unlink()
    spend_all(Ledger.create(ledger.path))

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
    ledger.path.unlink()
    connection = sqlite3.connect(ledger.path)
    connection.execute("CREATE TABLE cats (name TEXT)")
    connection.close()

    with pytest.raises(LedgerError, match="not a ledger"):
        Run.open(SMALL, ROWS, dataset="survey", ledger=ledger)


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────


def start_context() -> ForkServerContext | SpawnContext:
    """Processes that have imported what they need, where the system can copy one; they start at once."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([open_until_refused.__module__])
    return context


def test_twelve_processes_at_once_never_exceed_the_cap(ledger: Ledger) -> None:
    ledger.set_cap("survey", Cap(rho=SMALL.rho * 21 + SMALL.rho / 2, delta=Fraction(1, 10**9)))
    context = start_context()
    results = context.Queue()
    processes = [context.Process(target=open_until_refused, args=(ledger.path, SMALL, i, results)) for i in range(12)]

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


def test_nothing_is_lost_on_a_drive_that_only_pretends_to_lock_files(ledger: Ledger) -> None:
    context = start_context()
    results = context.Queue()
    processes = [context.Process(target=without_locks, args=(ledger.path, SMALL, i, results)) for i in range(4)]

    for process in processes:
        process.start()
    opened = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()

    runs = [run for account in ledger.datasets() for run in account.runs]
    assert sum(opened) == len(runs) == 20
    assert all(run.closed and len(run.measurements) == 2 for run in runs)
    assert ledger.verify().entries == 1 + 20 * 4
    assert ledger.verify().faults == ()


def test_a_ledger_that_is_replaced_while_it_is_written_refuses_the_release(ledger: Ledger) -> None:
    spend_all(ledger).close()
    copy = ledger.path.read_bytes()

    def record_while_replaced() -> None:
        with chained.open_transaction(ledger.path) as transaction:
            transaction.append("survey", "new", "open", {})
            ledger.path.unlink()  # as a program does that synchronizes folders
            ledger.path.write_bytes(copy)

    with pytest.raises(LedgerError, match="lost the entry that was just written"):
        record_while_replaced()

    assert ledger.path.read_bytes() == copy
    assert ledger.verify().faults == ()


def test_a_ledger_that_is_locked_by_another_computer_is_refused_with_the_name_of_the_lock(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = ledger.path.with_name(".l.db.lock")
    lock.write_text("1 - a1 elsewhere.example.org", "utf-8")
    monkeypatch.setattr(chained, "_LOCK_TIMEOUT", 0.05)

    with pytest.raises(LedgerError, match=rf"remove {re.escape(str(lock))}\. Nothing was recorded"):
        spend_all(ledger)

    assert ledger.verify().entries == 1


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
    ledger = Ledger.create(unprivileged_folder / "l.db")
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
    with pytest.raises(LedgerError, match=r"the folder .*nowhere does not exist"):
        Ledger.create(tmp_path / "nowhere" / "l.db")
    with pytest.raises(LedgerError, match="there is no ledger"):
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
    ledger = Ledger.create(tmp_path / "l.db")
    ledger.set_cap("people", Cap.for_guarantee(1, 1e-9))

    with pytest.raises(LedgerError, match=r"spaces around it|has this dataset as"):
        Run.open(Budget.for_guarantee(1, 1e-9), PrivacyUnit(), dataset=name, ledger=ledger)


def test_runs_that_measured_nothing_do_not_count_against_pure_releases() -> None:
    unit, gaussian = PrivacyUnit(), Budget.for_guarantee(0.1, 1e-9)
    pure = Budget.for_guarantee(0.9, 0, pure_epsilons=[0.9])
    runs = [
        RunAccount(
            run=str(number),
            opened_at="2026-01-01T00:00:00+00:00",
            budget=budget,
            privacy_unit=unit,
            rho=Fraction(0),
            delta=Fraction(0),
            head=LedgerHead(1, "0" * 64),
            closed=closed,
        )
        for number, (budget, closed) in enumerate([(gaussian, True), (pure, True), (pure, False)])
    ]
    assert DatasetAccount(dataset="d", runs=tuple(runs[:2])).pure_epsilon == 0
    assert DatasetAccount(dataset="d", runs=tuple(runs)).pure_epsilon == Fraction(9, 10)
    still_open = replace(runs[0], closed=False)
    assert DatasetAccount(dataset="d", runs=(still_open, runs[2])).pure_epsilon is None
