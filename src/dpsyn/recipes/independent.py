"""Recipe ``independent``: every attribute by itself. The yardstick that all others must beat."""

from __future__ import annotations

from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.one_way import measure_one_way
from dpsyn.synopsis import Synopsis


def independent(
    table: PrivateTable, *, previous: Synopsis | None = None, progress: Progress = ignore_progress
) -> Measurements:
    """Measure the 1-way marginal of every attribute, in equal shares.

    Privacy: spends the whole ρ of the budget.
    """
    progress("measuring every attribute", 0.0)
    table, stages = measure_one_way(table, table.budget.rho)
    recoding = previous.model.recoding if previous else table.recoding
    return Measurements(schema=table.schema, recoding=recoding, rounds=stages, row_count=table.public_row_count())
