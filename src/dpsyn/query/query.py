"""From the codes that were measured to what was asked for: bins, cells, or all that meets a condition.

Codes are merged values: a bin holds cells, and rare values share a code. Where a question cuts through a code, its rows
are split by the released histogram of the attribute, as if they were spread alike whatever the other attributes are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import Codec, RecodedColumn, Recoding, are_equivalent, uniform_weights
from dpsyn.errors import UserError
from dpsyn.marginals import Clique
from dpsyn.query.blue import OutputWeights, QueryValues
from dpsyn.schema import AnyAttribute, Identifier, Ranged, Schema
from dpsyn.schema.conditions import select_cells, suggest_attributes

MAX_OUTPUT_WEIGHTS = 50_000_000
"""Outputs × codes of one attribute: four hundred megabytes."""


@dataclass(frozen=True, slots=True, eq=False)
class OutputAxis:
    """What an attribute is asked for.

    Attributes:
        labels: a text for each output; none if all that meets a condition is counted together.
        output_of: for every cell of the attribute its output, −1 if it counts for none.
    """

    labels: tuple[str, ...]
    output_of: NDArray[np.int64]

    @property
    def size(self) -> int:
        """The number of outputs."""
        return max(len(self.labels), 1)


def make_output_axis(
    attribute: AnyAttribute, selected: NDArray[np.bool_] | None, *, listed: bool, cells: bool = False
) -> OutputAxis:
    """Bins or cells of an attribute, only what was selected of them; all of it together if it is not to be listed."""
    chosen = np.ones(attribute.cells, np.bool_) if selected is None else selected
    if not listed:
        return OutputAxis((), np.where(chosen, 0, -1))
    group_of = np.arange(attribute.cells) if cells else attribute.bin_of_cell()
    groups, output_of = np.unique(group_of[chosen], return_inverse=True)
    found = np.full(attribute.cells, -1)
    found[chosen] = output_of
    return OutputAxis(_axis_labels(attribute, group_of, chosen, groups), found)


def _axis_labels(
    attribute: AnyAttribute, group_of: NDArray[np.int64], chosen: NDArray[np.bool_], groups: NDArray[np.int64]
) -> tuple[str, ...]:
    """The text of each group of cells: that of a whole bin, or which part of it was selected."""
    names, bin_of = attribute.labels(), attribute.bin_of_cell()
    if not isinstance(attribute, Ranged):
        return tuple(names[group] for group in groups)
    bin_sizes, missing = np.bincount(bin_of), attribute.proper_cells
    members = np.split(np.flatnonzero(chosen), np.flatnonzero(np.diff(group_of[chosen])) + 1)
    return tuple(
        names[bin_of[some[0]]]
        if some[0] >= missing or len(some) == bin_sizes[bin_of[some[0]]]
        else _format_ranges(attribute, some)
        for some in members
    )


def _format_ranges(attribute: Ranged, cells: NDArray[np.int64]) -> str:
    """What some cells hold, written as a condition."""
    edges = attribute.grid().edges
    found = []
    for run in np.split(cells, np.flatnonzero(np.diff(cells) > 1) + 1):
        first, last = int(edges[run[0]]), int(edges[run[-1] + 1]) - 1
        ends = [first] if first == last else [first, last]
        found.append("..".join(attribute.text_at(step) for step in ends))
    return "|".join(found)


# ── shares ───────────────────────────────────────────────────────────────────────────────────────────────────


def compute_output_weights(
    column: RecodedColumn,
    attributes: Sequence[AnyAttribute],
    axes: Mapping[str, OutputAxis],
    histograms: Mapping[str, QueryValues],
) -> OutputWeights | None:
    """Which part of each code of a measured column counts for each combination of outputs of the attributes asked for.

    ``attributes`` are those that the places in ``column.sources`` stand for, in the order of places. None stands for
    all codes as they are.
    """
    sources = [attributes[place] for place in column.sources]
    wanted = [axes.get(attribute.name, _total_axis(attribute)) for attribute in sources]
    if column.merged is None and len(sources) == 1 and np.array_equal(wanted[0].output_of, column.tables[0]):
        return None
    if math.prod([outputs.size for outputs in wanted]) * math.prod(column.radices) > MAX_OUTPUT_WEIGHTS:
        raise UserError(f"{' and '.join(a.name for a in sources)} would be listed too finely; add a condition")
    joint, weight = np.ones((1, 1)), np.ones(1)
    for attribute, outputs, digits in zip(sources, wanted, column.tables, strict=True):
        histogram = histograms[attribute.name]
        within = np.where(np.bincount(digits, histogram)[digits] > 0, histogram, uniform_weights(attribute))
        joint = np.kron(joint, _digit_weights(outputs, digits, within)).astype(np.float64)
        weight = np.kron(weight, np.bincount(digits, histogram)).astype(np.float64)
    if column.merged is None:
        return joint
    weight = np.where(np.bincount(column.merged, weight)[column.merged] > 0, weight, 1.0)
    merged = np.stack([np.bincount(column.merged, row * weight) for row in joint])
    found: OutputWeights = merged / np.bincount(column.merged, weight)
    return found


def _total_axis(attribute: AnyAttribute) -> OutputAxis:
    return OutputAxis((), np.zeros(attribute.cells, np.int64))


def _digit_weights(axis: OutputAxis, digits: NDArray[np.int64], histogram: QueryValues) -> OutputWeights:
    """Outputs × digits: the part of each digit's weight that lies in each output."""
    counted = axis.output_of >= 0
    count = int(digits.max()) + 1
    cells = axis.output_of[counted] * count + digits[counted]
    parts = np.bincount(cells, histogram[counted], axis.size * count).reshape(axis.size, count)
    found: OutputWeights = parts / np.bincount(digits, histogram)
    return found


def splits_codes(weights: OutputWeights | None) -> bool:
    """Whether codes are split, so that what lies within them matters."""
    return weights is not None and bool(((weights > 1e-12) & (weights < 1 - 1e-12)).any())


def contract_axes(table: QueryValues, weights: Sequence[OutputWeights | None]) -> QueryValues:
    """The counts of outputs, from the counts of codes."""
    for axis, given in enumerate(weights):
        if given is not None:
            table = np.moveaxis(np.tensordot(given, table, (1, axis)), 0, axis)
    return table


# ── What is asked of a synopsis, and how it looks under a recoding ──


MAX_QUERY_CELLS = 1_000_000
"""Counts of an answer, and cells of the table that it is worked out from."""


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Attributes to list, and conditions on them and on others.

    Attributes:
        names: the attributes to list.
        axes: what of every attribute that is listed or has a condition.
    """

    names: Clique
    axes: Mapping[str, OutputAxis]

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str], where: Mapping[str, object], *, cells: bool) -> Query:
        """Read a question; a UserError says what is wrong with it."""
        if not names and not where:
            raise UserError("nothing is asked for; name an attribute, or give a condition such as sex=F")
        for name in names:
            _require_answerable(schema, name)
        repeated = [name for name in names if list(names).count(name) > 1]
        if repeated:
            raise UserError(f"{repeated[0]!r} is named twice; name every attribute once")
        selected = select_cells(schema, where)
        asked = {
            n: make_output_axis(schema[n], selected.get(n), listed=n in names, cells=cells) for n in [*names, *where]
        }
        size = math.prod(outputs.size for outputs in asked.values())
        if size > MAX_QUERY_CELLS:
            raise UserError(
                f"the answer would have {size:,} counts, more than {MAX_QUERY_CELLS:,}; ask for fewer attributes or values"
            )
        return cls(tuple(names), asked)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The values of each attribute that is listed."""
        return tuple(self.axes[name].labels for name in self.names)


def _require_answerable(schema: Schema, name: str) -> None:
    """Refuse an attribute about which nothing is released."""
    if not isinstance(name, str) or name not in schema:
        raise UserError(f"there is no attribute {name!r}; {suggest_attributes(schema, name)}")
    derived = next((derive for derive in schema.derive if derive.name == name), None)
    if derived:
        raise UserError(f"{name!r} follows from {derived.source!r}; ask for {derived.source!r}")
    if isinstance(schema[name], Identifier) or not schema[name].coded:
        raise UserError(f"{name!r} is of kind {schema[name].kind}: no numbers are released about its values")


@dataclass(frozen=True, slots=True, eq=False)
class QueryView:
    """A question under a recoding.

    Attributes:
        columns: those that hold what is asked for.
        weights: which part of each column's codes counts for its outputs; None if codes are outputs.
        attributes: those asked for, in the order of the columns.
        interpolated_attributes: those of which codes are split.
    """

    columns: tuple[RecodedColumn, ...]
    weights: tuple[OutputWeights | None, ...]
    attributes: Clique
    interpolated_attributes: Clique

    @classmethod
    def of(cls, query: Query, recoding: Recoding, codec: Codec, histograms: Mapping[str, QueryValues]) -> QueryView:
        """How a question looks under a recoding."""
        columns = [c for c in recoding.columns if any(codec.names[place] in query.axes for place in c.sources)]
        inside = [[codec.names[p] for p in column.sources if codec.names[p] in query.axes] for column in columns]
        shares = tuple(compute_output_weights(column, codec.attributes, query.axes, histograms) for column in columns)
        return cls(
            columns=tuple(columns),
            weights=shares,
            attributes=tuple(name for names in inside for name in names),
            interpolated_attributes=tuple(
                n for names, given in zip(inside, shares, strict=True) if splits_codes(given) for n in names
            ),
        )

    @property
    def clique(self) -> Clique:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """Their sizes."""
        return tuple(column.size for column in self.columns)

    @property
    def cells(self) -> int:
        """How many cells the table of the columns has."""
        return math.prod(self.shape)

    def has_same_columns(self, other: QueryView) -> bool:
        """Whether another view has the same columns, in the same codes."""
        pairs = zip(self.columns, other.columns, strict=False)
        return self.clique == other.clique and all(are_equivalent(*pair) for pair in pairs)

    def arrange_outputs(self, outputs: QueryValues, query: Query) -> QueryValues:
        """The counts of outputs, with an axis for each attribute that is listed, in the order of the question."""
        apart = np.reshape(outputs, [query.axes[name].size for name in self.attributes])
        gone = tuple(axis for axis, name in enumerate(self.attributes) if name not in query.names)
        left = [name for name in self.attributes if name in query.names]
        return np.transpose(np.squeeze(apart, axis=gone), [left.index(name) for name in query.names])
