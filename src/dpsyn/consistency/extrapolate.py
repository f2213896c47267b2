"""Longer steps towards tables that agree and are non-negative."""

from __future__ import annotations

from dpsyn.consistency.layout import Layout, Vector


def prolonged(agreed: Vector, positive: Vector, again: Vector, layout: Layout, stretch: float) -> Vector:
    """Tables that agree, beyond ``again`` as seen from ``agreed``, and no farther from any solution than these.

    With a tables that agree, b the nearest non-negative ones and c those nearest to b that agree again, the step
    c − a may be ‖b − a‖² / ‖c − a‖² times as long, and that stretched by up to 2 (Bauschke, Combettes, Kruk:
    Extrapolation algorithm for affine-convex feasibility problems, 2006). Norms are those in which both ways are
    orthogonal projections: the square of a cell counts by the precision of its table.
    """
    step = again - agreed
    length = _squared(step, layout)
    if length == 0:
        return again
    return agreed + stretch * _squared(positive - agreed, layout) / length * step


def _squared(difference: Vector, layout: Layout) -> float:
    return float(layout.sums(difference * difference) @ layout.precisions)
