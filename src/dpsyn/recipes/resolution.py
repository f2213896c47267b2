"""The levels at which cliques are predicted, scored and measured.

A number is measured with others at the level that the noise of the table supports. The codes of the model are those of
the finest level; a table at a coarser level is a sum over them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import Grouping, Levels, Recoding
from dpsyn.inference import count_parameters
from dpsyn.marginals import Clique

Counts = NDArray[np.float64]

Groups = Mapping[str, Grouping]
"""For the attributes of a table that it counts at a coarser level, the groups of their codes."""

TableAtLevels = tuple[Clique, Groups]
"""A marginal to measure: its attributes, and the levels of those that are measured more coarsely."""

SCORED_GROUPS = 8
"""Pairs are scored at the finest level of at most so many groups, larger tables at levels that give them about the same
number of cells. Eight groups show the whole distance of two numbers from independence."""

MAX_LEVEL_RATIO = 3
"""The number of groups of one attribute is at most so many times that of another one in the same table."""

LEVEL_POWER = 0.85
"""A level of k groups loses k^(−0.85) of what an attribute tells about others. Fitted to six tables and checked on
others (``bench/levels.py``): over all halves of eight tables, the mean loss of k × k groups on the other half differs
from the rule by .07 on average for k = 2 … 12, and from a power fitted to the first half by as much."""


@dataclass(frozen=True, slots=True, eq=False)
class Resolution:
    """The levels at which tables can be measured.

    Attributes:
        levels: the levels of the attributes that have several.
        sizes: the number of codes of every attribute.
        max_cells: the largest number of cells of a table of three or more attributes.
        max_pair_cells: that of a pair.
    """

    levels: Mapping[str, Levels]
    sizes: Mapping[str, int]
    max_cells: int
    max_pair_cells: int

    def finest(self, clique: Clique) -> Groups:
        """The finest level at which a clique may be measured: codes for most pairs, coarser groups for others."""
        groups: Groups = {}
        if len(clique) < 3 and self.is_measurable(clique, groups):
            return groups
        for size in sorted({size for name in clique if name in self.levels for size in self.levels[name].sizes})[::-1]:
            groups = self._at_most(clique, size)
            if self.is_measurable(clique, groups):
                break
        return groups

    def is_measurable(self, clique: Clique, groups: Groups) -> bool:
        """Whether a table is small enough at these levels."""
        return self.count_cells(clique, groups) <= (self.max_cells if len(clique) > 2 else self.max_pair_cells)

    def scoring_groups(self, clique: Clique) -> Groups:
        """The groups of a clique's attributes by which it is scored; pairs by all codes of a list."""
        groups = self._at_most(clique, max(2, round(SCORED_GROUPS ** (2 / max(2, len(clique))))))
        return groups if len(clique) > 2 else {**groups, **{n: self.levels[n].groups[-1] for n in self._lists(clique)}}

    def scored_by_hierarchy(self, clique: Clique) -> Groups | None:
        """The groups by which a pair is scored once more if it holds a list that has levels, to see what they lose."""
        lists = self._lists(clique)
        if len(clique) > 2 or not lists:
            return None
        return {**self.scoring_groups(clique), **{name: self.levels[name].groups[0] for name in lists}}

    def _lists(self, clique: Clique) -> list[str]:
        """The attributes of a clique whose levels are those of a hierarchy."""
        found = [(name, self.levels[name]) for name in clique if name in self.levels]
        return [name for name, levels in found if not levels.ordered and not levels.told_apart]

    def options(self, clique: Clique) -> list[Groups]:
        """All levels at which a clique may be measured; those of its attributes have similar numbers of groups."""
        names = [name for name in clique if name in self.levels]
        if len(clique) > 2:
            sizes = sorted({size for name in names for size in self.levels[name].sizes} or {1})
            every = {
                tuple(groups[n].size for n in names): groups for groups in (self._at_most(clique, s) for s in sizes)
            }
            return [groups for groups in every.values() if self.is_measurable(clique, groups)]
        choices = [[(name, level) for level in self.levels[name].groups] for name in names]
        every_pair = [dict(choice) for choice in product(*choices)]
        return [g for g in every_pair if self._is_balanced(g) and self.is_measurable(clique, g)]

    def _is_balanced(self, groups: Groups) -> bool:
        """Whether the numbers of groups of ordered attributes are similar; lists may have any."""
        sizes = [level.size for name, level in groups.items() if self.levels[name].ordered]
        return max(sizes, default=1) <= MAX_LEVEL_RATIO * min(sizes, default=1)

    def _at_most(self, clique: Clique, size: int) -> Groups:
        return {name: self.levels[name].at_most(size) for name in clique if name in self.levels}

    def count_cells(self, clique: Clique, groups: Groups) -> int:
        """The number of cells of a table at these levels."""
        return math.prod([groups[name].size if name in groups else self.sizes[name] for name in clique])

    def count_parameters(self, clique: Clique, shape: Sequence[int]) -> int | None:
        """The parameters of a table of this shape if it is smoothed; None if it is not."""
        return count_parameters(shape, [name in self.levels and self.levels[name].ordered for name in clique])

    def kept_share(self, groups: Groups, by_hierarchy: float = 1.0) -> float:
        """The part of a table's distance from the model that it shows at these levels.

        ``by_hierarchy`` is the part that a coarser level of a list shows, which was scored. A level by frequency shows
        what depends on the values that it tells apart.
        """
        shown = [
            found.told_apart[found.sizes.index(groups[n].size)] for n in groups if (found := self.levels[n]).told_apart
        ]
        ordered = [level for name, level in groups.items() if self.levels[name].ordered]
        coarse = any(name in self._lists(tuple(groups)) for name in self.coarser(groups))
        shown += [1 - math.pow(level.size, -LEVEL_POWER) for level in ordered]
        return math.prod(shown) * (by_hierarchy if coarse else 1.0)

    def coarser(self, groups: Groups) -> Groups:
        """Those of the groups that are coarser than the codes of the model."""
        return {name: level for name, level in groups.items() if level.size < len(level.group_of)}


@dataclass(frozen=True, slots=True, eq=False)
class PredictedTable:
    """What the model predicts for a clique, at the finest level at which it may be measured.

    Attributes:
        clique: the attributes.
        groups: that level, of the attributes for which it is coarser than the model's codes.
        counts: the predicted counts.
    """

    clique: Clique
    groups: Groups
    counts: Counts

    def at(self, groups: Groups) -> Counts:
        """The predicted counts at a coarser level."""
        steps = {
            name: merge_groups(self.groups[name], level) if name in self.groups else level
            for name, level in groups.items()
        }
        return coarsen_table(self.counts, self.clique, steps)


def merge_groups(finer: Grouping, coarser: Grouping) -> Grouping:
    """The coarser group of every finer group."""
    union = np.zeros(finer.size, np.int64)
    union[finer.group_of] = coarser.group_of
    return Grouping(union)


def coarsen_table(counts: Counts, clique: Clique, groups: Groups) -> Counts:
    """A table with the codes of some attributes merged into groups."""
    for name, level in groups.items():
        axis = clique.index(name)
        moved = np.moveaxis(counts, axis, 0)
        order = np.argsort(level.group_of, kind="stable")
        starts = np.searchsorted(level.group_of[order], np.arange(level.size))
        counts = np.moveaxis(np.add.reduceat(moved[order], starts, axis=0), 0, axis)
    return counts


def coarsen_recoding(recoding: Recoding, groups: Groups) -> Recoding:
    """A recoding with the codes of some attributes merged into groups."""
    for name, level in groups.items():
        recoding = recoding.merge(name, level)
    return recoding


def count_all_cells(resolution: Resolution, tables: Sequence[TableAtLevels]) -> int:
    """The number of cells of all tables together."""
    return sum(resolution.count_cells(clique, groups) for clique, groups in tables)
