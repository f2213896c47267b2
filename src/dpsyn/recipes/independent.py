"""Recipe ``independent``: one-way marginals only. The baseline that every other recipe must beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dpsyn.inference import PreviousReleases
from dpsyn.private import PrivateTable, initial_recoding
from dpsyn.progress import MEASURE_ONE_WAY, Progress, Step, ignore_progress
from dpsyn.recipes.adaptive_grid import ROUND_SHARES, finer_attributes, may_divide_cells
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.marginal_recipe import MarginalRecipe
from dpsyn.recipes.one_way import (
    BIN_SHARE,
    count_adaptive_passes,
    divide_by_mass,
    measure_one_way_in_rounds,
)
from dpsyn.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Independent(MarginalRecipe):
    """Measure every attribute by itself; rows are sampled as if attributes were independent.

    >>> Independent().is_baseline
    True
    """

    name: ClassVar[str] = "independent"
    summary: ClassVar[str] = "Measures every attribute by itself; what a recipe must beat to be worth its name."
    steps: ClassVar[tuple[Step, ...]] = (MEASURE_ONE_WAY,)
    is_baseline: ClassVar[bool] = True

    def measure(
        self, table: PrivateTable, *, previous: PreviousReleases | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """Measure every one-way marginal with equal parts; with numbers or dates, by what noise does to each.

        Privacy: spends the whole budget: ρ, or ε if it is pure.
        """
        progress("measuring every attribute", 0.0)
        table, rounds = measure_one_way_in_rounds(table, table.budget.amount, divide_cells=previous is None)
        recoding = previous.model.recoding if previous else divide_by_mass(table, rounds, table.recoding)[0]
        return Measurements(schema=table.schema, recoding=recoding, rounds=rounds, row_count=table.public_row_count())

    def planned_shares(self, schema: Schema) -> Sequence[float]:
        """Equal parts; those of numbers and dates are divided among their rounds, see ``refine_one_way``.

        With numbers or dates, later rounds are divided by released counts; equal parts stand for that.
        """
        names, finer = [attribute.name for attribute in schema.modeled_attributes], finer_attributes(schema)
        columns = [[names[source] for source in column.sources] for column in initial_recoding(schema).columns]
        if not finer:
            return [len(sources) / len(names) for sources in columns]
        parts = {name: (1 - BIN_SHARE) * (2 if name in finer else 1) / (len(names) + len(finer)) for name in names}
        first, *later = (share / sum(ROUND_SHARES) for share in ROUND_SHARES)
        return [
            *(BIN_SHARE * len(sources) / len(names) for sources in columns),
            *(sum(parts[name] * (first if name in finer else 1) for name in sources) for sources in columns),
            *(parts[name] * share for share in later for name in finer),
        ]

    def max_passes(self, schema: Schema) -> int:
        """One-way marginals, and the public row count."""
        return count_adaptive_passes(schema) + int(schema.row_count_is_public)

    def max_reopenings(self, schema: Schema) -> int:
        """Two, if cells of numbers and dates may be divided where many rows are."""
        return 2 * int(may_divide_cells(schema))
