"""A program that starts releases and kills them, for the tests of what a killed release leaves behind.

    python -m tests.private.crash_server

It reads orders, one JSON object per line. For each it starts a release that logs its measurements in the file ``log``.
When ``kill_after`` of them are logged, and ``delay`` more seconds have passed, the release is killed. Without
``kill_after`` it may end by itself. The answer is the signal that ended it. A release logs the answers of the gate in
``used``, and how it ended in ``outcome``. Everything is loaded and compiled once and each release is a fork, so fifty
of them take seconds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.accounting import Budget, Exponential, Gaussian, Laplace, Ledger, PartitionSelection
from dpsyn.atomic_files import write_text
from dpsyn.errors import DPSynError
from dpsyn.private import PrivateTable, SystemNoise, open_private
from dpsyn.private.mechanisms import ChargedAnswer
from dpsyn.schema import Boolean, Categorical, Integer, Open, Schema

ROWS = 20_000
SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=0, high=10**6),
        Categorical(name="job", codes=40),
        Boolean(name="ok"),
        Open(name="city"),
    ),
    dataset="people",
)
TABLE = pa.table(
    {
        "age": [str(20 + i % 50) for i in range(ROWS)],
        "job": [str(i % 40) for i in range(ROWS)],
        "ok": [i % 3 == 0 for i in range(ROWS)],
        "city": [f"city {i % 30}" for i in range(ROWS)],
    }
)
BUDGET = Budget.for_guarantee(10, 1e-6, pure_epsilons=[0.5, 0.5], thresholds=True)
"""More than a release needs, so most lost answers can be measured again."""
MEASUREMENTS = 9
"""The number of answers of a release before it waits to be killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A release to start, and when to kill it."""

    log: Path
    kill_after: int | None = None
    delay: float = 0.0
    ledger: Path | None = None
    journal: Path | None = None
    resume: bool = False

    @property
    def used(self) -> Path:
        """Where the release logs the answers of the gate."""
        return self.log.with_suffix(".used")

    @property
    def outcome(self) -> Path:
        """Where the release logs how it ended: an error, or the certificate if it is not to be killed."""
        return self.log.with_suffix(".outcome")

    def to_json(self) -> str:
        """One line."""
        fields = {name: getattr(self, name) for name in ("log", "kill_after", "delay", "ledger", "journal", "resume")}
        return json.dumps(fields, default=str)

    @classmethod
    def from_json(cls, line: str) -> Order:
        """Read it back."""
        fields: dict[str, Any] = json.loads(line)
        return cls(**fields | {name: Path(fields[name]) for name in ("log", "ledger", "journal") if fields[name]})


class LoggedNoise:
    """Real noise; every cost is on disk as soon as its noise is sampled."""

    def __init__(self, log: Path) -> None:
        self._noise = SystemNoise()
        self._file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add_noise(self, answers: Sequence[ChargedAnswer]) -> list[NDArray[np.int64]]:
        released = self._noise.add_noise(answers)
        for _, cost in answers:
            self._log_cost(cost)
        return released

    def select_partitions(self, counts: Mapping[str, int], cost: PartitionSelection) -> dict[str, int]:
        released = self._noise.select_partitions(counts, cost)
        self._log_cost(cost)
        return released

    def choose_candidates(self, scores: NDArray[np.int64], cost: Exponential) -> NDArray[np.int64]:
        released = self._noise.choose_candidates(scores, cost)
        self._log_cost(cost)
        return released

    def _log_cost(self, cost: Gaussian | Laplace | PartitionSelection | Exponential) -> None:
        os.write(self._file, json.dumps(cost.to_data()).encode() + b"\n")
        os.fsync(self._file)


class AnswerLog:
    """Logs the answers of the gate, as soon as they are returned."""

    def __init__(self, used: Path) -> None:
        self._file = os.open(used, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def __call__(self, *answers: Any) -> None:
        for answer in answers:
            os.write(self._file, json.dumps(answer).encode() + b"\n")


def ask(table: PrivateTable, use: Callable[..., None]) -> None:
    """Ask everything the gate answers, and use it."""
    rho = BUDGET.rho / 10
    table = table.discover_range("age", rho)
    age: Any = table.schema["age"]
    use([age.low, age.high])
    table = table.discover_values("city", rho, BUDGET.threshold_delta / 2)
    city: Any = table.schema["city"]
    use(list(city.values))
    use(table.measure_fine_histogram("age", rho).raw.tolist())
    use(*(marginal.raw.tolist() for marginal in table.measure([("job",), ("age", "job")], [rho, rho])))
    use(*(marginal.raw.tolist() for marginal in table.measure_laplace([("ok", "job")], [BUDGET.pure_epsilons[0]])))
    use(table.score_predictions([("job",), ("ok",)], [np.zeros(40), np.zeros(2)], rho).values.tolist())
    use(table.score_indif([("job", "city"), ("ok", "job")], rho).values.tolist())
    use(*(marginal.raw.tolist() for marginal in table.measure([("city", "ok")], [rho])))


def release(order: Order) -> None:
    """A whole release; without a journal it is never closed."""
    ledger = Ledger(order.ledger) if order.ledger else None
    noise, use = LoggedNoise(order.log), AnswerLog(order.used)
    table = open_private(
        TABLE,
        SCHEMA,
        BUDGET,
        ledger,
        mechanisms=noise,
        journal=order.journal,
        resume=order.resume,
        recipe={"name": "everything"},
    )
    if not order.journal:
        ask(table, use)
        return
    with table:
        ask(table, use)
        outcome = table.certificate().to_data() if order.kill_after is None else {}
    write_text(order.outcome, json.dumps(outcome))


def start(order: Order) -> int:
    """Start a process that makes a whole release and then waits to be killed, or ends; its id."""
    process = os.fork()
    if process == 0:
        try:
            release(order)
            if order.kill_after is not None:
                signal.pause()
        except DPSynError as error:
            write_text(order.outcome, json.dumps({"error": str(error)}))
        finally:
            os._exit(1)
    return process


def kill(process: int, order: Order) -> int:
    """Kill a release at the ordered moment; the signal that ended it, 0 if it ended by itself."""
    if order.kill_after is None:
        return os.WTERMSIG(os.waitpid(process, 0)[1])
    ended = 0
    while not ended and _lines(order.log) < order.kill_after and not order.outcome.exists():
        time.sleep(0.0005)
        ended, status = os.waitpid(process, os.WNOHANG)
    if not ended:
        time.sleep(order.delay)
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
    return os.WTERMSIG(status)


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def serve() -> None:
    """Carry out orders until there are no more."""
    with open_private(TABLE, SCHEMA, BUDGET) as table:  # loads what is loaded at first use
        ask(table, lambda *_: None)
        table.certificate()
    for line in sys.stdin:
        order = Order.from_json(line)
        print(kill(start(order), order), flush=True)


if __name__ == "__main__":
    serve()
