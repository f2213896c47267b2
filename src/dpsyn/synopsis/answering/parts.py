"""A table that is to be worked out from its sums over some of its attributes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsyn.errors import InternalError
from dpsyn.synopsis.answering.linear import Axes, Table


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The sums of a table over all attributes but some.

    Attributes:
        axes: the attributes that stay.
        values: non-negative counts, an axis for each.
    """

    axes: Axes
    values: Table

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.axes) or not (self.values >= 0).all():
            raise InternalError(f"{len(self.axes)} attributes have sums of {self.values.ndim} axes, or negative ones")

    def gone(self, count: int) -> tuple[int, ...]:
        """The attributes that are summed over, of so many."""
        return tuple(axis for axis in range(count) if axis not in self.axes)

    def spread(self, shape: tuple[int, ...]) -> Table:
        """The values with an axis of length 1 for every attribute that is summed over."""
        return self.values.reshape([size if axis in self.axes else 1 for axis, size in enumerate(shape)])


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction:
    """A table that was worked out from its sums.

    Attributes:
        values: the counts.
        gap: by how much its sums differ from those it was made from, at most.
        settled: whether more work would change it.
    """

    values: Table
    gap: float
    settled: bool


def widest_gap(values: Table, parts: list[Part]) -> float:
    """The largest difference between the sums of a table and what they should be."""
    gaps = [np.abs(values.sum(axis=part.gone(values.ndim)) - part.values).max() for part in parts]
    return float(max(gaps, default=0.0))


def common_total(parts: list[Part]) -> float:
    """The number of rows that all parts have, up to what they disagree by."""
    return math.fsum(float(part.values.sum()) for part in parts) / max(len(parts), 1)
