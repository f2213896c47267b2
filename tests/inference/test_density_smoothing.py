"""Counts of adjacent ranges: smooth where the truth is, as measured where it is not, and no rows in empty tails."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.inference.density_smoothing import estimate_ordered_counts
from dpsyn.inference.empirical_bayes import posterior_mean_counts

STD = 28.0
ROWS = 5_000
NORMAL_EDGES = np.concatenate([[0, 20, 30], np.arange(35, 105, 2), [120, 150, 200]])


def count(values: NDArray[np.float64], edges: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.histogram(values, edges)[0].astype(float), np.diff(edges).astype(float)


def mean_errors(truth: NDArray[np.float64], widths: NDArray[np.float64]) -> tuple[float, float, float]:
    """The mean distance from the truth, that of an estimate without order, and the mean count of the last range."""
    rng, stds = np.random.default_rng(1), np.full(len(truth), STD)
    distances, others, last = [], [], []
    for _ in range(20):
        noisy = truth + rng.normal(0, STD, len(truth))
        counts = estimate_ordered_counts(noisy, stds, widths)
        distances.append(np.abs(counts - truth).sum())
        others.append(np.abs(posterior_mean_counts(noisy, STD) - truth).sum())
        last.append(counts[-1])
    return float(np.mean(distances)), float(np.mean(others)), float(np.mean(last))


@pytest.mark.parametrize("shape", ["normal", "exponential", "two modes"])
def test_neighbors_inform_each_other_where_densities_are_smooth(shape: str) -> None:
    rng = np.random.default_rng(0)
    values, edges = {
        "normal": (rng.normal(70, 12, ROWS), NORMAL_EDGES),
        "exponential": (rng.exponential(10, ROWS), np.append(np.arange(0, 40, 0.8), [50, 80, 160, 320])),
        "two modes": (
            np.concatenate([rng.normal(20, 1, ROWS // 2), rng.normal(60, 3, ROWS // 2)]),
            np.concatenate([[0, 10], np.arange(16, 25, 0.4), [30, 40, 50], np.arange(53, 70, 1), [80, 100, 150]]),
        ),
    }[shape]

    distance, without_order, last = mean_errors(*count(values, edges))

    assert distance < 0.85 * without_order  # 0.71, 0.52 and 0.80
    assert last < 5  # noise of 28 would leave 11


def test_a_rough_histogram_is_hardly_worse_than_without_order() -> None:
    rng = np.random.default_rng(0)
    values = rng.choice(np.arange(60), ROWS, p=rng.dirichlet(np.ones(60))) + 0.5

    distance, without_order, _ = mean_errors(*count(values, np.arange(65.0)))

    assert distance < 1.1 * without_order


def test_a_spike_beside_thin_ranges_keeps_its_count() -> None:
    truth = np.full(60, 20.0)
    truth[30] = 2_000.0
    noisy = truth + np.random.default_rng(2).normal(0, 10, 60)

    counts = estimate_ordered_counts(noisy, np.full(60, 10.0), np.ones(60))

    assert abs(counts[30] - 2_000) < 40
    assert np.abs(np.delete(counts, 30) - 20).mean() < 5


def test_rows_far_from_others_are_not_spread_over_the_gap_between_them() -> None:
    truth = np.concatenate([np.full(20, 200.0), np.zeros(30), [400.0]])
    noisy = truth + np.random.default_rng(3).normal(0, STD, 51)

    counts = estimate_ordered_counts(noisy, np.full(51, STD), np.ones(51))

    assert counts[22:48].sum() < 30  # noise alone would leave 290
    assert abs(counts[50] - 400) < 3 * STD


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 80), st.floats(0.01, 1_000))
def test_counts_are_never_negative_and_have_the_noisy_total(seed: int, size: int, std: float) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.gamma(0.5, 100, size) * (rng.random(size) < rng.random())
    noisy, widths = truth + rng.normal(0, std, size), np.ceil(rng.gamma(1, 50, size))

    counts = estimate_ordered_counts(noisy, np.full(size, std), widths)

    assert np.isfinite(counts).all()
    assert (counts >= 0).all()
    assert counts.sum() == pytest.approx(max(noisy.sum(), 0.0), rel=1e-6, abs=1e-6)
