"""Recipe ``privbasis``: frequent itemsets from a few noisy bases (Li, Qardaji, Su and Cao: PrivBasis, VLDB 2012)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsyn.accounting import split
from dpsyn.marginals import Marginal
from dpsyn.private import PrivateBaskets
from dpsyn.progress import Progress, silent
from dpsyn.selection import LONGEST, basis_sets

Chosen = tuple[tuple[int, ...], Sequence[tuple[int, int]], Fraction]
"""Items, pairs of them, and what is left of ε."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivBasisOptions:
    """The paper's constants, and what it leaves open.

    Attributes:
        weights: α, parts of ε for the number λ of items, for choosing items and pairs, and for counts (section 4.5).
        safety: η, how many more itemsets than asked for the bases should cover (section 4.5).
        longest: items of a basis; so many frequent items or fewer are a basis by themselves (section 4.4).
        guess_below: up to this ε, for one basket that comes or goes, the number of pairs is the paper's guess. It is a
            little better than a choice that is paid for, which from here on is better, and right where nothing is
            hidden (``bench.itemsets``).
        most: of items, and of pairs, that are drawn where a frequency is asked for: nobody knows how many it has.
    """

    weights: tuple[int, int, int] = (1, 4, 5)
    safety: Fraction = Fraction(11, 10)
    longest: int = LONGEST
    guess_below: Fraction = Fraction(2)
    most: int = 500


def privbasis(
    baskets: PrivateBaskets,
    *,
    top: int | None = None,
    min_support: Fraction | None = None,
    progress: Progress = silent,
    options: PrivBasisOptions = PrivBasisOptions(),  # noqa: B008 -- frozen
) -> list[Marginal]:
    """Noisy bases in which the ``top`` itemsets should lie, or else all in at least ``min_support`` of the baskets.

    Privacy: spends the pure ε of the budget, all of it.
    """
    whole = baskets.budget.pure[0]
    for_numbers, for_elements, for_counts = split(whole, options.weights)
    progress("choosing frequent items and pairs", 0.0)
    if top is not None and whole < options.guess_below * baskets.protection.score(1):
        items, pairs, left = _guessed(baskets, top, for_numbers, for_elements, options)
    else:
        items, pairs, left = _ranked(baskets, top or min_support or Fraction(1), for_numbers, for_elements, options)
    bases = [items] if len(items) <= options.longest else basis_sets(items, pairs, longest=options.longest)
    progress(f"counting {len(bases)} basis {'sets' if len(bases) > 1 else 'set'}", 0.0)
    return baskets.measure([tuple(sorted(basis)) for basis in bases], split(for_counts + left, [1] * len(bases)))


def _guessed(
    baskets: PrivateBaskets, top: int, for_numbers: Fraction, for_elements: Fraction, options: PrivBasisOptions
) -> Chosen:
    """GetLambda and GetFreqElements of the paper: λ items, and a guess λ₂ of the number of pairs (section 4.5)."""
    safe = math.ceil(options.safety * top)
    number = _number(baskets, top, safe, for_numbers)
    others = safe - number
    wanted = min(round(others / math.sqrt(max(1.0, others / number))), math.comb(number, 2))
    if number <= options.longest or wanted < 1:
        return baskets.frequent_items(number, for_elements), (), Fraction(0)
    for_items, for_pairs = split(for_elements, [number, wanted])
    items = baskets.frequent_items(number, for_items)
    return items, baskets.frequent_pairs(items, wanted, for_pairs), Fraction(0)


def _ranked(
    baskets: PrivateBaskets,
    asked: int | Fraction,
    for_numbers: Fraction,
    for_elements: Fraction,
    options: PrivBasisOptions,
) -> Chosen:
    """The same with λ₂ chosen like λ; what was kept for it is left where no pairs are needed."""
    for_items_number, for_pairs_number = split(for_numbers, [1, 1])
    if isinstance(asked, int):
        near: int | Fraction = math.ceil(options.safety * asked)
        number = _number(baskets, asked, int(near), for_items_number)
        most = int(near) - number
    else:
        near, most = asked, options.most
        number = baskets.item_rank(near, most, for_items_number)
    if number <= options.longest or most < 1:
        return baskets.frequent_items(number, for_elements), (), for_pairs_number
    for_items, for_pairs = split(for_elements, [1, 1])
    items = baskets.frequent_items(number, for_items)
    wanted = baskets.pair_rank(items, near, most, for_pairs_number)
    return items, baskets.frequent_pairs(items, wanted, for_pairs), Fraction(0)


def _number(baskets: PrivateBaskets, top: int, safe: int, epsilon: Fraction) -> int:
    """λ: how many items reach the ⌈ηk⌉-th itemset; at most ⌈ηk⌉, and at least the ⌈log₂(k+1)⌉ that k itemsets hold."""
    return max(baskets.item_rank(safe, safe, epsilon), min(top.bit_length(), len(baskets.items)))
