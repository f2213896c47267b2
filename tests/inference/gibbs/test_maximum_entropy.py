from __future__ import annotations

import os
from itertools import combinations

import numpy as np
import pytest

from dpsyn.errors import InternalError
from dpsyn.inference.gibbs import GibbsModel, fit, sample_chunks
from dpsyn.inference.methods import Gibbs
from dpsyn.marginals import Estimate
from tests.inference.gibbs import examples, naive
from tests.inference.gibbs.examples import Example

RECORDS = 20_000
SMALL = (3, 2, 4, 3)
SHAPES = {
    "a chain": ((0, 1), (1, 2), (2, 3)),
    "a cycle": ((0, 1), (1, 2), (2, 3), (0, 3)),
    "all pairs": tuple(combinations(range(4), 2)),
    "triples": ((0, 1, 2), (1, 2, 3)),
    "a circle of triples": ((0, 1, 2), (1, 2, 3), (0, 2, 3)),
}


def small(shape: str) -> Example:
    return Example(examples.dependent_codes(RECORDS, SMALL, 3), SMALL, SHAPES[shape])


def fit_example(example: Example, variance: float = 0.0, seed: int = 0, records: int = RECORDS) -> GibbsModel:
    return fit(example.tables(variance), example.names, example.sizes, seed=seed, records=records)


def same(one: GibbsModel, other: GibbsModel) -> bool:
    arrays = [(result.parameters, result.expected_shares, result.records) for result in (one, other)]
    return all(np.array_equal(*pair) for pair in zip(*arrays, strict=True)) and one.distances == other.distances


@pytest.mark.parametrize("shape", SHAPES)
def test_parameters_are_those_of_maximum_entropy(shape: str) -> None:
    """Their distribution over all combinations was .004 … .015 away; with the forces of a stiff penalty .05 … .14."""
    example = small(shape)
    exact = naive.maximum_entropy(example.tables(), example.names, example.sizes)

    result = naive.own_distribution(fit_example(example))

    assert naive.total_variation(result, exact) <= 0.03


@pytest.mark.parametrize("shape", SHAPES)
def test_marginals_are_those_of_maximum_entropy_even_of_pairs_without_a_table(shape: str) -> None:
    example = small(shape)
    exact = naive.maximum_entropy(example.tables(), example.names, example.sizes)

    result = fit_example(example)

    for marginal in result.marginals():
        own = naive.over_all(marginal, example.names)
        gone = tuple(np.flatnonzero(np.array(own.shape) == 1))
        measured = any(set(map(int, marginal.clique)) <= set(clique) for clique in example.cliques)
        assert naive.total_variation(own / result.total, exact.sum(axis=gone, keepdims=True)) <= (
            0.001 if measured else 0.01
        )


@pytest.mark.parametrize("shape", SHAPES)
def test_records_of_the_fit_are_a_sample_of_maximum_entropy(shape: str) -> None:
    """As near as independent samples at least: 72 combinations of 20 000 samples are √(72/(2π·20 000)) = .024 away."""
    example = small(shape)
    exact = naive.maximum_entropy(example.tables(), example.names, example.sizes)

    result = fit_example(example)

    assert naive.total_variation(naive.empirical_shares(result.records, example.sizes), exact) <= 0.024


def test_exact_tables_of_a_tree_are_matched_nearly_to_rounding() -> None:
    example = examples.tree(RECORDS)

    result = fit_example(example)

    assert examples.distances(result.records, example.tables(), example.sizes).mean() <= 0.002
    assert examples.marginal_distances(result, example.tables()).mean() <= 0.0005


@pytest.mark.parametrize("width", [2, 3, 4])
def test_exact_tables_of_any_width_are_matched(width: int) -> None:
    example = examples.all_cliques(RECORDS, width)

    result = fit_example(example)

    assert examples.distances(result.records, example.tables(), example.sizes).mean() <= 0.01


@pytest.mark.parametrize("kind", examples.HARD)
def test_relations_that_mix_slowly_do_not_break_the_fit(kind: str) -> None:
    """The mean over all tables was .0001 … .002; the largest of any table .004."""
    example = examples.HARD[kind](RECORDS)

    result = fit_example(example)

    assert examples.distances(result.records, example.tables(), example.sizes).mean() <= 0.01
    assert examples.marginal_distances(result, example.tables()).mean() <= 0.01


def test_noisy_tables_are_followed_only_as_far_as_they_are_known() -> None:
    """Two attributes without relation: noise in their table makes none."""
    rng = np.random.default_rng(1)
    even = np.full((10, 10), 200.0)
    noisy = Estimate(("0", "1"), np.maximum(even + rng.normal(0, 100.0, even.shape), 0.0), 100.0**2)
    sides = [Estimate((name,), np.full(10, 2000.0), 1.0) for name in "01"]

    result = fit([noisy, *sides], ["0", "1"], [10, 10], seed=0, records=RECORDS)

    reported = next(marginal for marginal in result.marginals() if len(marginal.clique) == 2)
    noise = np.abs(noisy.values / noisy.total - 0.01).sum() / 2
    assert np.abs(reported.values / reported.total - 0.01).sum() / 2 < 0.3 * noise


def test_fits_are_the_same_with_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    example = examples.all_cliques(RECORDS, 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 1, raising=False)
    alone = fit_example(example)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 16, raising=False)

    together = fit_example(example)

    assert same(alone, together)


def test_a_seed_is_all_that_a_fit_depends_on() -> None:
    example = small("a cycle")

    first, again, other = fit_example(example, seed=5), fit_example(example, seed=5), fit_example(example, seed=6)

    assert same(first, again)
    assert not np.array_equal(first.records, other.records)


def test_tables_without_records_count_as_even() -> None:
    empty = [Estimate(("0", "1"), np.zeros((3, 4)), variance) for variance in (0.0, 25.0)]

    for tables in ([empty[0]], [empty[1]], empty):
        result = fit(tables, ["0", "1"], [3, 4], seed=0, records=6000)

        assert result.total == 1
        assert naive.empirical_shares(result.records, (3, 4)) == pytest.approx(np.full((3, 4), 1 / 12), abs=0.02)


def test_a_table_without_records_beside_others_leaves_their_number_and_their_counts() -> None:
    sides = [Estimate(("0",), np.array([900.0, 100.0]), 1.0), Estimate(("1",), np.zeros(3), 1.0)]

    result = fit(sides, ["0", "1"], [2, 3], seed=0, records=6000)

    assert result.total == pytest.approx(1000)
    assert result.records[0].mean() == pytest.approx(0.1, abs=0.005)
    assert np.bincount(result.records[1], minlength=3) == pytest.approx([2000] * 3, abs=60)


def test_exact_tables_that_disagree_are_followed_half_way() -> None:
    tables = [
        Estimate(("0", "1"), np.array([[400.0, 100.0], [100.0, 400.0]]), 0.0),
        Estimate(("0", "2"), np.array([[350.0, 350.0], [150.0, 150.0]]), 0.0),
    ]

    result = fit(tables, ["0", "1", "2"], [2, 2, 2], seed=0, records=RECORDS)

    assert 0.3 < result.records[0].mean() < 0.5
    assert np.isfinite(result.parameters).all()


def test_tables_of_the_same_attributes_are_averaged_by_inverse_variance() -> None:
    good = Estimate(("0", "1"), np.array([[800.0, 0.0], [0.0, 200.0]]), 1.0)
    poor = Estimate(("1", "0"), np.array([[200.0, 0.0], [0.0, 800.0]]), 99.0)

    result = fit([good, poor], ["0", "1"], [2, 2], seed=0, records=RECORDS)

    assert result.records[0].mean() == pytest.approx(0.206, abs=0.003)


def test_one_attribute_is_enough() -> None:
    result = fit([Estimate(("only",), np.array([5.0, 0.0, 15.0]), 0.0)], ["only"], [3], seed=0, records=2000)

    assert np.bincount(result.records[0], minlength=3).tolist() == pytest.approx([500, 0, 1500], abs=2)
    assert result.total == 20


def test_attributes_of_one_value_are_carried_along() -> None:
    tables = [Estimate(("0", "1"), np.array([[30.0, 70.0]]), 0.0), Estimate(("2",), np.array([100.0]), 0.0)]

    result = fit(tables, ["0", "1", "2"], [1, 2, 1], seed=0, records=2000)

    assert not result.records[[0, 2]].any()
    assert result.records[1].mean() == pytest.approx(0.7, abs=0.003)


def test_attributes_may_have_more_values_than_16_bits_hold() -> None:
    counts = np.zeros((2, 70_000))
    counts[0, 69_999], counts[1, 3] = 600.0, 400.0

    result = fit([Estimate(("0", "1"), counts, 0.0)], ["0", "1"], [2, 70_000], seed=0, records=1000)

    assert result.records.dtype == np.uint32
    assert sorted(set(map(tuple, result.records.T.tolist()))) == [(0, 69_999), (1, 3)]


def test_hundreds_of_attributes_are_fitted() -> None:
    rng, width = np.random.default_rng(0), 300
    codes = np.cumsum(rng.random((width, 3000)) < 0.1, axis=0) % 3  # each depends on the one before
    tables = [examples.table(codes, (index, index + 1), (3,) * width) for index in range(width - 1)]
    names = [str(index) for index in range(width)]

    result = fit(tables, names, (3,) * width, seed=0, records=3000)

    assert examples.distances(result.records, tables, (3,) * width).mean() <= 0.005


def test_an_attribute_of_very_many_tables_is_fitted() -> None:
    """Bound to 100 tables at full strength each, its weights would leave the range of single precision."""
    rng, width = np.random.default_rng(0), 101
    hub = rng.integers(0, 4, 3000)
    others = (hub + (rng.random((width - 1, 3000)) < 0.3)) % 4
    codes, sizes = np.vstack([hub, others]), (4,) * width
    tables = [examples.table(codes, (0, index), sizes) for index in range(1, width)]
    names = [str(index) for index in range(width)]

    result = fit(tables, names, sizes, seed=0, records=3000)
    rows = np.concatenate(list(sample_chunks(result, 3000, seed=0)), axis=1)

    assert examples.distances(result.records, tables, sizes).mean() <= 0.01
    assert examples.distances(rows, tables, sizes).mean() <= 0.01


def test_a_fit_of_one_record_is_a_record() -> None:
    result = fit_example(small("a cycle"), records=1)

    assert result.records.shape == (4, 1)
    assert all(result.records[index, 0] < size for index, size in enumerate(SMALL))


def test_distances_fall_as_records_approach_the_tables() -> None:
    result = fit_example(examples.all_cliques(RECORDS, 2))

    assert result.distances[-1] < 0.1 * result.distances[0]
    assert len(result.distances) <= 1 + Gibbs().max_sweeps


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ([Estimate(("0",), np.ones(2), 0.0)], "in no table"),
        ([Estimate(("0", "9"), np.ones((2, 2)), 0.0)], "not of this model"),
        ([Estimate(("0", "1"), np.ones((2, 3)), 0.0)], "does not fit the sizes"),
        ([Estimate((), np.ones(()), 0.0)], "no attributes"),
    ],
)
def test_tables_that_do_not_fit_the_attributes_are_refused(tables: list[Estimate], complaint: str) -> None:
    with pytest.raises(InternalError, match=complaint):
        fit(tables, ["0", "1"], [2, 2], seed=0)
