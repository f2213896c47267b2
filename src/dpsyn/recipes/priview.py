"""Recipe ``priview``: Qardaji et al., *PriView: Practical Differentially Private Release of Marginals* (SIGMOD 2014).

It publishes views from which any other table can be worked out with error bars: ``Synopsis.marginal``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsyn.accounting import split
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, silent
from dpsyn.recipes.compressing import cells_of
from dpsyn.recipes.preparing import prepare
from dpsyn.recipes.recipe import Findings
from dpsyn.selection import CELL_POWER, Noise, Views, plan_views
from dpsyn.synopsis import Stage, Synopsis


@dataclass(frozen=True, slots=True, kw_only=True)
class PriViewOptions:
    """What to publish.

    Attributes:
        views: a covering design, or random sets of attributes; None leaves it to the noise that is predicted.
    """

    views: Views | None = None


def priview(
    table: PrivateTable,
    *,
    before: Synopsis | None = None,
    progress: Progress = silent,
    options: PriViewOptions = PriViewOptions(),  # noqa: B008 -- frozen
) -> Findings:
    """Prepare, plan views by the noise they will have, measure them.

    Privacy: spends the whole ρ of the budget. The plan depends on the schema, the budget and a number of rows that is
    public or was bought.
    """
    progress("measuring every attribute", 0.0)
    ready = prepare(table, before)
    table, rho = ready.table, float(ready.left)
    plan = plan_views(
        dict(zip(table.recoding.names, table.recoding.sizes, strict=True)),
        Noise(rho, math.sqrt(table.protection.l2_squared), ready.rows),
        options.views,
        most_cells=table.limits.cells,
        most_draws=table.draws_left,
    )
    progress(f"measuring {plan.words}", 0.0)
    shares = split(ready.left, [cells**CELL_POWER for cells in cells_of(table, plan.cliques)])
    stage = Stage(table.recoding, tuple(table.measure(plan.cliques, shares)))
    return Findings(
        schema=table.schema,
        recoding=table.recoding,
        stages=(*ready.stages, stage),
        zeroed=ready.zeroed,
        rows=table.public_rows(),
    )
