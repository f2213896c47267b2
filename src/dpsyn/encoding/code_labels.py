"""What the codes of a recoded attribute stand for, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding.difference_coding import DifferenceCoding
from dpsyn.encoding.recoding import RecodedColumn
from dpsyn.schema import MISSING, Attribute, Ranged


def label_codes(column: RecodedColumn, attributes: Sequence[Attribute]) -> tuple[str, ...]:
    """A short text for each code.

    Args:
        column: the recoded attribute.
        attributes: the attributes that it was made for, all of them.
    """
    digits = [
        _difference_labels(reference, table) if reference else _digit_labels(attributes[source], table)
        for source, table, reference in zip(
            column.sources, column.tables, column.difference_codings or (None,) * len(column.sources), strict=True
        )
    ]
    if column.merged is None and len(digits) == 1:
        return tuple(digits[0])
    codes = np.arange(int(np.prod(column.radices))) if column.merged is None else column.merged
    return tuple(_combination_label(members, column.radices, digits) for members in _group_members(codes))


def _group_members(group_of: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The codes of each group, ascending."""
    order = np.argsort(group_of, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group_of[order])) + 1)


def _digit_labels(attribute: Attribute, table: NDArray[np.int64]) -> list[str]:
    """A text for each group of an attribute's cells."""
    if isinstance(attribute, Ranged):
        return [_range_label(attribute, cells) for cells in _group_members(table)]
    labels = attribute.labels()
    return [labels[cells[0]] if len(cells) == 1 else f"{len(cells):,} rare values" for cells in _group_members(table)]


def _difference_labels(reference: DifferenceCoding, table: NDArray[np.int64]) -> list[str]:
    """A text for each group of differences: how many codes above or below the one that is expected."""
    return [_difference_label(reference, cells) if len(cells) == 1 else "another" for cells in _group_members(table)]


def _difference_label(reference: DifferenceCoding, cells: NDArray[np.int64]) -> str:
    if cells[0] >= reference.modulus:
        return MISSING
    if cells[0] == 0:
        return "as expected"
    signed = int(cells[0]) if 2 * cells[0] <= reference.modulus else int(cells[0]) - reference.modulus
    return f"{signed:+d}"


def _range_label(attribute: Ranged, cells: NDArray[np.int64]) -> str:
    """Neighboring cells, written as the schema writes its bins."""
    first, last = int(cells[0]), int(cells[-1])
    if last >= attribute.proper_cells:
        return MISSING if len(cells) == 1 else "rare values"
    if last - first + 1 > len(cells):
        return "rare values"
    edges = attribute.grid().edges
    low, high = attribute.text_at(int(edges[first])), attribute.text_at(int(edges[last + 1]) - 1)
    return low if low == high else f"{low}..{high}"


def _combination_label(members: NDArray[np.int64], radices: tuple[int, ...], digits: Sequence[Sequence[str]]) -> str:
    if len(members) > 1:
        return f"{len(members):,} combinations"
    places = np.unravel_index(int(members[0]), radices)
    return ", ".join(labels[int(place)] for labels, place in zip(digits, places, strict=True))
