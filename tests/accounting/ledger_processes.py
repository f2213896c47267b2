"""Programs that spend from a ledger, for tests with several processes."""

from __future__ import annotations

import sqlite3
import sys
from multiprocessing import Queue
from pathlib import Path
from typing import Any

from dpsyn.accounting import Budget, Gaussian, Ledger, MeasurementRecord, PrivacyUnit, Run
from dpsyn.errors import LedgerError


def open_until_refused(path: Path, budget: Budget, worker: int, results: Queue[int]) -> None:
    """Reserve, measure, and close every other run until the cap refuses; report how many were opened."""
    ledger, opened = Ledger(path), 0
    while True:
        run = f"{worker}-{opened}"
        try:
            ledger.reserve("survey", run, budget, PrivacyUnit())
        except LedgerError as error:
            if "cap of" not in str(error):
                raise
            break
        ledger.record(run, [MeasurementRecord(purpose="marginal", cost=Gaussian.for_rho(budget.rho, 1))], 0)
        opened += 1
        if opened % 2:
            ledger.close(run)
    results.put(opened)


def without_locks(path: Path, budget: Budget, worker: int, results: Queue[int]) -> None:
    """As on a drive that only pretends to lock files: reserve, measure and close some runs."""
    connect: Any = sqlite3.connect

    def connect_without_locks(address: str, **options: Any) -> Any:
        return connect(f"{address}&vfs=unix-none", **options)

    sqlite3.connect = connect_without_locks  # type: ignore[assignment]
    cost, closed = Gaussian.for_rho(budget.rho / 4, 1), 0
    try:
        for turn in range(5):
            run = Run.open(budget, PrivacyUnit(), dataset=f"d{worker}-{turn}", ledger=Ledger(path))
            run.charge("one", cost)
            run.charge("two", cost)
            run.close()
            closed += 1
    finally:
        results.put(closed)


def record_for_ever(path: Path, name: str) -> None:
    """Record measurements, and print their number after each, until the process is killed."""
    run = Run.resume(Ledger(path), name)
    cost = Gaussian.for_rho(run.account.budget.rho / 100_000, 1)
    while True:
        run.charge("marginal", cost)
        print(len(run.account.measurements), flush=True)


if __name__ == "__main__":
    record_for_ever(Path(sys.argv[1]), sys.argv[2])
