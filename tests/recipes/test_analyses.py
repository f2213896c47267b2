"""Analyses that are declared beforehand: the tables that they need are measured."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn import UserError
from dpsyn.recipes.analyses import OUTCOME_WEIGHT, parse_analysis
from tests.recipes.test_golden_rows import release

ROWS = 3_000
NAMES = ("a", "b", "c", "d")


def table(rows: int = ROWS) -> pa.Table:
    """Independent columns: scores give no reason to measure any pair."""
    rng = np.random.default_rng(2)
    return pa.table({name: rng.integers(0, 3, rows) for name in NAMES} | {"age": rng.integers(0, 100, rows)})


def schema(*, with_age: bool = True) -> dpsyn.Schema:
    lines = [f"  {name}: {{kind: categorical, codes: 3}}" for name in NAMES]
    lines += ["  age: {kind: integer, low: 0, high: 99}"] if with_age else []
    return dpsyn.Schema.from_yaml("dpsyn_schema: 1\nattributes:\n" + "\n".join(lines))


def cliques(synopsis: dpsyn.Synopsis) -> set[frozenset[str]]:
    return {frozenset(m.clique) for r in synopsis.releases[0].rounds for m in r.marginals if len(m.clique) > 1}


def is_held(names: tuple[str, ...], synopsis: dpsyn.Synopsis) -> bool:
    return any({*names} <= held for held in cliques(synopsis))


@pytest.mark.parametrize(
    ("text", "outcome", "attributes", "together"),
    [
        ("income ~ age + sex", "income", ("income", "age", "sex"), ()),
        ("income ~ C(region) + `marital status`", "income", ("income", "region", "marital status"), ()),
        ("y ~ a*b + c", "y", ("y", "a", "b", "c"), (("y", "a", "b"),)),
        ("income by sex, region", None, ("income", "sex", "region"), ()),
        ("sex, region", None, ("sex", "region"), ()),
    ],
)
def test_an_analysis_is_read(
    text: str, outcome: str | None, attributes: tuple[str, ...], together: tuple[tuple[str, ...], ...]
) -> None:
    names = ["income", "age", "sex", "region", "marital status", "y", "a", "b", "c"]
    found = parse_analysis(text, names)

    assert (found.outcome, found.attributes, found.together) == (outcome, attributes, together)


@pytest.mark.parametrize("text", ["", "income", "income, income", "a, , b"])
def test_what_is_no_analysis_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="cannot be read; give a regression such as 'income ~ age"):
        parse_analysis(text, ["income", "a", "b"])


def test_unknown_attributes_are_refused_before_anything_is_read() -> None:
    with pytest.raises(UserError, match="there is no attribute 'x'"):
        dpsyn.measure("no such file.csv", schema(), 1.0, analyses=["x ~ a"])
    with pytest.raises(UserError, match="names 'agee', which is no attribute; did you mean age"):
        dpsyn.measure("no such file.csv", schema(), 1.0, analyses=["agee by a"])
    with pytest.raises(UserError, match="analyses is 'a ~ b'; give a list"):
        dpsyn.measure("no such file.csv", schema(), 1.0, analyses="a ~ b")
    with pytest.raises(UserError, match="recipe 'independent' takes no analyses"):
        dpsyn.measure("no such file.csv", schema(), 1.0, recipe="independent", analyses=["a ~ b"])


def test_tables_of_an_analysis_are_measured_although_scores_show_nothing() -> None:
    plain, declared = (release(table(), schema(), 0.5, analyses=given) for given in ((), ["a ~ b + age", "c, d"]))

    assert not is_held(("c", "d"), plain)
    assert all(is_held(pair, declared) for pair in [*combinations(("a", "b", "age"), 2), ("c", "d")])
    assert declared.releases[0].recipe["analyses"] == ["a ~ b + age", "c, d"]


def test_interactions_are_one_table_with_the_outcome() -> None:
    assert is_held(("a", "b", "age"), release(table(), schema(), 2.0, analyses=["a ~ b*age + c + d"]))


def test_few_attributes_are_one_table_and_get_all_that_is_left() -> None:
    three = schema(with_age=False)
    subset = dpsyn.Schema(attributes=three.attributes[:3])
    synopsis = release(table().select(NAMES[:3]), subset, 0.2, analyses=["a ~ b + c"])
    marginals = [m for r in synopsis.releases[0].rounds for m in r.marginals]
    spent = {len(m.clique): 0.0 for m in marginals}
    for marginal in marginals:
        spent[len(marginal.clique)] += marginal.std**-2

    assert cliques(synopsis) == {frozenset("abc")}
    assert spent[3] > 0.9 * sum(spent.values())


def test_many_attributes_are_pairs_and_those_with_the_outcome_have_less_noise() -> None:
    synopsis = release(table(), schema(), 1.0, analyses=["a ~ b + c + d + age"])
    stds = {frozenset(m.clique): m.std for r in synopsis.releases[0].rounds for m in r.marginals if len(m.clique) == 2}

    assert set(stds) >= {frozenset(pair) for pair in combinations(("a", "b", "c", "d"), 2)}
    assert stds[frozenset("bc")] / stds[frozenset("ab")] == pytest.approx(OUTCOME_WEIGHT ** (1 / 3), rel=0.01)


def test_values_of_declared_attributes_are_not_merged_however_noisy_they_are() -> None:
    three = dpsyn.Schema(attributes=schema(with_age=False).attributes[:3])
    data = table(300).select(NAMES[:3])
    plain, declared = (release(data, three, 0.05, **given) for given in ({"target": "a"}, {"analyses": ["a ~ b + c"]}))

    assert set(plain.model.recoding.sizes) != {3}
    assert declared.model.recoding.sizes == (3, 3, 3)
