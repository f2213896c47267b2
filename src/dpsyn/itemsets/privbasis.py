"""Recipe ``privbasis``: frequent itemsets from a few noisy bases (Li, Qardaji, Su and Cao: PrivBasis, VLDB 2012)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpsyn.accounting import split_exactly
from dpsyn.itemsets.noisy_counts import (
    LENGTH_STARTS,
    BasketSummary,
    NoisyCounts,
    measure_noisy_counts,
    predict_missed_by_bases,
    predict_missed_by_counts,
)
from dpsyn.marginals import Marginal
from dpsyn.private import PrivateBaskets
from dpsyn.progress import Progress, ignore_progress
from dpsyn.selection import MAX_BASIS_ITEMS, build_basis_sets

ChosenElements = tuple[tuple[int, ...], Sequence[tuple[int, int]], Fraction]
"""Items, pairs of them, and the part of ε that is left."""

MinedBaskets = Sequence[Marginal] | NoisyCounts
"""What was released about baskets: bases, or counts of items and pairs."""


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
        fallback_ratio: items and pairs are counted by themselves if they are predicted to miss less than this part of
            what bases miss; counts of bases are more accurate, so a tie is theirs.
    """

    name: ClassVar[str] = "privbasis"

    budget_shares: tuple[int, int, int] = (1, 4, 5)
    safety: Fraction = Fraction(11, 10)
    max_basis_items: int = MAX_BASIS_ITEMS
    guess_below: Fraction = Fraction(2)
    max_elements: int = 500
    fallback_ratio: float = 0.75


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
    plan = _Plan.of(baskets, top, min_support, options)
    return _measure_bases(baskets, plan, _choose_item_count(baskets, plan, plan.item_number), Fraction(0), progress)


def mine_itemsets(
    baskets: PrivateBaskets,
    *,
    top: int | None = None,
    min_support: Fraction | None = None,
    progress: Progress = ignore_progress,
    options: PrivBasis = PrivBasis(),
) -> MinedBaskets:
    """Noisy bases as ``privbasis``, or noisy counts of items and pairs where fewer itemsets are predicted to be missed.

    Privacy: spends the whole pure ε of the budget. What decides was released before with a part of it: the number of
    items, the support of the last itemset, and the lengths of baskets. For a minimum support there are only bases, and
    for a universe of more items than a release may count.
    """
    plan = _Plan.of(baskets, top, min_support, options)
    if top is None or len(baskets.items) > baskets.limits.max_marginal_cells:
        return _measure_bases(baskets, plan, _choose_item_count(baskets, plan, plan.item_number), Fraction(0), progress)
    number, level, lengths = split_exactly(plan.item_number, [2, 1, 1])
    item_count = _choose_item_count(baskets, plan, number)
    if item_count <= options.max_basis_items:
        return _measure_bases(baskets, plan, item_count, level + lengths, progress)
    support = baskets.measure_support(plan.safe_top, level)
    summary = BasketSummary(plan.safe_top, item_count, support, *baskets.measure_lengths(None, LENGTH_STARTS, lengths))
    left = plan.pair_number + plan.elements + plan.counts
    unit = baskets.privacy_unit
    selections = item_count + (plan.guess_pair_count(item_count) if plan.guess else item_count)
    by_bases = predict_missed_by_bases(
        summary,
        len(baskets.items),
        float(unit.l1_sensitivity) * selections / float(plan.elements),
        float(unit.l1_sensitivity) / float(plan.counts),
    )
    by_noise = predict_missed_by_counts(summary, len(baskets.items), float(unit.l1_sensitivity) / float(left))
    if by_noise < options.fallback_ratio * by_bases:
        progress("counting items and pairs", 0.0)
        return measure_noisy_counts(baskets, summary, left)
    return _measure_bases(baskets, plan, item_count, Fraction(0), progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What is wanted, and the parts of ε for the numbers of items and pairs, for selecting them, and for counts."""

    options: PrivBasis
    top: int | None
    target: int | Fraction
    guess: bool
    item_number: Fraction
    pair_number: Fraction
    elements: Fraction
    counts: Fraction

    @classmethod
    def of(cls, baskets: PrivateBaskets, top: int | None, min_support: Fraction | None, options: PrivBasis) -> _Plan:
        """From ``guess_below`` on, a half of the part for numbers is for that of pairs."""
        epsilon = baskets.budget.pure_epsilons[0]
        number, elements, counts = split_exactly(epsilon, options.budget_shares)
        guess = top is not None and epsilon < options.guess_below * baskets.privacy_unit.score_sensitivity(1)
        item_number, pair_number = (number, Fraction(0)) if guess else split_exactly(number, [1, 1])
        target = min_support or Fraction(1) if top is None else math.ceil(options.safety * top)
        return cls(
            options=options,
            top=top,
            target=target,
            guess=guess,
            item_number=item_number,
            pair_number=pair_number,
            elements=elements,
            counts=counts,
        )

    @property
    def safe_top(self) -> int:
        """⌈ηk⌉, or the maximum number of items and pairs if a minimum support is requested."""
        return self.target if isinstance(self.target, int) else self.options.max_elements

    def guess_pair_count(self, item_count: int) -> int:
        """The paper's guess λ₂ of the number of pairs (section 4.5)."""
        others = self.safe_top - item_count
        return min(round(others / math.sqrt(max(1.0, others / item_count))), math.comb(item_count, 2))


def _choose_item_count(baskets: PrivateBaskets, plan: _Plan, epsilon: Fraction) -> int:
    """λ: how many items are as frequent as the ⌈ηk⌉-th itemset, or as the minimum support.

    It is at most ⌈ηk⌉, and at least ⌈log₂(k+1)⌉, because k itemsets hold at least that many items.
    """
    chosen = baskets.choose_item_rank(plan.target, plan.safe_top, epsilon)
    return chosen if plan.top is None else max(chosen, min(plan.top.bit_length(), len(baskets.items)))


def _measure_bases(
    baskets: PrivateBaskets, plan: _Plan, item_count: int, left: Fraction, progress: Progress
) -> list[Marginal]:
    """Select items and pairs, build the bases, and count them; ``left`` is a part of ε that was not needed before."""
    progress("selecting frequent items and pairs", 0.0)
    select = _select_by_guess if plan.guess else _select_by_rank
    items, pairs, more = select(baskets, plan, item_count)
    bases = (
        [items]
        if len(items) <= plan.options.max_basis_items
        else build_basis_sets(items, pairs, max_items=plan.options.max_basis_items)
    )
    progress(f"counting {len(bases)} basis {'sets' if len(bases) > 1 else 'set'}", 0.0)
    return baskets.measure_bases(
        [tuple(sorted(basis)) for basis in bases], split_exactly(plan.counts + left + more, [1] * len(bases))
    )


def _select_by_guess(baskets: PrivateBaskets, plan: _Plan, item_count: int) -> ChosenElements:
    """GetFreqElements of the paper: λ items, and a guess λ₂ of the number of pairs."""
    pair_count = plan.guess_pair_count(item_count)
    if item_count <= plan.options.max_basis_items or pair_count < 1:
        return baskets.choose_frequent_items(item_count, plan.elements), (), Fraction(0)
    item_epsilon, pair_epsilon = split_exactly(plan.elements, [item_count, pair_count])
    items = baskets.choose_frequent_items(item_count, item_epsilon)
    return items, baskets.choose_frequent_pairs(items, pair_count, pair_epsilon), Fraction(0)


def _select_by_rank(baskets: PrivateBaskets, plan: _Plan, item_count: int) -> ChosenElements:
    """Select λ items and λ₂ pairs, whose number is selected privately, too.

    The part of ε for λ₂ is left if no pairs are needed.
    """
    max_pairs = plan.safe_top - (0 if plan.top is None else item_count)
    if item_count <= plan.options.max_basis_items or max_pairs < 1:
        return baskets.choose_frequent_items(item_count, plan.elements), (), plan.pair_number
    item_epsilon, pair_epsilon = split_exactly(plan.elements, [1, 1])
    items = baskets.choose_frequent_items(item_count, item_epsilon)
    pair_count = baskets.choose_pair_rank(items, plan.target, max_pairs, plan.pair_number)
    return items, baskets.choose_frequent_pairs(items, pair_count, pair_epsilon), Fraction(0)
