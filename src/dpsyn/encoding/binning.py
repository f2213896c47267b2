"""Groups of codes: bins of cells, merged rare values, and short lists of labels.

All of them are a look-up table that maps codes to groups. Encoding looks up the group of a code; decoding samples a
member of the group, in proportion to released weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError, SchemaError
from dpsyn.schema import Attribute, Categorical, Ranged, Value


@dataclass(frozen=True, eq=False)
class Grouping:
    """The group of every code. Groups are numbered 0, 1, … and none is empty."""

    group_of: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not np.array_equal(np.unique(self.group_of), np.arange(self.size)):
            raise InternalError("groups must be numbered from 0 without gaps")
        self.group_of.setflags(write=False)

    @cached_property
    def size(self) -> int:
        """The number of groups."""
        return int(self.group_of.max()) + 1

    def merge(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """The group of every code."""
        groups: NDArray[np.int64] = self.group_of[codes]
        return groups

    def sums(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """The total weight of every group."""
        totals: NDArray[np.float64] = np.bincount(self.group_of, weights, self.size).astype(np.float64)
        return totals

    def sample_members(
        self, groups: NDArray[Any], weights: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Sample a code of each of ``groups``, in proportion to the non-negative weights of codes.

        A group whose weights are all zero is sampled uniformly.
        """
        weights = np.where(self.sums(weights)[self.group_of] > 0, weights, 1.0)
        order = np.argsort(self.group_of, kind="stable")
        upper = np.cumsum(weights[order])
        lower = np.concatenate([[0.0], upper])
        first = np.searchsorted(self.group_of[order], np.arange(self.size))
        heavy = np.flatnonzero(weights[order] > 0)
        last = heavy[np.searchsorted(self.group_of[order][heavy], np.arange(self.size), side="right") - 1]
        start, mass = lower[first], upper[last] - lower[first]
        target = start[groups] + rng.random(len(groups)) * mass[groups]
        index = np.searchsorted(upper, target, side="right")
        members: NDArray[np.int64] = order[np.clip(index, first[groups], last[groups])]
        return members


# ── cells of steps ───────────────────────────────────────────────────────────────────────────────────────────


_MAX_LOOKUP_BUCKETS = 1 << 16
_MAX_LOOKUP_CLIMBS = 6
"""If more edges than this lie in one bucket, a binary search is as fast."""


class CellLookup:
    """Finds the cell of every step by a few table look-ups; the result is that of a binary search over the edges.

    Steps are divided into buckets of equal width, a power of two. A table holds the cell of the first step of each
    bucket. From there, a step moves up over the edges inside its bucket, of which there are usually one or two.
    """

    def __init__(self, edges: NDArray[np.int64]) -> None:
        self._edges = edges
        self._shift = max(0, int(edges[-1] - 1).bit_length() - _MAX_LOOKUP_BUCKETS.bit_length() + 1)
        starts = np.arange((int(edges[-1] - 1) >> self._shift) + 1, dtype=np.int64) << self._shift
        self._first = np.searchsorted(edges, starts, side="right") - 1
        ends = np.searchsorted(edges, starts + (1 << self._shift) - 1, side="right") - 1
        self._climbs = int((np.minimum(ends, len(edges) - 2) - self._first).max())

    def __call__(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cell of every step."""
        if self._climbs > _MAX_LOOKUP_CLIMBS:
            return np.searchsorted(self._edges, steps, side="right") - 1
        cell: NDArray[np.int64] = self._first[steps >> self._shift]
        for _ in range(self._climbs):
            cell += steps >= self._edges[cell + 1]
        return cell


# ── bins of cells, as a plan declares them ───────────────────────────────────────────────────────────────────


def bucketize(attribute: Attribute, starts: Sequence[Value]) -> Grouping:
    """Group the cells of an attribute into bins, given the first value of each bin; *missing* has a bin of its own.

    Cells below the first start join the first bin. Listed values are in the order of their list.
    """
    if not isinstance(attribute, Ranged | Categorical):
        raise SchemaError(
            f"{attribute.name!r} is {attribute.kind}; only numbers, dates and listed values can have bins"
        )
    first_cells = [_cell_starting_at(attribute, start) for start in starts]
    if any(later <= earlier for earlier, later in pairwise(first_cells)):
        raise SchemaError(f"the bins of {attribute.name!r} must start at ascending values; sort them")
    bins: NDArray[np.int64] = np.searchsorted(first_cells[1:], np.arange(attribute.proper_cells), side="right")
    if attribute.has_missing:
        bins = np.append(bins, bins[-1] + 1)
    return Grouping(bins.astype(np.int64))


def _cell_starting_at(attribute: Ranged | Categorical, start: Value) -> int:
    """The cell whose first value is ``start``; a SchemaError if there is none."""
    cell = int(np.flatnonzero(attribute.select(start))[0])
    if isinstance(attribute, Ranged) and attribute.grid().edges[cell] != attribute.step_of(start):
        raise SchemaError(
            f"a bin of {attribute.name!r} cannot start at {start}, which lies inside a cell; "
            "list this value in the schema, under spikes or as the start of a bin"
        )
    return cell


# ── domain compression: rare values merged by their released counts (PrivSyn, section 4.3) ───────────────────


@dataclass(frozen=True, slots=True, eq=False)
class DomainCompression:
    """How the values of an attribute are merged.

    Attributes:
        grouping: frequent values keep a code of their own, in their order; all rare values share the last code.
        zeroed: whether the sum of the rare values is below the threshold too, so that their code counts as empty.
    """

    grouping: Grouping
    zeroed: bool


def merge_rare_values(counts: NDArray[np.float64], threshold: float) -> DomainCompression:
    """Keep the values whose noisy count reaches a threshold; merge the rare ones into one code.

    The counts of the rare values are summed. If the sum does not reach the threshold either, it counts as 0. Every
    value keeps a code, so every row has one. An attribute without any frequent value gets one code, which holds all
    rows.
    """
    frequent = counts >= threshold
    rank = np.cumsum(frequent) - 1
    codes = np.where(frequent, rank, np.count_nonzero(frequent))
    rare_sum = float(counts[~frequent].sum())
    zeroed = bool(frequent.any() and not frequent.all() and rare_sum < threshold)
    return DomainCompression(Grouping(codes.astype(np.int64)), zeroed)


# ── long lists of values, shortened for display ──────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class TopLabels:
    """The values that are shown with a label of their own; all others share one label.

    Attributes:
        labels: the labels, in the order of the values; that of the others comes last.
        position_of_code: for each value, the position of its label.
        others: the number of values that share the last label; 0 if every value has its own.
    """

    labels: tuple[str, ...]
    position_of_code: NDArray[np.int64]
    others: int

    def sums(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """The total weight of each label, given a weight for each value."""
        totals: NDArray[np.float64] = np.bincount(self.position_of_code, weights, len(self.labels)).astype(np.float64)
        return totals


def keep_top_labels(labels: tuple[str, ...], weights: NDArray[Any], max_labels: int) -> TopLabels:
    """Keep the labels of the values with the largest weights, at most ``max_labels`` in all; ties keep the first."""
    if len(labels) <= max_labels:
        return TopLabels(labels, np.arange(len(labels)), 0)
    kept = np.sort(np.argsort(-weights, kind="stable")[: max_labels - 1])
    positions = np.full(len(labels), max_labels - 1)
    positions[kept] = np.arange(max_labels - 1)
    others = len(labels) - len(kept)
    return TopLabels((*(labels[code] for code in kept), f"{others:,} others"), positions, others)
