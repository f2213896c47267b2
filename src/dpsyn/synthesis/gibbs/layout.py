"""Where the numbers of a model lie: the cells of its cliques one after the other, and how sweeps find them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError

Places = tuple[int, ...]
"""The attributes of a clique as places in the list of all, the one with most values last: sweeps read along it."""

Cells = NDArray[np.float64]
"""One number for each cell of each clique, clique after clique, the last attribute fastest."""

Indices = NDArray[np.int64]
Sweeping = tuple[Indices, Indices, Indices, Indices, Indices, Indices, Indices, Indices, Indices]

Columns = NDArray[np.unsignedinteger]
"""Records as attributes × records, of the type that ``column_type`` names."""

_MOST_CELLS = 2**31


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Cliques over attributes of given sizes, and the index arrays that the kernels take.

    Attributes:
        sizes: the number of values of each attribute.
        cliques: each attribute is in one at least.
        followed: how many of them, the first ones, are followed because counts of them are known; the others hold what
            is known without counting.
        offsets: where each clique's cells begin, and where the last one's end.
        counting: arguments of ``kernels.count`` from ``starts`` to ``offsets``.
        sweeping: arguments of ``kernels.sweep`` from ``sizes`` to ``strides``.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Places, ...]
    followed: int
    offsets: Indices
    counting: tuple[Indices, Indices, Indices, Indices]
    sweeping: Sweeping

    @classmethod
    def of(cls, sizes: Sequence[int], cliques: Sequence[Places], known: Sequence[Places] = ()) -> Layout:
        """The layout of these cliques, in this order, those that are followed first."""
        followed, cliques = len(cliques), [*cliques, *known]
        shapes = [[sizes[place] for place in clique] for clique in cliques]
        cells = [int(np.prod(shape)) for shape in shapes]
        if sum(cells) > _MOST_CELLS:
            raise InternalError(f"{sum(cells)} cells are too many for a fit")
        if {place for clique in cliques for place in clique} != set(range(len(sizes))):
            raise InternalError("an attribute is in no clique of the model")
        strides = [[int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))] for shape in shapes]
        offsets = _ends(cells)
        counting = (_ends([len(clique) for clique in cliques]), _joined(cliques), _joined(strides), offsets)
        sweeping = _sweeping(sizes, cliques, strides, offsets)
        return cls(tuple(sizes), tuple(cliques), followed, offsets, counting, sweeping)

    @property
    def lengths(self) -> Indices:
        """How many cells each clique has."""
        return np.diff(self.offsets)

    @property
    def crowding(self) -> Cells:
        """For each clique, in how many cliques that of its attributes is which is in most."""
        number = np.bincount([place for clique in self.cliques for place in clique], minlength=len(self.sizes))
        return np.array([number[list(clique)].max() for clique in self.cliques], np.float64)

    @property
    def followed_cells(self) -> int:
        """How many cells the cliques have that are followed; they come first."""
        return int(self.offsets[self.followed])

    def firmness(self, stiffness: float) -> Cells:
        """One number for each clique that is followed, none for the others."""
        return np.where(np.arange(len(self.cliques)) < self.followed, stiffness, 0.0)

    def table(self, cells: Cells, clique: int) -> Cells:
        """The cells of one clique as a table; a view."""
        shape = [self.sizes[place] for place in self.cliques[clique]]
        return cells[self.offsets[clique] : self.offsets[clique + 1]].reshape(shape)

    def per_clique(self, cells: Cells) -> Cells:
        """The sum over each clique's cells."""
        sums: Cells = np.add.reduceat(cells, self.offsets[:-1])
        return sums

    def spread(self, values: Cells) -> Cells:
        """One number per clique, repeated for each of its cells."""
        return np.repeat(values, self.lengths)


def column_type(most_values: int) -> type[np.unsignedinteger]:
    """What holds the values of attributes that have so many at most: 16 bits, or 32 where those are too few."""
    return np.uint16 if most_values <= 2**16 else np.uint32


def by_size(places: Iterable[int], sizes: Sequence[int]) -> Places:
    """A clique in the order that sweeps like: the attribute with most values last."""
    return tuple(sorted(places, key=lambda place: (sizes[place], place)))


def _ends(lengths: Sequence[int]) -> Indices:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _joined(lists: Iterable[Iterable[int]]) -> Indices:
    return np.array([number for numbers in lists for number in numbers], np.int64)


def _sweeping(
    sizes: Sequence[int], cliques: Sequence[Places], strides: Sequence[Sequence[int]], offsets: Indices
) -> Sweeping:
    """For each attribute the cliques it is in; for each of those its own step and the others' strides."""
    near: list[list[int]] = [[] for _ in sizes]
    for number, clique in enumerate(cliques):
        for place in clique:
            near[place].append(number)
    entries = [(place, number) for place, numbers in enumerate(near) for number in numbers]
    others = [[axis for axis, member in enumerate(cliques[number]) if member != place] for place, number in entries]
    return (
        np.array(sizes, np.int64),
        _ends([len(numbers) for numbers in near]),
        _joined(near),
        np.array([strides[number][cliques[number].index(place)] for place, number in entries], np.int64),
        np.array([offsets[number] for _, number in entries], np.int64),
        np.array([offsets[number + 1] - offsets[number] for _, number in entries], np.int64),
        _ends([len(axes) for axes in others]),
        _joined([cliques[number][axis] for axis in axes] for (_, number), axes in zip(entries, others, strict=True)),
        _joined([strides[number][axis] for axis in axes] for (_, number), axes in zip(entries, others, strict=True)),
    )
