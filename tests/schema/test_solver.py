from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.encoding import Codec
from dpsyn.errors import SchemaError
from dpsyn.schema import Schema, compile_constraints
from dpsyn.schema.solver import SatisfyingRow, find_satisfying_row
from tests.constraints.schemas import schemas_with_rules

SMALL = """
dpsyn_schema: 1
attributes:
  a: {kind: integer, low: 0, high: 3}
  b: {kind: integer, low: 0, high: 3}
  t: {kind: integer, low: 0, high: 5}
  c: {kind: categorical, codes: 2}
  old: {kind: integer, low: 50, high: 60}
  x: {kind: real, low: 0, high: 1, decimals: 1}
  start: {kind: datetime, start: 2024-01-01, end: 2024-12-31}
  end: {kind: datetime, start: 2020, end: 2023}
rules: [%s]
"""


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ("{rule: order, attributes: [old, a]}", "contradicts the domains"),
        ("{rule: order, attributes: [start, end]}", "contradicts the domains"),
        ("{rule: sum, total: a, parts: [old, b]}", "contradicts the domains"),
        ("{rule: sum, total: t, parts: [a, x]}", "same decimals"),
        ("{rule: impossible, where: {c: [0, 1]}}", "contradicts the domains"),
        (
            "{rule: order, attributes: [a, b], strict: true}, {rule: order, attributes: [b, a]}",
            "together with the earlier rules",
        ),
        (
            "{rule: impossible, where: {c: 0, a: 0..1}}, {rule: impossible, where: {c: 1}}, "
            "{rule: impossible, where: {a: 2..3}}",
            "together with the earlier rules",
        ),
        (
            "{rule: order, attributes: [b, a]}, {rule: sum, total: t, parts: [a, b]}, "
            "{rule: impossible, where: {t: 0..4}}, {rule: impossible, where: {a: [0, 3]}}",
            "together with the earlier rules",
        ),
        ("{rule: total, where: {c: 0}, count: 5}, {rule: total, count: 3}", "cannot be true"),
        ("{rule: total, where: {c: 0}, count: 5}, {rule: total, where: {c: 0, a: 1}, count: 9}", "cannot be true"),
        (
            "{rule: total, count: 9}, {rule: total, where: {c: 0}, count: 4}, {rule: total, where: {c: 1}, count: 4}",
            "add up to 8",
        ),
        ("{rule: impossible, where: {c: 0, a: 1}}, {rule: total, where: {c: 0, a: 1}, count: 2}", "exclude every row"),
    ],
)
def test_rules_that_no_row_can_satisfy_are_refused_when_a_schema_is_read(rules: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint) as error:
        Schema.from_yaml(SMALL % rules)

    assert "line 12" in str(error.value)


@pytest.mark.parametrize(
    "rules",
    [
        "{rule: order, attributes: [a, b], strict: true}, {rule: sum, total: t, parts: [a, b]}",
        "{rule: order, attributes: [a, old]}",
        "{rule: impossible, where: {c: 0}}",
        "{rule: total, count: 9}, {rule: total, where: {c: 0}, count: 4}, {rule: total, where: {c: 1}, count: 5}",
        "{rule: order, attributes: [x, a]}",
    ],
)
def test_rules_that_rows_can_satisfy_are_accepted(rules: str) -> None:
    assert Schema.from_yaml(SMALL % rules).rules


@settings(max_examples=20, deadline=None)
@given(schemas_with_rules())
def test_a_satisfying_row_satisfies_every_rule(schema: Schema) -> None:
    known = compile_constraints(schema)

    result = find_satisfying_row(known.row_constraints, known.sizes)

    assert isinstance(result, SatisfyingRow)
    row = np.zeros((1, len(known.names)), np.int64)
    for index, cell in result.cells.items():
        row[0, index] = cell
    assert all(rule.holds(row)[0] for rule in known.row_constraints)


def test_a_satisfying_row_is_found_if_and_only_if_one_exists() -> None:
    text = SMALL % "{rule: order, attributes: [a, b]}, {rule: sum, total: t, parts: [a, b]}"
    schema = Schema.from_yaml(text)
    known = compile_constraints(schema)
    indices = [known.names.index(name) for name in "abt"]
    random = np.random.default_rng(0)

    for _ in range(60):
        allowed = {index: random.random(known.sizes[index]) < 0.3 for index in indices}
        cells = [np.flatnonzero(allowed[index]) for index in indices]
        expected = any(a <= b and a + b == t for a, b, t in product(*cells))
        assert (find_satisfying_row(known.row_constraints, known.sizes, allowed) is not None) == expected


def test_orders_in_a_circle_are_refused_however_many_cells_there_are() -> None:
    with pytest.raises(SchemaError, match="no row can satisfy this rule together with the earlier rules"):
        Schema.from_yaml(
            "dpsyn_schema: 1\nattributes:\n"
            "  i: {kind: integer, low: -3, high: 0}\n"
            "  j: {kind: integer, low: 0, high: 5000, bins: 1}\n"
            "  k: {kind: integer, low: 0, high: 471}\n"
            "rules: [{rule: order, attributes: [k, j]}, {rule: order, attributes: [i, j, k], strict: true}]\n"
        )


ORDERS = st.lists(
    st.tuples(st.lists(st.sampled_from("abcd"), min_size=2, max_size=4, unique=True), st.booleans()),
    min_size=2,
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(ORDERS, st.lists(st.sampled_from("abcd"), max_size=2))
def test_orders_contradict_each_other_if_and_only_if_no_values_satisfy_them(
    orders: list[tuple[list[str], bool]], missing: list[str]
) -> None:
    attributes = "".join(
        f"  {name}: {{kind: integer, low: 0, high: 3, bins: 1, missing: {'true' if name in missing else 'false'}}}\n"
        for name in "abcd"
    )
    rules = ", ".join(
        f"{{rule: order, attributes: [{', '.join(order)}], strict: {str(strict).lower()}}}" for order, strict in orders
    )

    def ascends(row: dict[str, int | None], order: list[str], strict: bool) -> bool:
        values = [value for name in order if (value := row[name]) is not None]
        return all(left < right or (left == right and not strict) for left, right in pairwise(values))

    choices = [[*range(4), *([None] if name in missing else [])] for name in "abcd"]
    expected = any(
        all(ascends(dict(zip("abcd", row, strict=True)), *order) for order in orders) for row in product(*choices)
    )

    try:
        Schema.from_yaml(f"dpsyn_schema: 1\nattributes:\n{attributes}rules: [{rules}]\n")
        accepted = True
    except SchemaError as error:
        accepted = "no row can satisfy" not in str(error)
    assert accepted == expected


def test_rules_on_open_attributes_apply_once_values_are_discovered_and_never_make_a_release_fail() -> None:
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n  street: {kind: open}\n  c: {kind: categorical, codes: 2}\n"
        "rules: [{rule: impossible, where: {street: [other, High]}}]\n"
    )
    street = schema["street"]

    discovered = schema.with_discovered_values(street.to_categorical(["High"]))  # type: ignore[union-attr]

    assert discovered.rules == ()
    assert Codec(discovered).names == ("street", "c")
