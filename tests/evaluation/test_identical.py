"""Rows that both tables have."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from dpsyn.evaluation.identical import identical_rows
from dpsyn.evaluation.results import NOT_THE_GUARANTEE
from dpsyn.schema import Integer, Schema
from tests.evaluation.comparing import LETTERS, compared, few, letters


@few
@given(letters(), letters())
def test_a_row_is_identical_if_a_real_one_has_all_its_values(real: Any, synthetic: Any) -> None:
    found = identical_rows(compared(LETTERS, real, synthetic))

    expected = sum(row in real for row in synthetic)
    assert found.count == expected
    assert found.share.synthetic == expected / len(synthetic)
    assert found.share.floor == 1


def test_numbers_are_compared_exactly_although_their_cells_are_wide() -> None:
    schema = Schema(attributes=(Integer(name="n", low=0, high=10**9),))

    found = identical_rows(compared(schema, [(5_000_000,)], [(5_000_001,), (5_000_000,)]))

    assert found.count == 1


def test_it_is_said_that_this_is_not_the_guarantee() -> None:
    found = identical_rows(compared(LETTERS, [("x", "p", 1)], [("x", "p", 1)]))

    assert found.note == NOT_THE_GUARANTEE
    assert "not the privacy guarantee" in found.note
