from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.inference.gum import kernels
from tests.inference.gum import naive, tables

ALPHAS = st.sampled_from([Fraction(1, 5), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(21, 25)])


def to_unsigned(numbers: list[int]) -> NDArray[np.uint32]:
    return np.array(numbers, np.uint32)


@given(tables.recounts(), ALPHAS, st.booleans())
def test_additions_follow_the_formula(cells: tuple[list[int], list[int]], alpha: Fraction, fill: bool) -> None:
    added = np.empty(len(cells[0]))

    total = kernels.additions(to_unsigned(cells[0]), to_unsigned(cells[1]), float(alpha), fill, added)

    expected = naive.additions(*cells, alpha, fill)
    assert added == pytest.approx([float(amount) for amount in expected])
    assert total == pytest.approx(float(sum(expected)))


@given(tables.recounts(), st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(1)]))
def test_removals_follow_the_formula(cells: tuple[list[int], list[int]], beta: Fraction) -> None:
    removed = np.empty(len(cells[0]))

    total = kernels.removals(to_unsigned(cells[0]), to_unsigned(cells[1]), float(beta), removed)

    expected = naive.removals(*cells, beta)
    assert removed == pytest.approx([float(amount) for amount in expected])
    assert total == pytest.approx(float(sum(expected)))


@given(tables.recounts(most=1000), ALPHAS)
@example(([10, 10, 0], [0, 9, 11]), Fraction(1))
def test_beta_makes_removals_equal_additions(cells: tuple[list[int], list[int]], alpha: Fraction) -> None:
    wanted = Fraction(sum(naive.additions(*cells, alpha)))

    beta = kernels.find_beta(to_unsigned(cells[0]), to_unsigned(cells[1]), float(wanted))

    assert beta == pytest.approx(float(naive.balance(*cells, wanted)))


@pytest.mark.parametrize("rows", [0, 1, 3, 2047, 2048, 5001])
@pytest.mark.parametrize("indices", [(1,), (2, 0), (0, 1, 2), (3, 1, 0, 2)])
def test_counts_are_those_of_a_plain_loop(rows: int, indices: tuple[int, ...]) -> None:
    sizes = (3, 1, 4, 2)
    records = np.array([np.random.default_rng(rows).integers(size, size=rows) for size in sizes], np.int32).T
    shape = [sizes[index] for index in indices]
    cells, lanes = np.empty(rows, np.uint32), np.empty(4 * prod(shape), np.uint32)

    counts = kernels.count(
        np.ascontiguousarray(records.T), np.array(indices, np.int64), to_unsigned(shape), cells, lanes
    )

    assert counts.reshape(shape).tolist() == naive.count_cells(records, indices, shape).tolist()
    assert cells.tolist() == np.ravel_multi_index([records[:, index] for index in indices], shape).tolist()
