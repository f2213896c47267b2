"""Public grids: how a range of numbers or dates is cut into cells and bins.

The values of a number or a date are the points 0 … steps−1 of a *lattice*. The lattice is cut into **cells**: fine
enough that a histogram over them shows the shape and the spikes of a distribution, few enough (about a thousand) that
the privacy budget suffices for it. **Bins** are unions of adjacent cells, coarse enough for marginals over several
attributes. All of this is arithmetic on public bounds; no row is involved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

MAX_GRID_CELLS = 1_000
"""Approximate number of cells of one attribute. A histogram over them is one one-way marginal."""

DEFAULT_BINS = 32
"""Bins if the schema declares none: the number that common preparations of public benchmark tables use."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A lattice cut into cells, the cells grouped into bins.

    ``edges`` holds the first step of every cell and, at the end, the number of steps. ``bin_of_cell`` holds the bin of
    every cell, ascending and without gaps.
    """

    edges: NDArray[np.int64]
    bin_of_cell: NDArray[np.int64]

    def __post_init__(self) -> None:
        self.edges.setflags(write=False)
        self.bin_of_cell.setflags(write=False)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return len(self.edges) - 1

    @property
    def bins(self) -> int:
        """The number of bins."""
        return int(self.bin_of_cell[-1]) + 1

    def cell_of(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cell of every step."""
        return np.searchsorted(self.edges, steps, side="right") - 1

    def bin_edges(self) -> NDArray[np.int64]:
        """The first step of every bin and, at the end, the number of steps."""
        first = np.flatnonzero(np.diff(self.bin_of_cell, prepend=-1))
        return np.append(self.edges[first], self.edges[-1])


def make_grid(
    steps: int,
    *,
    origin: int = 0,
    bins: Sequence[int] | int | None = None,
    spikes: Iterable[int] = (),
    ladder: Sequence[int] = (),
    cuts: Iterable[int] = (),
    max_cells: int = MAX_GRID_CELLS,
    cut: Callable[[int, int, int], list[int]] | None = None,
) -> Grid:
    """Cut a lattice into cells and bins.

    Args:
        steps: the number of lattice points.
        origin: the lattice coordinate of step 0. Cells begin at round coordinates.
        bins: the first steps of the bins; their number, for equally wide bins; or None for bins of a round width.
        spikes: steps that get a cell of their own, such as zero or "not applicable".
        ladder: preferred widths, ascending, such as the lengths of a minute, an hour and a day in steps.
        cuts: the first steps of further cells, where a release found many rows.
        max_cells: the approximate number of cells.
        cut: how ``start … stop−1`` is cut into about so many pieces; at round coordinates if it is left out.
    """
    cut = cut or partial(cut_at_round_steps, origin=origin, ladder=ladder)
    if bins is None:
        bin_starts = cut(0, steps, DEFAULT_BINS)
        segments: list[int] = [0, steps]
    else:
        bin_starts = _equal_bins(steps, bins) if isinstance(bins, int) else sorted({0, *bins})
        segments = [*bin_starts, steps]
    cells_per_segment = max(1, max_cells // (len(segments) - 1))
    firsts = {*bin_starts, *cuts, *(step for spike in spikes for step in (spike, spike + 1))}
    for start, stop in pairwise(segments):
        firsts.update(cut(start, stop, cells_per_segment))
    edges = np.array(sorted(firsts | {steps}), dtype=np.int64)
    bin_of_cell = np.searchsorted(np.array(bin_starts), edges[:-1], side="right") - 1
    return Grid(edges=edges, bin_of_cell=bin_of_cell.astype(np.int64))


def cut_at_round_steps(start: int, stop: int, pieces: int, *, origin: int = 0, ladder: Sequence[int] = ()) -> list[int]:
    """Cut the steps ``start … stop−1`` into about ``pieces`` pieces of a round width; the first step of each."""
    return _cut_at_multiples(start, stop, _round_width(stop - start, pieces, ladder), origin)


def _equal_bins(steps: int, bins: int) -> list[int]:
    """First steps of at most ``bins`` equally wide bins."""
    return sorted({index * steps // bins for index in range(bins)})


def _cut_at_multiples(start: int, stop: int, width: int, origin: int) -> list[int]:
    """``start`` and every later step below ``stop`` whose coordinate is a multiple of ``width``."""
    first = start + 1 + (-(origin + start + 1)) % width
    return [start, *range(first, stop, width)]


def _round_width(length: int, pieces: int, ladder: Sequence[int]) -> int:
    """The smallest round width that cuts ``length`` into about ``pieces`` pieces or fewer.

    One piece more is accepted: 0 … 2 000 000 should be cut into thousands although it has one point more than two
    million.
    """
    exact = max(1, -(-(length - 1) // pieces))
    for width in ladder:
        if width >= exact:
            return width
    unit = ladder[-1] if ladder else 1
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power * unit >= exact:
                return digit * power * unit
        power *= 10
