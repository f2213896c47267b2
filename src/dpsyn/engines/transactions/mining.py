"""The support of the n-th most frequent itemset, exactly, in bounded time and memory."""

from __future__ import annotations

import heapq

import numpy as np

from dpsyn.engines.transactions import kernels

Waiting = tuple[int, int, tuple[int, ...]]
"""An itemset in the queue: less its support, its length, its items."""


def nth_support(bitsets: kernels.Bitsets, supports: list[int], number: int) -> int:
    """The ``number``-th largest support of all non-empty itemsets, whatever their length; 0 if there are not so many.

    ``bitsets`` and ``supports`` are those of the items, most frequent first; items beyond the first ``number`` may be
    left out, because no itemset that holds one is more frequent than so many items by themselves.

    Itemsets are taken out of a queue by support, each followed by its extensions with later items, which are never
    more frequent; so the n-th that is taken out is the answer. Of those waiting only as many are kept as are still to
    be taken out. With n itemsets taken out and at most n extensions each that is at most n² comparisons of bitsets,
    n²·baskets/64 words, whatever the baskets look like. Shorter itemsets go first among equals; then all subsets of an
    itemset come before it, so that it has at most log₂(n + 1) items.
    """
    waiting: list[Waiting] = [(-count, 1, (item,)) for item, count in enumerate(supports[:number]) if count > 0]
    counts = np.empty(len(bitsets), np.int64)
    for taken in range(1, number + 1):
        if not waiting:
            return 0
        support, length, items = heapq.heappop(waiting)
        if taken == number:
            return -support
        later = bitsets[items[-1] + 1 :]
        kernels.count_common(np.bitwise_and.reduce(bitsets[list(items)]), later, counts[: len(later)])
        grown = enumerate(counts[: len(later)].tolist(), start=items[-1] + 1)
        waiting += [(-common, length + 1, (*items, item)) for item, common in grown if common > 0]
        waiting = heapq.nsmallest(number - taken, waiting)  # a sorted list is a heap
    return 0
