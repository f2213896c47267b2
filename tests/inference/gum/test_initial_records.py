from __future__ import annotations

import numpy as np
import pytest

from dpsyn.errors import InternalError
from dpsyn.inference.gum import initialize_records
from dpsyn.marginals import Estimate
from tests.inference.gum import tables


def test_each_attribute_has_the_counts_of_its_table() -> None:
    sizes = [4, 1, 7]
    given = tables.dependent_records(1001, sizes, 0)
    targets = [tables.table(given, [0, 1], sizes), tables.table(given, [1, 2], sizes)]

    records = initialize_records(targets, tables.names(sizes), 1001, np.random.default_rng(0))

    assert (records.shape, str(records.dtype), records.flags.f_contiguous) == ((1001, 3), "int32", True)
    for index, size in enumerate(sizes):
        assert np.array_equal(
            np.bincount(records[:, index], minlength=size), np.bincount(given[:, index], minlength=size)
        )


def test_attributes_are_independent() -> None:
    halves = Estimate(("a", "b"), np.array([[5000.0, 0], [0, 5000]]), 1.0)

    records = initialize_records([halves], ["a", "b"], 10_000, np.random.default_rng(0))

    both = np.sum(records[:, 0] & records[:, 1])
    assert abs(both - 2500) < 5 * 25  # hypergeometric, standard deviation 25: once in a million runs


def test_the_most_precise_table_is_followed() -> None:
    rough = Estimate(("a",), np.array([1.0, 3.0]), 1.0)
    fine = Estimate(("b", "a"), np.array([[2.0, 0.0], [0.0, 2.0]]), 0.2)

    records = initialize_records([rough, fine], ["a"], 4, np.random.default_rng(0))

    assert sorted(records[:, 0]) == [0, 0, 1, 1]


def test_an_attribute_without_a_table_is_refused() -> None:
    with pytest.raises(InternalError, match="'a'"):
        initialize_records([], ["a"], 4, np.random.default_rng(0))
