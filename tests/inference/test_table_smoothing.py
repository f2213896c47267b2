"""Smooth tables of numbers from noisy ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from dpsyn.inference.nonnegativity import norm_sub
from dpsyn.inference.table_smoothing import (
    SMOOTHED_VARIANCE,
    OrderedAttributes,
    combine_margins,
    count_parameters,
    rake,
    smooth_tables,
)
from dpsyn.marginals import Estimate

ROWS, STD = 4_000.0, 25.0
NUMBERS = OrderedAttributes({"x", "y"})


def copula(size: int, correlation: float) -> NDArray[np.float64]:
    """Expected counts of two normal numbers of this correlation, in ranges of equal mass."""
    z = norm.ppf((np.arange(size * 40) + 0.5) / (size * 40))
    density = np.exp(
        -(correlation**2 * (z[:, None] ** 2 + z**2) - 2 * correlation * z[:, None] * z) / (2 * (1 - correlation**2))
    )
    table = density.reshape(size, 40, size, 40).sum(axis=(1, 3))
    return rake(table * (ROWS / table.sum()), [np.full(size, ROWS / size)] * 2)


def rank_correlation(table: NDArray[np.float64]) -> float:
    shares = table / table.sum()
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    u, v = np.cumsum(rows) - rows / 2 - 0.5, np.cumsum(columns) - columns / 2 - 0.5
    return float(u @ shares @ v / np.sqrt((rows * u**2).sum() * (columns * v**2).sum()))


def estimates(table: NDArray[np.float64], std: float, seed: int) -> list[Estimate]:
    """Noisy one-way tables and the noisy table itself."""
    random = np.random.default_rng(seed)
    one_way = [
        Estimate((name,), table.sum(axis=1 - axis) + random.normal(0, 10.0, table.shape[axis]), 100.0)
        for axis, name in enumerate("xy")
    ]
    return [*one_way, Estimate(("x", "y"), table + random.normal(0, std, table.shape), std**2)]


def smooth(given: list[Estimate], ordered: OrderedAttributes = NUMBERS) -> list[Estimate]:
    return smooth_tables(given, ordered, ROWS, [None] * len(given))


@pytest.mark.parametrize("correlation", [0.0, 0.5, -0.8, 0.97])
def test_keeps_the_correlation_that_noise_would_hide(correlation: float) -> None:
    truth = copula(12, correlation)
    given = [estimates(truth, STD, seed) for seed in range(5)]
    smoothed = np.array([smooth(each)[2].values for each in given])
    clipped = np.array([norm_sub(each[2].values, ROWS) for each in given])
    errors = [float(np.abs(tables - truth).sum(axis=(1, 2)).mean()) for tables in (smoothed, clipped)]
    assert errors[0] < 0.4 * errors[1]
    found = float(np.mean([rank_correlation(table) for table in smoothed]))
    assert found == pytest.approx(rank_correlation(truth), abs=0.05)


def test_follows_counts_that_are_not_smooth() -> None:
    truth = np.where(np.add.outer(np.arange(12), np.arange(12)) % 2, 50.0, 5.0)
    truth *= ROWS / truth.sum()
    given = estimates(truth, 3.0, 1)
    found = smooth(given)[2].values
    assert np.abs(found - truth).sum() < 1.2 * np.abs(given[2].values - truth).sum()


def test_keeps_a_spike() -> None:
    truth = copula(12, 0.5)
    truth[2, 9] += 400.0
    truth *= ROWS / truth.sum()
    found = smooth(estimates(truth, STD, 2))[2].values
    assert found[2, 9] == pytest.approx(truth[2, 9], abs=4 * STD)


def test_tables_have_the_marginals_of_their_attributes() -> None:
    found = smooth(estimates(copula(8, 0.6), STD, 3))
    for axis in (0, 1):
        assert found[2].values.sum(axis=1 - axis) == pytest.approx(found[axis].values, abs=0.5)
    assert all(table.total == pytest.approx(ROWS) for table in found)
    assert (found[2].values >= 0).all()


def test_states_less_noise_but_some() -> None:
    found = smooth(estimates(copula(12, 0.6), STD, 4))[2]
    assert 0.02 * STD**2 < found.variance < 0.5 * STD**2


def test_levels_are_sums_of_codes() -> None:
    truth = copula(12, 0.9)
    x, y, table = estimates(truth, STD, 5)
    groups = np.arange(12) // 3
    coarse = np.add.reduceat(table.values, np.arange(0, 12, 3), axis=0)
    found = smooth([x, y, Estimate(("x", "y"), coarse, STD**2 * 3, {"x": groups})])
    assert found[2].values.sum(axis=1) == pytest.approx(np.bincount(groups, found[0].values), abs=0.5)


def test_missing_has_no_place_in_the_order() -> None:
    truth = np.zeros((9, 8))
    truth[:8] = copula(8, 0.9) * 0.8
    truth[8] = np.geomspace(1, 30, 8)  # those that are missing have large values of y
    truth *= ROWS / truth.sum()
    found = smooth(estimates(truth, 10.0, 6), OrderedAttributes({"x", "y"}, {"x"}))[2].values
    assert np.abs(found - truth).sum() < 0.1 * ROWS
    assert found[8, 6:].sum() > 0.4 * found[8].sum()


def test_impossible_combinations_stay_empty() -> None:
    truth = np.triu(np.ones((8, 8)))
    truth *= ROWS / truth.sum()
    given = estimates(truth, 10.0, 7)
    found = smooth_tables(given, NUMBERS, ROWS, [None, None, np.triu(np.ones((8, 8)))])[2].values
    assert np.abs(found - truth).sum() < np.abs(norm_sub(given[2].values, ROWS) - truth).sum()


def test_tables_of_categories_stay() -> None:
    given = estimates(copula(6, 0.3), STD, 8)
    assert smooth(given, OrderedAttributes(()))[2] is given[2]


def test_no_rows_are_not_smoothed() -> None:
    given = estimates(copula(6, 0.3), STD, 9)
    assert smooth_tables(given, NUMBERS, 0.0, [None] * 3) == given


@pytest.mark.parametrize(
    ("shape", "ordered", "parameters"),
    [
        ((12, 12), (True, True), 4),
        ((12, 5), (True, False), 8),
        ((8, 8, 3), (True, True, False), 4 + 4 + 4 + 8),
        ((3, 3), (True, True), None),  # as many parameters as degrees of freedom
        ((12, 12), (False, False), None),
        ((100, 100), (True, True), None),
        ((12,), (True,), None),
    ],
)
def test_counts_parameters(shape: tuple[int, ...], ordered: tuple[bool, ...], parameters: int | None) -> None:
    assert count_parameters(shape, ordered) == parameters


def test_larger_tables_inform_one_way_tables() -> None:
    truth = copula(8, 0.6)
    random = np.random.default_rng(10)
    poor = Estimate(("x",), truth.sum(axis=1) + random.normal(0, 200.0, 8), 200.0**2)
    table = Estimate(("x", "y"), truth + random.normal(0, 5.0, truth.shape), 25.0)
    found = combine_margins(poor, [poor, table], False, ROWS)
    assert np.abs(found.values - truth.sum(axis=1)).max() < 60.0
    assert found.variance == pytest.approx(1 / (1 / 200.0**2 + 1 / (25.0 * 8)), rel=1e-6)
    assert combine_margins(poor, [poor], True, ROWS).variance == SMOOTHED_VARIANCE * 200.0**2


@pytest.mark.parametrize("shape", [(1, 8, 8), (8, 1), (2, 9), (9, 2, 2)])
def test_an_axis_of_one_code_or_of_missing_alone_does_not_matter(shape: tuple[int, ...]) -> None:
    names = "xyz"[: len(shape)]
    one_way = [Estimate((name,), np.full(size, ROWS / size), 100.0) for name, size in zip(names, shape, strict=True)]
    table = Estimate(tuple(names), np.full(shape, ROWS / np.prod(shape)), STD**2)
    found = smooth_tables([*one_way, table], OrderedAttributes(set(names), set(names)), ROWS, [None] * (len(shape) + 1))
    assert np.isfinite(found[-1].values).all()
    assert found[-1].total == pytest.approx(ROWS)


def test_tables_without_a_possible_cell_stay() -> None:
    given = estimates(copula(6, 0.3), STD, 9)
    found = smooth_tables(given, NUMBERS, ROWS, [None, None, np.zeros((6, 6))])[2]
    assert np.isfinite(found.values).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 9), st.floats(-2, 5))
def test_never_fails_and_gives_counts(seed: int, log_rows: float, log_std: float) -> None:
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(1, 9, random.integers(2, 4)).tolist())
    names, rows, std = "xyz"[: len(shape)], 10.0**log_rows, 10.0**log_std
    noisy = [
        Estimate((name,), random.normal(rows / size, std, size), std**2)
        for name, size in zip(names, shape, strict=True)
    ]
    noisy.append(Estimate(tuple(names), random.normal(rows / np.prod(shape), std, shape), std**2))
    possible = (random.random(shape) < random.random()).astype(float)
    ordered = OrderedAttributes({name for name in names if random.random() < 0.7}, {"x"})
    found = smooth_tables(noisy, ordered, rows, [*[None] * len(shape), possible])[-1]
    assert np.isfinite(found.values).all()
    assert found is noisy[-1] or (found.values >= 0).all()
