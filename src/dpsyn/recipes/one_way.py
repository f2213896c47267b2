"""First steps that recipes share: one-way marginals, values discovered privately, rare values merged."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from dpsyn.accounting import exact_fraction, marginal_cost, split_exactly
from dpsyn.encoding import (
    FREQUENCY_SIZES,
    Codec,
    Grouping,
    Levels,
    Recoding,
    equal_mass_levels,
    frequency_levels,
    merge_rare_values,
)
from dpsyn.inference import (
    SMOOTHED_VARIANCE,
    MeasurementRound,
    PreviousReleases,
    Release,
    combine_one_way,
    describe_cells,
    divide_into_ranges,
    estimate_cell_counts,
    estimate_one_way,
    estimate_row_count,
    norm_sub,
)
from dpsyn.marginals import Clique, Estimate
from dpsyn.private import MAX_COUNTED_CELLS, PrivateTable, ReleaseLimits, initial_recoding
from dpsyn.recipes.adaptive_grid import finer_attributes, measure_bins, refine_bins, sum_over_columns
from dpsyn.recipes.anchors import favor_anchors
from dpsyn.recipes.one_way_errors import divide_by_error
from dpsyn.schema import Open, Ranged, Schema, derived_cells

RARE_SIGMAS = 3.0
"""Values with a noisy count below this many standard deviations are merged (PrivSyn, section 4.3)."""

KEEP_RECODING_ABOVE = 0.8
"""An earlier recoding is kept if it has at least this fraction of the codes that could be distinguished now."""

ONE_WAY_SHARE = 0.15
"""The part of ρ for one-way marginals in ``prepare_table``, where they are needed."""

BIN_SHARE = 0.1
"""The part of the ρ of one-way marginals that shows where rows are, where cells follow from it."""

COUNT_SHARE = 0.01
"""The part of ρ for a first count of the rows in ``prepare_table``, where their number is not known at all."""

MAX_DISCOVERED = 1_000
"""Values of an open attribute that are distinguished in marginals of several attributes, for estimates of passes."""

USUAL_CODES = 200
"""Most attributes have at most so many codes; longer lists are measured with these."""

MAX_UNMERGED_VALUES = 16
"""Attributes with more values are measured by themselves first, so that their rare values can be merged."""


def measure_one_way(table: PrivateTable, rho: Fraction) -> tuple[PrivateTable, tuple[MeasurementRound, ...]]:
    """Discover the values of open attributes and measure every one-way marginal, with equal parts of ρ.

    Where cells are finer than bins, half of an attribute's part goes to each: sums of many noisy cells would be poor
    estimates of the bins, and bins show no spikes. An open attribute spends half of its part on its values. Attributes
    that the schema measures together are one, with the parts of all.

    Privacy: spends ``rho``, and the δ that the budget keeps for partition selection if there are open attributes.
    """
    open_names = [attribute.name for attribute in table.schema.open_attributes]
    codec = Codec(table.schema)
    sizes = zip(codec.names, codec.fine_sizes, codec.coarse_sizes, strict=True)
    finer = [name for name, cells, bins in sizes if cells > bins]
    names = [attribute.name for attribute in table.schema.modeled_attributes]
    parts = [1 if name in open_names or name in finer else 2 for name in names] + [1] * (len(open_names) + len(finer))
    rhos = split_exactly(rho, parts)
    bin_rho = dict(zip(names, rhos, strict=False))
    extra_rho = dict(zip([*open_names, *finer], rhos[len(names) :], strict=True))

    deltas = split_exactly(table.budget.threshold_delta, [1] * len(open_names)) if open_names else ()
    for name, delta in zip(open_names, deltas, strict=True):
        table = table.discover_values(name, extra_rho[name], delta)
    codec = Codec(table.schema)
    table = table.recode(initial_recoding(table.schema))
    column_rho: dict[Clique, Fraction] = {
        (column.name,): sum((bin_rho[codec.names[source]] for source in column.sources), Fraction(0))
        for column in table.recoding.columns
    }
    recodings = [(table.recoding, column_rho)]
    if finer:
        recodings.insert(0, (Recoding.fine(codec), {(name,): extra_rho[name] for name in finer}))
    marginals = table.measure_recodings(recodings)
    return table, tuple(
        MeasurementRound(recoding, tuple(measured))
        for (recoding, _), measured in zip(recodings, marginals, strict=True)
    )


def start_one_way(table: PrivateTable, rho: Fraction) -> tuple[PrivateTable, tuple[MeasurementRound, ...]]:
    """Discover the values of open attributes and measure every attribute over its bins, with equal parts of ρ.

    It shows where the rows of numbers and dates are, so that ``refine_one_way`` can look closer there. Without any, it
    is ``measure_one_way``.

    Privacy: as ``measure_one_way``.
    """
    if not finer_attributes(table.schema):
        return measure_one_way(table, rho)
    opens = [attribute.name for attribute in table.schema.open_attributes]
    names = [attribute.name for attribute in table.schema.modeled_attributes]
    rhos = split_exactly(rho, [1 if name in opens else 2 for name in names] + [1] * len(opens))
    deltas = split_exactly(table.budget.threshold_delta, [1] * len(opens)) if opens else ()
    for name, part, delta in zip(opens, rhos[len(names) :], deltas, strict=True):
        table = table.discover_values(name, part, delta)
    table, bins = measure_bins(table, dict(zip(names, rhos, strict=False)))
    return table, (bins,)


def refine_one_way(
    table: PrivateTable,
    rounds: tuple[MeasurementRound, ...],
    rho: Fraction,
    *,
    divide_cells: bool = True,
) -> tuple[PrivateTable, tuple[MeasurementRound, ...]]:
    """Measure every attribute again: numbers and dates more closely where their rows are, with twice the ρ of others.

    They are measured three times, and have no other table that shows their values. Apart from that, attributes that
    noise harms more get more of ρ. Returns all rounds, over the cells that the table has then.

    Privacy: spends ``rho``.
    """
    finer = finer_attributes(table.schema)
    names = [attribute.name for attribute in table.schema.modeled_attributes]
    needs = _one_way_needs(table, rounds, rho)
    rhos = dict(zip(names, split_exactly(rho, [needs[n] * (2 if n in finer else 1) for n in names]), strict=True))
    if not finer:
        column_rho = sum_over_columns(table.recoding, favor_anchors(rhos, table.recoding))
        marginals = table.measure(list(column_rho), list(column_rho.values()))
        return table, (*rounds, MeasurementRound(table.recoding, tuple(marginals)))
    return refine_bins(table, rounds, rhos, divide_cells=divide_cells)


def _one_way_needs(table: PrivateTable, rounds: tuple[MeasurementRound, ...], rho: Fraction) -> dict[str, float]:
    """The part of ρ that each attribute needs, by what noise would do to its one-way table of the first round."""
    releases, recoding = [Release(rounds)], rounds[0].recoding
    estimates = [estimate_one_way(releases, recoding, name) for name in recoding.names]
    total = max(estimate_row_count(estimates), 1.0)
    std = marginal_cost(table.budget, rho / len(estimates), table.privacy_unit).std
    parts = divide_by_error([norm_sub(estimate.values, total) for estimate in estimates], std)
    origin = [name for name, _ in recoding.origin]
    return {
        origin[source]: float(part) / len(column.sources)
        for column, part in zip(recoding.columns, parts, strict=True)
        for source in column.sources
    }


def measure_one_way_in_rounds(
    table: PrivateTable, rho: Fraction, *, divide_cells: bool = True
) -> tuple[PrivateTable, tuple[MeasurementRound, ...]]:
    """Every one-way marginal, numbers and dates in four rounds, each finer where the last one found rows.

    Privacy: spends ``rho``, and the δ that the budget keeps for partition selection if there are open attributes.
    """
    if not finer_attributes(table.schema):
        return measure_one_way(table, rho)
    share = exact_fraction(BIN_SHARE)
    first, rest = split_exactly(rho, [share, 1 - share])
    table, rounds = start_one_way(table, first)
    return refine_one_way(table, rounds, rest, divide_cells=divide_cells)


def recode_rare_values(
    table: PrivateTable,
    rounds: tuple[MeasurementRound, ...],
    previous: PreviousReleases | None,
    *,
    rare_sigmas: float,
    rare_rows: float = 0.0,
    max_values: int | None = None,
    kept: Collection[str] = (),
    thresholds: Mapping[str, float] | None = None,
) -> tuple[Recoding, frozenset[str]]:
    """A recoding with rare values merged, and the attributes whose merged value counts as empty.

    A value is rare if its noisy count is below ``rare_sigmas`` standard deviations or below ``rare_rows``. More values
    are merged until at most ``max_values`` are left; by default, until every pair is small enough to be measured beside
    others. Those of attributes that are ``kept`` stay apart if they are few. With public rows as a prior,
    ``thresholds`` has the counts below which values of each attribute are rare. An extended synopsis keeps the recoding
    of its marginals, unless that is much coarser than what can be distinguished now.
    """
    recoding = table.recoding
    max_values = max_values or math.isqrt(max_pair_cells(table))
    releases = (*(previous.releases if previous else ()), Release(rounds))
    result, zeroed = recoding, set()
    for name in recoding.names:
        one_way = estimate_one_way(releases, recoding, name)
        if name in kept and len(one_way.values) <= MAX_UNMERGED_VALUES:
            continue
        too_many = len(one_way.values) > max_values  # then fewer stay, ties included, and one value for the others
        lowest = np.nextafter(np.sort(one_way.values)[-max_values], np.inf) if too_many else -np.inf
        drowned = rare_sigmas * math.sqrt(one_way.variance) if thresholds is None else thresholds[name]
        threshold = max(drowned, rare_rows, float(lowest))
        merged = merge_rare_values(one_way.values, threshold)
        result = result.merge(name, merged.grouping)
        if merged.zeroed:
            zeroed.add(name)
    if previous and any(len(table.clique) > 1 for table in previous.model.tables):
        earlier = previous.model.recoding
        if sum(earlier.sizes) >= KEEP_RECODING_ABOVE * sum(result.sizes):
            return earlier, frozenset()
    return result, frozenset(zeroed)


def max_pair_cells(table: PrivateTable) -> int:
    """The largest number of cells of a pair: a quarter of the noisy values that are left."""
    return min(table.limits.max_marginal_cells, table.noisy_values_left // 4)


def max_list_codes(table: PrivateTable) -> int:
    """The largest number of codes of a list, so that its pairs with most attributes are small enough to be measured.

    Two lists that are both so long are measured together at a level of fewer codes.
    """
    cells = max_pair_cells(table)
    return max(math.isqrt(cells), cells // USUAL_CODES)


LEVEL_SIGMAS = 1.0
"""A code of an ordered attribute holds at least this many standard deviations of its noise. A pair is measured at the
level that its own noise supports; noise of one-way marginals only makes the masses of codes less equal."""

MAX_LEVEL_CODES = 32
"""The maximum number of codes of an ordered attribute in marginals of several attributes."""


def divide_by_mass(
    table: PrivateTable, rounds: tuple[MeasurementRound, ...], recoding: Recoding
) -> tuple[Recoding, dict[str, Levels], dict[str, Estimate]]:
    """Divide numbers and dates into codes of about equal mass, with nested levels, from their released histograms.

    They have as many codes as noise supports, at most 32. Returns the recoding, the levels of attributes with several,
    and the counts of 32 codes, whether or not noise supports them.
    """
    codec, levels, finest = Codec(table.schema), {}, {}
    releases = [Release(rounds)]
    for index, column in enumerate(recoding.columns):
        attribute = codec.attributes[column.sources[0]]
        if len(column.sources) > 1 or column.difference_codings or not isinstance(attribute, Ranged):
            continue
        histogram, cells = combine_one_way(releases, codec.domain, attribute.name), describe_cells(attribute)
        ranges = Grouping(divide_into_ranges(histogram, cells, 1 / MAX_LEVEL_CODES))
        weights = ranges.sums(estimate_cell_counts(histogram, cells))
        apart = [ranges.size - 1] if attribute.has_missing else []
        codes = equal_mass_levels(weights, MAX_LEVEL_CODES, apart=apart).codes
        sums = histogram.sums(codes.group_of[ranges.group_of])
        variance = float(sums[1].mean()) if sums else 0.0
        finest[column.name] = Estimate((column.name,), codes.sums(weights), SMOOTHED_VARIANCE * variance)
        min_mass = LEVEL_SIGMAS * math.sqrt(variance)
        found = equal_mass_levels(weights, MAX_LEVEL_CODES, apart=apart, min_mass=min_mass)
        levels[column.name] = found
        divided = replace(column, tables=(found.codes.group_of[ranges.group_of],))
        recoding = replace(recoding, columns=(*recoding.columns[:index], divided, *recoding.columns[index + 1 :]))
    return recoding, {name: found for name, found in levels.items() if len(found.groups) > 1}, finest


MAX_PLAIN_VALUES = 32
"""Lists of at most so many values need no levels: their pairs have about 1 000 cells."""


def divide_by_hierarchy(
    table: PrivateTable,
    rounds: tuple[MeasurementRound, ...],
    recoding: Recoding,
    *,
    rare_sigmas: float,
    rare_rows: float = 0.0,
) -> tuple[Recoding, dict[str, Levels]]:
    """Give long lists the levels of a public hierarchy: an attribute that the schema derives from them.

    A list of zip codes from which the state is derived is measured with other attributes by states where noise drowns
    single codes. Rare values are merged inside their group, so that levels are nested. Returns the recoding, and the
    levels of attributes with several.
    """
    releases, levels, max_values = [Release(rounds)], {}, math.isqrt(max_pair_cells(table))
    for derive in table.schema.derive:
        index = recoding.names.index(derive.source) if derive.source in recoding.names else None
        column = None if index is None else table.recoding.columns[index]
        if index is None or column is None or len(column.sources) > 1 or column.difference_codings:
            continue
        if isinstance(table.schema[derive.source], Ranged) or column.size <= MAX_PLAIN_VALUES or column.name in levels:
            continue
        _, group_of = np.unique(derived_cells(table.schema, derive), return_inverse=True)
        one_way = estimate_one_way(releases, table.recoding, column.name)
        order = np.argsort(-one_way.values, kind="stable")[:max_values]
        frequent = np.zeros(column.size, np.bool_)
        frequent[order] = one_way.values[order] >= max(rare_sigmas * math.sqrt(one_way.variance), rare_rows)
        own = np.where(frequent, np.arange(1, column.size + 1), 0)  # 0: the rare values of the group
        codes = np.unique(group_of * (column.size + 1) + own, return_inverse=True)[1].astype(np.int64)
        group_of_code = np.zeros(int(codes.max()) + 1, np.int64)
        group_of_code[codes] = group_of
        if 1 < int(group_of.max()) + 1 < len(group_of_code):
            every = Grouping(np.arange(len(group_of_code)))
            levels[column.name] = Levels(Grouping(codes), (Grouping(group_of_code), every), ordered=False)
            divided = column.regroup(Grouping(codes))
            recoding = replace(recoding, columns=(*recoding.columns[:index], divided, *recoding.columns[index + 1 :]))
    return recoding, levels


def divide_by_frequency(
    table: PrivateTable,
    rounds: tuple[MeasurementRound, ...],
    recoding: Recoding,
    levels: Mapping[str, Levels],
    rho: Fraction,
) -> dict[str, Levels]:
    """Levels of the long lists that have none: frequent values apart, the others merged, at several thresholds.

    They are for lists whose pairs would be mostly noise: if ρ were divided among all pairs, the noise of one with an
    attribute of median size would exceed the rows. Where it does not, rare values are worth their noise. Lists so long
    that a pair of two would be too large have a shorter level for that in any case.
    """
    releases, found = [Release(rounds)], {}
    pairs = max(1, math.comb(len(recoding.columns), 2))
    noise = math.sqrt(2 / math.pi) * marginal_cost(table.budget, rho / pairs, table.privacy_unit).std
    other_size, longest = float(np.median(recoding.sizes)), math.isqrt(max_pair_cells(table))
    for column in recoding.columns:
        attribute = table.schema.modeled_attributes[column.sources[0]]
        if len(column.sources) > 1 or column.difference_codings or isinstance(attribute, Ranged):
            continue
        if column.size <= MAX_PLAIN_VALUES or column.name in levels:
            continue
        counts = estimate_one_way(releases, recoding, column.name).values
        merged = np.flatnonzero(np.bincount(column.tables[0]) > 1).tolist()
        sizes = FREQUENCY_SIZES if noise * column.size * other_size > counts.sum() else ()
        found[column.name] = frequency_levels(counts, merged, sizes, longest=longest)
    return {name: of_list for name, of_list in found.items() if len(of_list.groups) > 1}


def measurable_pairs(table: PrivateTable) -> list[Clique]:
    """All pairs that are small enough to be measured at all."""
    pairs: list[Clique] = list(combinations(table.recoding.names, 2))
    limit = table.limits.max_marginal_cells
    return [pair for pair, cells in zip(pairs, count_cells(table, pairs), strict=True) if cells <= limit]


def count_cells(table: PrivateTable, cliques: Iterable[Clique]) -> list[int]:
    """The number of cells of each marginal."""
    sizes = dict(zip(table.recoding.names, table.recoding.sizes, strict=True))
    return [math.prod([sizes[name] for name in clique]) for clique in cliques]


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTable:
    """A table whose attributes are ready to be measured together.

    Attributes:
        table: the table, recoded.
        rounds: what was measured so far.
        zeroed_attributes: attributes whose last code counts as empty.
        row_count: about how many rows there are; public, or a noisy measurement.
        rho_left: the ρ that is left, or the ε if the budget is pure.
    """

    table: PrivateTable
    rounds: tuple[MeasurementRound, ...]
    zeroed_attributes: frozenset[str]
    row_count: float
    rho_left: Fraction


def needs_preparation(schema: Schema) -> bool:
    """Whether ``prepare_table`` measures one-way marginals."""
    return any(
        isinstance(a, Open) or a.cells > a.size or a.size > MAX_UNMERGED_VALUES for a in schema.modeled_attributes
    )


def prepare_table(table: PrivateTable, previous: PreviousReleases | None = None) -> PreparedTable:
    """Measure one-way marginals where values must be discovered or merged, or bins are coarser than cells.

    Otherwise at most the number of rows is measured.

    Privacy: spends a part of ρ, and the δ for partition selection if there are open attributes.
    """
    needed = needs_preparation(table.schema)
    public = table.public_row_count() or table.schema.expected_size
    share = ONE_WAY_SHARE if needed else 0.0 if public else COUNT_SHARE
    first, rest = split_exactly(table.budget.amount, [exact_fraction(share), 1 - exact_fraction(share)])
    if needed:
        table, rounds = measure_one_way(table, first)
        recoding, zeroed = recode_rare_values(table, rounds, previous, rare_sigmas=RARE_SIGMAS)
        table = table.recode(recoding)
    else:
        table = table.recode(previous.model.recoding) if previous else table
        smallest = min(zip(table.recoding.sizes, table.recoding.names, strict=True))[1]
        rounds = (MeasurementRound(table.recoding, tuple(table.measure([(smallest,)], [first]))),) if first else ()
        zeroed = frozenset()
    return PreparedTable(table, rounds, zeroed, max(public or _estimate_row_count(rounds, table), 1.0), rest)


def _estimate_row_count(rounds: tuple[MeasurementRound, ...], table: PrivateTable) -> float:
    release = [Release(rounds)]
    measured = {marginal.clique[0] for measured in rounds for marginal in measured.marginals}
    names = [name for name in table.recoding.names if name in measured]
    return estimate_row_count([estimate_one_way(release, table.recoding, name) for name in names])


# ── how often the table is read ──────────────────────────────────────────────────────────────────────────────


def count_one_way_passes(schema: Schema) -> int:
    """Passes over the table that ``measure_one_way`` takes: one for each open attribute, and one for all counts."""
    return len(schema.open_attributes) + 1


def count_adaptive_passes(schema: Schema) -> int:
    """Passes that ``measure_one_way_in_rounds`` takes: numbers and dates are measured in four rounds."""
    return count_one_way_passes(schema) + 3 * bool(finer_attributes(schema))


def count_preparation_passes(schema: Schema) -> int:
    """Passes that ``prepare_table`` takes at most, and that of the row count where it is public."""
    return count_one_way_passes(schema) + 2 * int(schema.row_count_is_public)


def count_score_passes(schema: Schema, more_cells: int = 0) -> int:
    """Passes in which all pairs are scored: the number of cells that are counted in one pass is limited."""
    sizes = [attribute.size if attribute.coded else MAX_DISCOVERED for attribute in schema.modeled_attributes]
    limit = ReleaseLimits().max_marginal_cells
    cells = more_cells + sum(min(limit, one * other) for one, other in combinations(sizes, 2))
    return math.ceil(max(1, cells) / (MAX_COUNTED_CELLS - limit))
