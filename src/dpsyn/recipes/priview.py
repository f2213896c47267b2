"""Recipe ``priview``: Qardaji et al., *PriView: Practical Differentially Private Release of Marginals* (SIGMOD 2014).

It publishes views from which any other table can be worked out with error bars: ``Synopsis.marginal``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsyn.accounting import split_exactly
from dpsyn.inference import MeasurementRound
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.one_way import count_cells, prepare_table
from dpsyn.selection import CELL_POWER, ViewNoise, ViewScheme, select_views
from dpsyn.synopsis import Synopsis


@dataclass(frozen=True, slots=True, kw_only=True)
class PriView:
    """What to publish.

    Attributes:
        views: a covering design, or random sets of attributes; None leaves it to the noise that is predicted.
    """

    views: ViewScheme | None = None


def priview(
    table: PrivateTable,
    *,
    previous: Synopsis | None = None,
    progress: Progress = ignore_progress,
    options: PriView = PriView(),
) -> Measurements:
    """Prepare, plan views by the noise they will have, measure them.

    Privacy: spends the whole ρ of the budget. The plan depends on the schema, the budget and a number of rows that is
    public or was bought.
    """
    progress("measuring every attribute", 0.0)
    ready = prepare_table(table, previous)
    table, rho = ready.table, float(ready.rho_left)
    plan = select_views(
        dict(zip(table.recoding.names, table.recoding.sizes, strict=True)),
        ViewNoise(rho, math.sqrt(table.privacy_unit.l2_sensitivity_squared), ready.row_count),
        options.views,
        max_cells=table.limits.max_marginal_cells,
        max_total_cells=table.noisy_values_left,
    )
    progress(f"measuring {plan.description}", 0.0)
    shares = split_exactly(ready.rho_left, [cells**CELL_POWER for cells in count_cells(table, plan.cliques)])
    stage = MeasurementRound(table.recoding, tuple(table.measure(plan.cliques, shares)))
    return Measurements(
        schema=table.schema,
        recoding=table.recoding,
        rounds=(*ready.rounds, stage),
        zeroed_attributes=ready.zeroed_attributes,
        row_count=table.public_row_count(),
    )
