"""Codes become bins, buckets, numbers and labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import InternalError
from dpsyn.evaluation.tables import Domain
from dpsyn.schema import Boolean, Categorical, Datetime, Integer, Ordinal, Real


def integer_domain(steps: list[int], low: int = 0, high: int = 100) -> Domain:
    return Domain(Integer(name="n", low=low, high=high, missing=True), "integer", np.array(steps))


def test_numbers_have_a_hundred_buckets_slightly_wider_than_a_hundredth_of_the_range() -> None:
    domain = integer_domain([0, 1, 2, 50, 99, 100])

    buckets = domain.bucket_of_code()

    assert buckets.tolist() == [0, 0, 1, 49, 98, 99, 100]  # 1/1.0001 is below 1; the last one is the empty bucket


@given(st.integers(-1000, 1000), st.integers(1, 10**6), st.data())
def test_a_bucket_contains_the_values_between_its_bounds(low: int, length: int, data: st.DataObject) -> None:
    step = data.draw(st.integers(0, length))

    bucket = integer_domain([step], low, low + length).bucket_of_code()[0]

    width = 1.0001 * length / 100
    assert bucket * width <= step < (bucket + 1) * width
    assert 0 <= bucket < 100


def test_a_range_of_one_value_has_one_bucket() -> None:
    assert integer_domain([0], 5, 5).bucket_of_code().tolist() == [0, 100]


def test_listed_values_are_their_own_buckets_and_bins() -> None:
    domain = Domain(Categorical(name="c", codes=300, missing=True), "categorical")

    assert domain.bucket_of_code().tolist() == domain.bin_of_code().tolist() == list(range(301))


def test_bins_are_those_of_the_schema() -> None:
    domain = Domain(Integer(name="n", low=0, high=99, bins=(0, 10, 50), missing=True), "integer", np.array([9, 10, 60]))

    assert domain.bin_of_code().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("domain", "ordered"),
    [
        (Domain(Categorical(name="c", values=("a", "b")), "categorical"), 0),
        (Domain(Boolean(name="b"), "boolean"), 0),
        (Domain(Ordinal(name="o", values=("a", "b"), other="c", missing=True), "ordinal"), 2),
        (Domain(Ordinal(name="o", codes=5), "ordinal"), 5),
        (Domain(Integer(name="n", low=0, high=9, bins=2, missing=True), "integer", np.array([3])), 2),
    ],
)
def test_ordered_bins_come_first(domain: Domain, ordered: int) -> None:
    assert domain.ordered_bins == ordered


def test_numbers_and_labels_of_codes() -> None:
    listed = Domain(Categorical(name="c", values=(3, 1.5), missing=True), "categorical")
    dates = Domain(Datetime(name="d", start="1970-01-02", end="1971-01-01"), "datetime", np.array([0, 4]))
    amounts = Domain(Real(name="r", low=1, high=2, decimals=1), "real", np.array([5]))

    assert listed.numbers().tolist()[:2] == [3, 1.5]  # type: ignore[union-attr]
    assert np.isnan(listed.numbers()[2])  # type: ignore[index]
    assert dates.numbers() is None
    assert amounts.numbers().tolist()[:1] == [1.5]  # type: ignore[union-attr]
    assert [domain.labels()[1] for domain in (listed, dates, amounts)] == ["1.5", "1970-01-06", "missing"]
    assert Domain(Categorical(name="c", values=("a", 1)), "categorical").numbers() is None
    assert Domain(Boolean(name="b"), "boolean").numbers() is None


def test_a_domain_of_numbers_needs_steps() -> None:
    with pytest.raises(InternalError, match="numbers and dates have steps"):
        Domain(Integer(name="n", low=0, high=9), "integer")
