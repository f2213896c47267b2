"""Tables of counts that grow batch by batch."""

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
"""Sets of attributes, each given by their positions."""

Counts = NDArray[np.int64]

_MAX_COVER_AXES = 32
"""Attributes of a table that holds others: those of a single value add no cells, but arrays have 64 axes at most."""

_MAX_COVER_CELLS = 1 << 11
"""Cells of a table that several cliques are summed from: its four lanes just fill the fastest cache."""

_MIN_ROWS_PER_THREAD = 1 << 15
"""Rows worth a thread of their own."""


class MarginalCounter:
    """Counts several cliques over batches of codes.

    Cliques that share attributes are counted as one larger table where that stays small, and summed from it at the
    end: one look at a row then serves many of them. Threads take different tables, or, where there are fewer tables
    than threads, different rows.
    """

    def __init__(self, cliques: CliqueAxes, sizes: Sequence[int], threads: int | None = None) -> None:
        self._cliques, self._sizes = [tuple(clique) for clique in cliques], tuple(sizes)
        for clique in self._cliques:
            if len(set(clique)) < len(clique) or not all(0 <= place < len(sizes) for place in clique):
                raise InternalError(f"{clique} is not a clique of {len(sizes)} attributes")
        self._covers, self._cover_of = _find_covers(self._cliques, self._sizes)
        workers = threads or os.cpu_count() or 1
        groups = [self._covers[part::workers] for part in range(min(workers, len(self._covers)))]
        self._spans = workers // max(1, len(groups))
        self._shares = [_ThreadTables(group, self._sizes, self._spans) for group in groups]

    def add(self, codes: Codes) -> None:
        """Count a batch: rows × attributes, each code below the size of its attribute."""
        columns = np.ascontiguousarray(codes.T)
        spans = pairwise(len(codes) * part // self._spans for part in range(self._spans + 1))
        work = [(share, span, *ends) for span, ends in enumerate(spans) for share in self._shares]
        if len(work) < 2 or len(codes) < _MIN_ROWS_PER_THREAD:
            for share, *task in work:
                share.count(columns, *task)
            return
        with ThreadPoolExecutor(len(work)) as pool:
            for done in [pool.submit(share.count, columns, *task) for share, *task in work]:
                done.result()

    def tables(self) -> list[Counts]:
        """The table of each clique."""
        counted = {cover: table for share in self._shares for cover, table in share.tables()}
        pairs = zip(self._cliques, self._cover_of, strict=True)
        return [_project(counted[self._covers[number]], self._covers[number], clique) for clique, number in pairs]


class _ThreadTables:
    """The tables that one thread counts, laid out as the kernel wants them; once more for each span of rows."""

    def __init__(self, covers: Sequence[tuple[int, ...]], sizes: Sequence[int], spans: int) -> None:
        self._covers = covers
        self._shapes = [tuple(sizes[place] for place in cover) for cover in covers]
        cells = [math.prod(shape) for shape in self._shapes]
        if max(cells) >= 1 << 32:
            raise InternalError(f"a clique has {max(cells):,} cells; whoever asks should have refused it")
        self._axes = np.array([place for cover in covers for place in cover], np.int64)
        self._starts = np.array([0, *accumulate(map(len, covers))], np.int64)
        self._sizes = np.array([size for shape in self._shapes for size in shape], np.uint32)
        self._offsets = np.array([0, *accumulate(cells)], np.int64)
        self._totals = np.zeros((spans, sum(cells)), np.int64)

    def count(self, columns: NDArray[Any], span: int, first: int, stop: int) -> None:
        """Count a span of rows."""
        layout = self._axes, self._starts, self._sizes, self._offsets
        kernels.count_cliques(columns, first, stop, *layout, self._totals[span])

    def tables(self) -> Iterator[tuple[tuple[int, ...], Counts]]:
        """Each table with its attributes."""
        totals = self._totals[0] if len(self._totals) == 1 else self._totals.sum(axis=0)
        for cover, shape, (first, stop) in zip(self._covers, self._shapes, pairwise(self._offsets), strict=True):
            yield cover, totals[first:stop].reshape(shape)


def _find_covers(cliques: CliqueAxes, sizes: Sequence[int]) -> tuple[list[tuple[int, ...]], list[int]]:
    """Sets of attributes that hold all cliques, and the one of each clique.

    Cliques are taken in order of their attributes, large ones first; one that follows joins the set before it while
    the table of that set stays small. The largest attribute of a set comes last: sums over long runs are faster.
    """
    order = sorted(range(len(sizes)), key=lambda place: (sizes[place], place))
    rank = {place: number for number, place in enumerate(order)}
    covers: list[tuple[int, ...]] = []
    cover_of = [0] * len(cliques)
    for number in sorted(range(len(cliques)), key=lambda n: sorted(-rank[place] for place in cliques[n])):
        union = tuple(sorted({*(covers[-1] if covers else ()), *cliques[number]}, key=rank.__getitem__))
        few = len(union) <= _MAX_COVER_AXES and math.prod(sizes[place] for place in union) <= _MAX_COVER_CELLS
        if covers and (union == covers[-1] or few):
            covers[-1] = union
        else:
            covers.append(tuple(sorted(cliques[number], key=rank.__getitem__)))
        cover_of[number] = len(covers) - 1
    return covers, cover_of


def _project(table: Counts, cover: tuple[int, ...], clique: tuple[int, ...]) -> Counts:
    """The table of a clique, summed from that of a set which holds it; an array of its own."""
    folded = tuple(axis for axis, place in enumerate(cover) if place not in clique)
    summed = np.asarray(table.sum(axis=folded)) if folded else table
    left = [place for place in cover if place in clique]
    return np.array(summed.transpose([left.index(place) for place in clique]), order="C")
