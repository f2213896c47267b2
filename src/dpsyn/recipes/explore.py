"""Recipe ``explore``: a first look under a budget, for whoever writes a plan (Li, Zhang and Wang, *DPSyn*)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpsyn.inference import PreviousReleases
from dpsyn.options import check_options
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes.base import Measurements, Recipe
from dpsyn.recipes.one_way import (
    RARE_SIGMAS,
    count_one_way_passes,
    count_score_passes,
    measurable_pairs,
    measure_one_way,
    recode_rare_values,
)
from dpsyn.recipes.privsyn import score_pairs
from dpsyn.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Explore(Recipe):
    """Measure one-way marginals and how strongly every pair depends; ``dpsyn explore`` shows the result.

    >>> Explore().rare_sigmas
    3.0

    Attributes:
        rare_sigmas: values with a noisy count below max(rare_sigmas·σ, rare_rows) are merged before pairs are scored,
            with σ the standard deviation of its noise.
        rare_rows: the second part of that threshold, in rows; the NIST contest took 4.5 and 800.
    """

    name: ClassVar[str] = "explore"
    summary: ClassVar[str] = (
        "A first look: one-way marginals with half of the budget, the dependence of every pair with the other half."
    )

    rare_sigmas: float = RARE_SIGMAS
    rare_rows: float = 0.0

    def __post_init__(self) -> None:
        check_options(self, rare_rows=0)

    def measure(
        self, table: PrivateTable, *, previous: PreviousReleases | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """Measure one-way marginals with half of ρ, and InDif of every pair with the other half.

        Privacy: spends the whole ρ of the budget.
        """
        progress("measuring every attribute", 0.0)
        one_way_rho, score_rho = table.budget.split_rho([1, 1])
        table, rounds = measure_one_way(table, one_way_rho)
        recoding, _ = recode_rare_values(
            table, rounds, previous, rare_sigmas=self.rare_sigmas, rare_rows=self.rare_rows
        )
        table = table.recode(recoding)
        pairs = measurable_pairs(table)
        if pairs:
            progress("scoring how pairs depend on each other", 0.0)
        return Measurements(
            schema=table.schema,
            recoding=recoding,
            rounds=rounds,
            scores=score_pairs(table, pairs, score_rho) if pairs else (),
            row_count=table.public_row_count(),
        )

    def max_passes(self, schema: Schema) -> int:
        """One-way marginals, scores, and the public row count."""
        return count_one_way_passes(schema) + count_score_passes(schema) + int(schema.row_count_is_public)
