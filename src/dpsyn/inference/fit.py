"""From everything that was released to the one model that rows are sampled from."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from dpsyn.constraints import apply_structural_zeros, build_constraint_factors, rake_to_totals
from dpsyn.encoding import (
    Codec,
    Grouping,
    RecodedColumn,
    Recoding,
    project_to_levels,
    project_to_recoding,
    uniform_weights,
)
from dpsyn.errors import SchemaError
from dpsyn.inference import gibbs
from dpsyn.inference.cell_counts import Cells, estimate_cell_counts
from dpsyn.inference.consistency import ConsistencyOptions, make_consistent
from dpsyn.inference.empirical_bayes import posterior_mean_counts
from dpsyn.inference.gibbs import Columns, GibbsModel
from dpsyn.inference.histogram_hierarchy import GroupCounts, Histogram, combine_counts
from dpsyn.inference.measurements import DEFAULT_SYNTHESIS, Model, Release, iterate_marginals
from dpsyn.inference.methods import GUM, Gibbs, Synthesis
from dpsyn.inference.nonnegativity import norm_sub
from dpsyn.inference.public_prior import count_rows, predict_pairs, shrink_larger, shrink_one_ways
from dpsyn.inference.table_smoothing import OrderedAttributes, smooth_tables
from dpsyn.marginals import Estimate, Factor, Marginal, average_estimates
from dpsyn.progress import Progress, ignore_progress
from dpsyn.schema import Attribute, Ranged, Schema, compile_constraints

MIN_VARIANCE = 1e-12
"""The least variance of a count, for those without noise."""


def fit_model(
    schema: Schema,
    recoding: Recoding,
    releases: Sequence[Release],
    *,
    zeroed_attributes: Collection[str] = (),
    total: float | None = None,
    synthesis: Synthesis = DEFAULT_SYNTHESIS,
    tables: Sequence[Estimate] = (),
    interactions: Sequence[Factor] = (),
    start: Columns | None = None,
    progress: Progress = ignore_progress,
) -> Model:
    """Combine the marginals of all releases by inverse variance and make them consistent and non-negative.

    Args:
        schema: what is public, and the values that were discovered privately.
        recoding: the attributes to model. Marginals measured under a finer recoding are merged; those measured under a
            recoding that does not fit are left out.
        releases: everything that was measured.
        zeroed_attributes: attributes whose last code counts as empty.
        total: the number of rows, where it is public.
        synthesis: how rows will be synthesized. A maximum entropy model is fitted for ``Gibbs`` only.
        tables: tables that a recipe estimated itself from the marginals; the model then follows these alone.
        interactions: dependence of attributes that no table holds together, for a maximum entropy model.
        start: records of a similar model (attributes × records), from which the fit may start.
        progress: called with the current phase and the fraction done.
    """
    codec, given = Codec(schema), releases
    releases = [_shrink_to_public(release, codec, total) for release in given]
    combined, further = ({}, []) if tables else _combine_one_ways(releases, recoding, codec)
    estimates = list(tables) or [*combined.values(), *further, *_project_marginals(releases, recoding, combined)]
    missing = set(recoding.names) - {name for estimate in estimates for name in estimate.clique}
    constant = {c.name for c in recoding.columns if c.size == 1} & missing if estimates else set()
    missing -= constant
    if missing:
        raise SchemaError(f"no marginal has {', '.join(sorted(missing))}; give one for each")
    rows = _apply_public_totals(schema, max(estimate_row_count(estimates) if total is None else total, 0.0))
    ordered = _estimate_ordered_cells(codec, recoding, releases, rows)
    histograms = _estimate_fine_histograms(codec, recoding, releases, estimates, ordered)
    factors = build_constraint_factors(schema, recoding, histograms)
    estimates = [
        _sum_over_codes(estimate, recoding, codec, ordered)
        if estimate is combined.get(estimate.clique[0])
        else estimate
        for estimate in estimates
    ]
    if isinstance(synthesis, Gibbs) and not zeroed_attributes and not tables:
        estimates = average_estimates(estimates)
        possible = [_possible_cells(estimate, factors) for estimate in estimates]
        estimates = smooth_tables(estimates, ordered_attributes(recoding, codec), rows, possible)
    estimates += [Estimate((name,), np.array([rows]), 0.0) for name in constant]  # its one code has all rows
    estimates += _predict_public_pairs(given, recoding, estimates, rows, ordered_attributes(recoding, codec))
    consistent = make_consistent(
        [_drop_zeroed_codes(apply_structural_zeros(estimate, factors), zeroed_attributes) for estimate in estimates],
        total=rows,
        options=ConsistencyOptions(ripple=not isinstance(synthesis, GUM)),  # PrivSyn has norm-sub alone
        progress=progress,
    )
    restored = [_restore_zeroed_codes(table, zeroed_attributes) for table in _maximal_tables(consistent)]
    final = tuple(
        rake_to_totals([apply_structural_zeros(table, factors, rows) for table in restored], schema, recoding, rows)
    )
    distribution = None
    if isinstance(synthesis, Gibbs):
        distribution = _fit_tables(final, recoding, [*factors, *interactions], synthesis, progress, start)
    return Model(recoding, final, histograms, rows, distribution, synthesis)


def _shrink_to_public(release: Release, codec: Codec, total: int | float | None) -> Release:
    """A release whose marginals are moved towards those of public rows, if it has any, as far as they agree."""
    if release.public is None:
        return release
    rows = count_rows(release) if total is None else max(float(total), 1.0)
    shrunk, _ = shrink_one_ways(release, rows)

    @cache
    def margin(recoding: Recoding, name: str) -> NDArray[np.float64]:
        return norm_sub(estimate_one_way([shrunk], recoding, name).values, rows)

    return shrink_larger(shrunk, rows, margin, partial(ordered_attributes, codec=codec))


def _predict_public_pairs(
    releases: Sequence[Release],
    recoding: Recoding,
    estimates: Sequence[Estimate],
    rows: float,
    in_order: OrderedAttributes,
) -> list[Estimate]:
    """Pairs that were not measured, as the newest release with public rows predicts them from one-way tables."""
    release = next((r for r in reversed(releases) if r.public is not None and r.public.pairs is not None), None)
    if release is None or rows <= 0:
        return []
    one_way = average_estimates([estimate for estimate in estimates if len(estimate.clique) == 1])
    margins = {estimate.clique[0]: norm_sub(estimate.values, rows) for estimate in one_way}
    measured = [estimate for estimate in estimates if len(estimate.clique) > 1]
    return predict_pairs(release, recoding, margins, rows, measured, in_order)


def _estimate_ordered_cells(
    codec: Codec, recoding: Recoding, releases: Sequence[Release], rows: float
) -> dict[str, NDArray[np.float64]]:
    """Counts of the cells of numbers and dates that have one-way marginals, by ``cell_counts``."""
    counts = {}
    for index, attribute in enumerate(codec.attributes):
        if isinstance(attribute, Ranged) and index not in recoding.difference_codings:
            evidence, _ = _ordered_evidence(codec, recoding, index, releases)
            if evidence:
                cells = describe_cells(attribute)
                counts[attribute.name] = estimate_cell_counts(_combine_evidence(evidence), cells, rows)
    return counts


def _ordered_evidence(
    codec: Codec, recoding: Recoding, index: int, releases: Sequence[Release]
) -> tuple[list[tuple[Grouping, Estimate]], list[Estimate]]:
    """The one-way evidence about a number or date, and that over the codes of the model, which stays apart.

    These codes follow from the other evidence. They are coarser than its noise demands, and their counts are those of
    the model as they are. Bins belong to the other evidence.
    """
    evidence = _one_way_evidence(Recoding.fine(codec), index, releases)
    column = next(column for column in recoding.columns if index in column.sources)
    if not _is_plain(column) or np.array_equal(column.tables[0], codec.groupings[index].group_of):
        return evidence, []
    in_codes = [np.array_equal(grouping.group_of, column.tables[0]) for grouping, _ in evidence]
    if all(in_codes):
        return evidence, []
    apart = [
        replace(estimate, clique=(column.name,))
        for (_, estimate), is_apart in zip(evidence, in_codes, strict=True)
        if is_apart
    ]
    return [pair for pair, is_apart in zip(evidence, in_codes, strict=True) if not is_apart], apart


def _combine_one_ways(
    releases: Sequence[Release], recoding: Recoding, codec: Codec
) -> tuple[dict[str, Estimate], list[Estimate]]:
    """The one-way tables of attributes that were measured at several resolutions, and of all numbers and dates.

    Second, further tables of numbers and dates, which were measured over the codes of the model.
    """
    combined, further = {}, []
    for column in recoding.columns:
        if _is_plain(column) and isinstance(codec.attributes[column.sources[0]], Ranged):
            evidence, apart = _ordered_evidence(codec, recoding, column.sources[0], releases)
            estimate = _sum_histogram(_combine_evidence(evidence), column) if evidence else None
            further += apart
        else:
            estimate = _combine_resolutions(releases, recoding, column.name)
        if estimate is not None:
            combined[column.name] = estimate
    return combined, further


def _sum_over_codes(
    estimate: Estimate, recoding: Recoding, codec: Codec, ordered: Mapping[str, NDArray[np.float64]]
) -> Estimate:
    """The one-way table of a number or date, by the counts of its cells; any other one stays.

    These are less noisy than the linear estimate, and have no more in an empty range than can be there.
    """
    column = recoding.columns[recoding.index_of(estimate.clique[0])]
    counts = ordered.get(codec.names[column.sources[0]])
    return estimate if counts is None else replace(estimate, values=Grouping(column.tables[0]).sums(counts))


def ordered_attributes(recoding: Recoding, codec: Codec) -> OrderedAttributes:
    """The columns whose codes are groups of a number or date, in order."""
    attributes = {c.name: codec.attributes[c.sources[0]] for c in recoding.columns if _is_plain(c)}
    ordered = {name: attribute for name, attribute in attributes.items() if isinstance(attribute, Ranged)}
    return OrderedAttributes(ordered.keys(), [name for name, attribute in ordered.items() if attribute.has_missing])


def _possible_cells(estimate: Estimate, factors: Sequence[Factor]) -> NDArray[np.float64] | None:
    """The part of each cell that constraints allow; None if they allow all, or say nothing about the table."""
    if not any(set(factor.clique) <= set(estimate.clique) for factor in factors):
        return None
    return apply_structural_zeros(replace(estimate, values=np.ones(estimate.values.shape)), factors).values


def _is_plain(column: RecodedColumn) -> bool:
    """Whether the codes of a column are groups of cells of one attribute."""
    return len(column.sources) == 1 and column.merged is None and not column.difference_codings


def _sum_histogram(histogram: Histogram, column: RecodedColumn) -> Estimate:
    """The linear estimate of a column, where a measured range that crosses codes counts for its first one."""
    first_code = np.full(len(histogram.values), column.size)
    np.minimum.at(first_code, histogram.atom_of, column.tables[0])
    codes, group = np.unique(first_code, return_inverse=True)
    sums, variances = histogram.sum_atoms(group)
    values = np.zeros(column.size)
    values[codes] = sums
    return Estimate((column.name,), values, float(variances.sum()) / column.size)


def _project_marginals(releases: Sequence[Release], recoding: Recoding, combined: Collection[str]) -> list[Estimate]:
    """Every marginal under the recoding, except one-way marginals that are combined already."""
    projected = [
        project_to_levels(marginal, source, recoding)
        if len(marginal.clique) > 1
        else project_to_recoding(marginal, source, recoding)
        for source, marginal in iterate_marginals(releases)
        if len(marginal.clique) > 1 or marginal.clique[0] not in combined
    ]
    return [estimate for estimate in projected if estimate is not None]


def find_unmeasured(schema: Schema, recoding: Recoding, releases: Sequence[Release]) -> set[str]:
    """The attributes of a recoding that no marginal of the releases has at its resolution."""
    combined, further = _combine_one_ways(releases, recoding, Codec(schema))
    estimates = [*combined.values(), *further, *_project_marginals(releases, recoding, combined)]
    return set(recoding.names) - {name for one in estimates for name in one.clique if name not in one.levels}


def fit_distribution(
    schema: Schema, model: Model, options: Gibbs, progress: Progress = ignore_progress
) -> GibbsModel | None:
    """The maximum entropy model of a model's tables, for a model that was made for another synthesis method.

    None if no table connects two attributes: they are independent, and there is nothing to fit.
    """
    factors = build_constraint_factors(schema, model.recoding, model.histograms)
    return _fit_tables(model.tables, model.recoding, factors, options, progress)


def _fit_tables(
    tables: Sequence[Estimate],
    recoding: Recoding,
    factors: Sequence[Factor],
    options: Gibbs,
    progress: Progress,
    start: Columns | None = None,
) -> GibbsModel | None:
    if not factors and all(len(table.clique) == 1 for table in tables):
        return None
    return gibbs.fit(
        tables,
        recoding.names,
        recoding.sizes,
        seed=0,
        factors=factors,
        start=start,
        options=options,
        progress=progress,
    )


def _apply_public_totals(schema: Schema, rows: float) -> float:
    """The number of rows if the schema declares it; otherwise at least the largest declared total of a condition."""
    totals = compile_constraints(schema).totals
    if everything := [total.count for total in totals if not total.selection]:
        return float(everything[0])
    return max([rows, *(float(total.count) for total in totals)])


def estimate_one_way(releases: Sequence[Release], recoding: Recoding, name: str) -> Estimate:
    """The one-way table of an attribute under a recoding, from all its one-way marginals, by least squares."""
    combined = _combine_resolutions(releases, recoding, name)
    if combined is not None:
        return combined
    projected = [
        project_to_recoding(marginal, source, recoding)
        for source, marginal in iterate_marginals(releases)
        if marginal.clique == (name,)
    ]
    return average_estimates([estimate for estimate in projected if estimate is not None])[0]


def one_way_evidence(
    releases: Sequence[Release], origin: Sequence[tuple[str, int]], name: str
) -> list[tuple[Grouping, Estimate]]:
    """The one-way marginals of a fine attribute: counts of its cells and of groups of cells, the finest first."""
    fine = Recoding.fine_of(origin)
    return _one_way_evidence(fine, fine.index_of(name), releases)


def combine_one_way(releases: Sequence[Release], origin: Sequence[tuple[str, int]], name: str) -> Histogram:
    """The histogram of a fine attribute, from its one-way marginals at all resolutions."""
    return _combine_evidence(one_way_evidence(releases, origin, name))


def _combine_resolutions(releases: Sequence[Release], recoding: Recoding, name: str) -> Estimate | None:
    """The one-way table of an attribute that was measured at several resolutions; None if it was not.

    Averaging the tables that can be projected to the recoding would waste those that cannot, and the precise sums of
    coarse groups. The variance is the mean over the codes.
    """
    column = recoding.columns[recoding.index_of(name)]
    if not _is_plain(column):
        return None
    fine = Recoding.fine_of(recoding.origin)
    evidence = _one_way_evidence(fine, column.sources[0], releases)
    sums = _combine_evidence(evidence).sums(column.tables[0]) if len(evidence) > 1 else None
    return None if sums is None else Estimate((name,), sums[0], float(sums[1].mean()))


def estimate_row_count(estimates: Sequence[Estimate]) -> float:
    """The number of rows: the mean of the tables' sums, weighted by inverse variance.

    It is estimated before codes that count as empty are dropped, because dropping them would remove rows.
    """
    precisions = np.array([1 / max(estimate.variance * estimate.values.size, 1e-12) for estimate in estimates])
    return float(np.average([estimate.total for estimate in estimates], weights=precisions))


# ── Codes that count as empty: dropped before tables are made consistent, restored after ─────────────────────


def _drop_zeroed_codes(estimate: Estimate, zeroed_attributes: Collection[str]) -> Estimate:
    kept = tuple(slice(0, -1) if name in zeroed_attributes else slice(None) for name in estimate.clique)
    return replace(estimate, values=np.array(estimate.values[kept]))


def _restore_zeroed_codes(table: Estimate, zeroed_attributes: Collection[str]) -> Estimate:
    values = np.pad(np.maximum(table.values, 0.0), [(0, int(name in zeroed_attributes)) for name in table.clique])
    return replace(table, values=values)


def _maximal_tables(tables: Sequence[Estimate]) -> list[Estimate]:
    """Tables that are not sums of a larger one; the larger one has the same counts of their attributes."""
    return [table for table in tables if not any(_is_sum_of(table, other) for other in tables)]


def _is_sum_of(table: Estimate, other: Estimate) -> bool:
    """Whether another table holds all attributes of a table at least as finely, and more of them or more finely."""
    own, others = set(table.clique), set(other.clique)
    if not (own < others or (own == others and table.values.size < other.values.size)):
        return False
    return all(_is_coarser(table.levels.get(name), other.levels.get(name)) for name in table.clique)


def _is_coarser(groups: NDArray[np.int64] | None, other: NDArray[np.int64] | None) -> bool:
    """Whether groups of values are unions of other groups; None stands for the values themselves."""
    if other is None or groups is None:
        return other is None
    union = np.zeros(int(other.max()) + 1, np.int64)
    union[other] = groups
    return np.array_equal(union[other], groups)


# ── Histograms of fine codes, by which merged codes are split ────────────────────────────────────────────────


def _estimate_fine_histograms(
    codec: Codec,
    recoding: Recoding,
    releases: Sequence[Release],
    tables: Sequence[Estimate],
    known: dict[str, NDArray[np.float64]],
) -> dict[str, NDArray[np.float64]]:
    """Weights over the fine codes of every attribute: posterior mean counts, so rare values are not lost.

    They are over the codes that the recoding samples. For an attribute that is coded as differences, these are
    differences.
    """
    fine = Recoding.fine(codec).code_differences(recoding.difference_codings)
    return {
        name: _estimate_fine_histogram(fine, codec, index, releases, recoding, tables)
        for index, name in enumerate(codec.names)
        if name not in known
    } | known


def _estimate_fine_histogram(
    fine: Recoding,
    codec: Codec,
    index: int,
    releases: Sequence[Release],
    recoding: Recoding,
    tables: Sequence[Estimate],
) -> NDArray[np.float64]:
    """The weights of an attribute's fine codes, from all that was measured about it.

    Where it was measured at several resolutions, the sums of the coarser one are kept (``histogram_hierarchy``). Where
    only groups were measured, their counts are spread evenly over values.
    """
    uniform = uniform_weights(codec.attributes[index])
    evidence = _one_way_evidence(fine, index, releases) or _evidence_from_tables(recoding, index, tables)
    if not evidence:
        return uniform
    if len(evidence) > 1:
        return estimate_cell_counts(_combine_evidence(evidence), Cells.without_order(uniform))
    [(groups, estimate)] = evidence
    if groups.size < len(groups.group_of):
        return np.maximum(_spread_over_cells(groups, estimate, uniform), 0.0)
    return posterior_mean_counts(estimate.values[groups.group_of], math.sqrt(estimate.variance))


def describe_cells(attribute: Attribute) -> Cells:
    """What is public about the cells of an attribute."""
    widths = uniform_weights(attribute)
    if not isinstance(attribute, Ranged):
        return Cells.without_order(widths)
    roundness = np.zeros(len(widths), np.int64)
    roundness[: attribute.proper_cells] = attribute.roundness(attribute.grid().edges[:-1])
    likely = np.zeros(len(widths), np.bool_)
    likely[attribute.grid().cell_of(np.array([*attribute.spike_steps(), *attribute.usual_codes()], np.int64))] = True
    return Cells(widths, attribute.proper_cells, np.where(widths == 1, roundness, 0), likely & (widths == 1))


def _combine_evidence(evidence: Sequence[tuple[Grouping, Estimate]]) -> Histogram:
    return combine_counts(
        [
            GroupCounts(groups.group_of, estimate.values, max(estimate.variance, MIN_VARIANCE))
            for groups, estimate in evidence
        ]
    )


def _spread_over_cells(groups: Grouping, estimate: Estimate, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    values: NDArray[np.float64] = estimate.values[groups.group_of] * (uniform / groups.sums(uniform)[groups.group_of])
    return values


def _one_way_evidence(fine: Recoding, index: int, releases: Sequence[Release]) -> list[tuple[Grouping, Estimate]]:
    """The one-way evidence about an attribute: counts of its cells and of groups of cells, the finest groups first.

    A joint attribute is evidence about each of its parts. A table of an attribute and its anchor is evidence about the
    differences between them.
    """
    name = fine.names[index]
    groups: dict[bytes, tuple[Grouping, list[Estimate]]] = {}
    for recoding, marginal in iterate_marginals(releases):
        grouped = None
        if marginal.clique == (name,) or (index in fine.difference_codings and name in marginal.clique):
            over_cells = project_to_recoding(marginal, recoding, fine)
            if over_cells is not None:
                grouped = Grouping(np.arange(fine.sizes[index])), _marginalize(over_cells, name)
        grouped = grouped or _project_to_source(marginal, recoding, fine, index)
        if grouped is not None:
            groups.setdefault(grouped[0].group_of.tobytes(), (grouped[0], []))[1].append(grouped[1])
    averaged = [(grouping, average_estimates(estimates)[0]) for grouping, estimates in groups.values()]
    return sorted(averaged, key=lambda pair: -pair[0].size)


def _marginalize(estimate: Estimate, name: str) -> Estimate:
    values = np.array(estimate.project([name]))
    return Estimate((name,), values, estimate.variance * estimate.values.size / values.size)


def _project_to_source(
    marginal: Marginal, recoding: Recoding, fine: Recoding, index: int
) -> tuple[Grouping, Estimate] | None:
    """The counts of one fine attribute in a one-way marginal whose codes are made of several; None if it has none."""
    if len(marginal.clique) > 1:
        return None
    column = recoding.columns[recoding.index_of(marginal.clique[0])]
    if index not in column.sources or column.merged is not None:
        return None
    measured, modeled = column.difference_coding_of(index), fine.difference_codings.get(index)
    if not (measured is modeled or (measured and modeled and measured.is_equivalent(modeled))):
        return None
    axis = column.sources.index(index)
    counts = marginal.counts.reshape(column.radices)
    values = counts.sum(axis=tuple(other for other in range(counts.ndim) if other != axis))
    variance = marginal.std**2 * counts.size / values.size
    return Grouping(column.tables[axis]), Estimate((fine.names[index],), values, variance)


def _evidence_from_tables(
    recoding: Recoding, index: int, tables: Sequence[Estimate]
) -> list[tuple[Grouping, Estimate]]:
    """The most precise table over the model's codes, for an attribute without a one-way marginal; empty if none."""
    column = next(column for column in recoding.columns if index in column.sources)
    if len(column.sources) > 1 or column.merged is not None:
        return []
    candidates = [table for table in tables if column.name in table.clique]
    best = min(candidates, key=lambda table: table.variance * table.values.size, default=None)
    return [(Grouping(column.tables[0]), _marginalize(best, column.name))] if best else []
