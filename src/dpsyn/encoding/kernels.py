"""Compiled counting of contingency tables. Arrays in, arrays out; the caller has checked all arguments.

Codes are given as *columns*: attributes × rows, each attribute contiguous. Indices are unsigned, because numba checks
signed ones for negative values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.kernels import compile_kernel

Columns = NDArray[Any]
Lanes = NDArray[np.uint32]

_BLOCK = 1 << 16
"""Rows counted at a time: their columns stay in the cache from one clique to the next."""

_LANES = 4
"""Histograms filled in turn: a processor that adds to one cell twice in a row waits for the first addition."""

_STRIDE = 1 << 11
"""Rows whose cell indices are computed before they are counted."""


@compile_kernel
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
    """Add the rows ``first … stop−1`` to ``totals``, once for every clique.

    Clique ``c`` has the attributes ``axes[starts[c]:starts[c+1]]``, with their sizes at the same positions of
    ``sizes``. Its table, with the last attribute fastest, is ``totals[offsets[c]:offsets[c+1]]`` and has fewer than 2³²
    cells.
    """
    scratch = np.empty(_BLOCK, np.uint32)
    cells = np.empty(_STRIDE, np.uint32)
    for low in range(first, stop, _BLOCK):
        block = columns[:, low : min(low + _BLOCK, stop)]
        rows = block.shape[1]
        for clique in range(len(starts) - 1):
            clique_axes = axes[starts[clique] : starts[clique + 1]]
            shape = sizes[starts[clique] : starts[clique + 1]]
            table = totals[offsets[clique] : offsets[clique + 1]]
            if len(clique_axes) == 0:
                table[0] += rows
            elif len(table) * _LANES <= rows:  # clearing and summing the lanes costs less than waiting
                lanes = scratch[: len(table) * _LANES]
                lanes[:] = 0
                _count_in_lanes(block, clique_axes, shape, cells, lanes.reshape((_LANES, len(table))))
                for cell in range(len(table)):
                    for lane in range(_LANES):
                        table[cell] += lanes[lane * len(table) + cell]
            else:
                _count_directly(block, clique_axes, shape, cells, table)


@compile_kernel
def _count_in_lanes(
    block: Columns, axes: NDArray[np.int64], shape: NDArray[np.uint32], cells: NDArray[np.uint32], lanes: Lanes
) -> None:
    """Count a block into four histograms in turn."""
    one, two, three, four = lanes[0], lanes[1], lanes[2], lanes[3]
    for begin in range(0, block.shape[1], _STRIDE):
        filled = _fill_cell_indices(block, begin, axes, shape, cells)
        even = filled // 4 * 4
        for row in range(0, even, 4):
            one[cells[row]] += np.uint32(1)
            two[cells[row + 1]] += np.uint32(1)
            three[cells[row + 2]] += np.uint32(1)
            four[cells[row + 3]] += np.uint32(1)
        for row in range(even, filled):
            one[cells[row]] += np.uint32(1)


@compile_kernel
def _count_directly(
    block: Columns,
    axes: NDArray[np.int64],
    shape: NDArray[np.uint32],
    cells: NDArray[np.uint32],
    table: NDArray[np.int64],
) -> None:
    """Count a block into the table of a clique."""
    for begin in range(0, block.shape[1], _STRIDE):
        for row in range(_fill_cell_indices(block, begin, axes, shape, cells)):
            table[cells[row]] += 1


@compile_kernel
def _fill_cell_indices(
    block: Columns, begin: int, axes: NDArray[np.int64], shape: NDArray[np.uint32], cells: NDArray[np.uint32]
) -> int:
    """Compute the flat index of the cell of every row of a stride; return the number of rows in the stride.

    There is one loop for each attribute, over contiguous memory, so the compiler can vectorize it.
    """
    filled = int(min(_STRIDE, block.shape[1] - begin))
    column = block[axes[0], begin : begin + filled]
    if len(axes) == 1:
        for row in range(filled):
            cells[row] = column[row]
        return filled
    following, size = block[axes[1], begin : begin + filled], shape[1]
    for row in range(filled):
        cells[row] = np.uint32(column[row]) * size + np.uint32(following[row])
    for index in range(2, len(axes)):
        following, size = block[axes[index], begin : begin + filled], shape[index]
        for row in range(filled):
            cells[row] = cells[row] * size + np.uint32(following[row])
    return filled
