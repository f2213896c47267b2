"""Counts of itemsets are sums over bins, and the standard std of their noise is correct."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.itemsets import ItemsetCounts
from dpsyn.itemsets.counts import superset_sums
from dpsyn.marginals import Marginal
from tests.engines import naive

ITEMS = ("a", "b", "c", "d", "e")
BASES = (("a", "b", "c"), ("b", "c", "d", "e"), ("a",))


def basis(clique: tuple[str, ...], bins: list[int], std: float = 2.0) -> Marginal:
    return Marginal(clique, np.array(bins, np.int64).reshape((2,) * len(clique)), 0, std)


@given(st.lists(st.frozensets(st.sampled_from(ITEMS)), max_size=30))
def test_without_noise_the_counts_of_all_itemsets_are_exact(baskets: list[frozenset[str]]) -> None:
    counts = ItemsetCounts([basis(clique, naive.bins(baskets, clique)) for clique in BASES], ITEMS)

    covered = {x for clique in BASES for size in range(1, 5) for x in combinations(clique, size)}
    assert len(counts) == len(covered)
    for items, count, _ in counts.rank_itemsets():
        assert items in covered
        assert count == pytest.approx(naive.support(baskets, items))
    assert counts.count(()) == pytest.approx(len(baskets))


def test_itemsets_are_ranked_by_count_and_then_by_length() -> None:
    counts = ItemsetCounts([basis(("a", "b"), [1, 0, 3, 5]), basis(("c",), [4, 5])], ITEMS[:3])

    assert [items for items, _, _ in counts.rank_itemsets()] == [("a",), ("b",), ("c",), ("a", "b")]


def test_items_are_listed_in_their_order_whatever_the_bases() -> None:
    counts = ItemsetCounts([basis(("c", "a"), [0, 0, 0, 9]), basis(("b",), [0, 1])], ("a", "b", "c"))

    assert counts.rank_itemsets()[2][0] == ("a", "c")
    assert ("a", "c") in counts
    assert ("c", "a") in counts
    assert ("a", "b") not in counts
    assert ("zebra",) not in counts


def test_several_bases_are_combined_by_inverse_variance_with_the_right_std() -> None:
    """The estimate is linear in the bins, so its noise follows from the weight of every bin, measured by probing."""
    stds = {BASES[0]: 3.0, BASES[1]: 1.5, BASES[2]: 2.0}

    def estimate(items: tuple[str, ...], probe: tuple[tuple[str, ...], int] | None) -> float:
        bases = []
        for clique, std in stds.items():
            bins = [0] * 2 ** len(clique)
            if probe and probe[0] == clique:
                bins[probe[1]] = 1
            bases.append(basis(clique, bins, std))
        return ItemsetCounts(bases, ITEMS).count(items)

    counts = ItemsetCounts([basis(clique, [0] * 2 ** len(clique), std) for clique, std in stds.items()], ITEMS)
    for items in [(), ("a",), ("b",), ("b", "c"), ("d", "e"), ("a", "b", "c")]:
        weights = {
            (clique, bin_index): estimate(items, (clique, bin_index))
            for clique in BASES
            for bin_index in range(2 ** len(clique))
        }
        variance = sum((weight * stds[clique]) ** 2 for (clique, _), weight in weights.items())

        assert counts.std(items) == pytest.approx(variance**0.5)
        holding = [clique for clique in BASES if {*items} <= {*clique}]
        best = sum(1 / (stds[clique] ** 2 * 2 ** (len(clique) - len(items))) for clique in holding)
        assert variance == pytest.approx(1 / best)


def test_superset_sums_add_baskets_with_and_without_other_items() -> None:
    sums = superset_sums(np.arange(8.0).reshape(2, 2, 2))

    assert sums[0, 0, 0] == 28
    assert sums[1, 0, 0] == 4 + 5 + 6 + 7
    assert sums[0, 1, 1] == 3 + 7
    assert sums[1, 1, 1] == 7


def test_without_bases_there_are_no_itemsets() -> None:
    counts = ItemsetCounts([], ())

    assert len(counts) == 0
    assert counts.rank_itemsets() == []
