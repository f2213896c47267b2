"""Neighboring baskets give answers that differ by no more than was charged, through the whole recipe.

The recipe runs on baskets, then on neighbors of them with the first run's released values replayed, so that both ask
the same questions. The answers before noise are compared with the sensitivities in the ledger's spends: all cells of a
histogram together, every score of a choice by itself, and where scores are charged as monotone, their direction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.accounting import Budget, Exponential, Gaussian, Laplace, PartitionSelection
from dpsyn.itemsets import PrivBasis, privbasis
from dpsyn.itemsets.noisy_counts import LENGTH_STARTS, BasketSummary, measure_noisy_counts
from dpsyn.private import PrivateBaskets, open_baskets
from dpsyn.schema import BasketSchema, UnitDeclaration
from tests.private.noise_doubles import RecordedAnswer, RecordingNoise, ReplayedNoise

ITEMS = tuple("abcdefgh")
SMALL = PrivBasis(max_basis_items=3)
"""Small, so pairs are chosen even for a few items."""

Row = tuple[str, str, str | None]
"""Person, basket, item."""


def count_items_and_pairs(baskets: PrivateBaskets) -> None:
    """Every question of the fallback, whatever is predicted."""
    part = baskets.budget.pure_epsilons[0] / 4
    baskets.choose_item_rank(8, 8, part)
    level, lengths = baskets.measure_support(8, part), baskets.measure_lengths(None, LENGTH_STARTS, part)
    measure_noisy_counts(baskets, BasketSummary(8, 4, min(level, 1.0), *lengths), part / 2)
    baskets.measure_items(2, part / 6)
    baskets.measure_pairs([0, 2, 3, 7], 3, part / 6)
    baskets.measure_lengths([1, 2], [0, 1], part / 6)


RECIPES = {
    "items and pairs": count_items_and_pairs,
    "top": lambda baskets: privbasis(baskets, top=12, options=SMALL),
    "top, guessed": lambda baskets: privbasis(baskets, top=12, options=replace(SMALL, guess_below=Fraction(99))),
    "one basis": lambda baskets: privbasis(baskets, top=3),
    "frequency": lambda baskets: privbasis(baskets, min_support=Fraction(1, 5), options=SMALL),
}

a_basket = st.lists(st.sampled_from([*ITEMS, "zz", None]), min_size=1, max_size=9)
persons = st.lists(st.lists(a_basket, max_size=5), min_size=1, max_size=6)


@dataclass(frozen=True)
class Neighbors:
    """Two tables that differ in one person's baskets, or in one basket."""

    first: list[Row]
    second: list[Row]


def rows_of(baskets: list[list[list[str | None]]]) -> list[Row]:
    return [
        (f"p{who}", f"b{who}-{number}", item)
        for who, unshared in enumerate(baskets)
        for number, basket in enumerate(unshared)
        for item in basket
    ]


@st.composite
def neighboring(draw: st.DrawFn, relation: str, by_person: bool) -> Neighbors:
    """People with baskets, one of whom comes, goes or is replaced; each has one basket where that is the unit."""
    people = draw(persons) if by_person else [[basket] for basket in draw(st.lists(a_basket, min_size=1, max_size=20))]
    other = draw(st.lists(a_basket, max_size=5)) if by_person else [draw(a_basket)]
    before, after = rows_of(people), rows_of([*people[:-1], other] if relation == "replace" else people[:-1])
    return Neighbors(*draw(st.permutations([before, after])))


def answers(rows: list[Row], schema: BasketSchema, recipe: Any, noise: Any, budget: Budget) -> list[RecordedAnswer]:
    columns = {
        name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(("who", "basket", "item"))
    }
    with open_baskets(pa.table(columns), schema, budget, mechanisms=noise) as baskets:
        recipe(baskets)
    pairs: list[RecordedAnswer] = noise.answers
    return pairs


def check(one: RecordedAnswer, other: RecordedAnswer) -> None:
    cost = one.cost
    if isinstance(cost, PartitionSelection):
        check_listing(one.exact, other.exact, cost)
        return
    difference = np.asarray(one.exact, np.int64) - np.asarray(other.exact, np.int64)
    if isinstance(cost, Laplace):
        assert np.abs(difference).sum() <= cost.sensitivity
    elif isinstance(cost, Exponential):
        assert np.abs(difference).max() <= cost.sensitivity
        assert not cost.monotone or (difference >= 0).all() or (difference <= 0).all()
    else:
        raise AssertionError(f"nothing is known about {cost}")


def check_listing(one: dict[str, int], other: dict[str, int], cost: PartitionSelection) -> None:
    assert isinstance(cost.noise, Gaussian)
    assert sum((one[key] - other[key]) ** 2 for key in one.keys() & other.keys()) <= cost.noise.sensitivity_squared
    for one_side, other_side in ((one, other), (other, one)):
        unshared = one_side.keys() - other_side.keys()
        assert len(unshared) <= cost.max_rows
        assert all(one_side[key] <= cost.max_rows for key in unshared)


@pytest.fixture(autouse=True)
def same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both runs use the same baskets of a person, and look at the same items of a long one."""
    monkeypatch.setattr("secrets.token_bytes", lambda size: b"k" * size)


def compared(
    pair: Neighbors, schema: BasketSchema, recipe: Any, budget: Budget
) -> list[tuple[RecordedAnswer, RecordedAnswer]]:
    first = RecordingNoise()
    second = ReplayedNoise(first)
    ones = answers(pair.first, schema, recipe, first, budget)
    others = answers(pair.second, schema, recipe, second, budget)
    assert len(ones) == len(others) > 0
    return list(zip(ones, others, strict=True))


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("kept", [None, 1, 2, 3])
def test_answers_on_neighbors_differ_by_no_more_than_was_charged(recipe: str, relation: Any, kept: int | None) -> None:
    schema = BasketSchema(
        items=ITEMS, neighbors=relation, privacy_unit=UnitDeclaration(id="who", max_rows=kept) if kept else None
    )
    kinds: set[type] = set()

    @settings(max_examples=15)
    @given(neighboring(relation, kept is not None))
    def compare(pair: Neighbors) -> None:
        for one, other in compared(pair, schema, RECIPES[recipe], Budget.for_guarantee(2, 0, pure_epsilons=[2])):
            kinds.add(type(one.cost))
            check(one, other)

    compare()

    assert kinds == {Exponential, Laplace}


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("kept", [None, 2])
def test_discovered_items_differ_by_no_more_than_was_charged(relation: Any, kept: int | None) -> None:
    schema = BasketSchema(
        items=None, neighbors=relation, privacy_unit=UnitDeclaration(id="who", max_rows=kept) if kept else None
    )
    budget = Budget.for_guarantee(2, 1e-6, pure_epsilons=[1], thresholds=True)

    def recipe(baskets: PrivateBaskets) -> None:
        baskets.discover_items(budget.rho, budget.threshold_delta, max_items=3)

    @settings(max_examples=25)
    @given(neighboring(relation, kept is not None))
    def compare(pair: Neighbors) -> None:
        for one, other in compared(pair, schema, recipe, budget):
            check(one, other)

    compare()


@pytest.mark.parametrize("kept", [None, 2])
def test_a_neighbor_can_reach_what_is_charged(kept: int | None) -> None:
    """The charges are not larger than needed: some neighbors differ by just as much."""
    schema = BasketSchema(
        items=ITEMS, neighbors="replace", privacy_unit=UnitDeclaration(id="who", max_rows=kept) if kept else None
    )
    full: list[list[str | None]] = [[*ITEMS]] * (kept or 1)
    empty: list[list[str | None]] = [[None]] * (kept or 1)
    pair = Neighbors(rows_of([[["a"]], full]), rows_of([[["a"]], empty]))

    pairs = compared(pair, schema, RECIPES["top"], Budget.for_guarantee(2, 0, pure_epsilons=[2]))

    reached = [
        (
            np.abs(one.exact - other.exact).sum()
            if isinstance(one.cost, Laplace)
            else np.abs(one.exact - other.exact).max()
        )
        for one, other in pairs
    ]
    charged = [one.cost.sensitivity for one, _ in pairs if isinstance(one.cost, Laplace | Exponential)]
    assert [r == c for r, c in zip(reached[1:], charged[1:], strict=True)] == [True] * (len(pairs) - 1)
