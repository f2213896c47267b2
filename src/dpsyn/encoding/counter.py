"""Contingency tables of several cliques, counted batch by batch."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import kernels
from dpsyn.encoding.codec import Codes
from dpsyn.errors import InternalError

CliqueAxes = Sequence[tuple[int, ...]]
"""Cliques, each given by the positions of its attributes."""

Counts = NDArray[np.int64]

_MAX_COVER_AXES = 32
"""Attributes of a cover. Attributes with one value add no cells, but an array has at most 64 axes."""

_MAX_COVER_CELLS = 1 << 11
"""Cells of a cover of several cliques: the four lanes of such a table just fill the fastest cache."""

_MIN_ROWS_PER_THREAD = 1 << 15
"""Fewer rows are counted without threads, which would cost more than they save."""


class MarginalCounter:
    """Counts several cliques over batches of codes.

    Cliques with common attributes are counted together as one larger table, their *cover*, while it stays small, and
    are summed from it at the end. So a row is read once for many cliques. Each thread counts other covers; if there are
    fewer covers than threads, threads count other rows.
    """

    def __init__(self, cliques: CliqueAxes, sizes: Sequence[int], threads: int | None = None) -> None:
        self._cliques, self._sizes = [tuple(clique) for clique in cliques], tuple(sizes)
        for clique in self._cliques:
            if len(set(clique)) < len(clique) or not all(0 <= axis < len(sizes) for axis in clique):
                raise InternalError(f"{clique} is not a clique of {len(sizes)} attributes")
        self._covers, self._cover_of = _find_covers(self._cliques, self._sizes)
        workers = threads or os.cpu_count() or 1
        groups = [self._covers[first::workers] for first in range(min(workers, len(self._covers)))]
        self._spans = workers // max(1, len(groups))
        self._thread_tables = [_ThreadTables(group, self._sizes, self._spans) for group in groups]

    def add(self, codes: Codes) -> None:
        """Count a batch of codes, rows × attributes; each code is below the size of its attribute."""
        columns = np.ascontiguousarray(codes.T)
        spans = pairwise(len(codes) * span // self._spans for span in range(self._spans + 1))
        tasks = [(tables, span, *ends) for span, ends in enumerate(spans) for tables in self._thread_tables]
        if len(tasks) < 2 or len(codes) < _MIN_ROWS_PER_THREAD:
            for tables, *task in tasks:
                tables.count(columns, *task)
            return
        with ThreadPoolExecutor(len(tasks)) as pool:
            for future in [pool.submit(tables.count, columns, *task) for tables, *task in tasks]:
                future.result()

    def tables(self) -> list[Counts]:
        """The contingency table of each clique."""
        table_of = {cover: table for tables in self._thread_tables for cover, table in tables.cover_tables()}
        covers = [self._covers[index] for index in self._cover_of]
        return [_project(table_of[cover], cover, clique) for clique, cover in zip(self._cliques, covers, strict=True)]


class _ThreadTables:
    """The covers that one thread counts, in the layout that the kernel takes; one copy for each span of rows."""

    def __init__(self, covers: Sequence[tuple[int, ...]], sizes: Sequence[int], spans: int) -> None:
        self._covers = covers
        self._shapes = [tuple(sizes[axis] for axis in cover) for cover in covers]
        cells = [math.prod(shape) for shape in self._shapes]
        if max(cells) >= 1 << 32:
            raise InternalError(f"a clique has {max(cells):,} cells; the caller must refuse such a clique")
        self._axes = np.array([axis for cover in covers for axis in cover], np.int64)
        self._starts = np.array([0, *accumulate(map(len, covers))], np.int64)
        self._sizes = np.array([size for shape in self._shapes for size in shape], np.uint32)
        self._offsets = np.array([0, *accumulate(cells)], np.int64)
        self._totals = np.zeros((spans, sum(cells)), np.int64)

    def count(self, columns: NDArray[Any], span: int, first: int, stop: int) -> None:
        """Count the rows ``first … stop−1``, which are those of a span."""
        layout = self._axes, self._starts, self._sizes, self._offsets
        kernels.count_cliques(columns, first, stop, *layout, self._totals[span])

    def cover_tables(self) -> Iterator[tuple[tuple[int, ...], Counts]]:
        """Each cover with its table."""
        totals = self._totals[0] if len(self._totals) == 1 else self._totals.sum(axis=0)
        for cover, shape, (first, stop) in zip(self._covers, self._shapes, pairwise(self._offsets), strict=True):
            yield cover, totals[first:stop].reshape(shape)


def _find_covers(cliques: CliqueAxes, sizes: Sequence[int]) -> tuple[list[tuple[int, ...]], list[int]]:
    """Sets of attributes (covers) such that each clique is a subset of one; and the index of the cover of each clique.

    Cliques are visited in the order of their attributes, large ones first. A clique joins the previous cover while the
    table of the union stays small. The largest attribute of a cover comes last: sums over long runs are faster.
    """
    order = sorted(range(len(sizes)), key=lambda axis: (sizes[axis], axis))
    rank = {axis: index for index, axis in enumerate(order)}
    covers: list[tuple[int, ...]] = []
    cover_of = [0] * len(cliques)
    for index in sorted(range(len(cliques)), key=lambda index: sorted(-rank[axis] for axis in cliques[index])):
        union = tuple(sorted({*(covers[-1] if covers else ()), *cliques[index]}, key=rank.__getitem__))
        small = len(union) <= _MAX_COVER_AXES and math.prod(sizes[axis] for axis in union) <= _MAX_COVER_CELLS
        if covers and (union == covers[-1] or small):
            covers[-1] = union
        else:
            covers.append(tuple(sorted(cliques[index], key=rank.__getitem__)))
        cover_of[index] = len(covers) - 1
    return covers, cover_of


def _project(table: Counts, cover: tuple[int, ...], clique: tuple[int, ...]) -> Counts:
    """The table of a clique, summed from the table of its cover; a new array."""
    dropped = tuple(index for index, axis in enumerate(cover) if axis not in clique)
    summed = np.asarray(table.sum(axis=dropped)) if dropped else table
    kept = [axis for axis in cover if axis in clique]
    return np.array(summed.transpose([kept.index(axis) for axis in clique]), order="C")
