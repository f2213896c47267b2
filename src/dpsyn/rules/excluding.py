"""Structural zeros: cells of released tables that rules exclude."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsyn.marginals import Estimate, Factor


def without_excluded(estimate: Estimate, factors: Sequence[Factor], total: float | None = None) -> Estimate:
    """The table with all cells set to zero that no row can be in; with a total, the others make up for it.

    Whatever noise made of those cells is gone: they are known without having been measured.
    """
    values = np.array(estimate.values)
    for factor in factors:
        shared = [name for name in estimate.clique if name in factor.clique]
        if not shared:
            continue
        others = tuple(axis for axis, name in enumerate(factor.clique) if name not in shared)
        possible = (factor.shares > 0).any(axis=others)
        kept = [name for name in factor.clique if name in shared]
        possible = np.transpose(possible, [kept.index(name) for name in shared])
        values *= possible.reshape(
            [n if name in shared else 1 for n, name in zip(values.shape, estimate.clique, strict=True)]
        )
    if total is not None and values.sum() > 0:
        values *= total / values.sum()
    return Estimate(estimate.clique, values, estimate.variance)
