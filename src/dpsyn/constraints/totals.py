"""Public totals: raking scales tables to them, and rows are moved until their counts match them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dpsyn.constraints.linear_program import solve_linear_program
from dpsyn.constraints.repair import RowSteps
from dpsyn.encoding import Recoding
from dpsyn.marginals import Estimate
from dpsyn.schema import Schema
from dpsyn.schema.constraint_model import CellMatrix, Selection, TotalConstraint, compile_constraints

Mask = NDArray[np.bool_]
SampleConditionalRows = Callable[[int, Mapping[str, Mask]], tuple[CellMatrix, RowSteps]]
"""Samples a given number of rows that meet conditions."""

_RAKING_ROUNDS = 40
_MISSED_ROW_COST = 1e4
"""The cost of missing a total by one row, in units of moved rows."""

_MAX_SWAPS = 1_000
"""Single rows that are moved if rounding left totals unmatched."""


def rake_to_totals(tables: Sequence[Estimate], schema: Schema, recoding: Recoding, rows: float) -> list[Estimate]:
    """Rake tables (iterative proportional fitting) to the public totals whose conditions select whole codes."""
    totals = [total for total in compile_constraints(schema).totals if total.selection]
    return [
        _rake_table(
            table,
            [(t, i) for t in totals if (i := _selected_table_cells(table, t.selection, recoding)) is not None],
            rows,
        )
        for table in tables
    ]


def _rake_table(table: Estimate, totals: Sequence[tuple[TotalConstraint, Mask]], rows: float) -> Estimate:
    values = np.array(table.values)
    for _ in range(_RAKING_ROUNDS if totals else 0):
        for total, inside in totals:
            for part, target in ((inside, float(total.count)), (~inside, max(rows - total.count, 0.0))):
                current = values[part].sum()
                values[part] *= target / current if current > 0 else 1.0
    return replace(table, values=values)


def _selected_table_cells(table: Estimate, selection: Selection, recoding: Recoding) -> Mask | None:
    """Which cells of a table a condition selects; None if the table lacks an attribute, or if it splits a cell."""
    axes = [np.ones(size, np.bool_) for size in table.values.shape]
    for source, mask in selection:
        column = next(column for column in recoding.columns if source in column.sources)
        if column.name not in table.clique or len(column.sources) > 1 or column.difference_codings:
            return None
        codes_of = column.tables[0] if column.name not in table.levels else table.levels[column.name][column.tables[0]]
        codes = [np.bincount(codes_of, part, len(axes[table.clique.index(column.name)])) > 0 for part in (mask, ~mask)]
        if (codes[0] & codes[1]).any():
            return None
        axes[table.clique.index(column.name)] &= codes[0]
    inside: Mask = reduce(np.logical_and.outer, axes)
    return inside


def adjust_rows_to_totals(
    schema: Schema,
    cells: CellMatrix,
    steps: RowSteps,
    row_range: tuple[float, float],
    sample_rows: SampleConditionalRows,
    rng: np.random.Generator,
) -> tuple[CellMatrix, RowSteps]:
    """Replace rows until the number of rows that meet each public condition matches its total.

    Rows of a stratum with too many rows are replaced by copies of rows of a stratum with too few. The totals are scaled
    to the fraction of all rows that these rows are.

    Args:
        schema: its totals.
        cells: rows × measured attributes.
        steps: the steps of some attributes, by their index.
        row_range: where these rows begin and end among all rows, as fractions: 0 and 1 if they are all the rows that
            the totals count. Consecutive ranges meet the totals together.
        sample_rows: samples rows for a stratum that has none.
        rng: the source of randomness.
    """
    model = compile_constraints(schema)
    totals = [total for total in model.totals if total.selection]
    if not totals or not len(cells):
        return cells, steps
    strata = _Strata(totals, model.sizes)
    targets = np.array([round(total.count * row_range[1]) - round(total.count * row_range[0]) for total in totals])
    current = strata.of_rows(cells)
    moves = _compute_moves(np.bincount(current, minlength=len(strata.members)), strata.members, targets)
    cells = cells.copy(order="F")
    steps = {index: column.copy() for index, column in steps.items()}
    unmoved = current.copy()
    for (source, target), count in moves.items():
        replaced = rng.choice(np.flatnonzero(current == source), count, replace=False)
        donors = np.flatnonzero(unmoved == target)
        new_cells, new_steps = (
            (cells, steps) if len(donors) else sample_rows(count, strata.conditions(target, model.names))
        )
        chosen = rng.choice(donors, count) if len(donors) else np.arange(count)
        cells[replaced] = new_cells[chosen]
        for index in steps:
            steps[index][replaced] = new_steps[index][chosen]
        current[replaced] = target
        unmoved[replaced] = -1
    return cells, steps


class _Strata:
    """Strata: rows grouped by the conditions they meet. Each is a set of cells of every attribute with a condition."""

    def __init__(self, totals: Sequence[TotalConstraint], sizes: Sequence[int]) -> None:
        self._indices = sorted({index for total in totals for index, _ in total.selection})
        self._class_of, memberships = [], []
        for index in self._indices:
            all_cells = np.ones(sizes[index], np.bool_)
            masks = np.stack([dict(total.selection).get(index, all_cells) for total in totals])
            kinds, class_of = np.unique(masks, axis=1, return_inverse=True)
            self._class_of.append(class_of.reshape(-1))
            memberships.append(kinds.T)
        self._shape = [len(kinds) for kinds in memberships]
        members = np.ones((1, len(totals)), np.bool_)
        for kinds in memberships:
            members = (members[:, None, :] & kinds[None, :, :]).reshape(-1, len(totals))
        self.members: Mask = members
        """Strata × totals: which strata each total counts."""

    def of_rows(self, cells: CellMatrix) -> NDArray[np.int64]:
        """The stratum of each row."""
        classes = [class_of[cells[:, index]] for index, class_of in zip(self._indices, self._class_of, strict=True)]
        return np.ravel_multi_index(classes, self._shape)

    def conditions(self, stratum: int, names: Sequence[str]) -> dict[str, Mask]:
        """The cells of a stratum, by attribute."""
        classes = np.unravel_index(stratum, self._shape)
        zipped = zip(self._indices, self._class_of, classes, strict=True)
        return {names[index]: class_of == kind for index, class_of, kind in zipped}


def _compute_moves(counts: NDArray[np.int64], members: Mask, targets: NDArray[np.int64]) -> dict[tuple[int, int], int]:
    """How many rows move from which stratum to which, as few as possible, to meet all totals."""
    change = _minimize_changes(counts, members, targets)
    for _ in range(_MAX_SWAPS):
        gaps = targets - members.T @ (counts + change)
        best = _best_swap(counts + change, members, gaps) if gaps.any() else None
        if best is None:
            break
        change[best[0]] -= 1
        change[best[1]] += 1
    sources = np.repeat(np.arange(len(change)), np.maximum(-change, 0))
    sinks = np.repeat(np.arange(len(change)), np.maximum(change, 0))
    pairs, numbers = np.unique(np.stack([sources, sinks]), axis=1, return_counts=True)
    return {(int(source), int(sink)): int(count) for source, sink, count in zip(*pairs, numbers, strict=True)}


def _minimize_changes(counts: NDArray[np.int64], members: Mask, targets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The change in the number of rows of each stratum, which sum to zero: the rounded solution of a linear program.

    Its variables are, for each stratum, the rows added, the rows removed and the rows left, and for each total the
    number of rows that are missing and in excess.
    """
    strata, totals = members.shape
    number, table = np.arange(strata), np.arange(totals)
    at, of = np.nonzero(members)
    entries = np.concatenate(
        [np.ones(strata), -np.ones(strata), np.ones(2 * strata), np.ones(len(at)), -np.ones(len(at))]
    )
    rows = [np.zeros(2 * strata), 1 + number, 1 + number, 1 + strata + of, 1 + strata + of]
    columns = [number, strata + number, strata + number, 2 * strata + number, at, strata + at]
    rows += [1 + strata + table, 1 + strata + table]
    columns += [3 * strata + table, 3 * strata + totals + table]
    entries = np.concatenate([entries, np.ones(totals), -np.ones(totals)])
    cost = np.concatenate(
        [np.where(counts > 0, 1.0, 1.5), np.ones(strata), np.zeros(strata), np.full(2 * totals, _MISSED_ROW_COST)]
    )
    demand = np.concatenate([[0], counts, targets - members.T @ counts]).astype(np.float64)
    solution = solve_linear_program(
        cost, entries, np.concatenate(rows).astype(np.int64), np.concatenate(columns), demand
    )
    change = np.maximum(np.rint(solution[:strata] - solution[strata : 2 * strata]).astype(np.int64), -counts)
    change[np.argmax(counts + change)] -= change.sum()  # rounding may have lost or added a row or two
    return change


def _best_swap(counts: NDArray[np.int64], members: Mask, gaps: NDArray[np.int64]) -> tuple[int, int] | None:
    """The move of one row that reduces the distance to the totals most; None if no move does."""
    signs = members.astype(np.int64)
    adding = np.abs(gaps - signs).sum(axis=1)
    target = int(np.argmin(adding))
    taking = np.abs(gaps - signs[target] + signs).sum(axis=1)
    source = int(np.argmin(np.where(counts > 0, taking, taking.max() + 1)))
    return (source, target) if taking[source] < np.abs(gaps).sum() else None
