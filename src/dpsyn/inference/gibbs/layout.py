"""The memory layout of a model: the cells of its cliques one after the other, and the indices that sweeps need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError

CliqueIndices = tuple[int, ...]
"""The variables of a clique as indices, the one with most values last: sweeps read along it.

A variable is an attribute, or a level of one: its values merged into groups. Attributes come first."""

CellValues = NDArray[np.float64]
"""One number for each cell of each clique, clique after clique, each in row-major order."""

Indices = NDArray[np.int64]
SweepIndices = tuple[
    Indices, Indices, Indices, Indices, Indices, Indices, Indices, Indices, Indices, Indices, Indices, Indices, Indices,
    Indices, Indices,
]  # fmt: skip

Columns = NDArray[np.unsignedinteger]
"""Records as attributes × records, of the type that `column_type` returns."""

_MAX_LAYOUT_CELLS = 2**31


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """An attribute with its values merged into groups, as coarse tables count it.

    Attributes:
        attribute: the index of the attribute.
        group_of: the group of each of its values.
    """

    attribute: int
    group_of: Indices

    @property
    def size(self) -> int:
        """The number of groups."""
        return int(self.group_of.max()) + 1


@dataclass(frozen=True, slots=True, eq=False)
class CliqueLayout:
    """Cliques over attributes of given sizes, or levels of them, and the index arrays of the kernels.

    Attributes:
        sizes: the number of values of each attribute.
        levels: the levels, the variables that follow the attributes.
        cliques: the variables of each clique; each attribute is in at least one.
        target_count: the number of target cliques, whose counts are known. They come first; the others hold factors,
            which are known without counts.
        offsets: the position of each clique's first cell, and the end of the last clique.
        count_indices: arguments of ``kernels.count`` from ``starts`` to ``offsets``.
        sweep_indices: arguments of ``kernels.sweep`` from ``sizes`` to ``strides``.
    """

    sizes: tuple[int, ...]
    levels: tuple[Level, ...]
    cliques: tuple[CliqueIndices, ...]
    target_count: int
    offsets: Indices
    count_indices: tuple[Indices, Indices, Indices, Indices]
    sweep_indices: SweepIndices

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        cliques: Sequence[CliqueIndices],
        factor_cliques: Sequence[CliqueIndices] = (),
        levels: Sequence[Level] = (),
    ) -> CliqueLayout:
        """The layout of target cliques and then of cliques of factors, in this order."""
        target_count, cliques = len(cliques), [*cliques, *factor_cliques]
        all_sizes = [*sizes, *(level.size for level in levels)]
        attribute_of = [*range(len(sizes)), *(level.attribute for level in levels)]
        shapes = [[all_sizes[variable] for variable in clique] for clique in cliques]
        cells = [int(np.prod(shape)) for shape in shapes]
        if sum(cells) > _MAX_LAYOUT_CELLS:
            raise InternalError(
                f"a model of {sum(cells)} cells is too large to fit; the maximum is {_MAX_LAYOUT_CELLS}"
            )
        if {attribute_of[variable] for clique in cliques for variable in clique} != set(range(len(sizes))):
            raise InternalError("an attribute is in no table of the model")
        strides = [[int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))] for shape in shapes]
        offsets = _offsets(cells)
        counting = (
            _offsets([len(clique) for clique in cliques]),
            _concatenate(cliques),
            _concatenate(strides),
            offsets,
        )
        sweeping = _sweep_indices(sizes, levels, cliques, strides, offsets)
        return cls(tuple(sizes), tuple(levels), tuple(cliques), target_count, offsets, counting, sweeping)

    @property
    def lengths(self) -> Indices:
        """The number of cells of each clique."""
        return np.diff(self.offsets)

    @property
    def max_degrees(self) -> CellValues:
        """For each clique, the maximum over its attributes of the number of cliques that hold the attribute."""
        attributes = [[self.attribute_of(variable) for variable in clique] for clique in self.cliques]
        degrees = np.bincount([axis for axes in attributes for axis in axes], minlength=len(self.sizes))
        return np.array([degrees[axes].max() for axes in attributes], np.float64)

    def attribute_of(self, variable: int) -> int:
        """The attribute that a variable is, or is a level of."""
        return variable if variable < len(self.sizes) else self.levels[variable - len(self.sizes)].attribute

    def size_of(self, variable: int) -> int:
        """The number of values of a variable."""
        return self.sizes[variable] if variable < len(self.sizes) else self.levels[variable - len(self.sizes)].size

    def level_of(self, variable: int) -> Level | None:
        """The level that a variable is; None for an attribute."""
        return None if variable < len(self.sizes) else self.levels[variable - len(self.sizes)]

    def add_levels(self, columns: Columns) -> Columns:
        """Records with a row for each variable: their attributes, and the levels of these."""
        extended = np.empty((len(self.sizes) + len(self.levels), columns.shape[1]), columns.dtype)
        extended[: len(self.sizes)] = columns
        for index, level in enumerate(self.levels, len(self.sizes)):
            extended[index] = level.group_of.astype(columns.dtype)[columns[level.attribute]]
        return extended

    @property
    def target_cells(self) -> int:
        """The number of cells of the target cliques, which come first."""
        return int(self.offsets[self.target_count])

    def target_stiffness(self, stiffness: float) -> CellValues:
        """The given stiffness for each target clique, 0 for the others."""
        return np.where(np.arange(len(self.cliques)) < self.target_count, stiffness, 0.0)

    def table(self, cells: CellValues, clique: int) -> CellValues:
        """The cells of one clique as a table; a view."""
        shape = [self.size_of(variable) for variable in self.cliques[clique]]
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
    sizes: Sequence[int],
    levels: Sequence[Level],
    cliques: Sequence[CliqueIndices],
    strides: Sequence[Sequence[int]],
    offsets: Indices,
) -> SweepIndices:
    """For each attribute the cliques that hold it or a level of it; its own stride and the strides of the others."""
    attribute_of = [*range(len(sizes)), *(level.attribute for level in levels)]
    all_sizes = [*sizes, *(level.size for level in levels)]
    map_starts = np.array([-1] * len(sizes) + [0] * len(levels), np.int64)
    map_starts[len(sizes) :] = _offsets([len(level.group_of) for level in levels])[:-1]
    holders: list[list[tuple[int, int]]] = [[] for _ in sizes]  # cliques, and positions of the variable in them
    for index, clique in enumerate(cliques):
        for position, variable in enumerate(clique):
            holders[attribute_of[variable]].append((index, position))
    entries = [holder for of_attribute in holders for holder in of_attribute]
    others = [[axis for axis in range(len(cliques[index])) if axis != position] for index, position in entries]
    variables = [cliques[index][position] for index, position in entries]
    own_levels = [
        [n for n, level in enumerate(levels) if level.attribute == attribute] for attribute in range(len(sizes))
    ]
    return (
        np.array(sizes, np.int64),
        _offsets([len(of_attribute) for of_attribute in holders]),
        np.array([index for index, _ in entries], np.int64),
        np.array([strides[index][position] for index, position in entries], np.int64),
        np.array([offsets[index] for index, _ in entries], np.int64),
        np.array(
            [
                (offsets[index + 1] - offsets[index]) // all_sizes[variable]
                for (index, _), variable in zip(entries, variables, strict=True)
            ],
            np.int64,
        ),
        np.array([all_sizes[variable] for variable in variables], np.int64),
        np.array([map_starts[variable] for variable in variables], np.int64),
        np.concatenate([np.zeros(0, np.int64), *(level.group_of for level in levels)]).astype(np.int64),
        _offsets([len(axes) for axes in others]),
        _concatenate([cliques[index][axis] for axis in axes] for (index, _), axes in zip(entries, others, strict=True)),
        _concatenate([strides[index][axis] for axis in axes] for (index, _), axes in zip(entries, others, strict=True)),
        _offsets([len(of_attribute) for of_attribute in own_levels]),
        _concatenate([[len(sizes) + n for n in of_attribute] for of_attribute in own_levels]),
        np.array([map_starts[len(sizes) + n] for of_attribute in own_levels for n in of_attribute], np.int64),
    )
