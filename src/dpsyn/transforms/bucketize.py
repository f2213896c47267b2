"""Cells merged into bins that a plan declares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import SchemaError
from dpsyn.records import Grouping
from dpsyn.schema import Attribute, Categorical, Ranged, Value


def bucketize(attribute: Attribute, starts: Sequence[Value]) -> Grouping:
    """Which bin every cell of an attribute lies in, given the first value of each bin; missing is one of its own.

    What lies below the first start joins the first bin. Listed values are taken in the order of their list.
    """
    if not isinstance(attribute, Ranged | Categorical):
        raise SchemaError(f"{attribute.name!r} is {attribute.kind}; bins are of numbers, dates and listed values")
    firsts = [_cell_at(attribute, start) for start in starts]
    if any(later <= earlier for earlier, later in pairwise(firsts)):
        raise SchemaError(f"the bins of {attribute.name!r} must start at ascending values")
    bins: NDArray[np.int64] = np.searchsorted(firsts[1:], np.arange(attribute.proper_cells), side="right")
    if attribute.has_missing:
        bins = np.append(bins, bins[-1] + 1)
    return Grouping(bins.astype(np.int64))


def _cell_at(attribute: Ranged | Categorical, start: Value) -> int:
    """The cell that a value begins."""
    cell = int(np.flatnonzero(attribute.select(start))[0])
    if isinstance(attribute, Ranged) and attribute.grid().edges[cell] != attribute.step_of(start):
        raise SchemaError(
            f"a bin of {attribute.name!r} cannot start at {start}, which lies inside a cell; "
            "list it in the schema, under spikes or as the start of a bin"
        )
    return cell
