"""Covering designs: nothing is left uncovered, and blocks are few."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.errors import InternalError
from dpsyn.selection.covering_design import BlockCapacity, build_covering_design
from dpsyn.selection.finite_geometry import (
    FIELD_ORDERS,
    affine_plane,
    boolean_quadruples,
    inversive_plane,
    projective_plane,
)


def binary(count: int, length: int) -> BlockCapacity:
    return BlockCapacity(sizes=(2,) * count, max_attributes=length, max_cells=2**length)


def find_uncovered(design: list[tuple[int, ...]], room: BlockCapacity, strength: int) -> list[tuple[int, ...]]:
    """Sets that would fit into a block, but are in none."""
    blocks = [set(block) for block in design]
    return [
        some
        for some in combinations(range(len(room.sizes)), strength)
        if room.fits(some) and not any(block.issuperset(some) for block in blocks)
    ]


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=14), st.integers(1, 3), st.integers(3, 8), st.integers(30, 2000)
)
def test_every_set_that_fits_is_covered_and_no_block_is_too_large(
    sizes: list[int], strength: int, attributes: int, cells: int
) -> None:
    room = BlockCapacity(sizes=tuple(sizes), max_attributes=attributes, max_cells=cells)

    design = build_covering_design(room, strength, attempts=5)

    assert find_uncovered(design, room, min(strength, len(sizes))) == []
    assert all(room.fits(block) and list(block) == sorted(set(block)) for block in design)
    assert {index for block in design for index in block} == set(range(len(sizes)))


@pytest.mark.parametrize(
    ("count", "length", "strength", "most"),
    [
        (12, 8, 2, 3),  # the least there is
        (16, 8, 2, 6),
        (32, 8, 2, 20),
        (45, 8, 2, 42),
        (44, 8, 2, 42),
        (64, 8, 2, 72),
        (9, 6, 2, 3),
        (16, 8, 3, 14),
        (32, 8, 3, 108),
        (8, 8, 2, 1),
        (5, 8, 2, 1),
        (1, 8, 2, 1),
    ],
)
def test_designs_are_small(count: int, length: int, strength: int, most: int) -> None:
    room = binary(count, length)

    design = build_covering_design(room, strength, attempts=20)

    assert len(design) <= most
    assert find_uncovered(design, room, min(strength, count)) == []


def test_the_affine_plane_over_eight_elements_covers_64_attributes_by_72_views() -> None:
    room = binary(64, 8)

    design = build_covering_design(room, 2, attempts=0)

    assert len(design) == len(affine_plane(8)) == 72
    assert all(len(block) == 8 for block in design)


def test_attempts_make_a_greedy_design_smaller() -> None:
    room = BlockCapacity(sizes=(2, 3) * 10, max_attributes=6, max_cells=200)  # no construction is for two sizes

    before, after = (build_covering_design(room, 2, attempts=attempts) for attempts in (0, 200))

    assert len(after) < len(before)
    assert find_uncovered(after, room, 2) == []


def test_the_same_capacity_gives_the_same_design() -> None:
    room = BlockCapacity(sizes=(2, 5, 3, 4, 2, 7, 3, 2), max_attributes=4, max_cells=100)

    assert build_covering_design(room, 2) == build_covering_design(room, 2)


def test_attributes_that_fit_with_no_other_stand_alone() -> None:
    design = build_covering_design(BlockCapacity(sizes=(90, 100, 2, 2), max_attributes=4, max_cells=150), 2)

    assert (0,) in design
    assert (1,) in design
    assert (2, 3) in design


@pytest.mark.parametrize(("sizes", "attributes", "cells"), [((), 2, 4), ((5,), 2, 4), ((2, 2), 0, 4)])
def test_a_capacity_that_cannot_hold_every_attribute_is_refused(
    sizes: tuple[int, ...], attributes: int, cells: int
) -> None:
    with pytest.raises(InternalError, match="cannot hold"):
        BlockCapacity(sizes=sizes, max_attributes=attributes, max_cells=cells)


def test_too_many_attributes_are_refused() -> None:
    with pytest.raises(InternalError, match="sets of 3 of 400 attributes are too many to cover"):
        build_covering_design(binary(400, 8), 3)


# ── geometries ───────────────────────────────────────────────────────────────────────────────────────────────


def exactly_once(blocks: list[tuple[int, ...]], points: int, strength: int) -> bool:
    """Whether every set of this many points is in exactly one block."""
    result = sorted(some for block in blocks for some in combinations(sorted(block), strength))
    return result == list(combinations(range(points), strength))


@pytest.mark.parametrize("order", FIELD_ORDERS)
def test_two_points_of_a_plane_lie_on_exactly_one_line(order: int) -> None:
    assert exactly_once(affine_plane(order), order**2, 2)
    assert exactly_once(projective_plane(order), order**2 + order + 1, 2)


@pytest.mark.parametrize("order", [2, 3, 4, 5, 7])
def test_three_points_of_an_inversive_plane_lie_on_exactly_one_circle(order: int) -> None:
    circles = inversive_plane(order)

    assert len(circles) == order**3 + order
    assert exactly_once(circles, order**2 + 1, 3)


@pytest.mark.parametrize("power", [2, 3, 4])
def test_three_points_are_in_exactly_one_quadruple(power: int) -> None:
    assert exactly_once(boolean_quadruples(power), 2**power, 3)
    assert len(boolean_quadruples(power)) == math.comb(2**power, 3) // 4
