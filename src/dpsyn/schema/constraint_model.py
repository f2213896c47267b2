"""The rules of a schema, compiled into constraints on the cells of measured attributes.

Numbers and dates of different resolution are first put on a common scale, where rules can compare and add them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import SchemaError
from dpsyn.schema.attributes import MISSING, Attribute
from dpsyn.schema.clock import Time
from dpsyn.schema.ranges import NUMPY_UNITS, Datetime, Integer, Ranged, Real
from dpsyn.schema.relations import Derive, Impossible, Order, RowConditions, Sum, Total
from dpsyn.schema.timestamps import TimestampParts

if TYPE_CHECKING:
    from dpsyn.schema.schema import Schema


IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

MAX_COMMON_VALUE = 2**60
"""Bound on numbers on a common scale; sums of a few such numbers fit into 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """An attribute of a rule, with the values that each cell of a measured attribute allows it.

    Attributes:
        name: the attribute that the rule names.
        index: the index of the measured attribute whose cells determine it: itself, or the source it is derived from.
        derived: whether it is a derived attribute, whose value is determined by the cell alone.
        attribute: the kind of its values.
        unit: one step on the common scale: a factor for numbers and times of day, or the finest unit as a letter of
            numpy for dates.
        first: the lowest step in each cell.
        last: the highest step in each cell.
        missing: which cells have no value.
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
        """Convert steps of the attribute to the common scale; higher steps give higher numbers."""
        return _to_common_scale(self.attribute, self.unit, steps)

    def first_step_at_least(self, numbers: IntArray) -> IntArray:
        """The first step whose number on the common scale is not below the given one; it may be out of range."""
        bounds = self.to_common_scale(np.array([0, self.attribute.steps - 1]))
        below = np.clip(numbers, bounds[0], bounds[1] + 1) - 1  # find the last step below, then take the next one
        if isinstance(self.unit, int):
            return below // self.unit + 1 - self.attribute.origin
        resolution = f"datetime64[{NUMPY_UNITS[self.attribute.resolution]}]"  # type: ignore[attr-defined]
        return below.astype(f"datetime64[{self.unit}]").astype(resolution).astype(np.int64) + 1 - self.attribute.origin


def _to_common_scale(attribute: Ranged, unit: int | str, steps: IntArray) -> IntArray:
    coordinates = np.asarray(steps, np.int64) + attribute.origin
    if isinstance(unit, int):
        return coordinates * unit
    instants = coordinates.astype(f"datetime64[{NUMPY_UNITS[attribute.resolution]}]")  # type: ignore[attr-defined]
    return instants.astype(f"datetime64[{unit}]").astype(np.int64)


def align_scales(schema: Schema, names: Sequence[str], indices: dict[str, int]) -> tuple[Scale, ...]:
    """Put the attributes of a rule on a common scale; ``indices`` maps measured attributes to their index.

    Raises a SchemaError if the numbers are too large, at their number of decimals, to be compared exactly.
    """
    units = _common_units([schema[name] for name in names])
    scales = tuple(_scale(schema, name, indices, unit) for name, unit in zip(names, units, strict=True))
    for scale in scales:
        ends = [scale.attribute.origin, scale.attribute.origin + scale.attribute.steps]
        if isinstance(scale.unit, int) and max(abs(end) for end in ends) * scale.unit >= MAX_COMMON_VALUE:
            raise SchemaError(
                f"the range of {scale.name!r} is too wide to be compared exactly with numbers of that many decimals; "
                "give nearer bounds or fewer decimals"
            )
    return scales


def _common_units(attributes: Sequence[Attribute]) -> list[int | str]:
    dates = [attribute for attribute in attributes if isinstance(attribute, Datetime)]
    if dates:
        letters = list(NUMPY_UNITS.values())
        finest = letters[max(letters.index(attribute.unit) for attribute in dates)]
        return [finest] * len(attributes)
    times = [attribute.unit_micros for attribute in attributes if isinstance(attribute, Time)]
    if times:
        return [micros // min(times) for micros in times]
    decimals = [attribute.decimal_places if isinstance(attribute, Real) else 0 for attribute in attributes]
    return [int(10 ** (max(decimals) - places)) for places in decimals]


def _scale(schema: Schema, name: str, indices: dict[str, int], unit: int | str) -> Scale:
    attribute = schema[name]
    assert isinstance(attribute, Integer | Real | Datetime | Time)  # the schema was checked
    edges = attribute.grid().edges
    derive = next((derive for derive in schema.derive if derive.name == name), None)
    cells = np.arange(attribute.cells) if derive is None else derived_cells(schema, derive)
    missing = cells >= attribute.proper_cells
    proper = np.where(missing, 0, cells)
    index = indices[name if derive is None else derive.source]
    first, last = edges[proper], edges[proper + 1] - 1
    ends = (_to_common_scale(attribute, unit, first), _to_common_scale(attribute, unit, last))
    return Scale(name, index, derive is not None, attribute, unit, first, last, missing, *ends)


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


# ── constraints on cells ─────────────────────────────────────────────────────────────────────────────────────


CellMatrix = NDArray[Any]
"""The cell of every measured attribute in every row: rows × attributes."""

Domains = dict[int, IntArray]
"""The cells that are still possible for each attribute, by its index."""

Selection = tuple[tuple[int, Mask], ...]
"""Which cells are selected, for some attributes, by their index."""


@dataclass(frozen=True, slots=True, eq=False)
class StructuralZero:
    """A combination that no row has: the attributes are never all in the selected cells."""

    number: int
    selection: Selection

    @property
    def indices(self) -> tuple[int, ...]:
        """The measured attributes of the constraint."""
        return tuple(index for index, _ in self.selection)

    def holds(self, cells: CellMatrix) -> Mask:
        """Which rows satisfy it."""
        return ~match_rows(self.selection, cells)

    def narrow(self, domains: Domains) -> bool:
        """Remove impossible cells from the domains; returns whether any combination is left."""
        undecided = [(index, mask) for index, mask in self.selection if not mask[domains[index]].all()]
        if len(undecided) == 1:
            index, mask = undecided[0]
            domains[index] = domains[index][~mask[domains[index]]]
        return bool(undecided)


@dataclass(frozen=True, slots=True, eq=False)
class OrderConstraint:
    """Values that ascend from left to right; missing values are skipped."""

    number: int
    scales: tuple[Scale, ...]
    strict: bool

    @property
    def indices(self) -> tuple[int, ...]:
        """The measured attributes of the constraint."""
        return tuple(dict.fromkeys(scale.index for scale in self.scales))

    def holds(self, cells: CellMatrix) -> Mask:
        """Which rows can satisfy it within their cells: the lowest ascending values fit into the cells."""
        possible = np.ones(len(cells), np.bool_)
        lowest = np.full(len(cells), -(2**62), np.int64)
        for scale in self.scales:
            cell = cells[:, scale.index]
            present = ~scale.missing[cell]
            step = np.maximum(scale.first[cell], scale.first_step_at_least(lowest))
            possible &= ~present | (step <= scale.last[cell])
            lowest = np.where(present, scale.to_common_scale(step) + self.strict, lowest)
        return possible

    def holds_for_values(self, values: Sequence[IntArray], missing: Sequence[Mask]) -> Mask:
        """Which rows satisfy it, given all values on the common scale."""
        holds = np.ones(len(values[0]), np.bool_)
        lowest = np.full(len(holds), -(2**62), np.int64)
        for value, empty in zip(values, missing, strict=True):
            holds &= empty | (value >= lowest)
            lowest = np.where(empty, lowest, value + self.strict)
        return holds

    def narrow(self, domains: Domains) -> bool:
        """Remove impossible cells from the domains; returns whether any combination is left."""
        for position, right in enumerate(self.scales):
            for left in self.scales[:position]:
                if not _narrow_pair(left, right, self.strict, domains):
                    return False
        return True


@dataclass(frozen=True, slots=True, eq=False)
class SumConstraint:
    """A total and its parts; a row in which one of them is missing satisfies it."""

    number: int
    scales: tuple[Scale, ...]
    """The total, then the parts."""

    @property
    def indices(self) -> tuple[int, ...]:
        """The measured attributes of the constraint."""
        return tuple(dict.fromkeys(scale.index for scale in self.scales))

    def holds(self, cells: CellMatrix) -> Mask:
        """Which rows can satisfy it within their cells."""
        row_cells = [cells[:, scale.index] for scale in self.scales]
        missing = np.any([scale.missing[cell] for scale, cell in zip(self.scales, row_cells, strict=True)], axis=0)
        lows, highs = ([end[cell] for end, cell in zip(ends, row_cells, strict=True)] for ends in self._ends())
        possible: Mask = missing | ((sum(lows[1:]) <= highs[0]) & (sum(highs[1:]) >= lows[0]))
        return possible

    def holds_for_values(self, values: Sequence[IntArray], missing: Sequence[Mask]) -> Mask:
        """Which rows satisfy it, given all values on the common scale."""
        holds: Mask = np.any(missing, axis=0) | (np.sum(values[1:], axis=0) == values[0])
        return holds

    def narrow(self, domains: Domains) -> bool:
        """Remove impossible cells from the domains; returns whether any combination is left."""
        if any(scale.missing[domains[scale.index]].any() for scale in self.scales):
            return True
        lows, highs = self._ends()
        least = [int(low[domains[s.index]].min()) for s, low in zip(self.scales, lows, strict=True)]
        most = [int(high[domains[s.index]].max()) for s, high in zip(self.scales, highs, strict=True)]
        for position, scale in enumerate(self.scales):
            domain = domains[scale.index]
            low, high = lows[position][domain], highs[position][domain]
            if position == 0:
                fits = (high >= sum(least[1:])) & (low <= sum(most[1:]))
            else:
                others = sum(least[1:]) - least[position], sum(most[1:]) - most[position]
                fits = (low + others[0] <= most[0]) & (high + others[1] >= least[0])
            domains[scale.index] = domain[fits]
            if not fits.any():
                return False
        return True

    def _ends(self) -> tuple[list[IntArray], list[IntArray]]:
        return [scale.low for scale in self.scales], [scale.high for scale in self.scales]


@dataclass(frozen=True, slots=True, eq=False)
class TotalConstraint:
    """A public number of rows: those in the selected cells, or all rows if nothing is selected."""

    number: int
    selection: Selection
    count: int


RowConstraint = StructuralZero | OrderConstraint | SumConstraint


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintModel:
    """All rules of a schema.

    Attributes:
        names: the measured attributes with public values; indices refer to these.
        sizes: the number of cells of each.
        row_constraints: constraints on every row.
        totals: constraints on the whole table.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    row_constraints: tuple[RowConstraint, ...]
    totals: tuple[TotalConstraint, ...]

    def components(self) -> list[tuple[tuple[int, ...], list[RowConstraint]]]:
        """Groups of attributes that share rules, each with its rules; rules of different groups are independent."""
        groups: list[tuple[set[int], list[RowConstraint]]] = []
        for constraint in self.row_constraints:
            indices, rules = set(constraint.indices), [constraint]
            disjoint = []
            for other_indices, other_rules in groups:
                if indices & other_indices:
                    indices, rules = indices | other_indices, [*other_rules, *rules]
                else:
                    disjoint.append((other_indices, other_rules))
            groups = [*disjoint, (indices, rules)]
        return [(tuple(sorted(indices)), rules) for indices, rules in groups]


def compile_constraints(schema: Schema) -> ConstraintModel:
    """Compile the rules of a schema; rules on open attributes are left out until their values are discovered."""
    measured = [attribute for attribute in schema.modeled_attributes if attribute.coded]
    indices = {attribute.name: index for index, attribute in enumerate(measured)}
    known = {*indices, *(derive.name for derive in schema.derive if derive.source in indices)}
    row_constraints: list[RowConstraint] = [
        zero
        for parts in schema.timestamp_parts.values()
        for zero in _timestamp_zeros(parts, [indices[part.name] for part in parts])
    ]
    totals = []
    for number, rule in enumerate(schema.rules, start=1):
        if not known.issuperset(rule.mentions()):
            continue
        match rule:
            case Impossible():
                row_constraints.append(StructuralZero(number, _selection(schema, rule.where, indices)))
            case Order():
                scales = align_scales(schema, rule.attributes, indices)
                row_constraints.append(OrderConstraint(number, scales, rule.strict))
            case Sum():
                scales = align_scales(schema, (rule.total, *rule.parts), indices)
                row_constraints.append(SumConstraint(number, scales))
            case Total():
                totals.append(TotalConstraint(number, _selection(schema, rule.where, indices), rule.count))
    return ConstraintModel(tuple(indices), tuple(a.cells for a in measured), tuple(row_constraints), tuple(totals))


PARTS_OF_TIMESTAMPS = 0
"""The number of constraints that no rule declares: the parts of a timestamp must fit together."""


def _timestamp_zeros(parts: TimestampParts, indices: Sequence[int]) -> Iterator[StructuralZero]:
    """The parts of a timestamp are missing together, and a date has its weekday."""
    date, *others = indices
    if parts.date.has_missing:
        missing = [np.arange(part.cells) >= part.proper_cells for part in parts]
        for index, mask in zip(others, missing[1:], strict=True):
            yield StructuralZero(PARTS_OF_TIMESTAMPS, ((date, missing[0]), (index, ~mask)))
            yield StructuralZero(PARTS_OF_TIMESTAMPS, ((date, ~missing[0]), (index, mask)))
    for weekday, days in enumerate(parts.days_by_weekday().T):
        without = (days == 0) & (np.arange(parts.date.cells) < parts.date.proper_cells)
        if without.any():
            selected = np.arange(parts.weekday.cells) == weekday
            yield StructuralZero(PARTS_OF_TIMESTAMPS, ((date, without), (others[0], selected)))


def _selection(schema: Schema, where: RowConditions, indices: dict[str, int]) -> Selection:
    """The cells of measured attributes that meet all conditions; a condition on a derived one applies to its source."""
    selected: dict[int, Mask] = {}
    for name, condition in where:
        mask = schema[name].select(condition)
        derive = next((derive for derive in schema.derive if derive.name == name), None)
        index = indices[name if derive is None else derive.source]
        mask = mask if derive is None else mask[derived_cells(schema, derive)]
        selected[index] = selected[index] & mask if index in selected else mask
    return tuple(selected.items())


def match_rows(selection: Selection, cells: CellMatrix) -> Mask:
    """Which rows are in the selected cells of all attributes."""
    selected = np.ones(len(cells), np.bool_)
    for index, mask in selection:
        selected &= mask[cells[:, index]]
    return selected


def _narrow_pair(left: Scale, right: Scale, strict: bool, domains: Domains) -> bool:
    """Remove cells in which the left value cannot be below the right one; returns whether any combination is left."""
    if not right.missing[domains[right.index]].any():
        highest = int(right.high[domains[right.index]].max())
        domain = domains[left.index]
        domains[left.index] = domain[left.missing[domain] | (left.low[domain] <= highest - strict)]
        if not len(domains[left.index]):
            return False
    if not left.missing[domains[left.index]].any():
        lowest = int(left.low[domains[left.index]].min())
        domain = domains[right.index]
        domains[right.index] = domain[right.missing[domain] | (right.high[domain] >= lowest + strict)]
    return bool(len(domains[right.index]))
