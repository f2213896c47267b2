"""Counts of itemsets, computed from released bases as sums over bins (PrivBasis, section 4.2)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.marginals.marginal import Marginal

ItemsetEstimate = tuple[tuple[str, ...], float, float]
"""An itemset, its count, and the standard deviation of the noise in it."""


class ItemsetCounts:
    """The counts of all itemsets that lie within some basis.

    A basis is a marginal with an axis for each of its items; index 1 means that the item is in the basket. The count
    of an itemset is the sum over all bins that have its items. If several bases hold it, it is the mean of their sums,
    weighted by inverse variance. All of this is linear, so the standard deviation of its noise is known. ``items`` are
    those of the bases, in the order in which itemsets list them.
    """

    def __init__(self, bases: Sequence[Marginal], items: Sequence[str]) -> None:
        self._items = tuple(items)
        self._bits = {item: 1 << index for index, item in enumerate(self._items)}
        self._unit = min(
            (basis.std for basis in bases), default=1.0
        )  # so bases of equal noise have weights without rounding
        self._sums: dict[int, float] = {}
        self._precisions: dict[int, float] = {}
        for basis in bases:
            self._add(basis)

    def _add(self, basis: Marginal) -> None:
        masks, lengths = [0], [0]
        for item in reversed(basis.clique):
            masks += [mask | self._bits[item] for mask in masks]
            lengths += [length + 1 for length in lengths]
        counts = superset_sums(basis.counts).ravel().tolist()
        bin_precision = (self._unit / basis.std) ** 2 * 2.0 ** -len(basis.clique)
        for mask, length, count in zip(masks, lengths, counts, strict=True):
            precision = bin_precision * 2.0**length
            self._sums[mask] = self._sums.get(mask, 0.0) + precision * count
            self._precisions[mask] = self._precisions.get(mask, 0.0) + precision

    def __contains__(self, items: Collection[str]) -> bool:
        return self._mask(items) in self._sums

    def __len__(self) -> int:
        """The number of itemsets, without the empty one."""
        return max(0, len(self._sums) - 1)

    def count(self, items: Collection[str]) -> float:
        """The count of an itemset that lies within a basis; for no items, the number of baskets."""
        mask = self._mask(items)
        return self._sums[mask] / self._precisions[mask]

    def std(self, items: Collection[str]) -> float:
        """The standard deviation of the noise in that count."""
        return self._unit / math.sqrt(self._precisions[self._mask(items)])

    def covariance(self, subset: Collection[str], items: Collection[str]) -> float:
        """The covariance of the noise in the counts of an itemset and of a subset of it.

        In every basis B that holds all items, the bins of ``items`` are among those of ``subset``. So the covariance
        of the two sums is the variance of the smaller one. With the precision weights 2^(|X|−|B|) it becomes
        2^(|subset|−|items|) times the variance of ``subset``, whatever the bases are.
        """
        return float(2.0 ** (len(subset) - len(items)) * self.std(subset) ** 2)

    def rank_itemsets(self) -> list[ItemsetEstimate]:
        """All itemsets except the empty one, by falling count; of equal counts the shorter first."""
        counts = {mask: total / self._precisions[mask] for mask, total in self._sums.items() if mask}
        order = sorted(counts, key=lambda mask: (-counts[mask], mask.bit_count(), mask))
        return [
            (self._items_in_mask(mask), counts[mask], self._unit / math.sqrt(self._precisions[mask])) for mask in order
        ]

    def _mask(self, items: Collection[str]) -> int:
        bits = [self._bits.get(item, -1) for item in items]
        return -1 if -1 in bits else sum(set(bits))

    def _items_in_mask(self, mask: int) -> tuple[str, ...]:
        return tuple(item for item in self._items if self._bits[item] & mask)


class SingleCounts:
    """The counts of items and pairs that were counted by themselves, each with noise of its own."""

    def __init__(self, estimates: Sequence[ItemsetEstimate], baskets: float) -> None:
        self._estimates = tuple(estimates)
        self._counts = {frozenset(items): (count, std) for items, count, std in estimates}
        self._counts[frozenset()] = (baskets, 0.0)

    def __contains__(self, items: Collection[str]) -> bool:
        return frozenset(items) in self._counts

    def count(self, items: Collection[str]) -> float:
        """The count of an itemset; for no items, the number of baskets."""
        return self._counts[frozenset(items)][0]

    def std(self, items: Collection[str]) -> float:
        """The standard deviation of the noise in that count."""
        return self._counts[frozenset(items)][1]

    def covariance(self, subset: Collection[str], items: Collection[str]) -> float:
        """That of the noise in the counts of two different itemsets: none."""
        return 0.0

    def rank_itemsets(self) -> list[ItemsetEstimate]:
        """All itemsets except the empty one, by falling count; of equal counts the shorter first."""
        return sorted(self._estimates, key=lambda estimate: (-estimate[1], len(estimate[0]), estimate[0]))


def superset_sums(bins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over supersets: on every axis, index 0 becomes the sum of both, with and without the item."""
    sums = bins.astype(np.float64)
    for axis in range(sums.ndim):
        view = np.moveaxis(sums, axis, 0)
        view[0] += view[1]
    return sums
