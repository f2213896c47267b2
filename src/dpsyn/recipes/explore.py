"""Recipe ``explore``: a first look under a budget, for whoever writes a plan (Li, Zhang and Wang, *DPSyn*)."""

from __future__ import annotations

import math

from dpsyn.inference import Scores
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.one_way import measurable_pairs, measure_one_way, recode_rare_values
from dpsyn.synopsis import Synopsis

RARE_SIGMAS = 3.0
"""Values with a noisy count below so many standard deviations are merged before pairs are looked at."""


def explore(
    table: PrivateTable, *, previous: Synopsis | None = None, progress: Progress = ignore_progress
) -> Measurements:
    """1-way marginals with half of the budget, InDif of every pair with the other half.

    Privacy: spends the whole ρ of the budget.
    """
    progress("measuring every attribute", 0.0)
    for_singles, for_scores = table.budget.split_rho([1, 1])
    table, stages = measure_one_way(table, for_singles)
    recoding, _ = recode_rare_values(table, stages, previous, rare_sigmas=RARE_SIGMAS)
    table = table.recode(recoding)
    pairs = measurable_pairs(table)
    scores: tuple[Scores, ...] = ()
    if pairs:
        progress("scoring how pairs depend on each other", 0.0)
        values = table.score_indif(pairs, for_scores)
        deviation = math.sqrt(len(pairs) * table.privacy_unit.score_sensitivity(4) ** 2 / (2 * for_scores))
        scores = (Scores("dependence", tuple(pairs), values, deviation),)
    return Measurements(
        schema=table.schema, recoding=recoding, rounds=stages, scores=scores, row_count=table.public_row_count()
    )
