"""Marginals of all tables of a view, counted together.

Small tables are counted cell by cell. Large ones, most of whose cells are empty, are never laid out: the numbers of the
rows' cells are sorted and compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.evaluation import kernels
from dpsyn.evaluation.results import Figure
from dpsyn.evaluation.tables import Columns, View
from dpsyn.records.tally import Cliques, Counts, Tally
from dpsyn.sources import in_threads

_CELLS_PER_ROW = 4
"""A table is laid out if it has at most so many cells for each row; beyond it sorting is faster."""

_CELLS_AT_ONCE = 1 << 22
"""Cells of all tables that are laid out together: 32 MB for each of the four."""


@dataclass(frozen=True, slots=True, eq=False)
class PairCells:
    """The cells of a marginal of two attributes that are not empty.

    Attributes:
        first: the code of the first attribute in each of them.
        second: the code of the second.
        counts: how many rows each has.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    counts: NDArray[np.int64]


def distances(view: View, cliques: Cliques) -> list[Figure]:
    """For each clique the total variation distances of the other tables' marginals from the real one's.

    That is half the sum of absolute differences of shares. Sums are exact: they do not depend on any order.
    """
    small, large = _parted(view, cliques)
    found = dict(zip(small, _distances_laid_out(view, [cliques[number] for number in small]), strict=True))
    sorting = in_threads(lambda number: _distance_of_sorted(view, cliques[number]), large)
    found |= dict(zip(large, sorting, strict=True))
    return [found[number] for number in range(len(cliques))]


def pair_cells(view: View, pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[PairCells, ...]]:
    """For each pair the cells of its marginal in each table, in the order of the pairs."""
    for batch in _batches(view, pairs):
        small, large = _parted(view, batch)
        laid_out = _laid_out(view, [batch[number] for number in small])
        found = {number: tuple(map(_not_empty, tables)) for number, tables in zip(small, laid_out, strict=True)}
        for number in large:
            found[number] = tuple(_cells_of_sorted(table, batch[number], view.sizes) for table in view.tables)
        yield from (found[number] for number in range(len(batch)))


def _parted(view: View, cliques: Cliques) -> tuple[list[int], list[int]]:
    """The numbers of the cliques whose tables are laid out, and of the others."""
    most = _CELLS_PER_ROW * max(view.rows)
    fits = [_cells(view, clique) <= most for clique in cliques]
    return [n for n, fit in enumerate(fits) if fit], [n for n, fit in enumerate(fits) if not fit]


def _cells(view: View, clique: Sequence[int]) -> int:
    return math.prod(view.sizes[place] for place in clique)


def _batches(view: View, cliques: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """The cliques in their order, as many at a time as may be laid out together."""
    batch: list[tuple[int, ...]] = []
    cells = 0
    for clique in cliques:
        cells += _cells(view, clique)
        if batch and cells > _CELLS_AT_ONCE:
            yield batch
            batch, cells = [], _cells(view, clique)
        batch.append(clique)
    if batch:
        yield batch


def _laid_out(view: View, cliques: Cliques) -> Iterator[tuple[Counts, ...]]:
    """For each clique its whole table in each of the tables of rows."""
    tallies = [Tally(cliques, view.sizes) for _ in view.tables]
    for tally, table in zip(tallies, view.tables, strict=True):
        tally.add(table.T)
    return zip(*(tally.tables() for tally in tallies), strict=True)


def _distances_laid_out(view: View, cliques: Cliques) -> Iterator[Figure]:
    real, *others = view.rows
    for batch in _batches(view, cliques):
        for tables in _laid_out(view, batch):
            first, *rest = (table.ravel() for table in tables)
            sums = [kernels.distance(first, table, real, rows) for table, rows in zip(rest, others, strict=True)]
            yield _figure(view, sums)


def _distance_of_sorted(view: View, clique: tuple[int, ...]) -> Figure:
    first, *others = (_sorted_cells(table, clique, view.sizes) for table in view.tables)
    return _figure(view, [kernels.distance_of_sorted(first, other) for other in others])


def _sorted_cells(columns: Columns, clique: tuple[int, ...], sizes: Sequence[int]) -> NDArray[np.uint64]:
    """The number of each row's cell, its codes being the digits, in ascending order.

    Attributes have at most about a million codes, so the number of a cell of three fits into 64 bits.
    """
    numbers = np.zeros(columns.shape[1], np.uint64)
    for place in clique:
        numbers *= np.uint64(sizes[place])
        numbers += columns[place]
    numbers.sort()
    return numbers


def _figure(view: View, sums: Sequence[int]) -> Figure:
    real, *others = view.rows
    synthetic, floor, independent = (total / (2 * real * rows) for total, rows in zip(sums, others, strict=True))
    return Figure(synthetic=synthetic, floor=floor, independent=independent)


def _not_empty(table: Counts) -> PairCells:
    first, second = np.nonzero(table)
    return PairCells(first, second, table[first, second])


def _cells_of_sorted(columns: Columns, pair: tuple[int, ...], sizes: Sequence[int]) -> PairCells:
    numbers, counts = np.unique(_sorted_cells(columns, pair, sizes), return_counts=True)
    first, second = np.divmod(numbers.astype(np.int64), sizes[pair[1]])
    return PairCells(first, second, counts.astype(np.int64))
