"""Recipe ``explore``: a first look under a budget, for whoever writes a plan (Li, Zhang and Wang, *DPSyn*)."""

from __future__ import annotations

import math

from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, silent
from dpsyn.recipes.compressing import compressed, measurable_pairs
from dpsyn.recipes.recipe import Findings
from dpsyn.recipes.singles import measure_singles
from dpsyn.synopsis import Scores, Synopsis

RARE = 3.0
"""Values with a noisy count below so many standard deviations are merged before pairs are looked at."""


def explore(table: PrivateTable, *, before: Synopsis | None = None, progress: Progress = silent) -> Findings:
    """1-way marginals with half of the budget, InDif of every pair with the other half.

    Privacy: spends the whole ρ of the budget.
    """
    progress("measuring every attribute", 0.0)
    for_singles, for_scores = table.budget.shares([1, 1])
    table, stages = measure_singles(table, for_singles)
    recoding, _ = compressed(table, stages, before, rare=RARE)
    table = table.recode(recoding)
    pairs = measurable_pairs(table)
    scores: tuple[Scores, ...] = ()
    if pairs:
        progress("scoring how pairs depend on each other", 0.0)
        values = table.dependence(pairs, for_scores)
        deviation = math.sqrt(len(pairs) * table.protection.score(4) ** 2 / (2 * for_scores))
        scores = (Scores("dependence", tuple(pairs), values, deviation),)
    return Findings(schema=table.schema, recoding=recoding, stages=stages, scores=scores, rows=table.public_rows())
