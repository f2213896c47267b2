"""Levels: the values of an attribute in nested groups, from a few to many.

Those of an ordered attribute are ranges of about equal mass. A long list has those of a public hierarchy, or at each
level its most frequent values and one group of all others.

A table of several attributes is measured at the level that its noise supports. All tables of a model are sums over the
codes of the finest level, because levels are nested: each level divides one group of the level before.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding.binning import Grouping

LEVEL_SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32)
"""The numbers of groups of the levels: each has about the square root of two times the groups of the one before."""


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of an attribute.

    Attributes:
        codes: the code of every cell: its group at the finest level.
        groups: for each level, the group of every code; the coarsest level first, the finest last.
        ordered: whether groups are ranges of about equal mass; those of a list are not.
        told_apart: for the levels of a list by frequency, the part of the rows whose value each level tells apart;
            empty for other levels.
    """

    codes: Grouping
    groups: tuple[Grouping, ...]
    ordered: bool = True
    told_apart: tuple[float, ...] = ()

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of groups of each level."""
        return tuple(level.size for level in self.groups)

    def at_most(self, size: int) -> Grouping:
        """The finest level of at most so many groups; the coarsest if none has so few."""
        return next((level for level in reversed(self.groups) if level.size <= size), self.groups[0])


def equal_mass_levels(
    weights: NDArray[np.float64], max_groups: int, *, apart: Iterable[int] = (), min_mass: float = 0.0
) -> Levels:
    """Nested levels of contiguous groups of cells with about equal weight.

    The heaviest group that can be divided is divided where its halves are most nearly equal, again and again. So a cell
    that is heavier than a group becomes a group of its own, and a level of k groups divides one group of that of k−1.

    Args:
        weights: non-negative weights of the cells, in their order.
        max_groups: the maximum number of groups of the finest level.
        apart: cells that are a group of their own at every level, such as that of missing.
        min_mass: groups of less than twice this weight are not divided.
    """
    edges = {0, *(cell + after for cell in apart for after in (0, 1))} - {len(weights)}
    firsts = sorted(edges)
    cumulative = np.concatenate([[0.0], np.cumsum(np.maximum(weights, 0.0))])
    heap = [
        (-(cumulative[stop] - cumulative[first]), first, stop)
        for first, stop in zip(firsts, [*firsts[1:], len(weights)], strict=True)
    ]
    heapq.heapify(heap)
    cuts: list[int] = []
    while heap and len(firsts) + len(cuts) < max_groups:
        mass, first, stop = heapq.heappop(heap)
        if -mass < 2 * min_mass or -mass <= 0:
            break
        if (cut := _find_cut(cumulative, first, stop)) is None:
            continue
        cuts.append(cut)
        for part in ((first, cut), (cut, stop)):
            heapq.heappush(heap, (-(cumulative[part[1]] - cumulative[part[0]]), *part))
    finest = np.array(sorted([*firsts, *cuts]))
    codes = np.searchsorted(finest, np.arange(len(weights)), side="right") - 1
    sizes = sorted({size for size in LEVEL_SIZES if len(firsts) < size < len(finest)} | {len(finest)})
    groups = [
        np.searchsorted(sorted([*firsts, *cuts[: size - len(firsts)]]), finest, side="right") - 1 for size in sizes
    ]
    return Levels(Grouping(codes.astype(np.int64)), tuple(Grouping(group.astype(np.int64)) for group in groups))


FREQUENCY_SIZES, MIN_TOLD_APART = (8, 16, 32, 64, 128, 256), 0.5
"""The numbers of groups of the levels of a list by frequency, and the part of the rows whose value such a level tells
apart at least: one that tells fewer apart shows little of what depends on the list."""


def frequency_levels(
    counts: NDArray[np.float64], merged: Iterable[int] = (), sizes: Iterable[int] = FREQUENCY_SIZES, *, longest: int = 0
) -> Levels:
    """Levels of a list without a hierarchy: the most frequent values, and one group of all others.

    Args:
        counts: the estimated counts of its codes.
        merged: codes of rare values that were merged; they are among the others at every level.
        sizes: the numbers of groups of the levels, as far as these tell enough values apart.
        longest: the number of groups of one more level, however few values it tells apart; none if 0.
    """
    counts = np.maximum(counts, 0.0)
    order = counts.copy()
    order[list(merged)] = -1.0
    rank = np.argsort(np.argsort(-order, kind="stable"), kind="stable")
    total = max(float(counts.sum()), 1e-300)
    numbers = sorted(size for size in {*sizes, longest} if 0 < size < len(counts))
    groups = [Grouping(np.minimum(rank, size - 1)) for size in numbers]
    shares = [1 - float(counts[group.group_of == group.size - 1].sum()) / total for group in groups]
    kept = [
        (group, share)
        for group, share in zip(groups, shares, strict=True)
        if share >= MIN_TOLD_APART or group.size == longest
    ]
    every = Grouping(np.arange(len(counts)))
    levels, told_apart = zip(*kept, (every, 1.0), strict=True)
    return Levels(every, levels, ordered=False, told_apart=told_apart)


def _find_cut(cumulative: NDArray[np.float64], first: int, stop: int) -> int | None:
    """Where the cells ``first … stop−1`` are divided into the most equal halves; None if all weight is in one cell."""
    middle = (cumulative[first] + cumulative[stop]) / 2
    after = int(np.searchsorted(cumulative[first : stop + 1], middle)) + first
    inside = [cut for cut in (after - 1, after) if first < cut < stop]
    halves = {cut: min(cumulative[cut] - cumulative[first], cumulative[stop] - cumulative[cut]) for cut in inside}
    best = max(halves, key=lambda cut: halves[cut], default=None)
    return best if best is not None and halves[best] > 0 else None
