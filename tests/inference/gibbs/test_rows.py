from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.errors import UserError
from dpsyn.inference.gibbs import (
    GibbsModel,
    chunk_sizes,
    fit,
    kernels,
    max_chunk_rows,
    polish,
    sample_chunk,
    sample_chunks,
)
from dpsyn.inference.gibbs.layout import Columns
from dpsyn.inference.methods import Gibbs
from dpsyn.marginals import Estimate
from tests.inference.gibbs import examples, naive
from tests.inference.gibbs.examples import Example

Conditions = Mapping[str, NDArray[np.bool_]]

SIZES = (3, 2, 4, 3)
CYCLE = Example(examples.dependent_codes(20_000, SIZES, 3), SIZES, ((0, 1), (1, 2), (2, 3), (0, 3)))
MAXIMUM = naive.maximum_entropy(CYCLE.tables(), CYCLE.names, CYCLE.sizes)


def only(size: int, *values: int) -> NDArray[np.bool_]:
    return np.isin(np.arange(size), values)


def rows_of(
    fitted: GibbsModel, rows: int, where: Conditions | None = None, seed: int = 1, options: Gibbs | None = None
) -> Columns:
    return np.concatenate(list(sample_chunks(fitted, rows, seed=seed, where=where, options=options)), axis=1)


@pytest.fixture(scope="module")
def cycle() -> GibbsModel:
    return fit(CYCLE.tables(), CYCLE.names, CYCLE.sizes, seed=0, records=20_000)


@pytest.fixture(scope="module")
def rare() -> tuple[GibbsModel, naive.Shares]:
    """A model in which attribute 0 has its last value once in 10⁵ records, and the distribution it should have."""
    shares = MAXIMUM.copy()
    shares[2] *= 1e-5 / shares[2].sum()
    shares[:2] *= (1 - 1e-5) / shares[:2].sum()
    tables = []
    for clique in CYCLE.cliques:
        gone = tuple(index for index in range(4) if index not in clique)
        tables.append(Estimate(tuple(map(str, clique)), shares.sum(axis=gone) * 1e6, 0.0))
    return fit(tables, CYCLE.names, SIZES, seed=0, records=50_000), shares


def test_rows_are_a_sample_of_maximum_entropy(cycle: GibbsModel) -> None:
    """As near as independent samples: 72 combinations of 40 000 samples are √(72/(2π·40 000)) = .017 away."""
    rows = rows_of(cycle, 40_000)

    assert naive.total_variation(naive.empirical_shares(rows, SIZES), MAXIMUM) <= 0.017
    assert examples.distances(rows, CYCLE.tables(), SIZES).mean() <= 0.002


@pytest.mark.parametrize("kind", examples.HARD)
def test_rows_match_tables_that_mix_slowly(kind: str) -> None:
    example = examples.HARD[kind](20_000)
    fitted = fit(example.tables(), example.names, example.sizes, seed=0, records=20_000)

    rows = rows_of(fitted, 20_000)

    assert examples.distances(rows, example.tables(), example.sizes).mean() <= 0.01


@pytest.mark.parametrize(
    "where",
    [
        {"1": only(2, 1)},
        {"2": only(4, 3), "0": only(3, 2)},
        {"0": only(3, 0, 1), "1": only(2, 0), "3": only(3, 0, 2)},
        {"3": only(3, 0, 1, 2)},
    ],
)
def test_rows_under_conditions_have_the_conditional_distribution(cycle: GibbsModel, where: Conditions) -> None:
    """With four seeds of the fit it was .010 … .024 away; sampling alone makes .01 of that."""
    exact, _ = naive.condition(MAXIMUM, CYCLE.names, where)

    rows = rows_of(cycle, 20_000, where)

    assert naive.total_variation(naive.empirical_shares(rows, SIZES), exact) <= 0.035
    assert all(where[name][rows[int(name)]].all() for name in where)


def test_rows_under_a_condition_follow_many_exact_tables_as_other_rows_do() -> None:
    sizes = (3,) * 8
    triples = tuple(combinations(range(8), 3))
    exact = Example(examples.dependent_codes(20_000, sizes, 5), sizes, triples)
    fitted = fit(exact.tables(), exact.names, sizes, seed=0)
    alike = exact.records[:, exact.records[7] == 2]

    rows = rows_of(fitted, 16_000, {"7": only(3, 2)})

    pairs = [examples.table(alike, pair, sizes) for pair in combinations(range(7), 2)]
    assert examples.distances(rows, pairs, sizes).mean() <= 0.01  # .023 without a pull


def test_a_condition_of_probability_one_in_a_hundred_thousand_is_met_as_exactly(
    rare: tuple[GibbsModel, naive.Shares],
) -> None:
    fitted, shares = rare
    where = {"0": only(3, 2)}
    exact, likely = naive.condition(shares, CYCLE.names, where)

    rows = rows_of(fitted, 20_000, where)

    assert likely == pytest.approx(1e-5)
    assert (rows[0] == 2).all()
    assert (
        naive.total_variation(naive.empirical_shares(rows, SIZES), exact) <= 0.1
    )  # .02 … .05 with four seeds: half a record of the fit has that value


def test_a_rare_condition_takes_no_more_sweeps_and_rows_than_a_common_one(
    rare: tuple[GibbsModel, naive.Shares], monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[int] = []
    real = kernels.sweep

    def count_calls(columns: Columns, first: int, stop: int, *rest: object) -> int:
        swept.append(stop - first)
        return real(columns, first, stop, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(kernels, "sweep", count_calls)
    for value in (0, 2):
        sample_chunk(rare[0], 1000, 0, seed=1, where={"0": only(3, value)})

    common, seldom = swept[: len(swept) // 2], swept[len(swept) // 2 :]
    assert common == seldom == [1000] * Gibbs().conditional_sweeps


def test_conditions_that_tables_rule_out_are_still_met() -> None:
    never = Estimate(("0", "1"), np.array([[50.0, 0.0], [0.0, 50.0]]), 0.0)
    other = Estimate(("1", "2"), np.array([[0.0, 50.0], [50.0, 0.0]]), 0.0)
    fitted = fit([never, other], ["0", "1", "2"], [2, 2, 2], seed=0, records=2000)

    rows = rows_of(fitted, 500, {"0": only(2, 0), "1": only(2, 1)})

    assert rows.shape == (3, 500)
    assert not rows[0].any()
    assert rows[1].all()
    assert not rows[2].any()  # the other table still holds for such rows


def test_a_condition_on_a_value_that_no_record_has_is_met() -> None:
    fitted = fit([Estimate(("0", "1"), np.array([[9.0, 0.0], [3.0, 0.0]]), 0.0)], ["0", "1"], [2, 2], seed=0)

    rows = rows_of(fitted, 400, {"1": only(2, 1)})

    assert rows[1].all()
    assert 0 < rows[0].sum() < 400


@pytest.mark.parametrize(
    ("where", "complaint"),
    [
        ({"9": only(2, 1)}, "no attribute '9' to set a condition on; there are 0, 1, 2, 3"),
        ({"1": only(2)}, "allows none of its 2 values"),
        ({"1": only(3, 1)}, "2 values"),
    ],
)
def test_wrong_conditions_are_refused(cycle: GibbsModel, where: Conditions, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        rows_of(cycle, 10, where)


def test_a_chunk_depends_on_the_seed_its_number_and_its_size_alone(cycle: GibbsModel) -> None:
    together = list(sample_chunks(cycle, 900, seed=7, chunk=300))

    assert [chunk.shape for chunk in together] == [(4, 300)] * 3
    for number in (2, 0, 1):
        alone = sample_chunk(cycle, 300, number, seed=7)
        assert np.array_equal(alone, together[number])
    assert not np.array_equal(together[0], together[1])
    assert not np.array_equal(together[0], sample_chunk(cycle, 300, 0, seed=8))


@pytest.mark.parametrize("where", [None, {"1": only(2, 1)}])
def test_rows_are_the_same_with_any_number_of_threads(
    cycle: GibbsModel, where: Conditions | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = []
    for cores in (1, 16):
        for name in ("cpu_count", "process_cpu_count"):
            monkeypatch.setattr(os, name, lambda cores=cores: cores, raising=False)
        result.append(np.concatenate(list(sample_chunks(cycle, 5000, seed=3, where=where, chunk=500)), axis=1))

    assert np.array_equal(result[0], result[1])


def test_many_chunks_come_in_order_while_later_ones_are_sampled(cycle: GibbsModel) -> None:
    reported: list[float] = []

    chunks = list(sample_chunks(cycle, 400, seed=3, chunk=10, progress=lambda _, share: reported.append(share)))

    assert all(np.array_equal(chunks[index], sample_chunk(cycle, 10, index, seed=3)) for index in (0, 20, 39))
    assert reported == sorted(reported)
    assert reported[-1] == 1.0


def test_no_rows_are_one_empty_chunk(cycle: GibbsModel) -> None:
    for where in (None, {"1": only(2, 1)}):
        chunks = list(sample_chunks(cycle, 0, seed=1, where=where))

        assert [chunk.shape for chunk in chunks] == [(4, 0)]


def test_a_single_row_is_a_row(cycle: GibbsModel) -> None:
    for where in (None, {"1": only(2, 1)}):
        row = rows_of(cycle, 1, where)

        assert row.shape == (4, 1)
        assert all(row[index, 0] < size for index, size in enumerate(SIZES))


def test_a_negative_number_of_rows_is_refused(cycle: GibbsModel) -> None:
    with pytest.raises(UserError, match="number of rows is -1; give 0 or more"):
        rows_of(cycle, -1)


def test_rows_of_attributes_with_many_values_are_wide_enough() -> None:
    counts = np.zeros(66_000)
    counts[[5, 65_999]] = 50.0
    fitted = fit([Estimate(("0",), counts, 0.0)], ["0"], [66_000], seed=0, records=500)

    rows = rows_of(fitted, 100)

    assert set(rows[0].tolist()) == {5, 65_999}
    assert set(polish(rows, fitted, seed=0)[0].tolist()) == {5, 65_999}


@given(st.integers(0, 10**6), st.integers(1, 10**5))
def test_chunks_are_few_and_even(rows: int, chunk: int) -> None:
    sizes = chunk_sizes(rows, chunk)

    assert sum(sizes) == rows
    assert max(sizes) <= chunk
    assert max(sizes) - min(sizes) <= 1
    assert len(sizes) == max(1, -(-rows // chunk))


def test_polishing_takes_the_noise_of_sampling_out_of_the_tables(cycle: GibbsModel) -> None:
    rng = np.random.default_rng(0)
    sampled = np.array(np.unravel_index(rng.choice(72, 20_000, p=MAXIMUM.ravel()), SIZES), np.uint16)

    polished = polish(sampled, cycle, seed=0)

    before = examples.distances(sampled, CYCLE.tables(), SIZES).mean()
    after = examples.distances(polished, CYCLE.tables(), SIZES).mean()
    assert after < 0.2 * before
    assert (
        naive.total_variation(naive.empirical_shares(polished, SIZES), MAXIMUM) <= 0.024
    )  # and leaves the rest as it is


def test_rows_of_exact_tables_are_tightened_beyond_polishing() -> None:
    sizes = (5,) * 7
    exact = Example(examples.dependent_codes(5_000, sizes, 5), sizes, tuple(combinations(range(7), 3)))
    fitted = fit(exact.tables(), exact.names, sizes, seed=0)

    rows = [rows_of(fitted, 5_000, options=Gibbs(max_tightening_sweeps=pressed)) for pressed in (0, 28)]

    polished, pressed = (examples.distances(columns, exact.tables(), sizes).mean() for columns in rows)
    assert pressed <= 0.7 * polished


def test_rows_of_precise_tables_are_one_chunk_as_far_as_memory_allows(cycle: GibbsModel) -> None:
    noisy = fit(CYCLE.tables(variance=2500.0), CYCLE.names, CYCLE.sizes, seed=0, records=20_000)

    assert [len(list(sample_chunks(fitted, 40_000, seed=1))) for fitted in (cycle, noisy)] == [1, 3]
    assert max_chunk_rows(cycle, 300_000) >= 300_000
    assert max_chunk_rows(cycle, 10**8) == max_chunk_rows(noisy, 10**8) < 10**5


def test_rows_of_noisy_tables_are_not_tightened_beyond_the_noise() -> None:
    noisy = [Estimate(table.clique, table.values, 1e4) for table in CYCLE.tables()]
    fitted = fit(noisy, CYCLE.names, SIZES, seed=0, records=20_000)

    rows = [rows_of(fitted, 5_000, options=Gibbs(max_tightening_sweeps=pressed)) for pressed in (0, 28)]

    assert fitted.noise_distance == pytest.approx(
        sum(table.values.size for table in noisy) / 4 * 100 * 0.79788 / 40_000, rel=1e-4
    )
    assert np.array_equal(rows[0], rows[1])
