"""Consistency: noisy tables become non-negative, sum to the same total and agree on the attributes that they share.

The method alternates between mutual consistency, in which tables agree on every set of attributes that several of them
hold (PriView, SIGMOD 2014), and non-negativity (``nonnegativity.py``), as PriView, CALM and PrivSyn do, with longer
steps than theirs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference.histogram_hierarchy import join_partitions
from dpsyn.inference.nonnegativity import norm_cut, norm_sub_each, ripple
from dpsyn.marginals import Clique, Estimate
from dpsyn.marginals.estimate import average_estimates, relative_precisions
from dpsyn.progress import Progress, ignore_progress

CONSISTENCY_PHASE = "making tables agree"

SMALL_TOTAL = 500.0
"""Below this total the tolerance shrinks in proportion: half a count is a thousandth of 500 rows, but half of one."""

PLAIN_ROUNDS = 5
"""The rounds before steps are stretched. If steps are stretched from the first round they overshoot, because tables are
then as inconsistent as the noise makes them: the error of 45 pairs of a census table was about a tenth larger
(``bench/consistency.py``)."""

STEP_STRETCH = 1.95
"""The factor by which steps are stretched. Below 2 convergence is proven; of 1, 1.5, 1.8 and 1.95 this one took the
fewest rounds (``bench/consistency.py``)."""

RIPPLE_ROUNDS = 3
"""How often tables are rippled and made mutually consistent before the first norm-sub; ten times gain nothing more
(``bench/priview.py``)."""

RIPPLE_THRESHOLD_SIGMAS = 0.02
"""The threshold of ripple, in standard deviations of a table's noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyOptions:
    """Options of `make_consistent`.

    Attributes:
        rounds: the maximum number of rounds. A few dozen are usual; 500, as in PrivSyn, limit the time where these are
            not enough.
        tolerance: stop when no two tables differ by this count in any cell of their shared attributes; in proportion
            less if the total is below 500. Half a count makes no difference to whole rows.
        extrapolate: continue in the direction of each round as far as convergence allows. False gives the alternation
            of the papers, which needs two to ten times as many rounds for tables of the same quality
            (``bench/consistency.py``).
        ripple: take what negative cells lack from neighboring cells first, and leave the rest to norm-sub. Projections
            of large sparse tables to few of their attributes, such as PriView's views, stay much closer to the truth.
        norm_cut: end with mutual consistency and then norm-cut, instead of norm-sub. Negative counts are then taken
            from the smallest cells, so that large cells agree and more cells are zero. Small cells may differ by more.
    """

    rounds: int = 500
    tolerance: float = 0.5
    extrapolate: bool = True
    ripple: bool = False
    norm_cut: bool = False

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise InternalError(f"rounds is {self.rounds}; tables need at least one round")
        if not self.tolerance > 0:
            raise InternalError(f"tolerance is {self.tolerance}; it must be above 0")


def make_consistent(
    estimates: Sequence[Estimate],
    *,
    total: float | None = None,
    options: ConsistencyOptions | None = None,
    progress: Progress = ignore_progress,
) -> list[Estimate]:
    """Make tables non-negative, of equal totals and consistent on shared attributes; they change as little as possible.

    Tables of the same attributes are averaged first, weighted by inverse variance. So the result has one table for each
    set of attributes, in the order of the first tables and with their axes. Then mutual consistency and non-negativity
    alternate (PriView, CALM, PrivSyn) until shared attributes differ by less than ``options.tolerance``. If that takes
    more than ``options.rounds``, the result is the most consistent round.

    Args:
        estimates: noisy tables.
        total: the total of every table, if it is known; otherwise the mean of their totals, weighted by precision. If
            it is not positive, all cells become zero.
        options: the number of rounds and the tolerance.
        progress: receives the fraction of the rounds that is done.

    Privacy: post-processing; it costs nothing.
    """
    options = options or ConsistencyOptions()
    tables = average_estimates(estimates)
    if not tables:
        return []
    layout = TableLayout.of(tables)
    vector = layout.to_vector(tables)
    common = weighted_total(vector, layout) if total is None else total
    if not (np.isfinite(vector).all() and math.isfinite(common)):
        raise InternalError("a noisy table, or the total, is not finite")
    progress(CONSISTENCY_PHASE, 0.0)
    if options.ripple and common > 0:
        vector = _ripple_tables(vector, layout, common, [math.sqrt(table.variance) for table in tables])
    result = _alternate_projections(vector, layout, common, options, progress) if common > 0 else np.zeros_like(vector)
    progress(CONSISTENCY_PHASE, 1.0)
    return layout.to_estimates(result, tables)


def _ripple_tables(vector: Vector, layout: TableLayout, total: float, stds: Sequence[float]) -> Vector:
    """Make tables mutually consistent with hardly any negative cells left."""
    overlaps = find_overlaps(layout)
    rippled, _ = make_mutually_consistent(vector, layout, overlaps, total)
    for _ in range(RIPPLE_ROUNDS):
        for table, std in zip(layout.tables(rippled), stds, strict=True):
            table[...] = ripple(table, RIPPLE_THRESHOLD_SIGMAS * std)
        rippled, _ = make_mutually_consistent(rippled, layout, overlaps, total)
    return rippled


def _alternate_projections(
    vector: Vector, layout: TableLayout, total: float, options: ConsistencyOptions, progress: Progress
) -> Vector:
    """Alternate between mutually consistent and non-negative tables; end with non-negative ones."""
    overlaps = find_overlaps(layout)
    tolerance = options.tolerance * min(1.0, total / SMALL_TOTAL)
    consistent, _ = make_mutually_consistent(vector, layout, overlaps, total)
    smallest_gap, best = math.inf, (consistent, consistent)
    for done in range(1, options.rounds + 1):
        positive = norm_sub_each(consistent, layout.starts, total)
        projected, gap = make_mutually_consistent(positive, layout, overlaps, total)
        reached = gap < tolerance and widest_gap(positive, layout, overlaps) < tolerance
        if reached or gap < smallest_gap:
            smallest_gap, best = gap, (positive, projected)
        if reached:
            break
        stretch = STEP_STRETCH if done > PLAIN_ROUNDS else 1.0
        if options.extrapolate:
            consistent = extrapolate_step(consistent, positive, projected, layout, stretch)
        else:
            consistent = projected
        progress(CONSISTENCY_PHASE, done / options.rounds)
    positive, projected = best
    if options.norm_cut:
        return np.concatenate([norm_cut(table, total).ravel() for table in layout.tables(projected)])
    return positive


def extrapolate_step(
    consistent: Vector, positive: Vector, projected: Vector, layout: TableLayout, stretch: float
) -> Vector:
    """Lengthen the step from ``consistent`` to ``projected``; the result is consistent.

    It is not farther from any solution than ``consistent`` is. Let a be consistent tables, b the nearest non-negative
    ones and c the consistent ones nearest to b. Then the step c − a may be ‖b − a‖² / ‖c − a‖² times as long, and
    stretched by a further factor of up to 2 (Bauschke, Combettes, Kruk: Extrapolation algorithm for affine-convex
    feasibility problems, 2006). Norms are those in which both maps are orthogonal projections: the square of a cell is
    weighted by the precision of its table.
    """
    step = projected - consistent
    length = _squared_norm(step, layout)
    if length == 0:
        return projected
    return consistent + stretch * _squared_norm(positive - consistent, layout) / length * step


def _squared_norm(difference: Vector, layout: TableLayout) -> float:
    return float(layout.sums(difference * difference) @ layout.precisions)


# ── mutual consistency ───────────────────────────────────────────────────────────────────────────────────────


Levels = Mapping[str, NDArray[np.int64]]
"""For the attributes of a table that it counts at a coarser level, the group of each of their values."""

Vector = NDArray[np.float64]
"""The cells of all tables, one table after the other, each in row-major order (the last attribute varies fastest)."""


@dataclass(frozen=True, slots=True, eq=False)
class TableLayout:
    """The positions of tables in a vector. All list their attributes in the same order, so projections are comparable.

    Attributes:
        cliques: the attributes of each table.
        levels: for each table, the groups of the attributes that it counts at a coarser level.
        shapes: the sizes of these attributes, or the numbers of their groups.
        precisions: the relative precision of each table, see `relative_precisions`.
        cells: the number of cells of each table.
        starts: the position of the first cell of each table.
    """

    cliques: tuple[Clique, ...]
    levels: tuple[Levels, ...]
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
        levels = tuple(estimate.levels for estimate in estimates)
        shapes = tuple(
            tuple(int(groups[name].max()) + 1 if name in groups else sizes[name] for name in clique)
            for clique, groups in zip(cliques, levels, strict=True)
        )
        cells = np.array([math.prod(shape) for shape in shapes], np.int64)
        precisions = relative_precisions([estimate.variance for estimate in estimates])
        return cls(cliques, levels, shapes, precisions, cells, np.cumsum(cells) - cells)

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
            estimates.append(replace(old, values=np.array(transposed, order="C")))
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
            size = len(estimate.levels[name]) if name in estimate.levels else size
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

    def move(self, tables: Tables, projections: NDArray[np.float64]) -> None:
        """Move the tables to their common projection."""
        moves = (self.weights @ projections - projections) / self.cells_per_sum
        for index, move, kept in zip(self.holders, moves, self.kept_shapes, strict=True):
            np.add(tables[index], move.reshape(kept), out=tables[index])


@dataclass(frozen=True, slots=True, eq=False)
class LevelOverlap:
    """The same where tables count attributes at different levels: A is a set of attributes, each at a level.

    Attributes:
        holders: the indices of the tables that hold A: every attribute at least as finely.
        cell_of: for each of these tables, the cell of A that each of its cells is in.
        cells_per_sum: for each of these tables, the number of its cells in each cell of A.
        weights: for each of these tables, its weight in the common projection of each cell; the sum is 1.
    """

    holders: tuple[int, ...]
    cell_of: tuple[NDArray[np.int64], ...]
    cells_per_sum: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, layout: TableLayout, attributes: AttributeLevels, holders: tuple[int, ...]) -> LevelOverlap:
        """The overlap of some tables of a layout, given by their indices."""
        sizes = [int(group_of.max()) + 1 for group_of in attributes.values()]
        cell_of = []
        for index in holders:
            cells = np.zeros((1,) * len(layout.cliques[index]), np.int64)
            for (name, group_of), size in zip(attributes.items(), sizes, strict=True):
                own = layout.levels[index].get(name)
                groups = group_of if own is None else _groups_of_groups(own, group_of)
                axis = layout.cliques[index].index(name)
                cells = cells * size + groups.reshape([-1 if n == axis else 1 for n in range(cells.ndim)])
            cell_of.append(np.ascontiguousarray(np.broadcast_to(cells, layout.shapes[index])).ravel())
        counts = np.stack([np.bincount(cells, minlength=math.prod(sizes)) for cells in cell_of]).astype(np.float64)
        precisions = layout.precisions[list(holders)][:, None] / counts
        return cls(holders, tuple(cell_of), counts, precisions / precisions.sum(axis=0))

    def project(self, tables: Tables) -> NDArray[np.float64]:
        """The projection to A of each table that holds it, as rows of flat cells."""
        cells = self.cells_per_sum.shape[1]
        pairs = zip(self.holders, self.cell_of, strict=True)
        return np.stack([np.bincount(cell_of, tables[index].ravel(), cells) for index, cell_of in pairs])

    def move(self, tables: Tables, projections: NDArray[np.float64]) -> None:
        """Move the tables to their common projection."""
        moves = ((self.weights * projections).sum(axis=0) - projections) / self.cells_per_sum
        for index, move, cell_of in zip(self.holders, moves, self.cell_of, strict=True):
            np.add(tables[index], move[cell_of].reshape(tables[index].shape), out=tables[index])


def _groups_of_groups(finer: NDArray[np.int64], coarser: NDArray[np.int64]) -> NDArray[np.int64]:
    """The coarser group of each finer group of the same values."""
    groups = np.zeros(int(finer.max()) + 1, np.int64)
    groups[finer] = coarser
    return groups


AttributeLevels = dict[str, NDArray[np.int64]]
"""Attributes, each with the group of each of its values."""


def find_level_overlaps(layout: TableLayout) -> list[LevelOverlap]:
    """The overlaps of tables at different levels: everything that two or more of them can agree on, coarse sets first.

    What two tables share is the coarser of their levels of every attribute that both hold. These sets are closed under
    intersection in the same sense, so one pass over them, those of fewer cells first, makes tables agree.
    """
    sizes = {n: size for c, s, g in zip(layout.cliques, layout.shapes, layout.levels, strict=True)
             for n, size in zip(c, s, strict=True) if n not in g}  # fmt: skip
    sizes |= {name: len(group_of) for groups in layout.levels for name, group_of in groups.items()}
    lattice = _LevelLattice(sizes)
    tables = [lattice.key_of(clique, groups) for clique, groups in zip(layout.cliques, layout.levels, strict=True)]
    closed: set[LevelKey] = set()
    waiting = {lattice.meet(one, other) for index, one in enumerate(tables) for other in tables[:index]} - {()}
    while waiting and len(closed) < MAX_INTERSECTIONS:
        closed |= waiting
        waiting = {lattice.meet(one, other) for one in waiting for other in closed} - closed - {()}
    ordered = sorted(closed, key=lambda key: (lattice.cells(key), key))
    return [
        LevelOverlap.of(layout, lattice.attributes(key), holders)
        for key in ordered
        if len(holders := tuple(n for n, table in enumerate(tables) if lattice.meet(key, table) == key)) > 1
    ]


LevelKey = tuple[tuple[str, int], ...]
"""Attributes, sorted, each with the number of its level in a lattice."""


class _LevelLattice:
    """The levels of attributes that tables use, and which of two levels is the coarser."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._groups: dict[str, list[NDArray[np.int64]]] = {n: [np.arange(size)] for n, size in sizes.items()}
        self._meets: dict[tuple[str, int, int], int] = {}

    def key_of(self, clique: Clique, levels: Levels) -> LevelKey:
        return tuple(sorted((name, self._number(name, levels.get(name))) for name in clique))

    def _number(self, name: str, group_of: NDArray[np.int64] | None) -> int:
        """The number of a level, which is added if it is new; 0 is the attribute itself."""
        if group_of is None:
            return 0
        known = self._groups[name]
        for number, other in enumerate(known):
            if np.array_equal(group_of, other):
                return number
        known.append(group_of)
        return len(known) - 1

    def meet(self, one: LevelKey, other: LevelKey) -> LevelKey:
        """The attributes that both have, each at the finest level that both determine."""
        levels = dict(other)
        return tuple(
            (name, number)
            for name, level in one
            if name in levels and (number := self._meet_levels(name, level, levels[name])) >= 0
        )

    def _meet_levels(self, name: str, one: int, other: int) -> int:
        """The number of the finest level that is coarser than both; −1 if that has one group only."""
        if one == other:
            return one
        one, other = min(one, other), max(one, other)
        if (name, one, other) not in self._meets:
            merged = join_partitions(self._groups[name][one], self._groups[name][other])
            self._meets[name, one, other] = self._number(name, merged) if merged.max() else -1
        return self._meets[name, one, other]

    def attributes(self, key: LevelKey) -> AttributeLevels:
        return {name: self._groups[name][number] for name, number in key}

    def cells(self, key: LevelKey) -> int:
        return math.prod(int(group_of.max()) + 1 for group_of in self.attributes(key).values())


def find_overlaps(layout: TableLayout) -> Sequence[Overlap | LevelOverlap]:
    """The overlaps of the tables of a layout, small sets first, without the empty set (the totals)."""
    if any(layout.levels):
        return find_level_overlaps(layout)
    shared = intersection_closure(layout.cliques)
    return [Overlap.of(layout, one.attributes, one.tables) for one in shared if one.attributes]


def weighted_total(vector: Vector, layout: TableLayout) -> float:
    """The mean of the tables' totals, weighted by precision: a total has the variance of a cell times its cells."""
    return float(np.average(layout.sums(vector), weights=layout.precisions / layout.cells))


def make_mutually_consistent(
    vector: Vector, layout: TableLayout, overlaps: Sequence[Overlap | LevelOverlap], total: float
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
        overlap.move(tables, projections)
    return changed, widest


def widest_gap(vector: Vector, layout: TableLayout, overlaps: Sequence[Overlap | LevelOverlap]) -> float:
    """The largest difference between two tables in a cell of a set of attributes that both hold."""
    tables = layout.tables(vector)
    return max((_gap(overlap.project(tables)) for overlap in overlaps), default=0.0)


def _gap(projections: NDArray[np.float64]) -> float:
    return float(np.max(projections.max(axis=0) - projections.min(axis=0)))
