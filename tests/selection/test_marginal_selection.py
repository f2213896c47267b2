"""Which marginals are worth their noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpsyn.selection import estimate_distances, max_distance, select_marginals, select_visible
from dpsyn.selection.marginal_selection import PredictedErrors, _choose_alternatives

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


def test_scores_of_noise_alone_are_small_and_alike() -> None:
    rng = np.random.default_rng(0)
    explained = np.full(2000, 100.0)
    scores = explained + rng.normal(0, 300, 2000)

    found = estimate_distances(scores, 300.0, explained, np.full(2000, 5e4))

    assert found.max() < 300 < scores.max() / 3
    assert np.ptp(found) < np.ptp(scores) / 20


def test_few_strong_distances_are_found_among_scores_of_noise() -> None:
    rng = np.random.default_rng(0)
    distances = np.concatenate([np.full(40, 3000.0), np.zeros(1960)])
    scores = distances + rng.normal(0, 500, 2000)

    found = estimate_distances(scores, 500.0, np.zeros(2000), np.full(2000, 5e4))

    assert np.abs(found - distances).mean() < 100 < np.abs(np.maximum(scores, 0) - distances).mean()
    assert found[:40].mean() == pytest.approx(3000, rel=0.1)


def test_a_table_that_cannot_be_far_from_the_model_is_not() -> None:
    rng = np.random.default_rng(0)
    largest = np.repeat([2e4, 200.0], 500)
    scores = 0.1 * largest + rng.normal(0, 1000, 1000)

    found = estimate_distances(scores, 1000.0, np.zeros(1000), largest)

    assert found[:500].mean() == pytest.approx(2000, rel=0.2)
    assert (found[500:] <= 200).all()


def test_scores_without_noise_stay_what_they_are() -> None:
    scores = np.array([3.0, 100.0, 7.0])

    assert estimate_distances(scores, 1e-9, np.zeros(3), np.full(3, 200.0)) == pytest.approx(scores)
    assert estimate_distances(scores, 0.0, np.full(3, 5.0), np.full(3, 200.0)) == pytest.approx(
        [0.0, 9975**0.5, 24**0.5]
    )


def test_no_counts_are_farther_from_a_table_than_the_largest_distance() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        rows = rng.integers(0, rng.integers(2, 5, 3) ** rng.integers(0, 2, 3) + 1, (20, 3)) ** 2 % 4
        moved = np.stack([rng.permutation(column) for column in rows.T])
        tables = [np.histogramdd(sample, bins=(range(5),) * 3)[0] for sample in (rows, moved.T)]
        for axes in ((), (2,), (0,)):
            one, other = (table.sum(axis=axes) for table in tables)
            assert np.abs(one - other).sum() <= max_distance(one) + 1e-9


def test_two_equal_binary_attributes_reach_the_largest_distance() -> None:
    assert max_distance(np.array([[50.0, 0.0], [0.0, 50.0]])) == np.abs(np.array([[50, -50], [-50, 50]])).sum()
    assert max_distance(np.array([[99.0, 0.0], [0.0, 1.0]])) == pytest.approx(4.0)


def test_tables_that_cannot_stand_out_from_the_noise_of_their_scores_are_not_scored() -> None:
    largest = np.array([10.0, 1000.0, 10.0, 900.0, 20.0])

    assert select_visible(largest, 100.0).tolist() == [1, 3]
    assert select_visible(largest, 1e-3).tolist() == [0, 1, 2, 3, 4]
    assert select_visible(largest, 1e4).tolist() == []


def test_alternatives_are_chosen_as_by_the_best_single_steps() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        alternatives = np.sort(rng.integers(0, 6, 20))
        gains, cells = rng.normal(5, 5, 20).round(), rng.integers(1, 50, 20)
        weights, max_weight, max_cells = (
            np.power(cells, 2 / 3, dtype=np.float64),
            rng.uniform(5, 80),
            int(rng.integers(10, 300)),
        )

        found = _choose_alternatives(gains, weights, cells, alternatives, max_weight, max_cells)

        assert sorted(found.tolist()) == sorted(
            _take_best_steps(gains, weights, cells, alternatives, max_weight, max_cells)
        )


def _take_best_steps(
    gains: NDArray[Any],
    weights: NDArray[Any],
    cells: NDArray[Any],
    alternatives: NDArray[Any],
    max_weight: float,
    max_cells: int,
) -> list[int]:
    """The slow twin: the step with most gain per weight, within a set to a heavier one, until one is too much."""
    chosen: dict[int, int] = {}
    while True:
        best: tuple[float, int, float, int] | None = None
        for candidate in range(len(gains)):
            number = int(alternatives[candidate])
            weight, gain = (weights[chosen[number]], gains[chosen[number]]) if number in chosen else (0.0, 0.0)
            if gains[candidate] > gain and weights[candidate] > weight:
                slope = (gains[candidate] - gain) / (weights[candidate] - weight)
                step = (-slope, number, -weights[candidate], candidate)
                best = step if best is None else min(best, step)
        if best is None:
            return list(chosen.values())
        after = chosen | {best[1]: best[3]}
        if sum(weights[list(after.values())]) > max_weight * (1 + 1e-9) or sum(cells[list(after.values())]) > max_cells:
            return list(chosen.values())
        chosen = after
