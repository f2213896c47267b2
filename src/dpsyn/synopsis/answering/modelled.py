"""What the model of a synopsis says about some of its attributes."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsyn.marginals import Clique
from dpsyn.synopsis.answering.linear import Table
from dpsyn.synopsis.drawing import model_codes
from dpsyn.synopsis.parts import Model

RECORDS = 10_000
"""Records that are drawn to be counted. A cell of a hundredth of the rows is then off by a tenth of itself. Two or four
times as many take as much longer, seconds for a model of GUM, and answers are no nearer (``bench/priview.py``)."""


def held(model: Model, clique: Clique) -> Table | None:
    """The counts of the most precise consistent table that has all attributes of a clique; None if none has."""
    tables = [table for table in model.tables if set(clique) <= set(table.clique)]
    if not tables:
        return None
    best = min(tables, key=lambda table: table.variance * table.values.size)
    return np.asarray(best.onto(clique))


def counted(model: Model, clique: Clique) -> tuple[Table, Table]:
    """The counts of records drawn from the model, as if there were as many as rows, and their sampling deviations.

    A table that is drawn has counts off by √(np(1−p)/N)·√n, N being the number of records.
    """
    records = _drawn(model)
    places = [model.recoding.place_of(name) for name in clique]
    shape = [model.recoding.sizes[place] for place in places]
    cells = np.ravel_multi_index([records[:, place] for place in places], shape)
    shares = np.bincount(cells, minlength=math.prod(shape)).reshape(shape) / len(records)
    return shares * model.total, np.sqrt(shares * (1 - shares) / len(records)) * model.total


@lru_cache(maxsize=2)
def _drawn(model: Model) -> NDArray[np.integer]:
    """Codes of records of the model, always the same; remembered, since one question is seldom the last."""
    return model_codes(model, RECORDS, {}, seed=0)
