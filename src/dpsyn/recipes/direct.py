"""Recipe ``direct``: noise on every table of k attributes. A yardstick: what it costs not to choose."""

from __future__ import annotations

from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, silent
from dpsyn.recipes.priview import PriViewOptions, priview
from dpsyn.recipes.recipe import Findings
from dpsyn.selection import Every
from dpsyn.synopsis import Synopsis


def direct(
    table: PrivateTable, *, before: Synopsis | None = None, progress: Progress = silent, ways: int = 2
) -> Findings:
    """Measure every set of ``ways`` attributes.

    Privacy: spends the whole ρ of the budget.
    """
    return priview(table, before=before, progress=progress, options=PriViewOptions(views=Every(ways)))
