"""Rows that both tables have."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from dpsyn.evaluation._evaluate import count_identical_rows
from dpsyn.evaluation.results import IDENTICAL_ROWS_NOTE
from dpsyn.schema import Integer, Schema
from tests.evaluation.small_tables import LETTERS, few, letters, tables_from_rows


@few
@given(letters(), letters())
def test_a_row_is_identical_if_a_real_one_has_all_its_values(real: Any, synthetic: Any) -> None:
    found = count_identical_rows(tables_from_rows(LETTERS, real, synthetic))

    expected = sum(row in real for row in synthetic)
    assert found.count == expected
    assert found.share.synthetic == expected / len(synthetic)
    assert found.share.floor == 1


def test_numbers_are_compared_exactly_although_their_cells_are_wide() -> None:
    schema = Schema(attributes=(Integer(name="n", low=0, high=10**9),))

    found = count_identical_rows(tables_from_rows(schema, [(5_000_000,)], [(5_000_001,), (5_000_000,)]))

    assert found.count == 1


def test_it_is_said_that_this_is_not_the_guarantee() -> None:
    found = count_identical_rows(tables_from_rows(LETTERS, [("x", "p", 1)], [("x", "p", 1)]))

    assert found.note == IDENTICAL_ROWS_NOTE
    assert "not the privacy guarantee" in found.note
