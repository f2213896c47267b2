"""A query, and its view under a recoding: from measured codes to the bins, cells or conditions that a query lists.

Codes are merged values: a bin holds cells, and rare values share a code. Where a query needs a part of a code, the
code's rows are *interpolated*: divided by the released histogram of the attribute, as if this were the same for all
values of the other attributes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding import Codec, RecodedColumn, Recoding, are_equivalent, uniform_weights
from dpsyn.encoding.column_codecs import column_codec_for
from dpsyn.errors import QueryError, quote_argument
from dpsyn.marginals import Clique
from dpsyn.query.linear_estimation import OutputWeights, QueryValues
from dpsyn.schema import AnyAttribute, Identifier, Ranged, Schema
from dpsyn.schema.conditions import select_cells, suggest_attributes

MAX_OUTPUT_WEIGHTS = 50_000_000
"""The maximum number of outputs × codes of one attribute: four hundred megabytes."""

MAX_QUERY_CELLS = 1_000_000
"""The maximum number of counts of an answer, and of cells of the table that it is computed from."""


@dataclass(frozen=True, slots=True, eq=False)
class OutputAxis:
    """The outputs of an attribute: the values that a query lists, or all that meet a condition together.

    Attributes:
        labels: a text for each output; none if everything that meets a condition is counted together.
        values: the value of each output, in the type of the attribute; None if an output holds several values.
        output_of: the output of every cell of the attribute; −1 for cells that do not count.
    """

    labels: tuple[str, ...]
    output_of: NDArray[np.int64]
    values: pa.Array | None = None

    @property
    def size(self) -> int:
        """The number of outputs."""
        return max(len(self.labels), 1)

    @property
    def listed_cells(self) -> NDArray[np.int64]:
        """The cell of each output, if every output is one cell."""
        cells = np.flatnonzero(self.output_of >= 0)
        return cells[np.argsort(self.output_of[cells], kind="stable")]


def make_output_axis(
    attribute: AnyAttribute, selected: NDArray[np.bool_] | None, *, listed: bool, cells: bool = False
) -> OutputAxis:
    """The selected bins or cells of an attribute as outputs; one output for all of them unless they are listed."""
    chosen = np.ones(attribute.cells, np.bool_) if selected is None else selected
    if not listed:
        return OutputAxis((), np.where(chosen, 0, -1))
    group_of = np.arange(attribute.cells) if cells else attribute.bin_of_cell()
    groups, output_of = np.unique(group_of[chosen], return_inverse=True)
    output_of_cell = np.full(attribute.cells, -1)
    output_of_cell[chosen] = output_of
    labels = _axis_labels(attribute, group_of, chosen, groups)
    return OutputAxis(labels, output_of_cell, _axis_values(attribute, output_of_cell, len(groups)))


def _axis_values(attribute: AnyAttribute, output_of: NDArray[np.int64], size: int) -> pa.Array | None:
    """The value of each output, null for missing ones; None if an output holds several values."""
    cells = np.flatnonzero(output_of >= 0)
    if len(cells) > size:
        return None
    if isinstance(attribute, Ranged):
        widths = np.diff(attribute.grid().edges)
        if (widths[cells[cells < attribute.proper_cells]] > 1).any():
            return None
    return column_codec_for(attribute).write(cells, np.random.default_rng(0))  # a cell of one value, so none is sampled


def _axis_labels(
    attribute: AnyAttribute, group_of: NDArray[np.int64], chosen: NDArray[np.bool_], groups: NDArray[np.int64]
) -> tuple[str, ...]:
    """The text of each group of cells: the label of a whole bin, or the selected part of it."""
    names, bin_of = attribute.labels(), attribute.bin_of_cell()
    if not isinstance(attribute, Ranged):
        return tuple(names[group] for group in groups)
    bin_sizes, missing = np.bincount(bin_of), attribute.proper_cells
    members = np.split(np.flatnonzero(chosen), np.flatnonzero(np.diff(group_of[chosen])) + 1)
    return tuple(
        names[bin_of[cells[0]]]
        if cells[0] >= missing or len(cells) == bin_sizes[bin_of[cells[0]]]
        else _format_ranges(attribute, cells)
        for cells in members
    )


def _format_ranges(attribute: Ranged, cells: NDArray[np.int64]) -> str:
    """The values of some cells, written as a condition."""
    edges = attribute.grid().edges
    ranges = []
    for run in np.split(cells, np.flatnonzero(np.diff(cells) > 1) + 1):
        first, last = int(edges[run[0]]), int(edges[run[-1] + 1]) - 1
        ends = [first] if first == last else [first, last]
        ranges.append("..".join(attribute.text_at(step) for step in ends))
    return "|".join(ranges)


# ── Weights of codes in outputs ──────────────────────────────────────────────────────────────────────────────


def compute_output_weights(
    column: RecodedColumn,
    attributes: Sequence[AnyAttribute],
    axes: Mapping[str, OutputAxis],
    histograms: Mapping[str, QueryValues],
) -> OutputWeights | None:
    """The fraction of each code of a measured column that counts for each combination of outputs of its attributes.

    ``column.sources`` are indices of ``attributes``. None means that the codes themselves are the outputs.
    """
    sources = [attributes[index] for index in column.sources]
    source_axes = [axes.get(attribute.name, _total_axis(attribute)) for attribute in sources]
    if column.merged is None and len(sources) == 1 and np.array_equal(source_axes[0].output_of, column.tables[0]):
        return None
    if math.prod([axis.size for axis in source_axes]) * math.prod(column.radices) > MAX_OUTPUT_WEIGHTS:
        raise QueryError(f"{' and '.join(a.name for a in sources)} would be listed in too many values; add a condition")
    joint, weight = np.ones((1, 1)), np.ones(1)
    for attribute, axis, digits in zip(sources, source_axes, column.tables, strict=True):
        histogram = histograms[attribute.name]
        within = np.where(np.bincount(digits, histogram)[digits] > 0, histogram, uniform_weights(attribute))
        joint = np.kron(joint, _digit_weights(axis, digits, within)).astype(np.float64)
        weight = np.kron(weight, np.bincount(digits, histogram)).astype(np.float64)
    if column.merged is None:
        return joint
    weight = np.where(np.bincount(column.merged, weight)[column.merged] > 0, weight, 1.0)
    merged = np.stack([np.bincount(column.merged, row * weight) for row in joint])
    weights: OutputWeights = merged / np.bincount(column.merged, weight)
    return weights


def _total_axis(attribute: AnyAttribute) -> OutputAxis:
    return OutputAxis((), np.zeros(attribute.cells, np.int64))


def _digit_weights(axis: OutputAxis, digits: NDArray[np.int64], histogram: QueryValues) -> OutputWeights:
    """Outputs × digits: the fraction of each digit's weight that lies in each output."""
    counted = axis.output_of >= 0
    count = int(digits.max()) + 1
    cells = axis.output_of[counted] * count + digits[counted]
    parts = np.bincount(cells, histogram[counted], axis.size * count).reshape(axis.size, count)
    weights: OutputWeights = parts / np.bincount(digits, histogram)
    return weights


def splits_codes(weights: OutputWeights | None) -> bool:
    """Whether an output has a part of a code, so the distribution within the code matters."""
    return weights is not None and bool(((weights > 1e-12) & (weights < 1 - 1e-12)).any())


def contract_axes(table: QueryValues, weights: Sequence[OutputWeights | None]) -> QueryValues:
    """The counts of outputs, computed from the counts of codes."""
    for axis, given in enumerate(weights):
        if given is not None:
            table = np.moveaxis(np.tensordot(given, table, (1, axis)), 0, axis)
    return table


# ── Queries ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Attributes to list, and conditions on them and on others.

    Attributes:
        names: the attributes to list.
        axes: the outputs of every attribute that is listed or has a condition.
    """

    names: Clique
    axes: Mapping[str, OutputAxis]

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str], where: Mapping[str, object], *, cells: bool) -> Query:
        """Check a query; a QueryError explains what is wrong with it."""
        if not names and not where:
            raise QueryError("the query is empty; name an attribute, or give a condition such as sex=F")
        for name in names:
            _require_answerable(schema, name)
        names = [schema.parts_of(name)[0] for name in names]  # a timestamp is listed by its date
        repeated = [name for name in names if list(names).count(name) > 1]
        if repeated:
            raise QueryError(f"{quote_argument(repeated[0])} is named twice; name every attribute once")
        selected = select_cells(schema, where)
        axes = {
            n: make_output_axis(schema[n], selected.get(n), listed=n in names, cells=cells) for n in [*names, *selected]
        }
        size = math.prod(axis.size for axis in axes.values())
        if size > MAX_QUERY_CELLS:
            raise QueryError(
                f"the answer would have {size:,} counts, more than {MAX_QUERY_CELLS:,}; list fewer attributes or values"
            )
        return cls(tuple(names), axes)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The values of each listed attribute."""
        return tuple(self.axes[name].labels for name in self.names)

    @property
    def values(self) -> tuple[pa.Array | None, ...]:
        """The values of each listed attribute in its type; None where they are ranges."""
        return tuple(self.axes[name].values for name in self.names)


def _require_answerable(schema: Schema, name: str) -> None:
    """Refuse an attribute that nothing is released about."""
    if not isinstance(name, str) or name not in schema:
        raise QueryError(f"there is no attribute {quote_argument(name)}; {suggest_attributes(schema, name)}")
    derived = next((derive for derive in schema.derive if derive.name == name), None)
    if derived:
        raise QueryError(f"{quote_argument(name)} follows from {derived.source!r}; ask for {derived.source!r}")
    if isinstance(schema[name], Identifier) or not schema[name].coded:
        raise QueryError(
            f"{quote_argument(name)} is of kind {schema[name].kind}: no numbers are released about its values"
        )


@dataclass(frozen=True, slots=True, eq=False)
class QueryView:
    """A query under a recoding.

    Attributes:
        columns: the columns that hold the attributes of the query.
        weights: for each column, which fraction of its codes counts for its outputs; None if codes are outputs.
        attributes: the attributes of the query, in the order of the columns.
        interpolated_attributes: the attributes whose codes are divided between outputs.
    """

    columns: tuple[RecodedColumn, ...]
    weights: tuple[OutputWeights | None, ...]
    attributes: Clique
    interpolated_attributes: Clique

    @classmethod
    def of(cls, query: Query, recoding: Recoding, codec: Codec, histograms: Mapping[str, QueryValues]) -> QueryView:
        """The view of a query under a recoding."""
        columns = [c for c in recoding.columns if any(codec.names[source] in query.axes for source in c.sources)]
        inside = [[codec.names[s] for s in column.sources if codec.names[s] in query.axes] for column in columns]
        weights = tuple(compute_output_weights(column, codec.attributes, query.axes, histograms) for column in columns)
        return cls(
            columns=tuple(columns),
            weights=weights,
            attributes=tuple(name for names in inside for name in names),
            interpolated_attributes=tuple(
                n for names, given in zip(inside, weights, strict=True) if splits_codes(given) for n in names
            ),
        )

    @property
    def clique(self) -> Clique:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the columns."""
        return tuple(column.size for column in self.columns)

    @property
    def cells(self) -> int:
        """The number of cells of the table of the columns."""
        return math.prod(self.shape)

    def has_same_columns(self, other: QueryView) -> bool:
        """Whether another view has the same columns, in the same codes."""
        pairs = zip(self.columns, other.columns, strict=False)
        return self.clique == other.clique and all(are_equivalent(*pair) for pair in pairs)

    def arrange_outputs(self, outputs: QueryValues, query: Query) -> QueryValues:
        """The counts of outputs with an axis for each listed attribute, in the order of the query."""
        by_attribute = np.reshape(outputs, [query.axes[name].size for name in self.attributes])
        counted = tuple(axis for axis, name in enumerate(self.attributes) if name not in query.names)
        listed = [name for name in self.attributes if name in query.names]
        return np.transpose(np.squeeze(by_attribute, axis=counted), [listed.index(name) for name in query.names])
