from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.inference.gibbs import kernels
from dpsyn.inference.gibbs.layout import CliqueLayout, Level
from tests.inference.gibbs import naive

SIZES = (3, 2, 1, 11, 4)  # one of them beyond eight lanes
CLIQUES = st.sampled_from(
    [
        [(0,), (1,), (2,), (3,), (4,)],
        [(1, 0), (0, 4), (2, 3)],
        [(1, 0, 3), (0, 4), (2, 4), (3, 4)],
        [(2, 1, 0, 4), (1, 4, 3)],
    ]
)
KINDS = st.sampled_from([np.uint16, np.uint32])


def _columns(seed: int, records: int, kind: type[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    rng = np.random.default_rng(seed)
    return np.array([rng.integers(0, size, records) for size in SIZES]).astype(kind)


@settings(max_examples=30)
@given(CLIQUES, KINDS, st.integers(0, 150), st.integers(0, 99))
def test_counts_are_those_of_one_record_at_a_time(
    cliques: list[tuple[int, ...]], kind: type[np.unsignedinteger], records: int, seed: int
) -> None:
    layout, columns = CliqueLayout.of(SIZES, cliques), _columns(seed, records, kind)
    totals = np.zeros(layout.offsets[-1], np.int64)

    kernels.count(columns, 0, records, *layout.count_indices, totals)

    assert totals.tolist() == [n for clique in cliques for n in naive.count_cells(columns, clique, SIZES).ravel()]


@settings(max_examples=40, derandomize=True)  # single precision may tip one draw in a million, and those after it
@given(CLIQUES, KINDS, st.integers(1, 120), st.integers(0, 99), st.booleans(), st.sampled_from([0.0, 0.05, 1.0]))
def test_a_sweep_samples_the_same_values_as_its_slow_twin(
    cliques: list[tuple[int, ...]],
    kind: type[np.unsignedinteger],
    records: int,
    seed: int,
    conditioned: bool,
    stiffness: float,
) -> None:
    layout, columns, rng = CliqueLayout.of(SIZES, cliques), _columns(seed, records, kind), np.random.default_rng(seed)
    weights = rng.gamma(1.0, size=layout.offsets[-1]).astype(np.float32)
    order, key = rng.permutation(len(SIZES)), int(rng.integers(2**63))
    allowed = {4: np.array([False, True, True, False])} if conditioned else {}
    columns[4] = columns[4] % 2 + 1 if conditioned else columns[4]
    bars = np.array([0, 1, 1, 0] if conditioned else [1], np.float32)
    begins = np.array([-1, -1, -1, -1, 0 if conditioned else -1])
    leaving, entering = (np.full(len(cliques), np.exp(way * stiffness), np.float32) for way in (1, -1))
    expected = naive.sweep(
        columns,
        {clique: layout.table(weights.astype(float), number) for number, clique in enumerate(cliques)},
        SIZES,
        order.tolist(),
        dict.fromkeys(cliques, stiffness),
        allowed,
        np.array([[naive.uniform(key, index, record) for record in range(records)] for index in range(len(SIZES))]),
    )
    before = columns.copy()

    moves = kernels.sweep(
        columns, 0, records, order, *layout.sweep_indices, bars, begins, leaving, entering, weights, np.uint64(key)
    )

    assert columns.tolist() == expected.tolist()
    assert moves == (columns != before).sum()


LEVELS = (
    Level(3, np.array([0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 3])),
    Level(4, np.array([1, 0, 0, 1])),
    Level(3, np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])),
)
LEVEL_CLIQUES = st.sampled_from(
    [
        [(0,), (1,), (2,), (3,), (4,), (0, 5), (6, 5)],
        [(1, 0), (7, 4), (2, 3), (6, 5), (6, 0, 7)],
        [(2, 1, 6), (0, 5), (1, 7), (3, 4)],
    ]
)


@settings(max_examples=40, derandomize=True)
@given(LEVEL_CLIQUES, st.integers(1, 120), st.integers(0, 99), st.sampled_from([0.0, 0.05, 1.0]))
def test_a_sweep_over_levels_samples_the_same_values_as_its_slow_twin(
    cliques: list[tuple[int, ...]], records: int, seed: int, stiffness: float
) -> None:
    layout, columns, rng = (
        CliqueLayout.of(SIZES, cliques, (), LEVELS),
        _columns(seed, records, np.uint16),
        np.random.default_rng(seed),
    )
    weights = rng.gamma(1.0, size=layout.offsets[-1]).astype(np.float32)
    order, key = rng.permutation(len(SIZES)), int(rng.integers(2**63))
    leaving, entering = (np.full(len(cliques), np.exp(way * stiffness), np.float32) for way in (1, -1))
    expected = naive.sweep(
        columns,
        {clique: layout.table(weights.astype(float), number) for number, clique in enumerate(cliques)},
        SIZES,
        order.tolist(),
        dict.fromkeys(cliques, stiffness),
        {},
        np.array([[naive.uniform(key, index, record) for record in range(records)] for index in range(len(SIZES))]),
        LEVELS,
    )
    variables = layout.add_levels(columns)

    kernels.sweep(
        variables, 0, records, order, *layout.sweep_indices, np.ones(1, np.float32), np.full(5, -1), leaving, entering,
        weights, np.uint64(key),
    )  # fmt: skip

    assert variables[:5].tolist() == expected.tolist()
    assert variables.tolist() == layout.add_levels(variables[:5]).tolist()  # levels follow their attributes


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_products_beyond_single_precision_are_rescaled(scale: float) -> None:
    layout = CliqueLayout.of([3] * 8, [(0, index) for index in range(1, 8)])
    columns = np.zeros((8, 6000), np.uint16)
    weights = np.full(layout.offsets[-1], scale, np.float32)
    weights[0::9] *= 2  # value 0 beside value 0

    ones = np.ones(7, np.float32)
    order, key = np.array([0]), np.uint64(3)
    kernels.sweep(columns, 0, 6000, order, *layout.sweep_indices, ones[:1], np.full(8, -1), ones, ones, weights, key)

    shares = np.bincount(columns[0], minlength=3) / 6000
    assert shares == pytest.approx(np.array([128, 1, 1]) / 130, abs=0.006)  # four standard deviations


@given(st.integers(1, 60), st.integers(1, 4), st.integers(1, 5), st.integers(0, 99))
def test_samples_of_a_table_are_as_expected_up_to_rounding(records: int, rows: int, values: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    of, weights = rng.integers(0, rows, records), rng.random((rows, values))
    sampled = np.empty(records, np.int64)

    kernels.sample_conditional(of, rng.permutation(records), np.cumsum(weights, axis=1), rng.random(rows), sampled)

    for row in range(rows):
        result = np.bincount(sampled[of == row], minlength=values)
        assert np.abs(result - (of == row).sum() * weights[row] / weights[row].sum()).max() < 1 + 1e-9
