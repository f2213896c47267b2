from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.errors import InternalError
from dpsyn.inference import ConsistencyOptions, make_consistent, norm_sub
from dpsyn.marginals import Clique, Estimate
from tests.inference.consistency import families

plain = ConsistencyOptions(extrapolate=False)
few = settings(max_examples=50)


# ── what is promised ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("options", [ConsistencyOptions(), plain])
@few
@given(families.noisy_tables(), st.floats(0.1, 2000))
def test_tables_agree_have_the_total_and_are_not_negative(
    options: ConsistencyOptions, tables: list[Estimate], total: float
) -> None:
    result = make_consistent(tables, total=total, options=options)

    assert families.gaps(result) < min(0.5, total / 1000)
    assert [table.total for table in result] == pytest.approx([total] * len(result), rel=1e-12)
    assert min(table.values.min() for table in result) >= 0


@few
@given(families.noisy_tables())
def test_there_is_a_table_for_each_set_of_attributes_as_it_came_first(tables: list[Estimate]) -> None:
    result = make_consistent(tables)

    sets: dict[frozenset[str], Clique] = {}
    for table in tables:
        sets.setdefault(frozenset(table.clique), table.clique)
    assert [table.clique for table in result] == list(sets.values())
    shapes = {table.clique: table.values.shape for table in tables}
    assert all(table.values.shape == shapes[table.clique] for table in result)


@few
@given(families.exact_tables())
def test_tables_that_agree_and_are_not_negative_stay_as_they_are(tables: list[Estimate]) -> None:
    result = make_consistent(tables)

    before = {table.clique: table for table in reversed(tables)}
    for table in result:
        assert table.values == pytest.approx(before[table.clique].values, abs=1e-9)


@few
@given(families.noisy_tables(), st.data())
def test_the_order_of_tables_and_of_axes_makes_no_difference(tables: list[Estimate], data: st.DataObject) -> None:
    other = []
    for table in data.draw(st.permutations(tables)):
        clique = tuple(data.draw(st.permutations(table.clique)))
        other.append(Estimate(clique, table.project(clique), table.variance))

    result, turned = make_consistent(tables, total=1000.0), make_consistent(other, total=1000.0)

    by_set = {frozenset(table.clique): table for table in turned}
    for table in result:
        assert by_set[frozenset(table.clique)].project(table.clique) == pytest.approx(table.values, abs=0.5)


@few
@given(families.noisy_tables(), st.integers(1, 3))
def test_after_few_rounds_tables_are_not_negative_and_have_the_total_all_the_same(
    tables: list[Estimate], rounds: int
) -> None:
    result = make_consistent(tables, total=100.0, options=ConsistencyOptions(rounds=rounds))

    assert [table.total for table in result] == pytest.approx([100.0] * len(result), rel=1e-12)
    assert min(table.values.min() for table in result) >= 0


def test_if_rounds_are_not_enough_the_nearest_tables_are_kept() -> None:
    pairs = _pairs()  # their gap rises in the rounds 7 and 8

    gaps = [families.gaps(make_consistent(pairs, options=ConsistencyOptions(rounds=rounds))) for rounds in range(1, 12)]

    assert gaps == sorted(gaps, reverse=True)
    assert 0.5 < gaps[-1] < gaps[0] / 10


@few
@given(families.noisy_tables(variances=(0.0, 1e-300, 1.0, 1e300, math.inf)))
def test_zero_and_infinite_variances_give_finite_tables(tables: list[Estimate]) -> None:
    result = make_consistent(tables, total=100.0)

    assert [table.total for table in result] == pytest.approx([100.0] * len(result), rel=1e-12)
    assert min(table.values.min() for table in result) >= 0


@few
@given(families.noisy_tables())
def test_ending_on_norm_cut_tables_still_agree_nearly(tables: list[Estimate]) -> None:
    result = make_consistent(tables, total=1000.0, options=ConsistencyOptions(norm_cut=True))

    assert families.gaps(result) < 5.0
    assert [table.total for table in result] == pytest.approx([1000.0] * len(result), rel=1e-12)
    assert min(table.values.min() for table in result) >= 0


# ── single cases ─────────────────────────────────────────────────────────────────────────────────────────────


def test_no_tables_make_no_tables() -> None:
    assert make_consistent([]) == []


def test_one_table_is_made_non_negative_and_keeps_its_total() -> None:
    table = Estimate(("a", "b"), np.array([[6.0, 3.0], [1.0, -4.0]]), 2.0)

    (result,) = make_consistent([table])

    assert result.values == pytest.approx(norm_sub(table.values, 6.0))
    assert (result.clique, result.variance) == (("a", "b"), 2.0)


def test_tables_that_share_nothing_have_the_same_total() -> None:
    first, second = Estimate(("a",), np.array([10.0, 20.0]), 1.0), Estimate(("b",), np.array([40.0, -4.0]), 1.0)

    result = make_consistent([first, second])

    assert result[0].values == pytest.approx(np.array([11.5, 21.5]))  # 30 and 36 make 33 together
    assert result[1].values == pytest.approx(np.array([33.0, 0.0]))


def test_tables_of_the_same_attributes_become_their_mean_by_inverse_variance() -> None:
    first = Estimate(("a", "b"), np.array([[10.0, 20.0], [30.0, 40.0]]), 1.0)
    second = Estimate(("b", "a"), np.array([[14.0, 34.0], [24.0, 44.0]]), 3.0)

    (result,) = make_consistent([first, second])

    assert result.clique == ("a", "b")
    assert result.values == pytest.approx(np.array([[11.0, 21.0], [31.0, 41.0]]))
    assert result.variance == pytest.approx(0.75)


def test_a_known_total_is_kept() -> None:
    tables = [Estimate(("a",), np.array([10.0, 20.0]), 1.0), Estimate(("a", "b"), np.array([[9.0], [18.0]]), 4.0)]

    result = make_consistent(tables, total=50.0)

    assert [table.total for table in result] == pytest.approx([50.0, 50.0])


def test_an_exact_table_stays_and_others_follow_it() -> None:
    exact = Estimate(("a",), np.array([30.0, 0.0, 70.0]), 0.0)
    noisy = Estimate(("b", "a"), np.array([[11.0, -4.0, 30.0], [12.0, 9.0, 55.0]]), 25.0)

    result = make_consistent([noisy, exact])

    assert result[1].values == pytest.approx(exact.values, abs=1e-6)
    assert result[0].project(("a",)) == pytest.approx(exact.values, abs=0.1)


def test_inconsistent_tables_without_noise_are_averaged() -> None:
    tables = [Estimate((name,), np.array(cells), 0.0) for name, cells in (("a", [4.0, 4.0]), ("b", [5.0, 7.0]))]

    result = make_consistent(tables)

    assert [table.values.tolist() for table in result] == [[5.0, 5.0], [4.0, 6.0]]


@pytest.mark.parametrize("cell", [0.0, -5.0])
def test_tables_without_a_positive_total_are_all_zero(cell: float) -> None:
    tables = [Estimate(("a",), np.array([cell, cell]), 1.0), Estimate(("a", "b"), np.full((2, 3), cell), 1.0)]

    result = make_consistent(tables)

    assert [table.values.tolist() for table in result] == [[0.0] * 2, [[0.0] * 3] * 2]


def test_tables_are_all_zero_if_the_total_is_known_to_be() -> None:
    (result,) = make_consistent([Estimate(("a",), np.array([3.0, 5.0]), 1.0)], total=0.0)

    assert result.values.tolist() == [0.0, 0.0]


def test_zero_cells_everywhere_share_a_known_total_alike() -> None:
    result = make_consistent(
        [Estimate(("a",), np.zeros(2), 1.0), Estimate(("a", "b"), np.zeros((2, 2)), 1.0)], total=8.0
    )

    assert result[0].values == pytest.approx(np.array([4.0, 4.0]))
    assert result[1].values == pytest.approx(np.full((2, 2), 2.0))


def test_a_table_of_one_cell_is_a_measurement_of_the_total() -> None:
    count, table = Estimate((), np.array(90.0), 1.0), Estimate(("a",), np.array([50.0, 60.0]), 4.5)

    result = make_consistent([count, table])

    assert result[0].values == pytest.approx(np.array(92.0))  # 90 weighs 1, 110 weighs 1 / (2 · 4.5)
    assert result[1].values == pytest.approx(np.array([41.0, 51.0]))


def test_ending_on_norm_cut_leaves_more_cells_empty() -> None:
    tables, _ = _survey(1)

    result, cut = make_consistent(tables), make_consistent(tables, options=ConsistencyOptions(norm_cut=True))

    assert sum(np.count_nonzero(table.values) for table in cut) < sum(np.count_nonzero(t.values) for t in result)


def test_the_given_tables_are_not_changed() -> None:
    tables = [Estimate(("a",), np.array([7.0, -2.0]), 1.0), Estimate(("a", "b"), np.array([[1.0], [9.0]]), 1.0)]

    make_consistent(tables)

    assert [table.values.tolist() for table in tables] == [[7.0, -2.0], [[1.0], [9.0]]]


def test_progress_is_reported_from_beginning_to_end() -> None:
    reported: list[tuple[str, float]] = []

    make_consistent(_survey(1)[0], progress=lambda phase, done: reported.append((phase, done)))

    fractions = [done for _, done in reported]
    assert {phase for phase, _ in reported} == {"making tables agree"}
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    assert fractions == sorted(fractions)


@pytest.mark.parametrize(("cell", "total"), [(math.nan, None), (math.inf, 5.0), (1.0, math.nan)])
def test_numbers_that_are_not_finite_are_refused(cell: float, total: float | None) -> None:
    with pytest.raises(InternalError, match="is not finite"):
        make_consistent([Estimate(("a",), np.array([cell, 1.0]), 1.0)], total=total)


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"tolerance": 0.0}, {"tolerance": math.nan}])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InternalError, match=r"rounds is 0|tolerance is (0.0|nan)"):
        ConsistencyOptions(**wrong)


# ── what it is good for ──────────────────────────────────────────────────────────────────────────────────────


def _survey(seed: int, std: float = 20.0) -> tuple[list[Estimate], list[Estimate]]:
    """Ten noisy tables of 3 000 dependent rows, two in three of them pairs, and the true ones."""
    generator = np.random.default_rng(seed)
    sizes = {f"a{index}": int(size) for index, size in enumerate(generator.integers(2, 9, 6))}
    common = generator.random(3000)
    codes = np.stack([(common * generator.random(3000) * size).astype(np.int64) for size in sizes.values()], axis=1)
    cliques = {tuple(generator.permutation(list(sizes))[: 2 + index // 7].tolist()) for index in range(10)}
    truth = [families.count(codes, sizes, clique, std**2) for clique in sorted(cliques)]
    noise = [generator.normal(0, std, table.values.shape) for table in truth]
    noisy = [Estimate(t.clique, t.values + n, t.variance) for t, n in zip(truth, noise, strict=True)]
    return noisy, truth


def _pairs() -> list[Estimate]:
    """Noisy tables of all pairs of six attributes, few of whose values are frequent."""
    generator = np.random.default_rng(8)
    sizes = {f"a{size}": size for size in (2, 3, 5, 9, 17, 33)}
    codes = (generator.random((3000, 6)) ** 4 * np.array(list(sizes.values()))).astype(np.int64)
    truth = [families.count(codes, sizes, pair, 900.0) for pair in combinations(sizes, 2)]
    return [Estimate(t.clique, t.values + generator.normal(0, 30, t.values.shape), t.variance) for t in truth]


def _error(tables: Sequence[Estimate], truth: Sequence[Estimate]) -> float:
    by_set = {frozenset(table.clique): table for table in tables}
    return float(np.mean([np.abs(by_set[frozenset(t.clique)].project(t.clique) - t.values).sum() for t in truth]))


@pytest.mark.parametrize("options", [ConsistencyOptions(), plain, ConsistencyOptions(norm_cut=True)])
def test_tables_that_agree_are_nearer_to_the_truth_than_those_that_are_only_non_negative(
    options: ConsistencyOptions,
) -> None:
    before, alone, after = 0.0, 0.0, 0.0

    for seed in range(20):  # 200 tables; the seeds are fixed, so that this cannot fail by chance
        noisy, truth = _survey(seed)
        before += _error(noisy, truth)
        alone += _error([Estimate(t.clique, norm_sub(t.values, t.total), t.variance) for t in noisy], truth)
        after += _error(make_consistent(noisy, options=options), truth)

    assert after < 0.8 * alone < 0.8 * before


def _rounds(options: ConsistencyOptions) -> int:
    reported: list[float] = []
    for seed in range(5):
        make_consistent(_survey(seed)[0], options=options, progress=lambda _, done: reported.append(done))
    return len(reported)


def test_extrapolation_saves_half_of_the_rounds_or_more() -> None:
    assert (
        _rounds(ConsistencyOptions(tolerance=1e-3)) < _rounds(ConsistencyOptions(tolerance=1e-3, extrapolate=False)) / 2
    )
