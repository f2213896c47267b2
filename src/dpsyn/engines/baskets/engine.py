"""The engine that counts private baskets exactly: supports of items, pairs and bases, and the n-th support."""

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
"""Items, each given by its index in the universe."""


class BasketEngine(Opaque):
    """Counts the baskets of a source exactly, reading it once.

    All baskets count, or with a privacy unit at most ``max_rows`` baskets of each unit (see ``bounded_baskets``). Items
    outside the universe are ignored, and so are repeated items of a basket.

    Privacy: answers are exact and therefore private. The caller charges the budget first, adds noise, and releases
    nothing else. Adding or removing one basket (with a privacy unit: one unit of at most k baskets) changes the number
    of baskets, each support, each support of a rank and that of the n-th itemset by at most 1 (k), all of them in the
    same direction, and the bins of each basis by at most 1 (k) in L1. The structure is checked in the constructor,
    before any row is read.
    """

    def __init__(self, source: Source, schema: BasketSchema, key: bytes) -> None:
        columns = Schema(attributes=tuple(Open(name=name) for name in schema.columns))
        check_structure(columns, source.schema, source.label)
        self._source, self._schema, self._key = source, schema, key

    def prepare(self) -> None:
        """Read the baskets now, so that an unreadable source fails before anything is charged."""
        _ = self._baskets

    def with_items(self, items: tuple[str, ...]) -> Self:
        """The same baskets with another universe of items; nothing is read again."""
        other = type(self)(self._source, msgspec.structs.replace(self._schema, items=items), self._key)
        other.__dict__["_baskets"] = self._baskets
        return other

    def count(self) -> int:
        """The number of baskets that count."""
        return len(self._baskets.ends) - 1

    def supports(self) -> Counts:
        """The support of every item of the universe: the number of baskets that hold it."""
        known = self._codes[self._codes >= 0]
        return np.bincount(known, minlength=self._size)

    def pair_supports(self, items: ItemIndices) -> Counts:
        """The support of every pair of the given items, in the order of ``itertools.combinations``.

        Memory is that of the answer and of a bitset for each of the items, whatever the size of the universe.
        """
        bitsets = self._bitsets(items)
        counts = [np.empty(len(items) - 1 - index, np.int64) for index in range(len(items))]
        for index, common in enumerate(counts):
            kernels.count_common_baskets(bitsets[index], bitsets[index + 1 :], common)
        return np.concatenate([np.empty(0, np.int64), *counts])

    def nth_support(self, n: int) -> int:
        """The support of the ``n``-th most frequent itemset of any length; 0 if fewer itemsets occur."""
        supports = self.supports()
        frequent = np.argsort(-supports, kind="stable")[:n]
        return find_nth_support(self._bitsets(frequent.tolist()), supports[frequent].tolist(), n)

    def count_bins(self, bases: Sequence[ItemIndices]) -> list[Counts]:
        """For every basis, the number of baskets with each subset of its items: a table with an axis for each item.

        Index 1 on an axis means that the basket holds the item. Every basket is in the table; often most of them are
        where all indices are 0. All bases are counted in one pass over the items of all baskets.
        """
        sizes = [len(basis) for basis in bases]
        memberships = sorted(
            (item, index, 1 << (len(basis) - 1 - position))
            for index, basis in enumerate(bases)
            for position, item in enumerate(basis)
        )
        members, basis_indices, bits = (np.array(column, np.int64) for column in zip(*memberships, strict=True))
        starts = np.searchsorted(members, np.arange(self._size + 1))
        offsets = np.array([0, *accumulate(1 << size for size in sizes)], np.int64)
        totals = np.zeros(offsets[-1], np.int64)
        ends, items = self._items_in_universe
        kernels.count_bins(ends, items, starts, basis_indices, bits, offsets, totals)
        spans = pairwise(offsets.tolist())
        return [totals[first:stop].reshape((2,) * size) for (first, stop), size in zip(spans, sizes, strict=True)]

    def count_items(self, max_items: int) -> dict[str, int]:
        """The support of each item that occurs, where at most ``max_items`` items of each basket count.

        Privacy: a basket adds at most 1 to the counts of at most ``max_items`` items; a unit of k baskets adds at most
        k to those of at most k·``max_items`` items. Which items occur is as private as how often.
        """
        counts = np.bincount(self._baskets.limit_items(max_items, self._key), minlength=len(self._baskets.texts))
        return {text: count for text, count in zip(self._baskets.texts, counts.tolist(), strict=True) if count}

    def count_lengths(self, items: ItemIndices | None, starts: Sequence[int]) -> Counts:
        """How many baskets hold how many of the given items, in ranges with these starts; of all if none are given."""
        wanted = np.ones(self._size, np.bool_) if items is None else np.isin(np.arange(self._size), items)
        ends, codes = self._items_in_universe
        held = np.append(0, np.cumsum(wanted[codes]))[ends]
        return np.bincount(np.searchsorted(starts, np.diff(held), "right") - 1, minlength=len(starts))

    def limited_supports(self, max_items: int) -> Counts:
        """The support of every item of the universe, where at most ``max_items`` items of each basket count."""
        _, codes = self._limit_baskets(range(self._size), max_items)
        return np.bincount(codes, minlength=self._size)

    def limited_pair_supports(self, items: ItemIndices, max_items: int) -> Counts:
        """The support of every pair of the items, where at most ``max_items`` of them count in each basket.

        The order is that of ``itertools.combinations``. A basket adds at most 1 to the counts of at most
        ``max_items``·(``max_items`` − 1)/2 pairs.
        """
        baskets, codes = self._limit_baskets(items, max_items)
        row_of = np.full(self._size, -1, np.int64)
        row_of[list(items)] = np.arange(len(items))
        rows, counts = row_of[codes], np.zeros(len(items) ** 2, np.int64)
        for shift in range(1, max_items):  # the pairs of items that are this far apart in the same basket
            same = baskets[shift:] == baskets[:-shift]
            if not same.any():
                break
            one, other = rows[shift:][same], rows[:-shift][same]
            counts += np.bincount(np.minimum(one, other) * len(items) + np.maximum(one, other), minlength=len(counts))
        return counts.reshape(len(items), len(items))[np.triu_indices(len(items), 1)]

    def _limit_baskets(self, items: ItemIndices, max_items: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The baskets, ascending, and the codes of at most ``max_items`` of the given items of each."""
        chosen = np.zeros(self._size + 1, np.bool_)  # the last entry is for items outside of the universe, code −1
        chosen[list(items)] = True
        wanted = np.zeros(len(self._baskets.texts), np.bool_)
        wanted[self._baskets.items] = chosen[self._codes]
        baskets, positions = self._baskets.limit_positions(max_items, self._key, wanted)
        return baskets, self._codes[positions]

    @functools.cached_property
    def _baskets(self) -> BoundedBaskets:
        return BoundedBaskets.read(self._source, self._schema, self._key)

    @property
    def _size(self) -> int:
        if self._schema.items is None:
            raise InternalError("the universe of items has not been discovered yet")
        return len(self._schema.items)

    @functools.cached_property
    def _codes(self) -> NDArray[np.int32]:
        """The index in the universe of every item of every basket; −1 for items outside of it."""
        index_of = {item: index for index, item in enumerate(self._schema.items or ())}
        indices = np.array([index_of.get(text, -1) for text in self._baskets.texts], np.int32)
        codes: NDArray[np.int32] = indices[self._baskets.items]
        return codes

    @functools.cached_property
    def _items_in_universe(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The ends and the items of all baskets, with the items of the universe only."""
        known = self._codes >= 0
        known_before = np.append(0, np.cumsum(known))
        return known_before[self._baskets.ends], self._codes[known]

    def _bitsets(self, items: ItemIndices) -> kernels.Bitsets:
        """For each of the items, the set of baskets that hold it."""
        row_of = np.full(self._size, -1, np.int32)
        row_of[list(items)] = np.arange(len(items))
        bitsets = np.zeros((len(items), -(-self.count() // 64)), np.uint64)
        kernels.fill_bitsets(*self._items_in_universe, row_of, bitsets)
        return bitsets


# ── the support of the n-th most frequent itemset, exact, in bounded time and memory ─────────────────────────


QueuedItemset = tuple[int, int, tuple[int, ...]]
"""An itemset in the queue: its negative support, its length, its items."""


def find_nth_support(bitsets: kernels.Bitsets, supports: list[int], n: int) -> int:
    """The ``n``-th largest support of all non-empty itemsets of any length; 0 if there are fewer itemsets.

    ``bitsets`` and ``supports`` are those of the items, most frequent first. Items beyond the first n may be left out:
    an itemset that holds one of them is at most as frequent as each of the first n items.

    Itemsets leave a queue in the order of their supports. Each is then replaced in the queue by its extensions with
    later items, which are never more frequent; so the n-th itemset that leaves the queue is the answer. The queue keeps
    only as many itemsets as have still to leave it. With n itemsets and at most n extensions of each, there are at most
    n² comparisons of bitsets, which are n²·baskets/64 words, whatever the baskets hold. Among itemsets of equal support
    the shorter ones leave first. Then all subsets of an itemset leave before it, so it has at most log₂(n + 1) items.
    """
    queue: list[QueuedItemset] = [(-count, 1, (item,)) for item, count in enumerate(supports[:n]) if count > 0]
    counts = np.empty(len(bitsets), np.int64)
    for rank in range(1, n + 1):
        if not queue:
            return 0
        negative_support, length, items = heapq.heappop(queue)
        if rank == n:
            return -negative_support
        later = bitsets[items[-1] + 1 :]
        kernels.count_common_baskets(np.bitwise_and.reduce(bitsets[list(items)]), later, counts[: len(later)])
        extensions = enumerate(counts[: len(later)].tolist(), start=items[-1] + 1)
        queue += [(-common, length + 1, (*items, item)) for item, common in extensions if common > 0]
        queue = heapq.nsmallest(n - rank, queue)  # a sorted list is a heap
    return 0
