"""What the codes of a recoded attribute stand for, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.schema import MISSING, Attribute, Ranged
from dpsyn.transforms import RecodedColumn, Reference


def labels_of(column: RecodedColumn, attributes: Sequence[Attribute]) -> tuple[str, ...]:
    """A short text for each code.

    Args:
        column: the recoded attribute.
        attributes: the attributes that it was made for, all of them.
    """
    digits = [
        _differences(reference, table) if reference else _digits(attributes[source], table)
        for source, table, reference in zip(
            column.sources, column.tables, column.references or (None,) * len(column.sources), strict=True
        )
    ]
    if column.merged is None and len(digits) == 1:
        return tuple(digits[0])
    codes = np.arange(int(np.prod(column.radices))) if column.merged is None else column.merged
    return tuple(_combined(members, column.radices, digits) for members in _members(codes))


def _members(group_of: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The codes of each group, ascending."""
    order = np.argsort(group_of, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group_of[order])) + 1)


def _digits(attribute: Attribute, table: NDArray[np.int64]) -> list[str]:
    """A text for each group of an attribute's cells."""
    if isinstance(attribute, Ranged):
        return [_range(attribute, cells) for cells in _members(table)]
    labels = attribute.labels()
    return [labels[cells[0]] if len(cells) == 1 else f"{len(cells):,} rare values" for cells in _members(table)]


def _differences(reference: Reference, table: NDArray[np.int64]) -> list[str]:
    """A text for each group of differences: how many codes above or below the one that is expected."""
    return [_difference(reference, cells) if len(cells) == 1 else "another" for cells in _members(table)]


def _difference(reference: Reference, cells: NDArray[np.int64]) -> str:
    if cells[0] >= reference.cells:
        return MISSING
    if cells[0] == 0:
        return "as expected"
    signed = int(cells[0]) if 2 * cells[0] <= reference.cells else int(cells[0]) - reference.cells
    return f"{signed:+d}"


def _range(attribute: Ranged, cells: NDArray[np.int64]) -> str:
    """Neighbouring cells, written as the schema writes its bins."""
    first, last = int(cells[0]), int(cells[-1])
    if last >= attribute.proper_cells:
        return MISSING if len(cells) == 1 else "rare values"
    if last - first + 1 > len(cells):
        return "rare values"
    edges = attribute.grid().edges
    low, high = attribute.text_at(int(edges[first])), attribute.text_at(int(edges[last + 1]) - 1)
    return low if low == high else f"{low}..{high}"


def _combined(members: NDArray[np.int64], radices: tuple[int, ...], digits: Sequence[Sequence[str]]) -> str:
    if len(members) > 1:
        return f"{len(members):,} combinations"
    places = np.unravel_index(int(members[0]), radices)
    return ", ".join(labels[int(place)] for labels, place in zip(digits, places, strict=True))
