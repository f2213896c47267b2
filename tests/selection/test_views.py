"""Which views are measured: those of a scheme, or those that suit the noise."""

from __future__ import annotations

import doctest
import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.errors import UserError
from dpsyn.selection import CELL_POWER
from dpsyn.selection import views as views_module
from dpsyn.selection.covering_design import BlockCapacity
from dpsyn.selection.views import (
    AllViews,
    CoveringViews,
    RandomViews,
    ViewNoise,
    ViewScheme,
    ViewSelection,
    choose_random_views,
    parse_views,
    predict_pair_error,
    select_views,
)

USUAL = ViewNoise(amount=0.0166, sensitivity=1.0, rows=20_000)  # ε = 1, δ = 1e-9
PLENTY: dict[str, Any] = {"max_cells": 10**6, "max_total_cells": 2 * 10**6}


def binary(count: int) -> dict[str, int]:
    return {f"x{index}": 2 for index in range(count)}


def holds_every(plan: ViewSelection, names: list[str], ways: int) -> bool:
    views = [set(clique) for clique in plan.cliques]
    return all(any(view.issuperset(some) for view in views) for some in combinations(names, ways))


@pytest.mark.parametrize(
    ("text", "views"),
    [
        ("covering:2x8", CoveringViews(strength=2, attributes=8)),
        (" random:50x8 ", RandomViews(count=50, attributes=8)),
        ("random:50x8:7", RandomViews(count=50, attributes=8, seed=7)),
        ("all:3", AllViews(ways=3)),
        ("covering:3x3", CoveringViews(strength=3, attributes=3)),
    ],
)
def test_schemes_are_parsed_from_their_text(text: str, views: ViewScheme) -> None:
    assert parse_views(text) == views
    assert str(views) == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "covering",
        "covering:2",
        "covering:4x8",
        "covering:3x2",
        "random:0x8",
        "random:-1x8",
        "all:0",
        "random:99999x8",
        "random:5x8:",
        "random:5x8:-1",
        f"random:5x8:{2**63}",
    ],
)
def test_wrong_texts_of_schemes_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="views"):
        parse_views(text)


@pytest.mark.parametrize(
    ("scheme", "wrong", "message"),
    [
        (
            CoveringViews,
            {"strength": 4, "attributes": 8},
            "cannot cover sets of 4 attributes by views of 8; cover pairs",
        ),
        (
            CoveringViews,
            {"strength": 0, "attributes": 8},
            "strength of the views CoveringViews is 0; give a whole number",
        ),
        (RandomViews, {"count": 2.5, "attributes": 8}, "count of the views RandomViews is 2.5; give a whole number"),
        (AllViews, {"ways": True}, "ways of the views AllViews is True; give a whole number from 1 to 10,000"),
    ],
)
def test_schemes_without_a_meaning_are_refused(scheme: type[Any], wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        scheme(**wrong)


def test_the_examples_of_the_docstrings_run() -> None:
    results = doctest.testmod(views_module)

    assert (results.failed, results.attempted) == (0, 3)


def test_a_covering_scheme_gives_a_covering_design() -> None:
    plan = select_views(binary(12), USUAL, CoveringViews(strength=2, attributes=8), **PLENTY)

    assert len(plan.cliques) == 3
    assert holds_every(plan, list(binary(12)), 2)
    assert plan.description.startswith(
        "3 views of up to 8 attributes, which hold every pair; the predicted error of a two-way marginal is"
    )


def test_a_scheme_of_all_views_gives_every_set() -> None:
    plan = select_views(binary(5), USUAL, AllViews(ways=3), **PLENTY)

    assert set(plan.cliques) == set(combinations(binary(5), 3))


def test_too_many_sets_are_refused() -> None:
    with pytest.raises(UserError, match="there are 1,221,759 sets of 5 attributes"):
        select_views(binary(45), USUAL, AllViews(ways=5), max_cells=10**6, max_total_cells=10**6)


@settings(max_examples=40)
@given(st.lists(st.integers(2, 60), min_size=1, max_size=12), st.integers(1, 12), st.integers(1, 9), st.integers(0, 99))
def test_random_views_fit_and_hold_every_attribute(sizes: list[int], number: int, attributes: int, seed: int) -> None:
    room = BlockCapacity(sizes=tuple(sizes), max_attributes=attributes, max_cells=500)

    views = choose_random_views(room, number, seed=seed)

    assert len(views) >= number
    assert all(room.fits(view) for view in views)
    assert {index for view in views for index in view} == set(range(len(sizes)))


def test_a_random_scheme_gives_its_number_of_views_and_attributes() -> None:
    plan = select_views(binary(16), USUAL, RandomViews(count=50, attributes=8), **PLENTY)

    assert len(plan.cliques) == 50
    assert {len(clique) for clique in plan.cliques} == {8}
    assert len(set(plan.cliques)) > 40


def test_views_of_categories_are_limited_in_cells() -> None:
    sizes = {f"x{index}": size for index, size in enumerate((32, 8, 16, 16, 7, 15, 6, 5, 2, 32, 42, 2, 16))}

    for asked in (None, RandomViews(count=20, attributes=8), CoveringViews(strength=2, attributes=8)):
        plan = select_views(sizes, USUAL, asked, **PLENTY)

        assert max(math.prod(sizes[name] for name in clique) for clique in plan.cliques) <= 5_000
    assert holds_every(select_views(sizes, USUAL, None, **PLENTY), list(sizes), 2)


def test_triples_are_covered_where_noise_is_low_and_pairs_where_it_is_high() -> None:
    names = list(binary(16))

    low, high = (select_views(binary(16), ViewNoise(rho, 1.0, 20_000), **PLENTY) for rho in (1.0, 0.0002))

    assert holds_every(low, names, 3)
    assert holds_every(high, names, 2)
    assert not holds_every(high, names, 3)


def test_views_are_larger_where_noise_does_not_matter() -> None:
    some, none = (select_views(binary(16), ViewNoise(rho, 1.0, 20_000), **PLENTY) for rho in (0.0166, 10.0**6))

    assert max(map(len, none.cliques)) > max(map(len, some.cliques)) == 6


def test_random_views_are_selected_where_a_covering_design_has_too_many_cells() -> None:
    plan = select_views(binary(300), USUAL, max_cells=10**6, max_total_cells=20_000)

    assert "at random" in plan.description
    assert sum(2 ** len(clique) for clique in plan.cliques) <= 20_000
    assert {name for clique in plan.cliques for name in clique} == set(binary(300))


@pytest.mark.parametrize("sizes", [{"a": 3}, {"a": 1, "b": 1}, {"a": 20_000, "b": 2}, {"a": 2, "b": 3}])
def test_views_of_few_attributes_are_selected(sizes: dict[str, int]) -> None:
    plan = select_views(sizes, USUAL, **PLENTY)

    assert {name for clique in plan.cliques for name in clique} == set(sizes)


def test_the_predicted_error_is_that_of_the_noise() -> None:
    sizes, blocks, noise = (2, 3, 2, 4), [(0, 1, 2), (1, 2, 3), (0, 3)], ViewNoise(0.5, 1.0, 1000.0)
    rng, cells = np.random.default_rng(0), [math.prod(sizes[index] for index in block) for block in blocks]
    weights = [size**CELL_POWER for size in cells]
    stds = [math.sqrt(1 / (2 * noise.amount * weight / sum(weights))) for weight in weights]
    off = []
    for _ in range(4000):  # several views are averaged by the best linear mean; one view estimates alone
        tables = [rng.normal(0, d, [sizes[p] for p in b]) for b, d in zip(blocks, stds, strict=True)]
        alone = tables[2]  # attributes 0 and 3 are together in no other view
        off.append(np.abs(alone).sum() / (2 * noise.rows))

    error = predict_pair_error(sizes, blocks, noise)

    assert error < np.mean(off)  # other views add information about the sums of the pair
    assert predict_pair_error((2, 4), [(0, 1)], ViewNoise(0.5, 1.0, 1000.0)) == pytest.approx(
        np.mean(np.abs(rng.normal(0, 1.0, (4000, 8))).sum(axis=1)) / 2000, rel=0.05
    )


def test_a_table_of_one_attribute_has_one_view() -> None:
    assert select_views({"x": 4}, USUAL, **PLENTY).cliques == (("x",),)


@pytest.mark.parametrize(("count", "epsilon"), [(16, 1.0), (32, 0.1), (45, 1.0)])
def test_views_of_binary_attributes_have_eight_of_them_with_laplace_noise(count: int, epsilon: float) -> None:
    """PriView's ℓ = 8, for which 2^(ℓ/2)/(ℓ choose t) is within a tenth of its least for t = 2 and t = 3 alike."""
    noise = ViewNoise(epsilon, 1.0, 30_000.0, pure=True)

    selected = select_views({f"x{n}": 2 for n in range(count)}, noise, max_cells=1_000_000, max_total_cells=2_000_000)

    assert max(map(len, selected.cliques)) == 8
    growth = {t: {n: 2 ** (n / 2) / math.comb(n, t) for n in range(3, 13)} for t in (2, 3)}
    assert [n for n in range(3, 13) if all(growth[t][n] <= 1.1 * min(growth[t].values()) for t in (2, 3))] == [8]
