"""Recipe ``dpsyn``, the default: PrivSyn's plan with sharper scores, honest predictions and a better fit.

``bench/ablation.py`` shows what each step is worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpsyn.inference import MeasurementRound, Release, estimate_one_way, estimate_row_count
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes.adaptive_selection import AdaptiveSelection, select_and_measure, split_share
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.one_way import measure_one_way, recode_rare_values
from dpsyn.synopsis import Synopsis


def dpsyn(
    table: PrivateTable,
    *,
    previous: Synopsis | None = None,
    progress: Progress = ignore_progress,
    options: AdaptiveSelection = AdaptiveSelection(),
) -> Measurements:
    """1-way marginals, compress, score pairs against a model, measure what is worth its noise; triples if it pays.

    Privacy: spends the whole ρ of the budget.
    """
    progress("measuring every attribute", 0.0)
    first, left = split_share(table.budget.rho, options.initial_share)
    table, stages = measure_one_way(table, first)
    wanted = _one_way_share(table, stages)
    alone = wanted > options.max_one_way_share
    more, left = split_share(
        left, 1.0 if alone else max(0.0, wanted - options.initial_share) / (1 - options.initial_share)
    )
    if more:
        table, again = measure_one_way(table, more)
        stages += again
    recoding, _ = recode_rare_values(
        table, stages, previous, rare_sigmas=options.rare_sigmas
    )  # few as they are, rare values stay possible
    table = table.recode(recoding)
    found = Measurements(schema=table.schema, recoding=recoding, rounds=stages, row_count=table.public_row_count())
    if alone:
        return found
    return select_and_measure(table, found, previous, left, options, progress)


def _one_way_share(table: PrivateTable, rounds: Sequence[MeasurementRound]) -> float:
    """The part of ρ for 1-way marginals: 1.25·∛E, where E is the error they would have with all of it.

    E = mean cells·σ·√(2/π)/(2n) with σ = Δ·√(d/2ρ), as a share of the rows. The cube root and its factor were found by
    trying: where counts drown in the noise, 1-way marginals are worth more than pairs; where they do not, the pairs
    tell about them. With 110 attributes of 20 000 rows at ε = 0.1 it is 1: pairs would be noise.
    """
    sizes = table.recoding.sizes
    told = [estimate_one_way([Release("", tuple(rounds))], table.recoding, name) for name in table.recoding.names]
    rows = max(estimate_row_count(told), 1.0)
    deviation = math.sqrt(table.privacy_unit.l2_sensitivity_squared * len(sizes) / (2 * table.budget.rho))
    error = float(np.mean(sizes)) * deviation * math.sqrt(2 / math.pi) / (2 * rows)
    return 1.25 * math.cbrt(error)
