"""Rows of any number of columns are sorted and compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.evaluation.tables import find_shared_rows, sort_rows

SIZES = (2, 1, 2**32, 2**32, 3, 2**31, 7, 2**32)


def tables() -> st.SearchStrategy[Any]:
    """Columns of codes, few of which differ, so that rows coincide."""
    row = st.tuples(*(st.sampled_from([0, size - 1]) for size in SIZES))
    return st.lists(row, min_size=1, max_size=20).map(lambda rows: np.array(rows, np.uint32).T)


@given(tables())
def test_sorting_keeps_the_rows_in_an_order_of_their_values(table: Any) -> None:
    again = sort_rows(table[:, ::-1], SIZES)

    assert sorted(map(tuple, again.T.tolist())) == sorted(map(tuple, table.T.tolist()))
    assert np.array_equal(again, sort_rows(table, SIZES))


@given(tables(), tables())
def test_rows_are_shared_if_all_their_codes_are_equal(first: Any, second: Any) -> None:
    shared = find_shared_rows(first, second, SIZES)

    known = {*map(tuple, first.T.tolist())}
    assert shared.tolist() == [tuple(row) in known for row in second.T.tolist()]
