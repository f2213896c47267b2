"""Gibbs sweeps, counting and sampling, compiled. Arrays in, arrays out; the caller has checked everything.

Records come as *columns*: attributes × records of ``uint16`` or ``uint32``. `CliqueLayout` builds the index arrays.
Nothing here depends on the number of threads: every random number is a function of a key, the attribute and the
position of the record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from dpsyn.kernels import compile_kernel

_Function = TypeVar("_Function", bound=Callable[..., Any])

Columns = NDArray[np.unsignedinteger]
Indices = NDArray[np.int64]
Weights = NDArray[np.float32]

_BLOCK = 64
"""The number of records whose cells are computed at a time; they stay in the first-level cache."""

_LANES = 8
"""The number of weights that are multiplied at once."""

_MIN_SUM, _MAX_SUM = 1e-30, 1e30
"""A sum of weights outside these limits may have lost digits in single precision; it is recomputed with rescaling."""

_MIN_WEIGHT, _MAX_WEIGHT = 1e-30, 1e30
"""The limits of the weight of a cell, however many records enter or leave it while an attribute is resampled. Without
them, where other tables move thousands of records, a weight became infinite, and values were sampled at random."""

_GOLDEN = 0x9E3779B97F4A7C15


def _compile_fast_math(function: _Function) -> _Function:
    """Compile a kernel whose sums may be taken in any order."""
    return compile_kernel(function, fastmath={"reassoc", "contract", "nsz"})


# ── random numbers: SplitMix64 (Steele, Lea and Flood 2014) ──────────────────────────────────────────────────


@compile_kernel
def _mix(word: Any) -> Any:
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compile_kernel
def _uniform(key: Any, position: Any) -> Any:
    """A number in [0, 1) with 24 bits."""
    bits = _mix(key + (np.uint64(position) + np.uint64(1)) * np.uint64(_GOLDEN)) >> np.uint64(40)
    return np.float32(bits) * np.float32(2.0**-24)


# ── sweeps ───────────────────────────────────────────────────────────────────────────────────────────────────


@_compile_fast_math
def sweep(
    columns: Columns,
    first: int,
    stop: int,
    order: Indices,
    sizes: Indices,
    starts: Indices,
    cliques: Indices,
    steps: Indices,
    bases: Indices,
    lines: Indices,
    numbers: Indices,
    map_starts: Indices,
    maps: Indices,
    member_starts: Indices,
    members: Indices,
    strides: Indices,
    level_starts: Indices,
    level_rows: Indices,
    level_maps: Indices,
    value_weights: Weights,
    value_weight_starts: Indices,
    leaving: Weights,
    entering: Weights,
    weights: Weights,
    key: np.uint64,
) -> int:
    """Resample every attribute of the records ``first … stop−1`` once, given the other values of the record.

    ``weights`` holds a number for each cell of each clique. The weight of a value is the product of the weights of the
    cells that the record would be in, not counting the record itself. When a record moves, the weights of the cells
    that it leaves are multiplied by the clique's entry in ``leaving``, those of the cells that it enters by the entry
    in ``entering``, so that the next record takes the move into account.

    Attribute ``a`` is in the cliques ``cliques[starts[a]:starts[a+1]]``, which consist of ``lines`` of its values. In
    each clique its values are ``steps`` apart, and a record's first cell is ``bases + Σ strides·value`` over the other
    ``members`` of the clique. A clique may hold a level of the attribute instead, of ``numbers`` groups: then
    ``maps[map_starts + value]`` is the group of a value; otherwise ``map_starts`` is −1. The columns
    ``level_rows[level_starts[a]:level_starts[a+1]]`` hold the levels of the attribute, whose groups begin at
    ``level_maps`` in ``maps``. If ``value_weight_starts[a] ≥ 0``, weights are also multiplied by
    ``value_weights[value_weight_starts[a] + value]``. Returns the number of values that changed.
    """
    live = np.zeros(len(weights) + _max_copy_cells(stop - first, sizes, starts, lines) + _LANES, np.float32)
    live[: len(weights)] = weights
    cells = np.empty((np.max(starts[1:] - starts[:-1]), _BLOCK), np.uint32)
    own_bases, own_steps, own_strides = bases.copy(), steps.copy(), strides.copy()
    chances = np.empty(_pad(int(np.max(sizes))), np.float32)
    moves = 0
    for attribute in order:
        number, opening, closing = sizes[attribute], starts[attribute], starts[attribute + 1]
        if number < 2:
            continue
        stream = _mix(key + np.uint64(attribute + 1) * np.uint64(_GOLDEN))
        stay, end, coarse = np.float32(1), len(weights), False
        side_by_side = _copying_pays(stop - first, number, lines[opening:closing])
        for entry in range(opening, closing):
            if map_starts[entry] < 0:
                stay *= leaving[cliques[entry]]
            else:
                coarse = True
            if side_by_side and (steps[entry] > 1 or map_starts[entry] >= 0):
                own_bases[entry], own_steps[entry] = end, 1
                for part in range(member_starts[entry], member_starts[entry + 1]):
                    outer = strides[part] > steps[entry]
                    own_strides[part] = (strides[part] // numbers[entry] if outer else strides[part]) * _pad(number)
                end += _copy_table(
                    live,
                    bases[entry],
                    lines[entry],
                    numbers[entry],
                    steps[entry],
                    maps,
                    map_starts[entry],
                    number,
                    end,
                    True,
                )
        own, apart, near = cliques[opening:closing], own_steps[opening:closing], cells[: closing - opening]
        own_maps = map_starts[opening:closing]
        factors = (
            value_weights[value_weight_starts[attribute] :]
            if value_weight_starts[attribute] >= 0
            else value_weights[:0]
        )
        for low in range(first, stop, _BLOCK):
            filled = min(_BLOCK, stop - low)
            _find_cells(columns, low, filled, opening, closing, own_bases, member_starts, members, own_strides, cells)
            column = columns[attribute, low : low + filled]
            for position in range(filled):
                old = int(column[position])
                if coarse:
                    total = _weigh_levels(
                        live, near, apart, side_by_side, number, position, old, stay, factors, chances,
                        own, own_maps, maps, leaving,
                    )  # fmt: skip
                else:
                    total = _weigh(live, near, apart, side_by_side, number, position, old, stay, factors, chances)
                new = _sample_value(chances, number, total, _uniform(stream, low + position))
                if new != old:
                    column[position] = new
                    moves += 1
                    for level in range(level_starts[attribute], level_starts[attribute + 1]):
                        columns[level_rows[level], low + position] = maps[level_maps[level] + new]
                    for part in range(len(own)):
                        clique, begin, step = own[part], cells[part, position], np.uint32(apart[part])
                        if own_maps[part] >= 0:
                            _move_level(
                                live, begin, step, side_by_side, number, old, new, maps, own_maps[part],
                                leaving[clique], entering[clique],
                            )  # fmt: skip
                            continue
                        left, entered = begin + np.uint32(old) * step, begin + np.uint32(new) * step
                        live[left] = min(live[left] * leaving[clique], np.float32(_MAX_WEIGHT))
                        live[entered] = max(live[entered] * entering[clique], np.float32(_MIN_WEIGHT))
        for entry in range(opening, closing):
            if own_bases[entry] != bases[entry]:
                _copy_table(
                    live, bases[entry], lines[entry], numbers[entry], steps[entry], maps, map_starts[entry], number,
                    own_bases[entry], False,
                )  # fmt: skip
    return moves


@compile_kernel
def _pad(number: int) -> int:
    """The next multiple of the number of lanes."""
    return (number + _LANES - 1) // _LANES * _LANES


@compile_kernel
def _copying_pays(records: int, number: int, lines: Indices) -> bool:
    """Whether the tables of an attribute are copied while it is resampled, so that its values are contiguous.

    Products over contiguous cells take one instruction for eight of them. Copying there and back is worth it from four
    records per line of values on.
    """
    return bool(number > 2 and 4 * np.sum(lines) < records * len(lines))


@compile_kernel
def _max_copy_cells(records: int, sizes: Indices, starts: Indices, lines: Indices) -> int:
    """The maximum number of cells of the copies of one attribute's tables."""
    max_cells = 0
    for attribute in range(len(sizes)):
        number, own = sizes[attribute], lines[starts[attribute] : starts[attribute + 1]]
        if _copying_pays(records, number, own):
            max_cells = max(max_cells, int(np.sum(own)) * _pad(number))
    return max_cells


@compile_kernel
def _copy_table(
    live: Weights,
    base: int,
    lines: int,
    groups: int,
    step: int,
    maps: Indices,
    map_start: int,
    number: int,
    start: int,
    there: bool,
) -> int:
    """Copy a table to ``start`` with the values of an attribute contiguous and padded, or back from there.

    Where the table holds ``groups`` of values, the copy has the weight of the group for each value. Returns the number
    of cells of the copy.
    """
    wide = _pad(number)
    for line in range(lines):
        begin = base + line // step * (groups * step) + line % step
        copy = live[start + line * wide : start + (line + 1) * wide]
        for value in range(number):
            cell = begin + (maps[map_start + value] if map_start >= 0 else value) * step
            if there:
                copy[value] = live[cell]
            else:
                live[cell] = copy[value]
        if there:
            copy[number:] = 0
    return lines * wide


@compile_kernel
def _move_level(
    live: Weights,
    begin: Any,
    step: Any,
    side_by_side: bool,
    number: int,
    old: int,
    new: int,
    maps: Indices,
    map_start: int,
    leaving: Any,
    entering: Any,
) -> None:
    """Update the weights of a clique that holds a level, when a record moves from one value to another."""
    left, entered = maps[map_start + old], maps[map_start + new]
    if left == entered:
        return
    if not side_by_side:
        live[begin + np.uint32(left) * step] = min(
            live[begin + np.uint32(left) * step] * leaving, np.float32(_MAX_WEIGHT)
        )
        cell = begin + np.uint32(entered) * step
        live[cell] = max(live[cell] * entering, np.float32(_MIN_WEIGHT))
        return
    for value in range(number):
        group, cell = maps[map_start + value], begin + np.uint32(value)
        if group == left:
            live[cell] = min(live[cell] * leaving, np.float32(_MAX_WEIGHT))
        elif group == entered:
            live[cell] = max(live[cell] * entering, np.float32(_MIN_WEIGHT))


@_compile_fast_math
def _find_cells(
    columns: Columns,
    low: int,
    filled: int,
    opening: int,
    closing: int,
    bases: Indices,
    member_starts: Indices,
    members: Indices,
    strides: Indices,
    cells: NDArray[np.uint32],
) -> None:
    """The cell of each record's first value in each clique of an attribute."""
    for entry in range(opening, closing):
        own = cells[entry - opening]
        own[:filled] = np.uint32(bases[entry])
        for part in range(member_starts[entry], member_starts[entry + 1]):
            column, stride = columns[members[part], low : low + filled], np.uint32(strides[part])
            for row in range(filled):
                own[row] += np.uint32(column[row]) * stride


def _multiply_vectors(typing: Any, live: Any, cells: Any, block: Any, position: Any, weights: Any) -> Any:
    """Compute ``_LANES`` contiguous weights from ``block`` on: products of cells over all cliques of a record.

    Written as vector instructions, because the compiler makes eight multiplications of the equivalent loop:

        for lane in range(_LANES):
            weights[block + lane] = 1
            for part in range(len(cells)):
                weights[block + lane] *= live[cells[part, position] + block + lane]
    """

    def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kinds = signature.args
        tables, indices, target = (
            context.make_array(kinds[at])(context, builder, given[at]) for at in (0, 1, len(kinds) - 1)
        )
        block, position = (context.cast(builder, given[at], kinds[at], types.intp) for at in (2, 3))
        vector = ir.VectorType(ir.FloatType(), _LANES)
        product = cgutils.alloca_once_value(builder, ir.Constant(vector, [1.0] * _LANES))  # type: ignore[no-untyped-call]
        parts, row = cgutils.unpack_tuple(builder, indices.shape)  # type: ignore[no-untyped-call]
        with cgutils.for_range(builder, parts) as loop:
            at = builder.add(builder.mul(loop.index, row), position)
            cell = builder.zext(builder.load(builder.gep(indices.data, [at])), block.type)
            near = builder.gep(tables.data, [builder.add(cell, block)])
            vectors = builder.load(builder.bitcast(near, vector.as_pointer()), align=4)
            builder.store(builder.fmul(builder.load(product), vectors), product)
        out = builder.bitcast(builder.gep(target.data, [block]), vector.as_pointer())
        builder.store(builder.load(product), out, align=4)
        return context.get_dummy_value()

    return types.void(live, cells, block, position, weights), build


_multiply: Any = intrinsic(_multiply_vectors)


@_compile_fast_math
def _weigh(
    live: Weights,
    cells: NDArray[np.uint32],
    apart: Indices,
    side_by_side: bool,
    number: int,
    position: int,
    old: int,
    stay: Any,
    factors: Weights,
    weights: Weights,
) -> Any:
    """Compute the weight of each value for one record; returns their sum."""
    if side_by_side:
        for block in range(0, number, _LANES):
            _multiply(live, cells, block, position, weights)
    elif number == 2:
        zero, one = np.float32(1), np.float32(1)
        for part in range(len(apart)):
            begin = cells[part, position]
            zero *= live[begin]
            one *= live[begin + np.uint32(apart[part])]
        weights[0], weights[1] = zero, one
    else:
        weights[:number] = 1
        for part in range(len(apart)):
            begin, step = cells[part, position], apart[part]
            for value in range(number):
                weights[value] *= live[begin + np.uint32(value * step)]
    weights[old] *= stay
    if len(factors) > 0:
        for value in range(number):
            weights[value] *= factors[value]
    total = np.float32(0)
    for value in range(number):
        total += weights[value]
    if total > np.float32(_MIN_SUM) and total < np.float32(_MAX_SUM):
        return total
    none, no_weights = apart[:0], weights[:0]
    return _weigh_rescaled(
        live, cells, apart, side_by_side, number, position, old, stay, factors, weights, none, none, none, no_weights
    )


@_compile_fast_math
def _weigh_levels(
    live: Weights,
    cells: NDArray[np.uint32],
    apart: Indices,
    side_by_side: bool,
    number: int,
    position: int,
    old: int,
    stay: Any,
    factors: Weights,
    weights: Weights,
    own: Indices,
    map_starts: Indices,
    maps: Indices,
    leaving: Weights,
) -> Any:
    """The same where some cliques hold a level: a record counts in the cell of every value in the group of its own."""
    if side_by_side:
        for block in range(0, number, _LANES):
            _multiply(live, cells, block, position, weights)
    else:
        weights[:number] = 1
        for part in range(len(apart)):
            begin, step, start = cells[part, position], apart[part], map_starts[part]
            for value in range(number):
                weights[value] *= live[begin + np.uint32((maps[start + value] if start >= 0 else value) * step)]
    weights[old] *= stay
    for part in range(len(apart)):
        start = map_starts[part]
        if start >= 0:
            group, without = maps[start + old], leaving[own[part]]
            for value in range(number):
                if maps[start + value] == group:
                    weights[value] *= without
    if len(factors) > 0:
        for value in range(number):
            weights[value] *= factors[value]
    total = np.float32(0)
    for value in range(number):
        total += weights[value]
    if total > np.float32(_MIN_SUM) and total < np.float32(_MAX_SUM):
        return total
    return _weigh_rescaled(
        live, cells, apart, side_by_side, number, position, old, stay, factors, weights, own, map_starts, maps, leaving
    )


@compile_kernel
def _weigh_rescaled(
    live: Weights,
    cells: NDArray[np.uint32],
    apart: Indices,
    side_by_side: bool,
    number: int,
    position: int,
    old: int,
    stay: Any,
    factors: Weights,
    weights: Weights,
    own: Indices,
    map_starts: Indices,
    maps: Indices,
    leaving: Weights,
) -> Any:
    """The same with the largest weight scaled to 1 after every clique."""
    for value in range(number):
        weights[value] = np.float32(1)
    if len(factors) > 0:
        for value in range(number):
            weights[value] = factors[value]
    weights[old] *= stay
    for part in range(len(apart)):
        begin, step, largest = cells[part, position], np.uint32(apart[part]), np.float32(0)
        start = map_starts[part] if len(map_starts) > 0 else -1
        for value in range(number):
            group = maps[start + value] if start >= 0 and not side_by_side else value
            weights[value] *= live[begin + np.uint32(group) * step]
            if start >= 0 and maps[start + value] == maps[start + old]:
                weights[value] *= leaving[own[part]]
            largest = max(largest, weights[value])
        if largest > 0:
            for value in range(number):
                weights[value] /= largest
    total = np.float32(0)
    for value in range(number):
        total += weights[value]
    return total


@compile_kernel
def _sample_value(weights: Weights, number: int, total: Any, uniform: Any) -> int:
    """The first value at which the cumulative weight exceeds the share ``uniform`` of the total."""
    reach, value, passed = uniform * total, 0, weights[0]
    while passed <= reach and value < number - 1:
        value += 1
        passed += weights[value]
    while weights[value] == 0 and value > 0:  # the total, summed in another order, may be a little too large
        value -= 1
    return value


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────


@compile_kernel
def count(
    columns: Columns,
    first: int,
    stop: int,
    starts: Indices,
    attributes: Indices,
    strides: Indices,
    offsets: Indices,
    totals: Indices,
) -> None:
    """Add the records ``first … stop−1`` to the table of every clique.

    Clique ``c`` has the ``attributes[starts[c]:starts[c+1]]`` with ``strides`` alike; its cells are
    ``totals[offsets[c]:offsets[c+1]]``.
    """
    cells = np.empty(_BLOCK, np.uint32)
    for clique in range(len(starts) - 1):
        table = totals[offsets[clique] : offsets[clique + 1]]
        for low in range(first, stop, _BLOCK):
            filled = min(_BLOCK, stop - low)
            for row in range(filled):
                cells[row] = 0
            for part in range(starts[clique], starts[clique + 1]):
                column, stride = columns[attributes[part], low : low + filled], np.uint32(strides[part])
                for row in range(filled):
                    cells[row] += np.uint32(column[row]) * stride
            for row in range(filled):
                table[cells[row]] += 1


# ── sampling from a table ────────────────────────────────────────────────────────────────────────────────


@compile_kernel
def sample_conditional(
    rows: Indices, order: Indices, cumulative: NDArray[np.float64], begins: NDArray[np.float64], sampled: Indices
) -> None:
    """Sample a column for each record, by the ``cumulative`` weights of its row.

    Systematic sampling: the records of a row, in the given ``order``, take points at equal distances along its weights,
    the first at a share ``begins[row]`` of a distance. So each column is sampled as often as expected, up to rounding.
    """
    last = cumulative.shape[1] - 1
    members, taken = np.zeros(len(cumulative), np.int64), np.zeros(len(cumulative), np.int64)
    for record in range(len(rows)):
        members[rows[record]] += 1
    for record in order:
        row = rows[record]
        weights = cumulative[row]
        reach = (taken[row] + begins[row]) / members[row] * weights[last]
        taken[row] += 1
        low, high = 0, last
        while low < high:  # the first column whose cumulative weight is beyond
            middle = (low + high) // 2
            if weights[middle] > reach:
                high = middle
            else:
                low = middle + 1
        sampled[record] = low
