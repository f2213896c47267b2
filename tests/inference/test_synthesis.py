from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from dpsyn.errors import InternalError, UserError
from dpsyn.inference.methods import GUM, MCF
from dpsyn.inference.synthesis import synthesize_records
from dpsyn.marginals import Estimate
from tests.inference.gum import naive, tables

SIZES = [3, 4, 1, 5, 3, 6, 2, 4]
NAMES = tables.names(SIZES)


def exact(rows: int, *cliques: tuple[int, ...]) -> list[Estimate]:
    given = tables.dependent_records(rows, SIZES, 0)
    return [tables.table(given, clique, SIZES) for clique in cliques]


@pytest.mark.parametrize("method", [GUM(rounds=0), MCF(passes=0)])
def test_trees_of_tables_are_matched_up_to_rounding(method: GUM | MCF) -> None:
    targets = exact(5000, (0, 1), (1, 2), (1, 3, 5), (5, 4), (6, 7))

    records = synthesize_records(targets, NAMES, SIZES, 5000, seed=0, method=method)

    assert tables.distances(records, targets).tolist() == [0] * 5


def test_trees_are_matched_to_rounding_for_any_number_of_rows() -> None:
    targets = exact(5000, (0, 1), (1, 3))

    records = synthesize_records(targets, ["0", "1", "3"], [3, 4, 5], 777, seed=0)

    # a parent's count is off by less than 1, and so is each code's within it
    for indices, target in zip(([0, 1], [1, 2]), targets, strict=True):
        counts = naive.count_cells(records, indices, target.values.shape)
        assert np.abs(counts - 777 / 5000 * target.values).max() < 2


@pytest.mark.parametrize("method", [None, GUM(), MCF()])
def test_cycles_of_tables_are_nearly_matched(method: GUM | MCF | None) -> None:
    circle = [*pairwise(range(8)), (7, 0), (0, 3), (1, 5)]
    targets = exact(10_000, *circle)

    records = synthesize_records(targets, NAMES, SIZES, 10_000, seed=0, method=method)

    assert tables.distances(records, targets).max() < 0.006


def test_components_are_independent() -> None:
    targets = exact(20_000, (1, 5), (4, 7), (0,), (2,), (3,), (6,))

    records = synthesize_records(targets, NAMES, SIZES, 20_000, seed=0)

    assert tables.distances(records, targets[:2]).tolist() == [0, 0]
    apart = [pair for pair in combinations((0, 1, 3, 4, 5, 6, 7), 2) if pair not in [(1, 5), (4, 7)]]
    worst = max(abs(np.asarray(np.corrcoef(records.T[list(pair)]))[0, 1]) for pair in apart)
    assert worst < 5 / np.sqrt(20_000)  # 19 pairs: once in 90 000 runs


def test_gum_is_the_default_method() -> None:
    targets = exact(2000, (0, 1), (1, 3), (3, 0), (4, 5), (6,), (2,), (7,))

    default, gum, mcf = (
        synthesize_records(targets, NAMES, SIZES, 2000, seed=1, method=method) for method in (None, GUM(), MCF())
    )

    assert np.array_equal(default, gum)
    assert not np.array_equal(default, mcf)


@pytest.mark.parametrize("method", [GUM(), MCF()])
def test_a_seed_gives_the_same_bytes_whatever_the_threads(method: GUM | MCF) -> None:
    targets = exact(2000, (0, 1), (1, 3), (3, 0), (4, 5), (5, 7), (7, 4), (6,), (2,))

    runs = [
        synthesize_records(targets, NAMES, SIZES, 2000, seed=seed, threads=threads, method=method).tobytes()
        for seed, threads in ((1, 1), (1, 4), (1, None), (2, 1))
    ]

    assert runs[0] == runs[1] == runs[2] != runs[3]


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("method", [GUM(rounds=2), MCF(passes=2)])
def test_any_number_of_rows_comes_in_the_given_order_of_attributes(rows: int, method: GUM | MCF) -> None:
    targets = exact(100, *combinations(range(8), 2))

    records = synthesize_records(targets, NAMES, SIZES, rows, seed=0, method=method)

    assert (records.shape, str(records.dtype), records.flags.f_contiguous) == ((rows, 8), "int32", True)
    assert np.all((records >= 0) & (records < SIZES))


@pytest.mark.parametrize("method", [GUM(), MCF()])
def test_tables_of_zeros_count_as_uniform(method: GUM | MCF) -> None:
    zeros = [Estimate(pair, np.zeros((2, 2)), 1.0) for pair in (("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"))]

    records = synthesize_records(zeros, "abcd", [2, 2, 2, 2], 40_000, seed=0, method=method)

    assert np.abs(records.mean(axis=0) - 0.5).max() < 1e-4


def test_hundreds_of_attributes_are_synthesized() -> None:
    rng, size = np.random.default_rng(0), 400
    names = [f"a{index}" for index in range(size)]
    chain = [Estimate(pair, rng.integers(0, 100, (3, 3)).astype(float), 1.0) for pair in pairwise(names[:300])]
    alone = [Estimate((name,), rng.random(3), 1.0) for name in names[300:]]

    records = synthesize_records([*chain, *alone], names, [3] * size, 1000, seed=0)

    assert records.shape == (1000, size)
    assert np.bincount(records[:, 399], minlength=3) == pytest.approx(1000 * alone[-1].values / alone[-1].total, abs=1)


def test_progress_rises_to_the_end() -> None:
    targets = exact(1000, (0, 1), (1, 3), (3, 0), (4, 5), (5, 7), (7, 4), (6,), (2,))
    reported: list[float] = []

    synthesize_records(targets, NAMES, SIZES, 1000, seed=0, progress=lambda _, done: reported.append(done))

    assert reported == sorted(reported)
    assert reported[-1] == pytest.approx(1.0)


def test_a_table_too_large_for_min_cost_flow_is_refused_before_any_work() -> None:
    sides = [Estimate(pair, np.ones((200, 200)), 1.0) for pair in (("a", "b"), ("b", "c"), ("c", "a"))]
    reported: list[float] = []

    with pytest.raises(UserError, match=r"MCF cannot match the table of a, b: .*use GUM"):
        synthesize_records(
            *(sides, "abc", [200, 200, 200], 10), seed=0, method=MCF(), progress=lambda _, done: reported.append(done)
        )

    assert reported == []


def test_min_cost_flow_accepts_a_large_table_that_is_appended() -> None:
    large = Estimate(("a", "b"), np.ones((400, 400)), 1.0)

    records = synthesize_records([large], "ab", [400, 400], 1000, seed=0, method=MCF())

    assert records.shape == (1000, 2)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.array([[1.0, 2.0]]), "does not fit"),
        (np.array([[1.0, -2.0], [0.0, 0.0]]), "negative"),
        (np.array([[1.0, np.nan], [0.0, 0.0]]), "not a number"),
    ],
)
def test_tables_that_do_not_fit_the_attributes_are_refused(values: NDArray[np.float64], words: str) -> None:
    with pytest.raises(InternalError, match=words):
        synthesize_records([Estimate(("a", "b"), values, 1.0)], "ab", [2, 2], 10, seed=0)


def test_an_attribute_without_a_table_is_refused() -> None:
    with pytest.raises(InternalError, match="no table has the attributes b"):
        synthesize_records([Estimate(("a",), np.ones(2), 1.0)], "ab", [2, 2], 10, seed=0)


def test_a_negative_number_of_rows_is_refused() -> None:
    with pytest.raises(InternalError, match="number of rows is -1"):
        synthesize_records([Estimate(("a",), np.ones(2), 1.0)], "a", [2], -1, seed=0)
