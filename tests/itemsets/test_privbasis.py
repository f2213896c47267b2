"""The recipe finds the frequent itemsets: exactly if nothing is hidden, and the better the more may be told."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.accounting import Budget, Ledger
from dpsyn.errors import BudgetError, SchemaError, SourceError, UserError
from dpsyn.itemsets import FrequentItemsets, frequent, frequent_itemsets, privbasis
from dpsyn.private import open_baskets
from dpsyn.schema import BasketSchema
from tests.engines import naive
from tests.private.noise_doubles import RecordingNoise

ENORMOUS = 1e6
UNIVERSE = tuple(f"i{number}" for number in range(60))


def made_up(baskets: int = 3000, seed: int = 5) -> list[frozenset[str]]:
    """Baskets with items of falling popularity and a few combinations that are often bought together."""
    rng = np.random.default_rng(seed)
    popular = 0.5 / np.arange(1, len(UNIVERSE) + 1) ** 0.8
    together = [(0, 3, 7), (1, 5), (2, 9, 12, 14), (20, 21), (4, 6, 8)]
    found = []
    for _ in range(baskets):
        held = {*np.flatnonzero(rng.random(len(UNIVERSE)) < popular).tolist()}
        for combination, chance in zip(together, (0.3, 0.25, 0.2, 0.15, 0.2), strict=True):
            held |= {*combination} if rng.random() < chance else set()
        found.append(frozenset(UNIVERSE[item] for item in held))
    return found


BASKETS = made_up()
LISTS = [sorted(basket) for basket in BASKETS]
TRUE = naive.top(BASKETS, 400, longest=5)


def false_negatives(found: FrequentItemsets, number: int) -> float:
    """The part of the true top itemsets that is not listed; those as frequent as the last are interchangeable."""
    least = TRUE[number - 1][1]
    listed = [naive.support(BASKETS, itemset.items) for itemset in found.itemsets]
    return 1 - sum(support >= least for support in listed) / number


# ── utility ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("top", [1, 5, 30, 100])
def test_at_an_enormous_epsilon_the_top_itemsets_are_those_of_a_miner_and_come_from_the_bases(top: int) -> None:
    found = frequent_itemsets(LISTS, UNIVERSE, ENORMOUS, top=top)

    listed = {itemset.items: itemset.count for itemset in found.itemsets}
    assert len(listed) == top
    assert all(count == naive.support(BASKETS, items) for items, count in listed.items())
    assert sorted(listed.values(), reverse=True) == [count for _, count in TRUE[:top]]
    certain = {items for items, count in TRUE[:top] if count > TRUE[top][1]}  # others share the last place
    assert certain <= {tuple(sorted(items)) for items in listed}
    for items, count in listed.items():  # the published bases are where the counts are from
        holding = [basis for basis in found.bases if {*items} <= {*basis.clique}]
        assert holding
        for basis in holding:
            where = tuple(slice(1, 2) if item in items else slice(None) for item in basis.clique)
            assert basis.counts[where].sum() == count


def test_at_an_enormous_epsilon_all_itemsets_of_a_frequency_are_found() -> None:
    found = frequent_itemsets(LISTS, UNIVERSE, ENORMOUS, min_support=0.15)

    expected = {items for items, count in TRUE if count >= 0.15 * len(BASKETS)}
    assert {tuple(sorted(itemset.items)) for itemset in found.itemsets} == expected
    assert len(found.bases) > 1


def test_false_negatives_become_fewer_as_epsilon_grows() -> None:
    rates = [
        np.mean([false_negatives(frequent_itemsets(LISTS, UNIVERSE, epsilon, top=40), 40) for _ in range(5)])
        for epsilon in (0.05, 0.5, 5, 500)
    ]

    assert rates[0] > rates[1] > rates[2] >= rates[3] == 0
    assert rates[0] > 0.4
    assert rates[2] < 0.1


def test_standard_errors_are_those_of_the_counts() -> None:
    """Of 200 counts with Laplace-like noise nearly all lie within five standard errors, and most within two."""
    found = [frequent_itemsets(LISTS, UNIVERSE, 2.0, top=20) for _ in range(10)]

    off = np.array([(s.count - naive.support(BASKETS, s.items)) / s.std for one in found for s in one.itemsets])
    assert (np.abs(off) < 5).all()
    assert 0.85 < np.mean(np.abs(off) < 2) <= 1
    assert 0.3 < np.mean(np.abs(off) < 0.67) < 0.75


# ── what it spends and what it says ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("epsilon", [1.0, 1 / 7, 12.5])
@pytest.mark.parametrize("question", [{"top": 5}, {"top": 40}, {"min_support": 0.25}, {"min_support": 0.45}])
def test_the_entries_of_the_ledger_are_pure_and_add_up_to_epsilon(
    tmp_path: Path, epsilon: float, question: dict[str, Any]
) -> None:
    ledger = Ledger(tmp_path / "l.db")

    found = frequent_itemsets(LISTS[:300], UNIVERSE, epsilon, ledger=ledger, dataset="shop", **question)

    (dataset,) = ledger.datasets()
    draws = found.certificate.account.measurements
    assert [draw.to_data() for draw in draws] == list(dataset.runs[0].measurements)
    assert sum(pure for draw in draws for pure in draw.cost.pure_epsilons) == found.certificate.account.budget.epsilon
    assert found.certificate.account.budget.epsilon <= Fraction(repr(epsilon))
    assert all(draw.cost.mu_squared == 0 and draw.cost.delta == 0 for draw in draws)
    assert found.certificate.uses_real_noise
    assert dataset.runs[0].closed


def test_the_certificate_lists_the_steps() -> None:
    text = frequent_itemsets(LISTS, UNIVERSE, 50, top=40).certificate.text()

    assert "number of items as frequent as itemset number 44: exponential mechanism, ε = 2.5" in text
    assert "frequent items: exponential mechanism" in text
    assert "frequent pairs: exponential mechanism" in text
    assert "marginal of " in text
    assert "Neighboring tables differ by adding or removing one basket." in text
    assert "the universe of 60 items: as listed" in text


def test_the_paper_s_shares_go_to_its_steps() -> None:
    noise = RecordingNoise()
    with open_baskets(
        LISTS, BasketSchema(items=UNIVERSE), Budget.for_guarantee(1, 0, pure_epsilons=[1]), mechanisms=noise
    ) as baskets:
        privbasis(baskets, top=100)

    paid = [sum(answer.cost.pure_epsilons) for answer in noise.answers]
    number, pairs = (len(noise.answers[place].released) for place in (1, 2))
    others = 110 - number
    assert paid[0] == Fraction(1, 10)
    assert sum(paid[1:3]) == Fraction(4, 10)
    assert sum(paid[3:]) == Fraction(5, 10)
    assert pairs == round(others / max(1, others / number) ** 0.5)
    assert float(paid[1]) == pytest.approx(0.4 * number / (number + pairs))


def test_bought_items_lead_to_the_same_itemsets() -> None:
    found = frequent_itemsets(LISTS, None, 40, top=30, delta=1e-6, max_items=20)

    assert false_negatives(found, 30) < 0.1
    assert found.certificate.account.budget.delta == Fraction(1, 10**6)
    assert found.certificate.epsilon_bounds.epsilon <= 40
    assert found.certificate.declared_public == ()


def test_whatever_is_frequent_can_be_bought(tmp_path: Path) -> None:
    """Odd texts are bought like others, or ignored where no list of items could hold them; the synopsis holds them."""
    odd = [
        "caf\xe9\xa0noir",
        "yes",
        "null",
        "1.0",
        "- a: [b]",
        "#",
        "'\"",
        "x\u2028y",
        b"\xff",
        "a\x00b",
        "a\nb",
        "\ud800",
    ]
    found = frequent_itemsets([odd] * 5000, None, 20, top=1000, delta=1e-6, max_items=20)
    found.to_synopsis().save(tmp_path / "s.dpsyn")

    assert {*found.items} == {*odd[:8], "\ufffd", "?"}
    assert dpsyn.Synopsis.load(tmp_path / "s.dpsyn").schema.names == found.items


def test_nothing_is_bought_where_nothing_is_frequent() -> None:
    found = frequent_itemsets([["a"], ["b"]], None, 1, delta=1e-9, max_items=3)

    assert found.itemsets == ()
    assert found.bases == ()
    assert len(found.certificate.account.measurements) == 1


# ── odd baskets ──────────────────────────────────────────────────────────────────────────────────────────────

ODD: dict[str, list[Any]] = {
    "none": [],
    "empty ones": [[]] * 20,
    "one item": [["a"]] * 50,
    "the same item again": [["a", "a", "a"]] * 50,
    "outside the universe": [["zebra", "\ud800", b"\xff", 7.5]] * 50,
    "no lists": ["a", None, 3, object()],
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("universe", [("a",), ("a", "b"), tuple("abcdefghijklmnopqrst")])
@pytest.mark.parametrize("question", [{"top": 1}, {"top": 100}, {"min_support": 0.5}])
def test_odd_baskets_are_answered_like_any_others(data: list[Any], universe: tuple[str, ...], question: Any) -> None:
    found = frequent_itemsets(data, universe, 1.0, **question)

    known = {frozenset(x) for basis in found.bases for n in range(1, 13) for x in combinations(basis.clique, n)}
    assert len(found.itemsets) == min(question["top"], len(known)) if "top" in question else len(found.itemsets) >= 0
    assert sum(pure for draw in found.certificate.account.measurements for pure in draw.cost.pure_epsilons) == 1
    assert {item for itemset in found.itemsets for item in itemset.items} <= {*universe}


def test_counts_do_not_depend_on_what_is_outside_or_repeated() -> None:
    plain = [["a", "b"], ["a"]] * 20
    messy = [["a", "b", "a", "x y z", None, "nan"], [" a ", "b\u0301"]] * 20

    found = [frequent_itemsets(data, ("a", "b"), ENORMOUS, top=3) for data in (plain, messy)]

    assert [(s.items, s.count) for s in found[0].itemsets] == [(s.items, s.count) for s in found[1].itemsets]
    assert found[0].count("a").count == 40


def test_more_itemsets_than_there_are_is_a_shorter_list() -> None:
    found = frequent_itemsets([["a", "b"]] * 9, ("a", "b"), 10, top=2000)

    assert {itemset.items for itemset in found.itemsets} == {("a",), ("b",), ("a", "b")}


def test_a_malformed_line_changes_only_its_basket(tmp_path: Path) -> None:
    (tmp_path / "b.dat").write_bytes(b"1 2\n" * 30 + b"1 \xff\xfe\x00 2,3 ;;; 99999999999999999999 -\n" + b"2\n" * 10)

    found = frequent_itemsets(tmp_path / "b.dat", "1..3", ENORMOUS, top=3)

    assert {itemset.items: itemset.count for itemset in found.itemsets} == {("2",): 40, ("1",): 31, ("1", "2"): 30}


def test_all_forms_of_baskets_give_the_same(tmp_path: Path) -> None:
    import pyarrow.parquet as papq

    lists = [["1", "2"], ["2", "3"], ["2"]] * 30
    (tmp_path / "b.dat").write_text("\n".join(" ".join(basket) for basket in lists), "utf-8")
    rows = [(f"{number:03}", int(item)) for number, basket in enumerate(lists) for item in basket]
    table = pa.table({"order": [row[0] for row in rows], "product": [row[1] for row in rows]})
    papq.write_table(table, tmp_path / "b.parquet")
    (tmp_path / "b.csv").write_text("order,product\n" + "".join(f"{a},{b}\n" for a, b in rows), "utf-8")
    long: Any = {"basket": "order", "item": "product"}

    found = [
        frequent_itemsets(lists, range(1, 4), ENORMOUS, top=4),
        frequent_itemsets(tmp_path / "b.dat", "1..3", ENORMOUS, top=4),
        frequent_itemsets(tmp_path / "b.parquet", "1..3", ENORMOUS, top=4, **long),
        frequent_itemsets(str(tmp_path / "b.csv"), ["1", "2", "3"], ENORMOUS, top=4, **long),
        frequent_itemsets(table.to_pandas(), "1..3", ENORMOUS, top=4, **long),
    ]

    assert len({tuple((s.items, s.count) for s in one.itemsets) for one in found}) == 1
    assert found[0].itemsets[0].items == ("2",)


def test_a_person_s_baskets_are_bounded() -> None:
    table = pa.table({"basket": range(100), "item": ["a"] * 100, "who": ["greedy"] * 90 + [f"p{i}" for i in range(10)]})

    found = frequent_itemsets(table, ("a", "b"), ENORMOUS, top=1, unit="who", max_baskets=3)

    assert found.itemsets[0].count == 13
    assert "all baskets with the same who (at most 3 baskets per who are used)" in found.certificate.text()


def test_a_public_number_of_baskets_makes_frequencies_exact() -> None:
    found = frequent_itemsets([["a"], []] * 10, ("a", "b"), 1.0, top=1, neighbors="replace")

    assert found.baskets == 20


# ── refusals, which depend on public facts alone ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "error", "complaint"),
    [
        ({"top": 0}, UserError, "from 1 to 2,000"),
        ({"top": 10**6}, UserError, "from 1 to 2,000"),
        ({"min_support": 0}, UserError, "part of the baskets"),
        ({"min_support": 1.5}, UserError, "part of the baskets"),
        ({"epsilon": 0}, BudgetError, "positive number"),
        ({"delta": 1e-9}, UserError, "leave both out"),
        ({"items": None}, UserError, "must be bought"),
        ({"items": None, "delta": 1e-9}, UserError, "must be bought"),
        ({"items": None, "delta": 1e-9, "max_basket": 0}, UserError, "from 1"),
        ({"items": None, "delta": 1e-9, "max_basket": 5, "epsilon": 1e6}, BudgetError, "at most 50"),
        ({"items": ["a", "a"]}, SchemaError, "listed twice"),
        ({"rows": 3}, UserError, "no column names the person"),
        ({"unit": "who"}, SourceError, "there is no column 'who'"),
        ({"neighbors": "swap"}, BudgetError, "use add-remove or replace"),
    ],
)
def test_what_cannot_be_done_is_refused(options: dict[str, Any], error: type[Exception], complaint: str) -> None:
    arguments: dict[str, Any] = {"items": ("a",), "epsilon": 1.0, **options}

    with pytest.raises(error, match=complaint):
        frequent_itemsets([["a"]], **arguments)


def test_the_public_name_is_this_function() -> None:
    assert dpsyn.frequent_itemsets is frequent_itemsets
    assert frequent.DEFAULT_TOP == 100
    assert len(frequent_itemsets(LISTS, UNIVERSE, ENORMOUS).itemsets) == 100
