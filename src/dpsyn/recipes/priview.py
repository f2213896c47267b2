"""Recipe ``priview``: Qardaji et al., *PriView: Practical Differentially Private Release of Marginals* (SIGMOD 2014).

It publishes views (marginals of several attributes) from which any other marginal is reconstructed with error bars:
``Synopsis.marginal``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpsyn.accounting import split_exactly
from dpsyn.inference import MeasurementRound, PreviousReleases
from dpsyn.options import text_option
from dpsyn.private import PrivateTable, ReleaseLimits, initial_recoding
from dpsyn.progress import MEASURE_MARGINALS, MEASURE_ONE_WAY, Progress, Step, ignore_progress
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.marginal_recipe import MarginalRecipe
from dpsyn.recipes.one_way import (
    COUNT_SHARE,
    count_cells,
    count_preparation_passes,
    needs_preparation,
    prepare_table,
)
from dpsyn.schema import Schema
from dpsyn.selection import CELL_POWER, ViewNoise, ViewScheme, parse_views, select_views


@dataclass(frozen=True, kw_only=True)
class PriView(MarginalRecipe):
    """Publish views for any later query, rather than for rows.

    >>> from dpsyn.selection import parse_views
    >>> PriView(views=parse_views("covering:2x8")).name
    'priview'

    Attributes:
        views: which marginals to publish: ``covering:2x8`` (sets of 8 attributes that contain every pair),
            ``random:50x8`` (50 random sets of 8 attributes; ``random:50x8:7`` with the seed 7) or ``all:3`` (every
            set of 3); none selects the views with the least predicted noise.
    """

    name: ClassVar[str] = "priview"
    summary: ClassVar[str] = (
        "Publishes views for queries that are not known yet, as PriView (SIGMOD 2014): covering designs of attributes."
    )
    steps: ClassVar[tuple[Step, ...]] = (MEASURE_ONE_WAY, MEASURE_MARGINALS)

    views: ViewScheme | None = text_option(  # noqa: RUF009 -- a field
        None, parse=parse_views, type_words="covering:2x8|random:50x8|all:3|none"
    )

    def measure(
        self, table: PrivateTable, *, previous: PreviousReleases | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """Prepare the attributes, select views by the noise they will have, measure them.

        Privacy: spends the whole budget: ρ, or ε if it is pure. The views depend on the schema, the budget
        and a number of rows that is public or was measured with noise.
        """
        return measure_views(table, self.views, previous, progress)

    def planned_shares(self, schema: Schema) -> Sequence[float]:
        """Those of the views, if a scheme gives them and no value is merged."""
        return plan_view_shares(schema, self.views)

    def max_passes(self, schema: Schema) -> int:
        """The preparation, and all views in one pass."""
        return count_preparation_passes(schema) + 1


def plan_view_shares(schema: Schema, scheme: ViewScheme | None) -> list[float]:
    """The parts of the budget that ``measure_views`` gives to views; none if they depend on noisy answers."""
    if scheme is None or needs_preparation(schema):
        return []
    recoding, limits = initial_recoding(schema), ReleaseLimits()
    sizes = dict(zip(recoding.names, recoding.sizes, strict=True))
    selected = select_views(
        sizes,
        ViewNoise(1.0, 1.0, 1.0),  # a scheme does not depend on the noise
        scheme,
        max_cells=limits.max_marginal_cells,
        max_total_cells=limits.max_noisy_values,
    )
    views = 1 - (0.0 if schema.row_count_is_public or schema.expected_size else COUNT_SHARE)
    weights = [math.prod(sizes[name] for name in clique) ** CELL_POWER for clique in selected.cliques]
    return [views * weight / sum(weights) for weight in weights]


def _view_noise(table: PrivateTable, amount: Fraction, rows: float) -> ViewNoise:
    unit = table.privacy_unit
    if table.budget.is_pure:
        return ViewNoise(float(amount), float(unit.l1_sensitivity), rows, pure=True)
    return ViewNoise(float(amount), math.sqrt(unit.l2_sensitivity_squared), rows)


def measure_views(
    table: PrivateTable, scheme: ViewScheme | None, previous: PreviousReleases | None, progress: Progress
) -> Measurements:
    """Measure the views of a scheme, with parts of ρ that minimize the sum of errors.

    Privacy: spends the whole budget: ρ, or ε if it is pure.
    """
    progress("measuring every attribute", 0.0)
    prepared = prepare_table(table, previous)
    table = prepared.table
    selected = select_views(
        dict(zip(table.recoding.names, table.recoding.sizes, strict=True)),
        _view_noise(table, prepared.rho_left, prepared.row_count),
        scheme,
        max_cells=table.limits.max_marginal_cells,
        max_total_cells=table.noisy_values_left,
    )
    progress(f"measuring {selected.description}", 0.0)
    rhos = split_exactly(prepared.rho_left, [cells**CELL_POWER for cells in count_cells(table, selected.cliques)])
    views = MeasurementRound(table.recoding, tuple(table.measure(selected.cliques, rhos)))
    return Measurements(
        schema=table.schema,
        recoding=table.recoding,
        rounds=(*prepared.rounds, views),
        zeroed_attributes=prepared.zeroed_attributes,
        row_count=table.public_row_count(),
    )
