"""Recipe ``privsyn``: Zhang et al., *PrivSyn: Differentially Private Data Synthesis* (USENIX Security 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpsyn.accounting import split_exactly
from dpsyn.errors import UserError, quote_argument
from dpsyn.inference import GUM, MeasurementRound, PreviousReleases, Scores, Synthesis
from dpsyn.marginals import Clique
from dpsyn.options import check_options
from dpsyn.private import PrivateTable
from dpsyn.progress import MEASURE_MARGINALS, MEASURE_ONE_WAY, SCORE_PAIRS, Progress, Step, ignore_progress
from dpsyn.recipes.base import Measurements, Recipe
from dpsyn.recipes.one_way import (
    RARE_SIGMAS,
    count_cells,
    count_one_way_passes,
    count_score_passes,
    measurable_pairs,
    measure_one_way,
    recode_rare_values,
)
from dpsyn.schema import Schema
from dpsyn.selection import CELL_POWER, combine_pairs, select_pairs


@dataclass(frozen=True, kw_only=True)
class PrivSyn(Recipe):
    """The paper's algorithm: one-way marginals, InDif scores, greedy selection of pairs, GUM.

    >>> PrivSyn(rare_sigmas=4.5, rare_rows=800).synthesis.name  # θ = max(4.5σ, 800), as in the NIST contest
    'gum'

    Attributes:
        budget_shares: weights of the budget: how ρ is divided among one-way marginals, InDif scores and the selected
            marginals (section 5.1). 1,1,8 is the same as 0.1,0.1,0.8.
        rare_sigmas: values with a noisy count below θ = max(rare_sigmas·σ, rare_rows) are merged, with σ the standard
            deviation of its noise (section 4.3). 3 in the paper's appendix, 4.5 in the contest.
        rare_rows: the second part of θ, in rows; 0 in the paper's appendix, 800 in the contest.
        max_combined_cells: γ, the largest number of cells of a combined marginal (section 4.3).
    """

    name: ClassVar[str] = "privsyn"
    summary: ClassVar[str] = (
        "The algorithm of PrivSyn (USENIX Security 2021): pairs selected by InDif, rows synthesized by GUM."
    )
    steps: ClassVar[tuple[Step, ...]] = (MEASURE_ONE_WAY, SCORE_PAIRS, MEASURE_MARGINALS)

    synthesis: Synthesis = GUM()  # noqa: RUF009 -- frozen
    budget_shares: tuple[float, float, float] = (1, 1, 8)
    rare_sigmas: float = RARE_SIGMAS
    rare_rows: float = 0.0
    max_combined_cells: int = 5_000

    def __post_init__(self) -> None:
        check_options(self, rare_rows=0, max_combined_cells=1)
        if min(self.budget_shares) <= 0:
            raise UserError(
                f"budget_shares of PrivSyn is {quote_argument(self.budget_shares)}; give three numbers above 0"
            )

    def measure(
        self, table: PrivateTable, *, previous: PreviousReleases | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """Measure one-way marginals, merge rare values, score all pairs, select, combine, measure.

        Privacy: spends the whole ρ of the budget.
        """
        one_way_rho, score_rho, marginal_rho = table.budget.split_rho(self.budget_shares)
        progress("measuring every attribute", 0.0)
        table, rounds = measure_one_way(table, one_way_rho)
        recoding, zeroed = recode_rare_values(
            table, rounds, previous, rare_sigmas=self.rare_sigmas, rare_rows=self.rare_rows
        )
        table = table.recode(recoding)

        progress("scoring how pairs depend on each other", 0.0)
        pairs = measurable_pairs(table)
        scores = score_pairs(table, pairs, score_rho) if pairs else ()
        cliques = self._select(table, scores[0], marginal_rho) if scores else []

        if not cliques:  # no pair shows a dependence, so the rest of the budget improves the one-way marginals
            cliques = [(name,) for name in recoding.names]
            marginal_rho = table.budget.rho - one_way_rho - (score_rho if scores else 0)
        progress(f"measuring {len(cliques)} marginals", 0.0)
        rhos = split_exactly(marginal_rho, [cells**CELL_POWER for cells in count_cells(table, cliques)])
        rounds = (*rounds, MeasurementRound(recoding, tuple(table.measure(cliques, rhos))))
        return Measurements(
            schema=table.schema,
            recoding=recoding,
            rounds=rounds,
            scores=scores,
            zeroed_attributes=zeroed,
            row_count=table.public_row_count(),
        )

    def max_passes(self, schema: Schema) -> int:
        """One-way marginals, scores, marginals, and the public row count."""
        return count_one_way_passes(schema) + count_score_passes(schema) + 1 + int(schema.row_count_is_public)

    def _select(self, table: PrivateTable, scores: Scores, rho: Fraction) -> list[Clique]:
        """Select pairs by InDif and combine them into marginals of several attributes."""
        cells = np.array(count_cells(table, scores.cliques))
        selected = select_pairs(
            scores.values,
            cells,
            float(rho),
            sensitivity=math.sqrt(table.privacy_unit.l2_sensitivity_squared),
            max_total_cells=table.noisy_values_left,
        )
        sizes = dict(zip(table.recoding.names, table.recoding.sizes, strict=True))
        return combine_pairs([scores.cliques[i] for i in selected], sizes, max_cells=self.max_combined_cells)


def score_pairs(table: PrivateTable, pairs: list[Clique], rho: Fraction) -> tuple[Scores, ...]:
    """Measure InDif of every pair, the distance from independence.

    Privacy: spends ``rho``; InDif changes by at most 4 when one row is added or removed.
    """
    scores = table.score_indif(pairs, rho)
    return (Scores("dependence", tuple(pairs), scores.values, scores.std),)
