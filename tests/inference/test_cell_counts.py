"""Cells in order: spikes are found in every count that holds them, round values share a factor, parents keep sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.inference.cell_counts import Cells, estimate_cell_counts
from dpsyn.inference.fit import describe_cells
from dpsyn.inference.histogram_hierarchy import GroupCounts, as_floats, combine_counts
from dpsyn.schema import Integer, Real

CELLS = np.arange(960)
LEAVES, GROUPS = CELLS // 12, CELLS // 96


def measure(
    truth: NDArray[np.float64], group_of: NDArray[np.int64], std: float, rng: np.random.Generator
) -> GroupCounts:
    sums = np.bincount(group_of, truth)
    return GroupCounts(group_of, sums + rng.normal(0, std, len(sums)), std**2)


def plain_cells(count: int) -> Cells:
    return Cells(np.ones(count), count, np.zeros(count, np.int64), np.zeros(count, np.bool_))


def test_a_spike_that_no_single_count_shows_is_found_in_all_of_them_together() -> None:
    truth = np.full(960, 2.0)
    truth[500] += 180.0  # 3.6 standard deviations of a cell, 5.1 of the mean of cell and leaf
    found, phantoms = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        evidence = [measure(truth, CELLS, 50, rng), measure(truth, LEAVES, 50, rng), measure(truth, GROUPS, 40, rng)]
        counts = estimate_cell_counts(combine_counts(evidence), plain_cells(960))
        found.append(counts[500] > 90)
        phantoms.append(int((np.delete(counts, 500) > 90).sum()))

    assert np.mean(found) >= 0.6
    assert np.mean(phantoms) <= 0.2


def test_a_noisier_count_of_a_range_still_shows_its_spike() -> None:
    truth = np.zeros(960)
    truth[500] = 225.0  # 3.75 standard deviations of a cell, 4.7 of the mean of cell and leaf
    evidence = [
        GroupCounts(group_of, as_floats(np.bincount(group_of, truth)), std**2)
        for group_of, std in ((CELLS, 60.0), (LEAVES, 80.0), (GROUPS, 50.0))
    ]

    both = estimate_cell_counts(combine_counts(evidence), plain_cells(960))
    one = estimate_cell_counts(combine_counts([evidence[0], evidence[2]]), plain_cells(960))

    assert both[500] > 180 > 20 > one[500]


def test_several_values_that_stand_out_nearly_far_enough_are_spikes_together() -> None:
    def estimate(spikes: list[int]) -> NDArray[np.float64]:
        truth = np.zeros(960)
        truth[spikes] = 190.0  # 3.8 standard deviations of a cell
        evidence = [
            GroupCounts(CELLS, truth, 50.0**2),
            GroupCounts(GROUPS, as_floats(np.bincount(GROUPS, truth)), 40.0**2),
        ]
        return estimate_cell_counts(combine_counts(evidence), plain_cells(960))

    assert estimate([500])[500] < 20
    assert estimate([20, 130, 250, 360, 500])[500] > 150


def test_counts_that_follow_from_others_are_no_second_evidence_of_a_spike() -> None:
    shifted = (CELLS + 6) // 12
    crossing = [GroupCounts(group_of, np.zeros(int(group_of.max()) + 1), 50.0**2) for group_of in (LEAVES, shifted)]

    partitions = combine_counts([*crossing, GroupCounts(GROUPS, np.zeros(10), 40.0**2)]).partitions

    assert [partition.measured for partition in partitions] == [False, True, True, True]


def test_round_values_share_a_factor_however_noisy_each_of_them_is() -> None:
    attribute = Integer(name="a", low=0, high=959)
    cells = describe_cells(attribute)
    truth = np.where(CELLS % 10 == 0, 40.0, 0.0)  # one standard deviation of a cell
    rng = np.random.default_rng(1)
    evidence = [measure(truth, CELLS, 40, rng), measure(truth, GROUPS, 20, rng)]

    counts = estimate_cell_counts(combine_counts(evidence), cells)

    assert counts[CELLS % 10 == 0].sum() > 0.8 * counts.sum()


def test_likely_spikes_need_less_evidence() -> None:
    attribute = Integer(name="a", low=0, high=959)
    truth = np.zeros(960)
    truth[:200] = 10.0
    truth[959] = 130.0
    plain, likely = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        histogram = combine_counts([measure(truth, CELLS, 40, rng), measure(truth, GROUPS, 30, rng)])
        plain.append(estimate_cell_counts(histogram, plain_cells(960))[959])
        likely.append(estimate_cell_counts(histogram, describe_cells(attribute))[959])

    assert np.mean(likely) > 80 > np.mean(plain)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 200), st.floats(0.1, 200), st.booleans())
def test_counts_are_never_negative_and_keep_the_total(seed: int, fine: float, coarse: float, missing: bool) -> None:
    rng = np.random.default_rng(seed)
    attribute = Real(name="a", low=0, high=1_000, decimals=2, missing=missing)
    cells = describe_cells(attribute)
    size = len(cells.widths)
    truth = rng.gamma(0.3, 50, size) * (rng.random(size) < rng.random())
    groups = np.minimum(np.arange(size) // 37, (attribute.proper_cells - 1) // 37)
    groups = np.append(groups[: attribute.proper_cells], np.full(int(missing), groups.max() + 1))
    histogram = combine_counts([measure(truth, np.arange(size), fine, rng), measure(truth, groups, coarse, rng)])

    counts = estimate_cell_counts(histogram, cells)

    assert np.isfinite(counts).all()
    assert (counts >= 0).all()
    inside = histogram.values[: attribute.proper_cells].sum()
    expected = max(inside, 0.0) + max(float(histogram.values[attribute.proper_cells :].sum()), 0.0)
    assert counts.sum() == pytest.approx(expected, rel=1e-6, abs=1e-3)


def test_groups_that_are_no_ranges_are_treated_as_categories() -> None:
    rng, truth = np.random.default_rng(2), np.random.default_rng(3).gamma(1, 20, 40)
    scattered = np.arange(40) % 4
    histogram = combine_counts([measure(truth, np.arange(40), 5, rng), measure(truth, scattered, 5, rng)])

    ordered, unordered = (
        estimate_cell_counts(histogram, of) for of in (plain_cells(40), Cells.without_order(np.ones(40)))
    )

    np.testing.assert_array_equal(ordered, unordered)


def test_what_is_public_about_cells_follows_from_the_schema() -> None:
    attribute = Integer(name="gain", low=0, high=100_000, missing=True).with_cuts([99_999, 50, 51])

    cells = describe_cells(attribute)
    cell_of = attribute.grid().cell_of(np.array([0, 50, 99_999, 100_000, 200]))

    assert cells.ordered == attribute.proper_cells == len(cells.widths) - 1
    assert cells.likely_spikes[cell_of].tolist() == [True, False, True, True, False]
    assert cells.roundness[cell_of].tolist()[1] == 4  # a multiple of 5, 10 and 50
    assert cells.roundness[cell_of].tolist()[-1] == 0  # a cell of several values


def test_precise_sums_are_kept_although_single_counts_are_a_little_less_noisy() -> None:
    days, width, std = 360, 10, 13.0
    rng = np.random.default_rng(3)
    true = np.full(days, 11.0)
    groups = np.arange(days) // width
    sums = np.bincount(groups, true) + rng.normal(0, 1.1 * std, days // width)
    histogram = combine_counts(
        [
            GroupCounts(np.arange(days), true + rng.normal(0, std, days), std**2),
            GroupCounts(groups, sums, (1.1 * std) ** 2),
        ]
    )

    counts = np.bincount(groups, estimate_cell_counts(histogram, plain_cells(days), true.sum()))

    # the first and the last range lost half of their rows when only single counts were followed
    assert np.abs((counts - sums) / (1.1 * std)).max() < 3.0
