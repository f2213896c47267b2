from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from dpsyn.errors import UserError
from dpsyn.forecasts.simulated_table import SimulatedTable, reduce_schema, require_rows, scale_distance
from dpsyn.schema import Categorical, Derive, Integer, Schema

SCHEMA = Schema(
    attributes=(
        Categorical(name="a", values=("x", "y", "z")),
        Categorical(name="b", values=("x", "y")),
        Integer(name="n", low=0, high=9_999),
    )
)


def make_table(rows: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    a = random.choice(["x", "y", "z"], rows, p=[0.7, 0.25, 0.05])
    n = np.where(random.random(rows) < 0.3, 0, random.normal(3_000, 500, rows).round()).astype(int)
    return pa.table({"a": a, "b": np.where(a == "x", "x", "y"), "n": np.clip(n, 0, 9_999)})


def naive_distance(first: list[tuple[int, ...]], second: list[tuple[int, ...]]) -> float:
    cells = {*first, *second}
    return sum(abs(first.count(cell) / len(first) - second.count(cell) / len(second)) for cell in cells) / 2


def test_distances_are_those_of_an_obvious_count() -> None:
    grid = SimulatedTable.of(SCHEMA, make_table(400, 1))
    other = grid.encode(make_table(300, 2))

    expected = [
        naive_distance(
            list(zip(*(grid.columns[p].tolist() for p in pair), strict=True)),
            list(zip(*(other[p].tolist() for p in pair), strict=True)),
        )
        for pair in combinations(range(3), 2)
    ]

    assert grid.two_way_distances(other) == pytest.approx(expected)
    assert grid.one_way_distances(other)[0] == pytest.approx(
        naive_distance([(c,) for c in grid.columns[0].tolist()], [(c,) for c in other[0].tolist()])
    )


def test_a_value_that_the_table_lacks_counts_as_far_away() -> None:
    grid = SimulatedTable.of(SCHEMA, pa.table({"a": ["x"] * 10, "b": ["x"] * 10, "n": [5] * 10}))
    other = grid.encode(pa.table({"a": ["z"] * 5 + ["x"] * 5, "b": ["x"] * 10, "n": [5] * 10}))

    assert grid.one_way_distances(other).tolist() == [0.5, 0.0, 0.0]
    assert grid.two_way_distances(other).tolist() == [0.5, 0.5, 0.0]


def test_numbers_are_compared_over_ranges_of_equal_mass_and_frequent_values() -> None:
    grid = SimulatedTable.of(SCHEMA, make_table(4_000, 1))

    counts = np.bincount(grid.columns[2])

    assert counts.max() == pytest.approx(1_200, rel=0.1)  # the spike at 0 is alone
    assert 10 <= len(counts) <= 20


def test_shuffled_columns_keep_marginals_and_lose_dependence() -> None:
    grid = SimulatedTable.of(SCHEMA, make_table(4_000, 1))

    assert grid.shuffled_distances[0] == pytest.approx(0.42, abs=0.05)  # b follows from a
    assert grid.sampling_distances.max() < 0.06


def test_a_distance_with_more_rows_is_smaller_but_not_more_than_rows_explain() -> None:
    scaled = scale_distance(np.array([0.5, 0.1, 0.05]), np.array([0.1, 0.1, 0.1]), 4.0)

    assert scaled == pytest.approx([np.sqrt(0.25 - 0.0075), 0.05, 0.025])
    assert scale_distance(np.array([0.3]), np.array([0.1]), 1.0) == pytest.approx([0.3])


def test_a_reduced_schema_keeps_what_is_named_and_what_follows_from_it() -> None:
    attributes = tuple(Categorical(name=f"c{number}", values=("x", "y")) for number in range(50))
    group = Categorical(name="group", values=("u", "v"))
    derive = (Derive(name="group", source="c49", mapping=(("x", "u"), ("y", "v"))),)
    schema = Schema(attributes=(*attributes, group), derive=derive)

    some = reduce_schema(schema, frozenset({"c49", "c7"}), 10)
    others = reduce_schema(schema, frozenset({"c7"}), 2)

    assert len(some.measured_attributes) == 10
    assert {"c49", "c7", "group"} <= {*some.names}
    assert "group" not in others.names
    assert reduce_schema(schema, frozenset(), 50) == schema


def test_rows_must_be_given_or_public() -> None:
    sized = Schema(attributes=SCHEMA.attributes, expected_size=700)

    assert require_rows(sized, None) == 700
    assert require_rows(sized, 20) == 20
    with pytest.raises(UserError, match="no expected_size"):
        require_rows(SCHEMA, None)
    with pytest.raises(UserError, match="rows is 0"):
        require_rows(SCHEMA, 0)
