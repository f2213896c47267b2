"""Linear programs, solved by the simplex method of scipy (HiGHS)."""

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
    """The x ≥ 0 that minimizes Σ cost·x with Σ entries·x = demand for every row; a vertex of the feasible set.

    The matrix is sparse: ``entries`` are at ``rows`` and ``columns``, and entries at the same position are added.
    """
    matrix = sparse.csr_array((entries, (rows, columns)), shape=(len(demand), len(cost)))
    solved = optimize.linprog(cost, A_eq=matrix, b_eq=demand, method="highs-ds")  # simplex, so the solution is a vertex
    if solved.status != 0:
        raise InternalError(f"a linear program was not solved: {solved.message}")
    return np.asarray(solved.x, np.float64)
