"""An attribute that follows from another one nearly always: which of its codes, read off a released table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsyn.transforms.reference import Reference


def learn_mapping(counts: NDArray[np.float64], *, anchor: int, cells: int) -> Reference:
    """The code that an attribute most likely has for each code of another one.

    Args:
        counts: noisy counts, the other attribute on the first axis and the attribute itself on the second.
        anchor: the position of the other one among the fine attributes.
        cells: the codes that the attribute can be expected to have: all but missing.
    """
    return Reference(anchor, counts[:, :cells].argmax(axis=1).astype(np.int64), cells)
