"""What merging bases, or marginals, gains, compiled. Arrays in, arrays out; whoever calls has checked everything."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsyn.selection.pair_selection import CELL_POWER

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _compile(function: _Function) -> _Function:
    """Compile on the first call and keep the result on disk; other threads run meanwhile."""
    return cast(_Function, njit(cache=True, nogil=True)(function))


@_compile
def merge_changes(
    members: NDArray[np.bool_],
    rows: NDArray[np.int64],
    precision: NDArray[np.float64],
    max_items: int,
    changes: NDArray[np.float64],
) -> None:
    """For each basis of ``rows`` and each other one: how their merging changes Σ 1/precision; ∞ if it is too long.

    ``members`` is bases × items; a row without items is no basis. ``precision`` is items × items: of the items on its
    diagonal, of pairs above it, Σ 2^(|X|−|B|) over the bases B that hold X; 0 for pairs that do not matter. ``changes``
    is symmetric.
    """
    bases, items = members.shape
    listed, sizes = np.empty((bases, max_items), np.int64), np.zeros(bases, np.int64)
    for basis in range(bases):
        for item in range(items):
            if members[basis, item]:
                listed[basis, sizes[basis]] = item
                sizes[basis] += 1
    fresh = np.zeros(bases, np.bool_)
    for row in rows:
        fresh[row] = True
    union = np.empty(2 * max_items, np.int64)
    for row in rows:
        for other in range(bases):
            if fresh[other] and other <= row:
                continue  # the same two the other way round
            change = np.inf
            if other != row and sizes[other] > 0 and sizes[row] > 0:
                size = _union(listed[row, : sizes[row]], listed[other, : sizes[other]], union)
                if size <= max_items:
                    change = _merge_change(members, sizes, row, other, union[:size], precision)
            changes[row, other] = change
            changes[other, row] = change


@_compile
def _union(one: NDArray[np.int64], two: NDArray[np.int64], union: NDArray[np.int64]) -> int:
    """Two ascending lists as one; and how long it is."""
    size, left, right = 0, 0, 0
    while left < len(one) or right < len(two):
        if right == len(two) or (left < len(one) and one[left] <= two[right]):
            if right < len(two) and one[left] == two[right]:
                right += 1
            union[size] = one[left]
            left += 1
        else:
            union[size] = two[right]
            right += 1
        size += 1
    return size


@_compile
def _merge_change(
    members: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    first: int,
    second: int,
    union: NDArray[np.int64],
    precision: NDArray[np.float64],
) -> float:
    more, less, fewer = 2.0 ** -len(union), 2.0 ** -sizes[first], 2.0 ** -sizes[second]
    change = 0.0
    for place in range(len(union)):
        one = union[place]
        for other in range(place, len(union)):
            two = union[other]
            before = precision[one, two]
            if before > 0:
                gained = more
                if members[first, one] and members[first, two]:
                    gained -= less
                if members[second, one] and members[second, two]:
                    gained -= fewer
                change += 1 / (before + (2.0 if one == two else 4.0) * gained) - 1 / before
    return change


@_compile
def growth_changes(
    held: NDArray[np.bool_],
    alive: NDArray[np.bool_],
    grew: NDArray[np.bool_],
    refused: NDArray[np.bool_],
    cells: NDArray[np.float64],
    weights: NDArray[np.float64],
    asked: NDArray[np.int64],
    starts: NDArray[np.int64],
    needs: NDArray[np.float64],
    precision: NDArray[np.float64],
    sizes: NDArray[np.float64],
    importance: NDArray[np.float64],
    max_cells: int,
    changed: NDArray[np.bool_],
    changes: NDArray[np.float64],
) -> None:
    """How W and Σ needs/√precision change if a marginal grows by an attribute and those that it then holds are dropped.

    ``held`` is marginals × attributes. ``asked`` has the attributes of each table asked for, the last one repeated;
    those that begin with attributes a and b are from ``starts``[a·attributes + b] to the next. A marginal that never
    ``grew`` is the table in its row. ``changes`` is 2 × marginals × attributes, ∞ and 0 where there is nothing
    to gain; only what has two attributes together that ``changed`` has is worked out anew.
    """
    rows, places = held.shape
    inside, dropped, own = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(places + 1, np.int64)
    larger, many = np.empty((places, rows), np.int64), np.zeros(places, np.int64)
    for row in range(rows):
        for place in range(places):
            if alive[row] and grew[row] and held[row, place]:
                larger[place, many[place]] = row
                many[place] += 1
    for row in range(rows):
        if not alive[row]:
            for place in range(places):
                changes[0, row, place], changes[1, row, place] = np.inf, 0.0
            continue
        grown, touched, many_own = held[row].copy(), False, 0
        for place in range(places):
            if held[row, place]:
                for before in own[:many_own]:
                    touched = touched or changed[before, place]
                own[many_own] = place
                many_own += 1
        for place in range(places):
            concerned = touched
            for other in own[:many_own]:
                concerned = concerned or changed[other, place]
            if not concerned:
                continue
            changes[0, row, place], changes[1, row, place] = np.inf, 0.0
            size = cells[row] * sizes[place]
            if held[row, place] or refused[row, place]:
                continue
            grown[place] = True
            dropped[0], drops, tables, fits = row, 1, 0, size <= max_cells
            own[many_own] = place
            for last in range(many_own + 1):
                for before in range(last):
                    pair = min(own[before], own[last]) * places + max(own[before], own[last])
                    for table in range(starts[pair], starts[pair + 1]):
                        if _holds(grown, asked[table]):
                            inside[tables] = table
                            tables += 1
                            if alive[table] and not grew[table] and table != row:
                                dropped[drops] = table
                                drops += 1
                                fits = fits or cells[table] == size  # it is there already
            for other in larger[place, : many[place]]:
                if _within(held[other], grown):
                    dropped[drops] = other
                    drops += 1
            grown[place] = False
            if drops == 1 or not fits:
                continue
            weight = weights[row] * (sizes[place] * importance[place]) ** CELL_POWER
            saved, error = 0.0, 0.0
            for drop in range(drops):
                saved += weights[dropped[drop]]
            for at in range(tables):
                now = precision[inside[at]]
                after = now + weight / size
                for drop in range(drops):
                    if _holds(held[dropped[drop]], asked[inside[at]]):
                        after -= weights[dropped[drop]] / cells[dropped[drop]]
                error += needs[inside[at]] * (1 / math.sqrt(after) - 1 / math.sqrt(now))
            changes[0, row, place] = weight - saved
            changes[1, row, place] = error


@_compile
def _within(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> bool:
    for place in range(len(one)):
        if one[place] and not other[place]:
            return False
    return True


@_compile
def _holds(held: NDArray[np.bool_], attributes: NDArray[np.int64]) -> bool:
    for place in attributes:
        if not held[place]:
            return False
    return True
