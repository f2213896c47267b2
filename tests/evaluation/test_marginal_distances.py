"""Distances of dense and sparse marginals equal those of their definition."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from dpsyn.evaluation import marginal_distances
from dpsyn.evaluation.marginal_distances import count_pair_cells, total_variation_distances
from dpsyn.evaluation.tables import CodedTables
from tests import naive as naive_counts
from tests.evaluation import naive
from tests.evaluation.small_tables import LETTERS, few, letters, rows_of, tables_from_rows

CLIQUES = [clique for length in (1, 2, 3) for clique in combinations(range(3), length)]


@few
@given(letters(), letters())
@pytest.mark.parametrize("cells_per_row", [0, 4, 1000])
def test_distances_are_half_the_sum_of_differences_of_shares(cells_per_row: int, real: Any, synthetic: Any) -> None:
    comparison = tables_from_rows(LETTERS, real, synthetic)
    rows = [rows_of(comparison, index) for index in range(4)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marginal_distances, "_CELLS_PER_ROW", cells_per_row)
        patch.setattr(marginal_distances, "_MAX_BATCH_CELLS", 50)
        distances = total_variation_distances(comparison.exact, CLIQUES)

    for clique, distance in zip(CLIQUES, distances, strict=True):
        expected = [float(naive.distance(rows[0], other, clique)) for other in rows[1:]]
        assert [distance.synthetic, distance.floor, distance.independent] == expected


@few
@given(letters(), letters())
@pytest.mark.parametrize("cells_per_row", [0, 1000])
def test_the_cells_of_a_pair_are_the_non_empty_ones(cells_per_row: int, real: Any, synthetic: Any) -> None:
    view = tables_from_rows(LETTERS, real, synthetic).exact
    pairs = [(0, 1), (0, 2), (1, 2)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marginal_distances, "_CELLS_PER_ROW", cells_per_row)
        patch.setattr(marginal_distances, "_MAX_BATCH_CELLS", 20)
        marginals = list(count_pair_cells(view, pairs))

    for pair, tables in zip(pairs, marginals, strict=True):
        for cells, table in zip(tables, view.tables, strict=True):
            full = np.zeros([view.sizes[axis] for axis in pair], np.int64)
            full[cells.first, cells.second] = cells.counts
            assert full.ravel().tolist() == naive_counts.count(table.T.tolist(), pair, view.sizes)
            assert cells.counts.all()


def test_a_marginal_of_very_many_cells_is_compared_without_a_dense_array() -> None:
    size = 1_000_000
    columns = [np.array([[0, size - 1]] * 3, np.uint32), np.array([[0, 1]] * 3, np.uint32)]
    view = CodedTables((size,) * 3, (columns[0], columns[1], columns[0], columns[1]))

    (distance,) = total_variation_distances(view, [(0, 1, 2)])

    assert (distance.synthetic, distance.floor, distance.independent) == (0.5, 0.0, 0.5)


def test_no_clique_gives_no_distance() -> None:
    comparison = tables_from_rows(LETTERS, [("x", "p", 1)], [("x", "p", 1)])

    assert total_variation_distances(comparison.bins, []) == []
    assert list(count_pair_cells(comparison.bins, [])) == []
