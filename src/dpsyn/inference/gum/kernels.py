"""GUM's update of one clique and its counting, compiled. Arrays in, arrays out; the caller has checked everything.

Records come as *columns*: attributes × rows of 32-bit codes, each attribute contiguous. Random numbers come from
SplitMix64 (Steele, Lea and Flood 2014), whose state is one word that the caller passes, so a seed gives the same
records whatever else runs. Indices and random words are unsigned: numba would check signed ones for negative values,
and convert mixtures of signed and unsigned ones to floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.kernels import compile_kernel

RecordColumns = NDArray[np.int32]
CellIndices = NDArray[np.uint32]
Counts = NDArray[np.uint32]
RandomState = NDArray[np.uint64]

_LANES = 4
"""The number of histograms that are filled in turn: two additions to the same cell in a row would have to wait."""

_STRIDE = 1 << 11
"""The number of rows whose cells are computed before they are counted, so that they are still in the fastest cache."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


# ── random numbers ───────────────────────────────────────────────────────────────────────────────────────────


@compile_kernel
def _mix(word: Any) -> Any:
    """The output of SplitMix64 for a state."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compile_kernel
def _uniform(state: RandomState) -> float:
    """A number in [0, 1)."""
    state[0] += _GOLDEN
    return float(_mix(state[0]) >> np.uint64(11)) * 2.0**-53


@compile_kernel
def _shuffle(numbers: CellIndices, state: RandomState) -> None:
    """Put fewer than 2³² numbers in random order (Fisher and Yates)."""
    word = state[0]
    for last in range(len(numbers) - 1, 0, -1):
        word += _GOLDEN
        other = ((_mix(word) >> np.uint64(32)) * np.uint64(last + 1)) >> np.uint64(32)
        numbers[last], numbers[other] = numbers[other], numbers[last]
    state[0] = word


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────


@compile_kernel
def count(columns: RecordColumns, axes: NDArray[np.int64], sizes: Counts, cells: CellIndices, lanes: Counts) -> Counts:
    """Count the records of each cell of a clique, and store the cell of each record in ``cells``.

    The index of a cell has the codes of the clique's attributes as its digits, the last one fastest. ``lanes`` is
    working memory for four tables.
    """
    size = 1
    for part in range(len(sizes)):
        size *= sizes[part]
    lanes[: _LANES * size] = 0
    one, two, three, four = lanes[:size], lanes[size : 2 * size], lanes[2 * size : 3 * size], lanes[3 * size : 4 * size]
    for begin in range(0, len(cells), _STRIDE):
        stop = min(begin + _STRIDE, len(cells))
        numbers = cells[begin:stop]
        _number_cells(columns[:, begin:stop], axes, sizes, numbers)
        even = len(numbers) // _LANES * _LANES
        for row in range(0, even, _LANES):
            one[numbers[row]] += np.uint32(1)
            two[numbers[row + 1]] += np.uint32(1)
            three[numbers[row + 2]] += np.uint32(1)
            four[numbers[row + 3]] += np.uint32(1)
        for row in range(even, len(numbers)):
            one[numbers[row]] += np.uint32(1)
    for cell in range(size):
        one[cell] += two[cell] + three[cell] + four[cell]
    return one


@compile_kernel
def _number_cells(block: RecordColumns, axes: NDArray[np.int64], sizes: Counts, numbers: CellIndices) -> None:
    """The cell of each record of a block; one loop per attribute, so that the compiler can vectorize over rows."""
    column = block[axes[0]]
    if len(axes) == 1:
        for row in range(len(numbers)):
            numbers[row] = np.uint32(column[row])
        return
    after, size = block[axes[1]], sizes[1]
    for row in range(len(numbers)):
        numbers[row] = np.uint32(column[row]) * size + np.uint32(after[row])
    for part in range(2, len(axes)):
        after, size = block[axes[part]], sizes[part]
        for row in range(len(numbers)):
            numbers[row] = numbers[row] * size + np.uint32(after[row])


# ── numbers of records to move ───────────────────────────────────────────────────────────────────────────


@compile_kernel
def additions(counts: Counts, target: Counts, alpha: float, fill: bool, added: NDArray[np.float64]) -> float:
    """The number of records to add to each cell, as real numbers; returns their sum.

    An under-filled cell gets min(nᵗ−nˢ, α·nˢ), an empty one min(nᵗ, α·nᵗ), or nothing unless ``fill``.
    """
    total = 0.0
    for cell in range(len(counts)):
        has, should = float(counts[cell]), float(target[cell])
        added[cell] = 0.0
        if should > has and (has > 0 or fill):
            added[cell] = min(should - has, alpha * (has if has > 0 else should))
            total += added[cell]
    return total


@compile_kernel
def removals(counts: Counts, target: Counts, beta: float, removed: NDArray[np.float64]) -> float:
    """The number of records to remove from each cell, as real numbers: min(nˢ−nᵗ, β·nˢ) if nˢ > nᵗ; returns the sum."""
    total = 0.0
    for cell in range(len(counts)):
        has, should = float(counts[cell]), float(target[cell])
        removed[cell] = 0.0
        if has > should:
            removed[cell] = min(has - should, beta * has)
            total += removed[cell]
    return total


@compile_kernel
def find_beta(counts: Counts, target: Counts, total: float) -> float:
    """The β for which the sum of min(nˢ−nᵗ, β·nˢ) over all over-filled cells is ``total``; at most 1.

    Cells that reach nˢ−nᵗ leave the search, so β grows for the others, until no more cells leave.
    """
    beta, previous = 0.0, -1.0
    while beta > previous:
        previous, left, free = beta, total, 0.0
        for cell in range(len(counts)):
            has, should = float(counts[cell]), float(target[cell])
            if has > should:
                if has - should <= beta * has:
                    left -= has - should
                else:
                    free += has
        if free > 0 and left > 0:
            beta = max(previous, min(1.0, left / free))
    return beta


@compile_kernel
def _round_cumulatively(
    amount: NDArray[np.float64], scale: float, offset: float, upper: Counts, lower: Counts, whole: Counts
) -> int:
    """Round scaled amounts to integers, such that running sums plus an offset are rounded down; returns the sum.

    A cell gets at most the difference of ``upper`` and ``lower``.
    """
    running, given = offset, 0
    for cell in range(len(amount)):
        whole[cell] = 0
        if amount[cell] > 0:
            running += scale * amount[cell]
            part = min(int(running) - given, int(upper[cell]) - int(lower[cell]))
            whole[cell] = part
            given += part
    return given


@compile_kernel
def _level_removals(gives: Counts, total: int, counts: Counts, target: Counts) -> None:
    """Make integer removals sum to ``total``: because of rounding errors the sum may differ by one."""
    short = total
    for cell in range(len(gives)):
        short -= int(gives[cell])
    for cell in range(len(gives)):
        while short > 0 and counts[cell] > target[cell] + gives[cell]:
            gives[cell] += np.uint32(1)
            short -= 1
        while short < 0 and gives[cell] > 0:
            gives[cell] -= np.uint32(1)
            short += 1


@compile_kernel
def _count_copies(gets: Counts, counts: Counts, share: float, offset: float, copies: Counts) -> int:
    """The number of copies among the records that each cell gets: a share of them, none if there is nothing to copy."""
    running, given = offset, 0
    for cell in range(len(gets)):
        copies[cell] = 0
        if gets[cell] > 0 and counts[cell] > 0:
            running += share * gets[cell]
            part = min(int(running) - given, int(gets[cell]))
            copies[cell] = part
            given += part
    return given


# ── moving records ───────────────────────────────────────────────────────────────────────────────────────────


@compile_kernel
def update_clique(
    columns: RecordColumns,
    axes: NDArray[np.int64],
    sizes: Counts,
    target: Counts,
    alpha: float,
    beta: float,
    share: float,
    fill: bool,
    state: RandomState,
    log: NDArray[np.uint32],
    done: NDArray[np.int64],
    cells: CellIndices,
    freed: CellIndices,
    lanes: Counts,
) -> tuple[float, int]:
    """Move records from over-filled cells of one clique to under-filled ones; returns the numbers to move and moved.

    A ``share`` of the records that a cell gets are whole rows copied from the cell (duplicate). The rest, and all
    records that an empty cell gets, are records of which only the clique's attributes change (replace). ``cells`` and
    ``freed`` are working memory for one integer per record, ``lanes`` for four tables.

    Copies are recorded in ``log``, rows in the first line and their sources in the second. ``done`` is the number of
    copies that were already applied to each column; its last entry is the length of the log. A column catches up when
    it is used next, while it is in the cache. To copy whole rows at once would load all columns from memory at every
    update.
    """
    for axis in axes:
        apply_copies(columns, axis, log, done)
    counts = count(columns, axes, sizes, cells, lanes)
    added, removed, given, scale = np.empty(len(counts)), np.empty(len(counts)), 0.0, 1.0
    gets, gives, copies = np.empty_like(counts), np.empty_like(counts), np.empty_like(counts)
    to_move = additions(counts, target, alpha, fill, added)
    if beta >= 0 and to_move > 0:
        given = removals(counts, target, beta, removed)
        scale = min(1.0, given / to_move)
    total = _round_cumulatively(added, scale, _uniform(state), target, counts, gets)
    if total == 0:
        return scale * to_move, 0
    if beta < 0:
        given = removals(counts, target, find_beta(counts, target, float(total)), removed)
    _round_cumulatively(removed, total / given, _uniform(state), counts, target, gives)
    _level_removals(gives, total, counts, target)
    duplicates = _count_copies(gets, counts, share, _uniform(state), copies)
    rows, sources = _reserve_log(columns, duplicates, log, done)
    _choose_records(cells, counts, gives, copies, state, freed, sources)
    others = cells[: total - duplicates]  # the cells of records are not needed any more
    _partition_freed(freed[:total], duplicates, state, rows, others)
    _shuffle(others, state)
    _replace_values(columns, axes, sizes, gets, copies, others)
    return scale * to_move, total


@compile_kernel
def apply_copies(columns: RecordColumns, axis: int, log: NDArray[np.uint32], done: NDArray[np.int64]) -> None:
    """Apply to one column the copies that were recorded since it was last used."""
    column, rows, sources = columns[axis], log[0], log[1]
    for entry in range(done[axis], done[-1]):
        column[rows[entry]] = column[sources[entry]]
    done[axis] = done[-1]


@compile_kernel
def apply_all_copies(columns: RecordColumns, log: NDArray[np.uint32], done: NDArray[np.int64]) -> None:
    """Apply all recorded copies, and empty the log."""
    for axis in range(len(columns)):
        apply_copies(columns, axis, log, done)
    done[:] = 0


@compile_kernel
def _reserve_log(
    columns: RecordColumns, copies: int, log: NDArray[np.uint32], done: NDArray[np.int64]
) -> tuple[CellIndices, CellIndices]:
    """The part of the log for new rows and sources; sources have one more entry, see `_choose_records`."""
    if done[-1] + copies >= log.shape[1]:
        apply_all_copies(columns, log, done)
    begin = done[-1]
    done[-1] += copies
    return log[0, begin : begin + copies], log[1, begin : begin + copies + 1]


@compile_kernel
def _choose_records(
    cells: CellIndices,
    counts: Counts,
    gives: Counts,
    copies: Counts,
    state: RandomState,
    freed: CellIndices,
    sources: CellIndices,
) -> None:
    """Choose at random the records that each cell gives up, and those that are copied; both in the order of rows.

    Marks are set for the ranks of the records within their cell; one pass over all records then finds the marked ones.
    That loop has no branch, because it would be unpredictable.
    """
    marks, rank, repeated = np.zeros(len(cells), np.uint8), np.empty_like(counts), False
    first = np.uint32(0)
    for cell in range(len(counts)):
        rank[cell] = first
        cell_marks = marks[first : first + counts[cell]]
        if gives[cell] > 0:
            _mark_at_random(cell_marks, gives[cell], np.uint8(1), state)
        elif copies[cell] > 0:
            _mark_at_random(cell_marks, copies[cell] % counts[cell], np.uint8(2), state)
            repeated = repeated or copies[cell] >= counts[cell]
        first += counts[cell]
    frees, copied = np.uint32(0), np.uint32(0)
    for row in range(len(cells)):
        cell = cells[row]
        mark = marks[rank[cell]]
        rank[cell] += np.uint32(1)
        freed[frees] = row
        sources[copied] = row
        frees += np.uint32(mark & np.uint8(1))
        copied += np.uint32(mark >> np.uint8(1))
    if repeated:  # a cell more than doubles, because α is above 1
        for row in range(len(cells)):
            cell = cells[row]
            for _ in range(copies[cell] // counts[cell]):
                sources[copied] = row
                copied += np.uint32(1)


@compile_kernel
def _mark_at_random(marks: NDArray[np.uint8], count: int, mark: Any, state: RandomState) -> None:
    """Mark ``count`` entries at random; if they are more than half, choose those to leave out instead."""
    word, length = state[0], np.uint64(len(marks))
    blank, left = np.uint8(0), np.int64(count)
    if 2 * left > len(marks):
        marks[:] = mark
        blank, mark, left = mark, blank, len(marks) - left
    while left > 0:
        word += _GOLDEN
        index = ((_mix(word) >> np.uint64(32)) * length) >> np.uint64(32)
        if marks[index] == blank:
            marks[index] = mark
            left -= 1
    state[0] = word


@compile_kernel
def _partition_freed(
    freed: CellIndices, copies: int, state: RandomState, rows: CellIndices, others: CellIndices
) -> None:
    """Partition the freed records at random into those that become copies, in order, and the others."""
    word, kept, other = state[0], 0, 0
    for index in range(len(freed)):
        word += _GOLDEN
        value = ((_mix(word) >> np.uint64(32)) * np.uint64(len(freed) - index)) >> np.uint64(32)
        if value < np.uint64(copies - kept):
            rows[kept] = freed[index]
            kept += 1
        else:
            others[other] = freed[index]
            other += 1
    state[0] = word


@compile_kernel
def _replace_values(
    columns: RecordColumns, axes: NDArray[np.int64], sizes: Counts, gets: Counts, copies: Counts, rows: CellIndices
) -> None:
    """Move rows to cells by changing the clique's attributes; each cell gets those that are not copies."""
    begin = 0
    for cell in range(len(gets)):
        stop = begin + int(gets[cell] - copies[cell])
        if stop > begin:
            rest = np.uint32(cell)
            for part in range(len(axes) - 1, -1, -1):
                code, rest = np.int32(rest % sizes[part]), rest // sizes[part]
                column = columns[axes[part]]
                for index in range(begin, stop):
                    column[rows[index]] = code
            begin = stop
