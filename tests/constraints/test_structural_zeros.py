from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.constraints import apply_structural_zeros, build_constraint_factors, satisfiable_rows
from dpsyn.encoding import Codec, Grouping, RecodedColumn, Recoding
from dpsyn.marginals import Estimate
from dpsyn.schema import Categorical, Datetime, Schema
from tests.constraints.schemas import HOSPITAL

SMALL = Schema.from_yaml(
    """
dpsyn_schema: 1
attributes:
  c: {kind: categorical, codes: 3}
  a: {kind: integer, low: 0, high: 7, bins: [0, 3, 6], missing: true}
  b: {kind: integer, low: 0, high: 5, bins: [0, 2]}
  t: {kind: integer, low: 2, high: 9, bins: [2, 5, 8]}
rules:
  - {rule: impossible, where: {c: [1, 2], a: 0..2}}
  - {rule: order, attributes: [b, a]}
  - {rule: sum, total: t, parts: [a, b]}
"""
)


def histograms(schema: Schema, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {name: random.integers(0, 4, size) * 5.0 for name, size in Codec(schema).domain}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.booleans())
def test_a_combination_is_a_structural_zero_if_and_only_if_no_cells_of_it_can_satisfy_the_rule(
    seed: int, joined: bool
) -> None:
    codec = Codec(SMALL)
    recoding = Recoding.coarse(codec)
    if joined:
        recoding = recoding.join("ca", ["c", "a"])
        size = recoding.columns[recoding.index_of("ca")].size
        recoding = recoding.merge("ca", Grouping(np.arange(size) // 2))
    cells = np.array(list(product(*(range(size) for size in codec.fine_sizes))))
    codes = recoding.apply(cells)

    for factor in build_constraint_factors(SMALL, recoding, histograms(SMALL, seed)):
        indices = [recoding.index_of(name) for name in factor.clique]
        rule = _only_rule_of(factor.clique, recoding)
        possible = np.zeros(factor.shares.shape, np.bool_)
        possible[tuple(codes[satisfiable_rows(rule, cells)][:, indices].T)] = True
        assert np.array_equal(factor.shares > 0, possible)


def test_a_date_decides_about_the_weekday_only_where_its_days_are_few_or_one_is_frequent() -> None:
    when = Datetime(name="t", start="2024-01-01", end="2024-02-29", resolution="hour", missing=True)
    schema = Schema(attributes=(when, Categorical(name="c", codes=2)))
    codec = Codec(schema)
    month, single, frequent = np.arange(31) // 31, 31, 40  # January; a Thursday; a Saturday among others
    table = np.full(61, 2)
    table[:31], table[single], table[60] = month, 1, 3
    date = RecodedColumn("t.date", (0,), (table,))
    recoding = Recoding((date, *Recoding.fine(codec).columns[1:]), codec.domain)
    weights = {name: np.ones(size) for name, size in codec.domain}
    weights["t.date"] = np.random.default_rng(0).random(61) + 0.5
    weights["t.date"][frequent] = 50

    factors = {factor.clique: factor.shares for factor in build_constraint_factors(schema, recoding, weights)}

    by_weekday = factors["t.date", "t.weekday"]
    assert by_weekday[0].tolist() == [1] * 7 + [0]  # any weekday, but not missing
    assert (by_weekday[1] > 0).tolist() == [weekday == 3 for weekday in range(8)]
    assert by_weekday[2].argmax() == 5
    assert by_weekday[2].max() > 2 * by_weekday[2].mean()
    assert by_weekday[3].tolist() == [0] * 7 + [1]
    assert factors["t.date", "t.time"].tolist() == [*([[1.0] * 24 + [0]] * 3), [0] * 24 + [1]]
    assert len(factors) == 2


def _only_rule_of(clique: tuple[str, ...], recoding: Recoding) -> Schema:
    """The schema with just the rules that speak of the attributes of a clique and no others."""
    import msgspec

    names = {recoding.origin[source][0] for c in recoding.columns if c.name in clique for source in c.sources}
    exact = [
        rule for rule in SMALL.rules if {*rule.mentions()} <= names and _columns(rule.mentions(), recoding) == {*clique}
    ]
    return msgspec.structs.replace(SMALL, rules=tuple(exact))


def _columns(names: object, recoding: Recoding) -> set[str]:
    assert isinstance(names, list | tuple)
    sources = [name for name, _ in recoding.origin]
    return {c.name for c in recoding.columns for name in names if sources.index(name) in c.sources}


def test_of_two_numbers_in_one_bin_about_half_ascend() -> None:
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n  a: {kind: integer, low: 0, high: 99, bins: 2}\n"
        "  b: {kind: integer, low: 0, high: 99, bins: 2}\nrules: [{rule: order, attributes: [a, b]}]\n"
    )
    even = {"a": np.ones(100), "b": np.ones(100)}

    [factor] = build_constraint_factors(schema, Recoding.coarse(Codec(schema)), even)

    assert np.allclose(factor.shares, [[0.5, 1], [0, 0.5]], atol=0.011)


def test_excluded_cells_are_zero_and_the_others_make_up_for_the_total() -> None:
    recoding = Recoding.coarse(Codec(HOSPITAL))
    even = {name: np.ones(size) for name, size in Codec(HOSPITAL).domain}
    factors = build_constraint_factors(HOSPITAL, recoding, even)
    sizes = dict(zip(recoding.names, recoding.sizes, strict=True))
    noisy = Estimate(("marital", "age"), np.ones((sizes["marital"], sizes["age"])), 1.0)

    result = apply_structural_zeros(noisy, factors, total=100.0)

    assert result.values[1:, 0].sum() == 0  # married or widowed, youngest bin
    assert result.values[0, 0] > 0
    assert abs(result.values.sum() - 100) < 1e-9


def test_a_table_without_rules_is_unchanged() -> None:
    recoding = Recoding.coarse(Codec(HOSPITAL))
    factors = build_constraint_factors(
        HOSPITAL, recoding, {name: np.ones(size) for name, size in Codec(HOSPITAL).domain}
    )
    noisy = Estimate(("region", "sex"), np.array([[1.0, -2], [3, 4], [5, 6]]), 1.0)

    assert np.array_equal(apply_structural_zeros(noisy, factors).values, noisy.values)
