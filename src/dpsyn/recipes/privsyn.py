"""Recipe ``privsyn``: Zhang et al., *PrivSyn: Differentially Private Data Synthesis* (USENIX Security 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsyn.accounting import split
from dpsyn.marginals import Clique
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, silent
from dpsyn.recipes.compressing import cells_of, compressed, measurable_pairs
from dpsyn.recipes.recipe import Findings
from dpsyn.recipes.singles import measure_singles
from dpsyn.selection import CELL_POWER, combine, select_pairs
from dpsyn.synopsis import Scores, Stage, Synopsis


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivSynOptions:
    """The paper's constants.

    Attributes:
        weights: parts of ρ for 1-way marginals, for InDif scores and for the chosen marginals (section 5.1).
        rare: values with a noisy count below so many standard deviations are merged (section 4.3).
        rare_rows: and those below so many rows; the contest took max(4.5σ, 800).
        most_cells: γ, cells of a combined marginal (section 4.3).
    """

    weights: tuple[int, int, int] = (1, 1, 8)
    rare: float = 3.0
    rare_rows: float = 0.0
    most_cells: int = 5_000


def privsyn(
    table: PrivateTable,
    *,
    before: Synopsis | None = None,
    progress: Progress = silent,
    options: PrivSynOptions = PrivSynOptions(),  # noqa: B008 -- frozen
) -> Findings:
    """1-way marginals, compress, InDif of all pairs, select, combine, measure.

    Privacy: spends the whole ρ of the budget.
    """
    for_singles, for_scores, for_marginals = table.budget.shares(options.weights)
    progress("measuring every attribute", 0.0)
    table, stages = measure_singles(table, for_singles)
    recoding, zeroed = compressed(table, stages, before, rare=options.rare, rare_rows=options.rare_rows)
    table = table.recode(recoding)

    progress("scoring how pairs depend on each other", 0.0)
    pairs = measurable_pairs(table)
    scores = _dependence(table, pairs, for_scores) if pairs else ()
    cliques = _chosen(table, scores, for_marginals, options) if scores else []

    if not cliques:  # nothing depends on anything, as far as can be seen: then the rest sharpens the 1-way marginals
        cliques = [(name,) for name in recoding.names]
        for_marginals = table.budget.rho - for_singles - (for_scores if scores else 0)
    progress(f"measuring {len(cliques)} marginals", 0.0)
    shares = split(for_marginals, [cells**CELL_POWER for cells in cells_of(table, cliques)])
    stages = (*stages, Stage(recoding, tuple(table.measure(cliques, shares))))
    return Findings(
        schema=table.schema,
        recoding=recoding,
        stages=stages,
        scores=scores,
        zeroed=zeroed,
        rows=table.public_rows(),
        method="gum",
    )


def _dependence(table: PrivateTable, pairs: list[Clique], share: Fraction) -> tuple[Scores, ...]:
    values = table.dependence(pairs, share)
    deviation = math.sqrt(len(pairs) * table.protection.score(4) ** 2 / (2 * share))
    return (Scores("dependence", tuple(pairs), values, deviation),)


def _chosen(table: PrivateTable, scores: tuple[Scores, ...], share: Fraction, options: PrivSynOptions) -> list[Clique]:
    """The marginals to measure: pairs by InDif, combined."""
    pairs = scores[0].cliques
    cells = np.array(cells_of(table, pairs))
    chosen = select_pairs(
        scores[0].values,
        cells,
        float(share),
        sensitivity=math.sqrt(table.protection.l2_squared),
        most_cells=table.draws_left,
    )
    sizes = dict(zip(table.recoding.names, table.recoding.sizes, strict=True))
    return combine([pairs[place] for place in chosen], sizes, most_cells=options.most_cells)
