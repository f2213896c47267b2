"""Ripple: the deficit of negative cells is taken from neighboring cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpsyn.inference import ConsistencyOptions, make_consistent, norm_sub, ripple
from dpsyn.marginals import Estimate
from tests.inference.consistency import naive

TABLES = arrays.arrays(
    np.float64, arrays.array_shapes(min_dims=1, max_dims=4, max_side=3), elements=st.floats(-20, 50, width=32)
)


@given(TABLES, st.floats(0.01, 5))
def test_ripple_is_its_definition(values: np.ndarray, threshold: float) -> None:
    result = ripple(values, threshold, max_waves=3)

    slow = naive.ripple({cell: float(values[cell]) for cell in np.ndindex(values.shape)}, values.shape, threshold, 3)
    assert result.ravel() == pytest.approx([slow[cell] for cell in np.ndindex(values.shape)], abs=1e-9)


@given(TABLES, st.floats(0.01, 5))
def test_the_total_stays_and_hardly_a_cell_is_negative(values: np.ndarray, threshold: float) -> None:
    result = ripple(values, threshold)

    assert result.sum() == pytest.approx(values.sum(), abs=1e-6)
    if values.sum() > 0 and values.size > 1:
        assert result.min() >= -threshold - 1e-9


def test_a_deficit_is_taken_from_neighbors_alone() -> None:
    values = np.zeros((2, 2, 2))
    values[0, 0, 0], values[1, 1, 1] = -3.0, 50.0
    values[1, 0, 0] = values[0, 1, 0] = values[0, 0, 1] = 10.0

    result = ripple(values, 0.1)

    assert result[0, 0, 0] == 0
    assert result[1, 0, 0] == result[0, 1, 0] == result[0, 0, 1] == 9
    assert result[1, 1, 1] == 50


def test_sums_over_few_attributes_keep_closer_than_by_norm_sub() -> None:
    rng = np.random.default_rng(0)
    truth = np.full((), 20_000.0)
    for share in rng.uniform(0.02, 0.2, 8):  # like baskets: most rows have few ones
        truth = np.multiply.outer(truth, [1 - share, share])
    noisy = truth + rng.normal(0, 40.0, truth.shape)

    def error(table: np.ndarray) -> float:
        pairs = [(i, j) for i in range(8) for j in range(i)]
        sums = [tuple(axis for axis in range(8) if axis not in pair) for pair in pairs]
        return float(np.mean([np.abs(table.sum(axis=gone) - truth.sum(axis=gone)).mean() for gone in sums]))

    rippled = norm_sub(ripple(noisy, 1.0), float(noisy.sum()))

    assert error(rippled) < 0.8 * error(norm_sub(noisy, float(noisy.sum())))


def test_tables_made_consistent_with_ripple_agree_and_are_not_negative() -> None:
    rng = np.random.default_rng(1)
    tables = [
        Estimate(clique, rng.normal(8.0, 20.0, (2,) * len(clique)), 400.0)
        for clique in (tuple("abcd"), tuple("cdef"), tuple("aef"))
    ]

    result = make_consistent(tables, options=ConsistencyOptions(ripple=True))

    assert min(table.values.min() for table in result) >= 0
    assert result[0].project("cd") == pytest.approx(result[1].project("cd"), abs=0.5)
    assert result[1].project("ef") == pytest.approx(result[2].project("ef"), abs=0.5)
