"""Releases of timestamps: the hour of the day and the weekday survive, alone and beside other columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench.timestamps import distances, make_schema, make_table

import dpsyn
from dpsyn.errors import QueryError
from dpsyn.schema import Order
from dpsyn.schema.timestamps import WEEKDAYS

TABLE = make_table(20_000, 3, seed=3)
SCHEMA = make_schema(TABLE)
WITH_GAPS = dpsyn.Schema(
    attributes=(
        dpsyn.Datetime(name="admitted", start="2021-01-01", end="2024-12-31", resolution="minute", missing=True),
        *SCHEMA.attributes[1:],
    )
)


def table_with_gaps() -> pd.DataFrame:
    """Half of the timestamps of nights are missing, a tenth of the others."""
    table = TABLE.copy()
    chance = np.random.default_rng(0).random(len(table))
    table.loc[chance < np.where(table["kind"] == "night", 0.5, 0.1), "admitted"] = pd.NaT
    return table


@pytest.fixture(scope="module")
def synopsis() -> dpsyn.Synopsis:
    return dpsyn.measure(TABLE, SCHEMA, epsilon=1, delta=1e-9)


@pytest.fixture(scope="module")
def with_gaps() -> dpsyn.Synopsis:
    return dpsyn.measure(table_with_gaps(), WITH_GAPS, epsilon=2, delta=1e-9)


def test_the_daily_and_the_weekly_pattern_survive(synopsis: dpsyn.Synopsis) -> None:
    rows = synopsis.generate(seed=1, output_format="pandas")

    found = distances(TABLE, rows)

    assert rows["admitted"].dtype == TABLE["admitted"].dtype
    assert found["hour"] < 0.06  # about 0.025, and 0.26 on one line of minutes
    assert found["weekday"] < 0.03  # about 0.003, and 0.16
    assert found["hour x kind"] < 0.2  # about 0.07, and 0.64
    assert found["weekday x staff"] < 0.06  # about 0.01, and 0.27


def test_rows_meet_conditions_on_the_timestamp_and_its_parts(synopsis: dpsyn.Synopsis) -> None:
    where = {"admitted": "2023", "admitted.weekday": "Saturday..Sunday", "admitted.time": "08:00..11:59"}

    when = synopsis.generate(500, seed=1, where=where, output_format="pandas")["admitted"]

    assert set(when.dt.year) == {2023}
    assert set(when.dt.day_of_week) == {5, 6}
    assert set(when.dt.hour) <= {8, 9, 10, 11}


def test_queries_on_a_timestamp_are_answered_from_its_parts(synopsis: dpsyn.Synopsis) -> None:
    weekdays = synopsis.marginal("admitted.weekday")
    year = synopsis.marginal(where={"admitted": "2023"})
    by_date = synopsis.marginal("admitted", where={"admitted.time": "00:00..05:59"})

    when = TABLE["admitted"]
    errors = weekdays.counts - np.bincount(when.dt.day_of_week, minlength=7)
    assert (np.abs(errors) < 5 * weekdays.standard_errors).all()
    assert abs(float(year.counts) - (when.dt.year == 2023).sum()) < 5 * float(year.standard_errors) + 1
    assert by_date.attributes == ("admitted.date",)
    with pytest.raises(QueryError, match=r"did you mean admitted\.time"):
        synopsis.marginal("admitted.tim")


def test_a_weekday_that_a_day_does_not_have_is_refused(synopsis: dpsyn.Synopsis) -> None:
    date = synopsis.schema["admitted.date"]
    edges = date.grid().edges  # type: ignore[union-attr]
    cell = int(np.argmin(np.diff(edges)))
    days = [date.text_at(int(step)) for step in range(edges[cell], edges[cell + 1])]  # type: ignore[union-attr]
    other = next(day for day in range(7) if all(pd.Timestamp(text).weekday() != day for text in days))
    where = {"admitted": f"{days[0]}..{days[-1]}", "admitted.weekday": WEEKDAYS[other]}

    with pytest.raises(QueryError, match=r"no row can meet the conditions on .*\(the calendar\)"):
        synopsis.generate(10, where=where)


def test_parts_are_missing_together_and_what_depends_on_that_survives(with_gaps: dpsyn.Synopsis) -> None:
    real, rows = table_with_gaps(), with_gaps.generate(seed=1, output_format="pandas")

    shares = [table.groupby("kind")["admitted"].apply(lambda column: column.isna().mean()) for table in (real, rows)]

    assert np.abs(shares[0] - shares[1]).max() < 0.08
    assert distances(real.dropna(), rows.dropna())["hour x kind"] < 0.2
    assert with_gaps.generate(50, where={"admitted": "missing"}, output_format="pandas")["admitted"].isna().all()
    assert with_gaps.generate(50, where={"admitted": "2022"}, output_format="pandas")["admitted"].notna().all()


def test_a_synopsis_of_timestamps_is_saved_and_loaded(with_gaps: dpsyn.Synopsis, tmp_path: Path) -> None:
    with_gaps.save(tmp_path / "s.dpsyn")

    loaded = dpsyn.Synopsis.load(tmp_path / "s.dpsyn")

    assert loaded.schema == with_gaps.schema
    rows = [each.generate(100, seed=1, output_format="arrow") for each in (loaded, with_gaps)]
    assert rows[0].equals(rows[1])


@pytest.mark.parametrize("recipe", ["independent", "privsyn", "priview", "direct"])
def test_every_recipe_measures_timestamps(recipe: str) -> None:
    options = {"recipe": dpsyn.Direct(ways=1)} if recipe == "direct" else {"recipe": recipe}
    synopsis = dpsyn.measure(table_with_gaps(), WITH_GAPS, epsilon=10, delta=1e-9, **options)

    rows = synopsis.generate(seed=1, output_format="pandas")

    found = distances(table_with_gaps().dropna(), rows.dropna())
    assert found["hour"] < 0.1
    assert found["weekday"] < 0.05
    assert abs(rows["admitted"].isna().mean() - table_with_gaps()["admitted"].isna().mean()) < 0.03


def test_rules_on_parts_hold_in_every_row() -> None:
    table = TABLE.head(2_000).assign(left=lambda t: t["admitted"] + pd.Timedelta(days=2))
    left = dpsyn.Datetime(name="left", start="2021-01-01", end="2025-01-31", resolution="hour")
    schema = dpsyn.Schema(
        attributes=(*SCHEMA.attributes, left), rules=(Order(attributes=("admitted.date", "left.date")),)
    )

    rows = dpsyn.measure(table, schema, epsilon=1, delta=1e-9).generate(seed=1, output_format="pandas")

    assert (rows["admitted"].dt.normalize() <= rows["left"].dt.normalize()).all()


def test_weights_of_a_timestamp_are_those_of_its_parts() -> None:
    recipe = dpsyn.DPSyn(weights={"admitted": 4.0, "kind": 2.0})

    synopsis = dpsyn.measure(TABLE.head(500), SCHEMA, epsilon=1, delta=1e-9, recipe=recipe)

    assert len(synopsis.generate(10)) == 10
    with pytest.raises(dpsyn.DPSynError, match="which is not measured"):
        dpsyn.measure(TABLE.head(500), SCHEMA, epsilon=1, delta=1e-9, recipe=dpsyn.DPSyn(weights={"admitted.x": 4.0}))


def test_an_evaluation_compares_the_parts(synopsis: dpsyn.Synopsis) -> None:
    evaluation = dpsyn.evaluate(TABLE, synopsis.generate(seed=1), SCHEMA)

    names = [attribute.name for attribute in evaluation.attributes]
    assert {"admitted.date", "admitted.weekday", "admitted.time", "kind"} <= set(names)
    assert evaluation.left_out == ()
