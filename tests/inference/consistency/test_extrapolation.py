from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.inference.consistency import TableLayout, Vector, extrapolate_step, find_overlaps, make_mutually_consistent
from dpsyn.inference.nonnegativity import norm_sub_each
from dpsyn.marginals import Estimate
from dpsyn.marginals.estimate import average_estimates
from tests.inference.consistency import families


def distance(one: Vector, other: Vector, layout: TableLayout) -> float:
    worth: NDArray[np.float64] = np.repeat(layout.precisions, layout.cells)
    return float(np.sqrt(worth @ (one - other) ** 2))


@given(families.exact_tables(), st.integers(0, 2**32 - 1), st.floats(1.0, 2.0))
def test_an_extrapolated_step_never_leads_away_from_a_solution(
    tables: list[Estimate], seed: int, stretch: float
) -> None:
    solution = average_estimates(tables)
    layout = TableLayout.of(solution)
    solved, total = layout.to_vector(solution), solution[0].total
    noise = np.random.default_rng(seed).normal(0, 30, len(solved))
    shared = find_overlaps(layout)
    agreed, _ = make_mutually_consistent(solved + noise, layout, shared, total)
    positive = norm_sub_each(agreed, layout.starts, total)
    again, _ = make_mutually_consistent(positive, layout, shared, total)

    onwards = extrapolate_step(agreed, positive, again, layout, stretch)

    assert distance(onwards, solved, layout) <= distance(agreed, solved, layout) * (1 + 1e-9) + 1e-9


def test_a_step_is_extrapolated_by_squares_weighted_by_precision() -> None:
    layout = TableLayout.of([Estimate(("a",), np.zeros(2), 1.0), Estimate(("b",), np.zeros(1), 4.0)])
    agreed, positive, again = np.zeros(3), np.array([1.0, 0.0, 2.0]), np.array([0.5, 0.0, 0.5])

    onwards = extrapolate_step(agreed, positive, again, layout, 1.0)

    assert onwards == pytest.approx(again * (1 + 4 / 4) / (0.25 + 0.25 / 4))


def test_a_step_of_length_zero_is_not_extrapolated() -> None:
    layout = TableLayout.of([Estimate(("a",), np.array([1.0, 2.0]), 1.0)])
    vector = np.array([1.0, 2.0])

    assert extrapolate_step(vector, vector, vector, layout, 1.95) == pytest.approx(vector)
