"""Tables reconstructed from their marginals: maximum entropy, least norm, linear program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.query.engine import RECONSTRUCTION_METHODS
from dpsyn.query.reconstruction import KnownMarginal, find_max_gap, least_norm, linear_program, maximum_entropy
from tests.query import naive

Axes = tuple[int, ...]


def marginals_of(table: NDArray[np.float64], sets: Sequence[Axes]) -> list[KnownMarginal]:
    summed = [tuple(axis for axis in range(table.ndim) if axis not in axes) for axes in sets]
    return [KnownMarginal(axes, np.asarray(table.sum(axis=others))) for axes, others in zip(sets, summed, strict=True)]


def table(seed: int, shape: Sequence[int] = (3, 2, 4), empty: float = 0.3) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < empty, 0.0, rng.integers(1, 40, shape).astype(float))


CHAIN, CYCLE = ((0, 1), (1, 2)), ((0, 1), (1, 2), (0, 2))


@settings(max_examples=30)
@given(st.integers(0, 999), st.sampled_from([CHAIN, CYCLE, ((0,), (1,), (2,)), ((0, 2), (1,))]))
def test_maximum_entropy_is_the_limit_of_proportional_fitting(seed: int, sets: Sequence[Axes]) -> None:
    marginals = marginals_of(table(seed), sets)

    result = maximum_entropy((3, 2, 4), marginals, max_sweeps=40)

    slow = naive.proportional_fitting((3, 2, 4), [(known.axes, known.values) for known in marginals], 40)
    assert result.values.ravel() == pytest.approx([slow[cell] for cell in np.ndindex(3, 2, 4)], abs=0.02)


def test_two_pairs_with_a_common_attribute_make_the_others_conditionally_independent() -> None:
    truth = table(1, empty=0.0)

    result = maximum_entropy((3, 2, 4), marginals_of(truth, CHAIN))

    expected = truth.sum(axis=2)[:, :, None] * truth.sum(axis=0)[None, :, :] / truth.sum(axis=(0, 2))[None, :, None]
    assert result.converged
    assert result.values == pytest.approx(expected)


def test_no_table_with_the_same_marginals_has_more_entropy() -> None:
    truth = table(2, empty=0.0)
    marginals = marginals_of(truth, CYCLE)
    result = maximum_entropy((3, 2, 4), marginals, max_sweeps=2000)

    def entropy(values: NDArray[np.float64]) -> float:
        return float(-(values * np.log(values)).sum())

    direction = np.einsum("i,j,k->ijk", [1, -1, 0], [1, -1], [1, 0, -1, 0])  # changes no one-way or two-way marginal
    for step in (-0.05, 0.05):
        assert entropy(result.values + step * direction) < entropy(result.values)
    assert entropy(truth) < entropy(result.values)


def test_impossible_cells_stay_empty_and_take_no_time() -> None:
    truth = np.zeros((30, 40, 50))
    truth[np.arange(30), np.arange(30), np.arange(30)] = 5.0

    result = maximum_entropy(truth.shape, marginals_of(truth, CYCLE))

    assert result.converged
    assert result.values == pytest.approx(truth)


def test_contradicting_marginals_leave_a_gap() -> None:
    same, other = np.array([[50.0, 0.0], [0.0, 50.0]]), np.array([[0.0, 50.0], [50.0, 0.0]])
    marginals = [
        KnownMarginal((0, 1), same),
        KnownMarginal((1, 2), same),
        KnownMarginal((0, 2), other),
    ]  # a = b and b = c, but a is not c

    result = maximum_entropy((2, 2, 2), marginals)

    assert result.max_gap >= 50


def test_marginals_that_nearly_agree_are_nearly_matched() -> None:
    truth = table(3, empty=0.0)
    marginals = marginals_of(truth, CYCLE)
    marginals[0] = KnownMarginal((0, 1), marginals[0].values + 0.4 * np.array([[1, -1], [-1, 1], [0, 0]]))

    result = maximum_entropy((3, 2, 4), marginals)

    assert result.converged
    assert result.max_gap <= 1.0


@pytest.mark.parametrize("method", RECONSTRUCTION_METHODS)
def test_an_empty_table_has_no_rows(method: str) -> None:
    result = RECONSTRUCTION_METHODS[method](  # type: ignore[index]
        (2, 3), [KnownMarginal((0,), np.zeros(2)), KnownMarginal((1,), np.zeros(3))]
    )

    assert result.values == pytest.approx(np.zeros((2, 3)))


@pytest.mark.parametrize("method", RECONSTRUCTION_METHODS)
def test_a_marginal_of_all_attributes_is_the_table(method: str) -> None:
    truth = table(4)

    result = RECONSTRUCTION_METHODS[method](truth.shape, [KnownMarginal((0, 1, 2), truth)])  # type: ignore[index]

    assert result.values == pytest.approx(truth, abs=1e-6)


@settings(max_examples=25)
@given(st.integers(0, 999), st.sampled_from([CHAIN, CYCLE]))
def test_a_linear_program_matches_consistent_marginals(seed: int, sets: Sequence[Axes]) -> None:
    marginals = marginals_of(table(seed), sets)

    result = linear_program((3, 2, 4), marginals)

    assert result.values.min() >= 0
    assert result.max_gap == pytest.approx(0.0, abs=1e-6)


def test_a_linear_program_spreads_differences_that_remain() -> None:
    marginals = [
        KnownMarginal((0,), np.array([10.0, 0.0])),
        KnownMarginal((1,), np.array([4.0, 4.0])),
    ]  # totals of 10 and 8

    result = linear_program((2, 2), marginals)

    assert find_max_gap(result.values, marginals) == pytest.approx(0.5, abs=0.2)


def test_least_norm_is_the_smallest_table_with_these_marginals() -> None:
    truth = table(5, empty=0.0) + 30
    marginals = marginals_of(truth, CHAIN)

    result = least_norm((3, 2, 4), marginals)

    matrix = np.concatenate([naive.summation_matrix((3, 2, 4), known.axes) for known in marginals])
    smallest = np.linalg.pinv(matrix) @ np.concatenate([known.values.ravel() for known in marginals])
    assert smallest.min() > 0
    assert result.values.ravel() == pytest.approx(smallest)
    assert result.max_gap == pytest.approx(0.0, abs=1e-8)


def test_negative_marginals_are_refused() -> None:
    with pytest.raises(InternalError, match="negative"):
        KnownMarginal((0,), np.array([1.0, -1.0]))
