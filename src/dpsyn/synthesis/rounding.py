"""Tables of counts as whole numbers of records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def rounded(values: NDArray[np.float64], rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Non-negative values in proportion, as whole numbers that add up to ``rows``; an all-zero table as a uniform one.

    The running sum over the cells, plus one random offset, is rounded down (systematic sampling). So each cell misses
    its share by less than 1 and expects it exactly, as does every run of cells, in particular each value of the first
    attribute; a zero stays zero; and whole numbers that add up to ``rows`` already stay as they are.
    """
    running = np.cumsum(values.ravel() if np.any(values) else np.ones(values.size))
    edges = np.floor(running * (rows / running[-1]) + rng.random()).astype(np.int64)
    edges[running == running[-1]] = rows  # the last sum may be a little less than it should
    whole: NDArray[np.int64] = np.diff(edges, prepend=0).reshape(values.shape)
    return whole
