"""Exact counts of private baskets."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import check_structure
from dpsyn.engines.baskets import kernels
from dpsyn.engines.baskets.bounded_baskets import BoundedBaskets
from dpsyn.engines.engine import Counts, Opaque
from dpsyn.errors import InternalError
from dpsyn.schema import BasketSchema, Open, Schema
from dpsyn.sources import Source

ItemIndices = Sequence[int]
"""Items, each given by its position in the universe."""


class BasketEngine(Opaque):
    """Counts the baskets of a source exactly, reading it once.

    The baskets that count are all baskets, or with a unit at most ``unit.rows`` of each person, see ``Baskets``. Items
    outside the universe are ignored, and so is an item that a basket holds once more.

    Privacy: answers are exact and therefore private. Whoever calls has paid before, adds noise, and lets nothing else
    out. Adding or removing one basket (with a unit: one person of at most k baskets) changes the number of baskets,
    each support, each support of a rank and that of the n-th itemset by at most 1 (k), all of them in the same
    direction, and the bins of each basis by at most 1 (k) in L1. The structure is checked at once, before any row is
    read.
    """

    def __init__(self, source: Source, schema: BasketSchema, key: bytes) -> None:
        columns = Schema(attributes=tuple(Open(name=name) for name in schema.columns))
        check_structure(columns, source.schema, source.label)
        self._source, self._schema, self._key = source, schema, key

    def prepare(self) -> None:
        """Read the baskets now, so that a source that cannot be read fails before anything is paid."""
        _ = self._baskets

    def with_items(self, items: tuple[str, ...]) -> Self:
        """The same baskets with another universe; nothing is read again."""
        other = type(self)(self._source, msgspec.structs.replace(self._schema, items=items), self._key)
        other.__dict__["_baskets"] = self._baskets
        return other

    def count(self) -> int:
        """How many baskets count."""
        return len(self._baskets.ends) - 1

    def supports(self) -> Counts:
        """For every item of the universe, how many baskets hold it."""
        known = self._codes[self._codes >= 0]
        return np.bincount(known, minlength=self._size)

    def pair_supports(self, items: ItemIndices) -> Counts:
        """How many baskets hold both of two of these items, for all pairs in the order of ``itertools.combinations``.

        Memory is that of a bitset for each of the items and of the answer, whatever the size of the universe.
        """
        bitsets = self._bitsets(items)
        counts = [np.empty(len(items) - 1 - place, np.int64) for place in range(len(items))]
        for place, common in enumerate(counts):
            kernels.count_common_baskets(bitsets[place], bitsets[place + 1 :], common)
        return np.concatenate([np.empty(0, np.int64), *counts])

    def nth_support(self, number: int) -> int:
        """The support of the ``number``-th most frequent itemset of any length; 0 if fewer occur."""
        supports = self.supports()
        frequent = np.argsort(-supports, kind="stable")[:number]
        return find_nth_support(self._bitsets(frequent.tolist()), supports[frequent].tolist(), number)

    def count_bins(self, bases: Sequence[ItemIndices]) -> list[Counts]:
        """For every basis a table with an axis for each of its items: how many baskets hold just these of them.

        Index 1 on an axis means that the item is in the basket; all baskets are in the table, most of them often where
        all indices are 0. One pass over the items of all baskets.
        """
        sizes = [len(basis) for basis in bases]
        entries = sorted(
            (item, number, 1 << (len(basis) - 1 - place))
            for number, basis in enumerate(bases)
            for place, item in enumerate(basis)
        )
        members, numbers, bits = (np.array(part, np.int64) for part in zip(*entries, strict=True))
        starts = np.searchsorted(members, np.arange(self._size + 1))
        offsets = np.array([0, *accumulate(1 << size for size in sizes)], np.int64)
        totals = np.zeros(offsets[-1], np.int64)
        ends, items = self._items_in_universe
        kernels.count_bins(ends, items, starts, numbers, bits, offsets, totals)
        spans = pairwise(offsets.tolist())
        return [totals[first:stop].reshape((2,) * size) for (first, stop), size in zip(spans, sizes, strict=True)]

    def count_items(self, max_items: int) -> dict[str, int]:
        """How many baskets hold each item that occurs, of each basket at most ``max_items`` items being counted.

        Privacy: a basket adds at most 1 to the counts of at most ``max_items`` items, a person of k baskets at most k to
        those of k·``max_items``. Which items occur is as private as how often.
        """
        counts = np.bincount(self._baskets.limit_items(max_items, self._key), minlength=len(self._baskets.texts))
        return {text: count for text, count in zip(self._baskets.texts, counts.tolist(), strict=True) if count}

    @functools.cached_property
    def _baskets(self) -> BoundedBaskets:
        return BoundedBaskets.read(self._source, self._schema, self._key)

    @property
    def _size(self) -> int:
        if self._schema.items is None:
            raise InternalError("the universe of items has not been bought yet")
        return len(self._schema.items)

    @functools.cached_property
    def _codes(self) -> NDArray[np.int32]:
        """The place in the universe of every item of every basket; −1 outside of it."""
        place_of = {item: place for place, item in enumerate(self._schema.items or ())}
        places = np.array([place_of.get(text, -1) for text in self._baskets.texts], np.int32)
        codes: NDArray[np.int32] = places[self._baskets.items]
        return codes

    @functools.cached_property
    def _items_in_universe(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The baskets with the items of the universe alone."""
        known = self._codes >= 0
        before = np.append(0, np.cumsum(known))
        return before[self._baskets.ends], self._codes[known]

    def _bitsets(self, items: ItemIndices) -> kernels.Bitsets:
        """The baskets that hold each of some items."""
        place_of = np.full(self._size, -1, np.int32)
        place_of[list(items)] = np.arange(len(items))
        bitsets = np.zeros((len(items), -(-self.count() // 64)), np.uint64)
        kernels.fill_bitsets(*self._items_in_universe, place_of, bitsets)
        return bitsets


# ── The support of the n-th most frequent itemset, exactly, in bounded time and memory ──


QueuedItemset = tuple[int, int, tuple[int, ...]]
"""An itemset in the queue: less its support, its length, its items."""


def find_nth_support(bitsets: kernels.Bitsets, supports: list[int], number: int) -> int:
    """The ``number``-th largest support of all non-empty itemsets, whatever their length; 0 if there are not so many.

    ``bitsets`` and ``supports`` are those of the items, most frequent first; items beyond the first ``number`` may be
    left out, because no itemset that holds one is more frequent than so many items by themselves.

    Itemsets are taken out of a queue by support, each followed by its extensions with later items, which are never
    more frequent; so the n-th that is taken out is the answer. Of those waiting only as many are kept as are still to
    be taken out. With n itemsets taken out and at most n extensions each that is at most n² comparisons of bitsets,
    n²·baskets/64 words, whatever the baskets look like. Shorter itemsets go first among equals; then all subsets of an
    itemset come before it, so that it has at most log₂(n + 1) items.
    """
    waiting: list[QueuedItemset] = [(-count, 1, (item,)) for item, count in enumerate(supports[:number]) if count > 0]
    counts = np.empty(len(bitsets), np.int64)
    for taken in range(1, number + 1):
        if not waiting:
            return 0
        support, length, items = heapq.heappop(waiting)
        if taken == number:
            return -support
        later = bitsets[items[-1] + 1 :]
        kernels.count_common_baskets(np.bitwise_and.reduce(bitsets[list(items)]), later, counts[: len(later)])
        grown = enumerate(counts[: len(later)].tolist(), start=items[-1] + 1)
        waiting += [(-common, length + 1, (*items, item)) for item, common in grown if common > 0]
        waiting = heapq.nsmallest(number - taken, waiting)  # a sorted list is a heap
    return 0
