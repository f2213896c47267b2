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
    repaired, steps = repair_rows(schema, cells, random)
    return repaired, codec.decode(repaired, random, steps={codec.names[index]: own for index, own in steps.items()})


@settings(max_examples=20, deadline=None)
@given(schemas_with_rules(), st.integers(0, 40), st.integers(0, 2**31))
def test_repaired_rows_satisfy_any_rules_and_none_is_dropped(schema: Schema, rows: int, seed: int) -> None:
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
def test_rows_that_can_satisfy_the_rules_keep_their_cells_if_no_rules_share_attributes(
    schema: Schema, seed: int
) -> None:
    cells = random_cells(schema, 30, seed)
    good = satisfiable_rows(schema, cells)

    repaired, _ = repair_and_decode(schema, cells, seed)

    changed = (repaired != cells).any(axis=1)
    assert satisfiable_rows(schema, repaired).all()
    if len(schema.rules) == 1:
        assert not (changed & good).any()


def test_values_in_one_cell_are_uniform_over_ascending_values() -> None:
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


def test_conditions_stay_met_when_rows_are_repaired() -> None:
    allowed = select_cells(HOSPITAL, {"age": "0..15"})
    cells = random_cells(HOSPITAL, 500, 3)
    index = Codec(HOSPITAL).names.index("age")
    cells[:, index] %= 16

    repaired, _ = repair_rows(HOSPITAL, cells, np.random.default_rng(0), allowed)

    assert allowed["age"][repaired[:, index]].all()
    assert satisfiable_rows(HOSPITAL, repaired).all()


def test_a_single_row_that_violates_a_rule_is_repaired_without_a_donor() -> None:
    names = Codec(HOSPITAL).names
    cells = np.zeros((1, len(names)), np.int64)
    cells[0, names.index("marital")] = 1  # married, of age 0

    repaired, table = repair_and_decode(HOSPITAL, cells)

    assert satisfiable_rows(HOSPITAL, repaired).all()
    assert not any(naive_violations(HOSPITAL, table).values())


def test_a_condition_that_rules_exclude_is_refused_with_their_numbers() -> None:
    with pytest.raises(QueryError, match=r"age, marital: the schema excludes it \(rules 1, 2\)"):
        require_satisfiable(HOSPITAL, select_cells(HOSPITAL, {"age": "0..10", "marital": "married"}))


def test_a_condition_that_rules_allow_is_not_refused() -> None:
    require_satisfiable(HOSPITAL, select_cells(HOSPITAL, {"age": "0..10", "marital": "single"}))


def test_totals_are_recomputed_rather_than_copied_from_another_row() -> None:
    cells = random_cells(HOSPITAL, 2_000, 5)
    parts = [Codec(HOSPITAL).names.index(name) for name in ("wages", "rents")]

    repaired, _ = repair_and_decode(HOSPITAL, cells)

    assert np.array_equal(repaired[:, parts], cells[:, parts])


def test_an_attribute_of_many_rules_keeps_its_sampled_value() -> None:
    lines = [f"  q{n}: {{kind: categorical, codes: 3}}\n" for n in range(6)]
    rules = [f"  - {{rule: impossible, where: {{asked: 0, q{n}: [1, 2]}}}}\n" for n in range(6)]
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n  asked: {kind: categorical, codes: 2}\n"
        f"{''.join(lines)}rules:\n{''.join(rules)}"
    )
    cells = random_cells(schema, 1_000, 5)

    repaired, table = repair_and_decode(schema, cells)

    assert np.array_equal(repaired[:, 0], cells[:, 0])
    assert not any(naive_violations(schema, table).values())
