"""Rare values are merged by their released counts, and every value keeps a code."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.encoding import merge_rare_values


def test_frequent_values_keep_their_order_and_rare_ones_share_the_last_code() -> None:
    merging = merge_rare_values(np.array([50.0, 2.0, 70.0, 9.0]), 10)

    assert merging.grouping.group_of.tolist() == [0, 2, 1, 2]
    assert not merging.zeroed


def test_rare_values_count_as_empty_if_their_sum_is_rare_too() -> None:
    merging = merge_rare_values(np.array([50.0, 2.0, -3.0, 70.0]), 10)

    assert merging.grouping.group_of.tolist() == [0, 2, 2, 1]
    assert merging.zeroed


def test_nothing_is_merged_where_all_are_frequent() -> None:
    merging = merge_rare_values(np.array([50.0, 20.0]), 10)

    assert merging.grouping.group_of.tolist() == [0, 1]
    assert not merging.zeroed


def test_an_attribute_without_frequent_values_becomes_one_code_that_holds_all_rows() -> None:
    merging = merge_rare_values(np.array([1.0, -2.0, 3.0]), 10)

    assert merging.grouping.group_of.tolist() == [0, 0, 0]
    assert not merging.zeroed


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30), st.floats(0, 50))
def test_every_value_has_a_code_and_frequent_ones_one_of_their_own(counts: list[float], threshold: float) -> None:
    codes = merge_rare_values(np.array(counts), threshold).grouping.group_of.tolist()

    frequent = [code for code, count in zip(codes, counts, strict=True) if count >= threshold]
    assert frequent == list(range(len(frequent)))
    assert {code for code, count in zip(codes, counts, strict=True) if count < threshold} <= {len(frequent)}
