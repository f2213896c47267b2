from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.errors import UserError
from dpsyn.inference.mcf import (
    find_cheapest_moves,
    iterate_mcf_passes,
    require_solvable_flows,
    run_mcf,
    sample_uniform_records,
)
from dpsyn.inference.methods import MCF
from dpsyn.marginals import Estimate
from tests.inference.gum import naive, tables


def test_two_flows_of_a_tenth_are_the_cheapest() -> None:
    # low, medium, high × male, female; of the two cells with a tenth too much each has one way of one attribute
    counts = np.array([[3, 1], [1, 2], [2, 1]])
    target = np.array([[2, 2], [1, 2], [1, 2]])

    origins, ends = find_cheapest_moves(counts, target, np.random.default_rng(0))

    assert list(zip(origins, ends, strict=True)) == [(0, 1), (4, 5)]  # low and high: one man in ten becomes a woman


@st.composite
def recounts(draw: st.DrawFn) -> tuple[NDArray[np.int64], ...]:
    """Counts of a few records, and their targets."""
    shape = draw(st.sampled_from([(2, 2), (3, 2), (2, 2, 2), (4,), (3, 1, 2)]))
    rows = draw(st.sampled_from([6, 6, 6, 2, 0]))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    cells = int(np.prod(shape))
    return tuple(rng.multinomial(rows, np.full(cells, 1 / cells)).reshape(shape) for _ in range(2))


@given(recounts())
def test_no_way_to_the_target_changes_fewer_attributes(
    tables_of_counts: tuple[NDArray[np.int64], ...],
) -> None:
    counts, target = tables_of_counts

    origins, ends = find_cheapest_moves(counts, target, np.random.default_rng(0))

    moved = np.bincount(origins, minlength=counts.size) - np.bincount(ends, minlength=counts.size)
    assert np.array_equal(counts.ravel() - moved, target.ravel())
    changes = sum(
        int(np.sum(a != b))
        for a, b in zip(np.unravel_index(origins, counts.shape), np.unravel_index(ends, counts.shape), strict=True)
    )
    assert changes == naive.fewest_changes(counts, target)
    assert np.all(np.diff(origins) >= 0)


def test_a_table_is_matched_exactly_and_nothing_else_changes() -> None:
    sizes = [3, 4, 2]
    target = tables.table(tables.dependent_records(500, sizes, 0), [2, 0], sizes)
    begin = sample_uniform_records(sizes, 500, np.random.default_rng(1))

    after, changed = next(iterate_mcf_passes(begin, tables.names(sizes), [target], np.random.default_rng(2)))

    assert tables.distances(after, [target]).tolist() == [0]
    assert np.array_equal(np.sort(after[:, 1]), np.sort(begin[:, 1]))
    assert not np.array_equal(after[:, 1], begin[:, 1])  # the order of the rows is shuffled
    before = naive.count_cells(begin, [2, 0], [2, 3])
    assert changed == np.abs(before - target.values).sum() / 2


def test_the_table_of_the_last_turn_is_matched_and_the_others_nearly() -> None:
    sizes = [3, 4, 2, 5]
    given = tables.dependent_records(2000, sizes, 0)
    targets = [tables.table(given, pair, sizes) for pair in combinations(range(4), 2)]

    records = run_mcf(targets, tables.names(sizes), sizes, 2000, rng=np.random.default_rng(0))

    assert (records.shape, str(records.dtype)) == ((2000, 4), "int32")
    result = tables.distances(records, targets)
    assert result[-1] == 0
    assert result.mean() < 0.01


def test_passes_end_when_few_records_change() -> None:
    reported: list[float] = []
    target = Estimate(("0",), np.array([9.0, 1.0]), 1.0)

    run_mcf([target], ["0"], [2], 10, rng=np.random.default_rng(0), progress=lambda _, done: reported.append(done))

    assert reported == [0.01, 0.02, 1.0]  # the second pass changes nothing


def test_no_passes_leave_random_records() -> None:
    target = Estimate(("0",), np.array([9.0, 1.0]), 1.0)

    records = run_mcf([target], ["0"], [2], 10, rng=np.random.default_rng(0), options=MCF(passes=0))

    assert np.array_equal(records, sample_uniform_records([2], 10, np.random.default_rng(0)))


@pytest.mark.parametrize(("sizes", "rows"), [([2, 3], 0), ([], 5), ([], 0)])
def test_records_without_rows_or_attributes_are_empty(sizes: list[int], rows: int) -> None:
    target = [Estimate(("0", "1"), np.ones((2, 3)), 1.0)] if sizes else []

    records = run_mcf(target, tables.names(sizes), sizes, rows, rng=np.random.default_rng(0))

    assert records.shape == (rows, len(sizes))


def test_a_table_with_too_large_a_flow_network_is_refused() -> None:
    small = Estimate(("a", "b"), np.ones((100, 100)), 1.0)
    large = Estimate(("a", "b", "c"), np.ones((25, 25, 25)), 1.0)

    require_solvable_flows([small])
    with pytest.raises(UserError, match=r"table of a, b, c: .* 15,625 cells .* 109,375 edges.*use GUM\(\) or Gibbs"):
        require_solvable_flows([small, large])
