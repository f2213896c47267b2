from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given

from dpsyn.errors import InternalError
from dpsyn.inference.consistency import TableLayout, find_overlaps, make_mutually_consistent, weighted_total, widest_gap
from dpsyn.marginals import Estimate
from dpsyn.marginals.estimate import average_estimates
from tests.inference.consistency import families, naive


def make_agree(tables: list[Estimate], total: float) -> list[Estimate]:
    layout = TableLayout.of(tables)
    result, _ = make_mutually_consistent(layout.to_vector(tables), layout, find_overlaps(layout), total)
    return layout.to_estimates(result, tables)


def total_of(tables: list[Estimate]) -> float:
    layout = TableLayout.of(tables)
    return weighted_total(layout.to_vector(tables), layout)


def level(table: Estimate, total: float) -> Estimate:
    """The table with its total changed, the same in every cell."""
    return Estimate(table.clique, table.values + (total - table.total) / table.values.size, table.variance)


def cells(table: Estimate) -> naive.Cells:
    every = itertools.product(*(range(size) for size in table.values.shape))
    return {cell: float(table.values[cell]) for cell in every}


@given(families.noisy_tables())
def test_one_pass_follows_the_formula_cell_by_cell(given: list[Estimate]) -> None:
    tables = average_estimates(given)

    result = make_agree(tables, 700.0)

    cliques, variances = [table.clique for table in tables], [table.variance for table in tables]
    slowly = naive.agree([cells(table) for table in tables], cliques, variances, 700.0)
    for table, expected in zip(result, slowly, strict=True):
        assert cells(table) == pytest.approx(expected, abs=1e-8)


@given(families.noisy_tables())
def test_one_pass_is_enough_to_agree_on_all_that_tables_share(given: list[Estimate]) -> None:
    tables = average_estimates(given)

    result = make_agree(tables, 700.0)

    assert families.gaps(result) < 1e-8
    assert [table.total for table in result] == pytest.approx([700.0] * len(result))


@given(families.noisy_tables())
def test_the_widest_gap_is_found_on_all_sets_that_tables_share(given: list[Estimate]) -> None:
    tables = [level(table, 5.0) for table in average_estimates(given)]
    layout = TableLayout.of(tables)

    result = widest_gap(layout.to_vector(tables), layout, find_overlaps(layout))

    assert result == pytest.approx(families.gaps(tables), abs=1e-8)


def test_the_total_is_weighted_by_the_noise_of_all_cells() -> None:
    small, large = Estimate(("a",), np.array([6.0, 4.0]), 3.0), Estimate(("b", "c"), np.full((2, 3), 5.0), 2.0)

    assert total_of([small, large]) == pytest.approx((10 / 6 + 30 / 12) / (1 / 6 + 1 / 12))


def test_less_noise_and_fewer_summed_cells_give_more_weight() -> None:
    pair = Estimate(("a", "b"), np.array([[10.0, 10.0], [10.0, 30.0]]), 1.0)  # on a: 20, 40; 2 cells in each
    alone = Estimate(("a",), np.array([32.0, 28.0]), 2.0)  # as much noise in the projection

    together = make_agree([pair, alone], 60.0)

    assert together[0].values == pytest.approx(np.array([[13.0, 13.0], [7.0, 27.0]]))
    assert together[1].values == pytest.approx(np.array([26.0, 34.0]))


def test_an_exact_table_does_not_move() -> None:
    exact, noisy = Estimate(("a",), np.array([3.0, 7.0]), 0.0), Estimate(("a", "b"), np.full((2, 2), 4.0), 1.0)

    result = make_agree([noisy, exact], total_of([noisy, exact]))

    assert result[1].values == pytest.approx(exact.values)
    assert result[0].values == pytest.approx(np.array([[1.5, 1.5], [3.5, 3.5]]))


def test_an_attribute_of_different_sizes_is_refused() -> None:
    with pytest.raises(InternalError, match="b has 3 values in one table and 2 in another"):
        TableLayout.of([Estimate(("a", "b"), np.zeros((2, 3)), 1.0), Estimate(("b",), np.zeros(2), 1.0)])
