"""Slow, obviously correct twins of the kernels and of the min-cost flow."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Counts = Sequence[int]


def count_cells(records: NDArray[np.int32], indices: Sequence[int], shape: Sequence[int]) -> NDArray[np.int64]:
    """The table of some attributes, one record at a time."""
    result = Counter(tuple(int(record[index]) for index in indices) for record in records)
    return np.array([result[cell] for cell in itertools.product(*map(range, shape))], np.int64).reshape(shape)


def additions(counts: Counts, target: Counts, alpha: Fraction, fill: bool = True) -> list[Fraction]:
    """The records that each cell gets in an update of GUM: formula by formula."""
    added = []
    for has, should in zip(counts, target, strict=True):
        if should <= has:
            added.append(Fraction(0))
        elif has > 0:
            added.append(min(Fraction(should - has), alpha * has))
        else:
            added.append(min(Fraction(should), alpha * should) if fill else Fraction(0))
    return added


def removals(counts: Counts, target: Counts, beta: Fraction) -> list[Fraction]:
    """The records that each cell gives up in an update of GUM."""
    return [
        min(Fraction(has - should), beta * has) if has > should else Fraction(0)
        for has, should in zip(counts, target, strict=True)
    ]


def balance(counts: Counts, target: Counts, wanted: Fraction) -> Fraction:
    """The smallest β at which cells give what is wanted: between two β's where cells are done, they give linearly."""
    done = sorted({Fraction(has - should, has) for has, should in zip(counts, target, strict=True) if has > should})
    low, given = Fraction(0), Fraction(0)
    for high in done:
        more = Fraction(sum(removals(counts, target, high)))
        if more >= wanted:
            return low + (high - low) * (wanted - given) / (more - given)
        low, given = high, more
    return low


def fewest_changes(counts: NDArray[np.int64], target: NDArray[np.int64]) -> int:
    """The minimum number of attribute changes until a table has its target, by trying all flows."""
    excess = counts - target
    origins = [cell for cell in np.ndindex(counts.shape) for _ in range(max(0, int(excess[cell])))]
    ends = [cell for cell in np.ndindex(counts.shape) for _ in range(max(0, int(-excess[cell])))]
    ways = (zip(origins, order, strict=True) for order in itertools.permutations(ends))
    return min(sum(int(np.sum(np.not_equal(origin, end))) for origin, end in way) for way in ways)
