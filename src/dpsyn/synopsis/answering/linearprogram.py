"""A table whose sums are as near to given ones as can be. For comparison: it has many zeros that nothing asks for."""

from __future__ import annotations

import math

import numpy as np

from dpsyn.errors import InternalError
from dpsyn.synopsis.answering.maxent import _cells_of
from dpsyn.synopsis.answering.parts import Part, Reconstruction, widest_gap


def linear_program(shape: tuple[int, ...], parts: list[Part]) -> Reconstruction:
    """The non-negative table that minimises the largest difference of any sum (PriView, section 4.6).

    min τ such that |Σ cells − sum| ≤ τ for every sum of every part; one of many solutions, a corner of their set.
    """
    from scipy import optimize, sparse  # takes a while to load

    count, cells = math.prod(shape), np.arange(math.prod(shape))
    rows = [
        sparse.csr_array((np.ones(count), (_cells_of(part, shape, cells), cells)), shape=(part.values.size, count))
        for part in parts
    ]
    sums, wanted = sparse.vstack(rows, format="csr"), np.concatenate([part.values.ravel() for part in parts])
    slack = sparse.csr_array(-np.ones((len(wanted), 1)))
    solved = optimize.linprog(
        np.append(np.zeros(count), 1.0),
        A_ub=sparse.vstack([sparse.hstack([sums, slack]), sparse.hstack([-sums, slack])], format="csr"),
        b_ub=np.concatenate([wanted, -wanted]),
        method="highs",
    )
    if solved.x is None:
        raise InternalError(f"the linear program was not solved: {solved.message}")
    found = np.maximum(solved.x[:-1], 0.0).reshape(shape)
    return Reconstruction(found, widest_gap(found, parts), settled=bool(solved.success))
