"""Intervals have their stated coverage, over many releases with seeded noise.

Counts of one release are correlated, so the share of counts inside their interval varies more than for independent
counts. Its standard deviation over other seeds is stated at each test. Bounds are more than three standard deviations
from the mean, so another seed would fail one of these tests by chance about once in a thousand times.
``bench/priview.py`` runs the same on real tables with real noise.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dpsyn.query.linear_estimation import QueryValues
from dpsyn.synopsis import Synopsis
from tests.query.noisy_synopses import baskets, count_table, make_view_synopsis, people_rows, people_synopsis

COUNT, ROWS, RELEASES = 8, 20_000, 60
VIEWS = [(0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 4, 5), (2, 3, 6, 7), (0, 1, 6, 7), (2, 3, 4, 5)]
TABLE = baskets(ROWS, COUNT)
COVERED = [(0,), (0, 1), (2, 5), (0, 1, 6), (2, 3, 4, 5)]
OTHERS = [(0, 2, 4), (1, 3, 5, 7), (0, 2, 4, 6, 7)]


def names(columns: tuple[int, ...]) -> list[str]:
    return [f"x{column}" for column in columns]


@pytest.mark.parametrize("std", [5.0, 60.0])
def test_95_of_100_intervals_of_covered_answers_hold_the_true_count(std: float) -> None:
    rng, inside = np.random.default_rng(1), []
    for _ in range(RELEASES):
        synopsis = make_view_synopsis(TABLE, VIEWS, std, rng)
        for columns in COVERED:
            answer, truth = synopsis.marginal(*names(columns)), count_table(TABLE, columns, [2] * COUNT)
            low, high = answer.interval(0.95)
            inside.append(((low <= truth) & (truth <= high)).ravel())
            assert answer.source == "covered"

    assert 0.93 <= np.mean(np.concatenate(inside)) <= 0.97  # 2 040 counts; the share has a standard deviation of 0.006


def test_95_of_100_intervals_of_sums_hold_the_true_count() -> None:
    rng, rows, inside = np.random.default_rng(2), people_rows(), []
    women = rows[:, 1] == 0
    for _ in range(200):
        synopsis = people_synopsis(rows, 20.0, rng)
        for condition, chosen in (
            ({"age": (30, 39)}, (rows[:, 0] >= 30) & (rows[:, 0] <= 39)),
            ({"age": (18, 64), "sex": "F"}, women & (rows[:, 0] >= 18) & (rows[:, 0] <= 64)),
            ({"job": ["cook", "none"]}, np.isin(rows[:, 2], (1, 3))),
        ):
            low, high = synopsis.count(**condition).interval()
            inside.append(bool(low <= np.count_nonzero(chosen) <= high))

    assert 0.91 <= np.mean(inside) <= 0.99  # 600 counts; the share has a standard deviation of 0.012


@pytest.mark.parametrize("std", [5.0, 60.0])
def test_90_of_100_noise_intervals_of_reconstructed_answers_hold_the_noiseless_answer(std: float) -> None:
    rng, inside = np.random.default_rng(3), []
    without = make_view_synopsis(TABLE, VIEWS, 1e-3, None)
    for _ in range(RELEASES // 3):
        synopsis = make_view_synopsis(TABLE, VIEWS, std, rng)
        for columns in OTHERS:
            answer, noiseless = synopsis.marginal(*names(columns)), without.marginal(*names(columns))
            low, high = answer.interval(0.95, noise_only=True)
            inside.append(((low <= noiseless.counts) & (noiseless.counts <= high)).ravel())
            assert answer.source == noiseless.source == "reconstructed"
            assert answer.model_error is not None

    # 1 120 counts; the share is about 0.95, with a standard deviation of 0.013
    assert np.mean(np.concatenate(inside)) >= 0.9


def reconstruct_tables(std: float, tables: int) -> tuple[QueryValues, QueryValues, QueryValues]:
    """Intervals, intervals for the noise only, and true counts: of another table in each release."""
    intervals, noise_only, truth = [], [], []
    for seed in range(tables):
        rows = baskets(3000, COUNT, seed)
        synopsis = make_view_synopsis(rows, VIEWS, std, np.random.default_rng(seed))
        for columns in OTHERS:
            answer = synopsis.marginal(*names(columns))
            assert answer.source == "reconstructed"
            intervals.append(np.reshape(answer.interval(), (2, -1)))
            noise_only.append(np.reshape(answer.interval(noise_only=True), (2, -1)))
            truth.append(count_table(rows, columns, [2] * COUNT).ravel())
    return np.concatenate(intervals, axis=1), np.concatenate(noise_only, axis=1), np.concatenate(truth)


def test_90_of_100_intervals_of_reconstructed_answers_hold_the_true_count_despite_much_noise() -> None:
    (low, high), _, truth = reconstruct_tables(60.0, tables=10)

    # 560 counts; the share is about 0.98, with a standard deviation of 0.007
    assert np.mean((low <= truth) & (truth <= high)) >= 0.9


def test_intervals_are_better_than_those_of_the_noise_widened_to_hold_as_many_true_counts() -> None:
    (low, high), noise_only, truth = reconstruct_tables(5.0, tables=40)

    # 2 240 counts; the share is about 0.966, with a standard deviation of 0.008, and the ratio of scores 0.88 ± 0.04
    inside = float(np.mean((low <= truth) & (truth <= high)))
    assert inside >= 0.93
    assert interval_score(low, high, truth) <= interval_score(
        *widen_to_hold(noise_only[0], noise_only[1], truth, inside), truth
    )
    assert np.mean((noise_only[0] <= truth) & (truth <= noise_only[1])) < 0.8  # the model error matters here


def interval_score(low: QueryValues, high: QueryValues, truth: QueryValues) -> float:
    """The mean interval score of 95 % intervals: their width, and 2/α times the distance of a count outside."""
    outside = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return float((high - low + 2 / 0.05 * outside).mean())


def widen_to_hold(
    low: QueryValues, high: QueryValues, truth: QueryValues, share: float
) -> tuple[QueryValues, QueryValues]:
    """Intervals widened by the factor that makes this share of them hold the truth."""
    center, width = (low + high) / 2, (high - low) / 2
    factor = np.quantile(np.abs(truth - center) / width, share, method="higher")
    return center - factor * width, center + factor * width


def test_standard_errors_are_those_of_the_best_linear_estimate() -> None:
    synopsis = make_view_synopsis(TABLE, VIEWS, 10.0, np.random.default_rng(4))

    pair, one_way = synopsis.marginal("x0", "x1"), synopsis.marginal("x0")

    # every component is in three views, and the number of rows in all six
    assert pair.standard_errors == pytest.approx(10 * np.sqrt(16 / 4 * (1 / 6 + 3 / 3) / 4))
    assert one_way.standard_errors == pytest.approx(10 * np.sqrt(16 / 2 * (1 / 6 + 1 / 3) / 2))


def test_noise_and_model_error_together_predict_the_error_of_an_answer() -> None:
    rng, ratios = np.random.default_rng(5), []
    for _ in range(10):
        synopsis: Synopsis = make_view_synopsis(TABLE, VIEWS, 10.0, rng)
        for columns in combinations(range(0, 8, 2), 3):
            answer, truth = synopsis.marginal(*names(columns)), count_table(TABLE, columns, [2] * COUNT)
            assert answer.model_error is not None
            predicted = (answer.standard_errors**2).mean() + answer.model_error**2
            ratios.append(((answer.counts - truth) ** 2).mean() / predicted)

    assert 0.2 < np.mean(ratios) < 2.0
