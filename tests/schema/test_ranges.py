"""Integers, reals and dates: exact bounds, lattices of steps, labels and conditions."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import SchemaError
from dpsyn.schema import AnyAttribute, Datetime, Integer, Ranged, Real, Value, parse_instant
from dpsyn.schema.ranges import MAX_LATTICE_STEPS, MAX_REAL_COORDINATE
from tests.strategies import RESOLUTIONS, integers, rangeds, reals

AGE = Integer(name="age", low=0, high=120)
INCOME = Integer(name="income", low=-1000, high=1_000_000)
COST = Real(name="cost", low=0.0, high=99.99, decimals=2)
DAY = Datetime(name="day", start="2016-01-01", end="2016-12-31")
CLOCK = Datetime(name="clock", start="2016-01-01", end="2016-01-02", resolution="hour")


# ── all ranges ───────────────────────────────────────────────────────────────────────────────────────────────


@given(rangeds(), st.data())
def test_a_step_written_as_text_is_that_step_again(attribute: AnyAttribute, data: st.DataObject) -> None:
    assert isinstance(attribute, Ranged)
    step = data.draw(st.integers(0, attribute.steps - 1))

    text = attribute.text_at(step)

    assert attribute.step_of(text) == step


@given(rangeds(), st.data())
def test_the_label_of_a_bin_selects_the_cells_of_that_bin(attribute: AnyAttribute, data: st.DataObject) -> None:
    assert isinstance(attribute, Ranged)
    code = data.draw(st.integers(0, attribute.size - 1))

    chosen = attribute.select(attribute.labels()[code])

    assert (chosen == (attribute.bin_of_cell() == code)).all()


@given(rangeds())
def test_declared_spikes_are_alone_in_their_cell(attribute: AnyAttribute) -> None:
    assert isinstance(attribute, Ranged)

    grid = attribute.grid()

    for spike in attribute.spikes:
        step = attribute.step_of(spike)
        cell = int(grid.cell_of(np.array([step]))[0])
        assert grid.edges[[cell, cell + 1]].tolist() == [step, step + 1]


@given(rangeds())
def test_declared_bins_begin_exactly_at_the_declared_values(attribute: AnyAttribute) -> None:
    assert isinstance(attribute, Ranged)

    starts = attribute.grid().bin_edges()[:-1].tolist()

    if isinstance(attribute.bins, tuple):
        assert starts == sorted({0, *(attribute.step_of(edge) for edge in attribute.bins)})


@pytest.mark.parametrize(
    ("attribute", "value", "phrase"),
    [
        (AGE, 121, "121 is outside 0 … 120"),
        (AGE, -1, "-1 is outside 0 … 120"),
        (AGE, 1e300, "outside 0 … 120"),
        (AGE, "1e999999999", "1e999999999 is outside every possible range"),
        (AGE, "-1e999999999", "is outside every possible range"),
        (AGE, 30.5, "30.5 is not a whole number"),
        (AGE, "old", "'old' is not a number"),
        (AGE, "", "'' is not a number"),
        (AGE, "nan", "'nan' is not a number"),
        (AGE, float("inf"), "inf is not a number"),
        (AGE, True, "True is not a number"),
        (COST, 100, "100 is outside 0.00 … 99.99"),
        (COST, "1e999999999", "1e999999999 is outside every possible range"),
        (COST, "-0.01", "outside 0.00 … 99.99"),
        (DAY, "2015-12-31", "2015-12-31 is outside 2016-01-01 … 2016-12-31"),
        (DAY, "soon", "'soon' is not a date; write it as 2016-01-31"),
        (DAY, "2016-02-30", "'2016-02-30' is not a date"),
        (DAY, 5, "5 is not a date"),
    ],
)
def test_a_value_outside_the_range_is_refused(attribute: Ranged, value: Value, phrase: str) -> None:
    with pytest.raises(SchemaError) as caught:
        attribute.step_of(value)

    assert phrase in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "phrase", "field"),
    [
        ({"bins": 0}, "bins must be a number from 1", "bins"),
        ({"bins": ()}, "bins must be a number from 1 to 1,000,000, or a list of the first value of", "bins"),
        ({"bins": 10**9}, "a number from 1 to 1,000,000", "bins"),
        ({"bins": (0, 50, 40)}, "the first values of bins must be in ascending order", "bins"),
        ({"bins": (0, 40, 40)}, "the first values of bins must be in ascending order", "bins"),
        ({"bins": (0, 121)}, "bins: 121 is outside 0 … 120", "bins"),
        ({"bins": ("old",)}, "bins: 'old' is not a number", "bins"),
        ({"spikes": (999,)}, "spikes: 999 is outside 0 … 120", "spikes"),
        ({"other": -1}, "other: -1 is outside 0 … 120", "other"),
        ({"other": True}, "other: True is not a number", "other"),
        ({"low": 121}, "low (121) is above high (120)", "low"),
    ],
)
def test_cuts_outside_the_range_are_refused(fields: dict[str, Any], phrase: str, field: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Integer(**{"name": "age", "low": 0, "high": 120, **fields})

    assert phrase in str(caught.value)
    assert caught.value.path == (field,)


# ── conditions ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("attribute", "condition", "first", "last"),
    [
        (AGE, 30, 30, 30),
        (AGE, "30", 30, 30),
        (AGE, "30..39", 30, 39),
        (AGE, "3e1 .. 39.0", 30, 39),
        (INCOME, 0, "0", "0"),
        (INCOME, "0..2000", "0", "2000"),
        (COST, 0.5, "0.50", "0.50"),
        (DAY, "2016-02-01..2016-02-29", 31, 59),
        (CLOCK, "2016-01-01T08..2016-01-01T09:59", 8, 9),
    ],
)
def test_a_condition_selects_the_cells_it_touches(
    attribute: Ranged, condition: Value, first: int | str, last: int | str
) -> None:
    begin, end = (attribute.step_of(e) if isinstance(e, str) else e for e in (first, last))
    edges = attribute.grid().edges

    chosen = np.flatnonzero(attribute.select(condition))

    assert edges[chosen[0]] <= begin < edges[chosen[0] + 1]
    assert edges[chosen[-1]] <= end < edges[chosen[-1] + 1]
    assert (np.diff(chosen) == 1).all()


def test_a_condition_may_list_values_ranges_and_missing() -> None:
    attribute = Integer(name="age", low=0, high=9, missing=True)

    chosen = attribute.select((1, "4..5", "missing"))

    assert np.flatnonzero(chosen).tolist() == [1, 4, 5, 10]


@pytest.mark.parametrize("condition", ["39..30", "30..121", "x..y", "missing", ()])
def test_a_condition_that_no_value_can_meet_is_refused(condition: Value | tuple[Value, ...]) -> None:
    with pytest.raises(SchemaError):
        AGE.select(condition)


def test_a_range_that_ends_before_it_begins_is_refused_even_inside_one_cell() -> None:
    with pytest.raises(SchemaError, match=r"'150\.\.120' on 'income' ends before it begins"):
        INCOME.select("150..120")


# ── integers ─────────────────────────────────────────────────────────────────────────────────────────────────


@given(integers(), st.data())
def test_an_integer_range_holds_every_whole_number_in_it(attribute: Integer, data: st.DataObject) -> None:
    number = data.draw(st.integers(attribute.low, attribute.high))

    step = attribute.step_of(number)

    assert attribute.values_at(np.array([step]))[0] == number
    assert attribute.text_at(step) == str(number)
    assert attribute.steps == attribute.high - attribute.low + 1


@pytest.mark.parametrize(
    ("low", "high", "field"), [(-MAX_LATTICE_STEPS, 0, "low"), (0, MAX_LATTICE_STEPS, "high"), (0, 10**400, "high")]
)
def test_integer_bounds_beyond_exact_floats_are_refused(low: int, high: int, field: str) -> None:
    with pytest.raises(SchemaError, match="within ±2") as caught:
        Integer(name="a", low=low, high=high)

    assert caught.value.path == (field,)


def test_an_integer_range_of_more_than_2_to_the_53_values_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"low … high has more than 2\^53 values"):
        Integer(name="a", low=-MAX_LATTICE_STEPS + 1, high=MAX_LATTICE_STEPS - 1)


# ── reals ────────────────────────────────────────────────────────────────────────────────────────────────────


@given(reals())
def test_the_bounds_of_a_real_are_exactly_the_declared_floats(attribute: Real) -> None:
    ends = attribute.values_at(np.array([0, attribute.steps - 1]))

    assert ends.tolist() == [attribute.low, attribute.high]


@given(reals(), st.data())
def test_every_value_of_a_real_is_the_float_nearest_to_its_text(attribute: Real, data: st.DataObject) -> None:
    step = data.draw(st.integers(0, attribute.steps - 1))

    value = attribute.values_at(np.array([step]))[0]

    assert value == float(attribute.text_at(step))


@given(reals(), st.data())
def test_a_real_written_in_full_precision_is_rounded_to_the_nearest_step(attribute: Real, data: st.DataObject) -> None:
    number = data.draw(st.floats(attribute.low, attribute.high))

    step = attribute.step_of(number)

    distance = abs(Decimal(attribute.text_at(step)) - Decimal(repr(number)))
    assert distance <= Decimal(1).scaleb(-attribute.decimal_places) / 2


@pytest.mark.parametrize(
    ("step", "text"), [(0, "-0.00000001"), (1, "0.00000000"), (2, "0.00000001"), (10**8 + 1, "1.00000000")]
)
def test_reals_are_written_without_exponents(step: int, text: str) -> None:
    attribute = Real(name="a", low=-0.00000001, high=2.0, decimals=8)

    assert attribute.text_at(step) == text


@pytest.mark.parametrize(
    ("low", "high", "places"),
    [
        (0.0, 1.0, 6),
        (0.0, 0.5, 7),
        (0.0, 1e6, 0),
        (0.0, 1e9, 0),
        (-1.0, 1.0, 6),
        (0.125, 2e6, 3),
        (5.0, 5.0, 0),
        (1e-12, 1e-12, 12),
    ],
)
def test_default_decimals_suffice_for_a_million_values(low: float, high: float, places: int) -> None:
    assert Real(name="a", low=low, high=high).decimal_places == places


FAR = st.integers(MAX_REAL_COORDINATE - 10**6, MAX_REAL_COORDINATE - 1)


@given(st.integers(1 - MAX_REAL_COORDINATE, MAX_REAL_COORDINATE - 1) | FAR, st.integers(0, 15))
def test_every_number_of_a_real_comes_back_from_its_float(coordinate: int, decimals: int) -> None:
    value = coordinate / 10**decimals
    attribute = Real(name="a", low=value, high=value, decimals=decimals)

    (number,) = attribute.values_at(np.array([0]))

    assert attribute.origin == coordinate
    assert np.rint(number * attribute.scale) == coordinate


@pytest.mark.parametrize(
    ("fields", "phrase", "field"),
    [
        ({"low": float("nan")}, "low is nan; it must be a finite number", "low"),
        ({"high": float("inf")}, "high is inf; it must be a finite number", "high"),
        ({"low": float("-inf")}, "low is -inf", "low"),
        ({"decimals": 16}, "decimals is 16; it must be 0 … 15", "decimals"),
        ({"decimals": -1}, "decimals is -1; it must be 0 … 15", "decimals"),
        ({"high": 1e300}, "with 0 decimals, bounds must be within ±2.25e+15; give fewer decimals", "decimals"),
        ({"high": 1e10, "decimals": 8}, "give fewer decimals", "decimals"),
        ({"low": 0.125, "decimals": 2}, "low (0.125) has more than 2 decimals", "low"),
        ({"high": 0.1 + 0.2, "decimals": 15}, "high (0.30000000000000004) has more than 15 decimals", "high"),
        ({"low": 1.0, "high": 0.0}, "low (1.0) is above high (0.0)", "low"),
    ],
)
def test_a_real_without_exact_bounds_is_refused(fields: dict[str, Any], phrase: str, field: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Real(**{"name": "a", "low": 0.0, "high": 1.0, **fields})

    assert phrase in str(caught.value)
    assert caught.value.path == (field,)


# ── dates ────────────────────────────────────────────────────────────────────────────────────────────────────


def naive_units(instant: dt.datetime, resolution: str) -> int:
    """Whole units since 1970, counted slowly."""
    if resolution == "year":
        return instant.year - 1970
    if resolution == "month":
        return (instant.year - 1970) * 12 + instant.month - 1
    lengths = {"day": "days", "hour": "hours", "minute": "minutes", "second": "seconds"}
    unit = dt.timedelta(**{lengths.get(resolution, f"{resolution}s"): 1})
    return (instant - dt.datetime(1970, 1, 1)) // unit


@given(st.datetimes(), st.sampled_from(RESOLUTIONS))
def test_instants_are_counted_in_whole_units_also_before_1970(instant: dt.datetime, resolution: Any) -> None:
    attribute = Datetime(name="t", start=instant.isoformat(), end=instant.isoformat(), resolution=resolution)

    assert attribute.origin == naive_units(instant, resolution)
    assert attribute.steps == 1


@pytest.mark.parametrize(
    ("resolution", "steps"),
    [("year", 1), ("month", 2), ("day", 32), ("hour", 32 * 24), ("minute", 32 * 1440), ("second", 32 * 86400)],
)
def test_an_end_without_a_time_includes_the_whole_day(resolution: Any, steps: int) -> None:
    attribute = Datetime(name="t", start="2016-01-01", end="2016-02-01", resolution=resolution)

    assert attribute.steps == steps


@pytest.mark.parametrize(
    ("end", "resolution", "last"),
    [
        ("2016", "year", "2016"),
        (2016, "month", "2016-12"),
        ("2016", "day", "2016-12-31"),
        ("2016", "hour", "2016-12-31T23"),
        ("2016-02", "year", "2016"),
        ("2016-02", "day", "2016-02-29"),
        ("2016-02", "minute", "2016-02-29T23:59"),
        ("2016-02-03", "year", "2016"),
        ("20160203", "hour", "2016-02-03T23"),
        ("9999", "hour", "9999-12-31T23"),
    ],
)
def test_an_end_that_is_a_year_month_or_day_includes_all_of_it(end: str | int, resolution: Any, last: str) -> None:
    attribute = Datetime(name="t", start="2015-12-24", end=end, resolution=resolution)

    assert attribute.text_at(attribute.steps - 1) == last


@pytest.mark.parametrize(
    ("condition", "first", "last"),
    [
        ("2016-01-02", "2016-01-02T00", "2016-01-02T23"),
        ("2016-01-02..2016-01-03", "2016-01-02T00", "2016-01-03T23"),
        ("2016-01-02..2016-01-03T00", "2016-01-02T00", "2016-01-03T00"),
        ("2016-01", "2016-01-01T00", "2016-01-05T12"),
        ("2016-01-05", "2016-01-05T00", "2016-01-05T12"),
        ("2016-01-02T08", "2016-01-02T08", "2016-01-02T08"),
    ],
)
def test_a_date_without_a_time_in_a_condition_includes_all_of_it(condition: str, first: str, last: str) -> None:
    attribute = Datetime(name="t", start="2016-01-01", end="2016-01-05T12:30", resolution="hour")

    chosen = np.flatnonzero(attribute.select(condition))

    assert (attribute.text_at(int(chosen[0])), attribute.text_at(int(chosen[-1]))) == (first, last)
    assert len(chosen) == chosen[-1] - chosen[0] + 1


def test_an_end_with_a_time_reaches_to_that_unit_only() -> None:
    attribute = Datetime(name="t", start="2016-01-01", end="2016-01-01T08:30", resolution="hour")

    assert attribute.steps == 9
    assert attribute.text_at(8) == "2016-01-01T08"


def test_the_last_day_of_all_can_be_an_end() -> None:
    attribute = Datetime(name="t", start="9999-12-31", end="9999-12-31", resolution="hour")

    assert attribute.steps == 24


@pytest.mark.parametrize(
    ("resolution", "text"),
    [
        ("year", "1969"),
        ("month", "1969-07"),
        ("day", "1969-07-20"),
        ("hour", "1969-07-20T20"),
        ("minute", "1969-07-20T20:17"),
        ("second", "1969-07-20T20:17:40"),
        ("millisecond", "1969-07-20T20:17:40.123"),
        ("microsecond", "1969-07-20T20:17:40.123456"),
    ],
)
def test_dates_are_written_as_fine_as_their_resolution(resolution: Any, text: str) -> None:
    moment = "1969-07-20T20:17:40.123456"
    attribute = Datetime(name="t", start=moment, end=moment, resolution=resolution)

    assert attribute.text_at(0) == text
    assert attribute.labels() == (text,)
    assert attribute.is_date == (resolution in ("year", "month", "day"))
    assert attribute.values_at(np.array([0])).dtype == np.dtype(f"datetime64[{attribute.unit}]")


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2016-01-31", dt.datetime(2016, 1, 31)),
        (" 2016-01-31 ", dt.datetime(2016, 1, 31)),
        ("20160131", dt.datetime(2016, 1, 31)),
        ("2016-01-31T08:30", dt.datetime(2016, 1, 31, 8, 30)),
        ("2016-01-31 08:30:15.5", dt.datetime(2016, 1, 31, 8, 30, 15, 500_000)),
        ("2016-01-31T08:30Z", dt.datetime(2016, 1, 31, 8, 30)),
        ("2016-01-31T08:30+02:00", dt.datetime(2016, 1, 31, 6, 30)),
        ("0001-01-01T00:00+02:00", None),
        ("9999-12-31T23:00-02:00", None),
        ("31.01.2016", None),
        ("2016-02-30", None),
        ("", None),
        ("soon", None),
    ],
)
def test_iso_texts_are_read_and_offsets_turned_into_utc(text: str, instant: dt.datetime | None) -> None:
    assert parse_instant(text) == instant


@pytest.mark.parametrize(
    ("fields", "phrase", "field"),
    [
        ({"start": "31.01.2016"}, "start is '31.01.2016'; write it as 2016-01-31", "start"),
        ({"end": ""}, "end is ''; write it as 2016-01-31", "end"),
        ({"start": "2017-01-01"}, "start (2017-01-01) is above end (2016-12-31)", "start"),
        (
            {"start": "0001-01-01", "resolution": "microsecond"},
            "start … end has more than 2^53 values",
            "end",
        ),
        ({"bins": ("2015-01-01",)}, "bins: 2015-01-01 is outside", "bins"),
        ({"spikes": ("1900-01-01",)}, "spikes: 1900-01-01 is outside", "spikes"),
    ],
)
def test_dates_that_form_no_range_are_refused(fields: dict[str, Any], phrase: str, field: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Datetime(**{"name": "t", "start": "2016-01-01", "end": "2016-12-31", **fields})

    assert phrase in str(caught.value)
    assert caught.value.path == (field,)
