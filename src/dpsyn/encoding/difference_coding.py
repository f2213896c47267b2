"""Codes told as differences from where another attribute says they should be.

Dates of one call lie close together, and a general code follows from a detailed one nearly always: then the difference
from what is expected has a handful of values where the attribute itself has hundreds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding.binning import Grouping
from dpsyn.errors import InternalError, SchemaError
from dpsyn.schema import Attribute, Datetime, Ranged, Real


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceCoding:
    """Where an attribute is expected, given another one of the same row.

    Differences go round: above the last code comes the first. So for every code of the other attribute, codes and
    differences are the same thing in two orders, and whatever difference is drawn can be turned back into a code.

    Attributes:
        anchor: the position of the fine attribute that tells where.
        expected_codes: for each of its fine codes, the fine code that is expected.
        modulus: the fine codes that differences are taken among; a code beyond them, such as missing, stays.
    """

    anchor: int
    expected_codes: NDArray[np.int64]
    modulus: int

    def __post_init__(self) -> None:
        if not len(self.expected_codes) or self.expected_codes.min() < 0 or self.expected_codes.max() >= self.modulus:
            raise InternalError("a reference expects codes of the attribute, one for each code of another")
        self.expected_codes.setflags(write=False)

    def encode(self, codes: NDArray[Any], anchors: NDArray[Any]) -> NDArray[np.int64]:
        """How far every code lies beyond the one that is expected."""
        own = codes.astype(np.int64)
        return np.where(own < self.modulus, (own - self.expected_codes[anchors]) % self.modulus, own)

    def decode(self, differences: NDArray[Any], anchors: NDArray[Any]) -> NDArray[np.int64]:
        """The codes again: the inverse of ``differences`` for every code of the anchor."""
        own = differences.astype(np.int64)
        return np.where(own < self.modulus, (own + self.expected_codes[anchors]) % self.modulus, own)

    def is_equivalent(self, other: DifferenceCoding) -> bool:
        """Whether another reference gives the same differences."""
        same = (self.anchor, self.modulus) == (other.anchor, other.modulus)
        return same and np.array_equal(self.expected_codes, other.expected_codes)


# ── Attributes of one scale, such as the dates of one event: where one is expected, given another, by public facts ──


def expect_equal(attribute: Attribute, anchor: Attribute, anchor_index: int) -> DifferenceCoding:
    """The reference that expects an attribute to have the value of another one, which stands at ``anchor_index``.

    Numbers and dates may have different ranges and cells; listed values must be as many. Where the other one is
    missing, the first code is expected.
    """
    if isinstance(attribute, Ranged) and isinstance(anchor, Ranged):
        expected = _expected_cells(attribute, anchor)
    elif attribute.proper_cells == anchor.proper_cells:
        expected = np.arange(anchor.proper_cells)
    else:
        raise SchemaError(
            f"{attribute.name!r} has {attribute.proper_cells} values and {anchor.name!r} {anchor.proper_cells}, so "
            "that they cannot be told by their difference; use transform: mapping"
        )
    return DifferenceCoding(
        anchor_index, np.append(expected, [0] * anchor.has_missing).astype(np.int64), attribute.proper_cells
    )


def _expected_cells(attribute: Ranged, anchor: Ranged) -> NDArray[np.int64]:
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
    own = (
        attribute.unit
        if isinstance(attribute, Datetime)
        else attribute.decimal_places
        if isinstance(attribute, Real)
        else ""
    )
    return type(attribute), own


def group_differences(coding: DifferenceCoding, cells: int, kept: tuple[int, ...]) -> Grouping:
    """Differences merged: each of those kept has a code, all others share one, and so has missing one."""
    places = dict.fromkeys(difference % coding.modulus for difference in kept)
    code_of = {difference: code for code, difference in enumerate(places)}
    rest = len(code_of)
    codes = [code_of.get(cell, rest) for cell in range(coding.modulus)]
    missing = max(codes) + 1
    return Grouping(np.array([*codes, *[missing] * (cells - coding.modulus)], np.int64))


# ── An attribute that follows from another one nearly always: which of its codes, read off a released table ──


def learn_mapping(counts: NDArray[np.float64], *, anchor: int, modulus: int) -> DifferenceCoding:
    """The code that an attribute most likely has for each code of another one.

    Args:
        counts: noisy counts, the other attribute on the first axis and the attribute itself on the second.
        anchor: the position of the other one among the fine attributes.
        modulus: the codes that the attribute can be expected to have: all but missing.
    """
    return DifferenceCoding(anchor, counts[:, :modulus].argmax(axis=1).astype(np.int64), modulus)
