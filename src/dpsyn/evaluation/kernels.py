"""Compiled loops: distances between tables of counts, and answers to range queries. Callers check the arguments.

Tables of rows are given as *columns*: an array of attributes × rows in which each attribute is contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.kernels import compile_kernel

_BLOCK = 1 << 11
"""Rows that are tested together: the list of those that still match stays in the fastest cache."""


@compile_kernel
def dense_distance_sum(first: NDArray[np.int64], second: NDArray[np.int64], rows: int, others: int) -> int:
    """Σ|others·first − rows·second| over the cells of two tables of counts: 2·rows·others times their distance."""
    total = 0
    for cell in range(len(first)):
        total += abs(first[cell] * others - second[cell] * rows)
    return total


@compile_kernel
def sparse_distance_sum(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> int:
    """The same sum for tables given as the cell number of each row, in ascending order."""
    rows, others = len(first), len(second)
    total = one = two = 0
    while one < rows or two < others:
        cell = first[one] if two == others or (one < rows and first[one] <= second[two]) else second[two]
        here = there = 0
        while one < rows and first[one] == cell:
            here += 1
            one += 1
        while two < others and second[two] == cell:
            there += 1
            two += 1
        total += abs(here * others - there * rows)
    return total


@compile_kernel
def count_matches(
    columns: NDArray[Any],
    axes: NDArray[np.int64],
    lows: NDArray[np.int64],
    highs: NDArray[np.int64],
    offsets: NDArray[np.int64],
    code_mask: NDArray[np.bool_],
) -> int:
    """Count the rows that satisfy all conditions of a query; a query has at least one condition.

    Condition ``c`` is on attribute ``axes[c]``. Its code must lie in ``lows[c] … highs[c]``; if ``offsets[c]`` is not
    negative, ``code_mask[offsets[c] + code]`` must hold instead.
    """
    left = np.empty(_BLOCK, np.int64)
    matches = 0
    for begin in range(0, columns.shape[1], _BLOCK):
        remaining = min(_BLOCK, columns.shape[1] - begin)
        for row in range(remaining):
            left[row] = begin + row
        for condition in range(len(axes)):
            column, low, high = columns[axes[condition]], lows[condition], highs[condition]
            offset, kept = offsets[condition], 0
            for index in range(remaining):
                row = left[index]
                code = np.int64(column[row])
                left[kept] = row
                if offset < 0:
                    kept += (code >= low) & (code <= high)
                else:
                    kept += code_mask[offset + code]
            remaining = kept
        matches += remaining
    return matches
