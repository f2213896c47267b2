"""PrivBasis lists the frequent itemsets: exactly at an enormous ε, and more of them the larger ε is."""

from __future__ import annotations

from collections import Counter
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
from dpsyn.itemsets.noisy_counts import NoisyCounts, kept_share
from dpsyn.itemsets.privbasis import MinedBaskets, PrivBasis, mine_itemsets
from dpsyn.private import ReleaseLimits, open_baskets
from dpsyn.schema import BasketSchema
from tests.engines import naive
from tests.private.noise_doubles import RecordingNoise

ENORMOUS = 1e6
UNIVERSE = tuple(f"i{number}" for number in range(60))


def make_baskets(count: int = 3000, seed: int = 5) -> list[frozenset[str]]:
    """Baskets with items of falling popularity and a few frequent combinations."""
    rng = np.random.default_rng(seed)
    popular = 0.5 / np.arange(1, len(UNIVERSE) + 1) ** 0.8
    together = [(0, 3, 7), (1, 5), (2, 9, 12, 14), (20, 21), (4, 6, 8)]
    baskets = []
    for _ in range(count):
        held = {*np.flatnonzero(rng.random(len(UNIVERSE)) < popular).tolist()}
        for combination, chance in zip(together, (0.3, 0.25, 0.2, 0.15, 0.2), strict=True):
            held |= {*combination} if rng.random() < chance else set()
        baskets.append(frozenset(UNIVERSE[item] for item in held))
    return baskets


BASKETS = make_baskets()
LISTS = [sorted(basket) for basket in BASKETS]
TRUE = naive.top(BASKETS, 400, max_items=5)


def false_negatives(result: FrequentItemsets, top: int) -> float:
    """The share of the true top itemsets that is not listed; those as frequent as the last are interchangeable."""
    least = TRUE[top - 1][1]
    listed = [naive.support(BASKETS, itemset.items) for itemset in result.itemsets]
    return 1 - sum(support >= least for support in listed) / top


# ── utility ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("top", [1, 5, 30, 100])
def test_at_an_enormous_epsilon_the_top_itemsets_are_those_of_a_miner_and_come_from_the_bases(top: int) -> None:
    result = frequent_itemsets(LISTS, UNIVERSE, ENORMOUS, allow_large_epsilon=True, top=top)

    listed = {itemset.items: itemset.count for itemset in result.itemsets}
    assert len(listed) == top
    assert all(count == naive.support(BASKETS, items) for items, count in listed.items())
    assert sorted(listed.values(), reverse=True) == [count for _, count in TRUE[:top]]
    certain = {
        items for items, count in TRUE[:top] if count > TRUE[top][1]
    }  # the others have the same count as the last
    assert certain <= {tuple(sorted(items)) for items in listed}
    for items, count in listed.items():  # the counts come from the published bases
        holding = [basis for basis in result.bases if {*items} <= {*basis.clique}]
        assert holding
        for basis in holding:
            where = tuple(slice(1, 2) if item in items else slice(None) for item in basis.clique)
            assert basis.counts[where].sum() == count


def test_at_an_enormous_epsilon_all_itemsets_of_a_support_are_listed() -> None:
    result = frequent_itemsets(LISTS, UNIVERSE, ENORMOUS, allow_large_epsilon=True, min_support=0.15)

    expected = {items for items, count in TRUE if count >= 0.15 * len(BASKETS)}
    assert {tuple(sorted(itemset.items)) for itemset in result.itemsets} == expected
    assert len(result.bases) > 1


def test_false_negatives_become_fewer_as_epsilon_grows() -> None:
    rates = [
        np.mean(
            [
                false_negatives(frequent_itemsets(LISTS, UNIVERSE, epsilon, allow_large_epsilon=True, top=40), 40)
                for _ in range(5)
            ]
        )
        for epsilon in (0.05, 0.5, 5, 500)
    ]

    assert rates[0] > rates[1] > rates[2] >= rates[3] == 0
    assert rates[0] > 0.4
    assert rates[2] < 0.1


def test_standard_errors_are_those_of_the_counts() -> None:
    """Of 200 counts with Laplace-like noise nearly all lie within five standard errors, and most within two."""
    results = [frequent_itemsets(LISTS, UNIVERSE, 2.0, top=20) for _ in range(10)]

    errors = np.array([(s.count - naive.support(BASKETS, s.items)) / s.std for one in results for s in one.itemsets])
    assert (np.abs(errors) < 5).all()
    assert 0.85 < np.mean(np.abs(errors) < 2) <= 1
    assert 0.3 < np.mean(np.abs(errors) < 0.67) < 0.75


# ── cost and certificate ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("epsilon", [1.0, 1 / 7, 12.5])
@pytest.mark.parametrize("query", [{"top": 5}, {"top": 40}, {"min_support": 0.25}, {"min_support": 0.45}])
def test_the_entries_of_the_ledger_are_pure_and_add_up_to_epsilon(
    tmp_path: Path, epsilon: float, query: dict[str, Any]
) -> None:
    ledger = Ledger.create(tmp_path / "l.db")

    result = frequent_itemsets(LISTS[:300], UNIVERSE, epsilon, ledger=ledger, dataset="shop", **query)

    (dataset,) = ledger.datasets()
    measurements = result.certificate.account.measurements
    assert [measurement.to_data() for measurement in measurements] == list(dataset.runs[0].measurements)
    epsilons = [pure for measurement in measurements for pure in measurement.cost.pure_epsilons]
    assert sum(epsilons) == result.certificate.account.budget.epsilon
    assert result.certificate.account.budget.epsilon <= Fraction(repr(epsilon))
    assert all(m.cost.mu_squared == 0 and m.cost.delta == 0 for m in measurements)
    assert result.certificate.uses_real_noise
    assert dataset.runs[0].closed


def test_the_certificate_lists_the_steps() -> None:
    text = frequent_itemsets(LISTS, UNIVERSE, 50, allow_large_epsilon=True, top=40).certificate.text()

    assert "number of items as frequent as itemset number 44: exponential mechanism, ε = 1.25" in text
    assert "support of itemset number 44" in text
    assert "lengths of baskets" in text
    assert "frequent items: exponential mechanism" in text
    assert "frequent pairs: exponential mechanism" in text
    assert "marginal of " in text
    assert "Neighboring tables differ by adding or removing one basket." in text
    assert "the universe of 60 items: as listed" in text


def test_the_steps_have_the_budget_shares_of_the_paper() -> None:
    noise = RecordingNoise()
    with open_baskets(
        LISTS, BasketSchema(items=UNIVERSE), Budget.for_guarantee(1, 0, pure_epsilons=[1]), mechanisms=noise
    ) as baskets:
        privbasis(baskets, top=100)

    epsilons = [sum(answer.cost.pure_epsilons) for answer in noise.answers]
    items, pairs = (len(noise.answers[index].released) for index in (1, 2))
    others = 110 - items
    assert epsilons[0] == Fraction(1, 10)
    assert sum(epsilons[1:3]) == Fraction(4, 10)
    assert sum(epsilons[3:]) == Fraction(5, 10)
    assert pairs == round(others / max(1, others / items) ** 0.5)
    assert float(epsilons[1]) == pytest.approx(0.4 * items / (items + pairs))


def test_privately_discovered_items_lead_to_the_same_itemsets() -> None:
    result = frequent_itemsets(LISTS, None, 40, allow_large_epsilon=True, top=30, delta=1e-6, max_items=20)

    assert false_negatives(result, 30) < 0.1
    assert result.certificate.account.budget.delta == Fraction(1, 10**6)
    assert result.certificate.epsilon_bounds.epsilon <= 40
    assert result.certificate.declared_public == ()


def test_any_frequent_item_can_be_discovered(tmp_path: Path) -> None:
    """Unusual texts are discovered like others and saved, or ignored if no list of items could hold them."""
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
    result = frequent_itemsets([odd] * 5000, None, 20, top=1000, delta=1e-6, max_items=20)
    result.to_synopsis().save(tmp_path / "s.dpsyn")

    assert {*result.items} == {*odd[:8], "\ufffd", "\ufffd" * 3}
    assert dpsyn.Synopsis.load(tmp_path / "s.dpsyn").schema.names == result.items


def test_nothing_is_discovered_if_nothing_is_frequent() -> None:
    result = frequent_itemsets([["a"], ["b"]], None, 1, delta=1e-9, max_items=3)

    assert result.itemsets == ()
    assert result.bases == ()
    assert len(result.certificate.account.measurements) == 1


# ── unusual baskets─────────────────────────────────────────────────────────────────────────────────────────────

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
@pytest.mark.parametrize("query", [{"top": 1}, {"top": 100}, {"min_support": 0.5}])
def test_unusual_baskets_are_processed_like_others(data: list[Any], universe: tuple[str, ...], query: Any) -> None:
    result = frequent_itemsets(data, universe, 1.0, **query)

    known = {frozenset(x) for basis in result.bases for n in range(1, 13) for x in combinations(basis.clique, n)}
    known |= {frozenset(items) for items, _, _ in result.estimates}
    assert len(result.itemsets) == min(query["top"], len(known)) if "top" in query else len(result.itemsets) >= 0
    assert sum(pure for m in result.certificate.account.measurements for pure in m.cost.pure_epsilons) == 1
    assert {item for itemset in result.itemsets for item in itemset.items} <= {*universe}


def test_counts_do_not_depend_on_unknown_or_repeated_items() -> None:
    plain = [["a", "b"], ["a"]] * 20
    messy = [["a", "b", "a", "x y z", None, "nan"], [" a ", "b\u0301"]] * 20

    results = [
        frequent_itemsets(data, ("a", "b"), ENORMOUS, allow_large_epsilon=True, top=3) for data in (plain, messy)
    ]

    assert [(s.items, s.count) for s in results[0].itemsets] == [(s.items, s.count) for s in results[1].itemsets]
    assert results[0].count("a").count == 40


def test_a_list_is_shorter_if_there_are_fewer_itemsets() -> None:
    result = frequent_itemsets([["a", "b"]] * 9, ("a", "b"), 10, top=2000)

    assert {itemset.items for itemset in result.itemsets} == {("a",), ("b",), ("a", "b")}


def test_a_malformed_line_changes_only_its_basket(tmp_path: Path) -> None:
    (tmp_path / "b.dat").write_bytes(b"1 2\n" * 30 + b"1 \xff\xfe\x00 2,3 ;;; 99999999999999999999 -\n" + b"2\n" * 10)

    result = frequent_itemsets(tmp_path / "b.dat", "1..3", ENORMOUS, allow_large_epsilon=True, top=3)

    assert {itemset.items: itemset.count for itemset in result.itemsets} == {("2",): 40, ("1",): 31, ("1", "2"): 30}


def test_all_forms_of_baskets_give_the_same_result(tmp_path: Path) -> None:
    import pyarrow.parquet as papq

    lists = [["1", "2"], ["2", "3"], ["2"]] * 30
    (tmp_path / "b.dat").write_text("\n".join(" ".join(basket) for basket in lists), "utf-8")
    rows = [(f"{number:03}", int(item)) for number, basket in enumerate(lists) for item in basket]
    table = pa.table({"order": [row[0] for row in rows], "product": [row[1] for row in rows]})
    papq.write_table(table, tmp_path / "b.parquet")
    (tmp_path / "b.csv").write_text("order,product\n" + "".join(f"{a},{b}\n" for a, b in rows), "utf-8")
    long: Any = {"basket": "order", "item": "product"}

    results = [
        frequent_itemsets(lists, range(1, 4), ENORMOUS, allow_large_epsilon=True, top=4),
        frequent_itemsets(tmp_path / "b.dat", "1..3", ENORMOUS, allow_large_epsilon=True, top=4),
        frequent_itemsets(tmp_path / "b.parquet", "1..3", ENORMOUS, allow_large_epsilon=True, top=4, **long),
        frequent_itemsets(str(tmp_path / "b.csv"), ["1", "2", "3"], ENORMOUS, allow_large_epsilon=True, top=4, **long),
        frequent_itemsets(table.to_pandas(), "1..3", ENORMOUS, allow_large_epsilon=True, top=4, **long),
    ]

    assert len({tuple((s.items, s.count) for s in one.itemsets) for one in results}) == 1
    assert results[0].itemsets[0].items == ("2",)


def test_the_baskets_of_a_person_are_bounded() -> None:
    table = pa.table({"basket": range(100), "item": ["a"] * 100, "who": ["greedy"] * 90 + [f"p{i}" for i in range(10)]})

    result = frequent_itemsets(table, ("a", "b"), ENORMOUS, allow_large_epsilon=True, top=1, unit="who", max_baskets=3)

    assert result.itemsets[0].count == 13
    assert "all baskets with the same who (at most 3 baskets per who are used)" in result.certificate.text()


def test_a_public_number_of_baskets_makes_frequencies_exact() -> None:
    result = frequent_itemsets([["a"], []] * 10, ("a", "b"), 1.0, top=1, neighbors="replace")

    assert result.baskets == 20


# ── refusals, which depend on public facts only ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "error", "complaint"),
    [
        ({"top": 0}, UserError, "from 1 to 2,000"),
        ({"top": 10**6}, UserError, "from 1 to 2,000"),
        ({"min_support": 0}, UserError, "fraction of the baskets"),
        ({"min_support": 1.5}, UserError, "fraction of the baskets"),
        ({"epsilon": 0}, BudgetError, "positive number"),
        ({"delta": 1e-9}, UserError, "leave both out"),
        ({"items": None}, UserError, "must be discovered privately"),
        ({"items": None, "delta": 1e-9}, UserError, "must be discovered privately"),
        ({"items": None, "delta": 1e-9, "max_items": 0}, UserError, "from 1"),
        (
            {"items": None, "delta": 1e-9, "max_items": 5, "epsilon": 1e6, "allow_large_epsilon": True},
            BudgetError,
            "at most 50",
        ),
        ({"items": ["a", "a"]}, SchemaError, "listed twice"),
        ({"max_baskets": 3}, UserError, "no column names the person"),
        ({"unit": "who"}, SourceError, "there is no column 'who'"),
        ({"neighbors": "swap"}, BudgetError, "use add-remove or replace"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], error: type[Exception], complaint: str) -> None:
    arguments: dict[str, Any] = {"items": ("a",), "epsilon": 1.0, **options}

    with pytest.raises(error, match=complaint):
        frequent_itemsets([["a"]], **arguments)


def test_the_public_api_exports_this_function() -> None:
    assert dpsyn.frequent_itemsets is frequent_itemsets
    assert frequent.DEFAULT_TOP == 100
    assert len(frequent_itemsets(LISTS, UNIVERSE, ENORMOUS, allow_large_epsilon=True).itemsets) == 100


def sparse_baskets(count: int = 30_000, universe: int = 300) -> list[list[str]]:
    """Baskets of one to four items, of which hundreds are about as frequent as each other."""
    rng = np.random.default_rng(3)
    weights = 1 / np.arange(5, universe + 5)
    draws = rng.choice(universe, (count, 4), p=weights / weights.sum())
    return [[str(item) for item in set(row[: 1 + index % 4].tolist())] for index, row in enumerate(draws)]


def share_found(result: FrequentItemsets, baskets: list[list[str]], top: int) -> float:
    counts = Counter(frozenset(part) for b in baskets for n in (1, 2) for part in combinations(sorted(b), n))
    least = sorted(counts.values())[-top]
    return sum(counts[frozenset(itemset.items)] >= least for itemset in result.itemsets) / top


def test_many_frequent_items_of_short_baskets_are_counted_rather_than_selected() -> None:
    baskets, universe = sparse_baskets(), [str(item) for item in range(300)]

    counted = frequent_itemsets(baskets, universe, 1.0, top=150)
    selected = frequent_itemsets(baskets, universe, 1.0, top=150, method="bases")

    assert counted.bases == ()
    assert selected.bases
    assert share_found(counted, baskets, 150) > share_found(selected, baskets, 150) + 0.1
    assert sum(sum(m.cost.pure_epsilons) for m in counted.certificate.account.measurements) == 1
    exact = sum("7" in basket for basket in baskets)
    assert counted.count("7").count == pytest.approx(exact, abs=8 * counted.count("7").std)  # and some truncation
    assert counted.baskets == pytest.approx(len(baskets), rel=0.25)
    with pytest.raises(UserError, match="no bases to save; use method='bases'"):
        counted.to_synopsis()
    assert all(0 <= rule.confidence <= 1 for rule in counted.association_rules(0.01))


def mine_sparse_baskets(limits: ReleaseLimits) -> MinedBaskets:
    schema = BasketSchema(items=tuple(str(item) for item in range(300)))
    budget = Budget.for_guarantee(1.0, 0, pure_epsilons=[1.0])
    with open_baskets(sparse_baskets(), schema, budget, limits=limits) as baskets:
        return mine_itemsets(baskets, top=150, options=PrivBasis(max_basis_items=8))


@pytest.mark.parametrize(
    "limits",
    [ReleaseLimits(max_marginal_cells=1_225), ReleaseLimits(max_noisy_values=1 + 13 + 300 + 13 + 1_225)],
)
def test_only_so_many_pairs_are_counted_as_a_release_may_hold(limits: ReleaseLimits) -> None:
    mined = mine_sparse_baskets(limits)

    assert isinstance(mined, NoisyCounts)
    paired = {item for items, _, _ in mined.estimates if len(items) == 2 for item in items}
    assert len(paired) <= 50  # 1 225 pairs
    assert sum(len(items) == 1 for items, _, _ in mined.estimates) > 50


def test_more_items_than_a_release_may_count_are_selected() -> None:
    mined = mine_sparse_baskets(ReleaseLimits(max_marginal_cells=299))

    assert not isinstance(mined, NoisyCounts)


def test_few_frequent_items_are_selected_although_they_could_be_counted() -> None:
    assert frequent_itemsets(LISTS, UNIVERSE, 2.0, top=10).bases


def test_the_kept_share_is_that_of_items_and_of_pairs() -> None:
    lengths = np.array([7.0, 5, 3, 1, *[0] * 9])

    assert kept_share(lengths, 3, 1) == kept_share(lengths, 3, 2) == 1
    assert kept_share(lengths, 1, 1) == pytest.approx((5 + 3 + 1) / (5 + 6 + 3))
    assert kept_share(lengths, 2, 2) == pytest.approx((3 + 2 / 3) / (3 + 2))
    assert kept_share(np.zeros(13), 1, 1) == 1


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(UserError, match="give 'auto' or 'bases'"):
        frequent_itemsets(LISTS, UNIVERSE, 1.0, method="counts")  # type: ignore[arg-type]
