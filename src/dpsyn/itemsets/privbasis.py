"""Recipe ``privbasis``: frequent itemsets from a few noisy bases (Li, Qardaji, Su and Cao: PrivBasis, VLDB 2012)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpsyn.accounting import split_exactly
from dpsyn.marginals import Marginal
from dpsyn.private import PrivateBaskets
from dpsyn.progress import Progress, ignore_progress
from dpsyn.selection import MAX_BASIS_ITEMS, build_basis_sets

ChosenElements = tuple[tuple[int, ...], Sequence[tuple[int, int]], Fraction]
"""Items, pairs of them, and the part of ε that is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivBasis:
    """The constants of the paper, and those that it leaves open.

    Attributes:
        budget_shares: α, parts of ε for the number λ of items, for selecting items and pairs, and for counts
            (section 4.5).
        safety: η, the factor by which the bases should cover more itemsets than requested (section 4.5).
        max_basis_items: the maximum number of items of a basis; if no more items are frequent, they are one basis
            (section 4.4).
        guess_below: below this ε (for adding or removing one basket), the number of pairs is the paper's guess, which
            is then slightly better than a private selection of the number. From this ε on the private selection is
            better, and it is right where there is no noise (``bench.itemsets``).
        max_elements: the maximum number of items, and of pairs, that are selected if a minimum support is requested,
            because the number of frequent ones is not known.
    """

    name: ClassVar[str] = "privbasis"

    budget_shares: tuple[int, int, int] = (1, 4, 5)
    safety: Fraction = Fraction(11, 10)
    max_basis_items: int = MAX_BASIS_ITEMS
    guess_below: Fraction = Fraction(2)
    max_elements: int = 500


def privbasis(
    baskets: PrivateBaskets,
    *,
    top: int | None = None,
    min_support: Fraction | None = None,
    progress: Progress = ignore_progress,
    options: PrivBasis = PrivBasis(),
) -> list[Marginal]:
    """Noisy bases in which the ``top`` itemsets should lie, or else all in at least ``min_support`` of the baskets.

    Privacy: spends the whole pure ε of the budget.
    """
    epsilon = baskets.budget.pure_epsilons[0]
    number_epsilon, element_epsilon, count_epsilon = split_exactly(epsilon, options.budget_shares)
    progress("selecting frequent items and pairs", 0.0)
    if top is not None and epsilon < options.guess_below * baskets.privacy_unit.score_sensitivity(1):
        items, pairs, left = _select_by_guess(baskets, top, number_epsilon, element_epsilon, options)
    else:
        items, pairs, left = _select_by_rank(
            baskets, top or min_support or Fraction(1), number_epsilon, element_epsilon, options
        )
    bases = (
        [items]
        if len(items) <= options.max_basis_items
        else build_basis_sets(items, pairs, max_items=options.max_basis_items)
    )
    progress(f"counting {len(bases)} basis {'sets' if len(bases) > 1 else 'set'}", 0.0)
    return baskets.measure_bases(
        [tuple(sorted(basis)) for basis in bases], split_exactly(count_epsilon + left, [1] * len(bases))
    )


def _select_by_guess(
    baskets: PrivateBaskets, top: int, number_epsilon: Fraction, element_epsilon: Fraction, options: PrivBasis
) -> ChosenElements:
    """GetLambda and GetFreqElements of the paper: λ items, and a guess λ₂ of the number of pairs (section 4.5)."""
    safe_top = math.ceil(options.safety * top)
    item_count = _select_item_count(baskets, top, safe_top, number_epsilon)
    others = safe_top - item_count
    pair_count = min(round(others / math.sqrt(max(1.0, others / item_count))), math.comb(item_count, 2))
    if item_count <= options.max_basis_items or pair_count < 1:
        return baskets.choose_frequent_items(item_count, element_epsilon), (), Fraction(0)
    item_epsilon, pair_epsilon = split_exactly(element_epsilon, [item_count, pair_count])
    items = baskets.choose_frequent_items(item_count, item_epsilon)
    return items, baskets.choose_frequent_pairs(items, pair_count, pair_epsilon), Fraction(0)


def _select_by_rank(
    baskets: PrivateBaskets,
    target: int | Fraction,
    number_epsilon: Fraction,
    element_epsilon: Fraction,
    options: PrivBasis,
) -> ChosenElements:
    """Select λ items and λ₂ pairs, both numbers privately; ``target`` is the number of itemsets, or the support.

    The part of ε for λ₂ is left if no pairs are needed.
    """
    item_number_epsilon, pair_number_epsilon = split_exactly(number_epsilon, [1, 1])
    if isinstance(target, int):
        threshold: int | Fraction = math.ceil(options.safety * target)
        item_count = _select_item_count(baskets, target, int(threshold), item_number_epsilon)
        max_pairs = int(threshold) - item_count
    else:
        threshold, max_pairs = target, options.max_elements
        item_count = baskets.choose_item_rank(threshold, max_pairs, item_number_epsilon)
    if item_count <= options.max_basis_items or max_pairs < 1:
        return baskets.choose_frequent_items(item_count, element_epsilon), (), pair_number_epsilon
    item_epsilon, pair_epsilon = split_exactly(element_epsilon, [1, 1])
    items = baskets.choose_frequent_items(item_count, item_epsilon)
    pair_count = baskets.choose_pair_rank(items, threshold, max_pairs, pair_number_epsilon)
    return items, baskets.choose_frequent_pairs(items, pair_count, pair_epsilon), Fraction(0)


def _select_item_count(baskets: PrivateBaskets, top: int, safe_top: int, epsilon: Fraction) -> int:
    """λ: how many items are as frequent as the ⌈ηk⌉-th itemset.

    It is at most ⌈ηk⌉, and at least ⌈log₂(k+1)⌉, because k itemsets hold at least that many items.
    """
    return max(baskets.choose_item_rank(safe_top, safe_top, epsilon), min(top.bit_length(), len(baskets.items)))
