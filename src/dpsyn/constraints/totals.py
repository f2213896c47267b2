"""Public numbers of rows: tables that agree with them, and rows as many as they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
"""So many rows that meet conditions."""

_RAKING_ROUNDS = 40
_MISSED_ROW_COST = 1e4
"""What a row too many or too few of a total costs, in rows that are moved."""

_MAX_SWAPS = 1_000
"""Single rows that are moved where rounding left totals apart."""


def rake_to_totals(tables: Sequence[Estimate], schema: Schema, recoding: Recoding, rows: float) -> list[Estimate]:
    """Tables scaled so that they tell the public numbers of rows, where those are of whole codes."""
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
            for part, wanted in ((inside, float(total.count)), (~inside, max(rows - total.count, 0.0))):
                found = values[part].sum()
                values[part] *= wanted / found if found > 0 else 1.0
    return Estimate(table.clique, values, table.variance)


def _selected_table_cells(table: Estimate, selection: Selection, recoding: Recoding) -> Mask | None:
    """Which cells of a table a condition selects; None if it does not tell, or only parts of cells are meant."""
    axes = [np.ones(size, np.bool_) for size in table.values.shape]
    for source, mask in selection:
        place = next(place for place, column in enumerate(recoding.columns) if source in column.sources)
        column = recoding.columns[place]
        if column.name not in table.clique or len(column.sources) > 1 or column.difference_codings:
            return None
        codes = [np.bincount(column.tables[0], part, column.size) > 0 for part in (mask, ~mask)]
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
    """Rows of which as many meet each public condition as it says, times the part that they are of all rows.

    Rows that are too many in one place become rows like those where there are too few.

    Args:
        schema: its totals.
        cells: rows × measured attributes.
        steps: of some attributes, by their places.
        row_range: where they begin and end among all rows, from 0 to 1 if there are as many as the totals speak of: parts
            that follow each other meet the totals together.
        sample_rows: makes rows for a place that has none.
        rng: decides.
    """
    known = compile_constraints(schema)
    totals = [total for total in known.totals if total.selection]
    if not totals or not len(cells):
        return cells, steps
    strata = _Strata(totals, known.sizes)
    wanted = np.array([round(total.count * row_range[1]) - round(total.count * row_range[0]) for total in totals])
    own = strata.of_rows(cells)
    moves = _compute_moves(np.bincount(own, minlength=len(strata.members)), strata.members, wanted)
    cells = cells.copy(order="F")
    steps = {place: own_steps.copy() for place, own_steps in steps.items()}
    before = own.copy()
    for (source, target), number in moves.items():
        leaving = rng.choice(np.flatnonzero(own == source), number, replace=False)
        like = np.flatnonzero(before == target)
        new_cells, new_steps = (
            (cells, steps) if len(like) else sample_rows(number, strata.conditions(target, known.names))
        )
        chosen = rng.choice(like, number) if len(like) else np.arange(number)
        cells[leaving] = new_cells[chosen]
        for place in steps:
            steps[place][leaving] = new_steps[place][chosen]
        own[leaving] = target
        before[leaving] = -1
    return cells, steps


class _Strata:
    """Rows told apart by which conditions they meet: each stratum is a set of cells of every attribute concerned."""

    def __init__(self, totals: Sequence[TotalConstraint], sizes: Sequence[int]) -> None:
        self._places = sorted({place for total in totals for place, _ in total.selection})
        self._class_of, memberships = [], []
        for place in self._places:
            everywhere = np.ones(sizes[place], np.bool_)
            masks = np.stack([dict(total.selection).get(place, everywhere) for total in totals])
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
        classes = [own[cells[:, place]] for place, own in zip(self._places, self._class_of, strict=True)]
        return np.ravel_multi_index(classes, self._shape)

    def conditions(self, stratum: int, names: Sequence[str]) -> dict[str, Mask]:
        """The cells of a stratum, by attribute."""
        classes = np.unravel_index(stratum, self._shape)
        zipped = zip(self._places, self._class_of, classes, strict=True)
        return {names[place]: own == kind for place, own, kind in zipped}


def _compute_moves(counts: NDArray[np.int64], members: Mask, wanted: NDArray[np.int64]) -> dict[tuple[int, int], int]:
    """How many rows go from which stratum to which, as few as possible, so that all totals are met."""
    change = _minimize_changes(counts, members, wanted)
    for _ in range(_MAX_SWAPS):
        gaps = wanted - members.T @ (counts + change)
        best = _best_swap(counts + change, members, gaps) if gaps.any() else None
        if best is None:
            break
        change[best[0]] -= 1
        change[best[1]] += 1
    giving = np.repeat(np.arange(len(change)), np.maximum(-change, 0))
    getting = np.repeat(np.arange(len(change)), np.maximum(change, 0))
    pairs, numbers = np.unique(np.stack([giving, getting]), axis=1, return_counts=True)
    return {(int(source), int(target)): int(number) for source, target, number in zip(*pairs, numbers, strict=True)}


def _minimize_changes(counts: NDArray[np.int64], members: Mask, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """By how much the rows of each stratum change, all together by nothing: a linear program, rounded.

    Its unknowns are what is added to each stratum, what is taken from it and what is left of it, then what each total
    has too few and too many.
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
    demand = np.concatenate([[0], counts, wanted - members.T @ counts]).astype(np.float64)
    found = solve_linear_program(cost, entries, np.concatenate(rows).astype(np.int64), np.concatenate(columns), demand)
    change = np.maximum(np.rint(found[:strata] - found[strata : 2 * strata]).astype(np.int64), -counts)
    change[np.argmax(counts + change)] -= change.sum()  # rounding may have lost a row or two
    return change


def _best_swap(counts: NDArray[np.int64], members: Mask, gaps: NDArray[np.int64]) -> tuple[int, int] | None:
    """The move of one row that brings the totals nearest; None if none brings them nearer."""
    signs = members.astype(np.int64)
    adding = np.abs(gaps - signs).sum(axis=1)
    target = int(np.argmin(adding))
    taking = np.abs(gaps - signs[target] + signs).sum(axis=1)
    source = int(np.argmin(np.where(counts > 0, taking, taking.max() + 1)))
    return (source, target) if taking[source] < np.abs(gaps).sum() else None
