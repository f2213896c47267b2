"""Linear programs: where the solver lives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from dpsyn.errors import InternalError

Coefficients = NDArray[np.integer] | NDArray[np.floating]


def solve_linear_program(
    cost: Coefficients,
    entries: Coefficients,
    rows: NDArray[np.integer],
    columns: NDArray[np.integer],
    demand: Coefficients,
) -> NDArray[np.float64]:
    """The x ≥ 0 with least Σ cost·x and Σ entries·x = demand for every row; a corner of what is allowed.

    The matrix is sparse: ``entries`` stand at ``rows`` and ``columns``, and entries of the same place are added.
    """
    matrix = sparse.csr_array((entries, (rows, columns)), shape=(len(demand), len(cost)))
    solved = optimize.linprog(cost, A_eq=matrix, b_eq=demand, method="highs-ds")  # simplex: it ends in a corner
    if solved.status != 0:
        raise InternalError(f"a linear program was not solved: {solved.message}")
    return np.asarray(solved.x, np.float64)
