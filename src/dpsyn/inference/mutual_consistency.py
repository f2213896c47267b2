"""Mutual consistency: tables agree on every set of attributes that several of them hold (PriView, SIGMOD 2014).

All tables lie in one vector (`TableLayout`). The sets of attributes on which they must agree are the intersections of
their cliques (`intersection_closure`). One pass over these sets, small sets first, makes the tables consistent
(`make_mutually_consistent`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.marginals import Clique, Estimate
from dpsyn.marginals.estimate import relative_precisions

Vector = NDArray[np.float64]
"""The cells of all tables, one table after the other, each in row-major order (the last attribute varies fastest)."""


@dataclass(frozen=True, slots=True, eq=False)
class TableLayout:
    """The positions of tables in a vector. All list their attributes in the same order, so projections are comparable.

    Attributes:
        cliques: the attributes of each table.
        shapes: the sizes of these attributes.
        precisions: the relative precision of each table, see `relative_precisions`.
        cells: the number of cells of each table.
        starts: the position of the first cell of each table.
    """

    cliques: tuple[Clique, ...]
    shapes: tuple[tuple[int, ...], ...]
    precisions: NDArray[np.float64]
    cells: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, estimates: Sequence[Estimate]) -> TableLayout:
        """The layout of one or more tables, whose axes may be in any order."""
        sizes = _sizes(estimates)
        order = {name: index for index, name in enumerate(sizes)}
        cliques = tuple(tuple(sorted(estimate.clique, key=order.__getitem__)) for estimate in estimates)
        shapes = tuple(tuple(sizes[name] for name in clique) for clique in cliques)
        cells = np.array([math.prod(shape) for shape in shapes], np.int64)
        precisions = relative_precisions([estimate.variance for estimate in estimates])
        return cls(cliques, shapes, precisions, cells, np.cumsum(cells) - cells)

    def to_vector(self, estimates: Sequence[Estimate]) -> Vector:
        """The cells of the tables that this layout was made for, as a vector."""
        pairs = zip(self.cliques, estimates, strict=True)
        return np.concatenate([estimate.project(clique).ravel() for clique, estimate in pairs])

    def tables(self, vector: Vector) -> list[NDArray[np.float64]]:
        """The tables of a vector, as views: a change of a table changes the vector."""
        ends = self.starts + self.cells
        pieces = zip(self.starts.tolist(), ends.tolist(), self.shapes, strict=True)
        return [vector[start:end].reshape(shape) for start, end, shape in pieces]

    def to_estimates(self, vector: Vector, like: Sequence[Estimate]) -> list[Estimate]:
        """The tables of a vector, with the axes and variances of the tables that this layout was made for."""
        estimates = []
        for clique, values, old in zip(self.cliques, self.tables(vector), like, strict=True):
            transposed = np.transpose(values, [clique.index(name) for name in old.clique])
            estimates.append(Estimate(old.clique, np.array(transposed, order="C"), old.variance))
        return estimates

    def sums(self, vector: Vector) -> NDArray[np.float64]:
        """The sum of each table."""
        sums: NDArray[np.float64] = np.add.reduceat(vector, self.starts)
        return sums


def _sizes(estimates: Sequence[Estimate]) -> dict[str, int]:
    """The number of values of each attribute, in the order in which they first appear."""
    sizes: dict[str, int] = {}
    for estimate in estimates:
        for name, size in zip(estimate.clique, estimate.values.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise InternalError(f"{name} has {sizes[name]} values in one table and {size} in another")
    return sizes


# ── shared sets of attributes ────────────────────────────────────────────────────────────────────────────────


MAX_INTERSECTIONS = 10_000
"""The maximum number of shared sets, several times as many as tables in use have: 600 pairs have 35 sets, 300 cliques
of 5 attributes 1 100, 50 views of 8 out of 16 attributes 1 300."""


@dataclass(frozen=True, slots=True)
class SharedAttributes:
    """A set of attributes and the tables that hold all of them.

    Attributes:
        attributes: the set, sorted by name.
        tables: the indices of the tables, ascending.
    """

    attributes: Clique
    tables: tuple[int, ...]


def intersection_closure(cliques: Sequence[Clique], max_sets: int = MAX_INTERSECTIONS) -> list[SharedAttributes]:
    """The empty set, and all intersections of two or more of the cliques; small sets first, then by name.

    Tables that agree on these sets agree on all attributes that they share. Such a set consists of all attributes that
    the tables holding it have in common, so these tables identify it. To extend a set by an attribute, leave out the
    tables without that attribute and take all attributes that the others share. This reaches every set from smaller
    ones.

    If there are more than ``max_sets`` sets, the largest are left out, all of one size at once. The remaining sets are
    still closed under intersection, and tables that agree on them agree on their projections to as many attributes.
    """
    everyone = (1 << len(cliques)) - 1
    closure = [SharedAttributes((), tuple(range(len(cliques))))]
    if len(cliques) < 2:
        return closure
    holders, seen = _holders(cliques), {everyone}
    waiting: dict[int, list[tuple[Clique, int]]] = defaultdict(list)
    waiting[len(_common_attributes(cliques, everyone))].append((_common_attributes(cliques, everyone), everyone))
    while waiting:
        level = sorted(waiting.pop(min(waiting)))
        if len(closure) + len(level) > max_sets:
            break
        closure += [
            SharedAttributes(attributes, tuple(_bit_positions(tables))) for attributes, tables in level if attributes
        ]
        for attributes, tables in level:
            for fewer in _fewer_holders(tables, attributes, holders):
                if fewer not in seen:
                    seen.add(fewer)
                    common = _common_attributes(cliques, fewer)
                    waiting[len(common)].append((common, fewer))
    return closure


def _holders(cliques: Sequence[Clique]) -> dict[str, int]:
    """For each attribute the tables that hold it, as the bits of an integer."""
    holders: dict[str, int] = defaultdict(int)
    for index, clique in enumerate(cliques):
        for name in clique:
            holders[name] |= 1 << index
    return holders


def _fewer_holders(tables: int, attributes: Clique, holders: dict[str, int]) -> Iterator[int]:
    """The subsets of the tables that hold one more attribute, for each attribute that at least two of them hold."""
    for name, holding in holders.items():
        fewer = tables & holding
        if fewer & (fewer - 1) and name not in attributes:
            yield fewer


def _common_attributes(cliques: Sequence[Clique], tables: int) -> Clique:
    """The attributes that all of the tables hold."""
    indices = _bit_positions(tables)
    common = set(cliques[next(indices)])
    for index in indices:
        common.intersection_update(cliques[index])
        if not common:
            break
    return tuple(sorted(common))


def _bit_positions(tables: int) -> Iterator[int]:
    """The positions of the bits that are set, ascending."""
    while tables:
        lowest = tables & -tables
        yield lowest.bit_length() - 1
        tables ^= lowest


# ── projection to mutually consistent tables ─────────────────────────────────────────────────────────────────


Tables = Sequence[NDArray[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """A set of attributes A that several tables hold, and the indices needed to project tables to A and back.

    Attributes:
        shape: the sizes of the attributes of A.
        holders: the indices of the tables that hold A.
        summed_axes: for each of these tables, the axes that are not in A.
        kept_shapes: for each of these tables, the shape of its projection with those axes kept at length 1.
        cells_per_sum: for each of these tables, the number of its cells in one cell of A, as a column.
        weights: for each of these tables, its weight in the common projection; the sum is 1.
    """

    shape: tuple[int, ...]
    holders: tuple[int, ...]
    summed_axes: tuple[tuple[int, ...], ...]
    kept_shapes: tuple[tuple[int, ...], ...]
    cells_per_sum: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, layout: TableLayout, attributes: Sequence[str], holders: tuple[int, ...]) -> Overlap:
        """The overlap of some tables of a layout, given by their indices."""
        owners = [(layout.cliques[index], layout.shapes[index]) for index in holders]
        summed = [tuple(axis for axis, name in enumerate(clique) if name not in attributes) for clique, _ in owners]
        kept = [
            tuple(size if name in attributes else 1 for name, size in zip(clique, shape, strict=True))
            for clique, shape in owners
        ]
        cells_per_sum = layout.cells[list(holders)] / np.prod(kept[0])
        precisions = layout.precisions[list(holders)] / cells_per_sum
        shape = tuple(size for name, size in zip(*owners[0], strict=True) if name in attributes)
        weights = precisions / precisions.sum()
        return cls(shape, holders, tuple(summed), tuple(kept), cells_per_sum[:, None], weights)

    def project(self, tables: Tables) -> NDArray[np.float64]:
        """The projection to A of each table that holds it, as rows of flat cells."""
        rows = np.empty((len(self.holders), *self.shape))
        for row, index, summed in zip(rows, self.holders, self.summed_axes, strict=True):
            np.add.reduce(tables[index], axis=summed, out=row)
        return rows.reshape(len(self.holders), -1)


def find_overlaps(layout: TableLayout) -> list[Overlap]:
    """The overlaps of the tables of a layout, small sets first, without the empty set (the totals)."""
    shared = intersection_closure(layout.cliques)
    return [Overlap.of(layout, one.attributes, one.tables) for one in shared if one.attributes]


def weighted_total(vector: Vector, layout: TableLayout) -> float:
    """The mean of the tables' totals, weighted by precision: a total has the variance of a cell times its cells."""
    return float(np.average(layout.sums(vector), weights=layout.precisions / layout.cells))


def make_mutually_consistent(
    vector: Vector, layout: TableLayout, overlaps: Sequence[Overlap], total: float
) -> tuple[Vector, float]:
    """One pass of mutual consistency (PriView, SIGMOD 2014) for tables of unequal noise; also returns the widest gap.

    First all totals become ``total``. Then for every set A, small sets first, with Sᵢ the projection of table i on A,
    gᵢ the number of cells of i in one cell of A, and vᵢ its variance:

        T = Σ wᵢSᵢ / Σ wᵢ,  wᵢ = 1 / (vᵢgᵢ);    each cell of i gets (T − Sᵢ) / gᵢ.

    The sets are closed under intersection. So when A is processed, its tables agree on the attributes that A shares
    with an earlier set; T − Sᵢ sums to zero there, the earlier sets do not change, and one pass is enough. It is the
    orthogonal projection onto consistent tables, if the square of a cell of table i has the weight 1/vᵢ.

    A gap is the largest difference of a cell between two projections Sᵢ. It is measured after smaller sets have changed
    the tables; the gaps of sets of one attribute are those of ``vector``.
    """
    changed = vector + np.repeat((total - layout.sums(vector)) / layout.cells, layout.cells)
    tables, widest = layout.tables(changed), 0.0
    for overlap in overlaps:
        projections = overlap.project(tables)
        widest = max(widest, _gap(projections))
        moves = (overlap.weights @ projections - projections) / overlap.cells_per_sum
        for index, move, kept in zip(overlap.holders, moves, overlap.kept_shapes, strict=True):
            table = tables[index]
            np.add(table, move.reshape(kept), out=table)
    return changed, widest


def widest_gap(vector: Vector, layout: TableLayout, overlaps: Sequence[Overlap]) -> float:
    """The largest difference between two tables in a cell of a set of attributes that both hold."""
    tables = layout.tables(vector)
    return max((_gap(overlap.project(tables)) for overlap in overlaps), default=0.0)


def _gap(projections: NDArray[np.float64]) -> float:
    return float(np.max(projections.max(axis=0) - projections.min(axis=0)))
