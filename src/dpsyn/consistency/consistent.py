"""Make noisy tables agree and non-negative."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn.consistency.agree import agree, overlaps, weighted_total, widest_gap
from dpsyn.consistency.average import averaged
from dpsyn.consistency.extrapolate import prolonged
from dpsyn.consistency.layout import Layout, Vector
from dpsyn.consistency.nonnegative import norm_cut, norm_sub_each
from dpsyn.consistency.ripple import ripple
from dpsyn.errors import InternalError
from dpsyn.marginals import Estimate
from dpsyn.progress import Progress, silent

PHASE = "making tables agree"

SMALL = 500.0
"""Below this total the gap shrinks with it: half a count is a thousandth of 500, but half of a single row."""

SETTLED = 5
"""Rounds before steps are stretched. Stretched from the first they overshoot, since nothing is as far from agreement
as the noise is: the error of 45 pairs of a census table was about a tenth larger (``bench/consistency.py``)."""

STRETCH = 1.95
"""How much longer steps are then. Below 2 convergence is proven; of 1, 1.5, 1.8 and 1.95 this took the fewest rounds
(``bench/consistency.py``)."""

RIPPLES = 3
"""Times that tables are rippled and made to agree again before the first norm-sub; ten times gain nothing more
(``bench/priview.py``)."""

RIPPLE_DEVIATIONS = 0.02
"""The threshold of ripple, in standard deviations of a table's noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyOptions:
    """How tables are made to agree.

    Attributes:
        rounds: at most so many. A few dozen are usual; 500, as in PrivSyn, bound the time where they are not enough.
        gap: stop when no two tables differ by so much on anything that both tell, in counts; in proportion less if
            the total is below 500. Half a count makes no difference to whole rows.
        extrapolate: go on in the direction of each round as far as is safe. False is the alternation of the papers,
            which takes two to ten times the rounds to tables of the same quality (``bench/consistency.py``).
        ripple: take what negative cells lack from cells nearby first, and leave to norm-sub what remains. Sums of large
            sparse tables over few of their attributes, such as PriView's views, keep much closer to the truth.
        cut: end on tables that agree and then norm-cut, not on norm-sub: what is negative by then is taken from the
            smallest cells, so that large cells agree and more cells are zero. Small cells may differ by more.
    """

    rounds: int = 500
    gap: float = 0.5
    extrapolate: bool = True
    ripple: bool = False
    cut: bool = False

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise InternalError(f"tables cannot be made to agree in {self.rounds} rounds")
        if not self.gap > 0:
            raise InternalError(f"tables cannot be made to agree to {self.gap} counts")


def consistent(
    estimates: Sequence[Estimate],
    *,
    total: float | None = None,
    options: ConsistencyOptions | None = None,
    progress: Progress = silent,
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
    tables = averaged(estimates)
    if not tables:
        return []
    layout = Layout.of(tables)
    vector = layout.vector(tables)
    common = weighted_total(vector, layout) if total is None else total
    if not (np.isfinite(vector).all() and math.isfinite(common)):
        raise InternalError("a table to be made consistent, or its total, is not finite")
    progress(PHASE, 0.0)
    if options.ripple and common > 0:
        vector = _rippled(vector, layout, common, [math.sqrt(table.variance) for table in tables])
    found = _alternated(vector, layout, common, options, progress) if common > 0 else np.zeros_like(vector)
    progress(PHASE, 1.0)
    return layout.estimates(found, tables)


def _rippled(vector: Vector, layout: Layout, total: float, deviations: Sequence[float]) -> Vector:
    """Tables that agree and have hardly a negative cell any more."""
    shared = overlaps(layout)
    found, _ = agree(vector, layout, shared, total)
    for _ in range(RIPPLES):
        for table, deviation in zip(layout.tables(found), deviations, strict=True):
            table[...] = ripple(table, RIPPLE_DEVIATIONS * deviation)
        found, _ = agree(found, layout, shared, total)
    return found


def _alternated(
    vector: Vector, layout: Layout, total: float, options: ConsistencyOptions, progress: Progress
) -> Vector:
    """Go to and fro between tables that agree and tables that are non-negative; end on these."""
    shared = overlaps(layout)
    tolerance = options.gap * min(1.0, total / SMALL)
    agreed, _ = agree(vector, layout, shared, total)
    nearest, best = math.inf, (agreed, agreed)
    for done in range(1, options.rounds + 1):
        positive = norm_sub_each(agreed, layout.starts, total)
        again, gap = agree(positive, layout, shared, total)
        reached = gap < tolerance and widest_gap(positive, layout, shared) < tolerance
        if reached or gap < nearest:
            nearest, best = gap, (positive, again)
        if reached:
            break
        stretch = STRETCH if done > SETTLED else 1.0
        agreed = prolonged(agreed, positive, again, layout, stretch) if options.extrapolate else again
        progress(PHASE, done / options.rounds)
    positive, again = best
    if options.cut:
        return np.concatenate([norm_cut(table, total).ravel() for table in layout.tables(again)])
    return positive
