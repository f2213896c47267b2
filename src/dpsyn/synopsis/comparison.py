"""Compares synthetic rows with the noisy marginals of a release.

The floor of each distance is the noise floor: the expected distance of a table that has exactly the true counts. By
what was released, rows at the level of the noise cannot be distinguished from such a table. The independent baseline is
the synthetic rows with each column shuffled by itself.

Privacy: everything is computed from released counts and synthetic rows. No real row is read, so it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding import Codec, Codes, Grouping, RecodedColumn, check_structure
from dpsyn.encoding.binning import TopLabels, keep_top_labels
from dpsyn.encoding.code_labels import label_codes
from dpsyn.encoding.counter import MarginalCounter
from dpsyn.encoding.statistics import summarize_list, summarize_ranges
from dpsyn.errors import UserError
from dpsyn.inference.measurements import MeasurementRound
from dpsyn.marginals import AttributeComparison, Clique, Comparison, Metric, PairComparison, PairTable
from dpsyn.marginals.comparison import (
    MAX_ATTRIBUTE_LABELS,
    MAX_PAIR_LABELS,
    MAX_PAIR_TABLES,
    AttributeStatistics,
    ShareTable,
    choose_groups,
    list_declared_groups,
)
from dpsyn.query.observations import estimate_one_way_outputs
from dpsyn.query.query import make_output_axis
from dpsyn.schema import Attribute, Ranged
from dpsyn.synopsis.dependence import MeasuredPair, PairDependence, describe_dependence
from dpsyn.synopsis.group_comparison import PairOfGroups, compare_release_groups
from dpsyn.synopsis.synopsis import Synopsis

COMPARISON_FORMAT = 1
"""The version of the JSON form."""

PUBLISHABLE_NOTICE = (
    "Computed from the released counts and the synthetic rows alone. No private row was read, so it costs no privacy "
    "and may be published with them."
)
"""What every output of a comparison with a release states first."""

_MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)
"""The mean absolute value of a normal variable with standard deviation 1."""

FloatTable = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalComparison:
    """One released marginal.

    Attributes:
        clique: its attributes, as they were measured.
        cells: how many counts it has.
        std: the standard deviation of the noise in each count, in rows.
        distance: the total variation distance of the synthetic rows from it.
        rms_error: the root mean squared difference from the released counts, in standard deviations of the noise. A
            table with exactly the true counts has about 1.
    """

    clique: Clique
    cells: int
    std: float
    distance: Metric
    rms_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseComparison(Comparison):
    """Synthetic rows compared with the marginals of a release: what ``Synopsis.compare_rows`` returns.

    Distances are shares of the estimated number of rows. Each comes with two baselines: ``floor``, the expected
    distance of a table that has exactly the true counts, and ``independent``, the distance of the synthetic rows with
    each column shuffled by itself.

    Example: one of four rows is in another cell than the released counts indicate.

        >>> import pyarrow as pa
        >>> import dpsyn
        >>> from dpsyn.schema import Boolean
        >>> schema = dpsyn.Schema(attributes=(Boolean(name="a"), Boolean(name="b")))
        >>> counts = {("a", "b"): [[2, 0], [0, 2]]}
        >>> synopsis = dpsyn.Synopsis.from_marginals(schema, counts, std=0.5, source="a survey")
        >>> rows = pa.table({"a": [False, False, True, True], "b": [False, True, True, True]})
        >>> comparison = synopsis.compare_rows(rows)
        >>> comparison.pairs[0].distance.synthetic
        0.25
        >>> comparison.marginals[0].rms_error
        1.414...

    Privacy: computed from released counts and synthetic rows, so it costs nothing and may be published with them.

    Attributes:
        notice: that it may be published.
        format: the version of the JSON form.
        synthetic_rows: how many synthetic rows there are.
        attributes: every attribute with a released marginal, in the schema's order.
        pairs: every pair with a released marginal; the least noisy one is compared.
        worst_pairs: the tables of the pairs whose distance exceeds the noise floor most, the worst first.
        estimated_rows: the released estimate of the number of real rows.
        marginals: every released marginal, in the order of measurement.
        dependence: what is known about the dependence of each pair that was scored or measured.
        groups: the groups of rows that were asked for, by the released marginals that hold them.
    """

    notice: str = PUBLISHABLE_NOTICE
    format: int = COMPARISON_FORMAT
    estimated_rows: int
    marginals: tuple[MarginalComparison, ...]
    dependence: tuple[PairDependence, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _ComparedTable:
    """A released marginal and that of the synthetic rows, both scaled to the estimated number of rows.

    Attributes:
        columns: one for each axis.
        released: noisy counts.
        std: the standard deviation of the noise in each count.
        synthetic: the counts of the synthetic rows, scaled to the estimated number of rows.
    """

    columns: tuple[RecodedColumn, ...]
    released: FloatTable
    std: FloatTable
    synthetic: FloatTable

    @property
    def clique(self) -> Clique:
        return tuple(column.name for column in self.columns)

    def project(self, axes: Sequence[int]) -> _ComparedTable:
        """Sum the tables over all other axes."""
        summed = tuple(axis for axis in range(len(self.columns)) if axis not in axes)
        return _ComparedTable(
            tuple(self.columns[axis] for axis in axes),
            self.released.sum(axis=summed),
            np.sqrt((self.std**2).sum(axis=summed)),
            self.synthetic.sum(axis=summed),
        )

    def transpose(self) -> _ComparedTable:
        """The table of two attributes in the other order."""
        return _ComparedTable(self.columns[::-1], self.released.T, self.std.T, self.synthetic.T)

    def merge_codes(self, column: RecodedColumn, grouping: Grouping) -> _ComparedTable:
        """The table of one attribute in coarser codes."""
        return _ComparedTable(
            (column,),
            grouping.sums(self.released),
            np.sqrt(grouping.sums(self.std**2)),
            grouping.sums(self.synthetic),
        )

    def distance(self, total: float) -> Metric:
        """Half the sum of absolute differences of counts, divided by the estimated number of rows."""
        axes = range(len(self.columns))
        shares = [self.synthetic.sum(axis=tuple(set(axes) - {axis})) / total for axis in axes]
        independent = total * reduce(np.multiply.outer, shares)
        return Metric(
            synthetic=float(np.abs(self.synthetic - self.released).sum()) / (2 * total),
            floor=_MEAN_ABSOLUTE_NORMAL * float(self.std.sum()) / (2 * total),
            independent=float(np.abs(independent - self.released).sum()) / (2 * total),
        )


def compare_rows(synopsis: Synopsis, table: pa.Table, *, by: Sequence[str] | None = None) -> ReleaseComparison:
    """Compare synthetic rows with every released marginal.

    A table without rows is compared like any other: all of its shares are 0.

    Args:
        synopsis: what was released.
        table: synthetic rows, as an Arrow table with the schema's columns.
        by: attributes whose values divide the rows into groups, which are compared as far as released marginals hold
            the attribute together with others; by default those that the schema declares.

    Privacy: costs nothing. It reads only the release and the given rows, which must be synthetic.
    """
    if not isinstance(table, pa.Table):
        raise UserError(f"a {type(table).__name__} is not an Arrow table; dpsyn.read_table makes one of it")
    codec = Codec(synopsis.schema)
    group_names = list_declared_groups(synopsis.schema) if by is None else choose_groups(by, synopsis.schema)
    codes = _encode_rows(codec, table)
    total = max(synopsis.model.total, 1.0)
    rounds = [measurement_round for release in synopsis.releases for measurement_round in release.rounds]
    tables = [compared for measurement_round in rounds for compared in _compare_round(measurement_round, codes, total)]
    pairs = _least_noisy_pairs(tables, total)
    worst = sorted(pairs, key=lambda pair: -pair[1].excess)[:MAX_PAIR_TABLES]
    return ReleaseComparison(
        synthetic_rows=len(codes),
        estimated_rows=synopsis.rows,
        marginals=tuple(_compare_marginal(compared, total) for compared in tables),
        attributes=tuple(
            _compare_attribute(
                _combine_resolutions(synopsis, codec, one_way, codes, total) or one_way,
                codec.attributes,
                total,
                _summarize_attribute(synopsis, codec, one_way.columns[0], codes),
            )
            for one_way in _one_way_tables(tables, codec)
        ),
        pairs=tuple(
            PairComparison(first=pair.clique[0], second=pair.clique[1], distance=distance) for pair, distance in pairs
        ),
        worst_pairs=tuple(_make_pair_table(pair, codec.attributes, total) for pair, _ in worst),
        groups=tuple(
            group
            for name in group_names
            for group in compare_release_groups(
                name, _pairs_with(name, [pair for pair, _ in pairs]), codec.attributes, len(codes), total
            )
        ),
        dependence=describe_dependence(
            synopsis.releases, [_measured_pair(pair) for pair, _ in pairs], codec.attributes, total
        ),
    )


def _encode_rows(codec: Codec, table: pa.Table) -> Codes:
    schema = msgspec.structs.replace(codec.schema, privacy_unit=None)  # synthetic rows have no privacy unit
    check_structure(schema, table.schema, "the synthetic table")
    return codec.encode(table)


def _compare_round(measurement_round: MeasurementRound, codes: Codes, total: float) -> Iterator[_ComparedTable]:
    """Every marginal of a round beside the counts of the synthetic rows."""
    axes = {name: axis for axis, name in enumerate(measurement_round.recoding.names)}
    counter = MarginalCounter(
        [tuple(axes[name] for name in marginal.clique) for marginal in measurement_round.marginals],
        measurement_round.recoding.sizes,
    )
    counter.add(measurement_round.recoding.apply(codes))
    for marginal, counts in zip(measurement_round.marginals, counter.tables(), strict=True):
        yield _ComparedTable(
            tuple(measurement_round.recoding.columns[axes[name]] for name in marginal.clique),
            marginal.counts,
            np.full(counts.shape, marginal.std),
            counts.astype(np.float64) * (total / max(len(codes), 1)),
        )


def _compare_marginal(table: _ComparedTable, total: float) -> MarginalComparison:
    std = float(table.std.flat[0])
    mean_square = float(np.mean((table.synthetic - table.released) ** 2))
    return MarginalComparison(
        clique=table.clique,
        cells=table.released.size,
        std=std,
        distance=table.distance(total),
        rms_error=math.sqrt(mean_square) / max(std, 1e-9),
    )


# ── attributes ───────────────────────────────────────────────────────────────────────────────────────────────


def _one_way_tables(tables: Sequence[_ComparedTable], codec: Codec) -> list[_ComparedTable]:
    """One table for each attribute with a released marginal: over the schema's bins if possible, the least noisy."""
    best: dict[str, _ComparedTable] = {}
    for table in tables:
        for axis, name in enumerate(table.clique):
            one_way = _to_schema_bins(table.project([axis]), codec)
            if name not in best or _preference(one_way, codec) > _preference(best[name], codec):
                best[name] = one_way
    order = {name: index for index, name in enumerate(codec.names)}
    return sorted(best.values(), key=lambda one_way: order.get(one_way.clique[0], len(order)))


def _combine_resolutions(
    synopsis: Synopsis, codec: Codec, one_way: _ComparedTable, codes: Codes, total: float
) -> _ComparedTable | None:
    """The bins of an attribute that was measured at several resolutions, by the estimate that answers queries.

    None if its cells are not finer than its bins, so that there is one resolution.
    """
    name = one_way.clique[0]
    if name not in codec.names or synopsis.schema[name].cells == synopsis.schema[name].size:
        return None
    index = codec.names.index(name)
    axis = make_output_axis(codec.attributes[index], None, listed=True)
    estimate = estimate_one_way_outputs(codec, synopsis.releases, name, axis, synopsis.model.histograms[name])
    if estimate is None or index in synopsis.model.recoding.difference_codings:
        return None
    counts = np.bincount(axis.output_of[codes[:, index]], minlength=axis.size).astype(np.float64)
    column = RecodedColumn(name, (index,), (axis.output_of,))
    return _ComparedTable((column,), estimate.counts, estimate.stds, counts * (total / max(len(codes), 1)))


def _preference(one_way: _ComparedTable, codec: Codec) -> tuple[bool, float]:
    """The sort key of candidate tables: one over the schema's bins is preferred, then one with less noise."""
    return _is_over_bins(one_way.columns[0], codec), -float(one_way.std.sum())


def _is_over_bins(column: RecodedColumn, codec: Codec) -> bool:
    if len(column.sources) > 1 or column.merged is not None or column.difference_codings:
        return False
    return np.array_equal(column.tables[0], codec.groupings[column.sources[0]].group_of)


def _to_schema_bins(one_way: _ComparedTable, codec: Codec) -> _ComparedTable:
    """The table over the schema's bins if its codes are finer than they are, else unchanged."""
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


def _summarize_attribute(
    synopsis: Synopsis, codec: Codec, column: RecodedColumn, codes: Codes
) -> tuple[AttributeStatistics, AttributeStatistics] | None:
    """The released estimate of an attribute and its synthetic values in a few numbers.

    None for several attributes that were measured as one, and for one that is modeled by its difference from another.
    """
    if len(column.sources) > 1 or column.difference_codings:
        return None
    index = column.sources[0]
    if index in synopsis.model.recoding.difference_codings:
        return None
    attribute = codec.attributes[index]
    estimate = synopsis.model.histograms[codec.names[index]]
    counts = np.bincount(codes[:, index], minlength=len(estimate))
    if not isinstance(attribute, Ranged):
        return summarize_list(attribute, estimate), summarize_list(attribute, counts)
    edges, proper = attribute.grid().edges, attribute.proper_cells
    released, synthetic = (
        summarize_ranges(attribute, edges[:-1], edges[1:] - 1, table[:proper], float(table[proper:].sum()))
        for table in (estimate, counts)
    )
    return released, synthetic


def _compare_attribute(
    one_way: _ComparedTable,
    attributes: Sequence[Attribute],
    total: float,
    statistics: tuple[AttributeStatistics, AttributeStatistics] | None,
) -> AttributeComparison:
    column = one_way.columns[0]
    weights = np.maximum(one_way.released, one_way.synthetic)
    top = keep_top_labels(label_codes(column, attributes), weights, MAX_ATTRIBUTE_LABELS)
    return AttributeComparison(
        name=column.name,
        kind=attributes[column.sources[0]].kind if len(column.sources) == 1 else "joint",
        distance=one_way.distance(total),
        labels=top.labels,
        folded=top.others,
        reference=tuple((top.sums(one_way.released) / total).tolist()),
        synthetic=tuple((top.sums(one_way.synthetic) / total).tolist()),
        std=tuple((np.sqrt(top.sums(one_way.std**2)) / total).tolist()),
        statistics=statistics,
    )


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────────────────


def _least_noisy_pairs(tables: Sequence[_ComparedTable], total: float) -> list[tuple[_ComparedTable, Metric]]:
    """For each pair with a released marginal its least noisy table, and the distance of that."""
    best: dict[frozenset[str], tuple[_ComparedTable, Metric]] = {}
    for table in tables:
        for axes in combinations(range(len(table.columns)), 2):
            pair = table.project(axes)
            distance, names = pair.distance(total), frozenset(pair.clique)
            if names not in best or distance.floor < best[names][1].floor:
                best[names] = pair, distance
    return list(best.values())


def _pairs_with(name: str, pairs: Sequence[_ComparedTable]) -> list[PairOfGroups]:
    """The pairs of an attribute, that attribute first; not as a part of a joint attribute, nor as a difference."""
    found = []
    for pair in pairs:
        if name in pair.clique:
            axis = pair.clique.index(name)
            ordered = pair if axis == 0 else pair.transpose()
            columns = ordered.columns[0], ordered.columns[1]
            if len(columns[0].sources) == 1 and not columns[0].difference_codings:
                found.append(PairOfGroups(columns, ordered.released, ordered.std, ordered.synthetic))
    return found


def _measured_pair(pair: _ComparedTable) -> MeasuredPair:
    columns = pair.columns[0], pair.columns[1]
    return MeasuredPair(columns=columns, released=pair.released, std=pair.std, synthetic=pair.synthetic)


def _make_pair_table(pair: _ComparedTable, attributes: Sequence[Attribute], total: float) -> PairTable:
    weights = np.maximum(pair.released, pair.synthetic)
    first, second = (
        keep_top_labels(label_codes(column, attributes), weights.sum(axis=1 - axis), MAX_PAIR_LABELS)
        for axis, column in enumerate(pair.columns)
    )
    return PairTable(
        first=pair.clique[0],
        second=pair.clique[1],
        first_labels=first.labels,
        second_labels=second.labels,
        reference=_fold_table(pair.released / total, first, second),
        synthetic=_fold_table(pair.synthetic / total, first, second),
        std=float(pair.std.flat[0]) / total,
    )


def _fold_table(table: FloatTable, first: TopLabels, second: TopLabels) -> ShareTable:
    folded = np.zeros((len(first.labels), len(second.labels)))
    np.add.at(folded, (first.position_of_code[:, None], second.position_of_code[None, :]), table)
    return tuple(map(tuple, folded.tolist()))
