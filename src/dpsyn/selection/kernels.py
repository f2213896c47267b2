"""The gains of merging bases or marginals, compiled. Arrays in, arrays out; the caller has checked everything."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsyn.kernels import compile_kernel
from dpsyn.selection.pair_selection import CELL_POWER


@compile_kernel
def merge_changes(
    members: NDArray[np.bool_],
    rows: NDArray[np.int64],
    precision: NDArray[np.float64],
    max_items: int,
    changes: NDArray[np.float64],
) -> None:
    """For each basis of ``rows`` and each other basis: the change of Σ 1/precision by their merge; ∞ if it is too long.

    ``members`` is bases × items; a row without items is not a basis. ``precision`` is items × items: Σ 2^(|X|−|B|) over
    the bases B that hold X, of items on the diagonal, of pairs above it; 0 for pairs that are not needed. ``changes``
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
                continue  # the same two bases in the other order
            change = np.inf
            if other != row and sizes[other] > 0 and sizes[row] > 0:
                size = _union(listed[row, : sizes[row]], listed[other, : sizes[other]], union)
                if size <= max_items:
                    change = _merge_change(members, sizes, row, other, union[:size], precision)
            changes[row, other] = change
            changes[other, row] = change


@compile_kernel
def _union(one: NDArray[np.int64], two: NDArray[np.int64], union: NDArray[np.int64]) -> int:
    """Merge two ascending lists into ``union``; returns its length."""
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


@compile_kernel
def _merge_change(
    members: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    first: int,
    second: int,
    union: NDArray[np.int64],
    precision: NDArray[np.float64],
) -> float:
    """The change of Σ 1/precision if two bases are merged into their union."""
    of_union, of_first, of_second = 2.0 ** -len(union), 2.0 ** -sizes[first], 2.0 ** -sizes[second]
    change = 0.0
    for start in range(len(union)):
        one = union[start]
        for other in range(start, len(union)):
            two = union[other]
            current = precision[one, two]
            if current > 0:
                gained = of_union
                if members[first, one] and members[first, two]:
                    gained -= of_first
                if members[second, one] and members[second, two]:
                    gained -= of_second
                change += 1 / (current + (2.0 if one == two else 4.0) * gained) - 1 / current
    return change


@compile_kernel
def growth_changes(
    held: NDArray[np.bool_],
    alive: NDArray[np.bool_],
    grew: NDArray[np.bool_],
    refused: NDArray[np.bool_],
    cells: NDArray[np.float64],
    weights: NDArray[np.float64],
    requested: NDArray[np.int64],
    starts: NDArray[np.int64],
    needs: NDArray[np.float64],
    precision: NDArray[np.float64],
    sizes: NDArray[np.float64],
    importance: NDArray[np.float64],
    max_cells: int,
    changed: NDArray[np.bool_],
    changes: NDArray[np.float64],
) -> None:
    """The changes of W and Σ needs/√precision if a marginal grows by an attribute, and those it then holds are dropped.

    ``held`` is marginals × attributes. ``requested`` has the attributes of each requested table, the last one repeated;
    the tables that begin with attributes a and b are from ``starts``[a·attributes + b] to the next. A marginal that
    never ``grew`` is the requested table of its row. ``changes`` is 2 × marginals × attributes, ∞ and 0 where there is
    nothing to gain; only entries with two attributes of a ``changed`` pair are recomputed.
    """
    rows, attributes = held.shape
    inside, dropped, own = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(attributes + 1, np.int64)
    larger, larger_count = np.empty((attributes, rows), np.int64), np.zeros(attributes, np.int64)
    for row in range(rows):
        for attribute in range(attributes):
            if alive[row] and grew[row] and held[row, attribute]:
                larger[attribute, larger_count[attribute]] = row
                larger_count[attribute] += 1
    for row in range(rows):
        if not alive[row]:
            for attribute in range(attributes):
                changes[0, row, attribute], changes[1, row, attribute] = np.inf, 0.0
            continue
        grown, touched, own_count = held[row].copy(), False, 0
        for attribute in range(attributes):
            if held[row, attribute]:
                for other in own[:own_count]:
                    touched = touched or changed[other, attribute]
                own[own_count] = attribute
                own_count += 1
        for attribute in range(attributes):
            concerned = touched
            for other in own[:own_count]:
                concerned = concerned or changed[other, attribute]
            if not concerned:
                continue
            changes[0, row, attribute], changes[1, row, attribute] = np.inf, 0.0
            size = cells[row] * sizes[attribute]
            if held[row, attribute] or refused[row, attribute]:
                continue
            grown[attribute] = True
            dropped[0], drops, tables, fits = row, 1, 0, size <= max_cells
            own[own_count] = attribute
            for last in range(own_count + 1):
                for earlier in range(last):
                    pair = min(own[earlier], own[last]) * attributes + max(own[earlier], own[last])
                    for table in range(starts[pair], starts[pair + 1]):
                        if _holds(grown, requested[table]):
                            inside[tables] = table
                            tables += 1
                            if alive[table] and not grew[table] and table != row:
                                dropped[drops] = table
                                drops += 1
                                fits = fits or cells[table] == size  # a table of this size exists already
            for other in larger[attribute, : larger_count[attribute]]:
                if _within(held[other], grown):
                    dropped[drops] = other
                    drops += 1
            grown[attribute] = False
            if drops == 1 or not fits:
                continue
            weight = weights[row] * (sizes[attribute] * importance[attribute]) ** CELL_POWER
            saved, error = 0.0, 0.0
            for drop in range(drops):
                saved += weights[dropped[drop]]
            for at in range(tables):
                now = precision[inside[at]]
                after = now + weight / size
                for drop in range(drops):
                    if _holds(held[dropped[drop]], requested[inside[at]]):
                        after -= weights[dropped[drop]] / cells[dropped[drop]]
                error += needs[inside[at]] * (1 / math.sqrt(after) - 1 / math.sqrt(now))
            changes[0, row, attribute] = weight - saved
            changes[1, row, attribute] = error


@compile_kernel
def _within(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> bool:
    """Whether all attributes of one marginal are in the other."""
    for attribute in range(len(one)):  # noqa: SIM110 -- compiled loops are faster
        if one[attribute] and not other[attribute]:
            return False
    return True


@compile_kernel
def _holds(held: NDArray[np.bool_], attributes: NDArray[np.int64]) -> bool:
    """Whether a marginal holds all of these attributes."""
    for attribute in attributes:  # noqa: SIM110 -- compiled loops are faster
        if not held[attribute]:
            return False
    return True


@compile_kernel
def hull_steps(
    order: NDArray[np.int64], alternatives: NDArray[np.int64], weights: NDArray[np.float64], gains: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Steps along the upper hull of gain over weight of each set of alternatives, beginning at nothing.

    ``order`` has the candidates by set and weight. Returns for each step the candidate, the one before it (-1 if it is
    the first), and the gain per weight.
    """
    candidates, before = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    slopes = np.empty(len(order))
    first = stop = 0  # the hull of the current set
    for index in range(len(order)):
        candidate = order[index]
        if index == 0 or alternatives[candidate] != alternatives[order[index - 1]]:
            first = stop
        weight, gain = weights[candidate], gains[candidate]
        if stop > first and gain <= gains[candidates[stop - 1]]:
            continue
        while stop > first:
            last, previous = candidates[stop - 1], before[stop - 1]
            start_weight = weights[previous] if previous >= 0 else 0.0
            start_gain = gains[previous] if previous >= 0 else 0.0
            if (gain - gains[last]) * (weights[last] - start_weight) < (gains[last] - start_gain) * (
                weight - weights[last]
            ):
                break
            stop -= 1
        previous = candidates[stop - 1] if stop > first else -1
        start_weight = weights[previous] if previous >= 0 else 0.0
        start_gain = gains[previous] if previous >= 0 else 0.0
        candidates[stop], before[stop] = candidate, previous
        slopes[stop] = (gain - start_gain) / (weight - start_weight)
        stop += 1
    return candidates[:stop], before[:stop], slopes[:stop]
