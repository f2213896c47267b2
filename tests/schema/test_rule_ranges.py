"""Rules on ranges speak of whole cells."""

from __future__ import annotations

import pytest

from dpsyn.errors import SchemaError
from dpsyn.schema import Boolean, Impossible, Integer, Schema, Total
from dpsyn.schema.relations import Condition

INCOME = Integer(name="income", low=0, high=250_000, bins=(0, 1, 30_050), spikes=(70_007,), missing=True)


def schema_with(condition: Condition, *, total: bool = False) -> Schema:
    where = (("income", condition), ("employed", False))
    rule = Total(count=3, where=where) if total else Impossible(where=where)
    return Schema(attributes=(INCOME, Boolean(name="employed")), rules=(rule,))


@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("condition", ["1..40001", "30051..250000", 40_001, (0, "missing", "1..30051")])
def test_a_range_that_ends_inside_a_cell_is_refused_with_the_remedy(condition: Condition, total: bool) -> None:
    with pytest.raises(SchemaError, match=r"inside a cell of 'income'.*bins") as caught:
        schema_with(condition, total=total)

    assert caught.value.path == ("rules", 0, "where", "income")


@pytest.mark.parametrize("condition", ["1..250000", "1..30049", "30050..250000", 0, 70_007, "missing", (0, "missing")])
def test_ranges_of_whole_cells_and_spikes_are_accepted(condition: Condition) -> None:
    assert schema_with(condition).rules
