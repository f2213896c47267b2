"""Cells where the rows are: one-way marginals of numbers and dates in rounds, each finer where the last found rows.

Public bounds are often far wider than the data, and a spike is one value among many. So an attribute is measured three
times: over its public bins; over groups of cells that hold enough rows to stand out from the noise, with empty ranges
as one group; and over *leaves*, many where rows are many, down to single values. Each round is one histogram of
disjoint groups. Everything that decides where to cut is public or released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import split_exactly
from dpsyn.encoding import Codec, RecodedColumn, Recoding, uniform_weights
from dpsyn.errors import InternalError
from dpsyn.inference import MeasurementRound, Release, combine_one_way
from dpsyn.marginals import Clique
from dpsyn.private import PrivateTable, initial_recoding
from dpsyn.schema import Ranged, Schema

Codes = NDArray[np.int64]

MAX_GROUPS, GROUP_SIGMAS = 64, 4.0
"""A group of the second round holds at least one of so many equal parts of the rows, and so many standard deviations of
the noise, so that it stands out."""

EMPTY_SIGMAS = 2.0
"""Adjacent bins whose estimates are below this many standard deviations count as one empty range."""

MAX_LEAVES, LEAF_SIGMAS = 256, 1.0
"""The same for leaves. They may be finer than the noise: inside a group, they are shrunk toward an even spread."""

VALUES_PER_LEAF = 4
"""A group is divided into single values if that takes at most so many times as many leaves: spikes are such values."""


def finer_attributes(schema: Schema) -> list[str]:
    """The attributes whose cells are finer than their bins."""
    return [a.name for a in schema.modeled_attributes if a.coded and a.cells > a.size]


def may_divide_cells(schema: Schema) -> bool:
    """Whether some cells of numbers or dates hold several values, so that they may be divided."""
    ranged = [a for a in schema.modeled_attributes if isinstance(a, Ranged) and a.name in finer_attributes(schema)]
    return any(int(np.diff(attribute.grid().edges).max()) > 1 for attribute in ranged)


def measure_bins(table: PrivateTable, rhos: Mapping[str, Fraction]) -> tuple[PrivateTable, MeasurementRound]:
    """Measure every attribute over its public bins; ``rhos`` has the ρ of each.

    Privacy: spends the sum of ``rhos``.
    """
    table = table.recode(initial_recoding(table.schema))
    column_rho = _sum_over_columns(table.recoding, rhos)
    return table, MeasurementRound(table.recoding, tuple(table.measure(list(column_rho), list(column_rho.values()))))


def _sum_over_columns(recoding: Recoding, rhos: Mapping[str, Fraction]) -> dict[Clique, Fraction]:
    """The ρ of each column: the sum of those of its attributes."""
    names = [name for name, _ in recoding.origin]
    return {(c.name,): sum((rhos[names[source]] for source in c.sources), Fraction(0)) for c in recoding.columns}


def refine_bins(
    table: PrivateTable,
    rounds: Sequence[MeasurementRound],
    rhos: Mapping[str, Fraction],
    *,
    divide_cells: bool = True,
) -> tuple[PrivateTable, tuple[MeasurementRound, ...]]:
    """Measure numbers and dates where their bins were found to hold rows: over groups, then over leaves.

    All other attributes are measured over their values once more. Returns the table and all rounds over the cells that
    it has then. Cells are divided unless ``divide_cells`` is false or the rows can be read only once.

    Privacy: spends the sum of ``rhos``, half of the part of a number or date for each of its two rounds.
    """
    finer = finer_attributes(table.schema)
    halves = {name: split_exactly(rho, [1, 1]) if name in finer else (rho, Fraction(0)) for name, rho in rhos.items()}
    rounds, groups = measure_groups(table, rounds, {name: first for name, (first, _) in halves.items()})
    if not finer:
        return table, rounds

    divide_cells &= table.rereadable
    leaf_starts = {
        name: _start_leaves(table, rounds, name, groups[name], _noise_std(table, halves[name][1]), divide_cells)
        for name in finer
    }
    refined = table.refine_cells(leaf_starts)
    rounds = refine_rounds(rounds, table.schema, refined.schema)
    codec = Codec(refined.schema)
    leaves = Recoding(tuple(_leaf_column(codec, name, leaf_starts[name]) for name in finer), codec.domain)
    cliques: list[Clique] = [(name,) for name in finer]
    marginals = refined.recode(leaves).measure(cliques, [halves[name][1] for name in finer])
    return refined, (*rounds, MeasurementRound(leaves, tuple(marginals)))


def measure_groups(
    table: PrivateTable, rounds: Sequence[MeasurementRound], rhos: Mapping[str, Fraction]
) -> tuple[tuple[MeasurementRound, ...], dict[str, Codes]]:
    """Measure some attributes once more, numbers and dates over groups of cells; returns all rounds, and the groups.

    Privacy: spends the sum of ``rhos``.
    """
    finer = [name for name in finer_attributes(table.schema) if name in rhos]
    groups = {name: _group_cells(table, rounds, name, _noise_std(table, rhos[name])) for name in finer}
    recoding = initial_recoding(table.schema)
    columns = tuple(replace(c, tables=(groups[c.name],)) if c.name in groups else c for c in recoding.columns)
    recoding = Recoding(columns, recoding.origin)
    names = [name for name, _ in recoding.origin]
    kept = [c for c in columns if all(names[source] in rhos for source in c.sources)]
    column_rho = _sum_over_columns(Recoding(tuple(kept), recoding.origin), rhos)
    marginals = table.recode(recoding).measure(list(column_rho), list(column_rho.values()))
    return (*rounds, MeasurementRound(recoding, tuple(marginals))), groups


def refine_rounds(rounds: Sequence[MeasurementRound], coarser: Schema, finer: Schema) -> tuple[MeasurementRound, ...]:
    """The same measurements over the cells of a schema that divides some of the cells."""
    if coarser == finer:
        return tuple(rounds)
    origin, cell_of = Codec(finer).domain, {}
    for old, new in zip(coarser.modeled_attributes, finer.modeled_attributes, strict=True):
        if old != new and isinstance(old, Ranged) and isinstance(new, Ranged):
            cells = old.grid().cell_of(np.asarray(new.grid().edges[:-1]))
            cell_of[old.name] = np.append(cells, old.proper_cells) if old.has_missing else cells
    recodings = {id(each.recoding): each.recoding.refine(cell_of, origin) for each in rounds}
    return tuple(MeasurementRound(recodings[id(each.recoding)], each.marginals) for each in rounds)


def _noise_std(table: PrivateTable, rho: Fraction) -> float:
    return math.sqrt(table.privacy_unit.l2_sensitivity_squared / (2 * rho))


def _ranged(table: PrivateTable, name: str) -> Ranged:
    attribute = table.schema[name]
    if not isinstance(attribute, Ranged):
        raise InternalError(f"{name!r} has no cells that could be finer than its bins")
    return attribute


def _cells_apart(attribute: Ranged) -> list[int]:
    """The cells of zero and of declared spikes, which always have a group of their own."""
    grid = attribute.grid()
    cells = grid.cell_of(np.array(attribute.spike_steps(), np.int64))
    return [int(cell) for cell in cells if grid.edges[cell + 1] - grid.edges[cell] == 1]


def _group_cells(table: PrivateTable, rounds: Sequence[MeasurementRound], name: str, std: float) -> Codes:
    """The group of every cell in the second round.

    Bins that seem empty are merged with empty neighbors. The others are divided into groups of whole cells, each of
    which holds at least a 64th of the rows and four standard deviations of the noise.
    """
    attribute = _ranged(table, name)
    histogram = combine_one_way([Release(tuple(rounds))], Codec(table.schema).domain, name)
    weights = histogram.to_weights(uniform_weights(attribute))
    bins = attribute.bin_of_cell()
    sums = histogram.sums(bins)
    empty = np.zeros(attribute.size, np.bool_) if sums is None else sums[0] < EMPTY_SIGMAS * np.sqrt(sums[1])
    mass = max(float(weights.sum()) / MAX_GROUPS, GROUP_SIGMAS * std)
    starts = {cell + after for cell in _cells_apart(attribute) for after in (0, 1)}
    for index in range(int(bins[attribute.proper_cells - 1]) + 1):
        members = np.flatnonzero(bins == index)
        if index == 0 or not (empty[index] and empty[index - 1]):
            starts.add(int(members[0]))
        pieces = 1 if empty[index] else min(len(members), int(weights[members].sum() / mass))
        starts.update(_divide_evenly(members, pieces))
    return _group_by_starts(attribute, starts)


def _divide_evenly(cells: Codes, pieces: int) -> list[int]:
    """The first cells of several pieces of a run of cells; none if it stays whole."""
    return [] if pieces < 2 else cells[np.arange(pieces) * len(cells) // pieces].tolist()


def _group_by_starts(attribute: Ranged, starts: set[int]) -> Codes:
    """The group of every cell, given the first cells of the groups; missing has a group of its own."""
    firsts = np.array(sorted({0, *starts} - {attribute.proper_cells}))
    group_of = np.searchsorted(firsts, np.arange(attribute.proper_cells), side="right") - 1
    return np.append(group_of, group_of[-1] + 1) if attribute.has_missing else group_of


def _start_leaves(
    table: PrivateTable,
    rounds: Sequence[MeasurementRound],
    name: str,
    group_of: Codes,
    std: float,
    divide_cells: bool,
) -> list[int]:
    """The first steps of the leaves: groups are divided in proportion to their rows, at round values.

    A leaf holds about a 256th of the rows, or one standard deviation of the noise if that is more. Leaves are whole
    cells unless ``divide_cells``.
    """
    attribute = _ranged(table, name)
    edges = attribute.grid().edges
    histogram = combine_one_way([Release(tuple(rounds))], Codec(table.schema).domain, name)
    weights = histogram.to_weights(uniform_weights(attribute))
    mass = max(float(weights.sum()) / MAX_LEAVES, LEAF_SIGMAS * std)
    starts = {int(edges[cell + after]) for cell in _cells_apart(attribute) for after in (0, 1)}
    for group in range(int(group_of[attribute.proper_cells - 1]) + 1):
        members = np.flatnonzero(group_of == group)
        first, stop = int(edges[members[0]]), int(edges[members[-1] + 1])
        starts.add(first)
        pieces = math.ceil(float(weights[members].sum()) / mass)
        pieces = stop - first if stop - first <= VALUES_PER_LEAF * pieces else pieces
        if pieces > len(members) and divide_cells:
            starts.update(attribute.cut(first, stop, pieces))
        else:
            starts.update(edges[_divide_evenly(members, min(pieces, len(members)))].tolist())
    return sorted(starts - {int(edges[-1])})


def _leaf_column(codec: Codec, name: str, starts: Sequence[int]) -> RecodedColumn:
    """The column whose codes are the leaves of an attribute; missing has a leaf of its own."""
    index = codec.names.index(name)
    attribute = codec.attributes[index]
    if not isinstance(attribute, Ranged):
        raise InternalError(f"{name!r} has no leaves")
    leaf_of = np.searchsorted(starts, attribute.grid().edges[:-1], side="right") - 1
    leaf_of = np.append(leaf_of, leaf_of[-1] + 1) if attribute.has_missing else leaf_of
    return RecodedColumn(name, (index,), (leaf_of.astype(np.int64),))
