"""One histogram from counts at several resolutions: the best linear estimate, non-negative, with parents' sums kept."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpsyn.inference.cell_counts import Cells, estimate_cell_counts, spread_in_parent
from dpsyn.inference.histogram_hierarchy import MAX_COMBINED_ATOMS, GroupCounts, combine_counts

CELLS = np.arange(12)
GROUPS = CELLS // 3
HALVES = CELLS // 6


def measure(
    truth: NDArray[np.float64], group_of: NDArray[np.int64], std: float, rng: np.random.Generator
) -> GroupCounts:
    sums = np.bincount(group_of, truth)
    return GroupCounts(group_of, sums + rng.normal(0, std, len(sums)), std**2)


def naive_least_squares(evidence: list[GroupCounts], cells: int) -> NDArray[np.float64]:
    """The weighted least squares solution, with a row for each measured count."""
    rows, wanted = [], []
    for counts in evidence:
        for group, value in enumerate(counts.values):
            rows.append((counts.group_of == group) / np.sqrt(counts.variance))
            wanted.append(value / np.sqrt(counts.variance))
    return np.asarray(np.linalg.lstsq(np.array(rows, float), np.array(wanted), rcond=None)[0])[:cells]


def test_the_estimate_is_that_of_weighted_least_squares() -> None:
    rng, truth = np.random.default_rng(1), np.random.default_rng(0).uniform(0, 100, 12)
    evidence = [measure(truth, CELLS, 9.0, rng), measure(truth, GROUPS, 4.0, rng), measure(truth, HALVES, 2.0, rng)]

    histogram = combine_counts(evidence)

    np.testing.assert_allclose(histogram.values, naive_least_squares(evidence, 12), atol=1e-8)
    assert histogram.parent_of.tolist() == GROUPS.tolist()


def test_the_stated_variances_are_those_of_repeated_measurements() -> None:
    rng, truth = np.random.default_rng(2), np.full(12, 50.0)
    sums, variances = [], np.zeros(4)
    for _ in range(2_000):
        histogram = combine_counts([measure(truth, CELLS, 9.0, rng), measure(truth, GROUPS, 4.0, rng)])
        found = histogram.sums(GROUPS)
        assert found is not None
        sums.append(found[0])
        variances = found[1]

    np.testing.assert_allclose(np.var(sums, axis=0), variances, rtol=0.15)  # four standard deviations
    assert histogram.sums(np.minimum(CELLS, 1)) is not None
    assert combine_counts([measure(truth, GROUPS, 4.0, rng)]).sums(CELLS) is None  # cells were not measured


def test_groups_of_the_same_cells_are_averaged_and_groups_that_cross_are_combined() -> None:
    rng, truth = np.random.default_rng(3), np.random.default_rng(0).uniform(0, 100, 12)
    crossing = (CELLS + 1) // 4
    twice = [measure(truth, GROUPS, 3.0, rng), measure(truth, GROUPS, 6.0, rng)]
    mean = (twice[0].values / 9 + twice[1].values / 36) / (1 / 9 + 1 / 36)

    np.testing.assert_allclose(combine_counts(twice).values, mean)
    combined = combine_counts([*twice, measure(truth, crossing, 3.0, rng)])
    assert len(combined.values) == len({*zip(GROUPS.tolist(), crossing.tolist(), strict=True)})


def test_a_spike_among_thin_cells_keeps_its_count_and_the_group_its_sum() -> None:
    rng = np.random.default_rng(4)
    truth = np.zeros(1_000)
    truth[700] = 250.0  # five standard deviations of a cell
    halves = np.arange(1_000) // 500
    errors, others = [], []
    for _ in range(30):
        weights = combine_counts([measure(truth, np.arange(1_000), 50.0, rng), measure(truth, halves, 10.0, rng)])
        counts = estimate_cell_counts(weights, Cells.without_order(np.ones(1_000)))
        errors.append(counts[700] - 250)
        others.append(counts[500:].sum() - counts[700])

    assert abs(np.mean(errors)) < 60
    assert np.mean(others) < 60  # 499 cells of half-normal noise would have 10 000


def test_thin_cells_without_structure_are_spread_evenly_and_clear_structure_stays() -> None:
    rng = np.random.default_rng(5)
    noise = rng.normal(0, 10, 200)
    flat = spread_in_parent(5 + noise, np.full(200, 10.0), np.ones(200), 1_000.0)
    steps = np.repeat([0.0, 100.0], 100)
    clear = spread_in_parent(steps + noise, np.full(200, 10.0), np.ones(200), 10_000.0)

    assert np.abs(flat - 5).mean() < 2.5
    assert np.abs(clear - steps).mean() < 8
    assert flat.sum() == pytest.approx(1_000)
    assert clear.sum() == pytest.approx(10_000)
    assert spread_in_parent(5 + noise, np.full(200, 10.0), np.ones(200), 0.0).sum() == 0


def test_weights_are_never_negative_and_keep_the_total() -> None:
    rng = np.random.default_rng(6)
    for _ in range(50):
        truth = rng.poisson(rng.exponential(20, 12)).astype(float)
        evidence = [measure(truth, CELLS, 30.0, rng), measure(truth, GROUPS, 10.0, rng)]
        histogram = combine_counts(evidence)
        weights = estimate_cell_counts(histogram, Cells.without_order(np.ones(12)))

        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(max(histogram.values.sum(), 0.0), abs=1e-6)


def test_two_nested_partitions_have_the_same_estimate_and_variances_as_by_least_squares() -> None:
    rng, truth = np.random.default_rng(7), np.random.default_rng(0).uniform(0, 100, 12)
    evidence = [measure(truth, CELLS, 9.0, rng), measure(truth, GROUPS, 4.0, rng)]
    precision = np.eye(12) / 81 + (GROUPS[:, None] == GROUPS[None, :]) / 16

    histogram = combine_counts(evidence)

    np.testing.assert_allclose(histogram.values, naive_least_squares(evidence, 12), atol=1e-8)
    np.testing.assert_allclose(histogram.variances, np.diag(np.linalg.inv(precision)), atol=1e-9)
    of = np.minimum(CELLS // 2, 3)
    members = (of[:, None] == np.arange(4)).astype(float)
    sums = histogram.sum_atoms(of)
    np.testing.assert_allclose(sums[0], members.T @ histogram.values, atol=1e-9)
    np.testing.assert_allclose(sums[1], np.diag(members.T @ np.linalg.inv(precision) @ members), atol=1e-9)


def test_of_many_partitions_of_a_long_list_the_two_finest_are_combined() -> None:
    cells = MAX_COMBINED_ATOMS + 1_000
    rng, truth = np.random.default_rng(7), np.full(cells, 4.0)
    fine, groups, few = np.arange(cells), np.arange(cells) // 100, np.arange(cells) // 500

    evidence = [measure(truth, groups, 1.0, rng), measure(truth, fine, 5.0, rng), measure(truth, few, 1.0, rng)]
    histogram = combine_counts(evidence)

    assert histogram.parent_of.tolist() == groups.tolist()
    assert np.abs(np.bincount(groups, histogram.values) - 400).mean() < 3
