"""Recipe ``independent``: one-way marginals only. The baseline that every other recipe must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpsyn.inference import PreviousReleases
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes.adaptive_grid import may_divide_cells
from dpsyn.recipes.base import Measurements, Recipe
from dpsyn.recipes.one_way import count_adaptive_passes, divide_by_mass, measure_one_way_in_rounds
from dpsyn.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Independent(Recipe):
    """Measure every attribute by itself; rows are sampled as if attributes were independent.

    >>> Independent().is_baseline
    True
    """

    name: ClassVar[str] = "independent"
    summary: ClassVar[str] = "Measures every attribute by itself; what a recipe must beat to be worth its name."
    is_baseline: ClassVar[bool] = True

    def measure(
        self, table: PrivateTable, *, previous: PreviousReleases | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """Measure every one-way marginal with equal parts of ρ; with numbers or dates, by what noise does to each.

        Privacy: spends the whole ρ of the budget.
        """
        progress("measuring every attribute", 0.0)
        table, rounds = measure_one_way_in_rounds(table, table.budget.rho, divide_cells=previous is None)
        recoding = previous.model.recoding if previous else divide_by_mass(table, rounds, table.recoding)[0]
        return Measurements(schema=table.schema, recoding=recoding, rounds=rounds, row_count=table.public_row_count())

    def max_passes(self, schema: Schema) -> int:
        """One-way marginals, and the public row count."""
        return count_adaptive_passes(schema) + int(schema.row_count_is_public)

    def max_reopenings(self, schema: Schema) -> int:
        """Two, if cells of numbers and dates may be divided where many rows are."""
        return 2 * int(may_divide_cells(schema))
