"""Make noisy tables agree and non-negative."""

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
"""Below this total the gap shrinks with it: half a count is a thousandth of 500, but half of a single row."""

PLAIN_ROUNDS = 5
"""Rounds before steps are stretched. Stretched from the first they overshoot, since nothing is as far from agreement
as the noise is: the error of 45 pairs of a census table was about a tenth larger (``bench/consistency.py``)."""

STEP_STRETCH = 1.95
"""How much longer steps are then. Below 2 convergence is proven; of 1, 1.5, 1.8 and 1.95 this took the fewest rounds
(``bench/consistency.py``)."""

RIPPLE_ROUNDS = 3
"""Times that tables are rippled and made to agree again before the first norm-sub; ten times gain nothing more
(``bench/priview.py``)."""

RIPPLE_THRESHOLD_SIGMAS = 0.02
"""The threshold of ripple, in standard deviations of a table's noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyOptions:
    """How tables are made to agree.

    Attributes:
        rounds: at most so many. A few dozen are usual; 500, as in PrivSyn, bound the time where they are not enough.
        tolerance: stop when no two tables differ by so much on anything that both tell, in counts; in proportion less if
            the total is below 500. Half a count makes no difference to whole rows.
        extrapolate: go on in the direction of each round as far as is safe. False is the alternation of the papers,
            which takes two to ten times the rounds to tables of the same quality (``bench/consistency.py``).
        ripple: take what negative cells lack from cells nearby first, and leave to norm-sub what remains. Sums of large
            sparse tables over few of their attributes, such as PriView's views, keep much closer to the truth.
        norm_cut: end on tables that agree and then norm-cut, not on norm-sub: what is negative by then is taken from the
            smallest cells, so that large cells agree and more cells are zero. Small cells may differ by more.
    """

    rounds: int = 500
    tolerance: float = 0.5
    extrapolate: bool = True
    ripple: bool = False
    norm_cut: bool = False

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise InternalError(f"tables cannot be made to agree in {self.rounds} rounds")
        if not self.tolerance > 0:
            raise InternalError(f"tables cannot be made to agree to {self.tolerance} counts")


def make_consistent(
    estimates: Sequence[Estimate],
    *,
    total: float | None = None,
    options: ConsistencyOptions | None = None,
    progress: Progress = ignore_progress,
) -> list[Estimate]:
    """Non-negative tables of equal totals that agree on what they share, near the given ones.

    Tables of the same attributes become one first, their mean weighted by inverse variance: there is one for each
    set of attributes, in the order of the first tables and with their axes. Then the tables are made to agree
    and made non-negative by turns (PriView, CALM, PrivSyn), until what they share differs by less than
    ``options.gap``; if that takes more than ``options.rounds``, they are the nearest that were met.

    Args:
        estimates: noisy tables.
        total: what every table sums to, if it is known; else the mean of their totals, weighted by precision. If it
            is not positive, all cells are zero.
        options: how many rounds, how near.
        progress: told which part of the rounds is done.
    """
    options = options or ConsistencyOptions()
    tables = average_estimates(estimates)
    if not tables:
        return []
    layout = TableLayout.of(tables)
    vector = layout.to_vector(tables)
    common = weighted_total(vector, layout) if total is None else total
    if not (np.isfinite(vector).all() and math.isfinite(common)):
        raise InternalError("a table to be made consistent, or its total, is not finite")
    progress(CONSISTENCY_PHASE, 0.0)
    if options.ripple and common > 0:
        vector = _ripple_tables(vector, layout, common, [math.sqrt(table.variance) for table in tables])
    found = _alternate_projections(vector, layout, common, options, progress) if common > 0 else np.zeros_like(vector)
    progress(CONSISTENCY_PHASE, 1.0)
    return layout.to_estimates(found, tables)


def _ripple_tables(vector: Vector, layout: TableLayout, total: float, stds: Sequence[float]) -> Vector:
    """Tables that agree and have hardly a negative cell any more."""
    shared = find_overlaps(layout)
    found, _ = make_mutually_consistent(vector, layout, shared, total)
    for _ in range(RIPPLE_ROUNDS):
        for table, deviation in zip(layout.tables(found), stds, strict=True):
            table[...] = ripple(table, RIPPLE_THRESHOLD_SIGMAS * deviation)
        found, _ = make_mutually_consistent(found, layout, shared, total)
    return found


def _alternate_projections(
    vector: Vector, layout: TableLayout, total: float, options: ConsistencyOptions, progress: Progress
) -> Vector:
    """Go to and fro between tables that agree and tables that are non-negative; end on these."""
    shared = find_overlaps(layout)
    tolerance = options.tolerance * min(1.0, total / SMALL_TOTAL)
    agreed, _ = make_mutually_consistent(vector, layout, shared, total)
    nearest, best = math.inf, (agreed, agreed)
    for done in range(1, options.rounds + 1):
        positive = norm_sub_each(agreed, layout.starts, total)
        again, gap = make_mutually_consistent(positive, layout, shared, total)
        reached = gap < tolerance and widest_gap(positive, layout, shared) < tolerance
        if reached or gap < nearest:
            nearest, best = gap, (positive, again)
        if reached:
            break
        stretch = STEP_STRETCH if done > PLAIN_ROUNDS else 1.0
        agreed = extrapolate_step(agreed, positive, again, layout, stretch) if options.extrapolate else again
        progress(CONSISTENCY_PHASE, done / options.rounds)
    positive, again = best
    if options.norm_cut:
        return np.concatenate([norm_cut(table, total).ravel() for table in layout.tables(again)])
    return positive


# ── Longer steps towards tables that agree and are non-negative ──


def extrapolate_step(agreed: Vector, positive: Vector, again: Vector, layout: TableLayout, stretch: float) -> Vector:
    """Tables that agree, beyond ``again`` as seen from ``agreed``, and no farther from any solution than these.

    With a tables that agree, b the nearest non-negative ones and c those nearest to b that agree again, the step
    c − a may be ‖b − a‖² / ‖c − a‖² times as long, and that stretched by up to 2 (Bauschke, Combettes, Kruk:
    Extrapolation algorithm for affine-convex feasibility problems, 2006). Norms are those in which both ways are
    orthogonal projections: the square of a cell counts by the precision of its table.
    """
    step = again - agreed
    length = _squared_norm(step, layout)
    if length == 0:
        return again
    return agreed + stretch * _squared_norm(positive - agreed, layout) / length * step


def _squared_norm(difference: Vector, layout: TableLayout) -> float:
    return float(layout.sums(difference * difference) @ layout.precisions)
