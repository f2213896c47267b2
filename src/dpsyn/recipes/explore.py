"""Recipe ``explore``: a first look under a budget, for whoever writes a plan (Li, Zhang and Wang, *DPSyn*)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpsyn.accounting import marginal_cost, split_exactly
from dpsyn.inference import (
    MeasurementRound,
    PreviousReleases,
    Release,
    Scores,
    estimate_one_way,
    estimate_row_count,
)
from dpsyn.marginals import Clique
from dpsyn.options import check_options
from dpsyn.plan import select_forest
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
from dpsyn.recipes.privsyn import score_pairs
from dpsyn.schema import Schema
from dpsyn.selection import CELL_POWER

CLEAR_SIGMAS = 3.0
"""A pair is worth a table if its score, and then its counts, are at least this many standard deviations of noise."""


@dataclass(frozen=True, kw_only=True)
class Explore(Recipe):
    """Measure one-way marginals, how strongly every pair depends, and tables of the strongest; see ``dpsyn explore``.

    >>> Explore(max_tables=5).budget_shares
    (1, 1, 1)

    Attributes:
        budget_shares: parts of ρ for one-way marginals, for the scores of pairs and for tables of the strongest pairs.
        max_tables: the largest number of pairs whose tables are measured. The strongest come first, without those
            whose attributes are already connected by stronger pairs, those that noise would hide, and those whose
            cells would exceed the limit of noisy values.
        rare_sigmas: values with a noisy count below max(rare_sigmas·σ, rare_rows) are merged before pairs are scored,
            with σ the standard deviation of its noise.
        rare_rows: the second part of that threshold, in rows; the NIST contest took 4.5 and 800.
    """

    name: ClassVar[str] = "explore"
    summary: ClassVar[str] = (
        "A first look: one-way marginals, the dependence of every pair, and tables of the strongest pairs."
    )
    steps: ClassVar[tuple[Step, ...]] = (MEASURE_ONE_WAY, SCORE_PAIRS, MEASURE_MARGINALS)

    budget_shares: tuple[int, int, int] = (1, 1, 1)
    max_tables: int = 20
    rare_sigmas: float = RARE_SIGMAS
    rare_rows: float = 0.0

    def __post_init__(self) -> None:
        check_options(self, budget_shares=1, max_tables=0, rare_rows=0)

    def measure(
        self, table: PrivateTable, *, previous: PreviousReleases | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """Measure one-way marginals, InDif of every pair, and the two-way marginals of the strongest pairs.

        If no pair is worth a table, the part of ρ for tables improves the one-way marginals.

        Privacy: spends the whole ρ of the budget.
        """
        progress("measuring every attribute", 0.0)
        one_way_rho, score_rho, table_rho = table.budget.split_rho(self.budget_shares)
        table, rounds = measure_one_way(table, one_way_rho)
        recoding, _ = recode_rare_values(
            table, rounds, previous, rare_sigmas=self.rare_sigmas, rare_rows=self.rare_rows
        )
        table = table.recode(recoding)
        pairs = measurable_pairs(table)
        if pairs:
            progress("scoring how pairs depend on each other", 0.0)
        scores = score_pairs(table, pairs, score_rho) if pairs else ()
        cliques = self._select_tables(table, rounds, scores[0], table_rho) if scores else []
        if not cliques:
            cliques = [(name,) for name in recoding.names]
            table_rho = table.budget.rho - one_way_rho - (score_rho if scores else 0)
        progress(f"measuring {len(cliques)} marginals", 0.0)
        rhos = split_exactly(table_rho, [cells**CELL_POWER for cells in count_cells(table, cliques)])
        return Measurements(
            schema=table.schema,
            recoding=recoding,
            rounds=(*rounds, MeasurementRound(recoding, tuple(table.measure(cliques, rhos)))),
            scores=scores,
            row_count=table.public_row_count(),
        )

    def max_passes(self, schema: Schema) -> int:
        """One-way marginals, scores, tables, and the public row count."""
        return count_one_way_passes(schema) + count_score_passes(schema) + 1 + int(schema.row_count_is_public)

    def _select_tables(
        self, table: PrivateTable, rounds: tuple[MeasurementRound, ...], scores: Scores, rho: Fraction
    ) -> list[Clique]:
        """The strongest pairs that form no cycle, as long as all their tables would show what follows from what.

        If one attribute follows from the other, its rows are in as many cells as the longer list has values. Their
        average count must stand out from the noise.
        """
        clear = np.flatnonzero(scores.values > CLEAR_SIGMAS * scores.std)
        strongest = clear[np.argsort(-scores.values[clear], kind="stable")]
        sizes = dict(zip(table.recoding.names, table.recoding.sizes, strict=True))
        measured = rounds[-1].recoding  # an extended synopsis may have joint attributes
        total = estimate_row_count([estimate_one_way([Release(rounds)], measured, name) for name in measured.names])
        std = marginal_cost(table.budget, rho, table.privacy_unit).std  # of a table that has all of ρ

        def show_dependence(cliques: list[Clique]) -> bool:
            weights = np.array(count_cells(table, cliques)) ** CELL_POWER
            counts = total / np.array([max(sizes[name] for name in clique) for clique in cliques])
            return bool((counts >= CLEAR_SIGMAS * std * np.sqrt(weights.sum() / weights)).all())

        def fit(cliques: list[Clique]) -> bool:
            return len(cliques) <= self.max_tables and sum(count_cells(table, cliques)) <= table.noisy_values_left

        selected: list[Clique] = []
        for pair in select_forest([scores.cliques[index] for index in strongest], len(sizes)):
            if fit([*selected, pair]) and show_dependence([*selected, pair]):
                selected.append(pair)
        return selected
