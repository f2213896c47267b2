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

from dpsyn.errors import UserError
from dpsyn.records import even_weights
from dpsyn.schema import AnyAttribute, Ranged
from dpsyn.synopsis.answering.linear import Shares, Table
from dpsyn.transforms import RecodedColumn

MOST_SHARES = 50_000_000
"""Outputs × codes of one attribute: four hundred megabytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
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


def outputs_of(
    attribute: AnyAttribute, selected: NDArray[np.bool_] | None, *, listed: bool, cells: bool = False
) -> Outputs:
    """Bins or cells of an attribute, only what was selected of them; all of it together if it is not to be listed."""
    chosen = np.ones(attribute.cells, np.bool_) if selected is None else selected
    if not listed:
        return Outputs((), np.where(chosen, 0, -1))
    group_of = np.arange(attribute.cells) if cells else attribute.bin_of_cell()
    groups, output_of = np.unique(group_of[chosen], return_inverse=True)
    found = np.full(attribute.cells, -1)
    found[chosen] = output_of
    return Outputs(_labels(attribute, group_of, chosen, groups), found)


def _labels(
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
        else _ranges(attribute, some)
        for some in members
    )


def _ranges(attribute: Ranged, cells: NDArray[np.int64]) -> str:
    """What some cells hold, written as a condition."""
    edges = attribute.grid().edges
    found = []
    for run in np.split(cells, np.flatnonzero(np.diff(cells) > 1) + 1):
        first, last = int(edges[run[0]]), int(edges[run[-1] + 1]) - 1
        ends = [first] if first == last else [first, last]
        found.append("..".join(attribute.text_at(step) for step in ends))
    return "|".join(found)


# ── shares ───────────────────────────────────────────────────────────────────────────────────────────────────


def shares_of(
    column: RecodedColumn,
    attributes: Sequence[AnyAttribute],
    asked: Mapping[str, Outputs],
    histograms: Mapping[str, Table],
) -> Shares | None:
    """Which part of each code of a measured column counts for each combination of outputs of the attributes asked for.

    ``attributes`` are those that the places in ``column.sources`` stand for, in the order of places. None stands for
    all codes as they are.
    """
    sources = [attributes[place] for place in column.sources]
    wanted = [asked.get(attribute.name, _all_together(attribute)) for attribute in sources]
    if column.merged is None and len(sources) == 1 and np.array_equal(wanted[0].output_of, column.tables[0]):
        return None
    if math.prod([outputs.size for outputs in wanted]) * math.prod(column.radices) > MOST_SHARES:
        raise UserError(f"{' and '.join(a.name for a in sources)} would be listed too finely; add a condition")
    joint, weight = np.ones((1, 1)), np.ones(1)
    for attribute, outputs, digits in zip(sources, wanted, column.tables, strict=True):
        histogram = histograms[attribute.name]
        within = np.where(np.bincount(digits, histogram)[digits] > 0, histogram, even_weights(attribute))
        joint = np.kron(joint, _shares(outputs, digits, within)).astype(np.float64)
        weight = np.kron(weight, np.bincount(digits, histogram)).astype(np.float64)
    if column.merged is None:
        return joint
    weight = np.where(np.bincount(column.merged, weight)[column.merged] > 0, weight, 1.0)
    merged = np.stack([np.bincount(column.merged, row * weight) for row in joint])
    found: Shares = merged / np.bincount(column.merged, weight)
    return found


def _all_together(attribute: AnyAttribute) -> Outputs:
    return Outputs((), np.zeros(attribute.cells, np.int64))


def _shares(outputs: Outputs, digits: NDArray[np.int64], histogram: Table) -> Shares:
    """Outputs × digits: the part of each digit's weight that lies in each output."""
    counted = outputs.output_of >= 0
    count = int(digits.max()) + 1
    cells = outputs.output_of[counted] * count + digits[counted]
    parts = np.bincount(cells, histogram[counted], outputs.size * count).reshape(outputs.size, count)
    found: Shares = parts / np.bincount(digits, histogram)
    return found


def cuts(shares: Shares | None) -> bool:
    """Whether codes are split, so that what lies within them matters."""
    return shares is not None and bool(((shares > 1e-12) & (shares < 1 - 1e-12)).any())


def folded(table: Table, shares: Sequence[Shares | None]) -> Table:
    """The counts of outputs, from the counts of codes."""
    for axis, given in enumerate(shares):
        if given is not None:
            table = np.moveaxis(np.tensordot(given, table, (1, axis)), 0, axis)
    return table
