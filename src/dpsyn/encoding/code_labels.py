"""Labels of the codes of a recoded attribute, for people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding.difference_coding import DifferenceCoding
from dpsyn.encoding.recoding import RecodedColumn
from dpsyn.schema import MISSING, Attribute, Ranged


def label_codes(column: RecodedColumn, attributes: Sequence[Attribute]) -> tuple[str, ...]:
    """A short label for each code.

    Args:
        column: the recoded attribute.
        attributes: all attributes of the table that the recoding was made for.
    """
    digits = [
        _difference_labels(coding, table) if coding else _digit_labels(attributes[source], table)
        for source, table, coding in zip(
            column.sources, column.tables, column.difference_codings or (None,) * len(column.sources), strict=True
        )
    ]
    if column.merged is None and len(digits) == 1:
        return tuple(digits[0])
    codes = np.arange(int(np.prod(column.radices))) if column.merged is None else column.merged
    return tuple(_combination_label(members, column.radices, digits) for members in _group_members(codes))


def _group_members(group_of: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The codes of each group, in ascending order."""
    order = np.argsort(group_of, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group_of[order])) + 1)


def _digit_labels(attribute: Attribute, table: NDArray[np.int64]) -> list[str]:
    """A label for each group of cells of an attribute."""
    if isinstance(attribute, Ranged):
        return [_range_label(attribute, cells) for cells in _group_members(table)]
    labels = attribute.labels()
    return [labels[cells[0]] if len(cells) == 1 else f"{len(cells):,} rare values" for cells in _group_members(table)]


def _difference_labels(coding: DifferenceCoding, table: NDArray[np.int64]) -> list[str]:
    """A label for each group of differences: the number of codes above or below the expected one."""
    return [
        _difference_label(coding, int(group[0])) if len(group) == 1 else "another" for group in _group_members(table)
    ]


def _difference_label(coding: DifferenceCoding, difference: int) -> str:
    if difference >= coding.modulus:
        return MISSING
    if difference == 0:
        return "as expected"
    return f"{difference if 2 * difference <= coding.modulus else difference - coding.modulus:+d}"


def _range_label(attribute: Ranged, cells: NDArray[np.int64]) -> str:
    """The range of neighboring cells, written as the schema writes its bins."""
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
    indices = np.unravel_index(int(members[0]), radices)
    return ", ".join(labels[int(index)] for labels, index in zip(digits, indices, strict=True))
