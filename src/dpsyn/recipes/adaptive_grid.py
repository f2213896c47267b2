"""Cells where the rows are: one-way marginals of numbers and dates in rounds, each finer where the last found rows.

Public bounds are often far wider than the data, and a spike is one value among many. So an attribute is measured four
times: over its public bins; over groups of cells that hold enough rows to stand out from the noise, while groups of
empty ranges are the wider the farther they are from rows; over *leaves*, many where rows are many; and over *values*:
leaves again, with single values and round ones cut out where there may be spikes. Each round is one histogram of
disjoint groups. Everything that decides where to cut is public or released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import marginal_cost, split_exactly
from dpsyn.encoding import Codec, RecodedColumn, Recoding
from dpsyn.errors import InternalError
from dpsyn.inference import MeasurementRound, Release, combine_one_way, describe_cells, estimate_cell_counts
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

SEARCH_SIGMAS, SEARCH_LEAVES = 3.0, 64
"""A group of so many standard deviations may be a spike, so it is divided into so many leaves, or into the square root
of its number of values if that is less: then single values follow in the next round."""

PIECES_PER_SIGMA, MAX_PIECES, SPIKE_SIGMAS = 8, 128, 2.0
"""A leaf is divided into at most so many pieces for each standard deviation of the noise that it holds; into the second
number if it may be a spike, which is above so many standard deviations."""

ROUND_VALUE_PIECES = 3
"""The roundest value of a leaf is always cut out of it, unless it is empty: one piece before, one after."""

MAX_DIVIDED = 2_048
"""About the maximum number of leaves, or of values, of one attribute; the ranges with the fewest rows stay whole."""

ROUND_SHARES = (4, 3, 3)
"""The parts of ρ for groups, leaves and values."""


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
    column_rho = sum_over_columns(table.recoding, rhos)
    return table, MeasurementRound(table.recoding, tuple(table.measure(list(column_rho), list(column_rho.values()))))


def sum_over_columns(recoding: Recoding, rhos: Mapping[str, Fraction]) -> dict[Clique, Fraction]:
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
    """Measure numbers and dates where their bins were found to hold rows: over groups, leaves and values.

    All other attributes are measured over their values once more. Returns the table and all rounds over the cells that
    it has then. Cells are divided unless ``divide_cells`` is false or the rows can be read only once.

    Privacy: spends the sum of ``rhos``; that of a number or date in parts, one for each of its rounds.
    """
    finer = finer_attributes(table.schema)
    parts = {n: split_exactly(rho, ROUND_SHARES) if n in finer else (rho,) for n, rho in rhos.items()}
    rounds, groups = _measure_groups(table, rounds, {name: part[0] for name, part in parts.items()})
    divide_cells &= table.rereadable
    starts = {name: _start_groups(table, name, groups[name]) for name in finer}
    for find_starts, index in ((_start_leaves, 1), (_start_values, 2)) if finer else ():
        stds = {name: _noise_std(table, parts[name][index]) for name in finer}
        starts = {name: find_starts(table, rounds, name, starts[name], stds[name], divide_cells) for name in finer}
        table, rounds = _measure_ranges(table, rounds, starts, {name: parts[name][index] for name in finer})
    return table, rounds


def _measure_ranges(
    table: PrivateTable,
    rounds: Sequence[MeasurementRound],
    starts: Mapping[str, Sequence[int]],
    rhos: Mapping[str, Fraction],
) -> tuple[PrivateTable, tuple[MeasurementRound, ...]]:
    """Measure attributes over ranges that begin at these steps; cells are divided where they are wider than a range."""
    refined = table.refine_cells(starts)
    rounds = refine_rounds(rounds, table.schema, refined.schema)
    codec = Codec(refined.schema)
    recoding = Recoding(tuple(_range_column(codec, name, starts[name]) for name in starts), codec.domain)
    cliques: list[Clique] = [(name,) for name in starts]
    marginals = refined.recode(recoding).measure(cliques, [rhos[name] for name in starts])
    return refined, (*rounds, MeasurementRound(recoding, tuple(marginals)))


def _measure_groups(
    table: PrivateTable, rounds: Sequence[MeasurementRound], rhos: Mapping[str, Fraction]
) -> tuple[tuple[MeasurementRound, ...], dict[str, Codes]]:
    """Measure every attribute once more, numbers and dates over groups of cells; returns all rounds, and the groups."""
    finer = finer_attributes(table.schema)
    groups = {name: _group_cells(table, rounds, name, _noise_std(table, rhos[name])) for name in finer}
    recoding = initial_recoding(table.schema)
    columns = tuple(replace(c, tables=(groups[c.name],)) if c.name in groups else c for c in recoding.columns)
    recoding = Recoding(columns, recoding.origin)
    column_rho = sum_over_columns(recoding, rhos)
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
    return marginal_cost(table.budget, rho, table.privacy_unit).std


def _require_ranged(table: PrivateTable, name: str) -> Ranged:
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

    Bins that seem empty are merged with empty neighbors, the more of them the farther they are from one that is not.
    The others are divided into groups of whole cells, each of which holds at least a 64th of the rows and four standard
    deviations of the noise.
    """
    attribute = _require_ranged(table, name)
    histogram = combine_one_way([Release(tuple(rounds))], rounds[-1].recoding.origin, name)
    weights = estimate_cell_counts(histogram, describe_cells(attribute))
    bins = attribute.bin_of_cell()
    sums = histogram.sums(bins)
    empty = np.zeros(attribute.size, np.bool_) if sums is None else sums[0] < EMPTY_SIGMAS * np.sqrt(sums[1])
    mass = max(float(weights.sum()) / MAX_GROUPS, GROUP_SIGMAS * std)
    starts = {cell + after for cell in _cells_apart(attribute) for after in (0, 1)}
    empty = empty[: int(bins[attribute.proper_cells - 1]) + 1]
    distance = _distances_to_rows(empty)
    for index in range(len(empty)):
        members = np.flatnonzero(bins == index)
        if index == 0 or not (empty[index] and empty[index - 1]) or _is_doubled(*distance[index - 1 : index + 1]):
            starts.add(int(members[0]))
        pieces = 1 if empty[index] else min(len(members), int(weights[members].sum() / mass))
        starts.update(_divide_evenly(members, pieces))
    return _group_by_starts(attribute, starts)


def _distances_to_rows(empty: NDArray[np.bool_]) -> list[int]:
    """How many bins each bin is away from the nearest one that is not empty; all the same if there is none."""
    occupied = np.flatnonzero(~empty)
    if not len(occupied):
        return [1] * len(empty)
    return [int(np.abs(occupied - index).min()) for index in range(len(empty))]


def _is_doubled(one: int, other: int) -> bool:
    """Whether a boundary lies between adjacent bins of these distances: groups hold 1, 2, 4, … bins."""
    return one != other and one.bit_length() != other.bit_length()


def _divide_evenly(cells: Codes, pieces: int) -> list[int]:
    """The first cells of several pieces of a run of cells; none if it stays whole."""
    return [] if pieces < 2 else cells[np.arange(pieces) * len(cells) // pieces].tolist()


def _group_by_starts(attribute: Ranged, starts: set[int]) -> Codes:
    """The group of every cell, given the first cells of the groups; missing has a group of its own."""
    firsts = np.array(sorted({0, *starts} - {attribute.proper_cells}))
    group_of = np.searchsorted(firsts, np.arange(attribute.proper_cells), side="right") - 1
    return np.append(group_of, group_of[-1] + 1) if attribute.has_missing else group_of


def _start_groups(table: PrivateTable, name: str, group_of: Codes) -> list[int]:
    """The first steps of groups of cells."""
    attribute = _require_ranged(table, name)
    firsts = np.flatnonzero(np.diff(group_of[: attribute.proper_cells], prepend=-1))
    return [int(step) for step in attribute.grid().edges[firsts]]


def _start_leaves(
    table: PrivateTable,
    rounds: Sequence[MeasurementRound],
    name: str,
    starts: Sequence[int],
    std: float,
    divide_cells: bool,
) -> list[int]:
    """The first steps of the leaves: groups are divided in proportion to their rows, at round values.

    A leaf holds about a 256th of the rows, or one standard deviation of the noise if that is more; less in groups that
    may hold a spike. Leaves are whole cells unless ``divide_cells``.
    """
    attribute = _require_ranged(table, name)
    counts = _count_ranges(table, rounds, attribute, starts)
    mass = max(float(counts.sum()) / MAX_LEAVES, LEAF_SIGMAS * std)
    edges = [*starts, attribute.steps]
    widths = np.diff(edges)
    pieces = np.ceil(counts / mass)
    pieces = np.where(widths <= VALUES_PER_LEAF * pieces, widths, pieces)
    searched = np.ceil(np.minimum(np.sqrt(widths), SEARCH_LEAVES)) * (counts >= SEARCH_SIGMAS * std)
    pieces = np.maximum(pieces, np.where(_fit_limit(searched, counts), searched, 1))
    found = {int(attribute.grid().edges[cell + after]) for cell in _cells_apart(attribute) for after in (0, 1)}
    for start, stop, number in zip(starts, edges[1:], pieces.astype(int).tolist(), strict=True):
        found.update(_divide_range(attribute, start, stop, number, divide_cells))
    found.update(_cut_codes(attribute, divide_cells))
    return sorted(found - {attribute.steps})


def _start_values(
    table: PrivateTable,
    rounds: Sequence[MeasurementRound],
    name: str,
    starts: Sequence[int],
    std: float,
    divide_cells: bool,
) -> list[int]:
    """The first steps of values: leaves, divided into single values, or with round ones cut out, for spikes."""
    attribute = _require_ranged(table, name)
    if not divide_cells:
        return list(starts)
    counts = _count_ranges(table, rounds, attribute, starts)
    edges = [*starts, attribute.steps]
    pieces = np.minimum(PIECES_PER_SIGMA * counts / std, MAX_PIECES)
    pieces = np.where(counts >= SPIKE_SIGMAS * std, MAX_PIECES, pieces)
    pieces = np.where(_fit_limit(np.minimum(pieces, np.diff(edges)), counts), pieces, 1)
    pieces = np.maximum(pieces, ROUND_VALUE_PIECES * (counts > 0))
    found = set(starts)
    for start, stop, number in zip(starts, edges[1:], pieces.tolist(), strict=True):
        found.update(attribute.cut_round_values(start, stop, int(number)))
    return sorted(found)


def _count_ranges(
    table: PrivateTable, rounds: Sequence[MeasurementRound], attribute: Ranged, starts: Sequence[int]
) -> NDArray[np.float64]:
    """The estimated counts of ranges that begin at these steps: as measured or non-negative, whichever is larger."""
    histogram = combine_one_way([Release(tuple(rounds))], rounds[-1].recoding.origin, attribute.name)
    weights = estimate_cell_counts(histogram, describe_cells(attribute))
    range_of = np.searchsorted(starts, attribute.grid().edges[:-1], side="right") - 1
    range_of = np.append(range_of, len(starts)) if attribute.has_missing else range_of
    counts, measured = np.bincount(range_of, weights).astype(np.float64), histogram.sums(range_of)
    return (counts if measured is None else np.maximum(counts, measured[0]))[: len(starts)]


def _fit_limit(pieces: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which ranges are divided into these numbers of pieces, those of many rows first, within the limit of pieces."""
    order = np.argsort(-counts, kind="stable")
    fits = np.zeros(len(pieces), np.bool_)
    fits[order] = np.cumsum(pieces[order]) <= MAX_DIVIDED
    return fits


def _divide_range(attribute: Ranged, start: int, stop: int, pieces: int, divide_cells: bool) -> list[int]:
    """The first steps of about so many pieces of a range; whole cells unless cells may be divided."""
    edges = attribute.grid().edges
    cells = np.arange(np.searchsorted(edges, start), np.searchsorted(edges, stop))
    if pieces > len(cells) and divide_cells:
        return attribute.cut(start, stop, pieces)
    return [start, *edges[_divide_evenly(cells, min(pieces, len(cells)))].tolist()]


def _cut_codes(attribute: Ranged, divide_cells: bool) -> list[int]:
    """The steps that cut out values that often stand for something else; whole cells unless cells may be divided."""
    cuts = [step + after for step in attribute.usual_codes() for after in (0, 1)]
    return cuts if divide_cells else [step for step in cuts if step in attribute.grid().edges]


def _range_column(codec: Codec, name: str, starts: Sequence[int]) -> RecodedColumn:
    """The column whose codes are ranges of an attribute; missing has one of its own."""
    index = codec.names.index(name)
    attribute = codec.attributes[index]
    if not isinstance(attribute, Ranged):
        raise InternalError(f"{name!r} has no ranges")
    range_of = np.searchsorted(starts, attribute.grid().edges[:-1], side="right") - 1
    range_of = np.append(range_of, range_of[-1] + 1) if attribute.has_missing else range_of
    return RecodedColumn(name, (index,), (range_of.astype(np.int64),))
