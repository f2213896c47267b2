"""Correlations of pairs of attributes: Cramér's V and Spearman's rank correlation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn.evaluation.marginal_distances import PairCells, count_pair_cells
from dpsyn.evaluation.results import Correlations
from dpsyn.evaluation.tables import EvaluationTables
from dpsyn.marginals import Metric, association


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PairAssociation:
    """Correlations of two attributes in the real table, the synthetic one and the two baselines.

    Attributes:
        cramers_v: Cramér's V.
        spearman: Spearman's rank correlation; None unless both attributes are ordered.
    """

    cramers_v: tuple[float, ...]
    spearman: tuple[float, ...] | None


def compute_associations(tables: EvaluationTables, pairs: Sequence[tuple[int, int]]) -> list[PairAssociation]:
    """The correlations of each pair, over bins.

    Cramér's V treats missing as a value; Spearman's correlation leaves out rows in which an attribute is missing.
    """
    ordered = [domain.ordered_bins for domain in tables.domains]
    associations = []
    for (first, second), marginals in zip(pairs, count_pair_cells(tables.bins, pairs), strict=True):
        both = ordered[first] and ordered[second]
        associations.append(
            PairAssociation(
                cramers_v=tuple(cramers_v(cells) for cells in marginals),
                spearman=tuple(spearman(c, ordered[first], ordered[second]) for c in marginals) if both else None,
            )
        )
    return associations


def summarize_correlations(associations: Sequence[PairAssociation]) -> Correlations:
    """The mean absolute differences from the correlations of the real table."""
    return Correlations(
        cramers_v=_mean_difference([pair.cramers_v for pair in associations]),
        spearman=_mean_difference([pair.spearman for pair in associations if pair.spearman is not None]),
    )


def _mean_difference(values: Sequence[tuple[float, ...]]) -> Metric | None:
    if not values:
        return None
    real, *others = np.array(values).T
    synthetic, floor, independent = (float(np.mean(np.abs(other - real))) for other in others)
    return Metric(synthetic=synthetic, floor=floor, independent=independent)


def cramers_v(cells: PairCells) -> float:
    """Cramér's V of a marginal."""
    return association.cramers_v(cells.first, cells.second, cells.counts)


def spearman(cells: PairCells, first_ordered: int, second_ordered: int) -> float:
    """Spearman's rank correlation of a marginal.

    Only the first ``first_ordered`` and ``second_ordered`` codes are ordered; rows with other codes are left out.
    """
    kept = (cells.first < first_ordered) & (cells.second < second_ordered)
    return association.spearman(cells.first[kept], cells.second[kept], cells.counts[kept])
