"""Cramér's V and Spearman's correlation, by hand and against the textbook."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.evaluation.association import compute_associations, cramers_v, spearman, summarize_correlations
from dpsyn.evaluation.marginal_distances import PairCells
from dpsyn.schema import Categorical, Integer, Ordinal, Schema
from tests.evaluation import naive
from tests.evaluation.small_tables import LETTERS, few, letters, rows_of, tables_from_rows


def cells(table: list[list[int]]) -> PairCells:
    counts = np.array(table)
    first, second = np.nonzero(counts)
    return PairCells(first, second, counts[first, second])


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([[10, 0], [0, 10]], 1.0),
        ([[5, 5], [5, 5]], 0.0),
        ([[20, 10], [10, 20]], 1 / 3),  # χ² = 60·(400 − 100)²/30⁴ = 20/3
        ([[3, 4]], 0.0),
        ([[0, 0, 6], [6, 0, 0], [0, 0, 0]], 1.0),  # values that do not occur do not count
        ([[2, 2, 2], [1, 1, 1]], 0.0),
    ],
)
def test_cramers_v_by_hand(table: list[list[int]], expected: float) -> None:
    assert cramers_v(cells(table)) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([[7, 0, 0], [0, 7, 0], [0, 0, 7]], 1.0),
        ([[0, 0, 7], [0, 7, 0], [7, 0, 0]], -1.0),
        ([[3, 3], [3, 3]], 0.0),
        ([[3, 4], [0, 0]], 0.0),
        ([[1, 0, 0], [0, 0, 1], [0, 1, 0]], 0.5),  # 1 − 6·(0 + 1 + 1)/(3·8)
    ],
)
def test_spearmans_correlation_by_hand(table: list[list[int]], expected: float) -> None:
    assert spearman(cells(table), 3, 3) == pytest.approx(expected)


def test_unordered_codes_are_left_out_of_spearmans_correlation() -> None:
    table = [[4, 0, 9], [0, 4, 0], [9, 9, 9]]

    assert spearman(cells(table), 2, 2) == 1.0
    assert spearman(cells([[0, 1], [1, 0]]), 1, 1) == 0.0


@few
@given(letters())
def test_cramers_v_is_that_of_the_textbook(rows: Any) -> None:
    comparison = tables_from_rows(LETTERS, rows, rows)

    (association,) = compute_associations(comparison, [(0, 1)])

    for table, value in enumerate(association.cramers_v):
        pairs = [(a, b) for a, b, _ in rows_of(comparison, table)]
        assert value == pytest.approx(naive.cramers_v(pairs), abs=1e-7)
    assert association.spearman is None


@few
@given(st.lists(st.tuples(st.sampled_from([1, 2, 3, None]), st.none() | st.integers(0, 9)), min_size=1, max_size=20))
def test_spearmans_correlation_is_that_of_the_textbook(rows: Any) -> None:
    schema = Schema(
        attributes=(Ordinal(name="o", values=(1, 2, 3), missing=True), Integer(name="n", low=0, high=9, missing=True))
    )

    (association,) = compute_associations(tables_from_rows(schema, rows, rows), [(0, 1)])

    assert association.spearman is not None
    assert association.spearman[0] == association.spearman[1] == pytest.approx(naive.spearman(rows), abs=1e-9)


def test_differences_are_averaged_over_all_pairs() -> None:
    schema = Schema(
        attributes=(
            Integer(name="m", low=0, high=1),
            Integer(name="n", low=0, high=1),
            Categorical(name="c", values=("a", "b")),
        )
    )
    real, synthetic = [(0, 0, "a"), (1, 1, "b")] * 50, [(0, 1, "a"), (1, 0, "b")] * 50
    comparison = tables_from_rows(schema, real, synthetic)

    correlations = summarize_correlations(compute_associations(comparison, [(0, 1), (0, 2), (1, 2)]))

    assert correlations.cramers_v is not None
    assert correlations.spearman is not None
    # the dependence is as strong as in the real table, in the other direction
    assert correlations.cramers_v.synthetic == pytest.approx(0.0, abs=1e-7)
    assert correlations.spearman.synthetic == pytest.approx(2.0)
    assert correlations.spearman.floor < 0.1
    # of 100 shuffled rows the correlation is about 0 ± 0.1
    assert correlations.spearman.independent == pytest.approx(1.0, abs=0.45)
    assert math.isclose(correlations.cramers_v.independent, 1.0, abs_tol=0.45)


def test_without_pairs_there_are_no_correlations() -> None:
    correlations = summarize_correlations([])

    assert (correlations.cramers_v, correlations.spearman) == (None, None)
