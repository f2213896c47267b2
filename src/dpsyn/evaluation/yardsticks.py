"""Tables made of the real one, against which figures are read."""

from __future__ import annotations

import numpy as np

from dpsyn.evaluation.tables import Columns


def bootstrap(table: Columns, rows: int, rng: np.random.Generator) -> Columns:
    """The sampling floor: rows of a table, drawn with replacement."""
    return np.ascontiguousarray(table[:, rng.integers(0, table.shape[1], rows)])


def shuffled(table: Columns, rows: int, rng: np.random.Generator) -> Columns:
    """The independent model: each column in a random order of its own; at most as many rows as the table has."""
    return np.stack([rng.permutation(column)[:rows] for column in table])
