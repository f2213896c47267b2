"""The kind ``time``: times of day."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import QueryError, SchemaError
from dpsyn.schema import Integer, Order, Schema, Time, compile_constraints, parse_clock, select_cells
from dpsyn.schema.clock import MICROSECONDS

WARD = Time(name="t", missing=True)


@given(st.times(), st.sampled_from(list(MICROSECONDS)))
def test_a_time_is_counted_in_whole_units_since_midnight(time: dt.time, resolution: str) -> None:
    attribute = Time(name="t", resolution=resolution)  # type: ignore[arg-type]
    since_midnight = dt.datetime.combine(dt.date.min, time) - dt.datetime.min

    step = attribute.step_of(time.isoformat())

    assert step == since_midnight // dt.timedelta(microseconds=MICROSECONDS[resolution])  # type: ignore[index]
    assert attribute.step_of(attribute.text_at(step)) == step


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("08:30", 510),
        (" 8:30 ", 510),
        ("08:30:15", 510.25),
        ("08:30:15.0000009", 510.25),
        ("8:30 pm", 20.5 * 60),
        ("12:00 a.m.", 0),
        ("12:30PM", 750),
        ("24:00", 1440),
        ("24:01", None),
        ("13:00 pm", None),
        ("0:00 am", None),
        ("08:60", None),
        ("08:30:60", None),
        ("0830", None),
        ("8", None),
        ("08:30+02:00", None),
        ("2016-01-01 08:30", None),
    ],
)
def test_texts_of_times(text: str, minutes: float | None) -> None:
    assert parse_clock(text) == (None if minutes is None else minutes * 60_000_000)


@pytest.mark.parametrize(
    ("resolution", "cells", "bins"), [("hour", 24, 24), ("minute", 1440, 24), ("second", 1440, 24)]
)
def test_a_day_has_cells_of_minutes_and_bins_of_hours(resolution: str, cells: int, bins: int) -> None:
    attribute = Time(name="t", resolution=resolution)  # type: ignore[arg-type]

    grid = attribute.grid()

    assert grid.bins == bins
    assert grid.cells == cells + (resolution == "second")  # midnight has a cell of its own
    assert attribute.labels()[8] == {"hour": "08:00", "minute": "08:00..08:59"}.get(resolution, "08:00:00..08:59:59")


def test_the_end_includes_all_of_its_minute_or_second() -> None:
    assert Time(name="t", end="17:30", resolution="second").steps == 17 * 3600 + 31 * 60
    assert Time(name="t", end="17:30:00", resolution="second").steps == 17 * 3600 + 30 * 60 + 1
    assert Time(name="t", start="08:00", end="17:30").steps == 9 * 60 + 31


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"start": "8"}, "start is '8'; write it as 08:30"),
        ({"end": "24:00"}, "end is '24:00'"),
        ({"start": "09:00", "end": "08:00"}, "start .* is above end"),
        ({"spikes": ("25:00",)}, "spikes: '25:00' is not a time of day"),
    ],
)
def test_fields_that_are_no_times_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Time(name="t", **fields)  # type: ignore[arg-type]


def test_conditions_on_times() -> None:
    schema = Schema(attributes=(WARD, Integer(name="n", low=0, high=1)))

    def minutes(condition: object) -> list[int]:
        return np.flatnonzero(select_cells(schema, {"t": condition})["t"]).tolist()

    assert minutes("08:30") == minutes(dt.time(8, 30)) == [510]
    assert minutes("08:30..08:32") == minutes((dt.time(8, 30), dt.time(8, 32))) == [510, 511, 512]
    assert minutes("missing|00:00") == [0, 1440]
    with pytest.raises(QueryError, match="is not a time of day; write it as 08:30"):
        minutes("noon")
    coarse = Schema(attributes=(Time(name="t", resolution="second"), Integer(name="n", low=0, high=1)))
    with pytest.raises(QueryError, match=r"inside a cell of 't'.* use 08:30:00\.\.08:30:59"):
        select_cells(coarse, {"t": "08:30:15..08:30:59"})


def test_times_of_different_resolution_are_put_in_order() -> None:
    hour, second = Time(name="from", resolution="hour"), Time(name="to", resolution="second")
    schema = Schema(attributes=(hour, second), rules=(Order(attributes=("from", "to")),))

    (rule,) = compile_constraints(schema).row_constraints

    hours, seconds = hour.grid(), second.grid()
    eight = hours.cell_of(np.array([8]))[0]
    before, after = seconds.cell_of(np.array([8 * 3600 - 1, 8 * 3600]))
    assert rule.holds(np.array([[eight, before], [eight, after]])).tolist() == [False, True]


def test_a_time_is_not_compared_with_a_number() -> None:
    with pytest.raises(SchemaError, match="times with times"):
        Schema(attributes=(WARD, Integer(name="n", low=0, high=1)), rules=(Order(attributes=("t", "n")),))
