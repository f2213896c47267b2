from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.consistency.agree import agree, overlaps
from dpsyn.consistency.average import averaged
from dpsyn.consistency.extrapolate import prolonged
from dpsyn.consistency.layout import Layout, Vector
from dpsyn.consistency.nonnegative import norm_sub_each
from dpsyn.marginals import Estimate
from tests.consistency import families


def distance(one: Vector, other: Vector, layout: Layout) -> float:
    worth: NDArray[np.float64] = np.repeat(layout.precisions, layout.cells)
    return float(np.sqrt(worth @ (one - other) ** 2))


@given(families.counted(), st.integers(0, 2**32 - 1), st.floats(1.0, 2.0))
def test_a_prolonged_step_never_leads_away_from_a_solution(tables: list[Estimate], seed: int, stretch: float) -> None:
    solution = averaged(tables)
    layout = Layout.of(solution)
    solved, total = layout.vector(solution), solution[0].total
    noise = np.random.default_rng(seed).normal(0, 30, len(solved))
    shared = overlaps(layout)
    agreed, _ = agree(solved + noise, layout, shared, total)
    positive = norm_sub_each(agreed, layout.starts, total)
    again, _ = agree(positive, layout, shared, total)

    onwards = prolonged(agreed, positive, again, layout, stretch)

    assert distance(onwards, solved, layout) <= distance(agreed, solved, layout) * (1 + 1e-9) + 1e-9


def test_a_step_is_prolonged_by_squares_that_count_by_precision() -> None:
    layout = Layout.of([Estimate(("a",), np.zeros(2), 1.0), Estimate(("b",), np.zeros(1), 4.0)])
    agreed, positive, again = np.zeros(3), np.array([1.0, 0.0, 2.0]), np.array([0.5, 0.0, 0.5])

    onwards = prolonged(agreed, positive, again, layout, 1.0)

    assert onwards == pytest.approx(again * (1 + 4 / 4) / (0.25 + 0.25 / 4))


def test_a_step_of_no_length_stays_where_it_is() -> None:
    layout = Layout.of([Estimate(("a",), np.array([1.0, 2.0]), 1.0)])
    vector = np.array([1.0, 2.0])

    assert prolonged(vector, vector, vector, layout, 1.95) == pytest.approx(vector)
