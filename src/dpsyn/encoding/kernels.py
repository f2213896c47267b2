"""Counting, compiled. Arrays in, arrays out; whoever calls has checked everything.

Tables come as *columns*: attributes × rows, each attribute contiguous. Indices are unsigned: numba would check signed
ones for negative values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., Any])

Columns = NDArray[Any]
Lanes = NDArray[np.uint32]

_BLOCK = 1 << 16
"""Rows counted at a time, so that the columns of many cliques stay in the cache between them."""

_LANES = 4
"""Histograms filled by turns: a processor that adds to one cell twice in a row has to wait for the first."""

_STRIDE = 1 << 11
"""Rows whose cell numbers are computed at a time before they are counted, for cliques of three and more."""


def _compile(function: _Function) -> _Function:
    """Compile on the first call and keep the result on disk; other threads run meanwhile."""
    return cast(_Function, njit(cache=True, nogil=True)(function))


@_compile
def count_cliques(
    columns: Columns,
    first: int,
    stop: int,
    axes: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> None:
    """Add to ``totals`` the rows ``first … stop−1``, once for every clique.

    Clique ``c`` has the attributes ``places[starts[c]:starts[c+1]]`` with ``sizes`` alike; its table, the last
    attribute fastest, is ``totals[offsets[c]:offsets[c+1]]`` and has fewer than 2³² cells.
    """
    scratch = np.empty(_BLOCK, np.uint32)
    numbers = np.empty(_STRIDE, np.uint32)
    for low in range(first, stop, _BLOCK):
        block = columns[:, low : min(low + _BLOCK, stop)]
        rows = block.shape[1]
        for clique in range(len(starts) - 1):
            own, parts = axes[starts[clique] : starts[clique + 1]], sizes[starts[clique] : starts[clique + 1]]
            table = totals[offsets[clique] : offsets[clique + 1]]
            if len(own) == 0:
                table[0] += rows
            elif len(table) * _LANES <= rows:  # to empty and to add up the lanes costs less than to wait
                lanes = scratch[: len(table) * _LANES]
                lanes[:] = 0
                _count_in_lanes(block, own, parts, numbers, lanes.reshape((_LANES, len(table))))
                for cell in range(len(table)):
                    for lane in range(_LANES):
                        table[cell] += lanes[lane * len(table) + cell]
            else:
                _count_directly(block, own, parts, numbers, table)


@_compile
def _count_in_lanes(
    block: Columns, own: NDArray[np.int64], sizes: NDArray[np.uint32], numbers: NDArray[np.uint32], lanes: Lanes
) -> None:
    """Count a block into four histograms by turns."""
    one, two, three, four = lanes[0], lanes[1], lanes[2], lanes[3]
    for begin in range(0, block.shape[1], _STRIDE):
        filled = _fill_cell_indices(block, begin, own, sizes, numbers)
        even = filled // 4 * 4
        for row in range(0, even, 4):
            one[numbers[row]] += np.uint32(1)
            two[numbers[row + 1]] += np.uint32(1)
            three[numbers[row + 2]] += np.uint32(1)
            four[numbers[row + 3]] += np.uint32(1)
        for row in range(even, filled):
            one[numbers[row]] += np.uint32(1)


@_compile
def _count_directly(
    block: Columns,
    own: NDArray[np.int64],
    sizes: NDArray[np.uint32],
    numbers: NDArray[np.uint32],
    table: NDArray[np.int64],
) -> None:
    """Count a block into its table."""
    for begin in range(0, block.shape[1], _STRIDE):
        for row in range(_fill_cell_indices(block, begin, own, sizes, numbers)):
            table[numbers[row]] += 1


@_compile
def _fill_cell_indices(
    block: Columns, begin: int, own: NDArray[np.int64], sizes: NDArray[np.uint32], numbers: NDArray[np.uint32]
) -> int:
    """The cell of every row of a stride, its codes being the digits of one number; and how many rows it has.

    One loop for each attribute, over contiguous memory, so that the processor takes many rows at a time.
    """
    filled = int(min(_STRIDE, block.shape[1] - begin))
    column = block[own[0], begin : begin + filled]
    if len(own) == 1:
        for row in range(filled):
            numbers[row] = column[row]
        return filled
    after, size = block[own[1], begin : begin + filled], sizes[1]
    for row in range(filled):
        numbers[row] = np.uint32(column[row]) * size + np.uint32(after[row])
    for part in range(2, len(own)):
        after, size = block[own[part], begin : begin + filled], sizes[part]
        for row in range(filled):
            numbers[row] = numbers[row] * size + np.uint32(after[row])
    return filled
