"""The engine of baskets counts what its slow twin counts, in whatever form the baskets come."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.engines.baskets import BasketEngine
from dpsyn.errors import InternalError, SourceError
from dpsyn.schema import BasketSchema, UnitDeclaration
from dpsyn.sources import open_basket_source
from tests.engines import naive

KEY = b"0123456789abcdef"
ITEMS = ("a", "b", "c", "d", "e", "f")

baskets_of_items = st.lists(st.frozensets(st.sampled_from([*ITEMS, "x", "y"]), max_size=8), max_size=25)


def engine(data: Any, items: tuple[str, ...] | None = ITEMS, key: bytes = KEY, **options: Any) -> BasketEngine:
    return BasketEngine(open_basket_source(data), BasketSchema(items=items, **options), key)


def lists(baskets: list[frozenset[str]]) -> list[list[str]]:
    return [sorted(basket) for basket in baskets]


@given(baskets_of_items)
def test_supports_of_items_and_pairs_are_those_of_the_twin(baskets: list[frozenset[str]]) -> None:
    counting = engine(lists(baskets))

    items, pairs = counting.supports(), counting.pair_supports([4, 0, 2])

    assert items.tolist() == [naive.support(baskets, [item]) for item in ITEMS]
    assert pairs.tolist() == [naive.support(baskets, pair) for pair in (("e", "a"), ("e", "c"), ("a", "c"))]
    assert counting.count() == len(baskets)


@given(baskets_of_items, st.integers(1, 7))
def test_no_more_items_of_a_basket_count_than_the_limit(baskets: list[frozenset[str]], limit: int) -> None:
    """Baskets within the limit count as a whole; of each longer one, as many items and pairs as the limit allows."""
    counting, some = engine(lists(baskets)), [4, 0, 2, 5]
    held = [basket & {*ITEMS} for basket in baskets]
    chosen = [basket & {ITEMS[item] for item in some} for basket in baskets]

    items, pairs = counting.limited_supports(limit), counting.limited_pair_supports(some, limit)

    assert items.sum() == sum(min(len(basket), limit) for basket in held)
    assert pairs.sum() == sum(math.comb(min(len(basket), limit), 2) for basket in chosen)
    if all(len(basket) <= limit for basket in held):
        assert items.tolist() == counting.supports().tolist()
        assert pairs.tolist() == counting.pair_supports(some).tolist()
    assert (items <= counting.supports()).all()
    assert (pairs <= counting.pair_supports(some)).all()
    lengths = [sum(min(len(basket), 3) == n for basket in chosen) for n in range(4)]
    assert counting.count_lengths(some, [0, 1, 2, 3]).tolist() == lengths
    assert counting.count_lengths(None, [0, 2, 5]).tolist() == [
        sum(low <= len(b) < high for b in held) for low, high in ((0, 2), (2, 5), (5, 99))
    ]


@given(baskets_of_items)
def test_bins_are_those_of_the_twin_and_hold_every_basket(baskets: list[frozenset[str]]) -> None:
    bases = [("a",), ("b", "f", "c"), ("f", "a", "b", "c", "d")]

    tables = engine(lists(baskets)).count_bins([[ITEMS.index(item) for item in basis] for basis in bases])

    for basis, table in zip(bases, tables, strict=True):
        assert table.shape == (2,) * len(basis)
        assert table.ravel().tolist() == naive.bins(baskets, basis)
        assert table.sum() == len(baskets)


@given(baskets_of_items, st.integers(1, 80))
def test_the_nth_support_is_that_of_the_twin(baskets: list[frozenset[str]], n: int) -> None:
    ranked = naive.top([basket & {*ITEMS} for basket in baskets], n)

    support = engine(lists(baskets)).nth_support(n)

    assert support == (ranked[-1][1] if len(ranked) == n else 0)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 100, 500])
def test_equal_baskets_of_many_items_are_mined_like_others(n: int) -> None:
    """All 2^200 itemsets are equally frequent; short ones leave the queue first, so the search ends."""
    items = tuple(map(str, range(200)))

    support = engine([list(items)] * 130, items).nth_support(n)

    assert support == 130


def test_items_outside_the_universe_are_ignored() -> None:
    data = [["a", "a", " b ", "zzz", None, "", "nan", float("nan"), b"\xff\xfe"], [], None, ["b", "b"], 7, "a"]

    counting = engine(data)

    assert counting.count() == 6
    assert counting.supports().tolist() == [2, 2, 0, 0, 0, 0]


def test_items_are_compared_by_their_text() -> None:
    counting = engine([[1, 2.0, True], ["1", "2"], ["01", "1.0"]], ("1", "2", "true"))

    assert counting.supports().tolist() == [2, 2, 1]


def long_table(baskets: list[frozenset[str]], seed: int, **columns: list[Any]) -> pa.Table:
    """Baskets in the long form, in any order, some rows twice; an empty basket is a row without an item."""
    none: list[Any] = [None]
    rows: list[tuple[int, str | None]] = [
        (number, item) for number, basket in enumerate(baskets) for item in [*sorted(basket)] or none
    ]
    rows += rows[::3]
    random.Random(seed).shuffle(rows)
    numbers = [number for number, _ in rows]
    extra = {name: [values[number] for number in numbers] for name, values in columns.items()}
    return pa.table(
        {"basket": [f"b{n}" for n in numbers], "item": pa.array([i for _, i in rows], pa.string()), **extra}
    )


@given(baskets_of_items, st.integers(0, 5))
def test_counts_of_a_table_in_the_long_form_do_not_depend_on_the_order(
    baskets: list[frozenset[str]], seed: int
) -> None:
    counting = engine(long_table(baskets, seed))

    assert counting.count() == len(baskets)
    assert counting.count_bins([(0, 1, 2)])[0].ravel().tolist() == naive.bins(baskets, ITEMS[:3])


def test_rows_without_a_basket_or_without_a_unit_are_left_out() -> None:
    table = pa.table(
        {
            "basket": ["1", None, "  ", "1", "2", "1"],
            "item": ["a", "b", "c", "d", "e", "f"],
            "who": ["p", "p", "p", "p", "p", None],
        }
    )

    plain, bounded = engine(table), engine(table, privacy_unit=UnitDeclaration(id="who", max_rows=5))

    assert (plain.count(), plain.supports().tolist()) == (2, [1, 0, 0, 1, 1, 1])
    assert (bounded.count(), bounded.supports().tolist()) == (2, [1, 0, 0, 1, 1, 0])


@settings(max_examples=40)
@given(baskets_of_items, st.integers(1, 3), st.integers(0, 3), st.randoms(use_true_random=False))
def test_at_most_k_baskets_of_a_unit_count_in_whatever_order(
    baskets: list[frozenset[str]], max_rows: int, seed: int, rng: random.Random
) -> None:
    ids = [rng.choice("PQR") for _ in baskets]
    unit = UnitDeclaration(id="who", max_rows=max_rows)

    one, other = (engine(long_table(baskets, order, who=ids), privacy_unit=unit) for order in (seed, seed + 1))

    assert one.count() == sum(min(max_rows, ids.count(unit_id)) for unit_id in set(ids))
    assert one.count_bins([(0, 1, 2, 3)])[0].tolist() == other.count_bins([(0, 1, 2, 3)])[0].tolist()


def test_which_baskets_of_a_unit_count_depends_on_the_key() -> None:
    baskets = [frozenset(item) for item in ITEMS]
    table = long_table(baskets, 0, who=["p"] * 6)

    counts = {
        tuple(engine(table, privacy_unit=UnitDeclaration(id="who"), key=bytes([number]) * 16).supports().tolist())
        for number in range(40)
    }

    assert len(counts) == 6


def test_the_same_basket_id_of_two_units_makes_two_baskets() -> None:
    table = pa.table({"basket": [1, 1], "item": ["a", "b"], "who": ["p", "q"]})

    counting = engine(table, privacy_unit=UnitDeclaration(id="who", max_rows=3))

    assert (counting.count(), counting.pair_supports([0, 1]).tolist()) == (2, [0])


@given(baskets_of_items, st.integers(1, 4), st.integers(0, 3))
def test_at_most_max_items_of_a_basket_count_in_whatever_order(
    baskets: list[frozenset[str]], max_items: int, seed: int
) -> None:
    one, other = (engine(long_table(baskets, order), None).count_items(max_items) for order in (seed, seed + 1))

    assert sum(one.values()) == sum(min(max_items, len(basket)) for basket in baskets)
    assert one == other
    assert all(0 < count <= naive.support(baskets, [item]) for item, count in one.items())


WORDS = [f"w{number}" for number in range(40)]


@pytest.mark.parametrize("form", ["list", ".dat", "long table"])
@given(st.data())
@settings(max_examples=25)
def test_which_items_of_a_basket_count_depends_on_no_other_basket(
    tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject
) -> None:
    """With one key, removing a basket changes the counts of at most ``max_items`` items by one, wherever it is."""
    baskets = data.draw(st.lists(st.lists(st.sampled_from(WORDS), max_size=30, unique=True), min_size=1, max_size=12))
    removed = data.draw(st.integers(0, len(baskets) - 1))
    max_items = data.draw(st.integers(1, 5))

    def count(kept: list[int]) -> dict[str, int]:
        if form == "list":
            return engine([baskets[index] for index in kept], None).count_items(max_items)
        if form == ".dat":
            path = tmp_path_factory.mktemp("baskets") / "b.dat"
            path.write_text("".join(" ".join(baskets[index]) + "\n" for index in kept), "utf-8")
            return engine(path, None).count_items(max_items)
        rows = [(f"b{index}", word) for index in kept for word in baskets[index]]
        columns = [pa.array([row[axis] for row in rows], pa.string()) for axis in range(2)]
        return engine(pa.table(columns, ["basket", "item"]), None).count_items(max_items)

    everyone = list(range(len(baskets)))
    before, after = count(everyone), count([index for index in everyone if index != removed])
    changes = [before.get(word, 0) - after.get(word, 0) for word in WORDS]

    assert set(changes) <= {0, 1}
    assert sum(changes) == min(max_items, len(baskets[removed]))


def test_which_items_of_a_basket_without_an_id_count_depends_on_the_key_and_on_its_items() -> None:
    def kept(basket: list[str], key: bytes) -> frozenset[str]:
        return frozenset(engine([basket], None, key).count_items(5))

    keys = [bytes([number]) * 16 for number in range(30)]

    assert len({kept(WORDS, key) for key in keys}) == 30
    assert {kept(WORDS[::-1], key) for key in keys} == {kept(WORDS, key) for key in keys}
    assert any(kept(WORDS[:-1], key) != kept(WORDS, key) for key in keys if WORDS[-1] not in kept(WORDS, key))


def test_a_text_that_is_too_long_is_not_an_item() -> None:
    counting = engine([["a", "x" * 10_001], ["a", "y" * 10_000]], None)

    assert counting.count_items(5) == {"a": 2, "y" * 10_000: 1}


def test_a_discovered_universe_is_counted_without_reading_again() -> None:
    source = open_basket_source(pa.table({"basket": [1, 2, 2], "item": ["a", "a", "b"]}).to_reader())  # readable once
    counting = BasketEngine(source, BasketSchema(items=None), KEY)

    assert counting.count_items(5) == {"a": 2, "b": 1}
    assert counting.with_items(("b",)).supports().tolist() == [1]
    with pytest.raises(InternalError, match="not been discovered"):
        counting.supports()


def test_an_empty_list_of_baskets_is_counted() -> None:
    counting = engine([])

    assert counting.count() == 0
    assert counting.supports().tolist() == [0] * 6
    assert counting.pair_supports([0, 1, 2]).tolist() == [0, 0, 0]
    assert counting.nth_support(3) == 0
    assert counting.count_bins([(0, 1)])[0].tolist() == [[0, 0], [0, 0]]
    assert engine([], None).count_items(3) == {}


def test_a_table_without_the_columns_is_refused_before_it_is_read() -> None:
    with pytest.raises(SourceError, match="there is no column 'basket'"):
        engine(pa.table({"order": [1], "item": ["a"]}))
    with pytest.raises(SourceError, match="there is no column 'who'"):
        engine([["a"]], privacy_unit=UnitDeclaration(id="who"))


def test_the_engine_reveals_nothing_and_cannot_be_copied() -> None:
    counting = engine([["secret"]])
    counting.prepare()

    assert repr(counting) == "<BasketEngine: private rows>"
    with pytest.raises(TypeError):
        copy.copy(counting)
    with pytest.raises(TypeError):
        copy.copy(counting._baskets)


def test_adding_a_basket_changes_every_count_by_at_most_one_and_in_the_same_direction() -> None:
    rng = random.Random(3)
    for _ in range(40):
        baskets = [[item for item in ITEMS if rng.random() < 0.5] for _ in range(rng.randrange(12))]
        fewer, more = engine(baskets), engine([*baskets, rng.sample(ITEMS, rng.randrange(6))])

        moved = [
            more.supports() - fewer.supports(),
            np.sort(more.supports()) - np.sort(fewer.supports()),
            more.pair_supports(range(6)) - fewer.pair_supports(range(6)),
            np.array([more.nth_support(n) - fewer.nth_support(n) for n in (1, 3, 9, 30)]),
        ]
        tables = [
            np.abs(a - b).sum()
            for a, b in zip(more.count_bins([(0, 1), (2, 3, 4)]), fewer.count_bins([(0, 1), (2, 3, 4)]), strict=True)
        ]

        assert all(set(change.tolist()) <= {0, 1} for change in moved)
        assert tables == [1, 1]


def test_pairs_of_few_items_of_a_large_universe_take_little_memory() -> None:
    items = tuple(map(str, range(100_000)))
    counting = engine([["7", "99999", "5"], ["7", "5"]], items)

    supports = counting.pair_supports([7, 99_999, 5])

    assert supports.tolist() == [1, 2, 1]
