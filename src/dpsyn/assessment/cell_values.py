"""The numbers that the cells of an attribute stand for, scaled to whole weights for sums over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import Grouping
from dpsyn.errors import DocumentError
from dpsyn.schema import Boolean, Categorical, Integer, Real

MAX_CODES = 500
"""Codes of a number in a regression: tables of two numbers then have at most 250 000 cells."""


@dataclass(frozen=True, slots=True, eq=False)
class CellValues:
    """The numbers of the cells of an attribute, clipped to the schema's bounds.

    Attributes:
        center: the middle of the range of numbers.
        half_range: half its width; 1 if all cells have the same number.
        numbers: the number of each cell, the middle of its range of values; NaN for missing.
        rounding: the largest difference between a value and the number of its cell.
    """

    center: float
    half_range: float
    numbers: NDArray[np.float64]
    rounding: float

    def scaled(self) -> NDArray[np.float64]:
        """The numbers from −1 to 1; 0 for missing."""
        return np.nan_to_num((self.numbers - self.center) / self.half_range, nan=0.0)

    def weights(self, steps: int) -> NDArray[np.int64]:
        """The scaled numbers as whole multiples of 1/steps."""
        return np.rint(self.scaled() * steps).astype(np.int64)

    def present(self) -> NDArray[np.int64]:
        """1 for each cell that has a number, 0 for missing."""
        return np.isfinite(self.numbers).astype(np.int64)

    def merge(self, grouping: Grouping) -> CellValues:
        """The values of groups of adjacent cells: the middle of each group."""
        groups = [self.numbers[grouping.group_of == group] for group in range(grouping.size)]
        numbers = np.array([(group.min() + group.max()) / 2 for group in groups])
        wide = max(float(group.max() - group.min()) / 2 for group in groups)
        return CellValues(self.center, self.half_range, numbers, self.rounding + wide)


def require_numbers(attribute: Any, what: str) -> None:
    """Refuse an attribute whose values are no numbers."""
    if isinstance(attribute, Integer | Real | Boolean):
        return
    if isinstance(attribute, Categorical) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in attribute.all_values()
    ):
        return
    raise DocumentError(f"{attribute.name!r} is {attribute.kind}; {what} is of numbers")


def read_cell_values(attribute: Any) -> CellValues:
    """The numbers of an attribute's cells; ``require_numbers`` must hold."""
    if isinstance(attribute, Integer | Real):
        edges = attribute.grid().edges
        first, last = (attribute.values_at(steps).astype(np.float64) for steps in (edges[:-1], edges[1:] - 1))
        numbers, rounding = (first + last) / 2, float(((last - first) / 2).max())
        low, high = float(attribute.low), float(attribute.high)
    else:
        listed = [0.0, 1.0] if isinstance(attribute, Boolean) else [float(value) for value in attribute.all_values()]
        numbers, rounding, low, high = np.array(listed), 0.0, min(listed), max(listed)
    numbers = np.append(numbers, np.full(attribute.cells - len(numbers), np.nan))
    return CellValues((low + high) / 2, (high - low) / 2 or 1.0, numbers, rounding)


def group_cells(cells: int) -> Grouping:
    """Adjacent cells together, such that at most ``MAX_CODES`` groups remain."""
    return Grouping(np.arange(cells) // -(-cells // MAX_CODES))
