"""Counting and mining baskets, slow and obviously right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import combinations, product

Basket = frozenset[str]


def supports(baskets: Sequence[Basket], longest: int | None = None) -> Counter[tuple[str, ...]]:
    """How many baskets hold each itemset that occurs, by looking at every subset of every basket."""
    found: Counter[tuple[str, ...]] = Counter()
    for basket in baskets:
        for size in range(1, min(len(basket), longest or len(basket)) + 1):
            found.update(combinations(sorted(basket), size))
    return found


def top(baskets: Sequence[Basket], number: int, longest: int | None = None) -> list[tuple[tuple[str, ...], int]]:
    """The most frequent itemsets, short ones first among equals."""
    ranked = sorted(supports(baskets, longest).items(), key=lambda pair: (-pair[1], len(pair[0]), pair[0]))
    return ranked[:number]


def support(baskets: Sequence[Basket], items: Collection[str]) -> int:
    """How many baskets hold all of some items."""
    return sum(basket.issuperset(items) for basket in baskets)


def bins(baskets: Sequence[Basket], basis: Sequence[str]) -> list[int]:
    """How many baskets hold just these items of a basis, for all combinations, the last item changing fastest."""
    return [
        sum(tuple(int(item in basket) for item in basis) == held for basket in baskets)
        for held in product((0, 1), repeat=len(basis))
    ]
