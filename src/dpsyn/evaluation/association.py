"""Correlations of pairs of attributes: Cramér's V and Spearman's rank correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.evaluation.marginal_distances import PairCells, count_pair_cells
from dpsyn.evaluation.results import Correlations
from dpsyn.evaluation.tables import EvaluationTables
from dpsyn.marginals import Metric


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
    """√(χ²/(n·(min(r, c) − 1))) with r and c the numbers of values that occur; 0 if an attribute has only one.

    χ²/n is computed as Σ n_ij²/(n_i·n_j) − 1, a sum over non-empty cells only (Cramér 1946, section 21.9).
    """
    first, second = (np.bincount(codes, cells.counts) for codes in (cells.first, cells.second))
    values = min(np.count_nonzero(first), np.count_nonzero(second))
    if values < 2:
        return 0.0
    chi_square = float(np.sum(cells.counts**2 / (first[cells.first] * second[cells.second]))) - 1
    return math.sqrt(min(1.0, max(0.0, chi_square / (values - 1))))


def spearman(cells: PairCells, first_ordered: int, second_ordered: int) -> float:
    """The correlation of ranks; equal values share their mean rank. 0 if an attribute has only one value.

    Only the first ``first_ordered`` and ``second_ordered`` codes are ordered; rows with other codes are left out.
    """
    kept = (cells.first < first_ordered) & (cells.second < second_ordered)
    first, second, counts = cells.first[kept], cells.second[kept], cells.counts[kept]
    x, y = _centered_ranks(first, counts), _centered_ranks(second, counts)
    norm = math.sqrt(float(np.sum(counts * x**2)) * float(np.sum(counts * y**2)))
    return max(-1.0, min(1.0, float(np.sum(counts * x * y)) / norm)) if norm else 0.0


def _centered_ranks(codes: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """For each cell the rank of its code among all rows, minus the mean rank."""
    rows = np.bincount(codes, counts)
    ranks = np.cumsum(rows) - (rows - 1) / 2
    centered: NDArray[np.float64] = (ranks - (rows.sum() + 1) / 2)[codes]
    return centered
