"""Public grids: cells fine enough for spikes and few enough for the budget, and bins made of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.schema import AnyAttribute, Datetime, Grid, Integer, Ranged
from dpsyn.schema.grid import DEFAULT_BINS, MAX_GRID_CELLS, make_grid
from dpsyn.schema.ranges import MAX_LATTICE_STEPS
from tests.strategies import rangeds

ROUND = {digit * 10**power for power in range(17) for digit in (1, 2, 5)}


@st.composite
def cut_ranges(draw: st.DrawFn) -> tuple[int, int, list[int] | int | None, list[int]]:
    """Steps, origin, declared bins and spikes."""
    steps = draw(st.integers(1, 5000) | st.integers(1, MAX_LATTICE_STEPS))
    origin = draw(st.integers(-5000, 5000) | st.integers(-(2**52), 2**52))
    step = st.integers(0, steps - 1)
    bins = draw(st.none() | st.integers(1, 1500) | st.lists(step, min_size=1, max_size=40, unique=True).map(sorted))
    return steps, origin, bins, draw(st.lists(step, max_size=8))


@given(cut_ranges())
def test_cells_ascend_from_the_first_to_the_last_step(case: tuple[int, int, list[int] | int | None, list[int]]) -> None:
    steps, origin, bins, spikes = case

    grid = make_grid(steps, origin=origin, bins=bins, spikes=spikes)

    assert grid.edges[0] == 0
    assert grid.edges[-1] == steps
    assert (np.diff(grid.edges) > 0).all()


@given(cut_ranges())
def test_there_are_about_a_thousand_cells_at_most(case: tuple[int, int, list[int] | int | None, list[int]]) -> None:
    steps, origin, bins, spikes = case

    grid = make_grid(steps, origin=origin, bins=bins, spikes=spikes)

    assert grid.cells <= MAX_GRID_CELLS + 2 * grid.bins + 2 * len(spikes)


@given(cut_ranges())
def test_every_bin_is_a_union_of_neighboring_cells(case: tuple[int, int, list[int] | int | None, list[int]]) -> None:
    steps, origin, bins, spikes = case

    grid = make_grid(steps, origin=origin, bins=bins, spikes=spikes)

    assert sorted(set(grid.bin_of_cell.tolist())) == list(range(grid.bins))
    assert (np.diff(grid.bin_of_cell) >= 0).all()
    assert set(grid.bin_edges().tolist()) <= set(grid.edges.tolist())


@given(cut_ranges())
def test_a_spike_is_alone_in_its_cell(case: tuple[int, int, list[int] | int | None, list[int]]) -> None:
    steps, origin, bins, spikes = case

    grid = make_grid(steps, origin=origin, bins=bins, spikes=spikes)

    cells = grid.cell_of(np.array(spikes, dtype=np.int64))
    assert grid.edges[cells].tolist() == spikes
    assert grid.edges[cells + 1].tolist() == [spike + 1 for spike in spikes]


@given(cut_ranges())
def test_declared_bins_start_exactly_where_they_were_declared(
    case: tuple[int, int, list[int] | int | None, list[int]],
) -> None:
    steps, origin, bins, spikes = case

    grid = make_grid(steps, origin=origin, bins=bins, spikes=spikes)

    if isinstance(bins, list):
        assert grid.bin_edges().tolist() == sorted({0, *bins, steps})


@given(cut_ranges())
def test_a_number_of_bins_makes_as_many_of_almost_equal_width(
    case: tuple[int, int, list[int] | int | None, list[int]],
) -> None:
    steps, origin, bins, spikes = case

    grid = make_grid(steps, origin=origin, bins=bins, spikes=spikes)

    if isinstance(bins, int):
        widths = np.diff(grid.bin_edges())
        assert grid.bins == min(bins, steps)
        assert widths.max() - widths.min() <= 1


@given(st.integers(1, MAX_LATTICE_STEPS), st.integers(-(2**52), 2**52))
def test_cuts_fall_on_round_coordinates(steps: int, origin: int) -> None:
    grid = make_grid(steps, origin=origin)

    for edges, pieces in ((grid.edges, MAX_GRID_CELLS), (grid.bin_edges(), DEFAULT_BINS)):
        width = min(width for width in ROUND if width * pieces >= steps - 1)
        assert {(edge + origin) % width for edge in edges[1:-1].tolist()} <= {0}


def test_a_range_that_ends_on_a_round_number_is_cut_by_round_numbers() -> None:
    assert make_grid(2_000_001).cells == 1_001
    assert set(np.diff(make_grid(2_000_001).edges)[:-1].tolist()) == {2_000}


@given(st.integers(1, MAX_LATTICE_STEPS))
def test_bins_left_open_are_round_and_about_as_many_as_usual(steps: int) -> None:
    grid = make_grid(steps)

    assert grid.bins <= DEFAULT_BINS + 1
    assert grid.bins >= min(steps, DEFAULT_BINS // 3)


@given(st.integers(1, 3000), st.integers(-3000, 3000))
def test_a_small_range_has_a_cell_for_every_step(steps: int, origin: int) -> None:
    grid = make_grid(steps, origin=origin)

    if steps <= MAX_GRID_CELLS:
        assert grid.edges.tolist() == list(range(steps + 1))


@given(rangeds(), st.data())
def test_every_step_is_in_its_cell(attribute: AnyAttribute, data: st.DataObject) -> None:
    assert isinstance(attribute, Ranged)
    grid = attribute.grid()
    step = data.draw(st.integers(0, attribute.steps - 1))

    cell = int(grid.cell_of(np.array([step]))[0])

    assert grid.edges[cell] <= step < grid.edges[cell + 1]


def test_times_are_cut_at_minutes_hours_and_days() -> None:
    minutes = Datetime(name="t", start="2016-01-01", end="2016-01-01", resolution="second").grid()
    hours = Datetime(name="t", start="2016-01-01", end="2016-12-31", resolution="minute").grid()

    assert set(np.diff(minutes.edges).tolist()) == {120}
    assert set(np.diff(hours.edges).tolist()) == {720}


@pytest.mark.parametrize(("low", "high"), [(-(10**9), 10**9), (0, 10**9), (-(10**9), 0), (-7, 10**12)])
def test_zero_is_alone_in_its_cell_however_wide_the_range(low: int, high: int) -> None:
    attribute = Integer(name="debt", low=low, high=high)

    cell = int(attribute.grid().cell_of(np.array([attribute.step_of(0)]))[0])

    assert attribute.grid().edges[[cell, cell + 1]].tolist() == [-low, -low + 1]


def test_a_grid_cannot_be_changed() -> None:
    grid = make_grid(10)

    with pytest.raises(ValueError, match="read-only"):
        grid.edges[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        grid.bin_of_cell[0] = 5
    with pytest.raises(AttributeError):
        grid.edges = np.arange(3)  # type: ignore[misc]


def test_a_grid_of_one_step_has_one_cell_and_one_bin() -> None:
    grid = make_grid(1)

    assert isinstance(grid, Grid)
    assert (grid.cells, grid.bins) == (1, 1)
