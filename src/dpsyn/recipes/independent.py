"""Recipe ``independent``: every attribute by itself. The yardstick that all others must beat."""

from __future__ import annotations

from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, silent
from dpsyn.recipes.recipe import Findings
from dpsyn.recipes.singles import measure_singles
from dpsyn.synopsis import Synopsis


def independent(table: PrivateTable, *, before: Synopsis | None = None, progress: Progress = silent) -> Findings:
    """Measure the 1-way marginal of every attribute, in equal shares.

    Privacy: spends the whole ρ of the budget.
    """
    progress("measuring every attribute", 0.0)
    table, stages = measure_singles(table, table.budget.rho)
    recoding = before.model.recoding if before else table.recoding
    return Findings(schema=table.schema, recoding=recoding, stages=stages, rows=table.public_rows())
