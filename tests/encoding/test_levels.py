"""Levels of about equal mass, each of which divides one group of the level before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.encoding import equal_mass_levels, frequency_levels


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60), st.integers(1, 32), st.booleans())
def test_levels_are_nested_contiguous_and_as_many_as_allowed(weights: list[float], most: int, apart: bool) -> None:
    last = [len(weights) - 1] if apart else []
    levels = equal_mass_levels(np.array(weights), most, apart=last)

    codes = levels.codes.group_of
    assert (np.diff(codes) >= 0).all()
    assert codes.max() + 1 <= max(most, 2)
    assert levels.groups[-1].group_of.tolist() == list(range(codes.max() + 1))
    for coarse, fine in zip(levels.groups, levels.groups[1:], strict=False):
        assert coarse.size < fine.size
        assert len({*zip(coarse.group_of.tolist(), fine.group_of.tolist(), strict=True)}) == fine.size
    for level in levels.groups:
        if apart and len(weights) > 1:
            assert (level.group_of[codes] == level.group_of[codes[-1]]).sum() == 1


def test_a_heavy_cell_is_a_group_of_its_own_and_the_others_have_equal_mass() -> None:
    weights = np.ones(1_000)
    weights[300] = 1_000.0

    levels = equal_mass_levels(weights, 16)

    masses = np.bincount(levels.codes.group_of, weights)
    assert (levels.codes.group_of == levels.codes.group_of[300]).sum() == 1
    assert np.sort(masses)[:-1].max() < 2.1 * np.sort(masses)[:-1].min()


def test_groups_are_not_divided_below_a_mass() -> None:
    levels = equal_mass_levels(np.ones(100), 32, min_mass=20)

    assert np.bincount(levels.codes.group_of).min() >= 20
    assert levels.at_most(3).size == 3
    assert levels.at_most(1) is levels.groups[0]


def test_levels_by_frequency_tell_the_most_frequent_values_apart() -> None:
    counts = np.concatenate([np.ones(30), [100.0, 50.0, 40.0, 30.0, 20.0, 10.0, 5.0], -np.ones(3)])
    levels = frequency_levels(counts)

    assert levels.sizes == (8, 16, 32, 40)
    assert frequency_levels(counts, merged=[30]).told_apart[0] == pytest.approx((255 - 100 + 1) / 285)
    assert frequency_levels(np.ones(100)).sizes == (64, 100)  # coarser ones tell too few values apart
    apart = [np.flatnonzero(np.bincount(level.group_of)[level.group_of] == 1) for level in levels.groups]
    assert apart[0].tolist() == list(range(30, 37))
    assert levels.told_apart[0] == pytest.approx(255 / 285)
    assert levels.told_apart[-1] == 1.0
    for coarse, fine in zip(levels.groups, levels.groups[1:], strict=False):
        pairs = set(zip(fine.group_of.tolist(), coarse.group_of.tolist(), strict=True))
        assert len(pairs) == fine.size  # each group of the finer level is in one of the coarser level
