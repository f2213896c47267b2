"""Recipe ``independent``: every attribute by itself. The yardstick that all others must beat."""

from __future__ import annotations

from collections.abc import Sequence

from dpsyn.marginals import Marginal
from dpsyn.private import PrivateTable


def independent(table: PrivateTable) -> Sequence[Marginal]:
    """Measure the 1-way marginal of every attribute, all with the same noise.

    Privacy: spends the whole ρ of the budget, in equal shares.
    """
    names = table.recoding.names
    return table.measure([(name,) for name in names], table.budget.shares([1] * len(names)))
