"""Rows as few machine words, by which they are put in order and compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.evaluation.tables import Columns

Words = NDArray[np.uint64]


def in_order(columns: Columns, sizes: Sequence[int]) -> Columns:
    """The same rows, sorted: what is drawn from them does not depend on the order of a file."""
    return np.ascontiguousarray(columns[:, np.lexsort(_words(columns, sizes))])


def shared(first: Columns, second: Columns, sizes: Sequence[int]) -> NDArray[np.bool_]:
    """Which rows of the second table are equal to some row of the first."""
    words = [np.concatenate(pair) for pair in zip(_words(first, sizes), _words(second, sizes), strict=True)]
    order = np.lexsort(words)
    starts = np.zeros(len(order), np.bool_)
    for word in words:
        starts[1:] |= word[order[1:]] != word[order[:-1]]
    groups = np.empty(len(order), np.int64)
    groups[order] = np.cumsum(starts)
    split = first.shape[1]
    known = np.zeros(len(order) + 1, np.bool_)
    known[groups[:split]] = True
    found: NDArray[np.bool_] = known[groups[split:]]
    return found


def _words(columns: Columns, sizes: Sequence[int]) -> list[Words]:
    """For each row some numbers that tell it from every other, its codes being their digits."""
    words: list[Words] = []
    room = 1
    for column, size in zip(columns, sizes, strict=True):
        if not words or size > room:
            words.append(np.zeros(columns.shape[1], np.uint64))
            room = 2**64
        words[-1] = words[-1] * np.uint64(size) + column
        room //= size
    return words
