from __future__ import annotations

import numpy as np

from dpsyn.inference.gum.decomposition import join_components, separate_components
from dpsyn.marginals import Estimate


def test_attributes_are_together_if_tables_connect_them() -> None:
    tables = [Estimate(tuple(clique), np.zeros((2,) * len(clique)), 1.0) for clique in ("ad", "c", "db", "ef", "")]

    components = separate_components(tables, "abcdefg")

    assert [component.names for component in components] == [("a", "b", "d"), ("c",), ("e", "f"), ("g",)]
    own = [["".join(table.clique) for table in component.tables] for component in components]
    assert own == [["ad", "db"], ["c"], ["ef"], []]


def test_rows_of_a_part_stay_together_and_parts_are_shuffled_apart() -> None:
    rows = np.arange(1000, dtype=np.int32)

    joined = join_components([{"b": rows, "a": rows + 1}, {"c": rows}], ["a", "b", "c"], 1000, np.random.default_rng(0))

    assert joined.flags.f_contiguous
    assert np.array_equal(joined[:, 0], joined[:, 1] + 1)
    assert np.array_equal(np.sort(joined[:, 1]), rows)
    assert np.array_equal(np.sort(joined[:, 2]), rows)
    assert abs(np.asarray(np.corrcoef(joined[:, 1], joined[:, 2]))[0, 1]) < 5 / np.sqrt(
        1000
    )  # once in 1.7 million runs
