"""Public grids: how a range of numbers or dates is cut into cells and bins.

A number, a date or a decimal lives on a *lattice* of steps 0 … steps−1. The lattice is cut into **cells**, fine
enough that a histogram over them shows spikes and shape, few enough (about a thousand) that such a histogram
can be bought. **Bins** are unions of neighboring cells, coarse enough for marginals over several attributes.
Everything here is arithmetic on public bounds; no row is involved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

MAX_GRID_CELLS = 1_000
"""Cells of one attribute, about: a histogram of this size costs a single 1-way marginal."""

DEFAULT_BINS = 32
"""Bins where the schema declares none: what the usual preparations of the public benchmark tables use."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A lattice cut into cells, the cells grouped into bins.

    ``edges`` holds the first step of every cell and, last, the number of steps; ``bin_of_cell`` the bin of
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
        """The first step of every bin and, last, the number of steps."""
        first = np.flatnonzero(np.diff(self.bin_of_cell, prepend=-1))
        return np.append(self.edges[first], self.edges[-1])


def make_grid(
    steps: int,
    *,
    origin: int = 0,
    bins: Sequence[int] | int | None = None,
    spikes: Iterable[int] = (),
    ladder: Sequence[int] = (),
) -> Grid:
    """Cut a lattice into cells and bins.

    Args:
        steps: the number of lattice points.
        origin: the lattice coordinate of step 0, so that cuts fall on round coordinates.
        bins: first steps of the bins, their number (equally wide), or None for round, equally wide ones.
        spikes: steps that get a cell of their own, such as zero or "not applicable".
        ladder: widths to prefer, ascending, such as the lengths of minutes, hours and days in steps.
    """
    if bins is None:
        bin_starts = _cut_at_multiples(0, steps, _round_width(steps, DEFAULT_BINS, ladder), origin)
        segments: list[int] = [0, steps]
    else:
        bin_starts = _equal_bins(steps, bins) if isinstance(bins, int) else sorted({0, *bins})
        segments = [*bin_starts, steps]
    share = max(1, MAX_GRID_CELLS // (len(segments) - 1))
    cuts = {*bin_starts, *(step for spike in spikes for step in (spike, spike + 1))}
    for start, stop in pairwise(segments):
        cuts.update(_cut_at_multiples(start, stop, _round_width(stop - start, share, ladder), origin))
    edges = np.array(sorted(cuts | {steps}), dtype=np.int64)
    bin_of_cell = np.searchsorted(np.array(bin_starts), edges[:-1], side="right") - 1
    return Grid(edges=edges, bin_of_cell=bin_of_cell.astype(np.int64))


def _equal_bins(steps: int, bins: int) -> list[int]:
    """First steps of at most ``bins`` equally wide bins."""
    return sorted({index * steps // bins for index in range(bins)})


def _cut_at_multiples(start: int, stop: int, width: int, origin: int) -> list[int]:
    """``start`` and every later step below ``stop`` whose coordinate is a multiple of ``width``."""
    first = start + 1 + (-(origin + start + 1)) % width
    return [start, *range(first, stop, width)]


def _round_width(length: int, pieces: int, ladder: Sequence[int]) -> int:
    """The smallest round width that cuts ``length`` into at most about ``pieces``.

    About, because 0 … 2 000 000 should be cut by thousands although it has one point more than two million.
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
