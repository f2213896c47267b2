"""Counts and mines baskets slowly, in an obviously correct way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import combinations, product

Basket = frozenset[str]


def supports(baskets: Sequence[Basket], max_items: int | None = None) -> Counter[tuple[str, ...]]:
    """The support of each itemset that occurs, counted over every subset of every basket."""
    counts: Counter[tuple[str, ...]] = Counter()
    for basket in baskets:
        for size in range(1, min(len(basket), max_items or len(basket)) + 1):
            counts.update(combinations(sorted(basket), size))
    return counts


def top(baskets: Sequence[Basket], n: int, max_items: int | None = None) -> list[tuple[tuple[str, ...], int]]:
    """The n most frequent itemsets; among those of equal support, short ones come first."""
    ranked = sorted(supports(baskets, max_items).items(), key=lambda pair: (-pair[1], len(pair[0]), pair[0]))
    return ranked[:n]


def support(baskets: Sequence[Basket], items: Collection[str]) -> int:
    """The number of baskets that hold all of the given items."""
    return sum(basket.issuperset(items) for basket in baskets)


def bins(baskets: Sequence[Basket], basis: Sequence[str]) -> list[int]:
    """The number of baskets with each subset of a basis; the last item changes fastest."""
    return [
        sum(tuple(int(item in basket) for item in basis) == held for basket in baskets)
        for held in product((0, 1), repeat=len(basis))
    ]
