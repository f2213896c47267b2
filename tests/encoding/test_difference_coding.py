"""Difference coding is invertible, and marginals of codes are converted to marginals of differences."""

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
def codings(draw: st.DrawFn) -> DifferenceCoding:
    expected = draw(st.lists(st.integers(0, 7), min_size=10, max_size=10))
    return DifferenceCoding(0, np.array(expected), 8)


def sample_codes(seed: int, rows: int = 300) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, rows) for size in CODEC.fine_sizes], axis=1)


@given(codings(), st.integers(0, 99))
def test_every_difference_is_decoded_to_its_code_for_every_anchor(coding: DifferenceCoding, seed: int) -> None:
    codes = sample_codes(seed)

    differences = coding.encode(codes[:, 1], codes[:, 0])

    assert np.array_equal(coding.decode(differences, codes[:, 0]), codes[:, 1])
    assert np.array_equal(differences == 8, codes[:, 1] == 8)  # missing stays missing


@given(codings(), st.integers(0, 99), st.lists(st.integers(-8, 8), max_size=4))
def test_recoding_undoes_the_expansion_of_differences(coding: DifferenceCoding, seed: int, kept: list[int]) -> None:
    rng = np.random.default_rng(seed)
    recoding = Recoding.coarse(CODEC).code_differences({1: coding})
    recoding = recoding.merge("b", group_differences(coding, 9, tuple(kept))).join("bc", ["b", "c"])
    size = recoding.sizes[1]
    recoding = recoding.merge("bc", Grouping(np.minimum(np.arange(size), size // 2)))
    codes = np.stack([rng.integers(0, s, 200) for s in recoding.sizes], axis=1)

    fine = recoding.expand(codes, [rng.random(s) for s in CODEC.fine_sizes], rng)

    assert np.array_equal(recoding.apply(fine), codes)


@given(codings(), st.integers(0, 99))
def test_a_marginal_with_the_anchor_gives_the_counts_of_differences(coding: DifferenceCoding, seed: int) -> None:
    fine, source = sample_codes(seed), Recoding.fine(CODEC)
    target = Recoding.coarse(CODEC).code_differences({1: coding})
    counts = np.zeros((10, 9), np.int64)
    np.add.at(counts, (fine[:, 0], fine[:, 1]), 1)
    estimate = project_to_recoding(Marginal(("a", "b"), counts, 0, 1.0), source, target)

    expected = np.zeros((5, target.sizes[1]))
    codes = target.apply(fine)
    np.add.at(expected, (codes[:, 0], codes[:, 1]), 1)
    assert estimate is not None
    assert np.array_equal(estimate.values, expected)


def test_a_marginal_without_the_anchor_gives_no_counts_of_differences() -> None:
    target = Recoding.fine(CODEC).code_differences({1: DifferenceCoding(0, np.zeros(10, np.int64), 8)})
    marginal = Marginal(("b", "c"), np.ones((9, 4), np.int64), 0, 1.0)

    assert project_to_recoding(marginal, Recoding.fine(CODEC), target) is None
    assert project_to_recoding(marginal, target, Recoding.fine(CODEC)) is None


def test_columns_with_different_difference_codings_are_not_equivalent() -> None:
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


def test_an_anchor_that_is_stored_as_a_difference_is_refused() -> None:
    identity = DifferenceCoding(0, np.arange(10) % 8, 8)
    both = Recoding.fine(CODEC).code_differences({1: identity, 0: DifferenceCoding(1, np.zeros(9, np.int64), 10)})

    with pytest.raises(InternalError, match="itself stored as a difference"):
        both.require_decodable()
    weights = [np.ones(size) for _, size in both.origin]
    with pytest.raises(InternalError, match="itself stored as a difference"):
        both.expand(np.zeros((1, len(both.names)), np.int64), weights, np.random.default_rng(0))


def test_expected_codes_must_be_codes_of_the_attribute() -> None:
    with pytest.raises(InternalError, match="needs an expected code"):
        DifferenceCoding(0, np.array([0, 8]), 8)


# ── where expectations come from ─────────────────────────────────────────────────────────────────────────────


def test_a_date_is_expected_in_the_cell_of_the_same_date_on_another_grid() -> None:
    day = Datetime(name="day", start="2016-01-01", end="2016-12-31")
    month = Datetime(name="long", start="2015-12-25", end="2017-01-10")

    coding = expect_equal(month, day, 3)

    assert coding.anchor == 3
    assert coding.expected_codes[:3].tolist() == [7, 8, 9]
    assert len(coding.expected_codes) == 366


def test_a_value_outside_the_range_is_expected_at_its_bound() -> None:
    wide, narrow = Integer(name="w", low=0, high=20, missing=True), Integer(name="n", low=5, high=8)

    coding = expect_equal(narrow, wide, 0)

    assert coding.expected_codes.tolist() == [0] * 6 + [1, 2] + [3] * 13 + [0]


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


def test_a_mapping_expects_the_most_frequent_code_of_each_anchor() -> None:
    counts = np.array([[5.0, 1, 90], [-3, -7, 100], [0, 40, 2]])

    assert learn_mapping(counts, anchor=1, modulus=2).expected_codes.tolist() == [0, 0, 1]  # the last column is missing


def test_differences_that_are_kept_have_codes_of_their_own() -> None:
    coding = DifferenceCoding(0, np.zeros(3, np.int64), 5)

    assert group_differences(coding, 6, (0, -1)).group_of.tolist() == [0, 2, 2, 2, 1, 3]
    assert group_differences(coding, 5, (0, 5, 1, 2, 3, 4)).group_of.tolist() == [0, 1, 2, 3, 4]


# ── bins ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_bins_start_at_the_given_values() -> None:
    wage = Integer(name="wage", low=0, high=9, missing=True)

    assert bucketize(wage, [0, 1, 5]).group_of.tolist() == [0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3]
    assert bucketize(wage, [3, 5]).group_of.tolist()[:5] == [0] * 5  # cells below the first start join the first bin
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
def test_invalid_bins_are_refused(attribute: Integer, starts: list[int], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        bucketize(attribute, starts)
