"""A release that is killed at any moment leaves a ledger with all of its measurements, and can be resumed."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsyn.accounting import Cap, Ledger
from dpsyn.accounting.costs import cost_from_data
from dpsyn.accounting.ledger import DatasetAccount
from dpsyn.marginals import Marginal
from dpsyn.private.approximate_bounds import narrow_bounds
from dpsyn.private.journal import AnswerRecord, StoredAnswer, parse_record
from tests.private.crash_server import BUDGET, MEASUREMENTS, SCHEMA, Order

pytestmark = pytest.mark.check

KILLS = 50
MOMENTS = (0, 0, 0, *range(1, MEASUREMENTS + 1))
"""The number of measurements that are logged before the delay begins; the start takes as long as three of them."""
RESUMED = 12
"""Releases that are killed up to three times each, every other one with a ledger."""
LONGEST = 0.03
"""The longest delay in seconds; the next one or two measurements take as long."""


def capped(path: Path) -> Ledger:
    """A ledger that exists before the first release does."""
    ledger = Ledger.create(path)
    ledger.set_cap(SCHEMA.dataset, Cap.for_guarantee(10_000, 0.01))
    return ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return capped(tmp_path / "l.db")


@pytest.fixture(scope="module")
def killer() -> Iterator[subprocess.Popen[str]]:
    """The program that starts releases and kills them."""
    command = [sys.executable, "-m", "tests.private.crash_server"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        yield process
        process.communicate()


def killed(killer: subprocess.Popen[str], order: Order) -> list[dict[str, Any]]:
    """Start a release, kill it unless it may end by itself, and return the costs that it logged."""
    assert killer.stdin is not None
    assert killer.stdout is not None
    killer.stdin.write(order.to_json() + "\n")
    killer.stdin.flush()
    ended_by = int(killer.stdout.readline())
    assert ended_by == signal.SIGKILL or order.outcome.exists()
    return read_lines(order.log)


def read_lines(path: Path) -> list[Any]:
    """The complete lines of a file."""
    lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def account(ledger: Ledger) -> DatasetAccount:
    """The only dataset of an intact ledger."""
    assert ledger.verify().faults == ()
    (dataset,) = ledger.datasets()
    return dataset


def total_cost(costs: list[dict[str, Any]]) -> tuple[Fraction, Fraction]:
    """The total ρ and δ of costs, recomputed."""
    steps = [cost_from_data(cost) for cost in costs]
    return sum((step.rho for step in steps), Fraction(0)), sum((step.delta for step in steps), Fraction(0))


def check(ledger: Ledger, measured: list[dict[str, Any]], used: list[Any], before: DatasetAccount) -> DatasetAccount:
    """Compare the ledger of a killed release with what it measured and used, and close the run."""
    held = account(ledger)
    runs = held.runs[len(before.runs) :]
    if not runs:  # it was killed before it reserved anything
        assert (measured, used, held) == ([], [], before)
        return held
    (run,) = runs
    paid = [measurement["mechanism"] for measurement in run.measurements]
    assert measured[: len(paid)] == paid
    assert len(used) <= len(paid)  # nothing is used that was not charged
    assert not run.closed
    assert (held.rho - before.rho, held.delta - before.delta) == (BUDGET.reserved_rho, BUDGET.threshold_delta)

    ledger.close(run.run)

    after = account(ledger)
    assert (after.rho - before.rho, after.delta - before.delta) == total_cost(paid)
    assert after.rho - before.rho <= BUDGET.reserved_rho
    return after


def test_a_release_killed_at_any_moment_was_charged_for_all_that_it_used(
    ledger: Ledger, killer: subprocess.Popen[str], tmp_path: Path
) -> None:
    chance = random.Random(50)
    points = []
    before = account(ledger)

    for number in range(KILLS):
        moment = {"kill_after": chance.choice(MOMENTS), "delay": chance.uniform(0, LONGEST)}
        order = Order(log=tmp_path / f"{number}.told", ledger=ledger.path, **moment)
        measured = killed(killer, order)
        after = check(ledger, measured, read_lines(order.used), before)
        paid = sum(len(run.measurements) for run in after.runs[len(before.runs) :])
        points.append((len(measured), paid))
        before = after

    assert (0, 0) in points  # before anything was charged
    assert any(0 < measured < MEASUREMENTS for measured, _ in points)
    assert any(measured > charged for measured, charged in points)  # between the noise and the charge
    assert (MEASUREMENTS, MEASUREMENTS) in points


# ── resumed ──────────────────────────────────────────────────────────────────────────────────────────────────


def is_begun(journal: Path) -> bool:
    """Whether the first line of a journal is complete."""
    return journal.exists() and b"\n" in journal.read_bytes()


def stored_answers(ledger: Ledger | None, journal: Path) -> list[StoredAnswer]:
    """The answers that a run can be resumed with, in the order of their charges."""
    lines = journal.read_bytes().split(b"\n")[1:-1] if journal.exists() else []
    records = [parse_record(line.partition(b" ")[2], journal) for line in lines]
    answers = [record for record in records if isinstance(record, AnswerRecord)]
    if ledger is None:
        return [record.open_answer() for record in answers]
    by_seal, runs = {record.seal: record for record in answers}, account(ledger).runs
    keys = runs[-1].journal_keys if runs else ()
    return [by_seal[hashlib.sha256(key.encode()).hexdigest()].open_answer(bytes.fromhex(key)) for key in keys]


def seen(stored: StoredAnswer) -> Any:
    """What a release uses of an answer."""
    cost: Any = stored.charged.cost
    answer, purpose = stored.answer, stored.charged.purpose
    if isinstance(answer, tuple):
        return sorted(answer)
    if purpose.startswith("range of"):
        age: Any = narrow_bounds(SCHEMA["age"], Marginal(("age",), answer, cost.lattice, cost.sigma))  # type: ignore[arg-type]
        return [age.low, age.high]
    if purpose.startswith(("distances", "dependence")):
        return (answer / np.float64(2**cost.lattice)).tolist()
    return answer.tolist()


def test_a_release_killed_at_any_moment_can_be_resumed_and_loses_nothing(
    killer: subprocess.Popen[str], tmp_path: Path
) -> None:
    chance = random.Random(51)
    points: list[int] = []

    for number in range(RESUMED):
        ledger = capped(tmp_path / f"{number}.db") if number % 2 else None
        kill_and_resume(killer, tmp_path / f"{number}", ledger, chance, points)

    assert any(0 < stored < MEASUREMENTS for stored in points)


def kill_and_resume(
    killer: subprocess.Popen[str],
    stem: Path,
    ledger: Ledger | None,
    chance: random.Random,
    points: list[int],
) -> None:
    """Kill a release three times and resume it each time; then let it end. Collect where it was killed."""
    journal = stem.with_suffix(".journal")
    held: list[Any] = []
    outcome: dict[str, Any] = {}
    for part in range(4):
        resume = is_begun(journal)
        if not resume:
            journal.unlink(missing_ok=True)
        order = Order(
            log=stem.with_suffix(f".{part}.told"),
            kill_after=chance.choice(MOMENTS) if part < 3 else None,
            delay=chance.uniform(0, LONGEST),
            ledger=ledger.path if ledger else None,
            journal=journal,
            resume=resume,
        )

        killed(killer, order)

        answers = [seen(stored) for stored in stored_answers(ledger, journal)]
        used = read_lines(order.used)
        assert used == answers[: len(used)]  # nothing is used that is not charged and stored
        assert answers[: len(held)] == held  # what was stored stays what it was
        held = answers
        points.append(len(answers))
        outcome = json.loads(order.outcome.read_text("utf-8")) if order.outcome.exists() else {}
        assert "error" not in outcome

    assert [m["mechanism"] for m in outcome["measurements"]] == [
        stored.charged.cost.to_data() for stored in stored_answers(ledger, journal)
    ]
    assert outcome["certified_epsilon"] <= BUDGET.epsilon
    assert len(held) == MEASUREMENTS  # no answer was charged twice
