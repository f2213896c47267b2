"""Missing values, mean and quantiles of an attribute, against numpy on the values themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.encoding.statistics import summarize_list, summarize_ranges
from dpsyn.marginals.comparison import QUANTILES, AttributeStatistics
from dpsyn.schema import Boolean, Datetime, Integer, Ordinal

AGE = Integer(name="age", low=-5, high=120, missing=True)
SIZE = Ordinal(name="size", values=("S", "M", "L", "XL"), missing=True)


@given(st.lists(st.integers(-5, 120), min_size=1, max_size=200), st.integers(0, 50))
def test_numbers_have_the_statistics_of_their_values(values: list[int], missing: int) -> None:
    steps, counts = np.unique(np.array(values) + 5, return_counts=True)

    summary = summarize_ranges(AGE, steps, steps, counts, missing)

    expected = np.quantile(values, QUANTILES, method="inverted_cdf")
    assert summary.quantiles == tuple(str(int(value)) for value in expected)
    assert summary.mean == pytest.approx(np.mean(values))
    assert summary.missing == missing / (len(values) + missing)


def test_values_are_spread_evenly_over_a_range() -> None:
    summary = summarize_ranges(AGE, np.array([5, 105]), np.array([104, 105]), np.array([100.0, 0.0]), 0.0)

    assert summary.quantiles == ("5", "25", "50", "75", "95")
    assert summary.mean == 49.5


def test_a_date_has_quantiles_and_no_mean() -> None:
    day = Datetime(name="day", start="2020-01-01", end="2020-12-31", resolution="day")

    summary = summarize_ranges(day, np.array([0, 59]), np.array([0, 59]), np.array([1, 3]), 0.0)

    assert summary == AttributeStatistics(missing=0.0, quantiles=("2020-01-01", "2020-01-01", *["2020-02-29"] * 3))


def test_an_ordered_list_has_quantiles_of_the_values_that_are_not_missing() -> None:
    summary = summarize_list(SIZE, np.array([10, 30, 30, 10, 20]))

    assert summary == AttributeStatistics(missing=0.2, quantiles=("S", "M", "M", "L", "XL"))


def test_a_list_without_order_has_only_a_share_of_missing_values() -> None:
    assert summarize_list(Boolean(name="b", missing=True), np.array([3, 3, 2])) == AttributeStatistics(missing=0.25)


def test_a_table_without_values_has_no_quantiles() -> None:
    steps = np.array([0, 1])

    assert summarize_ranges(AGE, steps, steps, np.zeros(2), 7.0) == AttributeStatistics(missing=1.0)
    assert summarize_ranges(AGE, steps, steps, np.zeros(2), 0.0) == AttributeStatistics(missing=0.0)
    assert summarize_list(SIZE, np.zeros(5)) == AttributeStatistics(missing=0.0)
