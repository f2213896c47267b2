"""Tables as pieces of one vector."""

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
"""The cells of all tables, one table after the other; in a table the last attribute is the fastest."""


@dataclass(frozen=True, slots=True, eq=False)
class TableLayout:
    """How tables lie in a vector. All list their attributes in the same order, so that projections can be compared.

    Attributes:
        cliques: the attributes of each table.
        shapes: their sizes.
        precisions: how much each table is worth beside the others.
        cells: how many cells each table has.
        starts: where each table begins.
    """

    cliques: tuple[Clique, ...]
    shapes: tuple[tuple[int, ...], ...]
    precisions: NDArray[np.float64]
    cells: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, estimates: Sequence[Estimate]) -> TableLayout:
        """For one or more tables, whatever the orders of their axes."""
        sizes = _sizes(estimates)
        order = {name: place for place, name in enumerate(sizes)}
        cliques = tuple(tuple(sorted(estimate.clique, key=order.__getitem__)) for estimate in estimates)
        shapes = tuple(tuple(sizes[name] for name in clique) for clique in cliques)
        cells = np.array([math.prod(shape) for shape in shapes], np.int64)
        worth = relative_precisions([estimate.variance for estimate in estimates])
        return cls(cliques, shapes, worth, cells, np.cumsum(cells) - cells)

    def to_vector(self, estimates: Sequence[Estimate]) -> Vector:
        """The cells of the tables this layout was made for."""
        pairs = zip(self.cliques, estimates, strict=True)
        return np.concatenate([estimate.project(clique).ravel() for clique, estimate in pairs])

    def tables(self, vector: Vector) -> list[NDArray[np.float64]]:
        """The pieces of a vector; to change one changes the vector."""
        ends = self.starts + self.cells
        places = zip(self.starts.tolist(), ends.tolist(), self.shapes, strict=True)
        return [vector[start:end].reshape(shape) for start, end, shape in places]

    def to_estimates(self, vector: Vector, like: Sequence[Estimate]) -> list[Estimate]:
        """The pieces of a vector with the axes and variances of the tables this layout was made for."""
        found = []
        for clique, values, old in zip(self.cliques, self.tables(vector), like, strict=True):
            turned = np.transpose(values, [clique.index(name) for name in old.clique])
            found.append(Estimate(old.clique, np.array(turned, order="C"), old.variance))
        return found

    def sums(self, vector: Vector) -> NDArray[np.float64]:
        """The sum over each table."""
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


# ── Which sets of attributes tables share ──


MAX_INTERSECTIONS = 10_000
"""Several times what tables in use share: 600 pairs 35 sets, 300 cliques of 5 attributes 1 100, 50 views of 8 out of
16 attributes 1 300."""


@dataclass(frozen=True, slots=True)
class SharedAttributes:
    """A set of attributes and the tables that hold all of them.

    Attributes:
        attributes: in the order of their names.
        tables: the places of the tables, ascending.
    """

    attributes: Clique
    tables: tuple[int, ...]


def intersection_closure(cliques: Sequence[Clique], max_sets: int = MAX_INTERSECTIONS) -> list[SharedAttributes]:
    """The empty set, and all intersections of two or more of the cliques; small sets first, then by name.

    Tables that agree on these sets agree on everything that they share. Such a set is all that the tables holding
    it have in common, so that it is known by those tables: to widen a set by an attribute, leave out the tables
    without it and take whatever the others share. That reaches every set from smaller ones.

    If there are more than ``max_sets`` sets, the largest are left out, all of a size at once: what is left is still
    closed under intersection, and tables that agree on it agree on the projections to as many attributes.
    """
    everyone = (1 << len(cliques)) - 1
    found = [SharedAttributes((), tuple(range(len(cliques))))]
    if len(cliques) < 2:
        return found
    holders, seen = _holders(cliques), {everyone}
    waiting: dict[int, list[tuple[Clique, int]]] = defaultdict(list)
    waiting[len(_common_attributes(cliques, everyone))].append((_common_attributes(cliques, everyone), everyone))
    while waiting:
        level = sorted(waiting.pop(min(waiting)))
        if len(found) + len(level) > max_sets:
            break
        found += [
            SharedAttributes(attributes, tuple(_bit_positions(tables))) for attributes, tables in level if attributes
        ]
        for attributes, tables in level:
            for fewer in _fewer_holders(tables, attributes, holders):
                if fewer not in seen:
                    seen.add(fewer)
                    common = _common_attributes(cliques, fewer)
                    waiting[len(common)].append((common, fewer))
    return found


def _holders(cliques: Sequence[Clique]) -> dict[str, int]:
    """For each attribute the tables that hold it, as bits of a number."""
    holders: dict[str, int] = defaultdict(int)
    for place, clique in enumerate(cliques):
        for name in clique:
            holders[name] |= 1 << place
    return holders


def _fewer_holders(tables: int, attributes: Clique, holders: dict[str, int]) -> Iterator[int]:
    """Those of the tables that hold one attribute more, for each attribute that two or more of them hold."""
    for name, holding in holders.items():
        fewer = tables & holding
        if fewer & (fewer - 1) and name not in attributes:
            yield fewer


def _common_attributes(cliques: Sequence[Clique], tables: int) -> Clique:
    """What the tables share."""
    places = _bit_positions(tables)
    common = set(cliques[next(places)])
    for place in places:
        common.intersection_update(cliques[place])
        if not common:
            break
    return tuple(sorted(common))


def _bit_positions(tables: int) -> Iterator[int]:
    """The places of the bits that are set."""
    while tables:
        lowest = tables & -tables
        yield lowest.bit_length() - 1
        tables ^= lowest


# ── Make tables say the same wherever they overlap ──


Tables = Sequence[NDArray[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """A set of attributes A that several tables hold, and all that is needed to project on it and back.

    Attributes:
        shape: the sizes of the attributes of A.
        holders: the tables that hold A.
        summed_axes: for each of them the axes that are not in A.
        kept_shapes: for each of them the shape of its projection with those axes left in, of length 1.
        cells_per_sum: for each of them how many cells fall into one cell of A, as a column.
        weights: for each of them its part in the common projection; their sum is 1.
    """

    shape: tuple[int, ...]
    holders: tuple[int, ...]
    summed_axes: tuple[tuple[int, ...], ...]
    kept_shapes: tuple[tuple[int, ...], ...]
    cells_per_sum: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, layout: TableLayout, attributes: Sequence[str], holders: tuple[int, ...]) -> Overlap:
        """For the tables of a layout at some places."""
        owners = [(layout.cliques[place], layout.shapes[place]) for place in holders]
        gone = [tuple(axis for axis, name in enumerate(clique) if name not in attributes) for clique, _ in owners]
        kept = [
            tuple(size if name in attributes else 1 for name, size in zip(clique, shape, strict=True))
            for clique, shape in owners
        ]
        folded = layout.cells[list(holders)] / np.prod(kept[0])
        worth = layout.precisions[list(holders)] / folded
        shape = tuple(size for name, size in zip(*owners[0], strict=True) if name in attributes)
        return cls(shape, holders, tuple(gone), tuple(kept), folded[:, None], worth / worth.sum())

    def project(self, tables: Tables) -> NDArray[np.float64]:
        """The projection of each table that holds A, a row for each, its cells flat."""
        rows = np.empty((len(self.holders), *self.shape))
        for row, place, gone in zip(rows, self.holders, self.summed_axes, strict=True):
            np.add.reduce(tables[place], axis=gone, out=row)
        return rows.reshape(len(self.holders), -1)


def find_overlaps(layout: TableLayout) -> list[Overlap]:
    """Where the tables of a layout overlap, small sets first; the empty set, of the totals, is left out."""
    shared = intersection_closure(layout.cliques)
    return [Overlap.of(layout, one.attributes, one.tables) for one in shared if one.attributes]


def weighted_total(vector: Vector, layout: TableLayout) -> float:
    """The mean of the totals of the tables, weighted by precision: the noise of a total is that of all its cells."""
    return float(np.average(layout.sums(vector), weights=layout.precisions / layout.cells))


def make_mutually_consistent(
    vector: Vector, layout: TableLayout, overlaps: Sequence[Overlap], total: float
) -> tuple[Vector, float]:
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
    for overlap in overlaps:
        projections = overlap.project(tables)
        widest = max(widest, _gap(projections))
        moves = (overlap.weights @ projections - projections) / overlap.cells_per_sum
        for place, move, kept in zip(overlap.holders, moves, overlap.kept_shapes, strict=True):
            table = tables[place]
            np.add(table, move.reshape(kept), out=table)
    return changed, widest


def widest_gap(vector: Vector, layout: TableLayout, overlaps: Sequence[Overlap]) -> float:
    """The largest difference between what two tables say about the same cell of a set that both hold."""
    tables = layout.tables(vector)
    return max((_gap(overlap.project(tables)) for overlap in overlaps), default=0.0)


def _gap(projections: NDArray[np.float64]) -> float:
    return float(np.max(projections.max(axis=0) - projections.min(axis=0)))
