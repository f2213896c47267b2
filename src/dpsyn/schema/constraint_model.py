"""Values of several numbers or dates on one scale, so that rules can compare and add them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import SchemaError
from dpsyn.schema.attributes import MISSING, Attribute
from dpsyn.schema.ranges import NUMPY_UNITS, Datetime, Integer, Ranged, Real
from dpsyn.schema.relations import Derive, Impossible, Order, RowConditions, Sum, Total

if TYPE_CHECKING:
    from dpsyn.schema.schema import Schema


IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

MAX_COMMON_VALUE = 2**60
"""Numbers on a common scale stay nearer to zero, so that sums of a few of them stay exact."""


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """An attribute of a rule, as its values follow from the cells of a measured attribute.

    Attributes:
        name: the attribute that the rule names.
        index: the measured attribute whose cells decide: itself, or the one that it is derived from.
        derived: whether the value follows from the cell alone.
        attribute: the kind of its values.
        unit: what one step is on the common scale: a factor for numbers, numpy's letter of the finest unit for dates.
        first: the lowest step in each cell.
        last: the highest step in each cell.
        missing: which cells mean that there is no value.
        low: the lowest value of each cell on the common scale.
        high: the highest value of each cell on the common scale.
    """

    name: str
    index: int
    derived: bool
    attribute: Ranged
    unit: int | str
    first: IntArray
    last: IntArray
    missing: Mask
    low: IntArray
    high: IntArray

    def to_common_scale(self, steps: IntArray) -> IntArray:
        """Steps of the attribute on the common scale; higher steps are higher numbers."""
        return _to_common_scale(self.attribute, self.unit, steps)

    def first_step_at_least(self, numbers: IntArray) -> IntArray:
        """The first step whose number on the common scale is not below the given one; it may lie beyond the range."""
        bounds = self.to_common_scale(np.array([0, self.attribute.steps - 1]))
        near = np.clip(numbers, bounds[0], bounds[1] + 1) - 1  # the last step below, then one more
        if isinstance(self.unit, int):
            return near // self.unit + 1 - self.attribute.origin
        own = f"datetime64[{NUMPY_UNITS[self.attribute.resolution]}]"  # type: ignore[attr-defined]
        return near.astype(f"datetime64[{self.unit}]").astype(own).astype(np.int64) + 1 - self.attribute.origin


def _to_common_scale(attribute: Ranged, unit: int | str, steps: IntArray) -> IntArray:
    coordinates = np.asarray(steps, np.int64) + attribute.origin
    if isinstance(unit, int):
        return coordinates * unit
    own = coordinates.astype(f"datetime64[{NUMPY_UNITS[attribute.resolution]}]")  # type: ignore[attr-defined]
    return own.astype(f"datetime64[{unit}]").astype(np.int64)


def align_scales(schema: Schema, names: Sequence[str], indices: dict[str, int]) -> tuple[Scale, ...]:
    """The attributes of a rule on one scale; ``indices`` are those of the measured attributes.

    A SchemaError if their numbers are too fine and too large to be compared exactly.
    """
    units = _common_units([schema[name] for name in names])
    scales = tuple(_scale(schema, name, indices, unit) for name, unit in zip(names, units, strict=True))
    for scale in scales:
        ends = [scale.attribute.origin, scale.attribute.origin + scale.attribute.steps]
        if isinstance(scale.unit, int) and max(abs(end) for end in ends) * scale.unit >= MAX_COMMON_VALUE:
            raise SchemaError(f"{scale.name!r} reaches too far to be compared with numbers of so many decimals")
    return scales


def _common_units(attributes: Sequence[Attribute]) -> list[int | str]:
    dates = [attribute for attribute in attributes if isinstance(attribute, Datetime)]
    if dates:
        letters = list(NUMPY_UNITS.values())
        finest = letters[max(letters.index(attribute.unit) for attribute in dates)]
        return [finest] * len(attributes)
    places = [attribute.decimal_places if isinstance(attribute, Real) else 0 for attribute in attributes]
    return [int(10 ** (max(places) - own)) for own in places]


def _scale(schema: Schema, name: str, places: dict[str, int], unit: int | str) -> Scale:
    attribute = schema[name]
    assert isinstance(attribute, Integer | Real | Datetime)  # the schema was checked
    edges = attribute.grid().edges
    derive = next((derive for derive in schema.derive if derive.name == name), None)
    cells = np.arange(attribute.cells) if derive is None else derived_cells(schema, derive)
    missing = cells >= attribute.proper_cells
    proper = np.where(missing, 0, cells)
    place = places[name if derive is None else derive.source]
    first, last = edges[proper], edges[proper + 1] - 1
    ends = (_to_common_scale(attribute, unit, first), _to_common_scale(attribute, unit, last))
    return Scale(name, place, derive is not None, attribute, unit, first, last, missing, *ends)


def derived_cells(schema: Schema, derive: Derive) -> IntArray:
    """The cell of a derived attribute for every cell of its source."""
    source, target = schema[derive.source], schema[derive.name]

    def cell_of(value: object) -> int:
        if value is None or (value == MISSING and target.has_missing):
            return target.null_cell
        return int(np.flatnonzero(target.select(value))[0])  # type: ignore[arg-type]

    cells = np.full(source.cells, cell_of(derive.otherwise), np.int64)
    for condition, value in derive.mapping:
        cells[source.select(condition)] = cell_of(value)
    return cells


# ── Rules as statements about the cells of measured attributes ──


CellMatrix = NDArray[Any]
"""Rows × measured attributes of cells."""

Domains = dict[int, IntArray]
"""Cells that attributes can still have, by their places."""

Selection = tuple[tuple[int, Mask], ...]
"""For some attributes, by their places, which of their cells are meant."""


@dataclass(frozen=True, slots=True, eq=False)
class StructuralZero:
    """A combination that no row has: not all of these attributes are in the cells selected."""

    number: int
    selection: Selection

    @property
    def indices(self) -> tuple[int, ...]:
        """The attributes it speaks of."""
        return tuple(place for place, _ in self.selection)

    def holds(self, cells: CellMatrix) -> Mask:
        """Which rows keep it."""
        return ~match_rows(self.selection, cells)

    def narrow(self, domains: Domains) -> bool:
        """Take cells out of domains that cannot be; whether any combination is left."""
        outside = [(place, mask) for place, mask in self.selection if not mask[domains[place]].all()]
        if len(outside) == 1:
            place, mask = outside[0]
            domains[place] = domains[place][~mask[domains[place]]]
        return bool(outside)


@dataclass(frozen=True, slots=True, eq=False)
class OrderConstraint:
    """Values that ascend from left to right; those that are missing are passed over."""

    number: int
    scales: tuple[Scale, ...]
    strict: bool

    @property
    def indices(self) -> tuple[int, ...]:
        """The measured attributes that it speaks of."""
        return tuple(dict.fromkeys(scale.index for scale in self.scales))

    def holds(self, cells: CellMatrix) -> Mask:
        """Which rows have cells in which it can hold: the lowest values that ascend are within them."""
        possible = np.ones(len(cells), np.bool_)
        reach = np.full(len(cells), -(2**62), np.int64)
        for scale in self.scales:
            own = cells[:, scale.index]
            there = ~scale.missing[own]
            step = np.maximum(scale.first[own], scale.first_step_at_least(reach))
            possible &= ~there | (step <= scale.last[own])
            reach = np.where(there, scale.to_common_scale(step) + self.strict, reach)
        return possible

    def holds_for_values(self, values: Sequence[IntArray], missing: Sequence[Mask]) -> Mask:
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
class SumConstraint:
    """A total and its parts; where one of them is missing, nothing is said."""

    number: int
    scales: tuple[Scale, ...]
    """The total, then the parts."""

    @property
    def indices(self) -> tuple[int, ...]:
        """The measured attributes that it speaks of."""
        return tuple(dict.fromkeys(scale.index for scale in self.scales))

    def holds(self, cells: CellMatrix) -> Mask:
        """Which rows have cells in which it can hold."""
        own = [cells[:, scale.index] for scale in self.scales]
        missing = np.any([scale.missing[cell] for scale, cell in zip(self.scales, own, strict=True)], axis=0)
        lows, highs = ([end[cell] for end, cell in zip(ends, own, strict=True)] for ends in self._ends())
        possible: Mask = missing | ((sum(lows[1:]) <= highs[0]) & (sum(highs[1:]) >= lows[0]))
        return possible

    def holds_for_values(self, values: Sequence[IntArray], missing: Sequence[Mask]) -> Mask:
        """Which rows keep it, given all values on the common scale."""
        good: Mask = np.any(missing, axis=0) | (np.sum(values[1:], axis=0) == values[0])
        return good

    def narrow(self, domains: Domains) -> bool:
        """Take cells out of domains that cannot be; whether any combination is left."""
        if any(scale.missing[domains[scale.index]].any() for scale in self.scales):
            return True
        lows, highs = self._ends()
        least = [int(low[domains[s.index]].min()) for s, low in zip(self.scales, lows, strict=True)]
        most = [int(high[domains[s.index]].max()) for s, high in zip(self.scales, highs, strict=True)]
        for place, scale in enumerate(self.scales):
            own = domains[scale.index]
            if place == 0:
                fits = (highs[0][own] >= sum(least[1:])) & (lows[0][own] <= sum(most[1:]))
            else:
                others = sum(least[1:]) - least[place], sum(most[1:]) - most[place]
                fits = (lows[place][own] + others[0] <= most[0]) & (highs[place][own] + others[1] >= least[0])
            domains[scale.index] = own[fits]
            if not fits.any():
                return False
        return True

    def _ends(self) -> tuple[list[IntArray], list[IntArray]]:
        return [scale.low for scale in self.scales], [scale.high for scale in self.scales]


@dataclass(frozen=True, slots=True, eq=False)
class TotalConstraint:
    """A number of rows that is public: those in the cells selected, or all rows if nothing is selected."""

    number: int
    selection: Selection
    count: int


RowConstraint = StructuralZero | OrderConstraint | SumConstraint


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintModel:
    """All rules of a schema.

    Attributes:
        names: the measured attributes; places count these.
        sizes: how many cells each has.
        row_constraints: what holds in every row.
        totals: what holds of the whole table.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    row_constraints: tuple[RowConstraint, ...]
    totals: tuple[TotalConstraint, ...]

    def components(self) -> list[tuple[tuple[int, ...], list[RowConstraint]]]:
        """Attributes that rules tie together, and those rules; what holds within one says nothing about another."""
        groups: list[tuple[set[int], list[RowConstraint]]] = []
        for constraint in self.row_constraints:
            places, rules = set(constraint.indices), [constraint]
            apart = []
            for others, theirs in groups:
                if places & others:
                    places, rules = places | others, [*theirs, *rules]
                else:
                    apart.append((others, theirs))
            groups = [*apart, (places, rules)]
        return [(tuple(sorted(places)), rules) for places, rules in groups]


def compile_constraints(schema: Schema) -> ConstraintModel:
    """The rules of a schema; those on open attributes are left out until their values are bought."""
    measured = [attribute for attribute in schema.measured_attributes if attribute.coded]
    places = {attribute.name: place for place, attribute in enumerate(measured)}
    known = {*places, *(derive.name for derive in schema.derive if derive.source in places)}
    by_row: list[RowConstraint] = []
    by_table = []
    for number, rule in enumerate(schema.rules, start=1):
        if not known.issuperset(rule.mentions()):
            continue
        match rule:
            case Impossible():
                by_row.append(StructuralZero(number, _selection(schema, rule.where, places)))
            case Order():
                by_row.append(OrderConstraint(number, align_scales(schema, rule.attributes, places), rule.strict))
            case Sum():
                by_row.append(SumConstraint(number, align_scales(schema, (rule.total, *rule.parts), places)))
            case Total():
                by_table.append(TotalConstraint(number, _selection(schema, rule.where, places), rule.count))
    return ConstraintModel(tuple(places), tuple(a.cells for a in measured), tuple(by_row), tuple(by_table))


def _selection(schema: Schema, where: RowConditions, places: dict[str, int]) -> Selection:
    """Conditions as cells of measured attributes; several that end at the same one are met together."""
    found: dict[int, Mask] = {}
    for name, condition in where:
        mask = schema[name].select(condition)
        derive = next((derive for derive in schema.derive if derive.name == name), None)
        place = places[name if derive is None else derive.source]
        mask = mask if derive is None else mask[derived_cells(schema, derive)]
        found[place] = found[place] & mask if place in found else mask
    return tuple(found.items())


def match_rows(selection: Selection, cells: CellMatrix) -> Mask:
    """Which rows are in all the cells selected."""
    inside = np.ones(len(cells), np.bool_)
    for place, mask in selection:
        inside &= mask[cells[:, place]]
    return inside


def _narrow_pair(left: Scale, right: Scale, strict: bool, domains: Domains) -> bool:
    if not right.missing[domains[right.index]].any():
        highest = int(right.high[domains[right.index]].max())
        own = domains[left.index]
        domains[left.index] = own[left.missing[own] | (left.low[own] <= highest - strict)]
        if not len(domains[left.index]):
            return False
    if not left.missing[domains[left.index]].any():
        lowest = int(left.low[domains[left.index]].min())
        own = domains[right.index]
        domains[right.index] = own[right.missing[own] | (right.high[own] >= lowest + strict)]
    return bool(len(domains[right.index]))
