"""Groups of rows in a comparison with a release: how far synthetic rows are from the released counts of each group.

A group is a value of an attribute. The marginals of that attribute with each other attribute tell the shares of the
other one within the group, with noise that a small group hardly stands out of.

Privacy: computed from released counts and synthetic rows. No real row is read, so it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding.code_labels import label_codes
from dpsyn.encoding.recoding import RecodedColumn
from dpsyn.marginals import GroupComparison, Metric
from dpsyn.marginals.comparison import SMALL_GROUP_ROWS, WIDE_ERROR
from dpsyn.schema import Attribute

_MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)
"""The mean absolute value of a normal variable with standard deviation 1."""

_VARIANCE_OF_ABSOLUTE = 1 - 2 / math.pi
"""Its variance."""

FloatTable = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PairOfGroups:
    """A released marginal of the attribute of groups, which comes first, with another one, and the synthetic counts."""

    columns: tuple[RecodedColumn, RecodedColumn]
    released: FloatTable
    std: FloatTable
    synthetic: FloatTable


@dataclass(slots=True)
class _Group:
    """What the pairs tell about one group."""

    rows: list[float] = field(default_factory=list)
    distances: list[Metric] = field(default_factory=list)
    variances: list[float] = field(default_factory=list)
    synthetic_share: float = 0.0


def compare_release_groups(
    name: str, pairs: Sequence[PairOfGroups], attributes: Sequence[Attribute], synthetic_rows: int, total: float
) -> list[GroupComparison]:
    """The groups of an attribute, in the order of its values; values that were merged are one group."""
    groups: dict[str, _Group] = {}
    for pair in pairs:
        for index, label in enumerate(label_codes(pair.columns[0], attributes)):
            _add_pair(groups.setdefault(label, _Group()), pair, index, total)
    return [_describe(name, label, group, synthetic_rows) for label, group in groups.items()]


def _add_pair(group: _Group, pair: PairOfGroups, index: int, total: float) -> None:
    released, synthetic, std = pair.released[index], pair.synthetic[index], pair.std[index]
    size = max(float(released.sum()), 1.0)
    own = max(float(synthetic.sum()), 1e-12)
    shares = pair.synthetic.sum(axis=0) / max(float(pair.synthetic.sum()), 1e-12)
    group.rows.append(float(released.sum()))
    group.synthetic_share = float(synthetic.sum()) / total
    group.distances.append(
        Metric(
            synthetic=_clip(float(np.abs(synthetic * (size / own) - released).sum()) / (2 * size)),
            floor=_clip(_MEAN_ABSOLUTE_NORMAL * float(std.sum()) / (2 * size)),
            independent=_clip(float(np.abs(shares * size - released).sum()) / (2 * size)),
        )
    )
    group.variances.append(_VARIANCE_OF_ABSOLUTE * float((std**2).sum()) / (2 * size) ** 2)


def _describe(name: str, label: str, group: _Group, synthetic_rows: int) -> GroupComparison:
    rows, distance = float(np.mean(group.rows)), Metric.mean(group.distances)
    error = math.sqrt(sum(group.variances)) / len(group.variances)
    return GroupComparison(
        attribute=name,
        group=label,
        rows=max(rows, 0.0),
        synthetic_rows=round(group.synthetic_share * synthetic_rows),
        distance=distance,
        error=min(error, 1.0),
        attributes=len(group.distances),
        small=rows < SMALL_GROUP_ROWS or error > WIDE_ERROR or distance.floor > 2 * WIDE_ERROR,
    )


def _clip(number: float) -> float:
    return min(number, 1.0)
