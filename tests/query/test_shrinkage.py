"""The linear estimate is shrunk to the model, as far as they differ by noise alone."""

from __future__ import annotations

import numpy as np
import pytest

from dpsyn.query.linear_estimation import LinearEstimate, Observation, estimate_linear, reflect, shrink_to_model

SHAPE = (2, 3, 2)


def estimate(values: np.ndarray, variance: float) -> LinearEstimate:
    return estimate_linear(SHAPE, [Observation((0, 1, 2), values, variance)])


def test_a_model_within_the_noise_is_used() -> None:
    rng = np.random.default_rng(0)
    model = rng.uniform(50, 90, SHAPE)

    shrunk = shrink_to_model(estimate(model + rng.normal(0, 3.0, SHAPE), 25.0), reflect(model, range(3)))

    assert shrunk.table() == pytest.approx(model)


def test_no_order_of_interactions_is_shrunk_by_more_than_its_noise() -> None:
    rng = np.random.default_rng(1)
    linear, model = estimate(rng.uniform(50, 90, SHAPE), 4.0), reflect(rng.uniform(50, 90, SHAPE), range(3))

    shrunk = shrink_to_model(linear, model)

    order = np.minimum(np.indices(SHAPE), 1).sum(axis=0)
    for attribute_count in (1, 2, 3):
        difference = (shrunk.coefficients - linear.coefficients)[order == attribute_count]
        assert (difference**2).sum() <= 4.0 * np.count_nonzero(order == attribute_count) * (1 + 1e-9)
    assert shrunk.coefficients[0, 0, 0] == pytest.approx(model[0, 0, 0])


def test_a_biased_model_is_not_followed_and_a_good_one_helps() -> None:
    rng = np.random.default_rng(2)
    truth = rng.uniform(50, 90, SHAPE)
    errors = {}
    for name, bias in (("good", 0.0), ("biased", 30.0)):
        model = truth + bias * rng.permutation(np.repeat([-1.0, 1.0], 6)).reshape(SHAPE)
        squares = []
        for _ in range(300):
            linear = estimate(truth + rng.normal(0, 5.0, SHAPE), 25.0)
            squares.append(
                [
                    ((t - truth) ** 2).mean()
                    for t in (linear.table(), shrink_to_model(linear, reflect(model, range(3))).table())
                ]
            )
        errors[name] = np.sqrt(np.mean(squares, axis=0))

    assert errors["good"][1] < 0.6 * errors["good"][0]
    assert errors["biased"][1] < 1.3 * errors["biased"][0]


def test_unknown_components_stay_unknown() -> None:
    linear = estimate_linear((2, 2), [Observation((0,), np.array([5.0, 9.0]), 1.0)])

    shrunk = shrink_to_model(linear, reflect(np.array([[9.0, 0.0], [0.0, 5.0]]), range(2)))

    assert shrunk.coefficients[:, 1] == pytest.approx(0.0)
    assert np.isinf(shrunk.variances[:, 1]).all()
