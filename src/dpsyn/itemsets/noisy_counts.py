"""Noisy counts of items and pairs of truncated baskets: what PrivBasis falls back to where many items are frequent.

PrivBasis selects each item and each pair by itself and divides its noise by the number of bases, so a list of hundreds
of itemsets leaves little of ε for each. Noise on the counts of *all* items costs only as much as a basket has items. If
at most L items of a basket count, chosen by a keyed hash, that is L; counts are then divided by the share of items
that is kept, as if it were the same for all items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import split_exactly
from dpsyn.itemsets.counts import ItemsetEstimate
from dpsyn.private import PrivateBaskets

LIMITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""The numbers of items of a basket that may count; the predicted error decides."""

LENGTH_STARTS = (0, 1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49)
"""The starts of the ranges of lengths that are distinguished; few ranges have counts far above their noise."""

_LENGTHS = np.array([0, 1, 2, 3, 4, 5.5, 7.5, 10.5, 14.5, 20.5, 28.5, 40.5, 64])
"""The middle of each range; the last one is open."""

UNEVENNESS = 1.0
"""How much the kept share of one item differs from that of all, relative to the share that is lost. It was set so that
predictions agree with which method misses less on *retail*, *BMS1* and *mushroom* (``bench.itemsets``)."""

LONGER_SHARE = 0.25
"""Of the frequent itemsets that are not single items, how many have three or more items; about so many on retail."""

CANDIDATE_SHARE = 0.7
"""Items whose estimated count is at least this part of the level have their pairs counted."""


@dataclass(frozen=True, slots=True)
class BasketSummary:
    """Released numbers that decide between bases and noisy counts, and the number of itemsets.

    Attributes:
        itemsets: how many itemsets are wanted, with some to spare.
        items: λ, the number of items as frequent as the last of them.
        level: the noisy support of the last of them.
        lengths: noisy numbers of baskets with 0, 1, … items.
        length_std: the standard deviation of their noise.
    """

    itemsets: int
    items: int
    level: float
    lengths: NDArray[np.float64]
    length_std: float

    @property
    def supports(self) -> NDArray[np.float64]:
        """Supports of the wanted itemsets, as if they fell like 1/rank (Zipf's law)."""
        falling = max(self.level, 1.0) * self.itemsets / np.arange(1, self.itemsets + 1)
        return np.minimum(falling, max(float(self.lengths.sum()), 1.0))


def predict_missed_by_bases(summary: BasketSummary, universe: int, selection_scale: float, unit_scale: float) -> float:
    """The predicted share of itemsets that PrivBasis does not select, or that its noise leaves below the level.

    Each is taken for an item. Of ``universe`` items that nobody holds, the λ-th largest of the Gumbel variables is
    about ln(universe/λ), so an item of support s is selected with probability 1 − exp(−exp(s/t − ln(universe/λ))), t
    being ``selection_scale``. There are at least λ/3 bases, of three items each, whose bins have Laplace noise of λ/3
    times ``unit_scale``, and an item is a sum of four bins.
    """
    ahead = summary.supports / selection_scale - math.log(max(universe / summary.items, 1.0))
    unselected = float(np.exp(-np.exp(np.minimum(ahead, 30.0))).mean())
    std = math.sqrt(2 * 4) * unit_scale * summary.items / 3
    return 1 - (1 - unselected) * (1 - predict_missed_by_noise(summary, summary.itemsets, std, 1.0))


def predict_missed_by_noise(summary: BasketSummary, universe: int, std: float, kept: float) -> float:
    """The predicted share of itemsets that noise leaves below the level, or below what rare items reach by noise.

    The noise, and the uneven truncation of baskets, are taken as Laplace noise on the estimated counts.
    """
    scale = std / math.sqrt(2) / max(kept, 1e-9)
    uneven = UNEVENNESS * (1 - kept) / math.sqrt(2) * summary.supports
    level = max(summary.level, scale * math.log(max(universe / (2 * summary.itemsets), 1.0)))
    ahead = (summary.supports - level) / np.hypot(scale, uneven)
    return float(np.where(ahead > 0, np.exp(-np.abs(ahead)) / 2, 1 - np.exp(-np.abs(ahead)) / 2).mean())


def predict_missed_by_counts(summary: BasketSummary, universe: int, unit_scale: float) -> float:
    """The predicted share of itemsets that noisy counts of items and pairs miss, with those of three and more items.

    ``unit_scale`` is the scale of the noise of one count, if it had what is left of ε for itself.
    """
    others = (summary.itemsets - summary.items) / summary.itemsets
    single = choose_truncation(
        summary, remove_noise(summary.lengths, summary.length_std), universe, unit_scale * 20 / 9, 1
    ).missed
    return min(1.0, single + LONGER_SHARE * others)


def remove_noise(lengths: NDArray[np.float64], std: float) -> NDArray[np.float64]:
    """Lengths without those that noise alone may have reached, one release in a hundred: long baskets weigh much."""
    return np.where(lengths >= _noise_level(std, 100 * len(lengths)), lengths, 0.0)


def kept_share(lengths: NDArray[np.float64], limit: int, ways: int) -> float:
    """The share of frequent items (``ways`` = 1) or pairs (2) that is kept if ``limit`` items of each basket count.

    A basket of n items keeps min(n, limit)/n of its items. It weighs as much as it has items, for pairs one less: most
    pairs of long baskets are of rare items, so weights by their number would be those of rare pairs.
    """
    sizes = _LENGTHS[ways:]
    weights, left = np.maximum(lengths[ways:], 0.0) * (sizes - ways + 1), np.minimum(sizes, limit)
    kept = left / sizes if ways == 1 else left * (left - 1) / (sizes * (sizes - 1))
    return float(weights @ kept / weights.sum()) if weights.sum() > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Truncation:
    """How many items of a basket count, the share that is kept, and the predicted share of itemsets that is missed."""

    limit: int
    kept: float
    missed: float


def choose_truncation(
    summary: BasketSummary, lengths: NDArray[np.float64], candidates: int, unit_scale: float, ways: int
) -> Truncation:
    """The number of items of a basket with the fewest missed itemsets; ``unit_scale`` is the noise of one count.

    Privacy: post-processing of released numbers and public facts. Cost: none.
    """
    choices = []
    for limit in LIMITS[ways - 1 :]:
        kept = kept_share(lengths, limit, ways)
        std = math.sqrt(2) * unit_scale * math.comb(limit, ways)
        choices.append(Truncation(limit, kept, predict_missed_by_noise(summary, candidates, std, kept)))
    return min(choices, key=lambda choice: choice.missed)


@dataclass(frozen=True, slots=True)
class NoisyCounts:
    """Estimated counts of items and pairs, each with the std of its noise, and the noisy number of baskets."""

    estimates: tuple[ItemsetEstimate, ...]
    baskets: float


def measure_noisy_counts(baskets: PrivateBaskets, summary: BasketSummary, epsilon: Fraction) -> NoisyCounts:
    """Estimated counts of frequent items and of their pairs, with the standard deviation of their noise.

    Of more items than a release may count all pairs of, the pairs of the most frequent ones are counted.

    Privacy: spends pure ``epsilon``: a half on items, less a little for the lengths of baskets, a half on pairs.
    """
    item_epsilon, length_epsilon, pair_epsilon = split_exactly(epsilon, [9, 1, 10])
    sensitivity = float(baskets.privacy_unit.l1_sensitivity)
    universe = baskets.items
    lengths = remove_noise(summary.lengths, summary.length_std)
    items = choose_truncation(summary, lengths, len(universe), sensitivity / float(item_epsilon), 1)
    counts, std = baskets.measure_items(items.limit, item_epsilon)
    counts, std = counts / items.kept, std / items.kept
    order = np.argsort(-counts, kind="stable")[: summary.itemsets]
    frequent = counts[order] >= max(CANDIDATE_SHARE * summary.level, _noise_level(std, len(universe)))
    listed = order[: max(2, int(frequent.sum()))].tolist()
    estimates: list[ItemsetEstimate] = [((universe[item],), float(counts[item]), std) for item in sorted(listed)]
    chosen = sorted(listed[: _max_paired_items(baskets)])
    lengths = remove_noise(*baskets.measure_lengths(chosen, LENGTH_STARTS, length_epsilon))
    pairs = choose_truncation(summary, lengths, math.comb(len(chosen), 2), sensitivity / float(pair_epsilon), 2)
    pair_counts, pair_std = baskets.measure_pairs(chosen, pairs.limit, pair_epsilon)
    kept = max(pairs.kept, 1e-9)
    one, other = np.triu_indices(len(chosen), 1)
    bounds = np.minimum(counts[chosen][one], counts[chosen][other])  # a pair is at most as frequent as its items
    pair_counts, pair_std = np.minimum(pair_counts / kept, bounds), pair_std / kept
    above = np.flatnonzero(pair_counts >= _noise_level(pair_std, len(pair_counts)))
    named = list(combinations([universe[item] for item in chosen], 2))
    estimates += [(named[pair], float(pair_counts[pair]), pair_std) for pair in above.tolist()]
    return NoisyCounts(tuple(estimates), max(float(summary.lengths.sum()), 0.0))


def _max_paired_items(baskets: PrivateBaskets) -> int:
    """The largest number of items all of whose pairs a release may count, beside their lengths."""
    pairs = min(baskets.limits.max_marginal_cells, baskets.noisy_values_left - len(LENGTH_STARTS))
    return (1 + math.isqrt(1 + 8 * pairs)) // 2  # the largest m with m(m − 1)/2 ≤ pairs


def _noise_level(std: float, candidates: int) -> float:
    """About the largest of so many counts that are noise alone."""
    return std / math.sqrt(2) * math.log(max(candidates, 2) / 2)
