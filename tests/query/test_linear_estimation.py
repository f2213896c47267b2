"""The linear estimate is that of least squares, and its standard deviations are correct."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.errors import InternalError
from dpsyn.query.linear_estimation import Observation, Parity, estimate_linear, reflect
from tests.query import naive


@st.composite
def observed_tables(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Observation]]:
    """A shape, and noisy marginals of a table of that shape."""
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    sets = draw(st.lists(st.sets(st.integers(0, len(shape) - 1)), min_size=1, max_size=5))
    observations = []
    for axes in [tuple(sorted(members)) for members in sets]:
        values = rng.normal(10, 5, [shape[axis] for axis in axes])
        observations.append(Observation(axes, np.asarray(values), draw(st.floats(0.1, 9))))
    return shape, observations


@given(observed_tables())
def test_the_estimate_is_that_of_least_squares(observed: tuple[tuple[int, ...], list[Observation]]) -> None:
    shape, observations = observed

    linear = estimate_linear(shape, observations)

    slow, _ = naive.least_squares(shape, observations)
    assert linear.table() == pytest.approx(slow, abs=1e-8)
    for axes in linear.known_axes():
        assert linear.sums(axes).ravel() == pytest.approx(naive.summation_matrix(shape, axes) @ slow.ravel(), abs=1e-8)


@given(observed_tables(), st.integers(0, 999))
def test_standard_deviations_are_those_of_least_squares(
    observed: tuple[tuple[int, ...], list[Observation]], seed: int
) -> None:
    shape, observations = observed
    rng, whole = np.random.default_rng(seed), tuple(range(len(shape)))
    observations = [*observations, Observation(whole, rng.normal(size=shape), 4.0)]
    weights = [None if rng.random() < 0.4 else rng.random((2, size)) for size in shape]
    matrix: naive.Table = np.ones((1, 1))
    for size, given_ in zip(shape, weights, strict=True):
        matrix = np.asarray(np.kron(matrix, np.eye(size) if given_ is None else given_), np.float64)

    linear = estimate_linear(shape, observations)

    _, covariance = naive.least_squares(shape, observations)
    assert linear.complete
    assert linear.output_stds(weights).ravel() == pytest.approx(
        np.sqrt(np.diag(matrix @ covariance @ matrix.T)), rel=1e-6
    )


@given(observed_tables())
def test_known_sets_are_the_maximal_observed_ones(observed: tuple[tuple[int, ...], list[Observation]]) -> None:
    shape, observations = observed
    shape = tuple(max(size, 2) for size in shape)
    zeros = [Observation(o.axes, np.zeros([shape[axis] for axis in o.axes]), 1.0) for o in observations]

    known = estimate_linear(shape, zeros).known_axes()

    sets = {o.axes for o in observations}
    maximal = {axes for axes in sets if not any(set(axes) < set(other) for other in sets)}
    assert set(known) == maximal


def test_an_exact_total_is_preserved() -> None:
    observations = [Observation((0,), np.array([4.0, 9.0, 2.0]), 2.0), Observation((), np.array(12.0), 0.0)]

    linear = estimate_linear((3,), observations)

    assert linear.table() == pytest.approx([3.0, 8.0, 1.0])  # all three are shifted equally
    assert linear.output_stds([np.ones((1, 3))]) == pytest.approx(0.0)
    assert linear.output_stds([None]) == pytest.approx(math.sqrt(2 * 2 / 3))


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(0, 99))
def test_parities_of_all_sets_determine_the_table(count: int, seed: int) -> None:
    rng, shape = np.random.default_rng(seed), (2,) * count
    table = rng.integers(0, 50, shape).astype(float)
    signs = [(-1.0) ** np.indices(shape)[list(axes)].sum(axis=0) if axes else np.ones(shape) for axes in _sets(count)]
    parities = [Parity(axes, float((table * sign).sum()), 1.0) for axes, sign in zip(_sets(count), signs, strict=True)]

    linear = estimate_linear(shape, parities)

    assert linear.complete
    assert linear.table() == pytest.approx(table)
    assert linear.output_stds([None] * count) == pytest.approx(math.sqrt(1 / 2**count))


def _sets(count: int) -> list[tuple[int, ...]]:
    return [tuple(axis for axis in range(count) if number >> axis & 1) for number in range(2**count)]


def test_sampled_noise_has_the_covariance_of_the_estimate() -> None:
    rng = np.random.default_rng(0)
    marginals = [Observation((0, 1), np.zeros((3, 2)), 4.0), Observation((1, 2), np.zeros((2, 4)), 1.0)]
    linear = estimate_linear((3, 2, 4), marginals)

    noise = linear.sample_noise(20_000, rng)

    for axes in ((0, 1), (1, 2), (1,)):
        sampled = noise.sums(axes).reshape(20_000, -1)
        _, covariance = naive.least_squares((3, 2, 4), marginals)
        matrix = naive.summation_matrix((3, 2, 4), axes)
        assert np.cov(sampled.T) == pytest.approx(matrix @ covariance @ matrix.T, abs=0.25)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(0, 99))
def test_the_reflection_is_orthonormal_and_its_own_inverse(shape: list[int], seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=shape)

    reflected = reflect(values, range(len(shape)))

    assert reflect(reflected, range(len(shape))) == pytest.approx(values)
    assert (reflected**2).sum() == pytest.approx((values**2).sum())
    assert reflected[(0,) * len(shape)] == pytest.approx(values.sum() / math.sqrt(values.size))


def test_an_observation_of_other_axes_is_refused() -> None:
    with pytest.raises(InternalError, match="were observed"):
        Observation((1, 0), np.zeros((2, 2)), 1.0)
