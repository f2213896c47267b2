"""Recipe ``privbasis``: frequent itemsets from a few noisy bases (Li, Qardaji, Su and Cao: PrivBasis, VLDB 2012)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsyn.accounting import split_exactly
from dpsyn.marginals import Marginal
from dpsyn.private import PrivateBaskets
from dpsyn.progress import Progress, ignore_progress
from dpsyn.selection import MAX_BASIS_ITEMS, build_basis_sets

ChosenElements = tuple[tuple[int, ...], Sequence[tuple[int, int]], Fraction]
"""Items, pairs of them, and what is left of ε."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivBasis:
    """The paper's constants, and what it leaves open.

    Attributes:
        budget_shares: α, parts of ε for the number λ of items, for choosing items and pairs, and for counts (section 4.5).
        safety: η, how many more itemsets than asked for the bases should cover (section 4.5).
        max_basis_items: items of a basis; so many frequent items or fewer are a basis by themselves (section 4.4).
        guess_below: up to this ε, for one basket that comes or goes, the number of pairs is the paper's guess. It is a
            little better than a choice that is paid for, which from here on is better, and right where nothing is
            hidden (``bench.itemsets``).
        max_elements: of items, and of pairs, that are drawn where a frequency is asked for: nobody knows how many it has.
    """

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

    Privacy: spends the pure ε of the budget, all of it.
    """
    whole = baskets.budget.pure_epsilons[0]
    for_numbers, for_elements, for_counts = split_exactly(whole, options.budget_shares)
    progress("choosing frequent items and pairs", 0.0)
    if top is not None and whole < options.guess_below * baskets.privacy_unit.score_sensitivity(1):
        items, pairs, left = _choose_by_guess(baskets, top, for_numbers, for_elements, options)
    else:
        items, pairs, left = _choose_by_rank(
            baskets, top or min_support or Fraction(1), for_numbers, for_elements, options
        )
    bases = (
        [items]
        if len(items) <= options.max_basis_items
        else build_basis_sets(items, pairs, max_items=options.max_basis_items)
    )
    progress(f"counting {len(bases)} basis {'sets' if len(bases) > 1 else 'set'}", 0.0)
    return baskets.measure_bases(
        [tuple(sorted(basis)) for basis in bases], split_exactly(for_counts + left, [1] * len(bases))
    )


def _choose_by_guess(
    baskets: PrivateBaskets, top: int, for_numbers: Fraction, for_elements: Fraction, options: PrivBasis
) -> ChosenElements:
    """GetLambda and GetFreqElements of the paper: λ items, and a guess λ₂ of the number of pairs (section 4.5)."""
    safe = math.ceil(options.safety * top)
    number = _choose_item_count(baskets, top, safe, for_numbers)
    others = safe - number
    wanted = min(round(others / math.sqrt(max(1.0, others / number))), math.comb(number, 2))
    if number <= options.max_basis_items or wanted < 1:
        return baskets.choose_frequent_items(number, for_elements), (), Fraction(0)
    for_items, for_pairs = split_exactly(for_elements, [number, wanted])
    items = baskets.choose_frequent_items(number, for_items)
    return items, baskets.choose_frequent_pairs(items, wanted, for_pairs), Fraction(0)


def _choose_by_rank(
    baskets: PrivateBaskets,
    asked: int | Fraction,
    for_numbers: Fraction,
    for_elements: Fraction,
    options: PrivBasis,
) -> ChosenElements:
    """The same with λ₂ chosen like λ; what was kept for it is left where no pairs are needed."""
    for_items_number, for_pairs_number = split_exactly(for_numbers, [1, 1])
    if isinstance(asked, int):
        near: int | Fraction = math.ceil(options.safety * asked)
        number = _choose_item_count(baskets, asked, int(near), for_items_number)
        most = int(near) - number
    else:
        near, most = asked, options.max_elements
        number = baskets.choose_item_rank(near, most, for_items_number)
    if number <= options.max_basis_items or most < 1:
        return baskets.choose_frequent_items(number, for_elements), (), for_pairs_number
    for_items, for_pairs = split_exactly(for_elements, [1, 1])
    items = baskets.choose_frequent_items(number, for_items)
    wanted = baskets.choose_pair_rank(items, near, most, for_pairs_number)
    return items, baskets.choose_frequent_pairs(items, wanted, for_pairs), Fraction(0)


def _choose_item_count(baskets: PrivateBaskets, top: int, safe: int, epsilon: Fraction) -> int:
    """λ: how many items reach the ⌈ηk⌉-th itemset; at most ⌈ηk⌉, and at least the ⌈log₂(k+1)⌉ that k itemsets hold."""
    return max(baskets.choose_item_rank(safe, safe, epsilon), min(top.bit_length(), len(baskets.items)))
