"""The noise of marginals is propagated to a reconstructed table."""

from __future__ import annotations

import numpy as np
import pytest

from dpsyn.query import noise_propagation
from dpsyn.query.linear_estimation import Observation, estimate_linear
from dpsyn.query.noise_propagation import propagate_noise
from dpsyn.query.reconstruction import KnownMarginal, maximum_entropy

SHAPE, SETS = (2, 3, 2), ((0, 1), (1, 2), (0, 2))
TABLE = np.random.default_rng(0).integers(200, 900, SHAPE).astype(float)


def observations(variance: float) -> list[Observation]:
    return [Observation(axes, _sums(axes), variance) for axes in SETS]


def _sums(axes: tuple[int, ...]) -> np.ndarray:
    return np.asarray(TABLE.sum(axis=tuple(axis for axis in range(3) if axis not in axes)))


FITTED = maximum_entropy(SHAPE, [KnownMarginal(axes, _sums(axes)) for axes in SETS]).values


def test_standard_errors_are_those_of_tables_reconstructed_from_new_noise() -> None:
    rng, linear = np.random.default_rng(1), estimate_linear(SHAPE, observations(25.0))
    noise, tables = linear.sample_noise(600, rng), []
    for sample in range(600):
        marginals = [KnownMarginal(axes, _sums(axes) + noise.sums(axes)[sample]) for axes in SETS]
        tables.append(maximum_entropy(SHAPE, marginals).values)

    errors = propagate_noise(FITTED, linear, SETS, [None] * 3)

    # a standard error from 600 samples is accurate to 3 %, and the worst of 12 cells to 12 %
    assert errors == pytest.approx(np.std(tables, axis=0), rel=0.12)


def test_sampling_and_solving_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    linear, weights = estimate_linear(SHAPE, observations(25.0)), [None, np.ones((1, 3)), None]
    solved = propagate_noise(FITTED, linear, SETS, weights)
    monkeypatch.setattr(noise_propagation, "MAX_SOLVED_CELLS", 0)
    monkeypatch.setattr(noise_propagation, "NOISE_SAMPLES", 4000)

    sampled = propagate_noise(FITTED, linear, SETS, weights)

    assert sampled.shape == (2, 1, 2)
    assert sampled == pytest.approx(solved, rel=0.06)


def test_a_table_that_was_measured_has_its_own_noise() -> None:
    linear = estimate_linear(SHAPE, [Observation((0, 1, 2), TABLE, 9.0)])

    assert propagate_noise(TABLE, linear, [(0, 1, 2)], [None] * 3) == pytest.approx(3.0)


def test_an_empty_table_has_standard_errors() -> None:
    linear = estimate_linear((2, 2), [Observation((0,), np.zeros(2), 4.0), Observation((1,), np.zeros(2), 4.0)])

    errors = propagate_noise(np.zeros((2, 2)), linear, [(0,), (1,)], [None, None])

    assert np.isfinite(errors).all()


def test_large_tables_are_sampled_in_batches() -> None:
    shape = (40, 50, 60)
    observed = [Observation((0, 1), np.zeros((40, 50)), 4.0), Observation((1, 2), np.zeros((50, 60)), 4.0)]
    linear = estimate_linear(shape, observed)

    errors = propagate_noise(np.ones(shape), linear, [(0, 1), (1, 2)], [np.ones((1, 40)), None, np.ones((1, 60))])

    exact = estimate_linear((50,), [Observation((0,), np.zeros(50), v) for v in (4.0 * 40, 4.0 * 60)]).output_stds(
        [None]
    )
    assert errors.shape == (1, 50, 1)
    assert float(np.mean(errors)) == pytest.approx(float(exact[0]), rel=0.1)
