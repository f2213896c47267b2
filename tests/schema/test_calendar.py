"""Dates are cut at calendar boundaries."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.schema import Datetime

DAYS = st.dates(dt.date(1900, 1, 1), dt.date(2060, 12, 31))


def starts(attribute: Datetime, edges: np.ndarray) -> list[str]:
    return [attribute.text_at(int(edge)) for edge in edges[:-1]]


@given(DAYS, DAYS, st.sampled_from(["day", "hour", "minute", "second", "microsecond"]))
def test_every_year_begins_with_a_cell(one: dt.date, other: dt.date, resolution: str) -> None:
    first, last = sorted((one, other))
    attribute = Datetime(name="a", start=str(first), end=str(last), resolution=resolution)  # type: ignore[arg-type]

    cells = attribute.grid().edges.tolist()

    for year in range(first.year + 1, last.year + 1):
        assert attribute.step_of(f"{year}-01-01") in cells
    assert len(cells) <= 1_300


@pytest.mark.parametrize(
    ("start", "end", "cells", "bins"),
    [
        ("2020-01-01", "2020-12-31", ["2020-01-01", "2020-01-02"], ["2020-01-01", "2020-01-11", "2020-01-21"]),
        ("2021-01-01", "2024-12-31", ["2021-01-01", "2021-01-03"], ["2021-01-01", "2021-04-01"]),
        ("2015-03-05", "2024-12-31", ["2015-03-05", "2015-03-06", "2015-03-11"], ["2015-03-05", "2015-07-01"]),
        ("1900-01-01", "2030-12-31", ["1900-01-01", "1900-04-01", "1900-07-01"], ["1900-01-01", "1905-01-01"]),
    ],
)
def test_days_are_cut_at_parts_of_months_months_quarters_or_years(
    start: str, end: str, cells: list[str], bins: list[str]
) -> None:
    attribute = Datetime(name="a", start=start, end=end)

    assert starts(attribute, attribute.grid().edges)[: len(cells)] == cells
    assert starts(attribute, attribute.grid().bin_edges())[: len(bins)] == bins


def test_no_part_of_a_month_is_shorter_than_half_of_the_others() -> None:
    attribute = Datetime(name="a", start="2015-01-01", end="2024-12-31")

    widths = np.diff(attribute.grid().edges)

    assert set(widths.tolist()) == {3, 4, 5, 6}  # from the 26th: February has 3 or 4 days, other months 5 or 6


def test_a_year_and_a_month_are_whole_cells() -> None:
    attribute = Datetime(name="a", start="2015-03-05", end="2024-11-30", resolution="minute")

    for period in ("2015", "2020", "2024", "2020-02", "2015-03", "2024-11"):
        assert attribute.widen_to_whole_cells(period) is None


@given(st.integers(0, 3000), st.integers(1, 3000), st.integers(1, 300))
def test_a_cut_begins_at_its_start_and_ascends(first: int, length: int, pieces: int) -> None:
    attribute = Datetime(name="a", start="2010-01-01", end="2030-12-31")

    cut = attribute.cut(first, first + length, pieces)

    assert cut[0] == first
    assert cut == sorted(set(cut))
    assert cut[-1] < first + length
    assert len(cut) <= 1.2 * pieces + 1
