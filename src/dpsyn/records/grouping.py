"""Codes merged into groups, and groups drawn apart again.

The one idea behind bins and every other coarsening: on the way in a table of group numbers is looked up, on the
way out a member of the group is drawn by released weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Which group each code belongs to; groups are numbered 0, 1, … and none is empty."""

    group_of: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not np.array_equal(np.unique(self.group_of), np.arange(self.size)):
            raise InternalError("groups must be numbered from 0 without gaps")
        self.group_of.setflags(write=False)

    @property
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

    def draw(self, groups: NDArray[Any], weights: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
        """A member of every group, drawn in proportion to non-negative weights; a group of zeros evenly."""
        weights = np.where(self.sums(weights)[self.group_of] > 0, weights, 1.0)
        order = np.argsort(self.group_of, kind="stable")
        upper = np.cumsum(weights[order])
        lower = np.concatenate([[0.0], upper])
        first = np.searchsorted(self.group_of[order], np.arange(self.size))
        heavy = np.flatnonzero(weights[order] > 0)
        last = heavy[np.searchsorted(self.group_of[order][heavy], np.arange(self.size), side="right") - 1]
        start, mass = lower[first], upper[last] - lower[first]
        target = start[groups] + rng.random(len(groups)) * mass[groups]
        place = np.searchsorted(upper, target, side="right")
        members: NDArray[np.int64] = order[np.clip(place, first[groups], last[groups])]
        return members
