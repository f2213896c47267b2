"""Views are published that any question can be answered from, and rows generated."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.errors import UserError
from dpsyn.schema import Categorical, Integer, Open, Schema
from dpsyn.synopsis import Synopsis
from tests.query.noisy_synopses import baskets, binary_schema, count_table

NO_NOISE = 10**6


def table(rows: np.ndarray) -> pa.Table:
    return pa.table({f"x{place}": rows[:, place] for place in range(rows.shape[1])})


def measured(synopsis: Synopsis) -> list[tuple[str, ...]]:
    return [m.clique for release in synopsis.releases for stage in release.rounds for m in stage.marginals]


def holds_every_pair(synopsis: Synopsis, names: list[str]) -> bool:
    return all(any({*pair} <= {*clique} for clique in measured(synopsis)) for pair in combinations(names, 2))


def test_views_hold_every_pair_and_answers_are_near() -> None:
    rows = baskets(20_000, 12)

    synopsis = dpsyn.measure(table(rows), binary_schema(12), 2.0, recipe="priview")
    answer = synopsis.marginal("x0", "x4", "x8", "x11")

    truth = count_table(rows, (0, 4, 8, 11), [2] * 12)
    assert holds_every_pair(synopsis, [f"x{place}" for place in range(12)])
    assert np.abs(answer.counts - truth).sum() / 2 / 20_000 < 0.05


def test_the_plan_is_told_before_views_are_measured() -> None:
    rows, told = baskets(20_000, 12), []

    dpsyn.measure(
        table(rows),
        binary_schema(12),
        1.0,
        recipe=dpsyn.find_recipe("priview", {"views": "covering:2x8"}),
        progress=lambda *p: told.append(p[0]),
    )

    [plan] = [phase for phase in told if "views of" in phase]
    assert plan.startswith(
        "measuring 3 views of up to 8 attributes, which hold every pair; the predicted error of a two-way marginal is"
    )


def test_without_noise_covered_tables_match_to_half_a_row() -> None:
    rows = baskets(3000, 9)

    synopsis = dpsyn.measure(
        table(rows),
        binary_schema(9),
        NO_NOISE,
        allow_large_epsilon=True,
        recipe=dpsyn.find_recipe("priview", {"views": "covering:2x6"}),
    )

    for view in synopsis.model.tables:
        places = [int(name[1:]) for name in view.clique]
        assert synopsis.marginal(*view.clique).counts == pytest.approx(count_table(rows, places, [2] * 9), abs=0.6)


def test_rows_are_generated_from_random_views() -> None:
    rows = baskets(20_000, 10)

    synopsis = dpsyn.measure(
        table(rows), binary_schema(10), 5.0, recipe=dpsyn.find_recipe("priview", {"views": "random:20x5"})
    )
    synthetic = synopsis.generate(20_000, seed=1)

    assert len([clique for clique in measured(synopsis) if len(clique) == 5]) == 20
    made = np.stack([synthetic[f"x{place}"].to_numpy() for place in range(10)], axis=1)
    off = [
        np.abs(count_table(made, pair, [2] * 10) - count_table(rows, pair, [2] * 10)).sum() / 40_000
        for pair in combinations(range(10), 2)
    ]
    assert np.mean(off) < 0.02


def test_the_number_of_rows_is_bought_only_if_it_is_not_known() -> None:
    rows = baskets(2000, 4)
    known = Schema(attributes=binary_schema(4).attributes, expected_size=3000)

    bought, given = (dpsyn.measure(table(rows), schema, 1.0, recipe="priview") for schema in (binary_schema(4), known))

    assert ("x0",) in measured(bought)
    assert ("x0",) not in measured(given)


def test_numbers_and_open_values_are_measured_by_themselves_first() -> None:
    rng = np.random.default_rng(0)
    age, city = rng.integers(0, 90, 8000), rng.choice(["Oslo", "Bergen", "Bodø"], 8000)
    schema = Schema(
        attributes=(
            Integer(name="age", low=0, high=99, bins=10),
            Open(name="city", other="elsewhere"),
            Categorical(name="b", codes=3),
        )
    )

    synopsis = dpsyn.measure(pa.table({"age": age, "city": city, "b": (age // 30) % 3}), schema, 5.0, recipe="priview")

    assert synopsis.marginal("city").labels == (("Bergen", "Bodø", "Oslo", "elsewhere"),)
    assert float(synopsis.count(age=(30, 34))) == pytest.approx(np.count_nonzero((age >= 30) & (age <= 34)), abs=80)
    assert synopsis.marginal("age", "b").source == "covered"


def test_a_synopsis_is_extended_by_views() -> None:
    rows = baskets(5000, 6)
    before = dpsyn.measure(table(rows), binary_schema(6), 0.5, recipe="independent")

    after = dpsyn.measure(table(rows), binary_schema(6), 0.5, recipe="priview", extend=before)

    assert len(after.releases) == 2
    assert after.marginal("x0").standard_errors[0] < before.marginal("x0").standard_errors[0]


def test_an_extended_synopsis_keeps_the_codes_of_its_tables() -> None:
    rng = np.random.default_rng(0)
    a = np.where(rng.random(3000) < 0.01, rng.integers(2, 9, 3000), rng.integers(0, 2, 3000))
    rows, schema = (
        pa.table({"a": a, "b": a % 2}),
        Schema(attributes=(Categorical(name="a", codes=9), Categorical(name="b", codes=2))),
    )
    before = dpsyn.measure(rows, schema, 1.0)

    after = dpsyn.measure(rows, schema, 1.0, recipe="priview", extend=before)

    assert before.model.recoding.sizes[0] < 9
    assert after.model.recoding is before.model.recoding


@pytest.mark.parametrize(
    ("recipe", "views", "words"),
    [
        ("dpsyn", "covering:2x8", "dpsyn has no option 'views'; its options are"),
        ("direct", "covering:2x8", "direct has no option 'views'"),
        ("priview", "some:2x8", "views 'some:2x8' are not known"),
    ],
)
def test_views_that_a_recipe_does_not_know_are_refused(recipe: str, views: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        dpsyn.find_recipe(recipe, {"views": views})
