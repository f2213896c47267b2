"""Codes told as differences from where another attribute says they should be.

Dates of one call lie close together, and a general code follows from a detailed one nearly always: then the difference
from what is expected has a handful of values where the attribute itself has hundreds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """Where an attribute is expected, given another one of the same row.

    Differences go round: above the last code comes the first. So for every code of the other attribute, codes and
    differences are the same thing in two orders, and whatever difference is drawn can be turned back into a code.

    Attributes:
        anchor: the position of the fine attribute that tells where.
        expected: for each of its fine codes, the fine code that is expected.
        cells: the fine codes that differences are taken among; a code beyond them, such as missing, stays.
    """

    anchor: int
    expected: NDArray[np.int64]
    cells: int

    def __post_init__(self) -> None:
        if not len(self.expected) or self.expected.min() < 0 or self.expected.max() >= self.cells:
            raise InternalError("a reference expects codes of the attribute, one for each code of another")
        self.expected.setflags(write=False)

    def differences(self, codes: NDArray[Any], anchors: NDArray[Any]) -> NDArray[np.int64]:
        """How far every code lies beyond the one that is expected."""
        own = codes.astype(np.int64)
        return np.where(own < self.cells, (own - self.expected[anchors]) % self.cells, own)

    def restored(self, differences: NDArray[Any], anchors: NDArray[Any]) -> NDArray[np.int64]:
        """The codes again: the inverse of ``differences`` for every code of the anchor."""
        own = differences.astype(np.int64)
        return np.where(own < self.cells, (own + self.expected[anchors]) % self.cells, own)

    def alike(self, other: Reference) -> bool:
        """Whether another reference gives the same differences."""
        same = (self.anchor, self.cells) == (other.anchor, other.cells)
        return same and np.array_equal(self.expected, other.expected)
