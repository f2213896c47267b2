"""A table whose sums are as near to given ones as can be. For comparison: it has many zeros that nothing asks for."""

from __future__ import annotations

import math

import numpy as np

from dpsyn.synopsis.answering.maxent import sums_of
from dpsyn.synopsis.answering.parts import Part, Reconstruction, widest_gap


def linear_program(shape: tuple[int, ...], parts: list[Part]) -> Reconstruction:
    """The non-negative table that minimises the largest difference of any sum (PriView, section 4.6).

    min τ such that Σ cells − τ + u = sum and Σ cells + τ − v = sum for every sum of every part, with u and v at least
    0; one of many solutions, a corner of their set.
    """
    from dpsyn.synthesis.programs import cheapest  # loads the solver, which takes a while

    count, cells = math.prod(shape), np.arange(math.prod(shape))
    wanted = np.concatenate([part.values.ravel() for part in parts])
    starts = np.cumsum([0, *(part.values.size for part in parts)])
    rows = np.concatenate([sums_of(part, shape, cells) + start for part, start in zip(parts, starts, strict=False)])
    sums, ones = np.arange(len(wanted)), np.ones(len(wanted))
    tau = np.full(len(wanted), count)
    found = cheapest(
        cost=np.eye(1, count + 1 + 2 * len(wanted), count)[0],
        entries=np.concatenate([np.ones(2 * len(rows)), -ones, ones, ones, -ones]),
        rows=np.concatenate([rows, rows + len(wanted), *2 * [sums, sums + len(wanted)]]),
        columns=np.concatenate([*2 * [np.tile(cells, len(parts))], tau, tau, count + 1 + np.arange(2 * len(wanted))]),
        demand=np.concatenate([wanted, wanted]),
    )
    values = np.maximum(found[:count], 0.0).reshape(shape)
    return Reconstruction(values, widest_gap(values, parts), settled=True)
