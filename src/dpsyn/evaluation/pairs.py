"""Every pair of attributes, and the marginals of those that went wrong most."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dpsyn.evaluation.association import PairAssociation, associations, correlations
from dpsyn.evaluation.attributes import shares
from dpsyn.evaluation.counting import distances, pair_cells
from dpsyn.evaluation.results import Association, Correlations, Figure, PairScore, PairTable
from dpsyn.evaluation.tables import Comparison
from dpsyn.records.folding import Folding, fold

WORST_PAIRS = 8
"""Pairs whose marginals are told in full: as many as somebody looks at."""

MOST_LINES = 40
"""Labels of an attribute in a table of two."""

Pair = tuple[int, int]


def pair_scores(comparison: Comparison) -> tuple[tuple[PairScore, ...], Correlations]:
    """For each pair the distance of its marginal over bins and its correlations; and how far those are off."""
    pairs = list(combinations(range(len(comparison.domains)), 2))
    apart, found = distances(comparison.bins, pairs), associations(comparison, pairs)
    scored = (_pair_score(comparison, *entry) for entry in zip(pairs, apart, found, strict=True))
    return tuple(scored), correlations(found)


def _pair_score(comparison: Comparison, pair: Pair, distance: Figure, found: PairAssociation) -> PairScore:
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


def worst_pair_tables(comparison: Comparison, scores: Sequence[PairScore]) -> tuple[PairTable, ...]:
    """The marginals of the pairs that are farthest above the sampling floor, the worst first.

    Large domains are far apart in any two samples; that is not what went wrong.
    """
    order = sorted(scores, key=lambda score: score.distance.floor - score.distance.synthetic)[:WORST_PAIRS]
    return tuple(_pair_table(comparison, score) for score in order)


def _pair_table(comparison: Comparison, score: PairScore) -> PairTable:
    pair = comparison.place_of(score.first), comparison.place_of(score.second)
    lines, columns = (_folding(comparison, place) for place in pair)
    tables = []
    for cells, rows in zip(next(pair_cells(comparison.bins, [pair]))[:2], comparison.bins.rows[:2], strict=True):
        table = np.zeros((len(lines.labels), len(columns.labels)))
        np.add.at(table, (lines.place_of_code[cells.first], columns.place_of_code[cells.second]), cells.counts)
        tables.append(tuple(map(tuple, (table / rows).tolist())))
    return PairTable(
        first=score.first,
        second=score.second,
        first_labels=lines.labels,
        second_labels=columns.labels,
        real=tables[0],
        synthetic=tables[1],
    )


def _folding(comparison: Comparison, place: int) -> Folding:
    return fold(comparison.domains[place].attribute.labels(), np.maximum(*shares(comparison, place)), MOST_LINES)
