"""Cells where the rows are: bounds that are too wide cost little, spikes are found, and rows agree with answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.schema import Categorical, Integer, Real, Schema

ROWS = 6_000


def make_table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    weight = np.round(np.clip(rng.normal(70, 12, ROWS), 30, 120), 1)
    paid = np.where(rng.random(ROWS) < 0.4, 0.0, np.round(np.exp(rng.normal(6, 1, ROWS)), 0))
    paid[:500] = 999.0
    smoker = np.where(rng.random(ROWS) < 0.2, "yes", "no")
    return pd.DataFrame({"weight": weight, "paid": np.minimum(paid, 50_000), "smoker": smoker})


def make_schema(width: float = 1.0, **more: Any) -> Schema:
    return Schema(
        attributes=(
            Real(name="weight", low=0, high=200 * width, decimals=1, **more),
            Integer(name="paid", low=0, high=int(50_000 * width)),
            Categorical(name="smoker", values=("yes", "no")),
        )
    )


def distance(real: pd.Series, synthetic: pd.Series) -> float:
    """The largest difference of the shares below any value (Kolmogorov and Smirnov)."""
    both = np.sort(np.concatenate([real, synthetic]))
    shares = [np.searchsorted(np.sort(values), both, side="right") / len(values) for values in (real, synthetic)]
    return float(np.abs(shares[0] - shares[1]).max())


@pytest.mark.parametrize("recipe", ["independent", "dpsyn"])
def test_bounds_a_hundred_times_too_wide_cost_little(recipe: str) -> None:
    table = make_table()
    near, far = (dpsyn.measure(table, make_schema(width), 2.0, recipe=recipe) for width in (1.0, 100.0))

    for synopsis in (near, far):
        rows = synopsis.generate(rows=ROWS, seed=1)
        assert distance(table["weight"], rows["weight"]) < 0.08
    assert len(far.schema["weight"].cuts) > 20  # type: ignore[union-attr]
    text = far.schema.to_yaml()
    assert Schema.from_yaml(text).attributes == far.schema.attributes


def test_spikes_have_the_same_counts_in_rows_and_answers() -> None:
    table = make_table()
    synopsis = dpsyn.measure(table, make_schema(), 4.0)
    rows = synopsis.generate(rows=synopsis.rows, seed=1)

    for value in (0, 999):
        answer = synopsis.count(paid=value)
        counted, real = float((rows["paid"] == value).sum()), float((table["paid"] == value).sum())
        error = max(float(np.ravel(answer.standard_errors)[0]), 5.0)
        assert abs(float(np.ravel(answer.counts)[0]) - real) < 4 * error
        assert abs(counted - real) < 4 * error


def test_rows_that_can_be_read_once_keep_the_public_cells() -> None:
    table = pa.Table.from_pandas(make_table())
    schema = make_schema()

    synopsis = dpsyn.measure(table.to_reader(), schema, 2.0, recipe="independent")

    assert synopsis.schema.attributes == schema.attributes


def test_a_synopsis_with_further_cells_and_levels_is_saved_and_loaded(tmp_path: Any) -> None:
    synopsis = dpsyn.measure(pa.Table.from_pandas(make_table()), make_schema(100.0), 1.0)
    synopsis.save(tmp_path / "s.dpsyn")

    loaded = dpsyn.Synopsis.load(tmp_path / "s.dpsyn")

    assert loaded.generate(rows=500, seed=3).equals(synopsis.generate(rows=500, seed=3))
    assert [sorted(table.levels) for table in loaded.model.tables] == [
        sorted(table.levels) for table in synopsis.model.tables
    ]


def test_a_synopsis_with_further_cells_can_be_extended() -> None:
    table = make_table()
    first = dpsyn.measure(table, make_schema(100.0), 1.0)

    second = dpsyn.measure(table, make_schema(100.0), 1.0, extend=first)

    assert second.schema.attributes == first.schema.attributes
    assert len(second.releases) == 2


@pytest.mark.parametrize("synthesis", ["gum", "mcf"])
def test_tables_at_levels_are_followed_by_every_synthesis_method(synthesis: str) -> None:
    rng = np.random.default_rng(1)
    one = np.round(rng.normal(100, 20, ROWS), 1)
    table = pd.DataFrame({"one": one, "two": np.round(one + rng.normal(0, 10, ROWS), 1)})
    names = ("one", "two")
    schema = Schema(attributes=tuple(Real(name=name, low=0, high=1_000, decimals=1) for name in names))

    synopsis = dpsyn.measure(table, schema, 4.0)
    rows = synopsis.generate(rows=2_000, seed=1, synthesis=synthesis)

    assert rows.corr(method="spearman").iloc[0, 1] > 0.6  # .89 in the table
