"""Values of several numbers or dates on one scale, so that rules can compare and add them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import SchemaError
from dpsyn.schema.attributes import MISSING, Attribute
from dpsyn.schema.ranges import UNITS, Datetime, Integer, Ranged, Real
from dpsyn.schema.relations import Derive

if TYPE_CHECKING:
    from dpsyn.schema.schema import Schema

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]

FARTHEST = 2**60
"""Numbers on a common scale stay nearer to zero, so that sums of a few of them stay exact."""


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """An attribute of a rule, as its values follow from the cells of a measured attribute.

    Attributes:
        name: the attribute that the rule names.
        place: the measured attribute whose cells decide: itself, or the one that it is derived from.
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
    place: int
    derived: bool
    attribute: Ranged
    unit: int | str
    first: Numbers
    last: Numbers
    missing: Mask
    low: Numbers
    high: Numbers

    def common(self, steps: Numbers) -> Numbers:
        """Steps of the attribute on the common scale; higher steps are higher numbers."""
        return _common(self.attribute, self.unit, steps)

    def at_least(self, numbers: Numbers) -> Numbers:
        """The first step whose number on the common scale is not below the given one; it may lie beyond the range."""
        bounds = self.common(np.array([0, self.attribute.steps - 1]))
        near = np.clip(numbers, bounds[0], bounds[1] + 1) - 1  # the last step below, then one more
        if isinstance(self.unit, int):
            return near // self.unit + 1 - self.attribute.origin
        own = f"datetime64[{UNITS[self.attribute.resolution]}]"  # type: ignore[attr-defined]
        return near.astype(f"datetime64[{self.unit}]").astype(own).astype(np.int64) + 1 - self.attribute.origin


def _common(attribute: Ranged, unit: int | str, steps: Numbers) -> Numbers:
    coordinates = np.asarray(steps, np.int64) + attribute.origin
    if isinstance(unit, int):
        return coordinates * unit
    own = coordinates.astype(f"datetime64[{UNITS[attribute.resolution]}]")  # type: ignore[attr-defined]
    return own.astype(f"datetime64[{unit}]").astype(np.int64)


def scales_of(schema: Schema, names: Sequence[str], places: dict[str, int]) -> tuple[Scale, ...]:
    """The attributes of a rule on one scale; ``places`` are those of the measured attributes.

    A SchemaError if their numbers are too fine and too large to be compared exactly.
    """
    units = _units([schema[name] for name in names])
    scales = tuple(_scale(schema, name, places, unit) for name, unit in zip(names, units, strict=True))
    for scale in scales:
        ends = [scale.attribute.origin, scale.attribute.origin + scale.attribute.steps]
        if isinstance(scale.unit, int) and max(abs(end) for end in ends) * scale.unit >= FARTHEST:
            raise SchemaError(f"{scale.name!r} reaches too far to be compared with numbers of so many decimals")
    return scales


def _units(attributes: Sequence[Attribute]) -> list[int | str]:
    dates = [attribute for attribute in attributes if isinstance(attribute, Datetime)]
    if dates:
        letters = list(UNITS.values())
        finest = letters[max(letters.index(attribute.unit) for attribute in dates)]
        return [finest] * len(attributes)
    places = [attribute.places if isinstance(attribute, Real) else 0 for attribute in attributes]
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
    ends = (_common(attribute, unit, first), _common(attribute, unit, last))
    return Scale(name, place, derive is not None, attribute, unit, first, last, missing, *ends)


def derived_cells(schema: Schema, derive: Derive) -> Numbers:
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
