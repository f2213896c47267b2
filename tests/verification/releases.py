"""Small private tables and genuine releases of them, signed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dpsyn
from dpsyn.signatures import verify_release

SCHEMA = """
dpsyn_schema: 1
dataset: visits
expected_size: 5000
attributes:
  ward: {kind: categorical, codes: 4}
  floor: {kind: categorical, codes: 4}
  old: {kind: boolean}
  age: {kind: integer, low: 0, high: 40}
  city: {kind: open}
"""


def visits(rows: int = 5_000, seed: int = 2) -> pa.Table:
    """Stays in a hospital: a floor that follows from the ward, an open list of cities."""
    rng = np.random.default_rng(seed)
    ward = rng.integers(0, 4, rows)
    age = rng.integers(0, 41, rows)
    return pa.table(
        {
            "ward": ward,
            "floor": ward,
            "old": age > 25,
            "age": age,
            "city": rng.choice(["Oslo", "Bergen", "Molde"], rows, p=[0.6, 0.35, 0.05]),
        }
    )


def schema(text: str = SCHEMA) -> dpsyn.Schema:
    return dpsyn.Schema.from_yaml(text)


def run_alone(*arguments: object) -> int:
    """The exit code of the stand-alone verifier."""
    return verify_release.main([str(argument) for argument in arguments])


def failed_checks(release: Path, key: dpsyn.PublicKey) -> tuple[set[str], set[str]]:
    """What each verifier refuses: ``dpsyn verify``, and the stand-alone one."""
    ours = {check.what for check in dpsyn.verify(release, key).checks if not check.passed}
    return ours, {what for what, passed, _ in verify_release.verify(str(release), key.raw) if not passed}


def verdicts(release: Path, key: Any = None, ledger: Path | None = None) -> tuple[str, int]:
    """The verdicts of both verifiers: of ``dpsyn verify`` in a word, of the stand-alone one as its exit code."""
    options = [*(["--key", key] if key is not None else []), *(["--ledger", ledger] if ledger else [])]
    return dpsyn.verify(release, key, ledger=ledger).verdict, run_alone(release, *options)
