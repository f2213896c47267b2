from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.constraints import count_violations, repair_rows, require_satisfiable, satisfiable_rows
from dpsyn.encoding import Codec
from dpsyn.errors import QueryError
from dpsyn.schema import Schema, Total, select_cells
from tests.constraints.naive import naive_violations
from tests.constraints.schemas import HOSPITAL, schemas_with_rules


def random_cells(schema: Schema, rows: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.stack([random.integers(0, cells, rows) for cells in Codec(schema).fine_sizes], axis=1)


def repair_and_decode(schema: Schema, cells: np.ndarray, seed: int = 0):  # type: ignore[no-untyped-def]
    codec, random = Codec(schema), np.random.default_rng(seed)
    mended, steps = repair_rows(schema, cells, random)
    return mended, codec.decode(mended, random, steps={codec.names[place]: own for place, own in steps.items()})


@settings(max_examples=20, deadline=None)
@given(schemas_with_rules(), st.integers(0, 40), st.integers(0, 2**31))
def test_whatever_the_rules_no_row_breaks_one_and_none_is_dropped(schema: Schema, rows: int, seed: int) -> None:
    _, table = repair_and_decode(schema, random_cells(schema, rows, seed), seed)

    by_row = {n: b for n, b in naive_violations(schema, table).items() if not isinstance(schema.rules[n - 1], Total)}
    assert table.num_rows == rows
    assert not any(by_row.values())


@settings(max_examples=20, deadline=None)
@given(schemas_with_rules(), st.integers(0, 2**31))
def test_counted_violations_are_those_of_a_plain_reading(schema: Schema, seed: int) -> None:
    table = Codec(schema).decode(random_cells(schema, 30, seed), np.random.default_rng(seed))

    assert count_violations(schema, table) == naive_violations(schema, table)


@settings(max_examples=20, deadline=None)
@given(schemas_with_rules(), st.integers(0, 2**31))
def test_rows_that_can_keep_the_rules_keep_their_cells_if_each_rule_has_its_own_attributes(
    schema: Schema, seed: int
) -> None:
    cells = random_cells(schema, 30, seed)
    good = satisfiable_rows(schema, cells)

    mended, _ = repair_and_decode(schema, cells, seed)

    changed = (mended != cells).any(axis=1)
    assert satisfiable_rows(schema, mended).all()
    if len(schema.rules) == 1:
        assert not (changed & good).any()


def test_values_in_one_cell_ascend_and_are_spread_evenly_over_what_ascends() -> None:
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n  a: {kind: integer, low: 0, high: 99999}\n"
        "  b: {kind: integer, low: 0, high: 99999}\nrules: [{rule: order, attributes: [a, b], strict: true}]\n"
    )
    width = 100  # of each of a thousand cells

    _, table = repair_and_decode(schema, np.full((20_000, 2), 5))

    a, b = (table.column(name).to_numpy() for name in "ab")
    assert (a < b).all()
    assert abs((b - a).mean() / (width / 3) - 1) < 0.05  # of two even numbers in order the gap is a third


def test_a_sum_of_coarse_cells_is_exact() -> None:
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n  t: {kind: real, low: 0, high: 90000, decimals: 2}\n"
        "  a: {kind: real, low: 0, high: 60000, decimals: 2}\n  b: {kind: real, low: 0, high: 60000, decimals: 2}\n"
        "rules: [{rule: sum, total: t, parts: [a, b]}]\n"
    )

    _, table = repair_and_decode(schema, random_cells(schema, 5_000, 1))

    assert naive_violations(schema, table) == {1: 0}


def test_conditions_stay_met_when_rows_are_mended() -> None:
    allowed = select_cells(HOSPITAL, {"age": "0..15"})
    cells = random_cells(HOSPITAL, 500, 3)
    place = Codec(HOSPITAL).names.index("age")
    cells[:, place] %= 16

    mended, _ = repair_rows(HOSPITAL, cells, np.random.default_rng(0), allowed)

    assert allowed["age"][mended[:, place]].all()
    assert satisfiable_rows(HOSPITAL, mended).all()


def test_a_single_row_that_breaks_a_rule_is_mended_without_another_to_take_from() -> None:
    names = Codec(HOSPITAL).names
    cells = np.zeros((1, len(names)), np.int64)
    cells[0, names.index("marital")] = 1  # married, of age 0

    mended, table = repair_and_decode(HOSPITAL, cells)

    assert satisfiable_rows(HOSPITAL, mended).all()
    assert not any(naive_violations(HOSPITAL, table).values())


def test_a_condition_that_rules_exclude_is_refused_with_their_numbers() -> None:
    with pytest.raises(QueryError, match=r"age, marital: the schema excludes it \(rules 1, 2\)"):
        require_satisfiable(HOSPITAL, select_cells(HOSPITAL, {"age": "0..10", "marital": "married"}))


def test_a_condition_that_rules_allow_is_not_refused() -> None:
    require_satisfiable(HOSPITAL, select_cells(HOSPITAL, {"age": "0..10", "marital": "single"}))


def test_totals_are_summed_up_rather_than_taken_from_elsewhere() -> None:
    cells = random_cells(HOSPITAL, 2_000, 5)
    parts = [Codec(HOSPITAL).names.index(name) for name in ("wages", "rents")]

    mended, _ = repair_and_decode(HOSPITAL, cells)

    assert np.array_equal(mended[:, parts], cells[:, parts])


def test_what_many_rules_hang_on_stays_as_it_was_drawn() -> None:
    lines = [f"  q{n}: {{kind: categorical, codes: 3}}\n" for n in range(6)]
    rules = [f"  - {{rule: impossible, where: {{asked: 0, q{n}: [1, 2]}}}}\n" for n in range(6)]
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n  asked: {kind: categorical, codes: 2}\n"
        f"{''.join(lines)}rules:\n{''.join(rules)}"
    )
    cells = random_cells(schema, 1_000, 5)

    mended, table = repair_and_decode(schema, cells)

    assert np.array_equal(mended[:, 0], cells[:, 0])
    assert not any(naive_violations(schema, table).values())
