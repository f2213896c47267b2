"""Where the numbers of a model lie: the cells of its cliques one after the other, and how sweeps find them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError

CliqueIndices = tuple[int, ...]
"""The attributes of a clique as places in the list of all, the one with most values last: sweeps read along it."""

CellValues = NDArray[np.float64]
"""One number for each cell of each clique, clique after clique, the last attribute fastest."""

Indices = NDArray[np.int64]
SweepIndices = tuple[Indices, Indices, Indices, Indices, Indices, Indices, Indices, Indices, Indices]

Columns = NDArray[np.unsignedinteger]
"""Records as attributes × records, of the type that ``column_type`` names."""

_MAX_LAYOUT_CELLS = 2**31


@dataclass(frozen=True, slots=True, eq=False)
class CliqueLayout:
    """Cliques over attributes of given sizes, and the index arrays that the kernels take.

    Attributes:
        sizes: the number of values of each attribute.
        cliques: each attribute is in one at least.
        target_count: how many of them, the first ones, are followed because counts of them are known; the others hold what
            is known without counting.
        offsets: where each clique's cells begin, and where the last one's end.
        count_indices: arguments of ``kernels.count`` from ``starts`` to ``offsets``.
        sweep_indices: arguments of ``kernels.sweep`` from ``sizes`` to ``strides``.
    """

    sizes: tuple[int, ...]
    cliques: tuple[CliqueIndices, ...]
    target_count: int
    offsets: Indices
    count_indices: tuple[Indices, Indices, Indices, Indices]
    sweep_indices: SweepIndices

    @classmethod
    def of(
        cls, sizes: Sequence[int], cliques: Sequence[CliqueIndices], factor_cliques: Sequence[CliqueIndices] = ()
    ) -> CliqueLayout:
        """The layout of these cliques, in this order, those that are followed first."""
        followed, cliques = len(cliques), [*cliques, *factor_cliques]
        shapes = [[sizes[place] for place in clique] for clique in cliques]
        cells = [int(np.prod(shape)) for shape in shapes]
        if sum(cells) > _MAX_LAYOUT_CELLS:
            raise InternalError(f"{sum(cells)} cells are too many for a fit")
        if {place for clique in cliques for place in clique} != set(range(len(sizes))):
            raise InternalError("an attribute is in no clique of the model")
        strides = [[int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))] for shape in shapes]
        offsets = _offsets(cells)
        counting = (
            _offsets([len(clique) for clique in cliques]),
            _concatenate(cliques),
            _concatenate(strides),
            offsets,
        )
        sweeping = _sweep_indices(sizes, cliques, strides, offsets)
        return cls(tuple(sizes), tuple(cliques), followed, offsets, counting, sweeping)

    @property
    def lengths(self) -> Indices:
        """How many cells each clique has."""
        return np.diff(self.offsets)

    @property
    def max_degrees(self) -> CellValues:
        """For each clique, in how many cliques that of its attributes is which is in most."""
        number = np.bincount([place for clique in self.cliques for place in clique], minlength=len(self.sizes))
        return np.array([number[list(clique)].max() for clique in self.cliques], np.float64)

    @property
    def target_cells(self) -> int:
        """How many cells the cliques have that are followed; they come first."""
        return int(self.offsets[self.target_count])

    def target_stiffness(self, stiffness: float) -> CellValues:
        """One number for each clique that is followed, none for the others."""
        return np.where(np.arange(len(self.cliques)) < self.target_count, stiffness, 0.0)

    def table(self, cells: CellValues, clique: int) -> CellValues:
        """The cells of one clique as a table; a view."""
        shape = [self.sizes[place] for place in self.cliques[clique]]
        return cells[self.offsets[clique] : self.offsets[clique + 1]].reshape(shape)

    def sum_by_clique(self, cells: CellValues) -> CellValues:
        """The sum over each clique's cells."""
        sums: CellValues = np.add.reduceat(cells, self.offsets[:-1])
        return sums

    def repeat_per_cell(self, values: CellValues) -> CellValues:
        """One number per clique, repeated for each of its cells."""
        return np.repeat(values, self.lengths)


def column_type(max_values: int) -> type[np.unsignedinteger]:
    """What holds the values of attributes that have so many at most: 16 bits, or 32 where those are too few."""
    return np.uint16 if max_values <= 2**16 else np.uint32


def order_by_size(indices: Iterable[int], sizes: Sequence[int]) -> CliqueIndices:
    """A clique in the order that sweeps like: the attribute with most values last."""
    return tuple(sorted(indices, key=lambda place: (sizes[place], place)))


def _offsets(lengths: Sequence[int]) -> Indices:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _concatenate(lists: Iterable[Iterable[int]]) -> Indices:
    return np.array([number for numbers in lists for number in numbers], np.int64)


def _sweep_indices(
    sizes: Sequence[int], cliques: Sequence[CliqueIndices], strides: Sequence[Sequence[int]], offsets: Indices
) -> SweepIndices:
    """For each attribute the cliques it is in; for each of those its own step and the others' strides."""
    near: list[list[int]] = [[] for _ in sizes]
    for number, clique in enumerate(cliques):
        for place in clique:
            near[place].append(number)
    entries = [(place, number) for place, numbers in enumerate(near) for number in numbers]
    others = [[axis for axis, member in enumerate(cliques[number]) if member != place] for place, number in entries]
    return (
        np.array(sizes, np.int64),
        _offsets([len(numbers) for numbers in near]),
        _concatenate(near),
        np.array([strides[number][cliques[number].index(place)] for place, number in entries], np.int64),
        np.array([offsets[number] for _, number in entries], np.int64),
        np.array([offsets[number + 1] - offsets[number] for _, number in entries], np.int64),
        _offsets([len(axes) for axes in others]),
        _concatenate(
            [cliques[number][axis] for axis in axes] for (_, number), axes in zip(entries, others, strict=True)
        ),
        _concatenate(
            [strides[number][axis] for axis in axes] for (_, number), axes in zip(entries, others, strict=True)
        ),
    )
