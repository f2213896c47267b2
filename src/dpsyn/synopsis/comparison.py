"""How close synthetic rows are to what was released, as plain frozen values.

Every distance stands beside two yardsticks: the *noise*, which is how far a table that is exactly right would be from
the released counts, and the *independent* model, the synthetic rows with each column shuffled by itself. At the level
of the noise nothing more can be told from what was released.

Privacy: all of it is worked out from released numbers and synthetic rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding import Codec, Codes, Grouping, RecodedColumn, check_structure
from dpsyn.encoding.binning import TopLabels, keep_top_labels
from dpsyn.encoding.code_labels import label_codes
from dpsyn.encoding.counter import MarginalCounter
from dpsyn.errors import UserError
from dpsyn.inference.measurements import MeasurementRound
from dpsyn.schema import Attribute
from dpsyn.synopsis.synopsis import Synopsis

ShareTable = tuple[tuple[float, ...], ...]
"""Shares of rows, a line for each label of the first attribute."""

COMPARISON_FORMAT = 1
"""Of the JSON form."""

PUBLISHABLE_NOTICE = (
    "Computed from the released counts and the synthetic rows alone. No private row was read, so it costs no privacy "
    "and may be published with them."
)
"""What every output of a comparison says first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseDistance:
    """The total variation distance between released counts and synthetic rows, beside its yardsticks.

    Attributes:
        distance: half the sum of absolute differences, as a share of the estimated number of rows.
        noise: the mean of that for a table that is exactly right.
        independent: that of the synthetic rows with each column shuffled by itself.
    """

    distance: float
    noise: float
    independent: float

    @property
    def excess(self) -> float:
        """What noise does not explain, at least 0."""
        return max(0.0, self.distance - self.noise)

    @classmethod
    def mean(cls, distances: Sequence[ReleaseDistance]) -> ReleaseDistance:
        """The mean of several, each part by itself."""
        number = max(len(distances), 1)
        return cls(
            distance=sum(gap.distance for gap in distances) / number,
            noise=sum(gap.noise for gap in distances) / number,
            independent=sum(gap.independent for gap in distances) / number,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalComparison:
    """One released marginal.

    Attributes:
        clique: its attributes, as they were measured.
        cells: how many counts it has.
        deviation: the released standard deviation of the noise in each, in rows.
        gap: how far the synthetic rows are from it.
        off: the root of the mean squared difference, in standard deviations of the noise; 1 is as close as can be told.
    """

    clique: tuple[str, ...]
    cells: int
    deviation: float
    gap: ReleaseDistance
    off: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeComparison:
    """One attribute by itself.

    Attributes:
        name: the attribute.
        kind: its kind in the schema; ``joint`` for several attributes that were measured as one.
        gap: how far its marginal is off.
        labels: what is counted; where there are very many, the most frequent ones and last all others together.
        folded: how many values the last label stands for; 0 if each label is one.
        released: the released share of rows of each label; noise may make it negative.
        deviation: the standard deviation of the noise in each share.
        synthetic: the share of the synthetic rows.
    """

    name: str
    kind: str
    gap: ReleaseDistance
    labels: tuple[str, ...]
    folded: int
    released: tuple[float, ...]
    deviation: tuple[float, ...]
    synthetic: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairComparison:
    """Two attributes together, by the least noisy marginal that holds both.

    Attributes:
        first: an attribute.
        second: another.
        gap: how far their marginal is off.
    """

    first: str
    second: str
    gap: ReleaseDistance


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedPairTable:
    """The marginal of two attributes as it was released and in the synthetic rows.

    Attributes:
        first: an attribute.
        second: another.
        first_labels: its values or bins, rare ones together.
        second_labels: those of the second.
        deviation: the standard deviation of the noise in a released share, before rare ones were put together.
        released: released shares of rows; noise may make them negative.
        synthetic: shares of the synthetic rows.
    """

    first: str
    second: str
    first_labels: tuple[str, ...]
    second_labels: tuple[str, ...]
    deviation: float
    released: ShareTable
    synthetic: ShareTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseComparison:
    """All that can be told about synthetic rows without the real ones.

    Attributes:
        rows: how many synthetic rows there are.
        released_rows: the released estimate of how many real ones there are.
        marginals: every released marginal, in the order of measuring.
        attributes: every attribute of which a marginal was released, in the schema's order.
        pairs: every pair of which a marginal was released.
        worst_pairs: those whose distance is farthest beyond the noise, worst first.
        notice: that it may be published.
        format: of the JSON form.
    """

    rows: int
    released_rows: int
    marginals: tuple[MarginalComparison, ...]
    attributes: tuple[AttributeComparison, ...]
    pairs: tuple[PairComparison, ...]
    worst_pairs: tuple[ReleasedPairTable, ...]
    notice: str = PUBLISHABLE_NOTICE
    format: int = COMPARISON_FORMAT

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, ready for JSON; the notice comes first."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        first = {"notice": self.notice, "format": self.format}
        return first | {name: value for name, value in found.items() if name not in first}


# ── Synthetic rows beside the released marginals ──


WORST_PAIRS = 8
"""Pairs whose marginals are told in full: as many as somebody looks at."""

MAX_COMPARED_LABELS = 100
"""Labels of one attribute that are told apart."""

MAX_COMPARED_PAIR_LABELS = 40
"""Labels of an attribute in a table of two."""

_MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)
"""Of a normal variable with standard deviation 1."""

FloatTable = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _ComparedTable:
    """A released table and that of the synthetic rows, both in rows of the private table.

    Attributes:
        columns: one for each axis.
        released: noisy counts.
        std: the standard deviation of the noise in each.
        synthetic: the counts of the synthetic rows, scaled to the estimated number of rows.
    """

    columns: tuple[RecodedColumn, ...]
    released: FloatTable
    std: FloatTable
    synthetic: FloatTable

    @property
    def clique(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def project(self, axes: Sequence[int]) -> _ComparedTable:
        """The tables summed over all other axes."""
        gone = tuple(axis for axis in range(len(self.columns)) if axis not in axes)
        return _ComparedTable(
            tuple(self.columns[axis] for axis in axes),
            self.released.sum(axis=gone),
            np.sqrt((self.std**2).sum(axis=gone)),
            self.synthetic.sum(axis=gone),
        )

    def merge_codes(self, column: RecodedColumn, grouping: Grouping) -> _ComparedTable:
        """The table of one attribute in coarser codes."""
        return _ComparedTable(
            (column,),
            grouping.sums(self.released),
            np.sqrt(grouping.sums(self.std**2)),
            grouping.sums(self.synthetic),
        )

    def distance(self, total: float) -> ReleaseDistance:
        axes = range(len(self.columns))
        shares = [self.synthetic.sum(axis=tuple(set(axes) - {axis})) / total for axis in axes]
        independent = total * reduce(np.multiply.outer, shares)
        return ReleaseDistance(
            distance=float(np.abs(self.synthetic - self.released).sum()) / (2 * total),
            noise=_MEAN_ABSOLUTE_NORMAL * float(self.std.sum()) / (2 * total),
            independent=float(np.abs(independent - self.released).sum()) / (2 * total),
        )


def compare_rows(synopsis: Synopsis, table: pa.Table) -> ReleaseComparison:
    """Compare synthetic rows with every released marginal; no rows at all are as far from it as can be.

    Args:
        synopsis: what was released.
        table: synthetic rows, as an Arrow table with the schema's columns.

    Privacy: free. It sees nothing but what was released and the rows it is given, which must be synthetic.
    """
    if not isinstance(table, pa.Table):
        raise UserError(f"a {type(table).__name__} is not an Arrow table; dpsyn.read_table makes one of it")
    codec = Codec(synopsis.schema)
    fine = _encode_rows(codec, table)
    total = max(synopsis.model.total, 1.0)
    stages = [stage for release in synopsis.releases for stage in release.rounds]
    tables = [beside for stage in stages for beside in _compare_round(stage, fine, total)]
    singles = _one_way_tables(tables, codec)
    pairs = _least_noisy_pairs(tables, total)
    return ReleaseComparison(
        rows=len(fine),
        released_rows=synopsis.rows,
        marginals=tuple(_compare_marginal(beside, total) for beside in tables),
        attributes=tuple(_compare_attribute(beside, codec.attributes, total) for beside in singles),
        pairs=tuple(PairComparison(first=b.clique[0], second=b.clique[1], gap=gap) for b, gap in pairs),
        worst_pairs=tuple(
            _make_pair_table(beside, codec.attributes, total)
            for beside, _ in sorted(pairs, key=lambda pair: -pair[1].excess)[:WORST_PAIRS]
        ),
    )


def _encode_rows(codec: Codec, table: pa.Table) -> Codes:
    schema = msgspec.structs.replace(codec.schema, privacy_unit=None)  # a synthetic table has no persons
    check_structure(schema, table.schema, "the synthetic table")
    return codec.encode(table)


def _compare_round(measurement_round: MeasurementRound, fine: Codes, total: float) -> Iterator[_ComparedTable]:
    """Every marginal of a stage beside the rows' own counts."""
    places = {name: place for place, name in enumerate(measurement_round.recoding.names)}
    tally = MarginalCounter(
        [tuple(places[name] for name in m.clique) for m in measurement_round.marginals],
        measurement_round.recoding.sizes,
    )
    tally.add(measurement_round.recoding.apply(fine))
    for marginal, counts in zip(measurement_round.marginals, tally.tables(), strict=True):
        yield _ComparedTable(
            tuple(measurement_round.recoding.columns[places[name]] for name in marginal.clique),
            marginal.counts,
            np.full(counts.shape, marginal.std),
            counts.astype(np.float64) * (total / max(len(fine), 1)),
        )


def _compare_marginal(table: _ComparedTable, total: float) -> MarginalComparison:
    deviation = float(table.std.flat[0])
    squared = float(np.mean((table.synthetic - table.released) ** 2))
    return MarginalComparison(
        clique=table.clique,
        cells=table.released.size,
        deviation=deviation,
        gap=table.distance(total),
        off=math.sqrt(squared) / max(deviation, 1e-9),
    )


# ── attributes ───────────────────────────────────────────────────────────────────────────────────────────────


def _one_way_tables(tables: Sequence[_ComparedTable], codec: Codec) -> list[_ComparedTable]:
    """One table for each attribute of which something was released, over bins where possible, the least noisy."""
    found: dict[str, _ComparedTable] = {}
    for beside in tables:
        for axis, name in enumerate(beside.clique):
            single = _to_schema_bins(beside.project([axis]), codec)
            if name not in found or _preference(single, codec) > _preference(found[name], codec):
                found[name] = single
    order = {name: place for place, name in enumerate(codec.names)}
    return sorted(found.values(), key=lambda single: order.get(single.clique[0], len(order)))


def _preference(one_way: _ComparedTable, codec: Codec) -> tuple[bool, float]:
    """By which of two tables is preferred: one over bins, then the one with less noise."""
    return _is_over_bins(one_way.columns[0], codec), -float(one_way.std.sum())


def _is_over_bins(column: RecodedColumn, codec: Codec) -> bool:
    if len(column.sources) > 1 or column.merged is not None or column.difference_codings:
        return False
    return np.array_equal(column.tables[0], codec.groupings[column.sources[0]].group_of)


def _to_schema_bins(one_way: _ComparedTable, codec: Codec) -> _ComparedTable:
    """The table over the schema's bins if it is finer than they are, else as it is."""
    column = one_way.columns[0]
    if len(column.sources) > 1 or column.merged is not None or column.difference_codings:
        return one_way
    bin_of_cell, code_of_cell = codec.groupings[column.sources[0]].group_of, column.tables[0]
    bin_of_code = np.zeros(column.size, np.int64)
    bin_of_code[code_of_cell] = bin_of_cell
    if not np.array_equal(bin_of_code[code_of_cell], bin_of_cell):
        return one_way
    grouping = Grouping(bin_of_code)
    return one_way.merge_codes(column.regroup(grouping), grouping)


def _compare_attribute(one_way: _ComparedTable, attributes: Sequence[Attribute], total: float) -> AttributeComparison:
    column = one_way.columns[0]
    folding = keep_top_labels(
        label_codes(column, attributes), np.maximum(one_way.released, one_way.synthetic), MAX_COMPARED_LABELS
    )
    return AttributeComparison(
        name=column.name,
        kind=attributes[column.sources[0]].kind if len(column.sources) == 1 else "joint",
        gap=one_way.distance(total),
        labels=folding.labels,
        folded=folding.others,
        released=tuple((folding.sums(one_way.released) / total).tolist()),
        deviation=tuple((np.sqrt(folding.sums(one_way.std**2)) / total).tolist()),
        synthetic=tuple((folding.sums(one_way.synthetic) / total).tolist()),
    )


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────────────────


def _least_noisy_pairs(tables: Sequence[_ComparedTable], total: float) -> list[tuple[_ComparedTable, ReleaseDistance]]:
    """For each pair of which something was released its least noisy table, and how far that is off."""
    found: dict[frozenset[str], tuple[_ComparedTable, ReleaseDistance]] = {}
    for beside in tables:
        for axes in combinations(range(len(beside.columns)), 2):
            pair = beside.project(axes)
            gap, names = pair.distance(total), frozenset(pair.clique)
            if names not in found or gap.noise < found[names][1].noise:
                found[names] = pair, gap
    return list(found.values())


def _make_pair_table(pair: _ComparedTable, attributes: Sequence[Attribute], total: float) -> ReleasedPairTable:
    weights = np.maximum(pair.released, pair.synthetic)
    lines, columns = (
        keep_top_labels(label_codes(column, attributes), weights.sum(axis=1 - axis), MAX_COMPARED_PAIR_LABELS)
        for axis, column in enumerate(pair.columns)
    )
    return ReleasedPairTable(
        first=pair.clique[0],
        second=pair.clique[1],
        first_labels=lines.labels,
        second_labels=columns.labels,
        deviation=float(pair.std.flat[0]) / total,
        released=_fold_table(pair.released / total, lines, columns),
        synthetic=_fold_table(pair.synthetic / total, lines, columns),
    )


def _fold_table(table: FloatTable, lines: TopLabels, columns: TopLabels) -> tuple[tuple[float, ...], ...]:
    shown = np.zeros((len(lines.labels), len(columns.labels)))
    np.add.at(shown, (lines.position_of_code[:, None], columns.position_of_code[None, :]), table)
    return tuple(map(tuple, shown.tolist()))
