"""Counting baskets, compiled. Arrays in, arrays out; whoever calls has checked everything.

Baskets come one after another: basket ``b`` holds the items ``items[ends[b]:ends[b+1]]``, each once. A *bitset* has a
bit for every basket, in words of 64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., Any])

Bitsets = NDArray[np.uint64]


def _compile(function: _Function) -> _Function:
    """Compile on the first call and keep the result on disk; other threads run meanwhile."""
    return cast(_Function, njit(cache=True, nogil=True)(function))


@_compile
def fill_bitsets(
    ends: NDArray[np.int64], items: NDArray[np.int32], row_of: NDArray[np.int32], bitsets: Bitsets
) -> None:
    """Set the bits of the baskets that hold an item, for every item that has a place (not −1) among the bitsets."""
    for basket in range(len(ends) - 1):
        word, bit = basket >> 6, np.uint64(1) << np.uint64(basket & 63)
        for entry in range(ends[basket], ends[basket + 1]):
            place = row_of[items[entry]]
            if place >= 0:
                bitsets[place, word] |= bit


@_compile
def count_common_baskets(bitset: NDArray[np.uint64], others: Bitsets, counts: NDArray[np.int64]) -> None:
    """For each of the others, how many baskets it has in common with one bitset."""
    for place in range(len(others)):
        total = np.uint64(0)
        for word in range(len(bitset)):
            total += _popcount(bitset[word] & others[place, word])
        counts[place] = np.int64(total)


@_compile
def _popcount(word: Any) -> Any:
    """How many bits of a word are set: sums of neighbors in parallel (Warren, Hacker's Delight, 5-1)."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@_compile
def count_bins(
    ends: NDArray[np.int64],
    items: NDArray[np.int32],
    starts: NDArray[np.int64],
    bases: NDArray[np.int64],
    bits: NDArray[np.int64],
    offsets: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> None:
    """Count every basket once for each basis, in the bin of the items of the basis that it holds.

    Item ``i`` is in the bases ``bases[starts[i]:starts[i+1]]`` and sets the ``bits`` alike in the number of its bin;
    the bins of basis ``b`` are ``totals[offsets[b]:offsets[b+1]]``. Baskets without any item of a basis are few words
    of work: they are what is left.
    """
    number = np.zeros(len(offsets) - 1, np.int64)
    touched = np.empty(len(offsets) - 1, np.int64)
    for basket in range(len(ends) - 1):
        many = 0
        for entry in range(ends[basket], ends[basket + 1]):
            for place in range(starts[items[entry]], starts[items[entry] + 1]):
                basis = bases[place]
                if number[basis] == 0:
                    touched[many] = basis
                    many += 1
                number[basis] |= bits[place]
        for place in range(many):
            basis = touched[place]
            totals[offsets[basis] + number[basis]] += 1
            totals[offsets[basis]] -= 1
            number[basis] = 0
    for basis in range(len(offsets) - 1):
        totals[offsets[basis]] += len(ends) - 1
