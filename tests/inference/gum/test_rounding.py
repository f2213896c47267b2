from __future__ import annotations

from unittest.mock import create_autospec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.inference.gum.gradual_update import round_counts

VALUES = st.lists(st.just(0.0) | st.floats(1e-6, 1e6), min_size=1, max_size=30).filter(any)


@given(VALUES, st.integers(0, 10**6), st.integers(0, 100))
def test_cells_differ_from_their_share_by_less_than_one_and_sum_to_the_rows(
    values: list[float], rows: int, seed: int
) -> None:
    table = np.array(values)

    whole = round_counts(table, rows, np.random.default_rng(seed))

    assert whole.sum() == rows
    assert np.all(np.abs(whole - table * (rows / table.sum())) < 1 + 1e-6)
    assert np.all(whole[table == 0] == 0)


@given(st.lists(st.integers(0, 1000), min_size=6, max_size=6).filter(any), st.integers(0, 100))
def test_integers_with_the_right_sum_stay(values: list[int], seed: int) -> None:
    table = np.array(values, float).reshape(2, 3)

    whole = round_counts(table, sum(values), np.random.default_rng(seed))

    assert whole.tolist() == table.tolist()


def test_a_zero_stays_zero_where_the_sum_of_the_others_is_a_little_short() -> None:
    rng = create_autospec(np.random.Generator, instance=True)
    rng.random.return_value = 0.0

    whole = round_counts(np.array([0.1] * 7 + [0.0]), 3, rng)  # as floating numbers, .7 · (3 / .7) < 3

    assert whole.tolist() == [0, 0, 1, 0, 1, 0, 1, 0]


def test_a_table_of_zeros_counts_as_uniform() -> None:
    whole = round_counts(np.zeros((2, 2)), 12, np.random.default_rng(0))

    assert whole.tolist() == [[3, 3], [3, 3]]


def test_cells_have_their_share_in_expectation() -> None:
    rng, values = np.random.default_rng(0), np.array([0.3, 0.0, 0.6, 1.3, 0.1, 0.7])

    mean = np.mean([round_counts(values, 3, rng) for _ in range(4000)], axis=0)

    # the standard error is at most .5/√4000 = .008: five times that is exceeded in one of 300 000 runs
    assert mean == pytest.approx(values, abs=0.04)
