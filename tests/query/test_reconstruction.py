"""Tables put together from their sums: maximum entropy, least norm, linear programming."""

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


def parts_of(table: NDArray[np.float64], sets: Sequence[Axes]) -> list[KnownMarginal]:
    others = [tuple(axis for axis in range(table.ndim) if axis not in axes) for axes in sets]
    return [KnownMarginal(axes, np.asarray(table.sum(axis=gone))) for axes, gone in zip(sets, others, strict=True)]


def table(seed: int, shape: Sequence[int] = (3, 2, 4), empty: float = 0.3) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < empty, 0.0, rng.integers(1, 40, shape).astype(float))


CHAIN, CYCLE = ((0, 1), (1, 2)), ((0, 1), (1, 2), (0, 2))


@settings(max_examples=30)
@given(st.integers(0, 999), st.sampled_from([CHAIN, CYCLE, ((0,), (1,), (2,)), ((0, 2), (1,))]))
def test_maximum_entropy_is_what_proportional_fitting_tends_to(seed: int, sets: Sequence[Axes]) -> None:
    parts = parts_of(table(seed), sets)

    found = maximum_entropy((3, 2, 4), parts, max_sweeps=40)

    slow = naive.proportional_fitting((3, 2, 4), [(part.axes, part.values) for part in parts], 40)
    assert found.values.ravel() == pytest.approx([slow[cell] for cell in np.ndindex(3, 2, 4)], abs=0.02)


def test_two_pairs_with_an_attribute_in_common_make_the_others_independent_given_it() -> None:
    truth = table(1, empty=0.0)

    found = maximum_entropy((3, 2, 4), parts_of(truth, CHAIN))

    given_it = truth.sum(axis=2)[:, :, None] * truth.sum(axis=0)[None, :, :] / truth.sum(axis=(0, 2))[None, :, None]
    assert found.converged
    assert found.values == pytest.approx(given_it)


def test_no_table_with_the_same_sums_has_more_entropy() -> None:
    truth = table(2, empty=0.0)
    parts = parts_of(truth, CYCLE)
    found = maximum_entropy((3, 2, 4), parts, max_sweeps=2000)

    def entropy(values: NDArray[np.float64]) -> float:
        return float(-(values * np.log(values)).sum())

    direction = np.einsum("i,j,k->ijk", [1, -1, 0], [1, -1], [1, 0, -1, 0])  # changes no sum over one attribute or two
    for step in (-0.05, 0.05):
        assert entropy(found.values + step * direction) < entropy(found.values)
    assert entropy(truth) < entropy(found.values)


def test_cells_that_no_row_can_be_in_stay_empty_and_cost_nothing() -> None:
    truth = np.zeros((30, 40, 50))
    truth[np.arange(30), np.arange(30), np.arange(30)] = 5.0

    found = maximum_entropy(truth.shape, parts_of(truth, CYCLE))

    assert found.converged
    assert found.values == pytest.approx(truth)


def test_sums_that_no_table_has_are_told() -> None:
    same, other = np.array([[50.0, 0.0], [0.0, 50.0]]), np.array([[0.0, 50.0], [50.0, 0.0]])
    parts = [
        KnownMarginal((0, 1), same),
        KnownMarginal((1, 2), same),
        KnownMarginal((0, 2), other),
    ]  # a = b and b = c, but a is not c

    found = maximum_entropy((2, 2, 2), parts)

    assert found.max_gap >= 50


def test_sums_that_nearly_agree_are_nearly_met() -> None:
    truth = table(3, empty=0.0)
    parts = parts_of(truth, CYCLE)
    parts[0] = KnownMarginal((0, 1), parts[0].values + 0.4 * np.array([[1, -1], [-1, 1], [0, 0]]))

    found = maximum_entropy((3, 2, 4), parts)

    assert found.converged
    assert found.max_gap <= 1.0


@pytest.mark.parametrize("method", RECONSTRUCTION_METHODS)
def test_an_empty_table_has_no_rows(method: str) -> None:
    found = RECONSTRUCTION_METHODS[method](  # type: ignore[index]
        (2, 3), [KnownMarginal((0,), np.zeros(2)), KnownMarginal((1,), np.zeros(3))]
    )

    assert found.values == pytest.approx(np.zeros((2, 3)))


@pytest.mark.parametrize("method", RECONSTRUCTION_METHODS)
def test_one_sum_of_all_attributes_is_the_table(method: str) -> None:
    truth = table(4)

    found = RECONSTRUCTION_METHODS[method](truth.shape, [KnownMarginal((0, 1, 2), truth)])  # type: ignore[index]

    assert found.values == pytest.approx(truth, abs=1e-6)


@settings(max_examples=25)
@given(st.integers(0, 999), st.sampled_from([CHAIN, CYCLE]))
def test_a_linear_program_meets_sums_that_can_be_met(seed: int, sets: Sequence[Axes]) -> None:
    parts = parts_of(table(seed), sets)

    found = linear_program((3, 2, 4), parts)

    assert found.values.min() >= 0
    assert found.max_gap == pytest.approx(0.0, abs=1e-6)


def test_a_linear_program_spreads_what_cannot_be_met() -> None:
    parts = [
        KnownMarginal((0,), np.array([10.0, 0.0])),
        KnownMarginal((1,), np.array([4.0, 4.0])),
    ]  # totals of 10 and 8

    found = linear_program((2, 2), parts)

    assert find_max_gap(found.values, parts) == pytest.approx(0.5, abs=0.2)


def test_least_norm_is_the_smallest_table_with_these_sums() -> None:
    truth = table(5, empty=0.0) + 30
    parts = parts_of(truth, CHAIN)

    found = least_norm((3, 2, 4), parts)

    matrix = np.concatenate([naive.summation_matrix((3, 2, 4), part.axes) for part in parts])
    smallest = np.linalg.pinv(matrix) @ np.concatenate([part.values.ravel() for part in parts])
    assert smallest.min() > 0
    assert found.values.ravel() == pytest.approx(smallest)
    assert found.max_gap == pytest.approx(0.0, abs=1e-8)


def test_negative_sums_are_refused() -> None:
    with pytest.raises(InternalError, match="negative"):
        KnownMarginal((0,), np.array([1.0, -1.0]))
