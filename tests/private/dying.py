"""A program that starts releases and kills them, for the test of what a killed release leaves behind.

    python -m tests.private.dying LEDGER

It reads orders, one JSON object a line: a release is started that tells its draws in the file ``told``; when it has
told of ``draws`` of them, and ``delay`` more seconds have passed, it is killed. The answer is the signal that ended it.
Everything is loaded and compiled once and each release is a fork, so that fifty of them take seconds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.accounting import Budget, Gaussian, Laplace, Ledger, Threshold
from dpsyn.private import Mechanisms, SystemNoise, open_private
from dpsyn.private.mechanisms import Charged
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
BUDGET = Budget.plan(10, 1e-6, pure=[0.5], thresholds=True)
DRAWS = 9
"""How many answers a release gives before it waits for its end."""


class Telling:
    """Real noise; every spend is on disk as soon as its noise is drawn."""

    def __init__(self, told: Path) -> None:
        self._noise = SystemNoise()
        self._file = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def noised(self, answers: Sequence[Charged]) -> list[NDArray[np.int64]]:
        released = self._noise.noised(answers)
        for _, spend in answers:
            self._tell(spend)
        return released

    def listed(self, counts: Mapping[str, int], spend: Threshold) -> dict[str, int]:
        released = self._noise.listed(counts, spend)
        self._tell(spend)
        return released

    def _tell(self, spend: Gaussian | Laplace | Threshold) -> None:
        os.write(self._file, json.dumps(spend.to_data()).encode() + b"\n")
        os.fsync(self._file)


def release(ledger: Ledger | None, noise: Mechanisms) -> None:
    """Ask everything the gate answers; the run is never closed."""
    table = open_private(TABLE, SCHEMA, BUDGET, ledger, mechanisms=noise)
    share = BUDGET.rho / 8
    table = table.discover_range("age", share)
    table = table.discover("city", share, BUDGET.threshold_delta)
    table.fine_histogram("age", share)
    table.measure([("job",), ("age", "job")], [share, share])
    table.measure_purely([("ok", "job")], [BUDGET.pure[0]])
    table.score([("job",), ("ok",)], [np.zeros(40), np.zeros(2)], share)
    table.dependence([("job", "city"), ("ok", "job")], share)
    table.measure([("city", "ok")], [share])


def start(ledger: Path, told: Path) -> int:
    """A process that gives a whole release and then waits to be killed; its number."""
    process = os.fork()
    if process == 0:
        try:
            release(Ledger(ledger), Telling(told))
            signal.pause()
        finally:
            os._exit(1)
    return process


def kill(process: int, told: Path, draws: int, delay: float) -> int:
    """Kill a release so long after so many draws; the signal that ended it, 0 if it ended by itself."""
    ended = 0
    while not ended and (not told.exists() or told.read_bytes().count(b"\n") < draws):
        time.sleep(0.0005)
        ended, status = os.waitpid(process, os.WNOHANG)
    if not ended:
        time.sleep(delay)
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
    return os.WTERMSIG(status)


def serve(ledger: Path) -> None:
    """Carry out orders until there are no more."""
    release(None, SystemNoise())  # loads what is loaded at first use
    for line in sys.stdin:
        order = json.loads(line)
        told = Path(order.pop("told"))
        print(kill(start(ledger, told), told, **order), flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
