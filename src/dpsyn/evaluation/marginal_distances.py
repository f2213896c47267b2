"""Marginals of the real table, the synthetic one and the baselines, and the distances between them.

A marginal with few cells is counted into a dense array. A marginal with many cells, most of them empty, is sparse: the
cell numbers of the rows are sorted and compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding.counter import CliqueAxes, Counts, MarginalCounter
from dpsyn.evaluation import kernels
from dpsyn.evaluation.tables import CodeColumns, CodedTables
from dpsyn.marginals import Metric
from dpsyn.sources import map_in_threads

_CELLS_PER_ROW = 4
"""A marginal is dense if it has at most this many cells per row; with more, sorting is faster."""

_MAX_BATCH_CELLS = 1 << 22
"""Cells of the dense marginals that are counted in one pass: 32 MB for each of the four tables."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PairCells:
    """The non-empty cells of a two-way marginal.

    Attributes:
        first: the code of the first attribute in each cell.
        second: the code of the second attribute.
        counts: the number of rows in each cell.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    counts: NDArray[np.int64]


def total_variation_distances(view: CodedTables, cliques: CliqueAxes) -> list[Metric]:
    """For each clique the total variation distances between the marginal of the real table and those of the others.

    The distance is half the sum of absolute differences of shares. The sums are exact integers, so they do not depend
    on the order of cells.
    """
    dense, sparse = _split_by_size(view, cliques)
    distances = dict(zip(dense, _dense_distances(view, [cliques[index] for index in dense]), strict=True))
    sparse_distances = map_in_threads(lambda index: _sparse_distance(view, cliques[index]), sparse)
    distances |= dict(zip(sparse, sparse_distances, strict=True))
    return [distances[index] for index in range(len(cliques))]


def count_pair_cells(view: CodedTables, pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[PairCells, ...]]:
    """For each pair, in order, the non-empty cells of its marginal in each table."""
    for batch in _batch_cliques(view, pairs):
        dense, sparse = _split_by_size(view, batch)
        marginals = _count_dense(view, [batch[index] for index in dense])
        cells = {index: tuple(map(_dense_pair_cells, tables)) for index, tables in zip(dense, marginals, strict=True)}
        for index in sparse:
            cells[index] = tuple(_sparse_pair_cells(table, batch[index], view.sizes) for table in view.tables)
        yield from (cells[index] for index in range(len(batch)))


def _split_by_size(view: CodedTables, cliques: CliqueAxes) -> tuple[list[int], list[int]]:
    """The indices of the cliques with dense marginals, and of those with sparse ones."""
    max_cells = _CELLS_PER_ROW * max(view.rows)
    is_dense = [_cell_count(view, clique) <= max_cells for clique in cliques]
    return [i for i, dense in enumerate(is_dense) if dense], [i for i, dense in enumerate(is_dense) if not dense]


def _cell_count(view: CodedTables, clique: Sequence[int]) -> int:
    return math.prod(view.sizes[axis] for axis in clique)


def _batch_cliques(view: CodedTables, cliques: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """The cliques in order, in batches that are counted in one pass."""
    batch: list[tuple[int, ...]] = []
    cells = 0
    for clique in cliques:
        cells += _cell_count(view, clique)
        if batch and cells > _MAX_BATCH_CELLS:
            yield batch
            batch, cells = [], _cell_count(view, clique)
        batch.append(clique)
    if batch:
        yield batch


def _count_dense(view: CodedTables, cliques: CliqueAxes) -> Iterator[tuple[Counts, ...]]:
    """For each clique its dense marginal in each table."""
    counters = [MarginalCounter(cliques, view.sizes) for _ in view.tables]
    for counter, table in zip(counters, view.tables, strict=True):
        counter.add(table.T)
    return zip(*(counter.tables() for counter in counters), strict=True)


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
    """The cell number of each row (its codes as mixed-radix digits), in ascending order.

    Attributes have at most about a million codes, so the cell number of three attributes fits into 64 bits.
    """
    numbers = np.zeros(columns.shape[1], np.uint64)
    for axis in clique:
        numbers *= np.uint64(sizes[axis])
        numbers += columns[axis]
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
