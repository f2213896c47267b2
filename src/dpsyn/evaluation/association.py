"""How strongly attributes depend on each other, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.evaluation.marginal_distances import PairCells, count_pair_cells
from dpsyn.evaluation.results import Correlations, Metric
from dpsyn.evaluation.tables import EvaluationTables


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAssociation:
    """Measures of dependence of two attributes in the real table, the synthetic one and the yardsticks.

    Attributes:
        cramers_v: Cramér's V.
        spearman: Spearman's rank correlation; None unless both attributes are ordered.
    """

    cramers_v: tuple[float, ...]
    spearman: tuple[float, ...] | None


def compute_associations(comparison: EvaluationTables, pairs: Sequence[tuple[int, int]]) -> list[PairAssociation]:
    """For each pair how strongly its attributes depend on each other, over bins.

    Cramér's V takes an empty cell as a value like others; Spearman's correlation leaves such rows out.
    """
    ordered = [domain.ordered_bins for domain in comparison.domains]
    found = []
    for (first, second), tables in zip(pairs, count_pair_cells(comparison.bins, pairs), strict=True):
        both = ordered[first] and ordered[second]
        found.append(
            PairAssociation(
                cramers_v=tuple(cramers_v(cells) for cells in tables),
                spearman=tuple(spearman(cells, ordered[first], ordered[second]) for cells in tables) if both else None,
            )
        )
    return found


def summarize_correlations(found: Sequence[PairAssociation]) -> Correlations:
    """The mean absolute differences of the measures from those of the real table."""
    return Correlations(
        cramers_v=_mean_difference([pair.cramers_v for pair in found]),
        spearman=_mean_difference([pair.spearman for pair in found if pair.spearman is not None]),
    )


def _mean_difference(values: Sequence[tuple[float, ...]]) -> Metric | None:
    if not values:
        return None
    real, *others = np.array(values).T
    synthetic, floor, independent = (float(np.mean(np.abs(other - real))) for other in others)
    return Metric(synthetic=synthetic, floor=floor, independent=independent)


def cramers_v(cells: PairCells) -> float:
    """√(χ²/(n·(min(r, c) − 1))) with r and c the values that occur; 0 if one attribute has a single one.

    χ²/n is computed as Σ n_ij²/(n_i·n_j) − 1, which needs no empty cell (Cramér 1946, section 21.9).
    """
    first, second = (np.bincount(codes, cells.counts) for codes in (cells.first, cells.second))
    least = min(np.count_nonzero(first), np.count_nonzero(second))
    if least < 2:
        return 0.0
    chi_square = float(np.sum(cells.counts**2 / (first[cells.first] * second[cells.second]))) - 1
    return math.sqrt(min(1.0, max(0.0, chi_square / (least - 1))))


def spearman(cells: PairCells, first_ordered: int, second_ordered: int) -> float:
    """The correlation of ranks, equal values sharing the mean of theirs; 0 if all rows of one attribute are equal.

    Only the first codes of each attribute are ordered; rows that have others are left out.
    """
    kept = (cells.first < first_ordered) & (cells.second < second_ordered)
    first, second, counts = cells.first[kept], cells.second[kept], cells.counts[kept]
    one, two = _centered_ranks(first, counts), _centered_ranks(second, counts)
    spread = math.sqrt(float(np.sum(counts * one**2)) * float(np.sum(counts * two**2)))
    return max(-1.0, min(1.0, float(np.sum(counts * one * two)) / spread)) if spread else 0.0


def _centered_ranks(codes: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """For each cell the rank of its rows' code among all rows, less the mean rank."""
    rows = np.bincount(codes, counts)
    ranks = np.cumsum(rows) - (rows - 1) / 2
    centred: NDArray[np.float64] = (ranks - (rows.sum() + 1) / 2)[codes]
    return centred
