"""Codes told as differences come back as they were, and what was measured of them is carried over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.encoding import (
    Codec,
    DifferenceCoding,
    Grouping,
    RecodedColumn,
    Recoding,
    are_equivalent,
    bucketize,
    expect_equal,
    group_differences,
    learn_mapping,
    project_to_recoding,
)
from dpsyn.errors import InternalError, SchemaError
from dpsyn.marginals import Marginal
from dpsyn.schema import Categorical, Datetime, Integer, Real, Schema

SCHEMA = Schema(
    attributes=(
        Integer(name="a", low=0, high=9, bins=5),
        Integer(name="b", low=0, high=7, missing=True),
        Categorical(name="c", codes=4),
    )
)
CODEC = Codec(SCHEMA)


@st.composite
def references(draw: st.DrawFn) -> DifferenceCoding:
    expected = draw(st.lists(st.integers(0, 7), min_size=10, max_size=10))
    return DifferenceCoding(0, np.array(expected), 8)


def rows(seed: int, number: int = 300) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, number) for size in CODEC.fine_sizes], axis=1)


@given(references(), st.integers(0, 99))
def test_a_difference_turns_back_into_its_code_for_every_anchor(reference: DifferenceCoding, seed: int) -> None:
    codes = rows(seed)

    differences = reference.encode(codes[:, 1], codes[:, 0])

    assert np.array_equal(reference.decode(differences, codes[:, 0]), codes[:, 1])
    assert np.array_equal(differences == 8, codes[:, 1] == 8)  # missing stays missing


@given(references(), st.integers(0, 99), st.lists(st.integers(-8, 8), max_size=4))
def test_whatever_is_drawn_for_differences_is_recoded_to_what_it_was_drawn_for(
    reference: DifferenceCoding, seed: int, kept: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    recoding = Recoding.coarse(CODEC).code_differences({1: reference})
    recoding = recoding.merge("b", group_differences(reference, 9, tuple(kept))).join("bc", ["b", "c"])
    size = recoding.sizes[1]
    recoding = recoding.merge("bc", Grouping(np.minimum(np.arange(size), size // 2)))
    codes = np.stack([rng.integers(0, s, 200) for s in recoding.sizes], axis=1)

    fine = recoding.expand(codes, [rng.random(s) for s in CODEC.fine_sizes], rng)

    assert np.array_equal(recoding.apply(fine), codes)


@given(references(), st.integers(0, 99))
def test_a_table_with_the_anchor_tells_what_counting_differences_tells(reference: DifferenceCoding, seed: int) -> None:
    fine, source = rows(seed), Recoding.fine(CODEC)
    target = Recoding.coarse(CODEC).code_differences({1: reference})
    counts = np.zeros((10, 9), np.int64)
    np.add.at(counts, (fine[:, 0], fine[:, 1]), 1)
    told = project_to_recoding(Marginal(("a", "b"), counts, 0, 1.0), source, target)

    expected = np.zeros((5, target.sizes[1]))
    codes = target.apply(fine)
    np.add.at(expected, (codes[:, 0], codes[:, 1]), 1)
    assert told is not None
    assert np.array_equal(told.values, expected)


def test_a_table_without_the_anchor_tells_nothing_about_differences() -> None:
    target = Recoding.fine(CODEC).code_differences({1: DifferenceCoding(0, np.zeros(10, np.int64), 8)})
    marginal = Marginal(("b", "c"), np.ones((9, 4), np.int64), 0, 1.0)

    assert project_to_recoding(marginal, Recoding.fine(CODEC), target) is None
    assert project_to_recoding(marginal, target, Recoding.fine(CODEC)) is None


def test_columns_with_other_references_are_not_alike() -> None:
    plain = RecodedColumn("b", (1,), (np.arange(9),))
    one, other = (
        RecodedColumn("b", (1,), (np.arange(9),), difference_codings=(DifferenceCoding(0, np.full(10, code), 8),))
        for code in (0, 1)
    )

    assert not are_equivalent(plain, one)
    assert not are_equivalent(one, other)
    assert are_equivalent(
        one, RecodedColumn("x", (1,), (np.arange(9),), difference_codings=(DifferenceCoding(0, np.full(10, 0), 8),))
    )


def test_an_attribute_that_is_expected_by_one_that_is_expected_is_a_mistake() -> None:
    identity = DifferenceCoding(0, np.arange(10) % 8, 8)

    with pytest.raises(InternalError, match="itself stored as a difference"):
        Recoding.fine(CODEC).code_differences({1: identity, 0: DifferenceCoding(1, np.zeros(9, np.int64), 10)})


def test_expected_codes_must_be_codes_of_the_attribute() -> None:
    with pytest.raises(InternalError, match="needs an expected code"):
        DifferenceCoding(0, np.array([0, 8]), 8)


# ── where they come from ─────────────────────────────────────────────────────────────────────────────────────


def test_dates_on_other_grids_are_expected_in_the_cell_that_holds_the_date() -> None:
    day = Datetime(name="day", start="2016-01-01", end="2016-12-31")
    month = Datetime(name="long", start="2015-12-25", end="2017-01-10")

    reference = expect_equal(month, day, 3)

    assert reference.anchor == 3
    assert reference.expected_codes[:3].tolist() == [7, 8, 9]
    assert len(reference.expected_codes) == 366


def test_what_lies_outside_the_range_is_expected_at_its_end() -> None:
    wide, narrow = Integer(name="w", low=0, high=20, missing=True), Integer(name="n", low=5, high=8)

    reference = expect_equal(narrow, wide, 0)

    assert reference.expected_codes.tolist() == [0] * 6 + [1, 2] + [3] * 13 + [0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Integer(name="i", low=0, high=9), Real(name="r", low=0, high=9, decimals=1)),
        (Datetime(name="d", start="2016-01-01", end="2016-01-09"),
         Datetime(name="h", start="2016-01-01", end="2016-01-09", resolution="hour")),
        (Categorical(name="c", codes=3), Categorical(name="e", codes=4)),
    ],
)  # fmt: skip
def test_attributes_without_a_common_scale_are_refused(one: Integer, other: Integer) -> None:
    with pytest.raises(SchemaError, match=r"common scale|difference is not defined"):
        expect_equal(one, other, 0)


def test_a_mapping_is_the_fullest_cell_of_each_line() -> None:
    counts = np.array([[5.0, 1, 90], [-3, -7, 100], [0, 40, 2]])

    assert learn_mapping(counts, anchor=1, modulus=2).expected_codes.tolist() == [0, 0, 1]  # the last column is missing


def test_differences_that_are_kept_have_codes_of_their_own() -> None:
    reference = DifferenceCoding(0, np.zeros(3, np.int64), 5)

    assert group_differences(reference, 6, (0, -1)).group_of.tolist() == [0, 2, 2, 2, 1, 3]
    assert group_differences(reference, 5, (0, 5, 1, 2, 3, 4)).group_of.tolist() == [0, 1, 2, 3, 4]


# ── bins ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_bins_start_where_they_are_said_to() -> None:
    wage = Integer(name="wage", low=0, high=9, missing=True)

    assert bucketize(wage, [0, 1, 5]).group_of.tolist() == [0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3]
    assert bucketize(wage, [3, 5]).group_of.tolist()[:5] == [0] * 5  # what lies below joins the first
    assert bucketize(Categorical(name="c", values=("x", "y", "z")), ["x", "z"]).group_of.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("attribute", "starts", "words"),
    [
        (Integer(name="n", low=0, high=10**6), [0, 500_001], "inside a cell"),
        (Integer(name="n", low=0, high=9), [0, 5, 3], "ascending"),
        (Integer(name="n", low=0, high=9), [0, 12], "outside 0"),
        (Categorical(name="c", values=("x", "y")), ["x", "q"], "not a value"),
    ],
)
def test_bins_that_cannot_be_are_refused(attribute: Integer, starts: list[int], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        bucketize(attribute, starts)
