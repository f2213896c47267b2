"""Posterior means of noisy counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpsyn.inference import norm_sub, posterior_mean_counts


@given(hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6)), st.floats(1e-3, 1e4))
def test_no_count_is_negative_or_far_above_what_was_measured(values: np.ndarray, std: float) -> None:
    counts = posterior_mean_counts(values, std)

    assert np.isfinite(counts).all()
    assert (counts >= 0).all()
    assert counts.max() <= max(values.max(), 9 * std)


@given(hnp.arrays(np.float64, st.integers(2, 40), elements=st.floats(-1e3, 1e3)), st.floats(0.1, 100))
def test_posterior_means_rise_with_the_noisy_count(values: np.ndarray, std: float) -> None:
    counts = posterior_mean_counts(values, std)

    assert (np.diff(counts[np.argsort(values, kind="stable")]) >= -1e-6 * max(counts.max(), 1)).all()


def test_counts_far_above_the_noise_stay() -> None:
    values = np.array([1e6, 5e5, 1e5, 70])

    np.testing.assert_array_equal(posterior_mean_counts(values, 10.0), values)


def test_without_noise_negative_counts_become_zero() -> None:
    assert posterior_mean_counts(np.array([-1.0, 0, 2.5]), 0.0).tolist() == [0, 0, 2.5]


def test_nothing_gives_nothing() -> None:
    assert posterior_mean_counts(np.empty(0), 3.0).size == 0


def test_cells_in_the_noise_are_smaller_where_most_cells_are_empty() -> None:
    noise = np.random.default_rng(0).normal(0, 50, 500)

    few, many = (posterior_mean_counts(np.append(true + noise, 60.0), 50.0)[-1] for true in (0.0, 100.0))

    assert few < 20
    assert many > 70


@pytest.mark.parametrize(("cells", "rows"), [(40, 20_000), (400, 20_000), (2_000, 200_000)])
def test_posterior_means_are_closer_to_the_truth_than_norm_sub_on_rare_values(cells: int, rows: int) -> None:
    """Squared errors over ten tables of Zipf-distributed values; fixed seeds, so there is no false alarm."""
    rng, ours, theirs = np.random.default_rng(1), 0.0, 0.0
    truth = rows / np.arange(1, cells + 1) / np.log(cells)
    for _ in range(10):
        noisy = truth + rng.normal(0, 200, cells)
        ours += float(((posterior_mean_counts(noisy, 200.0) - truth) ** 2).sum())
        theirs += float(((norm_sub(noisy, truth.sum()) - truth) ** 2).sum())

    assert ours < 0.9 * theirs
