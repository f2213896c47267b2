"""Compiled counting of baskets. Arrays in, arrays out; the caller has checked all arguments.

Baskets are concatenated: basket ``b`` holds the items ``items[ends[b]:ends[b+1]]``, each once. A *bitset* has one bit
for every basket, in words of 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.kernels import compile_kernel

Bitsets = NDArray[np.uint64]


@compile_kernel
def fill_bitsets(
    ends: NDArray[np.int64], items: NDArray[np.int32], row_of: NDArray[np.int32], bitsets: Bitsets
) -> None:
    """Set the bits of the baskets that hold an item, for every item that has a bitset (a row that is not −1)."""
    for basket in range(len(ends) - 1):
        word, bit = basket >> 6, np.uint64(1) << np.uint64(basket & 63)
        for entry in range(ends[basket], ends[basket + 1]):
            row = row_of[items[entry]]
            if row >= 0:
                bitsets[row, word] |= bit


@compile_kernel
def count_common_baskets(bitset: NDArray[np.uint64], others: Bitsets, counts: NDArray[np.int64]) -> None:
    """For each of the other bitsets, the number of baskets that it has in common with one bitset."""
    for row in range(len(others)):
        total = np.uint64(0)
        for word in range(len(bitset)):
            total += _popcount(bitset[word] & others[row, word])
        counts[row] = np.int64(total)


@compile_kernel
def _popcount(word: Any) -> Any:
    """The number of bits of a word that are set, by sums of neighbors in parallel (Warren, Hacker's Delight, 5-1)."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compile_kernel
def count_bins(
    ends: NDArray[np.int64],
    items: NDArray[np.int32],
    starts: NDArray[np.int64],
    bases: NDArray[np.int64],
    bits: NDArray[np.int64],
    offsets: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> None:
    """Count every basket once for each basis, in the bin of those items of the basis that the basket holds.

    Item ``i`` is in the bases ``bases[starts[i]:starts[i+1]]``; the ``bits`` at the same positions are those that it
    sets in the index of the bin. The bins of basis ``b`` are ``totals[offsets[b]:offsets[b+1]]``. Baskets without any
    item of a basis take no work: their number is the number of baskets minus that of all others.
    """
    bin_index = np.zeros(len(offsets) - 1, np.int64)
    touched = np.empty(len(offsets) - 1, np.int64)
    for basket in range(len(ends) - 1):
        touched_count = 0
        for entry in range(ends[basket], ends[basket + 1]):
            for position in range(starts[items[entry]], starts[items[entry] + 1]):
                basis = bases[position]
                if bin_index[basis] == 0:
                    touched[touched_count] = basis
                    touched_count += 1
                bin_index[basis] |= bits[position]
        for index in range(touched_count):
            basis = touched[index]
            totals[offsets[basis] + bin_index[basis]] += 1
            totals[offsets[basis]] -= 1
            bin_index[basis] = 0
    for basis in range(len(offsets) - 1):
        totals[offsets[basis]] += len(ends) - 1
