"""Make tables say the same wherever they overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.consistency.closure import closure
from dpsyn.consistency.layout import Layout, Vector

Tables = Sequence[NDArray[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """A set of attributes A that several tables hold, and all that is needed to project on it and back.

    Attributes:
        shape: the sizes of the attributes of A.
        places: the tables that hold A.
        gone: for each of them the axes that are not in A.
        kept: for each of them the shape of its projection with those axes left in, of length 1.
        folded: for each of them how many cells fall into one cell of A, as a column.
        weights: for each of them its part in the common projection; their sum is 1.
    """

    shape: tuple[int, ...]
    places: tuple[int, ...]
    gone: tuple[tuple[int, ...], ...]
    kept: tuple[tuple[int, ...], ...]
    folded: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, layout: Layout, attributes: Sequence[str], places: tuple[int, ...]) -> Overlap:
        """For the tables of a layout at some places."""
        owners = [(layout.cliques[place], layout.shapes[place]) for place in places]
        gone = [tuple(axis for axis, name in enumerate(clique) if name not in attributes) for clique, _ in owners]
        kept = [
            tuple(size if name in attributes else 1 for name, size in zip(clique, shape, strict=True))
            for clique, shape in owners
        ]
        folded = layout.cells[list(places)] / np.prod(kept[0])
        worth = layout.precisions[list(places)] / folded
        shape = tuple(size for name, size in zip(*owners[0], strict=True) if name in attributes)
        return cls(shape, places, tuple(gone), tuple(kept), folded[:, None], worth / worth.sum())

    def projections(self, tables: Tables) -> NDArray[np.float64]:
        """The projection of each table that holds A, a row for each, its cells flat."""
        rows = np.empty((len(self.places), *self.shape))
        for row, place, gone in zip(rows, self.places, self.gone, strict=True):
            np.add.reduce(tables[place], axis=gone, out=row)
        return rows.reshape(len(self.places), -1)


def overlaps(layout: Layout) -> list[Overlap]:
    """Where the tables of a layout overlap, small sets first; the empty set, of the totals, is left out."""
    shared = closure(layout.cliques)
    return [Overlap.of(layout, one.attributes, one.tables) for one in shared if one.attributes]


def weighted_total(vector: Vector, layout: Layout) -> float:
    """The mean of the totals of the tables, weighted by precision: the noise of a total is that of all its cells."""
    return float(np.average(layout.sums(vector), weights=layout.precisions / layout.cells))


def agree(vector: Vector, layout: Layout, shared: Sequence[Overlap], total: float) -> tuple[Vector, float]:
    """One pass of mutual consistency (PriView, SIGMOD 2014), for tables of unequal noise; and the widest gap it met.

    First all totals become ``total``. Then for every set A, small sets first, with Sᵢ the projection of table i on A,
    gᵢ the cells of i that fall into one cell of A, and vᵢ its variance:

        T = Σ wᵢSᵢ / Σ wᵢ,  wᵢ = 1 / (vᵢgᵢ);    each cell of i gets (T − Sᵢ) / gᵢ.

    The sets are closed under intersection. So when A comes its tables agree on all that A shares with a set before
    it; T − Sᵢ sums to zero there, the sets before stay as they are, and one pass is enough. It is the orthogonal
    projection onto tables that agree, if the square of a cell of table i counts 1/vᵢ.

    A gap is met after smaller sets have moved the tables; those of sets of one attribute are the gaps of ``vector``.
    """
    changed = vector + np.repeat((total - layout.sums(vector)) / layout.cells, layout.cells)
    tables, widest = layout.tables(changed), 0.0
    for overlap in shared:
        projections = overlap.projections(tables)
        widest = max(widest, _gap(projections))
        moves = (overlap.weights @ projections - projections) / overlap.folded
        for place, move, kept in zip(overlap.places, moves, overlap.kept, strict=True):
            table = tables[place]
            np.add(table, move.reshape(kept), out=table)
    return changed, widest


def widest_gap(vector: Vector, layout: Layout, shared: Sequence[Overlap]) -> float:
    """The largest difference between what two tables say about the same cell of a set that both hold."""
    tables = layout.tables(vector)
    return max((_gap(overlap.projections(tables)) for overlap in shared), default=0.0)


def _gap(projections: NDArray[np.float64]) -> float:
    return float(np.max(projections.max(axis=0) - projections.min(axis=0)))
