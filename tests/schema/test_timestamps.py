"""Timestamps in parts: the date, the weekday and the time of day."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.encoding import Codec
from dpsyn.errors import QueryError, SchemaError
from dpsyn.schema import Categorical, Datetime, Order, Schema, compile_constraints, select_cells
from dpsyn.schema.timestamps import WEEKDAYS, split_timestamp
from tests import strategies

STAY = Datetime(name="t", start="2021-03-05T08:30", end="2024-12-31", resolution="minute", missing=True)
SEX = Categorical(name="sex", values=("f", "m"))
SCHEMA = Schema(attributes=(STAY, SEX))


@given(strategies.datetimes().filter(lambda a: not a.is_date), st.data())
def test_a_timestamp_is_joined_from_its_parts(timestamp: Datetime, data: st.DataObject) -> None:
    timestamp = Datetime(name="t", start=timestamp.start, end=timestamp.end, resolution=timestamp.resolution)
    parts = split_timestamp(timestamp)
    steps = np.array([data.draw(st.integers(0, timestamp.steps - 1))])

    days, weekdays, times = parts.split(timestamp, steps)

    instant = timestamp.values_at(steps)[0]
    assert parts.date.text_at(int(days[0])) == str(instant.astype("datetime64[D]"))
    assert 0 <= times[0] < parts.time.steps
    if dt.date.min.year <= int(str(instant)[:4]) <= dt.date.max.year:
        assert weekdays[0] == dt.date.fromisoformat(str(instant)[:10]).weekday()
    assert parts.join(timestamp, days, times).tolist() == steps.tolist()


def test_parts_beyond_the_bounds_are_moved_to_them() -> None:
    parts = split_timestamp(STAY)

    steps = parts.join(STAY, np.array([0, 0]), np.array([0, 600]))

    assert [STAY.text_at(int(step)) for step in steps] == ["2021-03-05T08:30", "2021-03-05T10:00"]


def test_the_days_of_a_cell_are_counted_and_sampled_by_weekday() -> None:
    parts = split_timestamp(STAY)
    edges = parts.date.grid().edges
    cells = np.repeat(np.arange(parts.date.proper_cells), 7)
    weekdays = np.tile(np.arange(7), parts.date.proper_cells)

    counts = parts.days_by_weekday()
    days = parts.sample_days(cells, weekdays, np.random.default_rng(0))

    for cell in range(0, parts.date.proper_cells, 50):
        expected = [(int(day) + parts.date.origin + 3) % 7 for day in range(edges[cell], edges[cell + 1])]
        assert counts[cell].tolist() == [expected.count(weekday) for weekday in range(7)]
    assert counts[-1].tolist() == [0] * 7  # missing
    assert ((edges[cells] <= days) & (days < edges[cells + 1])).all()
    matches = (days + parts.date.origin + 3) % 7 == weekdays
    assert (matches == (counts[cells, weekdays] > 0)).all()


def test_bounds_bins_spikes_and_cuts_are_those_of_the_timestamp() -> None:
    timestamp = Datetime(
        name="t",
        start="2021-01-01",
        end="2022-12-31",
        resolution="second",
        bins=("2021-01-01", "2022-01-01"),
        spikes=("2021-06-01T12:00:15",),
        cuts=("2021-06-05",),
        time_cuts=("08:30:30",),
    )

    date, weekday, time = split_timestamp(timestamp)

    assert date.labels() == ("2021-01-01..2021-12-31", "2022-01-01..2022-12-31")
    assert (date.spikes, time.spikes) == (("2021-06-01",), ("12:00:15",))
    assert (date.cuts, time.cuts) == (("2021-06-05",), ("08:30:30",))
    assert weekday.values == WEEKDAYS
    assert Schema.from_yaml(Schema(attributes=(timestamp,)).to_yaml()) == Schema(attributes=(timestamp,))


def test_spellings_of_missing_are_those_of_the_timestamp() -> None:
    spellings = ("00:00", "2021-03-05 07:00", "?")
    timestamp = Datetime(name="t", start="2021-03-05T08:30", end="2024-12-31", resolution="minute", missing=spellings)
    codec = Codec(Schema(attributes=(timestamp,)))

    codes = codec.encode(pa.table({"t": [*spellings, "2021-03-05 09:00"]}))

    assert codes[:3].tolist() == [[size - 1 for size in codec.fine_sizes]] * 3
    assert codes[3].tolist() == [0, 4, 9 * 60]


def test_a_schema_has_the_parts_beside_its_attributes() -> None:
    assert SCHEMA.names == ("t", "sex")
    assert SCHEMA.columns == ("t", "sex")
    assert [a.name for a in SCHEMA.modeled_attributes] == ["t.date", "t.weekday", "t.time", "sex"]
    assert SCHEMA["t.time"].kind == "time"
    assert SCHEMA.parts_of("t") == ("t.date", "t.weekday", "t.time")
    assert SCHEMA.parts_of("sex") == ("sex",)


def test_new_cells_of_a_part_are_new_cells_of_the_timestamp() -> None:
    date, time = SCHEMA["t.date"], SCHEMA["t.time"]
    assert isinstance(date, Datetime)

    schema = SCHEMA.replace_attribute(date.with_cuts([3])).replace_attribute(time.with_cuts([7]))  # type: ignore[union-attr]

    timestamp = schema["t"]
    assert isinstance(timestamp, Datetime)
    assert (timestamp.cuts, timestamp.time_cuts) == (("2021-03-08",), ())  # every minute has a cell
    assert schema["t.date"] == date.with_cuts([3])


@pytest.mark.parametrize(
    "timestamp",
    [
        Datetime(name="t", start="2021-01-01", end="2022-01-01"),
        Datetime(name="t", start="2021-01-01", end="2022-01-01", resolution="hour", bins=("2021-01-01T12",)),
    ],
)
def test_dates_and_bins_during_a_day_have_no_parts(timestamp: Datetime) -> None:
    assert Schema(attributes=(timestamp,)).timestamp_parts == {}


def test_a_timestamp_in_a_rule_has_no_parts_but_a_rule_on_parts_is_possible() -> None:
    stay = Datetime(name="u", start="2021-01-01", end="2024-12-31", resolution="minute")
    schema = Schema(attributes=(STAY, stay), rules=(Order(attributes=("t", "u")),))
    by_date = Schema(attributes=(STAY, stay), rules=(Order(attributes=("t.date", "u.date")),))

    assert schema.timestamp_parts == {}
    assert set(by_date.timestamp_parts) == {"t", "u"}


def test_a_column_with_the_name_of_a_part_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"'t\.date' has the name of a part of a timestamp; rename the column"):
        Schema(attributes=(STAY, Categorical(name="t.date", codes=2)))


def test_parts_are_missing_together_and_a_date_has_its_weekday() -> None:
    model = compile_constraints(SCHEMA)
    date, weekday, time = split_timestamp(STAY)
    friday = 0  # the first day

    def holds(*cells: int) -> bool:
        return all(rule.holds(np.array([[*cells, 0]]))[0] for rule in model.row_constraints)

    assert holds(friday, 4, 0)
    assert not holds(friday, 0, 0)  # the first cell has a Friday and a Saturday
    assert holds(date.proper_cells, weekday.proper_cells, time.proper_cells)
    assert not holds(date.proper_cells, 4, 0)
    assert not holds(friday, 4, time.proper_cells)
    assert not holds(friday, weekday.proper_cells, 0)


# ── conditions ───────────────────────────────────────────────────────────────────────────────────────────────


def spans(condition: object) -> dict[str, tuple[str, str]]:
    """The first and the last value of each part that a condition selects."""
    found = {}
    for name, mask in select_cells(SCHEMA, {"t": condition}).items():
        part, cells = SCHEMA[name], np.flatnonzero(mask)
        proper = cells[cells < part.proper_cells]
        edges = part.grid().edges  # type: ignore[union-attr]
        ends = int(edges[proper[0]]), int(edges[proper[-1] + 1]) - 1
        found[name] = tuple(part.text_at(end) for end in ends)  # type: ignore[union-attr]
    return found  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("2024", {"t.date": ("2024-01-01", "2024-12-31")}),
        ("2021", {"t.date": ("2021-03-05", "2021-12-31")}),
        ("2022-02..2022-03", {"t.date": ("2022-02-01", "2022-03-31")}),
        (
            "2022-02-01T08:00..2022-02-02T17:00|2022-02-03",
            "begins or ends during a day, but not within one day; use whole days, such as 2022-02-01..2022-02-02",
        ),
        ("2022-02-01..2022-02-02", {"t.date": ("2022-02-01", "2022-02-02")}),
        ((dt.date(2022, 2, 1), dt.date(2022, 2, 2)), {"t.date": ("2022-02-01", "2022-02-02")}),
        ("2022-02-01T08:30", "begins or ends inside a cell of 't.date'"),
        (
            "2022-02-01T08:30|2022-02-02",
            "combines different times of day; use separate conditions on 't.date' and 't.time'",
        ),
    ],
)
def test_a_condition_on_a_timestamp_is_one_on_its_parts(condition: object, expected: object) -> None:
    if isinstance(expected, str):
        with pytest.raises(QueryError) as error:
            spans(condition)
        assert expected in str(error.value)
    else:
        assert spans(condition) == expected


def test_a_range_within_one_day_is_one_of_the_date_and_of_the_time() -> None:
    week = Datetime(name="t", start="2021-03-05", end="2021-03-12", resolution="minute", missing=True)
    schema = Schema(attributes=(week, SEX))

    selected = select_cells(schema, {"t": "2021-03-06T08:30..2021-03-06T09:00"})

    assert np.flatnonzero(selected["t.date"]).tolist() == [1]
    assert np.flatnonzero(selected["t.time"]).tolist() == list(range(510, 541))


def test_conditions_on_a_timestamp_and_on_its_parts_are_combined() -> None:
    both = select_cells(SCHEMA, {"t": "2022", "t.date": "2022-07-01..2023-06-30", "t.weekday": "Saturday..Sunday"})

    assert both["t.date"].sum() == select_cells(SCHEMA, {"t": "2022-07-01..2022-12-31"})["t.date"].sum()
    assert both["t.weekday"].tolist() == [False] * 5 + [True] * 2 + [False]
    assert select_cells(SCHEMA, {"t": "missing"})["t.date"].nonzero()[0].tolist() == [SCHEMA["t.date"].proper_cells]
    with pytest.raises(QueryError, match=r"no value of 't\.date' meets all of the conditions"):
        select_cells(SCHEMA, {"t": "2022", "t.date": "2023"})
