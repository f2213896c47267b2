"""Every attribute by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding.binning import TopLabels, keep_top_labels
from dpsyn.evaluation.association import PairAssociation, compute_associations, summarize_correlations
from dpsyn.evaluation.marginal_distances import count_pair_cells, total_variation_distances
from dpsyn.evaluation.results import Association, AttributeScore, Correlations, Metric, PairScore, PairTable
from dpsyn.evaluation.tables import EvaluationTables

MAX_ATTRIBUTE_LABELS = 100
"""Labels of one attribute that are told apart."""


def score_attributes(comparison: EvaluationTables) -> tuple[AttributeScore, ...]:
    """For each attribute the distance of its marginal over bins, and its shares in both tables."""
    view = comparison.bins
    found = total_variation_distances(view, [(place,) for place in range(len(view.sizes))])
    return tuple(_score_attribute(comparison, place, distance) for place, distance in enumerate(found))


def _score_attribute(comparison: EvaluationTables, index: int, distance: Metric) -> AttributeScore:
    domain = comparison.domains[index]
    real, synthetic = bin_shares(comparison, index)
    folding = keep_top_labels(domain.attribute.labels(), np.maximum(real, synthetic), MAX_ATTRIBUTE_LABELS)
    return AttributeScore(
        name=domain.name,
        kind=domain.kind,
        distance=distance,
        labels=folding.labels,
        folded=folding.others,
        real=tuple(folding.sums(real).tolist()),
        synthetic=tuple(folding.sums(synthetic).tolist()),
        outside=comparison.outside[index],
    )


def bin_shares(comparison: EvaluationTables, index: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The share of rows that each bin of an attribute has in the real and in the synthetic table."""
    view = comparison.bins
    real, synthetic = (np.bincount(table[index], minlength=view.sizes[index]) for table in view.tables[:2])
    return real / view.rows[0], synthetic / view.rows[1]


# ── Every pair of attributes, and the marginals of those that went wrong most ──


MAX_PAIR_TABLES = 8
"""Pairs whose marginals are told in full: as many as somebody looks at."""

MAX_PAIR_TABLE_LABELS = 40
"""Labels of an attribute in a table of two."""

AxisPair = tuple[int, int]


def score_pairs(comparison: EvaluationTables) -> tuple[tuple[PairScore, ...], Correlations]:
    """For each pair the distance of its marginal over bins and its correlations; and how far those are off."""
    pairs = list(combinations(range(len(comparison.domains)), 2))
    apart, found = total_variation_distances(comparison.bins, pairs), compute_associations(comparison, pairs)
    scored = (_score_pair(comparison, *entry) for entry in zip(pairs, apart, found, strict=True))
    return tuple(scored), summarize_correlations(found)


def _score_pair(comparison: EvaluationTables, pair: AxisPair, distance: Metric, found: PairAssociation) -> PairScore:
    first, second = (comparison.domains[place].name for place in pair)
    return PairScore(
        first=first,
        second=second,
        distance=distance,
        cramers_v=_association(found.cramers_v),
        spearman=None if found.spearman is None else _association(found.spearman),
    )


def _association(values: tuple[float, ...]) -> Association:
    return Association(real=values[0], synthetic=values[1])


def tabulate_worst_pairs(comparison: EvaluationTables, scores: Sequence[PairScore]) -> tuple[PairTable, ...]:
    """The marginals of the pairs that are farthest above the sampling floor, the worst first.

    Large domains are far apart in any two samples; that is not what went wrong.
    """
    order = sorted(scores, key=lambda score: score.distance.floor - score.distance.synthetic)[:MAX_PAIR_TABLES]
    return tuple(_tabulate_pair(comparison, score) for score in order)


def _tabulate_pair(comparison: EvaluationTables, score: PairScore) -> PairTable:
    pair = comparison.axis_of(score.first), comparison.axis_of(score.second)
    lines, columns = (_fold_labels(comparison, place) for place in pair)
    tables = []
    for cells, rows in zip(next(count_pair_cells(comparison.bins, [pair]))[:2], comparison.bins.rows[:2], strict=True):
        table = np.zeros((len(lines.labels), len(columns.labels)))
        np.add.at(table, (lines.position_of_code[cells.first], columns.position_of_code[cells.second]), cells.counts)
        tables.append(tuple(map(tuple, (table / rows).tolist())))
    return PairTable(
        first=score.first,
        second=score.second,
        first_labels=lines.labels,
        second_labels=columns.labels,
        real=tables[0],
        synthetic=tables[1],
    )


def _fold_labels(comparison: EvaluationTables, index: int) -> TopLabels:
    return keep_top_labels(
        comparison.domains[index].attribute.labels(), np.maximum(*bin_shares(comparison, index)), MAX_PAIR_TABLE_LABELS
    )


# ── Random sets of three attributes, and how far their marginals are apart ──


MAX_COMPARED_TRIPLES = 300
"""3-way marginals that are compared: as many as the contest's paper looks at."""


def compute_triple_distances(comparison: EvaluationTables, rng: np.random.Generator) -> list[Metric]:
    """The distances of some random 3-way marginals over bins; none below three attributes."""
    attributes = len(comparison.domains)
    return (
        total_variation_distances(comparison.bins, sample_triples(attributes, MAX_COMPARED_TRIPLES, rng))
        if attributes >= 3
        else []
    )


def sample_triples(attributes: int, number: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Different sets of three attributes, each equally likely, in order; all of them if there are not more.

    Where there are fewer than three attributes the one set is that of all of them.
    """
    ways = min(3, attributes)
    if math.comb(attributes, ways) <= number:
        return list(combinations(range(attributes), ways))
    found: set[tuple[int, ...]] = set()
    while len(found) < number:
        found.add(tuple(sorted(rng.choice(attributes, ways, replace=False).tolist())))
    return sorted(found)
