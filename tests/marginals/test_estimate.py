from __future__ import annotations

import math

import numpy as np
import pytest

from dpsyn.marginals import Estimate
from dpsyn.marginals.estimate import average_estimates, relative_precisions


def test_tables_of_the_same_attributes_are_averaged_by_inverse_variance() -> None:
    first = Estimate(("a", "b"), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), 1.0)
    second = Estimate(("b", "a"), np.array([[5.0, 0.0], [6.0, 1.0], [7.0, 2.0]]), 3.0)

    (result,) = average_estimates([first, second])

    assert result.clique == ("a", "b")
    assert result.values == pytest.approx(np.array([[2.0, 3.0, 4.0], [3.0, 4.0, 5.0]]))  # ¾ and ¼
    assert result.variance == pytest.approx(0.75)


def test_other_tables_stay_as_they_are_in_the_order_of_the_first_of_each() -> None:
    tables = [Estimate((name,), np.array([1.0]), 1.0) for name in "babc"]

    result = average_estimates(tables)

    assert [table.clique for table in result] == [("b",), ("a",), ("c",)]
    assert result[1] is tables[1]


def test_an_exact_table_determines_the_average() -> None:
    exact, noisy = Estimate(("a",), np.array([3.0, 4.0]), 0.0), Estimate(("a",), np.array([9.0, -9.0]), 2.0)

    (result,) = average_estimates([noisy, exact])

    assert result.values == pytest.approx(exact.values)
    assert result.variance == 0


def test_exact_tables_that_differ_are_averaged_equally() -> None:
    (result,) = average_estimates([Estimate(("a",), np.array([cell]), 0.0) for cell in (3.0, 4.0)])

    assert result.values == pytest.approx(np.array([3.5]))


def test_a_table_of_infinite_variance_has_no_weight() -> None:
    (result,) = average_estimates(
        [Estimate(("a",), np.array([cell]), variance) for cell, variance in ((3.0, math.inf), (4.0, 2))]
    )

    assert result.values == pytest.approx(np.array([4.0]))
    assert result.variance == 2


@pytest.mark.parametrize("variances", [[0.0], [0.0, 0.0], [math.inf], [math.inf, 0.0, 1e-300], [1e300, 1.0]])
def test_precisions_are_positive_numbers_whatever_the_variances(variances: list[float]) -> None:
    result = relative_precisions(variances)

    assert np.isfinite(result).all()
    assert (result > 0).all()
