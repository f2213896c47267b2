"""Total variation distances of marginals: of every attribute, every pair, and some triples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.evaluation.counting import distances, pair_cells
from dpsyn.evaluation.folding import fold
from dpsyn.evaluation.results import AttributeScore, Figure, PairTable
from dpsyn.evaluation.tables import Columns, Comparison

MOST_LABELS = 100
"""Labels of one attribute that are told apart."""

MOST_LINES = 40
"""Labels of one attribute in a table of two."""


def attribute_scores(comparison: Comparison) -> tuple[AttributeScore, ...]:
    """Each attribute by itself: its distance, and its shares in both tables."""
    view = comparison.bins
    found = distances(view, [(place,) for place in range(len(view.sizes))])
    return tuple(_attribute_score(comparison, place, distance) for place, distance in enumerate(found))


def _attribute_score(comparison: Comparison, place: int, distance: Figure) -> AttributeScore:
    domain, view = comparison.domains[place], comparison.bins
    real, synthetic = (_shares(table, place, view.sizes[place]) for table in view.tables[:2])
    folding = fold(domain.attribute.labels(), np.maximum(real, synthetic), MOST_LABELS)
    return AttributeScore(
        name=domain.name,
        kind=domain.kind,
        distance=distance,
        labels=folding.labels,
        folded=folding.folded,
        real=tuple(folding.sums(real).tolist()),
        synthetic=tuple(folding.sums(synthetic).tolist()),
    )


def _shares(columns: Columns, place: int, size: int) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = np.bincount(columns[place], minlength=size) / columns.shape[1]
    return shares


def all_pairs(comparison: Comparison) -> list[tuple[int, int]]:
    """All pairs of attributes, in the schema's order."""
    return list(combinations(range(len(comparison.domains)), 2))


def pair_tables(comparison: Comparison, pairs: Sequence[tuple[int, int]]) -> tuple[PairTable, ...]:
    """The marginals of some pairs in both tables."""
    return tuple(_pair_table(comparison, pair) for pair in pairs)


def _pair_table(comparison: Comparison, pair: tuple[int, int]) -> PairTable:
    view, attributes = comparison.bins, [comparison.domains[place].attribute for place in pair]
    weights = [np.maximum(*(_shares(table, place, view.sizes[place]) for table in view.tables[:2])) for place in pair]
    lines, columns = (fold(a.labels(), weight, MOST_LINES) for a, weight in zip(attributes, weights, strict=True))
    tables = []
    for cells, rows in zip(next(pair_cells(view, [pair]))[:2], view.rows[:2], strict=True):
        table = np.zeros((len(lines.labels), len(columns.labels)))
        np.add.at(table, (lines.place_of_code[cells.first], columns.place_of_code[cells.second]), cells.counts)
        tables.append(tuple(map(tuple, (table / rows).tolist())))
    return PairTable(
        first=attributes[0].name,
        second=attributes[1].name,
        first_labels=lines.labels,
        second_labels=columns.labels,
        real=tables[0],
        synthetic=tables[1],
    )
