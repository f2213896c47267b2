"""Recipe ``dpsyn``, the default: PrivSyn's outline with sharper scores, predicted errors and a maximum-entropy fit.

``bench/ablation.py`` measures what each step is worth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dpsyn.encoding import Levels, Recoding
from dpsyn.errors import UserError
from dpsyn.inference import MeasurementRound, PreviousReleases, Release, estimate_one_way, estimate_row_count
from dpsyn.marginals import Estimate
from dpsyn.options import check_options
from dpsyn.private import PrivateTable
from dpsyn.progress import MEASURE_ONE_WAY, Progress, Step, ignore_progress
from dpsyn.public import PublicTable
from dpsyn.recipes.adaptive_grid import MAX_GROUPS, finer_attributes, may_divide_cells
from dpsyn.recipes.adaptive_selection import (
    SELECTION_STEPS,
    AdaptiveSelection,
    Prepared,
    Priorities,
    check_share,
    check_target,
    check_weights,
    count_selection_passes,
    select_and_measure,
    split_rho,
)
from dpsyn.recipes.analyses import (
    ANALYSIS_SHARE,
    analyzed_attributes,
    check_analyses,
    covers_all_pairs,
    measure_analyses,
)
from dpsyn.recipes.anchors import DIFFERENCE_SHARE, find_anchors, keep_anchors, may_agree, measure_differences
from dpsyn.recipes.base import Measurements, Recipe
from dpsyn.recipes.one_way import (
    BIN_SHARE,
    RARE_SIGMAS,
    divide_by_frequency,
    divide_by_hierarchy,
    divide_by_mass,
    max_list_codes,
    recode_rare_values,
    refine_one_way,
    start_one_way,
)
from dpsyn.recipes.public_prior import Prior
from dpsyn.schema import Schema

ONLY_ONE_WAY = 0.85
"""If one-way marginals need more than this part of ρ, they get all of it: pairs would be noise."""

MAX_SHARE_WITH_TARGET = 0.35
"""The largest part of ρ for one-way marginals before pairs are scored if there is a target, which needs pairs."""


TEST_SHARE, TEST_SCORE_SHARE = 0.03, 0.9
"""Where one-way marginals would get all of ρ, the part that is left to test the dependence in public rows, and the part
of that which scores spend."""


@dataclass(frozen=True, kw_only=True)
class DPSyn(Recipe):
    """The default recipe: measure the marginals that are worth their noise, as scores against a model show.

    1. One-way marginals, with a part of the budget that follows from the noise they would have.
       Long lists and numbers that nearly always agree with another one are measured as differences from it.
    2. Rare values are merged; numbers and dates are divided into codes of about equal mass.
    3. Pairs are scored by their distance from a model of what is known so far (sensitivity 1), except for those that
       could not stand out from the noise. What the scores predict decides how much more is spent on one-way marginals,
       and which pairs are measured at which level. Then pairs and triples are scored again, if that pays off.

    >>> DPSyn(weights={"income": 4.0}, selection=AdaptiveSelection(max_triples=500)).selection.max_triples
    500

    Attributes:
        initial_share: the part of ρ for the first measurement of every one-way marginal, which also shows about how
            many rows there are; at least a tenth if there are numbers or dates, to find where their rows are.
        max_one_way_share: the largest part of ρ for one-way marginals before pairs are scored. If they need nearly all
            of it, they get it, and nothing else is measured.
        rare_sigmas: values with a noisy count below max(rare_sigmas·σ, rare_rows) are merged, with σ the standard
            deviation of its noise.
        rare_rows: the second part of that threshold, in rows; the NIST contest took 4.5 and 800.
        selection: how further marginals are selected.
        weights: how much errors in marginals with an attribute count, such as income=4; 1 for attributes that are not
            listed, and the product for a marginal. Public: choose weights without looking at the data.
        target: an attribute that is to be predicted from the others. Marginals with it count four times, unless its
            weight is given; and tables of three to five attributes that hold it are scored, too. Public as well.
        analyses: analyses that will be made, such as ``income ~ age + sex``, ``income by sex`` or ``sex, region``. The
            tables that they need are measured in any case, with half of what is left after one-way marginals, or with
            all of it if they hold every pair of attributes. Public as well.
    """

    name: ClassVar[str] = "dpsyn"
    summary: ClassVar[str] = (
        "Selects marginals by noisy scores against a model and fits the maximum-entropy distribution; the default."
    )
    steps: ClassVar[tuple[Step, ...]] = (MEASURE_ONE_WAY, *SELECTION_STEPS)

    initial_share: float = 0.05
    max_one_way_share: float = 0.7
    rare_sigmas: float = RARE_SIGMAS
    rare_rows: float = 0.0
    selection: AdaptiveSelection = AdaptiveSelection()  # noqa: RUF009 -- frozen
    weights: Mapping[str, float] = field(default_factory=dict)
    target: str | None = None
    analyses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_options(self, rare_rows=0)
        object.__setattr__(self, "weights", dict(self.weights))  # later changes of the caller's dictionary do not count
        check_share(self.initial_share, "initial_share")
        check_share(self.max_one_way_share, "max_one_way_share")
        if not self.initial_share:
            raise UserError("initial_share is 0; one-way marginals need a part of the budget, such as 0.05")

    def check(self, schema: Schema, previous: PreviousReleases | None) -> None:
        """Refuse weights of attributes that are not measured, and such a target or analysis."""
        super().check(schema, previous)
        check_weights(self.weights, schema)
        check_target(self.target, schema)
        check_analyses(self.analyses, schema)

    def measure(
        self,
        table: PrivateTable,
        *,
        previous: PreviousReleases | None = None,
        public: PublicTable | None = None,
        progress: Progress = ignore_progress,
    ) -> Measurements:
        """Measure one-way marginals, merge rare values, then select and measure marginals of several attributes.

        Privacy: spends the whole ρ of the budget.
        """
        progress("measuring every attribute", 0.0)
        finer = finer_attributes(table.schema)
        initial_share = max(self.initial_share, BIN_SHARE) if finer else self.initial_share
        first, rest = split_rho(table.budget.rho, initial_share)
        table, rounds = start_one_way(table, first)
        share = _one_way_share(table, rounds)
        needs_pairs = self.target is not None or bool(self.analyses)
        only_one_way = not needs_pairs and share > ONLY_ONE_WAY
        selection = self.selection
        share = min(share, MAX_SHARE_WITH_TARGET if needs_pairs else self.max_one_way_share)
        if only_one_way and public is not None:  # the rest shows whether the dependence in public rows can be trusted
            only_one_way, share = False, 1 - TEST_SHARE
            selection = replace(selection, score_share=TEST_SCORE_SHARE)
        kept = (*filter(None, [self.target]), *analyzed_attributes(self.analyses, table.schema))
        only_analyses = bool(self.analyses) and covers_all_pairs(self.analyses, table.schema)
        if only_analyses and not finer:  # tables of several attributes tell about each of them
            share = initial_share
        if previous is not None:
            table = table.recode(keep_anchors(table.recoding, previous.model.recoding))
        elif not finer:
            table, rounds, spent = find_anchors(table, rounds, table.budget.rho, kept=kept, public=public)
            rest -= spent
        more = 1.0 if only_one_way else max(0.0, share - initial_share) / (1 - initial_share)
        more = max(more, DIFFERENCE_SHARE if table.recoding.difference_codings else 0.0)
        second, rest = split_rho(rest, more)
        if second:
            table, rounds = refine_one_way(table, rounds, second, divide_cells=previous is None)
        again: tuple[Recoding, ...] = (rounds[-3].recoding, rounds[-1].recoding) if second and finer else ()
        if finer and previous is None and not only_one_way:  # their cells are final now
            table, rounds, spent = find_anchors(table, rounds, table.budget.rho, kept=kept, public=public)
            rest -= spent
            if table.recoding.difference_codings:
                part, rest = split_rho(rest, DIFFERENCE_SHARE)
                rounds = measure_differences(table, rounds, part)
                again = tuple(recoding.without(table.recoding.difference_codings) for recoding in again)
        row_count = table.public_row_count()
        prior = Prior(public, table.schema) if public is not None else None
        seen = prior.shrink(rounds) if prior else rounds  # what recodings follow from
        if only_one_way:
            recoding = previous.model.recoding if previous else divide_by_mass(table, rounds, table.recoding)[0]
            return Measurements(schema=table.schema, recoding=recoding, rounds=rounds, row_count=row_count)
        recoding, _ = recode_rare_values(
            table,
            seen,
            previous,
            rare_sigmas=self.rare_sigmas,
            rare_rows=self.rare_rows,
            max_values=max_list_codes(table),
            kept=analyzed_attributes(self.analyses, table.schema),
            thresholds=prior.rare_counts(table.recoding, rounds, self.rare_sigmas) if prior else None,
        )
        levels: dict[str, Levels] = {}
        finest: dict[str, Estimate] = {}
        if previous is None:
            recoding, of_lists = divide_by_hierarchy(
                table, seen, recoding, rare_sigmas=self.rare_sigmas, rare_rows=self.rare_rows
            )
            recoding, levels, finest = divide_by_mass(table, seen, recoding)
            levels |= of_lists
        levels |= divide_by_frequency(table, seen, recoding, levels, rest)
        unmerged, table = table.recoding, table.recode(recoding)  # merged values stay possible, however rare
        measurements = Measurements(
            schema=table.schema,
            recoding=recoding,
            rounds=rounds,
            row_count=row_count,
            public=prior.tables(rounds) if prior else None,
        )
        prepared = Prepared(table, measurements, levels, finest, again, unmerged if previous is None else None, prior)
        if self.analyses:
            part, rest = split_rho(rest, 1.0 if only_analyses else ANALYSIS_SHARE)
            measurements = measure_analyses(prepared, self.analyses, part, self.selection.max_triple_cells, progress)
            if measurements is prepared.measurements:  # no table of an analysis was small enough
                rest += part
            if prior:
                measurements = replace(measurements, public=prior.tables(measurements.rounds))
            prepared = replace(prepared, measurements=measurements)
        if not rest:
            return measurements
        return select_and_measure(
            prepared,
            previous,
            rest,
            selection,
            progress,
            priorities=Priorities(weights=self.weights, target=self.target),
        )

    def max_passes(self, schema: Schema) -> int:
        """One-way marginals in up to four rounds, two rounds of scores and of marginals, and the public row count.

        Two more count rows that agree, and differences, where attributes have the same values; one more the tables of
        declared analyses.
        """
        return count_selection_passes(schema, self.selection) + 2 * may_agree(schema) + bool(self.analyses)

    def max_reopenings(self, schema: Schema) -> int:
        """Two, if cells of numbers and dates may be divided where many rows are."""
        return 2 * int(may_divide_cells(schema))


def _one_way_share(table: PrivateTable, rounds: Sequence[MeasurementRound]) -> float:
    """The part of ρ for one-way marginals before pairs are scored: 1.25·∛E, E the error they would have with all of it.

    E = mean cells·σ·√(2/π)/(2n) with σ = Δ·√(d/2ρ), as a fraction of the rows; numbers and dates are measured over
    groups and leaves with half of their part each, and a long list counts with as many values as pairs can have. The
    cube root and its factor were found by experiment: where counts drown in the noise, scores against them would show
    only that noise. With 110 attributes of 20 000 rows at ε = 0.1 the part is 1: pairs would be noise.
    """
    finer, most = finer_attributes(table.schema), math.isqrt(table.limits.max_marginal_cells)
    cells = [
        MAX_GROUPS * math.sqrt(2) if name in finer else min(size, most)
        for name, size in zip(table.recoding.names, table.recoding.sizes, strict=True)
    ]
    release = [Release(tuple(rounds))]
    rows = max(estimate_row_count([estimate_one_way(release, table.recoding, n) for n in table.recoding.names]), 1.0)
    std = math.sqrt(table.privacy_unit.l2_sensitivity_squared * len(cells) / (2 * table.budget.rho))
    return 1.25 * math.cbrt(float(np.mean(cells)) * std * math.sqrt(2 / math.pi) / (2 * rows))
