"""Difference coding: an attribute is stored as its difference from the code that another attribute leads one to expect.

Two examples: the dates of one emergency call lie close together; a general diagnosis nearly always follows from a
detailed one. The difference then has a handful of frequent values, while the attribute itself has hundreds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding.binning import Grouping
from dpsyn.errors import InternalError, SchemaError
from dpsyn.schema import Attribute, Categorical, Datetime, Ranged, Real, Time


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceCoding:
    """The expected code of an attribute, given another attribute of the same row, the anchor.

    Differences are taken modulo the number of codes. So for every code of the anchor, the map from codes to differences
    is a permutation, and any sampled difference can be decoded.

    Attributes:
        anchor: the position of the anchor among the attributes of the table.
        expected_codes: for each fine code of the anchor, the fine code that is expected.
        modulus: the number of fine codes that differences are taken among; a code beyond them, such as that of missing,
            is stored unchanged.
    """

    anchor: int
    expected_codes: NDArray[np.int64]
    modulus: int

    def __post_init__(self) -> None:
        if not len(self.expected_codes) or self.expected_codes.min() < 0 or self.expected_codes.max() >= self.modulus:
            raise InternalError(
                "a difference coding needs an expected code below its modulus for every code of the anchor"
            )
        self.expected_codes.setflags(write=False)

    def encode(self, codes: NDArray[Any], anchors: NDArray[Any]) -> NDArray[np.int64]:
        """The difference of every code from the expected one, given the codes of the anchor."""
        codes = codes.astype(np.int64)
        return np.where(codes < self.modulus, (codes - self.expected_codes[anchors]) % self.modulus, codes)

    def decode(self, differences: NDArray[Any], anchors: NDArray[Any]) -> NDArray[np.int64]:
        """The codes of differences: the inverse of ``encode``, given the same codes of the anchor."""
        differences = differences.astype(np.int64)
        codes = (differences + self.expected_codes[anchors]) % self.modulus
        return np.where(differences < self.modulus, codes, differences)

    def is_equivalent(self, other: DifferenceCoding) -> bool:
        """Whether another difference coding gives the same differences."""
        same = (self.anchor, self.modulus) == (other.anchor, other.modulus)
        return same and np.array_equal(self.expected_codes, other.expected_codes)


# ── anchors on the same scale, such as the dates of one event: the expectation follows from public facts ──────


def expect_equal(attribute: Attribute, anchor: Attribute, anchor_index: int) -> DifferenceCoding:
    """The difference coding that expects an attribute to have the value of its anchor, which is at ``anchor_index``.

    Numbers and dates may have different ranges and cells; lists of values must have the same length. Where the anchor
    is missing, the first code is expected.
    """
    if isinstance(attribute, Ranged) and isinstance(anchor, Ranged):
        expected = _expected_cells(attribute, anchor)
    elif attribute.proper_cells == anchor.proper_cells:
        expected = np.arange(anchor.proper_cells)
    else:
        raise SchemaError(
            f"{attribute.name!r} has {attribute.proper_cells} values and {anchor.name!r} has {anchor.proper_cells}, so "
            "their difference is not defined; use transform: mapping"
        )
    return DifferenceCoding(
        anchor_index, np.append(expected, [0] * anchor.has_missing).astype(np.int64), attribute.proper_cells
    )


def expect_same_value(attribute: Attribute, anchor: Attribute, anchor_index: int) -> DifferenceCoding | None:
    """The same for any two attributes; None if they are not of one kind, or their lists of values differ.

    A list may go on where the other one ends: what only the attribute has is stored unchanged, like missing; for what
    only the anchor has, the first code is expected.
    """
    if isinstance(attribute, Ranged) and isinstance(anchor, Ranged):
        same = _scale(attribute) == _scale(anchor)
        return expect_equal(attribute, anchor, anchor_index) if same else None
    if not (isinstance(attribute, Categorical) and isinstance(anchor, Categorical)):
        return None
    shared = min(attribute.proper_cells, anchor.proper_cells)
    if attribute.all_values()[:shared] != anchor.all_values()[:shared]:
        return None
    expected = np.zeros(anchor.cells, np.int64)
    expected[:shared] = np.arange(shared)
    return DifferenceCoding(anchor_index, expected, shared)


def _expected_cells(attribute: Ranged, anchor: Ranged) -> NDArray[np.int64]:
    if _scale(attribute) != _scale(anchor):
        raise SchemaError(
            f"{attribute.name!r} and {anchor.name!r} have no common scale; give both the same kind and the same "
            "decimals or resolution"
        )
    coordinates = np.asarray(anchor.grid().edges[:-1]) + anchor.origin
    edges = np.asarray(attribute.grid().edges)
    steps = np.clip(coordinates - attribute.origin, 0, edges[-1] - 1)
    return np.searchsorted(edges, steps, side="right") - 1


def _scale(attribute: Ranged) -> tuple[object, ...]:
    """What two attributes must have in common for their lattice coordinates to be comparable."""
    unit = (
        attribute.unit
        if isinstance(attribute, Datetime)
        else attribute.resolution
        if isinstance(attribute, Time)
        else attribute.decimal_places
        if isinstance(attribute, Real)
        else ""
    )
    return type(attribute), unit


def group_differences(coding: DifferenceCoding, cells: int, kept: tuple[int, ...]) -> Grouping:
    """Group differences: each of those in ``kept`` has a code, all others share one, and missing has one."""
    distinct = dict.fromkeys(difference % coding.modulus for difference in kept)
    code_of = {difference: code for code, difference in enumerate(distinct)}
    rest = len(code_of)
    codes = [code_of.get(difference, rest) for difference in range(coding.modulus)]
    missing = max(codes) + 1
    return Grouping(np.array([*codes, *[missing] * (cells - coding.modulus)], np.int64))


# ── anchors that nearly determine an attribute: the expectation is learned from a released marginal ───────────


def learn_mapping(counts: NDArray[np.float64], *, anchor: int, modulus: int) -> DifferenceCoding:
    """The difference coding that expects the most frequent code of an attribute, for each code of its anchor.

    Args:
        counts: noisy counts, with the anchor on the first axis and the attribute on the second.
        anchor: the position of the anchor among the attributes of the table.
        modulus: the number of codes that can be expected: all but missing.
    """
    return DifferenceCoding(anchor, counts[:, :modulus].argmax(axis=1).astype(np.int64), modulus)
