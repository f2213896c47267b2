"""Recipe ``direct``: noise on every table of k attributes. A yardstick: what it costs not to choose."""

from __future__ import annotations

from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.priview import PriView, priview
from dpsyn.selection import AllViews
from dpsyn.synopsis import Synopsis


def direct(
    table: PrivateTable, *, previous: Synopsis | None = None, progress: Progress = ignore_progress, ways: int = 2
) -> Measurements:
    """Measure every set of ``ways`` attributes.

    Privacy: spends the whole ρ of the budget.
    """
    return priview(table, previous=previous, progress=progress, options=PriView(views=AllViews(ways=ways)))
