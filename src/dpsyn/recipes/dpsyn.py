"""Recipe ``dpsyn``, the default: PrivSyn's outline with sharper scores, predicted errors and a maximum-entropy fit.

``bench/ablation.py`` measures what each step is worth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dpsyn.errors import UserError
from dpsyn.inference import MeasurementRound, PreviousReleases, Release, estimate_one_way, estimate_row_count
from dpsyn.options import check_options
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes.adaptive_grid import may_divide_cells
from dpsyn.recipes.adaptive_selection import (
    AdaptiveSelection,
    check_share,
    check_weights,
    count_selection_passes,
    select_and_measure,
    split_rho,
)
from dpsyn.recipes.base import Measurements, Recipe
from dpsyn.recipes.one_way import (
    RARE_SIGMAS,
    divide_by_mass,
    recode_rare_values,
    refine_one_way,
    start_one_way,
)
from dpsyn.schema import Schema


@dataclass(frozen=True, kw_only=True)
class DPSyn(Recipe):
    """The default recipe: measure the marginals that are worth their noise, as scores against a model show.

    1. One-way marginals, whose part of the budget follows from the noise they would have.
    2. Rare values are merged.
    3. All pairs are scored by their distance from a model of what is known so far (sensitivity 1), and those whose
       predicted improvement exceeds their noise are measured; then pairs and triples again, if that pays off.

    >>> DPSyn(weights={"income": 4.0}, selection=AdaptiveSelection(max_triples=500)).selection.max_triples
    500

    Attributes:
        initial_share: the part of ρ for the first measurement of every one-way marginal, which also shows about how
            many rows there are.
        max_one_way_share: the largest part of ρ for one-way marginals if anything else is measured; if they need more,
            they get all of it.
        rare_sigmas: values with a noisy count below this many standard deviations are merged.
        selection: how further marginals are selected.
        weights: how much errors in marginals with an attribute count, such as income=4; 1 for attributes that are not
            listed, and the product for a marginal. Public: choose weights without looking at the data.
    """

    name: ClassVar[str] = "dpsyn"
    summary: ClassVar[str] = (
        "Selects marginals by noisy scores against a model and fits the maximum-entropy distribution; the default."
    )

    initial_share: float = 0.05
    max_one_way_share: float = 0.7
    rare_sigmas: float = RARE_SIGMAS
    selection: AdaptiveSelection = AdaptiveSelection()  # noqa: RUF009 -- frozen
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_options(self)
        object.__setattr__(self, "weights", dict(self.weights))  # later changes of the caller's dictionary do not count
        check_share(self.initial_share, "initial_share")
        check_share(self.max_one_way_share, "max_one_way_share")
        if not self.initial_share:
            raise UserError("initial_share is 0; one-way marginals need a part of the budget, such as 0.05")

    def check(self, schema: Schema, previous: PreviousReleases | None) -> None:
        """Refuse weights of attributes that are not measured."""
        super().check(schema, previous)
        check_weights(self.weights, schema)

    def measure(
        self, table: PrivateTable, *, previous: PreviousReleases | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """Measure one-way marginals, merge rare values, then select and measure marginals of several attributes.

        Privacy: spends the whole ρ of the budget.
        """
        progress("measuring every attribute", 0.0)
        first, rest = split_rho(table.budget.rho, self.initial_share)
        table, rounds = start_one_way(table, first)
        share = _one_way_share(table, rounds)
        only_one_way = share > self.max_one_way_share
        more = 1.0 if only_one_way else max(0.0, share - self.initial_share) / (1 - self.initial_share)
        second, rest = split_rho(rest, more)
        if second:
            table, rounds = refine_one_way(table, rounds, second, divide_cells=previous is None)
        recoding, _ = recode_rare_values(table, rounds, previous, rare_sigmas=self.rare_sigmas)
        recoding, levels = (recoding, {}) if previous else divide_by_mass(table, rounds, recoding)
        table = table.recode(recoding)  # merged values stay possible, however rare
        measurements = Measurements(
            schema=table.schema, recoding=recoding, rounds=rounds, row_count=table.public_row_count()
        )
        if only_one_way:
            return measurements
        return select_and_measure(
            table, measurements, previous, rest, self.selection, progress, weights=self.weights, levels=levels
        )

    def max_passes(self, schema: Schema) -> int:
        """One-way marginals in up to three rounds, two rounds of scores and of marginals, and the public row count."""
        return count_selection_passes(schema, self.selection)

    def max_reopenings(self, schema: Schema) -> int:
        """One, if cells of numbers and dates may be divided where many rows are."""
        return int(may_divide_cells(schema))


def _one_way_share(table: PrivateTable, rounds: Sequence[MeasurementRound]) -> float:
    """The part of ρ for one-way marginals: 1.25·∛E, where E is the error they would have with all of it.

    E = mean cells·σ·√(2/π)/(2n) with σ = Δ·√(d/2ρ), as a fraction of the rows. The cube root and its factor were found
    by experiment: where counts drown in the noise, one-way marginals are worth more than pairs; where they do not,
    pairs inform them too. With 110 attributes of 20 000 rows at ε = 0.1 the part is 1: pairs would be noise.
    """
    sizes = table.recoding.sizes
    release = [Release(tuple(rounds))]
    rows = max(estimate_row_count([estimate_one_way(release, table.recoding, n) for n in table.recoding.names]), 1.0)
    std = math.sqrt(table.privacy_unit.l2_sensitivity_squared * len(sizes) / (2 * table.budget.rho))
    error = float(np.mean(sizes)) * std * math.sqrt(2 / math.pi) / (2 * rows)
    return 1.25 * math.cbrt(error)
