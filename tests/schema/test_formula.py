"""Formulas of regressions."""

from __future__ import annotations

from typing import Any

import pytest

from dpsyn.errors import QueryError
from dpsyn.schema.formula import Factor, parse_formula

NAMES = ["income", "age", "sex", "hours-per-week", "a + b", "C"]


def terms(text: str) -> list[tuple[str, ...]]:
    return [tuple(factor.name for factor in term) for term in parse_formula(text, NAMES).terms]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("income ~ age", [("age",)]),
        ("income~age+sex", [("age",), ("sex",)]),
        ("income ~ age + sex + age:sex", [("age",), ("sex",), ("age", "sex")]),
        ("income ~ age*sex", [("age",), ("sex",), ("age", "sex")]),
        ("income ~ age + age*sex", [("age",), ("sex",), ("age", "sex")]),
        ("income ~ hours-per-week + `a + b`", [("hours-per-week",), ("a + b",)]),
        ("income ~ C + age:age", [("C",), ("age",)]),
    ],
)
def test_terms_are_read_from_left_to_right(text: str, expected: list[tuple[str, ...]]) -> None:
    assert terms(text) == expected


def test_categories_are_marked_and_attributes_listed() -> None:
    formula = parse_formula("income ~ C(age) + sex + sex:C(age)", NAMES)

    assert formula.terms == ((Factor("age", True),), (Factor("sex"),), (Factor("sex"), Factor("age", True)))
    assert formula.attributes == ("income", "age", "sex")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("income", "cannot be read; write OUTCOME ~ TERM"),
        ("income ~ ", "cannot be read"),
        ("~ age", "cannot be read"),
        ("income ~ age ~ sex", "cannot be read"),
        ("income ~ age +", "cannot be read"),
        ("income ~ age sex", "there is no attribute 'age sex'"),
        ("income ~ (age + sex)", "cannot be read"),
        ("income ~ C(age", "cannot be read"),
        ("income ~ `age` sex", "cannot be read"),
        ("income ~ agee", "did you mean age"),
        ("incom ~ age", "did you mean income"),
        ("income ~ income", "both the outcome and a term"),
        ("income ~ age + age:sex", "the interaction age:sex needs the term sex beside it"),
        ("income ~ C(age) + sex + age:sex", "needs the term age"),
        ("income ~ age*sex*C", "a product of more than two"),
        (3, "the formula is 3"),
    ],
)
def test_what_cannot_be_read_is_refused_with_an_example(text: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_formula(text, NAMES)
