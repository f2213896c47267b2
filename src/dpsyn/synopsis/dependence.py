"""What a release tells about the dependence of each pair of attributes, beside that of the synthetic rows.

A recipe first scores pairs: the distance of each table from that of independent attributes, with noise. Divided by the
standard deviation of that noise it shows which dependence the release could see at all. Then it measures some tables.

Privacy: everything is computed from released numbers and synthetic rows. No real row is read, so it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import RecodedColumn
from dpsyn.inference import Release
from dpsyn.marginals.association import cramers_v, spearman
from dpsyn.schema import Attribute, Ordinal, Ranged

CLEAR_STDS = 3.0
"""Standard deviations of its noise beyond which a dependence is clear: noise alone reaches it once in 700 pairs."""

_MIN_MARGIN_STDS = 3.0
"""Values whose released count is less, in standard deviations of its noise, are left out of correlations."""

_MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)
_STD_ABSOLUTE_NORMAL = math.sqrt(1 - 2 / math.pi)

FloatTable = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedAssociation:
    """How strongly two attributes depend on each other.

    Attributes:
        released: by the released marginal, corrected for its noise.
        synthetic: in the synthetic rows.
    """

    released: float
    synthetic: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDependence:
    """What is known about the dependence of two attributes.

    Attributes:
        first: an attribute.
        second: another attribute.
        measured: whether a released marginal contains both.
        strength: the released distance from independence, in standard deviations of its noise; noise alone gives about
            −1 to 1.
        distance: the same as a share of rows: the total variation distance. Noise can make it negative.
        cramers_v: Cramér's V; None unless a marginal was measured.
        spearman: Spearman's rank correlation over rows in which neither is missing; None unless a marginal was
            measured and both attributes are ordered.
    """

    first: str
    second: str
    measured: bool
    strength: float
    distance: float
    cramers_v: ReleasedAssociation | None = None
    spearman: ReleasedAssociation | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MeasuredPair:
    """A released table of two attributes beside that of the synthetic rows, both scaled to the same number of rows."""

    columns: tuple[RecodedColumn, RecodedColumn]
    released: FloatTable
    std: FloatTable
    synthetic: FloatTable


def describe_dependence(
    releases: Sequence[Release], pairs: Sequence[MeasuredPair], attributes: Sequence[Attribute], total: float
) -> tuple[PairDependence, ...]:
    """Every pair that was scored or measured: scored ones in the order of their scores, then the others."""
    measured = {frozenset(column.name for column in pair.columns): pair for pair in pairs}
    scores = {frozenset(names): (names, value, std) for names, value, std in _pair_scores(releases)}
    described = []
    for key in dict.fromkeys([*scores, *measured]):
        pair = measured.get(key)
        names: Sequence[str]
        if key in scores:
            names, value, std = scores[key]
            strength, distance = value / max(std, 1e-9), value
        else:
            pair = measured[key]
            names = [column.name for column in pair.columns]
            strength, distance = _distance_from_independence(pair)
        v, rho = (None, None) if pair is None else _associate(pair, attributes)
        described.append(
            PairDependence(
                first=names[0],
                second=names[1],
                measured=pair is not None,
                strength=strength,
                distance=distance / (2 * total),
                cramers_v=v,
                spearman=rho,
            )
        )
    return tuple(described)


def _pair_scores(releases: Sequence[Release]) -> Iterator[tuple[tuple[str, ...], float, float]]:
    """The first score of each pair: the first set of a release measures the distance from independence."""
    for release in reversed(releases):  # of several releases, the first one counts: it comes last, and replaces others
        first = next((each for each in release.scores if each.are_distances), None)
        if first is None:
            continue
        seen = set[frozenset[str]]()  # a pair with a hierarchy is scored at its coarsest level, too
        for clique, value in zip(first.cliques, first.values.tolist(), strict=True):
            if len(clique) == 2 and frozenset(clique) not in seen:
                seen.add(frozenset(clique))
                yield clique, value, first.std


def _distance_from_independence(pair: MeasuredPair) -> tuple[float, float]:
    """The L1 distance of a released table from the product of its sums, less that of noise: in its σ, and in rows.

    Where the distance is large, noise adds less to it, so this is a cautious estimate.
    """
    rows, columns = (np.maximum(pair.released.sum(axis=axis), 0.0) for axis in (1, 0))
    independent = np.outer(rows, columns) / max(rows.sum(), 1.0)
    distance = float(np.abs(pair.released - independent).sum()) - _MEAN_ABSOLUTE_NORMAL * float(pair.std.sum())
    return distance / max(_STD_ABSOLUTE_NORMAL * math.sqrt(float((pair.std**2).sum())), 1e-9), distance


def _associate(
    pair: MeasuredPair, attributes: Sequence[Attribute]
) -> tuple[ReleasedAssociation | None, ReleasedAssociation | None]:
    """Both correlations over the values whose released counts stand out of their noise; None if those are too few."""
    kept = [
        pair.released.sum(axis=1 - axis) > _MIN_MARGIN_STDS * np.sqrt((pair.std**2).sum(axis=1 - axis))
        for axis in (0, 1)
    ]
    orders = [_ordered_codes(column, attributes) for column in pair.columns]
    variance = float((pair.std**2).mean())
    if min(map(np.count_nonzero, kept)) < 2:
        return None, None
    v = ReleasedAssociation(
        released=cramers_v(*_cells_of(pair.released, kept), noise_variance=variance),
        synthetic=cramers_v(*_cells_of(pair.synthetic, kept)),
    )
    ranked = [order & mask for order, mask in zip(orders, kept, strict=True) if order is not None]
    if len(ranked) < 2 or min(map(np.count_nonzero, ranked)) < 2:
        return v, None
    released, synthetic = (spearman(*_cells_of(table, ranked)) for table in (pair.released, pair.synthetic))
    return v, ReleasedAssociation(released=released, synthetic=synthetic)


def _cells_of(
    table: FloatTable, kept: Sequence[NDArray[np.bool_]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatTable]:
    """The cells of some lines and columns of a table that have rows at all."""
    part = table[np.ix_(*kept)]
    first, second = np.nonzero((part.sum(axis=1) > 0)[:, None] & (part.sum(axis=0) > 0)[None, :])
    return first, second, part[first, second]


def _ordered_codes(column: RecodedColumn, attributes: Sequence[Attribute]) -> NDArray[np.bool_] | None:
    """Which codes of a column are in the order of its values; None if they have no order."""
    if len(column.sources) > 1 or column.merged is not None or column.difference_codings:
        return None
    attribute, code_of_cell = attributes[column.sources[0]], column.tables[0]
    if not isinstance(attribute, Ranged | Ordinal):
        return None
    ordered = attribute.proper_cells
    if isinstance(attribute, Ordinal):
        ordered = len(attribute.values) or attribute.codes or 0
    if (np.diff(code_of_cell[:ordered]) < 0).any():
        return None
    mask = np.zeros(column.size, np.bool_)
    mask[code_of_cell[:ordered]] = True
    mask[code_of_cell[ordered:]] = False
    return mask
