"""Several tables of the same attributes make one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.marginals import Estimate

EXACT = 1e12
"""How many times the best noisy table a table without noise counts: as if alone, to the precision of a float, and
still a number to calculate with."""


def precisions(variances: Sequence[float]) -> NDArray[np.float64]:
    """How much tables are worth beside each other: the inverse of their variances, at most 1 if there is noise.

    A variance of zero counts ``EXACT`` times the best other one, an infinite one so many times less.
    """
    given = np.array(variances, np.float64)
    noisy = given[(given > 0) & np.isfinite(given)]
    with np.errstate(divide="ignore"):
        relative = (noisy.min() if len(noisy) else 1.0) / given
    return np.clip(relative, 1 / EXACT, EXACT)


def averaged(estimates: Sequence[Estimate]) -> list[Estimate]:
    """One table for each set of attributes: the mean weighted by inverse variance, which has the least variance.

    Its axes are those of the first of its tables, and the sets come in the order of their first tables.
    """
    same: dict[frozenset[str], list[Estimate]] = defaultdict(list)
    for estimate in estimates:
        same[frozenset(estimate.clique)].append(estimate)
    return [tables[0] if len(tables) == 1 else _mean(tables) for tables in same.values()]


def _mean(tables: Sequence[Estimate]) -> Estimate:
    clique = tables[0].clique
    variances = [table.variance for table in tables]
    values = np.average([table.onto(clique) for table in tables], axis=0, weights=precisions(variances))
    with np.errstate(divide="ignore"):
        variance = 1 / np.sum(1 / np.array(variances, np.float64))
    return Estimate(clique, np.asarray(values, np.float64), float(variance))
