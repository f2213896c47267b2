"""One-way, two-way and three-way marginals of the synthetic table against those of the real one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding.binning import TopLabels, keep_top_labels
from dpsyn.encoding.statistics import summarize_list, summarize_ranges
from dpsyn.evaluation.association import PairAssociation, compute_associations, summarize_correlations
from dpsyn.evaluation.marginal_distances import count_pair_cells, total_variation_distances
from dpsyn.evaluation.results import Correlations
from dpsyn.evaluation.tables import EvaluationTables
from dpsyn.marginals import Association, AttributeComparison, Metric, PairComparison, PairTable
from dpsyn.marginals.comparison import MAX_ATTRIBUTE_LABELS, MAX_PAIR_LABELS, MAX_PAIR_TABLES, AttributeStatistics
from dpsyn.schema import Ranged

MAX_COMPARED_TRIPLES = 300
"""Three-way marginals that are compared: as many as in the paper on the contest."""

AxisPair = tuple[int, int]


# ── attributes ───────────────────────────────────────────────────────────────────────────────────────────────


def compare_attributes(tables: EvaluationTables) -> tuple[AttributeComparison, ...]:
    """For each attribute the distance of its marginal over bins, and the share of each bin in both tables."""
    view = tables.bins
    distances = total_variation_distances(view, [(axis,) for axis in range(len(view.sizes))])
    return tuple(_compare_attribute(tables, axis, distance) for axis, distance in enumerate(distances))


def _compare_attribute(tables: EvaluationTables, axis: int, distance: Metric) -> AttributeComparison:
    domain = tables.domains[axis]
    real, synthetic = bin_shares(tables, axis)
    top = keep_top_labels(domain.attribute.labels(), np.maximum(real, synthetic), MAX_ATTRIBUTE_LABELS)
    return AttributeComparison(
        name=domain.name,
        kind=domain.kind,
        distance=distance,
        labels=top.labels,
        folded=top.others,
        reference=tuple(top.sums(real).tolist()),
        synthetic=tuple(top.sums(synthetic).tolist()),
        outside=tables.outside[axis],
        statistics=(_summarize_table(tables, axis, 0), _summarize_table(tables, axis, 1)),
    )


def _summarize_table(tables: EvaluationTables, axis: int, table: int) -> AttributeStatistics:
    """The missing values, mean and quantiles of an attribute of the real table (0) or the synthetic one (1)."""
    domain = tables.domains[axis]
    counts = np.bincount(tables.exact.tables[table][axis], minlength=domain.size)
    if domain.steps is None or not isinstance(domain.attribute, Ranged):
        return summarize_list(domain.attribute, counts)
    present = np.flatnonzero(counts[: domain.missing])
    steps = domain.steps[present]
    return summarize_ranges(domain.attribute, steps, steps, counts[present], float(counts[domain.missing]))


def bin_shares(tables: EvaluationTables, axis: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The share of rows of each bin of an attribute, in the real and in the synthetic table."""
    view = tables.bins
    real, synthetic = (np.bincount(table[axis], minlength=view.sizes[axis]) for table in view.tables[:2])
    return real / view.rows[0], synthetic / view.rows[1]


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────────────────


def compare_pairs(tables: EvaluationTables) -> tuple[tuple[PairComparison, ...], Correlations]:
    """For each pair the distance of its marginal over bins and its correlations; and how much correlations differ."""
    pairs = list(combinations(range(len(tables.domains)), 2))
    distances, associations = total_variation_distances(tables.bins, pairs), compute_associations(tables, pairs)
    compared = (_compare_pair(tables, *entry) for entry in zip(pairs, distances, associations, strict=True))
    return tuple(compared), summarize_correlations(associations)


def _compare_pair(
    tables: EvaluationTables, pair: AxisPair, distance: Metric, association: PairAssociation
) -> PairComparison:
    cramers_v, spearman = association.cramers_v, association.spearman
    return PairComparison(
        first=tables.domains[pair[0]].name,
        second=tables.domains[pair[1]].name,
        distance=distance,
        cramers_v=Association(real=cramers_v[0], synthetic=cramers_v[1]),
        spearman=None if spearman is None else Association(real=spearman[0], synthetic=spearman[1]),
    )


def tabulate_worst_pairs(tables: EvaluationTables, pairs: Sequence[PairComparison]) -> tuple[PairTable, ...]:
    """The tables of the pairs whose distance exceeds the sampling floor most, the worst first.

    Pairs are ranked by the excess and not by the distance itself: over a large domain any two samples are far apart.
    """
    worst = sorted(pairs, key=lambda pair: pair.distance.floor - pair.distance.synthetic)[:MAX_PAIR_TABLES]
    return tuple(_tabulate_pair(tables, pair) for pair in worst)


def _tabulate_pair(tables: EvaluationTables, pair: PairComparison) -> PairTable:
    axes = tables.axis_of(pair.first), tables.axis_of(pair.second)
    first, second = (_top_labels(tables, axis) for axis in axes)
    shares = []
    for cells, rows in zip(next(count_pair_cells(tables.bins, [axes]))[:2], tables.bins.rows[:2], strict=True):
        counts = np.zeros((len(first.labels), len(second.labels)))
        np.add.at(counts, (first.position_of_code[cells.first], second.position_of_code[cells.second]), cells.counts)
        shares.append(tuple(map(tuple, (counts / rows).tolist())))
    return PairTable(
        first=pair.first,
        second=pair.second,
        first_labels=first.labels,
        second_labels=second.labels,
        reference=shares[0],
        synthetic=shares[1],
    )


def _top_labels(tables: EvaluationTables, axis: int) -> TopLabels:
    labels = tables.domains[axis].attribute.labels()
    return keep_top_labels(labels, np.maximum(*bin_shares(tables, axis)), MAX_PAIR_LABELS)


# ── triples ──────────────────────────────────────────────────────────────────────────────────────────────────


def compute_triple_distances(tables: EvaluationTables, rng: np.random.Generator) -> list[Metric]:
    """The distances of a random sample of three-way marginals over bins; none below three attributes."""
    attributes = len(tables.domains)
    if attributes < 3:
        return []
    return total_variation_distances(tables.bins, sample_triples(attributes, MAX_COMPARED_TRIPLES, rng))


def sample_triples(attributes: int, max_triples: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Distinct sets of three attributes, each equally likely, sorted; all sets if there are at most ``max_triples``.

    With fewer than three attributes, the one set holds all of them.
    """
    ways = min(3, attributes)
    if math.comb(attributes, ways) <= max_triples:
        return list(combinations(range(attributes), ways))
    triples: set[tuple[int, ...]] = set()
    while len(triples) < max_triples:
        triples.add(tuple(sorted(rng.choice(attributes, ways, replace=False).tolist())))
    return sorted(triples)
