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
def test_a_row_is_identical_if_a_real_row_has_all_of_its_values(real: Any, synthetic: Any) -> None:
    identical = count_identical_rows(tables_from_rows(LETTERS, real, synthetic))

    expected = sum(row in real for row in synthetic)
    assert identical.count == expected
    assert identical.share.synthetic == expected / len(synthetic)
    assert identical.share.floor == 1


def test_numbers_are_compared_exactly_even_if_their_cells_are_wide() -> None:
    schema = Schema(attributes=(Integer(name="n", low=0, high=10**9),))

    identical = count_identical_rows(tables_from_rows(schema, [(5_000_000,)], [(5_000_001,), (5_000_000,)]))

    assert identical.count == 1


def test_the_note_states_that_this_is_not_the_guarantee() -> None:
    identical = count_identical_rows(tables_from_rows(LETTERS, [("x", "p", 1)], [("x", "p", 1)]))

    assert identical.note == IDENTICAL_ROWS_NOTE
    assert "not the privacy guarantee" in identical.note
