"""Which marginals are worth their noise."""

from __future__ import annotations

import numpy as np
import pytest

from dpsyn.selection import select_marginals, shrink_scores
from dpsyn.selection.marginal_selection import PredictedErrors

SPARSE = np.zeros(400)
SPARSE[:4] = 2500.0
DENSE = np.full(400, 25.0)


def test_the_predicted_error_is_what_a_measurement_then_has() -> None:
    scales = np.geomspace(1, 100, 9)
    predicted = PredictedErrors.simulate([SPARSE, DENSE], scales)
    rng = np.random.default_rng(5)

    for scale in (2.0, 10.0):
        again = PredictedErrors.simulate([SPARSE + 0.0, DENSE + 0.0], np.array([scale, scale * 2]))
        result = predicted.interpolate(np.array([scale, scale]))
        assert result == pytest.approx(again.errors[:, 0], rel=0.1)
        raw = np.abs(rng.normal(0, scale, 400)).sum()
        assert result[0] < raw / 3  # most cells of a sparse table are empty, and stay so
        assert result[1] == pytest.approx(raw, rel=0.3)


def test_larger_noise_means_larger_errors_and_none_means_none() -> None:
    predicted = PredictedErrors.simulate([DENSE], np.array([1e-9, 1.0, 5.0, 20.0]))

    assert predicted.errors[0, 0] == pytest.approx(0, abs=1e-5)
    assert np.all(np.diff(predicted.errors[0]) > 0)


def test_a_marginal_is_chosen_if_the_model_is_more_wrong_than_its_noise() -> None:
    scores = np.array([3000.0, 10.0, 2500.0])

    choice = select_marginals(scores, [DENSE, DENSE, SPARSE], 0.05, max_total_cells=10**6)

    assert sorted(choice.positions.tolist()) == [0, 2]
    assert np.all(choice.errors < scores[choice.positions])


def test_nothing_is_selected_with_too_little_budget_or_without_candidates() -> None:
    few = select_marginals(np.array([100.0]), [DENSE], 1e-6, max_total_cells=10**6)
    none = select_marginals(np.empty(0), [], 1.0, max_total_cells=10**6)

    assert few.positions.tolist() == none.positions.tolist() == []


def test_a_larger_sensitivity_chooses_fewer() -> None:
    scores = np.linspace(50, 5000, 40)
    guesses = [DENSE] * 40

    one, ten = (
        len(select_marginals(scores, guesses, 0.5, sensitivity=by, max_total_cells=10**6).positions)
        for by in (1.0, 10.0)
    )

    assert one > ten > 0


def test_no_more_cells_are_selected_than_allowed() -> None:
    choice = select_marginals(np.full(10, 5000.0), [DENSE] * 10, 1e3, max_total_cells=1500)

    assert len(choice.positions) == 3


def test_scores_that_differ_by_noise_alone_are_all_alike() -> None:
    rng = np.random.default_rng(0)
    noise = 100 + rng.normal(0, 30, 2000)

    assert np.ptp(shrink_scores(noise, 30.0)) < np.ptp(noise) / 5
    assert shrink_scores(noise, 31.0).mean() == pytest.approx(noise.mean())


def test_scores_without_noise_stay_what_they_are() -> None:
    scores = np.array([3.0, 100.0, 7.0])

    assert shrink_scores(scores, 1e-9) == pytest.approx(scores)
    assert shrink_scores(scores[:1], 50.0).tolist() == [3.0]
    assert shrink_scores(np.full(4, 5.0), 1.0).tolist() == [5.0] * 4
