"""A format that a schema accepts is read rightly by Arrow, which reads the cells."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import SchemaError
from dpsyn.schema import Datetime
from dpsyn.schema.date_formats import DATE_PART_LETTERS, FORMAT_LETTERS, format_problem

DATES = [[f"%{letter}"] for letter in "DF"]
DATES += [[f"%{year}", f"%{month}", f"%{day}"] for year in "Yy" for month in "mbBh" for day in "de"]
TIMES = {
    "": "D",
    "%H": "h",
    "%R": "m",
    "%R %z": "m",
    "%H %M": "m",
    "%p %I %M": "m",
    "%T": "s",
    "%H %M %S": "s",
    "%I %M %S %p": "s",
}
"""Parts of a time, and their resolution."""


@st.composite
def formats(draw: st.DrawFn) -> tuple[str, str]:
    """Formats of whole dates, in any order and with any separators, and their resolution."""
    times, unit = draw(st.sampled_from(list(TIMES.items())))
    parts = [*draw(st.sampled_from(DATES)), *times.split(), *draw(st.sampled_from([[], ["%a"], ["%A"]]))]
    marks = st.sampled_from([" ", ".", "/", "-", "T", ", ", "%%", "年"])
    return "".join(part + draw(marks) for part in draw(st.permutations(parts))), unit


@given(formats(), st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2068, 12, 31)))
def test_dates_in_an_accepted_format_are_read_back(form: tuple[str, str], instant: dt.datetime) -> None:
    pattern, unit = form
    cell = instant.replace(tzinfo=dt.UTC).strftime(pattern)

    (result,) = pc.strptime(pa.array([cell]), pattern, "us", error_is_null=True).cast(pa.timestamp("us")).to_pylist()

    assert format_problem(pattern, "day") is None
    assert np.datetime64(result) == np.datetime64(instant, unit)  # type: ignore[call-overload]


@pytest.mark.parametrize("letter", FORMAT_LETTERS)
def test_every_letter_is_accepted(letter: str) -> None:
    others = "".join(f"%{other} " for other in "Ymdp" if other != letter)

    assert format_problem(f"{others}%{letter}", "day") is None


@pytest.mark.parametrize("letter", [letter for letter in FORMAT_LETTERS if letter != "%"])
def test_a_letter_that_comes_twice_is_refused(letter: str) -> None:
    others = "".join(f"%{other} " for other in "Ymdp" if other != letter)

    assert format_problem(f"{others}%{letter} %{letter}", "day") == f"it has %{letter} twice; remove one"


@pytest.mark.parametrize(
    ("form", "resolution", "problem"),
    [
        ("", "day", "it has no year; add %Y or %y or %D or %F"),
        ("year", "day", "it has no year"),
        ("%%Y-%%m-%%d", "day", "it has no year"),
        ("%Y", "day", "it has no month"),
        ("%d.%Y", "month", "it has no month; add %m or %b or %B or %h or %D or %F"),
        ("%Y-%m", "second", "it has no day"),
        ("%H:%M", "hour", "it has no year"),
        ("%Y-%m-%d %H:%M:%S.%f", "microsecond", "%f is not supported; use %Y %y %m"),
        ("%Y %j", "day", "%j is not supported"),
        ("%Q %F", "day", "%Q is not supported"),
        ("%-d.%m.%Y", "day", "%- is not supported"),
        ("%F %", "day", "% is not supported"),
        ("%F %\n", "day", "%\n is not supported"),
        ("%F\0", "day", "it contains a character that is not printable; remove it"),
        ("%F\ud800", "day", "it contains a character that is not printable; remove it"),
        ("%F %I:%M", "minute", "%I is an hour of a 12-hour clock; add %p"),
    ],
)
def test_a_format_that_arrow_would_misread_is_refused(form: str, resolution: str, problem: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Datetime(name="a", start="2016-01-01", end="2017-01-01", resolution=resolution, format=form)  # type: ignore[arg-type]

    assert str(caught.value).startswith(f"format {form!r}: {problem}")
    assert caught.value.path == ("format",)


@pytest.mark.parametrize(
    ("form", "resolution"), [("%Y", "year"), ("%m/%y", "month"), ("Q %b %Y", "month"), ("%y", "year")]
)
def test_a_format_needs_no_more_than_the_resolution(form: str, resolution: str) -> None:
    assert format_problem(form, resolution) is None


def test_each_part_of_a_date_has_letters_that_may_be_used() -> None:
    assert set("".join(DATE_PART_LETTERS.values())) <= set(FORMAT_LETTERS)
