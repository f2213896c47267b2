from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.inference import norm_cut, norm_sub
from dpsyn.inference.nonnegativity import norm_sub_each
from tests.inference.consistency import naive

cells = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False) | st.sampled_from([0.0, 1.0]), min_size=1, max_size=30)
totals = st.floats(0.01, 1e6) | st.sampled_from([1.0, 10.0])


# ── norm-sub ─────────────────────────────────────────────────────────────────────────────────────────────────


@given(cells, totals)
def test_norm_sub_is_what_bisection_finds(values: list[float], total: float) -> None:
    result = norm_sub(np.array(values), total)

    assert result == pytest.approx(np.array(naive.norm_sub(values, total)), abs=1e-7)


@given(cells, totals)
def test_norm_sub_is_not_negative_and_has_the_total(values: list[float], total: float) -> None:
    result = norm_sub(np.array(values), total)

    assert result.min() >= 0
    assert result.sum() == pytest.approx(total, rel=1e-9)


@given(cells)
def test_norm_sub_leaves_a_non_negative_table_of_that_total_as_it_is(values: list[float]) -> None:
    table = np.abs(values) + 1.0

    assert norm_sub(table, float(table.sum())) == pytest.approx(table, rel=1e-9, abs=1e-9 * table.sum())


@given(st.lists(cells, min_size=1, max_size=5), totals)
def test_norm_sub_of_each_piece_is_that_of_the_piece_alone(pieces: list[list[float]], total: float) -> None:
    starts = np.cumsum([0, *map(len, pieces[:-1])])

    together = norm_sub_each(np.concatenate(pieces), starts, total)

    alone = [norm_sub(np.array(piece), total) for piece in pieces]
    assert together == pytest.approx(np.concatenate(alone), rel=1e-9, abs=1e-9 * total)


def test_norm_sub_takes_the_same_from_every_cell_that_stays() -> None:
    result = norm_sub(np.array([[6.0, 3.0], [1.0, -4.0]]), 5.0)

    assert result == pytest.approx(np.array([[4.0, 1.0], [0.0, 0.0]]))


def test_norm_sub_raises_cells_if_there_are_too_few() -> None:
    assert norm_sub(np.array([1.0, 2.0, -9.0]), 5.0) == pytest.approx(np.array([2.0, 3.0, 0.0]))


def test_norm_sub_has_the_total_however_small_it_is_beside_the_cells() -> None:
    assert norm_sub(np.array([1e9, -1e9, 1e9 - 1]), 1e-9) == pytest.approx(np.array([1e-9, 0.0, 0.0]))


@pytest.mark.parametrize("total", [0.0, -3.0])
def test_norm_sub_to_no_total_is_all_zero(total: float) -> None:
    assert norm_sub(np.array([5.0, -1.0]), total).tolist() == [0.0, 0.0]


def test_norm_sub_gives_a_single_cell_the_total() -> None:
    assert norm_sub(np.array(-7.0), 3.0) == 3.0


# ── norm-cut ─────────────────────────────────────────────────────────────────────────────────────────────────


@given(cells, totals)
def test_norm_cut_is_what_cutting_one_by_one_finds(values: list[float], total: float) -> None:
    result = norm_cut(np.array(values), total)

    assert sorted(result) == pytest.approx(sorted(naive.norm_cut(values, total)), abs=1e-6)


def test_norm_cut_zeroes_the_smallest_and_cuts_the_last_in_part() -> None:
    result = norm_cut(np.array([[10.0, -4.0], [1.0, 3.0]]), 11.5)

    assert result.tolist() == [[10.0, 0.0], [0.0, 1.5]]


def test_norm_cut_only_clips_what_is_not_too_much() -> None:
    assert norm_cut(np.array([2.0, -4.0, 1.0]), 7.0).tolist() == [2.0, 0.0, 1.0]


def test_norm_cut_to_no_total_is_all_zero() -> None:
    assert norm_cut(np.array([2.0, -4.0, 1.0]), -1.0).tolist() == [0.0, 0.0, 0.0]


def test_neither_changes_what_it_is_given() -> None:
    values = np.array([2.0, -4.0, 1.0])

    norm_sub(values, 1.0), norm_cut(values, 1.0)

    assert values.tolist() == [2.0, -4.0, 1.0]
