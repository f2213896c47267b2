"""A release that is killed at any moment leaves a ledger that knows of everything it drew."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsyn.accounting import Cap, Ledger
from dpsyn.accounting.ledger import DatasetAccount
from dpsyn.accounting.spends import spend_from_data
from tests.private.dying import BUDGET, DRAWS, SCHEMA

KILLS = 50
MOMENTS = (0, 0, 0, *range(1, DRAWS + 1))
"""How many draws a release may tell of before the time to its end runs; the start takes as long as three draws."""
LONGEST = 0.03
"""Seconds after that within which the kill falls; the next draw or two take as long."""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger that exists before the first release does."""
    ledger = Ledger(tmp_path / "l.db")
    ledger.set_cap(SCHEMA.dataset, Cap.of(10_000, 0.01))
    return ledger


@pytest.fixture
def killer(ledger: Ledger) -> Iterator[subprocess.Popen[str]]:
    """The program that starts releases and kills them."""
    command = [sys.executable, "-m", "tests.private.dying", str(ledger.path)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        yield process
        process.communicate()


def killed(killer: subprocess.Popen[str], told: Path, draws: int, delay: float) -> list[dict[str, Any]]:
    """Start a release, kill it, and return the spends that it told of."""
    assert killer.stdin is not None
    assert killer.stdout is not None
    killer.stdin.write(json.dumps({"told": str(told), "draws": draws, "delay": delay}) + "\n")
    killer.stdin.flush()
    assert killer.stdout.readline().strip() == str(int(signal.SIGKILL))
    lines = told.read_text("utf-8").split("\n")[:-1] if told.exists() else []
    return [json.loads(line) for line in lines]


def account(ledger: Ledger) -> DatasetAccount:
    """The only dataset of a sound ledger."""
    assert ledger.verify().faults == ()
    (dataset,) = ledger.datasets()
    return dataset


def cost(spends: list[dict[str, Any]]) -> tuple[Fraction, Fraction]:
    """What spends cost together, recomputed."""
    steps = [spend_from_data(spend) for spend in spends]
    return sum((step.rho for step in steps), Fraction(0)), sum((step.delta for step in steps), Fraction(0))


def check(ledger: Ledger, drawn: list[dict[str, Any]], before: DatasetAccount) -> DatasetAccount:
    """Hold what a killed release left against what it drew, and close it."""
    held = account(ledger)
    runs = held.runs[len(before.runs) :]
    if not runs:  # it was killed before it reserved anything
        assert (drawn, held) == ([], before)
        return held
    (run,) = runs
    paid = [draw["spend"] for draw in run.draws]
    assert paid[: len(drawn)] == drawn
    assert not run.closed
    assert (held.rho - before.rho, held.delta - before.delta) == (BUDGET.reserved_rho, BUDGET.threshold_delta)

    ledger.close(run.run)

    after = account(ledger)
    assert (after.rho - before.rho, after.delta - before.delta) == cost(paid) >= cost(drawn)
    assert after.rho - before.rho <= BUDGET.reserved_rho
    return after


def test_a_release_killed_at_any_moment_has_paid_for_all_it_drew(
    ledger: Ledger, killer: subprocess.Popen[str], tmp_path: Path
) -> None:
    chance = random.Random(50)
    points = []
    before = account(ledger)

    for number in range(KILLS):
        draws, delay = chance.choice(MOMENTS), chance.uniform(0, LONGEST)
        drawn = killed(killer, tmp_path / f"{number}.told", draws, delay)
        after = check(ledger, drawn, before)
        paid = sum(len(run.draws) for run in after.runs[len(before.runs) :])
        points.append((len(drawn), paid))
        before = after

    assert (0, 0) in points  # before anything was paid
    assert any(0 < drawn < DRAWS for drawn, _ in points)
    assert any(drawn < paid for drawn, paid in points)  # while it counted or drew
    assert (DRAWS, DRAWS) in points
