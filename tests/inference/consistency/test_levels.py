"""Tables that count attributes at different levels become consistent: they agree on the coarser level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsyn.inference.consistency import TableLayout, find_level_overlaps, make_consistent, make_mutually_consistent
from dpsyn.marginals import Estimate

SIZE = 8
PAIRS, QUARTERS = np.arange(SIZE) // 2, np.arange(SIZE) // 4
UNEVEN = np.array([0, 1, 1, 1, 1, 2, 3, 3])


def table(
    clique: tuple[str, ...], std: float, rng: np.random.Generator, **levels: NDArray[np.int64]
) -> tuple[Estimate, NDArray[np.float64]]:
    """A noisy table of a fixed distribution over a, b and c; and the exact one."""
    truth = np.random.default_rng(0).gamma(0.5, 20, (SIZE, SIZE, SIZE))
    for axis, name in enumerate("abc"):
        groups = levels.get(name, np.arange(SIZE) if name in clique else np.zeros(SIZE, np.int64))
        summed = np.zeros((int(groups.max()) + 1, *np.delete(truth.shape, axis)))
        np.add.at(summed, groups, np.moveaxis(truth, axis, 0))
        truth = np.moveaxis(summed, 0, axis)
    exact = truth.reshape([size for size, name in zip(truth.shape, "abc", strict=True) if name in clique])
    return Estimate(clique, exact + rng.normal(0, std, exact.shape), std**2, levels), exact


def families(rng: np.random.Generator) -> list[tuple[Estimate, NDArray[np.float64]]]:
    return [
        table(("a",), 5.0, rng),
        table(("b",), 9.0, rng),
        table(("c",), 5.0, rng),
        table(("a", "b"), 8.0, rng, a=PAIRS, b=UNEVEN),
        table(("b", "c"), 4.0, rng, b=PAIRS, c=QUARTERS),
        table(("a", "c"), 8.0, rng, a=QUARTERS),
        table(("a", "b", "c"), 12.0, rng, a=QUARTERS, b=QUARTERS, c=PAIRS),
    ]


def project(estimate: Estimate, name: str, groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """The counts of groups of one attribute's values."""
    axis = estimate.clique.index(name)
    own = estimate.values.sum(axis=tuple(n for n in range(estimate.values.ndim) if n != axis))
    level = estimate.levels.get(name, np.arange(SIZE))
    of_own = np.zeros(int(level.max()) + 1, np.int64)
    of_own[level] = groups
    return np.bincount(of_own, own).astype(np.float64)


def test_tables_agree_on_the_coarser_of_their_levels() -> None:
    consistent = make_consistent([noisy for noisy, _ in families(np.random.default_rng(1))])

    for name in "abc":
        holders = [estimate for estimate in consistent if name in estimate.clique]
        assert len(holders) > 2
        sums = [project(e, name, QUARTERS) for e in holders if e.levels.get(name) is not UNEVEN]
        for one in sums:
            np.testing.assert_allclose(one, sums[0], atol=1.0)
    assert all((estimate.values >= 0).all() for estimate in consistent)


def test_one_pass_makes_nested_tables_agree_and_is_the_least_squares_solution() -> None:
    rng = np.random.default_rng(2)
    tables = [noisy for noisy, _ in families(rng) if not any(groups is UNEVEN for groups in noisy.levels.values())]
    layout = TableLayout.of(tables)
    vector, overlaps = layout.to_vector(tables), find_level_overlaps(layout)
    total = 5_000.0

    once, _ = make_mutually_consistent(vector, layout, overlaps, total)
    twice, gap = make_mutually_consistent(once, layout, overlaps, total)

    assert gap < 1e-8
    np.testing.assert_allclose(once, twice, atol=1e-8)
    rows, wanted = naive_constraints(layout, total)
    weights = 1 / np.repeat(layout.precisions, layout.cells)
    step = weights * (
        rows.T @ np.linalg.lstsq(rows @ (weights[:, None] * rows.T), wanted - rows @ vector, rcond=None)[0]
    )
    np.testing.assert_allclose(once, vector + step, atol=1e-6)


def naive_constraints(layout: TableLayout, total: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Every equation between two tables: their sums over each cell of everything that both determine."""
    rows, wanted = [], []
    masks = []
    for index, (clique, shape, levels) in enumerate(zip(layout.cliques, layout.shapes, layout.levels, strict=True)):
        start, stop = layout.starts[index], layout.starts[index] + layout.cells[index]
        everything = np.zeros(int(layout.cells.sum()))
        everything[start:stop] = 1
        rows.append(everything)
        wanted.append(total)
        masks.append((clique, shape, levels, start, stop))
    for one, other in [(x, y) for n, x in enumerate(masks) for y in masks[:n]]:
        shared = [name for name in one[0] if name in other[0]]
        coarse = []
        for name in shared:
            pair = [table[2].get(name, np.arange(SIZE)) for table in (one, other)]
            coarse.append(max(pair, key=lambda groups: -int(groups.max())))  # levels here are nested
        for cell in np.ndindex(*(int(groups.max()) + 1 for groups in coarse)):
            row = np.zeros(len(rows[0]))
            for sign, (clique, shape, levels, start, stop) in ((1, one), (-1, other)):
                inside = np.ones(shape, bool)
                for name, groups, value in zip(shared, coarse, cell, strict=True):
                    own = levels.get(name, np.arange(SIZE))
                    of_own = np.zeros(int(own.max()) + 1, np.int64)
                    of_own[own] = groups
                    axis = clique.index(name)
                    inside &= (of_own == value).reshape([-1 if n == axis else 1 for n in range(len(shape))])
                row[start:stop] += sign * inside.ravel()
            rows.append(row)
            wanted.append(0.0)
    return np.array(rows), np.array(wanted)


def test_precise_tables_at_coarse_levels_improve_the_others() -> None:
    before, after = [], []
    for seed in range(20):
        pairs = families(np.random.default_rng(seed))
        consistent = make_consistent([noisy for noisy, _ in pairs])
        for (noisy, exact), estimate in zip(pairs, consistent, strict=True):
            before.append(np.abs(noisy.values - exact).sum())
            after.append(np.abs(estimate.values - exact).sum())

    assert np.mean(after) < 0.8 * np.mean(before)
