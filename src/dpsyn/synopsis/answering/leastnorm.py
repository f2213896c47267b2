"""The smallest table, in squares, among those with given sums. For comparison: maximum entropy is nearer the truth."""

from __future__ import annotations

import numpy as np

from dpsyn.consistency import norm_sub
from dpsyn.synopsis.answering.linear import Observation, linear_estimate
from dpsyn.synopsis.answering.parts import Part, Reconstruction, common_total, widest_gap


def least_norm(shape: tuple[int, ...], parts: list[Part]) -> Reconstruction:
    """The table whose unknown components are zero, which has the least Σ cell² of all with these sums.

    Negative cells are removed by norm-sub, after which the sums are met less closely.
    """
    known = [Observation(part.axes, part.values, 1.0) for part in parts]
    values = linear_estimate(shape, known).table() if parts else np.zeros(shape)
    found = norm_sub(values, common_total(parts))
    return Reconstruction(found, widest_gap(found, parts), settled=True)
