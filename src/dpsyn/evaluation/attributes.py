"""Every attribute by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsyn.evaluation.counting import distances
from dpsyn.evaluation.results import AttributeScore, Figure
from dpsyn.evaluation.tables import Comparison
from dpsyn.records.folding import fold

MOST_LABELS = 100
"""Labels of one attribute that are told apart."""


def attribute_scores(comparison: Comparison) -> tuple[AttributeScore, ...]:
    """For each attribute the distance of its marginal over bins, and its shares in both tables."""
    view = comparison.bins
    found = distances(view, [(place,) for place in range(len(view.sizes))])
    return tuple(_attribute_score(comparison, place, distance) for place, distance in enumerate(found))


def _attribute_score(comparison: Comparison, place: int, distance: Figure) -> AttributeScore:
    domain = comparison.domains[place]
    real, synthetic = shares(comparison, place)
    folding = fold(domain.attribute.labels(), np.maximum(real, synthetic), MOST_LABELS)
    return AttributeScore(
        name=domain.name,
        kind=domain.kind,
        distance=distance,
        labels=folding.labels,
        folded=folding.folded,
        real=tuple(folding.sums(real).tolist()),
        synthetic=tuple(folding.sums(synthetic).tolist()),
        outside=comparison.outside[place],
    )


def shares(comparison: Comparison, place: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The share of rows that each bin of an attribute has in the real and in the synthetic table."""
    view = comparison.bins
    real, synthetic = (np.bincount(table[place], minlength=view.sizes[place]) for table in view.tables[:2])
    return real / view.rows[0], synthetic / view.rows[1]
