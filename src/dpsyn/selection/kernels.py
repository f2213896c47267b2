"""What merging two bases gains, compiled. Arrays in, arrays out; whoever calls has checked everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _compiled(function: _Function) -> _Function:
    """Compile on the first call and keep the result on disk; other threads run meanwhile."""
    return cast(_Function, njit(cache=True, nogil=True)(function))


@_compiled
def merge_changes(
    members: NDArray[np.bool_],
    rows: NDArray[np.int64],
    precision: NDArray[np.float64],
    longest: int,
    changes: NDArray[np.float64],
) -> None:
    """For each basis of ``rows`` and each other one: how their merging changes Σ 1/precision; ∞ if it is too long.

    ``members`` is bases × items; a row without items is no basis. ``precision`` is items × items: of the items on its
    diagonal, of pairs above it, Σ 2^(|X|−|B|) over the bases B that hold X; 0 for pairs that do not matter. ``changes``
    is symmetric.
    """
    bases, items = members.shape
    listed, sizes = np.empty((bases, longest), np.int64), np.zeros(bases, np.int64)
    for basis in range(bases):
        for item in range(items):
            if members[basis, item]:
                listed[basis, sizes[basis]] = item
                sizes[basis] += 1
    fresh = np.zeros(bases, np.bool_)
    for row in rows:
        fresh[row] = True
    union = np.empty(2 * longest, np.int64)
    for row in rows:
        for other in range(bases):
            if fresh[other] and other <= row:
                continue  # the same two the other way round
            change = np.inf
            if other != row and sizes[other] > 0 and sizes[row] > 0:
                size = _union(listed[row, : sizes[row]], listed[other, : sizes[other]], union)
                if size <= longest:
                    change = _change(members, sizes, row, other, union[:size], precision)
            changes[row, other] = change
            changes[other, row] = change


@_compiled
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


@_compiled
def _change(
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
