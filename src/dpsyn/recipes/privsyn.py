"""Recipe ``privsyn``: Zhang et al., *PrivSyn: Differentially Private Data Synthesis* (USENIX Security 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsyn.accounting import split_exactly
from dpsyn.inference import MeasurementRound, Scores
from dpsyn.marginals import Clique
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.one_way import count_cells, measurable_pairs, measure_one_way, recode_rare_values
from dpsyn.selection import CELL_POWER, combine_pairs, select_pairs
from dpsyn.synopsis import Synopsis


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivSyn:
    """The paper's constants.

    Attributes:
        budget_shares: parts of ρ for 1-way marginals, for InDif scores and for the chosen marginals (section 5.1).
        rare_sigmas: values with a noisy count below so many standard deviations are merged (section 4.3).
        rare_rows: and those below so many rows; the contest took max(4.5σ, 800).
        max_combined_cells: γ, cells of a combined marginal (section 4.3).
    """

    budget_shares: tuple[int, int, int] = (1, 1, 8)
    rare_sigmas: float = 3.0
    rare_rows: float = 0.0
    max_combined_cells: int = 5_000


def privsyn(
    table: PrivateTable,
    *,
    previous: Synopsis | None = None,
    progress: Progress = ignore_progress,
    options: PrivSyn = PrivSyn(),
) -> Measurements:
    """1-way marginals, compress, InDif of all pairs, select, combine, measure.

    Privacy: spends the whole ρ of the budget.
    """
    for_singles, for_scores, for_marginals = table.budget.split_rho(options.budget_shares)
    progress("measuring every attribute", 0.0)
    table, stages = measure_one_way(table, for_singles)
    recoding, zeroed = recode_rare_values(
        table, stages, previous, rare_sigmas=options.rare_sigmas, rare_rows=options.rare_rows
    )
    table = table.recode(recoding)

    progress("scoring how pairs depend on each other", 0.0)
    pairs = measurable_pairs(table)
    scores = _score_pairs(table, pairs, for_scores) if pairs else ()
    cliques = _select(table, scores, for_marginals, options) if scores else []

    if not cliques:  # nothing depends on anything, as far as can be seen: then the rest sharpens the 1-way marginals
        cliques = [(name,) for name in recoding.names]
        for_marginals = table.budget.rho - for_singles - (for_scores if scores else 0)
    progress(f"measuring {len(cliques)} marginals", 0.0)
    shares = split_exactly(for_marginals, [cells**CELL_POWER for cells in count_cells(table, cliques)])
    stages = (*stages, MeasurementRound(recoding, tuple(table.measure(cliques, shares))))
    return Measurements(
        schema=table.schema,
        recoding=recoding,
        rounds=stages,
        scores=scores,
        zeroed_attributes=zeroed,
        row_count=table.public_row_count(),
        method="gum",
    )


def _score_pairs(table: PrivateTable, pairs: list[Clique], rho: Fraction) -> tuple[Scores, ...]:
    values = table.score_indif(pairs, rho)
    deviation = math.sqrt(len(pairs) * table.privacy_unit.score_sensitivity(4) ** 2 / (2 * rho))
    return (Scores("dependence", tuple(pairs), values, deviation),)


def _select(table: PrivateTable, scores: tuple[Scores, ...], rho: Fraction, options: PrivSyn) -> list[Clique]:
    """The marginals to measure: pairs by InDif, combined."""
    pairs = scores[0].cliques
    cells = np.array(count_cells(table, pairs))
    chosen = select_pairs(
        scores[0].values,
        cells,
        float(rho),
        sensitivity=math.sqrt(table.privacy_unit.l2_sensitivity_squared),
        max_total_cells=table.noisy_values_left,
    )
    sizes = dict(zip(table.recoding.names, table.recoding.sizes, strict=True))
    return combine_pairs([pairs[place] for place in chosen], sizes, max_cells=options.max_combined_cells)
