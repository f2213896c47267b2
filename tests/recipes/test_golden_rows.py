"""Every recipe gives the same rows as before: a release with injected noise is compared with a stored digest.

A change that moves code must leave the digests as they are. A change that alters a recipe replaces its digest in
``golden_rows.json``, with the reason in the commit: ``python -m tests.recipes.test_golden_rows`` prints all of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.demo import people, people_schema
from dpsyn.recipes import DPSyn, Planned, find_recipe
from dpsyn.recipes.baselines import MWEM, Direct
from tests.private.noise_doubles import RecordingNoise

STORED = Path(__file__).with_name("golden_rows.json")
SYSTEM_NOISE = "dpsyn.private.session.SystemNoise"

BINARY = dpsyn.Schema.from_yaml(
    "dpsyn_schema: 1\nattributes:\n" + "".join(f"  x{i}: {{kind: categorical, codes: 2}}\n" for i in range(6))
)

VISITS = dpsyn.Schema.from_yaml("""
dpsyn_schema: 1
expected_size: 1500
attributes:
  came: {kind: datetime, start: 2024-01-01, end: 2024-12-31, resolution: hour}
  left: {kind: datetime, start: 2024-01-01, end: 2024-12-31, resolution: hour, missing: true}
  ward: {kind: categorical, codes: 6}
  floor: {kind: categorical, codes: 3}
  age: {kind: integer, low: 0, high: 100}
  cost: {kind: real, low: 0, high: 5000, decimals: 1}
  city: {kind: open}
rules:
  - {rule: order, attributes: [came, left]}
""")

PLAN = """
dpsyn_plan: 1
transforms:
  - {transform: bucketize, of: cost, starts: [0, 100, 500, 1000]}
  - {transform: availability, to: times, of: [left], anchor: came}
  - {transform: mapping, of: floor, from: ward, share: 1/10}
  - {transform: compress, threshold: 2}
marginals:
  - [ward, age]
  - {of: [ward, cost], share: 1/20, mechanism: laplace}
selection: true
"""


def bits(rows: int = 2_000) -> pa.Table:
    """Six yes-or-no columns; each but the first repeats the one before it three times out of four."""
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 2, rows)]
    for _ in range(5):
        columns.append(np.where(rng.random(rows) < 0.75, columns[-1], 1 - columns[-1]))
    return pa.table({f"x{i}": column for i, column in enumerate(columns)})


def visits(rows: int = 1_500) -> pa.Table:
    """Stays in a hospital: dates in order, a floor that follows from the ward, costs with a spike, an open list."""
    rng = np.random.default_rng(2)
    came = np.datetime64("2024-01-01T00") + rng.integers(0, 24 * 350, rows).astype("timedelta64[h]")
    left = came + rng.integers(0, 24 * 9, rows).astype("timedelta64[h]")
    ward = rng.integers(0, 6, rows)
    cost = np.where(rng.random(rows) < 0.3, 0.0, np.round(rng.gamma(2.0, 300.0, rows), 1))
    return pa.table(
        {
            "came": came.astype("datetime64[s]"),
            "left": pa.array(left.astype("datetime64[s]"), mask=rng.random(rows) < 0.1),
            "ward": ward,
            "floor": ward // 2,
            "age": np.clip(rng.normal(40 + 5 * ward, 15, rows), 0, 100).astype(int),
            "cost": cost,
            "city": rng.choice(["Oslo", "Bergen", "Molde", "Bodø"], rows, p=[0.5, 0.3, 0.19, 0.01]),
        }
    )


def release(table: pa.Table, schema: dpsyn.Schema, epsilon: float = 1.0, **options: Any) -> dpsyn.Synopsis:
    """A release whose noise comes from a seed."""
    with patch(SYSTEM_NOISE, lambda: RecordingNoise(seed=5)):
        return dpsyn.measure(table, schema, epsilon, delta=1e-9, **options)


def rows_of(synopsis: dpsyn.Synopsis) -> str:
    """A digest of synthetic rows, as text."""
    return digest(synopsis.generate(400, seed=3).to_pydict())


def counts_of(synopsis: dpsyn.Synopsis, *names: str) -> str:
    """A digest of an answer and its errors, to six digits."""
    answer = synopsis.marginal(*names)
    return digest([[f"{value:.6g}" for value in array.ravel()] for array in (answer.counts, answer.standard_errors)])


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, default=str, sort_keys=True).encode()).hexdigest()[:16]


def baskets() -> list[list[str]]:
    rng = np.random.default_rng(4)
    return [[f"i{item}" for item in np.flatnonzero(rng.random(12) < 0.5 / (1 + np.arange(12)))] for _ in range(3_000)]


def itemsets() -> str:
    with patch(SYSTEM_NOISE, lambda: RecordingNoise(seed=5)):
        found = dpsyn.frequent_itemsets(baskets(), [f"i{item}" for item in range(12)], epsilon=1.0, top=8)
    return digest(found.table("arrow").to_pydict())


def extended() -> dpsyn.Synopsis:
    first = release(people(2_000, seed=1), people_schema(), 0.5)
    return release(people(2_000, seed=1), people_schema(), 0.5, extend=first)


def on_people(**options: Any) -> Callable[[], str]:
    return lambda: rows_of(release(people(2_000, seed=1), people_schema(), **options))


def on_bits(**options: Any) -> Callable[[], str]:
    return lambda: rows_of(release(bits(), BINARY, **options))


CASES: dict[str, Callable[[], str]] = {
    "dpsyn": on_people(),
    "dpsyn, accurate": on_bits(epsilon=20.0),
    "dpsyn, weighted": on_people(recipe=DPSyn(weights={"income": 4})),
    "dpsyn, open values and rules": lambda: rows_of(release(visits(), VISITS, 2.0)),
    "dpsyn, extended": lambda: rows_of(extended()),
    "privsyn": on_people(recipe="privsyn"),
    "priview": on_people(recipe="priview"),
    "priview, covering": on_bits(recipe=find_recipe("priview", {"views": "covering:2x4"})),
    "priview, answers": lambda: counts_of(release(bits(), BINARY, recipe="priview"), "x0", "x2", "x5"),
    "independent": on_people(recipe="independent"),
    "explore": on_people(recipe="explore"),
    "direct": on_bits(recipe="direct"),
    "direct, three ways": on_bits(recipe=Direct(ways=3)),
    "fourier": on_bits(recipe="fourier"),
    "mwem": on_bits(recipe="mwem"),
    "mwem-practical": on_bits(recipe=MWEM(replay=100)),
    "planned": lambda: rows_of(release(visits(), VISITS, 2.0, recipe=Planned(plan=dpsyn.Plan.from_yaml(PLAN)))),
    "itemsets": itemsets,
}


@pytest.mark.parametrize("case", CASES)
def test_a_release_with_injected_noise_gives_the_rows_it_always_gave(case: str) -> None:
    assert CASES[case]() == json.loads(STORED.read_text("utf-8"))[case]


if __name__ == "__main__":
    print(json.dumps({case: run() for case, run in CASES.items()}, indent=2, ensure_ascii=False))
