"""The memory layout of a model: the cells of its cliques one after the other, and the indices that sweeps need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError

CliqueIndices = tuple[int, ...]
"""The attributes of a clique as indices, the one with most values last: sweeps read along it."""

CellValues = NDArray[np.float64]
"""One number for each cell of each clique, clique after clique, each in row-major order."""

Indices = NDArray[np.int64]
SweepIndices = tuple[Indices, Indices, Indices, Indices, Indices, Indices, Indices, Indices, Indices]

Columns = NDArray[np.unsignedinteger]
"""Records as attributes × records, of the type that `column_type` returns."""

_MAX_LAYOUT_CELLS = 2**31


@dataclass(frozen=True, slots=True, eq=False)
class CliqueLayout:
    """Cliques over attributes of given sizes, and the index arrays of the kernels.

    Attributes:
        sizes: the number of values of each attribute.
        cliques: the attributes of each clique; each attribute is in at least one.
        target_count: the number of target cliques, whose counts are known. They come first; the others hold factors,
            which are known without counts.
        offsets: the position of each clique's first cell, and the end of the last clique.
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
        """The layout of target cliques and then of cliques of factors, in this order."""
        target_count, cliques = len(cliques), [*cliques, *factor_cliques]
        shapes = [[sizes[axis] for axis in clique] for clique in cliques]
        cells = [int(np.prod(shape)) for shape in shapes]
        if sum(cells) > _MAX_LAYOUT_CELLS:
            raise InternalError(
                f"a model of {sum(cells)} cells is too large to fit; the maximum is {_MAX_LAYOUT_CELLS}"
            )
        if {axis for clique in cliques for axis in clique} != set(range(len(sizes))):
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
        return cls(tuple(sizes), tuple(cliques), target_count, offsets, counting, sweeping)

    @property
    def lengths(self) -> Indices:
        """The number of cells of each clique."""
        return np.diff(self.offsets)

    @property
    def max_degrees(self) -> CellValues:
        """For each clique, the maximum over its attributes of the number of cliques that hold the attribute."""
        degrees = np.bincount([axis for clique in self.cliques for axis in clique], minlength=len(self.sizes))
        return np.array([degrees[list(clique)].max() for clique in self.cliques], np.float64)

    @property
    def target_cells(self) -> int:
        """The number of cells of the target cliques, which come first."""
        return int(self.offsets[self.target_count])

    def target_stiffness(self, stiffness: float) -> CellValues:
        """The given stiffness for each target clique, 0 for the others."""
        return np.where(np.arange(len(self.cliques)) < self.target_count, stiffness, 0.0)

    def table(self, cells: CellValues, clique: int) -> CellValues:
        """The cells of one clique as a table; a view."""
        shape = [self.sizes[axis] for axis in self.cliques[clique]]
        return cells[self.offsets[clique] : self.offsets[clique + 1]].reshape(shape)

    def sum_by_clique(self, cells: CellValues) -> CellValues:
        """The sum over each clique's cells."""
        sums: CellValues = np.add.reduceat(cells, self.offsets[:-1])
        return sums

    def repeat_per_cell(self, values: CellValues) -> CellValues:
        """One number per clique, repeated for each cell of the clique."""
        return np.repeat(values, self.lengths)


def column_type(max_values: int) -> type[np.unsignedinteger]:
    """The integer type of codes of attributes with up to ``max_values`` values: 16 bits, or 32 if necessary."""
    return np.uint16 if max_values <= 2**16 else np.uint32


def order_by_size(indices: Iterable[int], sizes: Sequence[int]) -> CliqueIndices:
    """A clique in the order that sweeps need: the attribute with most values last."""
    return tuple(sorted(indices, key=lambda axis: (sizes[axis], axis)))


def _offsets(lengths: Sequence[int]) -> Indices:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _concatenate(lists: Iterable[Iterable[int]]) -> Indices:
    return np.array([number for numbers in lists for number in numbers], np.int64)


def _sweep_indices(
    sizes: Sequence[int], cliques: Sequence[CliqueIndices], strides: Sequence[Sequence[int]], offsets: Indices
) -> SweepIndices:
    """For each attribute the cliques that hold it; for each of these its own stride and the strides of the others."""
    holders: list[list[int]] = [[] for _ in sizes]
    for index, clique in enumerate(cliques):
        for attribute in clique:
            holders[attribute].append(index)
    entries = [(attribute, index) for attribute, indices in enumerate(holders) for index in indices]
    others = [
        [axis for axis, member in enumerate(cliques[index]) if member != attribute] for attribute, index in entries
    ]
    return (
        np.array(sizes, np.int64),
        _offsets([len(indices) for indices in holders]),
        _concatenate(holders),
        np.array([strides[index][cliques[index].index(attribute)] for attribute, index in entries], np.int64),
        np.array([offsets[index] for _, index in entries], np.int64),
        np.array([offsets[index + 1] - offsets[index] for _, index in entries], np.int64),
        _offsets([len(axes) for axes in others]),
        _concatenate([cliques[index][axis] for axis in axes] for (_, index), axes in zip(entries, others, strict=True)),
        _concatenate([strides[index][axis] for axis in axes] for (_, index), axes in zip(entries, others, strict=True)),
    )
