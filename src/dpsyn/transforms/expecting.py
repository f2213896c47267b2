"""Attributes of one scale, such as the dates of one event: where one is expected, given another, by public facts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import SchemaError
from dpsyn.records import Grouping
from dpsyn.schema import Attribute, Datetime, Ranged, Real
from dpsyn.transforms.reference import Reference


def expect_equal(attribute: Attribute, anchor: Attribute, place: int) -> Reference:
    """The reference that expects an attribute to have the value of another one, which stands at ``place``.

    Numbers and dates may have different ranges and cells; listed values must be as many. Where the other one is
    missing, the first code is expected.
    """
    if isinstance(attribute, Ranged) and isinstance(anchor, Ranged):
        expected = _cells_of_values(attribute, anchor)
    elif attribute.proper_cells == anchor.proper_cells:
        expected = np.arange(anchor.proper_cells)
    else:
        raise SchemaError(
            f"{attribute.name!r} has {attribute.proper_cells} values and {anchor.name!r} {anchor.proper_cells}, so "
            "that they cannot be told by their difference; use transform: mapping"
        )
    return Reference(place, np.append(expected, [0] * anchor.has_missing).astype(np.int64), attribute.proper_cells)


def _cells_of_values(attribute: Ranged, anchor: Ranged) -> NDArray[np.int64]:
    if _scale(attribute) != _scale(anchor):
        raise SchemaError(
            f"{attribute.name!r} and {anchor.name!r} have no common scale; give both the same kind, and as "
            "many decimals or the same resolution"
        )
    coordinates = np.asarray(anchor.grid().edges[:-1]) + anchor.origin
    edges = np.asarray(attribute.grid().edges)
    steps = np.clip(coordinates - attribute.origin, 0, edges[-1] - 1)
    return np.searchsorted(edges, steps, side="right") - 1


def _scale(attribute: Ranged) -> tuple[object, ...]:
    """What must be the same for lattice coordinates to mean the same."""
    own = attribute.unit if isinstance(attribute, Datetime) else attribute.places if isinstance(attribute, Real) else ""
    return type(attribute), own


def near(reference: Reference, cells: int, kept: tuple[int, ...]) -> Grouping:
    """Differences merged: each of those kept has a code, all others share one, and so has missing one."""
    places = dict.fromkeys(difference % reference.cells for difference in kept)
    code_of = {difference: code for code, difference in enumerate(places)}
    rest = len(code_of)
    codes = [code_of.get(cell, rest) for cell in range(reference.cells)]
    missing = max(codes) + 1
    return Grouping(np.array([*codes, *[missing] * (cells - reference.cells)], np.int64))
