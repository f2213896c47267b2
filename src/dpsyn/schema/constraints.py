"""Rules as statements about the cells of measured attributes.

A rule may name derived attributes; their values follow from the cells of another one, so in the end every rule speaks
of measured attributes. Of orders and sums a cell, which stands for several values, can only say whether they can hold:
values are then chosen inside the cells so that they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.schema.relations import Impossible, Order, Sum, Total, Where
from dpsyn.schema.scales import Mask, Numbers, Scale, derived_cells, scales_of

if TYPE_CHECKING:
    from dpsyn.schema.schema import Schema

Cells = NDArray[Any]
"""Rows × measured attributes of cells."""

Domains = dict[int, Numbers]
"""Cells that attributes can still have, by their places."""

Selection = tuple[tuple[int, Mask], ...]
"""For some attributes, by their places, which of their cells are meant."""


@dataclass(frozen=True, slots=True, eq=False)
class Forbidden:
    """A combination that no row has: not all of these attributes are in the cells selected."""

    number: int
    selection: Selection

    @property
    def places(self) -> tuple[int, ...]:
        """The attributes it speaks of."""
        return tuple(place for place, _ in self.selection)

    def holds(self, cells: Cells) -> Mask:
        """Which rows keep it."""
        return ~selected(self.selection, cells)

    def narrow(self, domains: Domains) -> bool:
        """Take cells out of domains that cannot be; whether any combination is left."""
        outside = [(place, mask) for place, mask in self.selection if not mask[domains[place]].all()]
        if len(outside) == 1:
            place, mask = outside[0]
            domains[place] = domains[place][~mask[domains[place]]]
        return bool(outside)


@dataclass(frozen=True, slots=True, eq=False)
class Ascending:
    """Values that ascend from left to right; those that are missing are passed over."""

    number: int
    scales: tuple[Scale, ...]
    strict: bool

    @property
    def places(self) -> tuple[int, ...]:
        """The measured attributes that it speaks of."""
        return tuple(dict.fromkeys(scale.place for scale in self.scales))

    def holds(self, cells: Cells) -> Mask:
        """Which rows have cells in which it can hold: the lowest values that ascend are within them."""
        possible = np.ones(len(cells), np.bool_)
        reach = np.full(len(cells), -(2**62), np.int64)
        for scale in self.scales:
            own = cells[:, scale.place]
            there = ~scale.missing[own]
            step = np.maximum(scale.first[own], scale.at_least(reach))
            possible &= ~there | (step <= scale.last[own])
            reach = np.where(there, scale.common(step) + self.strict, reach)
        return possible

    def kept(self, values: Sequence[Numbers], missing: Sequence[Mask]) -> Mask:
        """Which rows keep it, given all values on the common scale."""
        good = np.ones(len(values[0]), np.bool_)
        reach = np.full(len(good), -(2**62), np.int64)
        for value, empty in zip(values, missing, strict=True):
            good &= empty | (value >= reach)
            reach = np.where(empty, reach, value + self.strict)
        return good

    def narrow(self, domains: Domains) -> bool:
        """Take cells out of domains that cannot be; whether any combination is left."""
        for after, right in enumerate(self.scales):
            for left in self.scales[:after]:
                if not _narrow_pair(left, right, self.strict, domains):
                    return False
        return True


@dataclass(frozen=True, slots=True, eq=False)
class Adding:
    """A total and its parts; where one of them is missing, nothing is said."""

    number: int
    scales: tuple[Scale, ...]
    """The total, then the parts."""

    @property
    def places(self) -> tuple[int, ...]:
        """The measured attributes that it speaks of."""
        return tuple(dict.fromkeys(scale.place for scale in self.scales))

    def holds(self, cells: Cells) -> Mask:
        """Which rows have cells in which it can hold."""
        own = [cells[:, scale.place] for scale in self.scales]
        missing = np.any([scale.missing[cell] for scale, cell in zip(self.scales, own, strict=True)], axis=0)
        lows, highs = ([end[cell] for end, cell in zip(ends, own, strict=True)] for ends in self._ends())
        possible: Mask = missing | ((sum(lows[1:]) <= highs[0]) & (sum(highs[1:]) >= lows[0]))
        return possible

    def kept(self, values: Sequence[Numbers], missing: Sequence[Mask]) -> Mask:
        """Which rows keep it, given all values on the common scale."""
        good: Mask = np.any(missing, axis=0) | (np.sum(values[1:], axis=0) == values[0])
        return good

    def narrow(self, domains: Domains) -> bool:
        """Take cells out of domains that cannot be; whether any combination is left."""
        if any(scale.missing[domains[scale.place]].any() for scale in self.scales):
            return True
        lows, highs = self._ends()
        least = [int(low[domains[s.place]].min()) for s, low in zip(self.scales, lows, strict=True)]
        most = [int(high[domains[s.place]].max()) for s, high in zip(self.scales, highs, strict=True)]
        for place, scale in enumerate(self.scales):
            own = domains[scale.place]
            if place == 0:
                fits = (highs[0][own] >= sum(least[1:])) & (lows[0][own] <= sum(most[1:]))
            else:
                others = sum(least[1:]) - least[place], sum(most[1:]) - most[place]
                fits = (lows[place][own] + others[0] <= most[0]) & (highs[place][own] + others[1] >= least[0])
            domains[scale.place] = own[fits]
            if not fits.any():
                return False
        return True

    def _ends(self) -> tuple[list[Numbers], list[Numbers]]:
        return [scale.low for scale in self.scales], [scale.high for scale in self.scales]


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """A number of rows that is public: those in the cells selected, or all rows if nothing is selected."""

    number: int
    selection: Selection
    count: int


Constraint = Forbidden | Ascending | Adding


@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """All rules of a schema.

    Attributes:
        names: the measured attributes; places count these.
        sizes: how many cells each has.
        by_row: what holds in every row.
        by_table: what holds of the whole table.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    by_row: tuple[Constraint, ...]
    by_table: tuple[Counted, ...]

    def components(self) -> list[tuple[tuple[int, ...], list[Constraint]]]:
        """Attributes that rules tie together, and those rules; what holds within one says nothing about another."""
        groups: list[tuple[set[int], list[Constraint]]] = []
        for constraint in self.by_row:
            places, rules = set(constraint.places), [constraint]
            apart = []
            for others, theirs in groups:
                if places & others:
                    places, rules = places | others, [*theirs, *rules]
                else:
                    apart.append((others, theirs))
            groups = [*apart, (places, rules)]
        return [(tuple(sorted(places)), rules) for places, rules in groups]


def constraints_of(schema: Schema) -> Constraints:
    """The rules of a schema; those on open attributes are left out until their values are bought."""
    measured = [attribute for attribute in schema.measured if attribute.coded]
    places = {attribute.name: place for place, attribute in enumerate(measured)}
    known = {*places, *(derive.name for derive in schema.derive if derive.source in places)}
    by_row: list[Constraint] = []
    by_table = []
    for number, rule in enumerate(schema.rules, start=1):
        if not known.issuperset(rule.mentions()):
            continue
        match rule:
            case Impossible():
                by_row.append(Forbidden(number, _selection(schema, rule.where, places)))
            case Order():
                by_row.append(Ascending(number, scales_of(schema, rule.attributes, places), rule.strict))
            case Sum():
                by_row.append(Adding(number, scales_of(schema, (rule.total, *rule.parts), places)))
            case Total():
                by_table.append(Counted(number, _selection(schema, rule.where, places), rule.count))
    return Constraints(tuple(places), tuple(a.cells for a in measured), tuple(by_row), tuple(by_table))


def _selection(schema: Schema, where: Where, places: dict[str, int]) -> Selection:
    """Conditions as cells of measured attributes; several that end at the same one are met together."""
    found: dict[int, Mask] = {}
    for name, condition in where:
        mask = schema[name].select(condition)
        derive = next((derive for derive in schema.derive if derive.name == name), None)
        place = places[name if derive is None else derive.source]
        mask = mask if derive is None else mask[derived_cells(schema, derive)]
        found[place] = found[place] & mask if place in found else mask
    return tuple(found.items())


def selected(selection: Selection, cells: Cells) -> Mask:
    """Which rows are in all the cells selected."""
    inside = np.ones(len(cells), np.bool_)
    for place, mask in selection:
        inside &= mask[cells[:, place]]
    return inside


def _narrow_pair(left: Scale, right: Scale, strict: bool, domains: Domains) -> bool:
    if not right.missing[domains[right.place]].any():
        highest = int(right.high[domains[right.place]].max())
        own = domains[left.place]
        domains[left.place] = own[left.missing[own] | (left.low[own] <= highest - strict)]
        if not len(domains[left.place]):
            return False
    if not left.missing[domains[left.place]].any():
        lowest = int(left.low[domains[left.place]].min())
        own = domains[right.place]
        domains[right.place] = own[right.missing[own] | (right.high[own] >= lowest + strict)]
    return bool(len(domains[right.place]))
