"""Matrices of a report: correlations side by side, a heat map of all pairs, and pairs in full."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dpsyn.marginals import PairTable
from dpsyn.report.content import Matrix, MatrixCell, MatrixGroup

MAX_HEAT_MAP_ATTRIBUTES = 60
"""Attributes of the heat map: those with the largest values."""

MAX_CORRELATED_ATTRIBUTES = 24
"""Attributes of a matrix of correlations; three of them stand side by side."""

HEAT = tuple(f"h{step}" for step in range(9))
"""Classes of colors from nothing to much."""

DIVERGING = ("l4", "l3", "l2", "l1", "e", "m1", "m2", "m3", "m4")
"""Classes of colors from less to more."""

CRAMERS_V_EXPLANATION = "From 0 (independent) to 1. Missing counts as a value; numbers and dates are in bins."
SPEARMAN_EXPLANATION = "Of ordered attributes, from −1 to 1, over the rows in which neither is missing."

PairValues = Mapping[frozenset[str], float]
"""A number for each pair of names."""


def heat_color(share: float) -> str:
    """The color of a share of the largest value."""
    return HEAT[max(0, min(len(HEAT) - 1, math.floor(share * len(HEAT))))]


def diverging_color(share: float) -> str:
    """The color of a share from −1 to 1."""
    return DIVERGING[4 + max(-4, min(4, round(share * 4)))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """A correlation of pairs in the reference and in the synthetic rows.

    Attributes:
        heading: its name.
        explanation: what it is.
        reference: its values in the reference.
        synthetic: its values in the synthetic rows; of other pairs than in the reference, too.
        signed: whether it can be negative.
    """

    heading: str
    explanation: str
    reference: PairValues
    synthetic: PairValues
    signed: bool


def correlation_group(correlation: Correlation, order: Sequence[str], reference: str) -> MatrixGroup | None:
    """The reference, the synthetic rows and their difference, side by side; None with fewer than three attributes.

    If there are many attributes, those with the largest differences are shown, in the given order.
    """
    names = [name for name in order if any(name in pair for pair in correlation.reference)]
    differences = {
        pair: correlation.synthetic[pair] - value
        for pair, value in correlation.reference.items()
        if pair in correlation.synthetic
    }
    if len(names) < 3 or not differences:
        return None
    shown = _keep_largest(names, differences, MAX_CORRELATED_ATTRIBUTES)
    color = diverging_color if correlation.signed else heat_color
    widest = max(0.1, *(abs(value) for value in differences.values()))
    largest = max(abs(value) for value in differences.values())
    left_out = len(names) - len(shown)
    return MatrixGroup(
        anchor="spearman" if correlation.signed else "cramers-v",
        heading=correlation.heading,
        explanation=correlation.explanation,
        scale=DIVERGING if correlation.signed else HEAT,
        ends=("−1", "1") if correlation.signed else ("0", "1"),
        matrices=(
            _pair_matrix(reference, shown, correlation.reference, color, _format_correlation),
            _pair_matrix("synthetic", shown, correlation.synthetic, color, _format_correlation),
            _pair_matrix(
                f"synthetic minus {reference}, at most {largest:.2f}",
                shown,
                differences,
                lambda value: diverging_color(value / widest),
                _format_correlation,
            ),
        ),
        note=f"{left_out:,} attributes with smaller differences are not shown." if left_out else "",
        of_pairs=True,
    )


def heat_map(
    values: PairValues,
    *,
    heading: str,
    explanation: str,
    top: float,
    format_value: Callable[[float], str],
    marked: frozenset[frozenset[str]] = frozenset(),
) -> MatrixGroup | None:
    """All pairs in one matrix, the attributes with the largest values first; ``top`` has the strongest color."""
    sums: dict[str, list[float]] = {}
    for pair, value in values.items():
        for name in pair:
            sums.setdefault(name, []).append(value)
    order = sorted(sums, key=lambda name: -sum(sums[name]) / len(sums[name]))
    if len(order) < 2:
        return None
    shown = order[:MAX_HEAT_MAP_ATTRIBUTES]
    left_out = len(order) - len(shown)
    matrix = _pair_matrix("", shown, values, lambda value: heat_color(value / top), format_value, marked)
    return MatrixGroup(
        anchor="heat",
        heading=heading,
        explanation=explanation,
        scale=HEAT,
        ends=(format_value(0.0), format_value(top)),
        matrices=(matrix,),
        note=f"{left_out:,} attributes with smaller values are not shown." if left_out else "",
        of_pairs=True,
    )


def pair_group(index: int, table: PairTable, reference: str) -> MatrixGroup:
    """The tables of a pair and their difference, in percent of all rows."""
    differences = [
        [synthetic - share for share, synthetic in zip(*line, strict=True)]
        for line in zip(table.reference, table.synthetic, strict=True)
    ]
    top = max(1e-9, *(share for half in (table.reference, table.synthetic) for line in half for share in line))
    widest = max(1e-9, *(abs(value) for line in differences for value in line))
    largest = max(0.01, widest)  # a tiny difference should look tiny

    def make(title: str, shares: Sequence[Sequence[float]], color: Callable[[float], str]) -> Matrix:
        cells = tuple(tuple(MatrixCell(color(share), f"{100 * share:.2f}") for share in line) for line in shares)
        return Matrix(title=title, lines=table.first_labels, columns=table.second_labels, cells=cells)

    return MatrixGroup(
        anchor=f"pair-{index}",
        heading=f"{table.first} × {table.second}",
        explanation="",
        scale=(),
        ends=("", ""),
        matrices=(
            make(reference, table.reference, lambda share: heat_color(math.sqrt(max(0.0, share) / top))),
            make("synthetic", table.synthetic, lambda share: heat_color(math.sqrt(max(0.0, share) / top))),
            make(
                f"synthetic minus {reference}, at most {widest:.2%} of all rows",
                differences,
                lambda value: diverging_color(math.copysign(math.sqrt(abs(value) / largest), value)),
            ),
        ),
    )


def _keep_largest(names: Sequence[str], values: PairValues, limit: int) -> list[str]:
    """Of many names those in the pairs of the largest values, in their order."""
    if len(names) <= limit:
        return list(names)
    kept: set[str] = set()
    for pair in sorted(values, key=lambda pair: -abs(values[pair])):
        if len(kept | pair) <= limit:
            kept |= pair
    return [name for name in names if name in kept]


def _pair_matrix(
    title: str,
    names: Sequence[str],
    values: PairValues,
    color: Callable[[float], str],
    format_value: Callable[[float], str],
    marked: frozenset[frozenset[str]] = frozenset(),
) -> Matrix:
    """A symmetric matrix of numbers of pairs."""

    def make_cell(pair: frozenset[str]) -> MatrixCell | None:
        value = values.get(pair)
        return None if value is None else MatrixCell(color(value), format_value(value), pair in marked)

    cells = tuple(tuple(make_cell(frozenset((line, column))) for column in names) for line in names)
    return Matrix(title=title, lines=tuple(names), columns=tuple(names), cells=cells)


def _format_correlation(value: float) -> str:
    """Two digits without a leading zero: ``.07``, ``−.35``, ``1``."""
    if abs(value) >= 0.995:
        return f"{value:.0f}".replace("-", "−")
    return ("−" if value < -0.005 else "") + f"{abs(value):.2f}"[1:]
