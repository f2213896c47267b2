"""Consistency: noisy tables become non-negative, sum to the same total and agree on the attributes that they share.

The method alternates between mutual consistency (``mutual_consistency.py``) and non-negativity (``nonnegativity.py``),
as PriView, CALM and PrivSyn do, with longer steps than theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn.errors import InternalError
from dpsyn.inference.mutual_consistency import (
    TableLayout,
    Vector,
    find_overlaps,
    make_mutually_consistent,
    weighted_total,
    widest_gap,
)
from dpsyn.inference.nonnegativity import norm_cut, norm_sub_each, ripple
from dpsyn.marginals import Estimate
from dpsyn.marginals.estimate import average_estimates
from dpsyn.progress import Progress, ignore_progress

CONSISTENCY_PHASE = "making tables agree"

SMALL_TOTAL = 500.0
"""Below this total the tolerance shrinks in proportion: half a count is a thousandth of 500 rows, but half of one."""

PLAIN_ROUNDS = 5
"""The rounds before steps are stretched. If steps are stretched from the first round they overshoot, because tables are
then as inconsistent as the noise makes them: the error of 45 pairs of a census table was about a tenth larger
(``bench/consistency.py``)."""

STEP_STRETCH = 1.95
"""The factor by which steps are stretched. Below 2 convergence is proven; of 1, 1.5, 1.8 and 1.95 this one took the
fewest rounds (``bench/consistency.py``)."""

RIPPLE_ROUNDS = 3
"""How often tables are rippled and made mutually consistent before the first norm-sub; ten times gain nothing more
(``bench/priview.py``)."""

RIPPLE_THRESHOLD_SIGMAS = 0.02
"""The threshold of ripple, in standard deviations of a table's noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyOptions:
    """Options of `make_consistent`.

    Attributes:
        rounds: the maximum number of rounds. A few dozen are usual; 500, as in PrivSyn, limit the time where these are
            not enough.
        tolerance: stop when no two tables differ by this count in any cell of their shared attributes; in proportion
            less if the total is below 500. Half a count makes no difference to whole rows.
        extrapolate: continue in the direction of each round as far as convergence allows. False gives the alternation
            of the papers, which needs two to ten times as many rounds for tables of the same quality
            (``bench/consistency.py``).
        ripple: take what negative cells lack from neighboring cells first, and leave the rest to norm-sub. Projections
            of large sparse tables to few of their attributes, such as PriView's views, stay much closer to the truth.
        norm_cut: end with mutual consistency and then norm-cut, instead of norm-sub. Negative counts are then taken
            from the smallest cells, so that large cells agree and more cells are zero. Small cells may differ by more.
    """

    rounds: int = 500
    tolerance: float = 0.5
    extrapolate: bool = True
    ripple: bool = False
    norm_cut: bool = False

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise InternalError(f"rounds is {self.rounds}; tables need at least one round")
        if not self.tolerance > 0:
            raise InternalError(f"tolerance is {self.tolerance}; it must be above 0")


def make_consistent(
    estimates: Sequence[Estimate],
    *,
    total: float | None = None,
    options: ConsistencyOptions | None = None,
    progress: Progress = ignore_progress,
) -> list[Estimate]:
    """Make tables non-negative, of equal totals and consistent on shared attributes; they change as little as possible.

    Tables of the same attributes are averaged first, weighted by inverse variance. So the result has one table for each
    set of attributes, in the order of the first tables and with their axes. Then mutual consistency and non-negativity
    alternate (PriView, CALM, PrivSyn) until shared attributes differ by less than ``options.tolerance``. If that takes
    more than ``options.rounds``, the result is the most consistent round.

    Args:
        estimates: noisy tables.
        total: the total of every table, if it is known; otherwise the mean of their totals, weighted by precision. If
            it is not positive, all cells become zero.
        options: the number of rounds and the tolerance.
        progress: receives the fraction of the rounds that is done.

    Privacy: post-processing; it costs nothing.
    """
    options = options or ConsistencyOptions()
    tables = average_estimates(estimates)
    if not tables:
        return []
    layout = TableLayout.of(tables)
    vector = layout.to_vector(tables)
    common = weighted_total(vector, layout) if total is None else total
    if not (np.isfinite(vector).all() and math.isfinite(common)):
        raise InternalError("a noisy table, or the total, is not finite")
    progress(CONSISTENCY_PHASE, 0.0)
    if options.ripple and common > 0:
        vector = _ripple_tables(vector, layout, common, [math.sqrt(table.variance) for table in tables])
    result = _alternate_projections(vector, layout, common, options, progress) if common > 0 else np.zeros_like(vector)
    progress(CONSISTENCY_PHASE, 1.0)
    return layout.to_estimates(result, tables)


def _ripple_tables(vector: Vector, layout: TableLayout, total: float, stds: Sequence[float]) -> Vector:
    """Make tables mutually consistent with hardly any negative cells left."""
    overlaps = find_overlaps(layout)
    rippled, _ = make_mutually_consistent(vector, layout, overlaps, total)
    for _ in range(RIPPLE_ROUNDS):
        for table, std in zip(layout.tables(rippled), stds, strict=True):
            table[...] = ripple(table, RIPPLE_THRESHOLD_SIGMAS * std)
        rippled, _ = make_mutually_consistent(rippled, layout, overlaps, total)
    return rippled


def _alternate_projections(
    vector: Vector, layout: TableLayout, total: float, options: ConsistencyOptions, progress: Progress
) -> Vector:
    """Alternate between mutually consistent and non-negative tables; end with non-negative ones."""
    overlaps = find_overlaps(layout)
    tolerance = options.tolerance * min(1.0, total / SMALL_TOTAL)
    consistent, _ = make_mutually_consistent(vector, layout, overlaps, total)
    smallest_gap, best = math.inf, (consistent, consistent)
    for done in range(1, options.rounds + 1):
        positive = norm_sub_each(consistent, layout.starts, total)
        projected, gap = make_mutually_consistent(positive, layout, overlaps, total)
        reached = gap < tolerance and widest_gap(positive, layout, overlaps) < tolerance
        if reached or gap < smallest_gap:
            smallest_gap, best = gap, (positive, projected)
        if reached:
            break
        stretch = STEP_STRETCH if done > PLAIN_ROUNDS else 1.0
        if options.extrapolate:
            consistent = extrapolate_step(consistent, positive, projected, layout, stretch)
        else:
            consistent = projected
        progress(CONSISTENCY_PHASE, done / options.rounds)
    positive, projected = best
    if options.norm_cut:
        return np.concatenate([norm_cut(table, total).ravel() for table in layout.tables(projected)])
    return positive


def extrapolate_step(
    consistent: Vector, positive: Vector, projected: Vector, layout: TableLayout, stretch: float
) -> Vector:
    """Lengthen the step from ``consistent`` to ``projected``; the result is consistent.

    It is not farther from any solution than ``consistent`` is. Let a be consistent tables, b the nearest non-negative
    ones and c the consistent ones nearest to b. Then the step c − a may be ‖b − a‖² / ‖c − a‖² times as long, and
    stretched by a further factor of up to 2 (Bauschke, Combettes, Kruk: Extrapolation algorithm for affine-convex
    feasibility problems, 2006). Norms are those in which both maps are orthogonal projections: the square of a cell is
    weighted by the precision of its table.
    """
    step = projected - consistent
    length = _squared_norm(step, layout)
    if length == 0:
        return projected
    return consistent + stretch * _squared_norm(positive - consistent, layout) / length * step


def _squared_norm(difference: Vector, layout: TableLayout) -> float:
    return float(layout.sums(difference * difference) @ layout.precisions)
