"""All sampled rows satisfy the constraints of the schema, whichever recipe measured it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import dpsyn
from dpsyn.constraints import count_violations
from dpsyn.errors import UserError
from dpsyn.schema import Schema, Total
from dpsyn.simulation import simulate
from dpsyn.synopsis import Synopsis
from tests.constraints.naive import naive_violations
from tests.constraints.schemas import HOSPITAL

ROWS = 2_000


def release(schema: Schema, recipe: str = "dpsyn") -> Synopsis:
    return dpsyn.measure(simulate(HOSPITAL, ROWS, 4).table(), schema, 5.0, delta=1e-9, recipe=recipe)


@pytest.fixture(scope="module")
def synopsis() -> Synopsis:
    return release(HOSPITAL)


@pytest.mark.parametrize("recipe", ["independent", "privsyn"])
def test_every_row_satisfies_the_constraints_whatever_the_recipe(recipe: str) -> None:
    table = release(HOSPITAL, recipe).generate(1_500, seed=1)

    assert table.num_rows == 1_500
    assert not any(naive_violations(HOSPITAL, table).values())


def test_every_row_of_the_default_recipe_satisfies_the_constraints_and_none_is_dropped(synopsis: Synopsis) -> None:
    table = synopsis.generate(20_000, seed=1)

    assert table.num_rows == 20_000
    assert not any(count_violations(HOSPITAL, table).values())


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_few_rows_satisfy_the_constraints_too(synopsis: Synopsis, rows: int) -> None:
    table = synopsis.generate(rows, seed=1)

    assert table.num_rows == rows
    assert not any(naive_violations(HOSPITAL, table).values())


def test_constraints_and_conditions_hold_together(synopsis: Synopsis) -> None:
    table = synopsis.generate(500, seed=1, where={"age": (0, 15), "discharged": "2024-01-01..2024-01-31"})

    assert max(table.column("age").to_pylist()) <= 15
    assert {str(day)[:7] for day in table.column("discharged").to_pylist()} == {"2024-01"}
    assert not any(naive_violations(HOSPITAL, table).values())


def test_a_condition_that_contradicts_the_constraints_is_refused(synopsis: Synopsis) -> None:
    with pytest.raises(UserError, match="the schema excludes it"):
        synopsis.generate(5, where={"age": (0, 10), "marital": "married"})


def test_a_loaded_synopsis_gives_the_same_rows(synopsis: Synopsis, tmp_path: Path) -> None:
    synopsis.save(tmp_path / "s.dpsyn")

    loaded = Synopsis.load(tmp_path / "s.dpsyn")

    assert loaded.generate(300, seed=3).equals(synopsis.generate(300, seed=3))


def test_a_table_of_the_public_size_meets_the_public_totals() -> None:
    totals = (
        Total(count=ROWS),
        Total(where=(("region", "north"),), count=700),
        Total(where=(("sex", "f"),), count=999),
    )
    schema = msgspec.structs.replace(HOSPITAL, rules=(*HOSPITAL.rules, *totals))

    table = release(schema, "independent").generate(seed=1)

    assert table.num_rows == ROWS
    assert not any(naive_violations(schema, table).values())
