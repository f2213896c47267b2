"""Baseline ``direct``: noise on every k-way marginal. It shows what it costs not to select."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dpsyn.inference import PreviousReleases
from dpsyn.options import check_options
from dpsyn.private import PrivateTable
from dpsyn.progress import MEASURE_MARGINALS, MEASURE_ONE_WAY, Progress, Step, ignore_progress
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.marginal_recipe import MarginalRecipe
from dpsyn.recipes.one_way import count_preparation_passes
from dpsyn.recipes.priview import measure_views, plan_view_shares
from dpsyn.schema import Schema
from dpsyn.selection import AllViews


@dataclass(frozen=True, kw_only=True)
class Direct(MarginalRecipe):
    """Measure every marginal of a given number of attributes.

    >>> Direct(ways=3).ways
    3

    Attributes:
        ways: k, the number of attributes of each marginal.
    """

    name: ClassVar[str] = "direct"
    summary: ClassVar[str] = "Adds noise to every k-way marginal; what it costs not to select."
    steps: ClassVar[tuple[Step, ...]] = (MEASURE_ONE_WAY, MEASURE_MARGINALS)
    is_baseline: ClassVar[bool] = True

    ways: int = 2

    def __post_init__(self) -> None:
        check_options(self, ways=1)

    def measure(
        self, table: PrivateTable, *, previous: PreviousReleases | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """Measure every k-way marginal.

        Privacy: spends the whole budget: ρ, or ε if it is pure.
        """
        return measure_views(table, AllViews(ways=self.ways), previous, progress)

    def planned_shares(self, schema: Schema) -> Sequence[float]:
        """Those of all k-way marginals, if no value is merged."""
        return plan_view_shares(schema, AllViews(ways=self.ways))

    def max_passes(self, schema: Schema) -> int:
        """The preparation, and all marginals in one pass."""
        return count_preparation_passes(schema) + 1
