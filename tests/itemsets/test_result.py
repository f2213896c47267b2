"""Frequent itemsets as published: lists, tables, association rules, and the synopsis of their bases."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsyn
from dpsyn.accounting import Budget, Certificate, Laplace, MeasurementRecord, PrivacyUnit, Run, hash_answer
from dpsyn.errors import UserError
from dpsyn.itemsets import FrequentItemsets
from dpsyn.marginals import Marginal
from tests.engines import naive
from tests.synopsis.synopses import synopsis

UNIVERSE = ("10", "9", "true", "a: b", "tea")
BASKETS = [
    *[frozenset({"9", "10", "tea"})] * 40,
    *[frozenset({"9", "10"})] * 20,
    *[frozenset({"tea", "true"})] * 30,
    *[frozenset({"a: b"})] * 5,
    *[frozenset[str]()] * 5,
]
BASES = (("10", "9", "tea"), ("true", "tea"), ("a: b",))
SCALE = 4.0
NOISE = Laplace(sensitivity=Fraction(1), scale=SCALE)


def certificate() -> Certificate:
    run = Run.open(
        Budget.for_guarantee(1, 0, pure_epsilons=[1]),
        PrivacyUnit(record="basket"),
        declared_public=["the universe of 5 items"],
    )
    for basis in bases():
        purpose, digest = f"marginal of {', '.join(basis.clique)}", hash_answer(basis.raw)
        run.charge_all([MeasurementRecord(purpose=purpose, cost=NOISE, answer_hash=digest)])
    return run.certificate()


def bases() -> list[Marginal]:
    return [
        Marginal(basis, np.array(naive.bins(BASKETS, basis)).reshape((2,) * len(basis)), 0, NOISE.std)
        for basis in BASES
    ]


def make_result(**options: Any) -> FrequentItemsets:
    return FrequentItemsets.from_bases(bases(), UNIVERSE, certificate(), dataset="shop", **options)


def test_the_top_itemsets_are_listed_with_counts_errors_and_frequencies() -> None:
    itemsets = make_result(top=3)

    assert [(itemset.items, itemset.count) for itemset in itemsets.itemsets] == [
        (("tea",), 70),
        (("10",), 60),
        (("9",), 60),
    ]
    assert itemsets.itemsets[0].frequency == pytest.approx(0.7)
    assert itemsets.itemsets[1].std == pytest.approx(NOISE.std * 2)
    assert itemsets.baskets == pytest.approx(100)


def test_all_itemsets_of_a_support_are_listed() -> None:
    itemsets = make_result(min_support=0.3)

    expected = [items for items, count in naive.top(BASKETS, 99) if count >= 30]
    assert {frozenset(itemset.items) for itemset in itemsets.itemsets} == {frozenset(items) for items in expected}
    assert len(make_result(min_support=0.3, top=2).itemsets) == 2


def test_a_public_number_of_baskets_is_used() -> None:
    assert make_result(top=1, baskets=140).itemsets[0].frequency == 0.5


def test_any_itemset_within_a_basis_can_be_counted() -> None:
    itemsets = make_result(top=1)

    assert itemsets.count("tea", "9").count == 40
    assert itemsets.count().count == pytest.approx(100)
    with pytest.raises(UserError, match="no basis holds 9, true together"):
        itemsets.count("9", "true")


def test_marginals_within_a_basis_can_be_queried() -> None:
    itemsets = make_result(top=1)

    one, two = itemsets.marginal("9", "10"), itemsets.marginal("tea")

    assert one.values.tolist() == [[40, 0], [0, 60]]
    assert one.variance == pytest.approx(NOISE.std**2 * 2)
    assert two.values.tolist() == pytest.approx([30, 70])
    assert two.variance == pytest.approx(1 / (1 / (NOISE.std**2 * 4) + 1 / (NOISE.std**2 * 2)))
    for items in ((), ("9", "true"), ("zebra",)):
        with pytest.raises(UserError, match="no basis holds"):
            itemsets.marginal(*items)


def test_association_rules_are_those_of_the_counts() -> None:
    rules = make_result(top=100).association_rules(0.6)

    expected = {
        (given, tuple(x for x in items if x not in given))
        for items, both in naive.top(BASKETS, 999)
        if any({*items} <= {*basis} for basis in BASES)
        for size in range(1, len(items))
        for given in combinations(items, size)
        if both / naive.support(BASKETS, given) >= 0.6
    }
    assert {(tuple(sorted(r.antecedent)), tuple(sorted(r.consequent))) for r in rules} == expected
    assert rules[0].confidence == 1
    certain = next(rule for rule in rules if (rule.antecedent, rule.consequent) == (("9",), ("10",)))
    assert (certain.count, certain.confidence) == (60, 1)
    assert certain.lift == pytest.approx(1 / 0.6)
    assert [rule.confidence for rule in rules] == sorted((rule.confidence for rule in rules), reverse=True)


def test_the_error_of_a_confidence_is_that_of_its_bins_to_first_order() -> None:
    """A quotient a/b changes by (da − c·db)/b; both counts are linear in the bins, whose weights come from probing."""
    rule = next(
        r for r in make_result(top=100).association_rules(0.5) if (r.antecedent, r.consequent) == (("tea",), ("9",))
    )
    empty = [Marginal(basis.clique, np.zeros_like(basis.raw), 0, basis.std) for basis in bases()]
    variance = 0.0
    for number, basis in enumerate(bases()):
        for index in range(basis.raw.size):
            raw = np.zeros_like(basis.raw)
            raw.flat[index] = 1
            probe = [*empty[:number], Marginal(basis.clique, raw, 0, basis.std), *empty[number + 1 :]]
            itemsets = FrequentItemsets.from_bases(probe, UNIVERSE, certificate(), top=1)
            change = itemsets.count("tea", "9").count - rule.confidence * itemsets.count("tea").count
            variance += (change * basis.std) ** 2

    assert rule.confidence == pytest.approx(40 / 70)
    assert rule.standard_error == pytest.approx(variance**0.5 / 70)


def test_an_impossible_confidence_is_refused() -> None:
    with pytest.raises(UserError, match="from 0 to 1"):
        make_result(top=3).association_rules(2)


def test_tables_hold_lists_or_texts() -> None:
    itemsets = make_result(top=20)

    table, text, rules = itemsets.table(), itemsets.table("pandas", as_text=True), itemsets.association_rules_table(0.9)

    assert table.column_names == ["items", "count", "standard_error", "frequency"]
    assert ["10", "9"] in table["items"].to_pylist()
    assert "10|9" in text["items"].tolist()
    assert rules.column_names == ["given", "then", "count", "confidence", "standard_error", "lift"]
    assert itemsets.association_rules_table(1.0, as_text=True)["given"].to_pylist()[0] == "10"


def test_plain_data_is_json_and_holds_the_certificate() -> None:
    data = json.loads(json.dumps(make_result(top=2).to_data(0.9), allow_nan=False))

    assert [itemset["items"] for itemset in data["itemsets"]] == [["tea"], ["10"]]
    assert data["certificate"]["privacy_unit"] == {
        "neighbors": "add-remove",
        "id": "",
        "max_rows": 1,
        "record": "basket",
    }
    assert data["bases"] == [list(basis) for basis in BASES]
    assert data["rules"] == []


def test_the_bases_are_a_synopsis_that_is_saved_loaded_and_sampled(tmp_path: Path) -> None:
    make_result(top=5).to_synopsis().save(tmp_path / "s.dpsyn")

    loaded = dpsyn.Synopsis.load(tmp_path / "s.dpsyn", recompute=True)
    rows = loaded.generate(rows=1000, seed=1)

    assert loaded.schema.names == UNIVERSE
    assert [marginal.clique for marginal in loaded.releases[0].rounds[0].marginals] == list(BASES)
    assert np.array_equal(loaded.releases[0].rounds[0].marginals[0].counts, bases()[0].counts)
    assert loaded.certificates[0] == certificate_without_run(loaded)
    both = sum(a and b for a, b in zip(rows["9"].to_pylist(), rows["10"].to_pylist(), strict=True))
    assert both == pytest.approx(600, abs=40)


@pytest.mark.parametrize("baskets", [None, 200])
def test_more_itemsets_come_from_a_saved_synopsis_at_no_cost(tmp_path: Path, baskets: int | None) -> None:
    make_result(top=1, baskets=baskets).to_synopsis().save(tmp_path / "s.dpsyn")

    loaded = FrequentItemsets.from_synopsis(dpsyn.Synopsis.load(tmp_path / "s.dpsyn"), top=4)

    assert loaded.itemsets == make_result(top=4).itemsets
    assert loaded.dataset == "shop"


def test_a_synopsis_of_rows_has_no_itemsets() -> None:
    with pytest.raises(UserError, match="not of baskets"):
        FrequentItemsets.from_synopsis(synopsis(None), top=4)


def certificate_without_run(loaded: dpsyn.Synopsis) -> Certificate:
    """The saved certificate; only the random name of its run differs from a new one."""
    saved = loaded.certificates[0]
    assert saved is not None
    assert saved.account == certificate().account
    return saved


def test_a_result_without_bases_is_an_empty_list_and_no_synopsis() -> None:
    empty = FrequentItemsets.from_bases([], (), certificate(), top=5)

    assert empty.itemsets == ()
    assert empty.table().num_rows == 0
    assert empty.association_rules() == ()
    with pytest.raises(UserError, match="no synopsis to save"):
        empty.to_synopsis()
