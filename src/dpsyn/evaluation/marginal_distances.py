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

from dpsyn.encoding.counter import CliqueAxes, Counts, MarginalCounter
from dpsyn.evaluation import kernels
from dpsyn.evaluation.results import Metric
from dpsyn.evaluation.tables import CodeColumns, CodedTables
from dpsyn.sources import map_in_threads

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


def total_variation_distances(view: CodedTables, cliques: CliqueAxes) -> list[Metric]:
    """For each clique the total variation distances of the other tables' marginals from the real one's.

    That is half the sum of absolute differences of shares. Sums are exact: they do not depend on any order.
    """
    small, large = _split_by_size(view, cliques)
    found = dict(zip(small, _dense_distances(view, [cliques[number] for number in small]), strict=True))
    sorting = map_in_threads(lambda number: _sparse_distance(view, cliques[number]), large)
    found |= dict(zip(large, sorting, strict=True))
    return [found[number] for number in range(len(cliques))]


def count_pair_cells(view: CodedTables, pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[PairCells, ...]]:
    """For each pair the cells of its marginal in each table, in the order of the pairs."""
    for batch in _batch_cliques(view, pairs):
        small, large = _split_by_size(view, batch)
        laid_out = _count_dense(view, [batch[number] for number in small])
        found = {number: tuple(map(_dense_pair_cells, tables)) for number, tables in zip(small, laid_out, strict=True)}
        for number in large:
            found[number] = tuple(_sparse_pair_cells(table, batch[number], view.sizes) for table in view.tables)
        yield from (found[number] for number in range(len(batch)))


def _split_by_size(view: CodedTables, cliques: CliqueAxes) -> tuple[list[int], list[int]]:
    """The numbers of the cliques whose tables are laid out, and of the others."""
    most = _CELLS_PER_ROW * max(view.rows)
    fits = [_cell_count(view, clique) <= most for clique in cliques]
    return [n for n, fit in enumerate(fits) if fit], [n for n, fit in enumerate(fits) if not fit]


def _cell_count(view: CodedTables, clique: Sequence[int]) -> int:
    return math.prod(view.sizes[place] for place in clique)


def _batch_cliques(view: CodedTables, cliques: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """The cliques in their order, as many at a time as may be laid out together."""
    batch: list[tuple[int, ...]] = []
    cells = 0
    for clique in cliques:
        cells += _cell_count(view, clique)
        if batch and cells > _CELLS_AT_ONCE:
            yield batch
            batch, cells = [], _cell_count(view, clique)
        batch.append(clique)
    if batch:
        yield batch


def _count_dense(view: CodedTables, cliques: CliqueAxes) -> Iterator[tuple[Counts, ...]]:
    """For each clique its whole table in each of the tables of rows."""
    tallies = [MarginalCounter(cliques, view.sizes) for _ in view.tables]
    for tally, table in zip(tallies, view.tables, strict=True):
        tally.add(table.T)
    return zip(*(tally.tables() for tally in tallies), strict=True)


def _dense_distances(view: CodedTables, cliques: CliqueAxes) -> Iterator[Metric]:
    real, *others = view.rows
    for batch in _batch_cliques(view, cliques):
        for tables in _count_dense(view, batch):
            first, *rest = (table.ravel() for table in tables)
            sums = [
                kernels.dense_distance_sum(first, table, real, rows) for table, rows in zip(rest, others, strict=True)
            ]
            yield _metric(view, sums)


def _sparse_distance(view: CodedTables, clique: tuple[int, ...]) -> Metric:
    first, *others = (_sorted_cell_numbers(table, clique, view.sizes) for table in view.tables)
    return _metric(view, [kernels.sparse_distance_sum(first, other) for other in others])


def _sorted_cell_numbers(columns: CodeColumns, clique: tuple[int, ...], sizes: Sequence[int]) -> NDArray[np.uint64]:
    """The number of each row's cell, its codes being the digits, in ascending order.

    Attributes have at most about a million codes, so the number of a cell of three fits into 64 bits.
    """
    numbers = np.zeros(columns.shape[1], np.uint64)
    for place in clique:
        numbers *= np.uint64(sizes[place])
        numbers += columns[place]
    numbers.sort()
    return numbers


def _metric(view: CodedTables, sums: Sequence[int]) -> Metric:
    real, *others = view.rows
    synthetic, floor, independent = (total / (2 * real * rows) for total, rows in zip(sums, others, strict=True))
    return Metric(synthetic=synthetic, floor=floor, independent=independent)


def _dense_pair_cells(table: Counts) -> PairCells:
    first, second = np.nonzero(table)
    return PairCells(first, second, table[first, second])


def _sparse_pair_cells(columns: CodeColumns, pair: tuple[int, ...], sizes: Sequence[int]) -> PairCells:
    numbers, counts = np.unique(_sorted_cell_numbers(columns, pair, sizes), return_counts=True)
    first, second = np.divmod(numbers.astype(np.int64), sizes[pair[1]])
    return PairCells(first, second, counts.astype(np.int64))
