"""How does the time of reading a ledger grow with its measurements?

    python -m bench.ledger

Makes ledgers of one run with 5 000 and 20 000 measurements in a temporary folder. Prints the processor time of listing
the datasets, of reserving a budget (under the lock that others wait for), of resuming the run and of verifying, and its
ratio to the baseline, checking the hashes of all entries, which is the least that reading can take.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.measuring import provenance
from dpsyn.accounting import Budget, Gaussian, Ledger, MeasurementRecord, PrivacyUnit, Run, hash_chain
from dpsyn.accounting.head_store import STATE_FOLDER_VARIABLE

SIZES = (5_000, 20_000)
SEED = 0  # nothing is drawn
BUDGET = Budget.for_guarantee(1, 1e-9)


def make_ledger(path: Path, measurements: int) -> tuple[Ledger, str]:
    """A ledger of one run that made many measurements and is open, and the name of the run."""
    ledger = Ledger.create(path)
    run = Run.open(BUDGET, PrivacyUnit(), dataset="people", ledger=ledger)
    shares = BUDGET.split_rho([1] * measurements)
    costs = [Gaussian.for_rho(share, 1) for share in shares]
    run.charge_all([MeasurementRecord(purpose=f"marginal of a, b{i}", cost=cost) for i, cost in enumerate(costs)])
    return ledger, run.name


def check_hashes(ledger: Ledger) -> None:
    with hash_chain.open_reading(ledger.path) as reading:
        assert not hash_chain.find_faults(reading.entries())


def processor_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def time_uses(ledger: Ledger, run: str) -> dict[str, float]:
    """The processor time of every way to read a ledger, the baseline first."""
    uses: dict[str, Callable[[], object]] = {
        "check hashes": lambda: check_hashes(ledger),
        "list datasets": ledger.datasets,
        "reserve": lambda: ledger.reserve("others", "new", BUDGET, PrivacyUnit()),
        "resume": lambda: Run.resume(ledger, run),
        "verify": ledger.verify,
    }
    return {name: processor_seconds(use) for name, use in uses.items()}


def main() -> None:
    print(provenance(SEED))
    with tempfile.TemporaryDirectory() as folder:
        os.environ[STATE_FOLDER_VARIABLE] = folder
        for size in SIZES:
            times = time_uses(*make_ledger(Path(folder) / f"{size}.db", size))
            baseline = times["check hashes"]
            shown = (f"{name} {spent:.2f} s ({spent / baseline:.1f})" for name, spent in times.items())
            print(f"{size:,} measurements: {', '.join(shown)}")


if __name__ == "__main__":
    main()
