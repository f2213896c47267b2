"""The records that GUM starts from."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.marginals import Estimate
from dpsyn.synthesis.rounding import rounded

Records = NDArray[np.int32]
"""Rows × attributes of codes, column-major."""


def start(tables: Sequence[Estimate], names: Sequence[str], rows: int, rng: np.random.Generator) -> Records:
    """Records whose attributes have the counts of the tables one by one, to rounding, and are independent.

    PrivSyn, section on GUM: a start from the 1-ways leaves only the dependences to be mended.
    """
    columns = np.empty((len(names), rows), np.int32)
    for place, name in enumerate(names):
        counts = one_way(tables, name)
        columns[place] = np.repeat(np.arange(counts.size), rounded(counts, rows, rng))
        rng.shuffle(columns[place])
    return columns.T


def one_way(tables: Sequence[Estimate], name: str) -> NDArray[np.float64]:
    """The counts of one attribute, from the table that says them most precisely."""
    candidates = [table for table in tables if name in table.clique]
    if not candidates:
        raise InternalError(f"no table has {name!r}")
    best = min(candidates, key=lambda table: table.variance * math.prod(table.values.shape))
    return best.onto([name])
