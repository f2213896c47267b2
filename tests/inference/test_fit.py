"""All released marginals become one model, combined by inverse variance."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpsyn.encoding import Codec, Grouping, Recoding
from dpsyn.errors import SchemaError
from dpsyn.inference import MeasurementRound, Release, estimate_one_way, fit_model
from dpsyn.marginals import Marginal
from dpsyn.schema import Categorical, Integer, Schema

SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=0, high=99, bins=(0, 18, 65)),
        Categorical(name="sex", values=("F", "M")),
        Categorical(name="job", codes=4),
    )
)
CODEC = Codec(SCHEMA)
FINE, COARSE = Recoding.fine(CODEC), Recoding.coarse(CODEC)
ROWS = np.stack([np.random.default_rng(3).integers(0, size, 1000) for size in CODEC.fine_sizes], axis=1).astype(
    np.uint8
)


def count_marginal(recoding: Recoding, *clique: str, std: float = 1.0) -> Marginal:
    axes = [recoding.index_of(name) for name in clique]
    counts: NDArray[np.int64] = np.zeros([recoding.sizes[axis] for axis in axes], np.int64)
    np.add.at(counts, tuple(recoding.apply(ROWS)[:, axis] for axis in axes), 1)
    return Marginal(clique, counts, 0, std)


def make_release(recoding: Recoding, *marginals: Marginal) -> Release:
    return Release((MeasurementRound(recoding, marginals),))


def test_exact_marginals_are_reproduced() -> None:
    cells = make_release(FINE, count_marginal(FINE, "age", std=1e-6))
    bins = make_release(COARSE, count_marginal(COARSE, "age", "sex"), count_marginal(COARSE, "sex", "job"))

    model = fit_model(SCHEMA, COARSE, [cells, bins])

    assert {table.clique for table in model.tables} == {("age", "sex"), ("sex", "job")}
    for table in model.tables:
        np.testing.assert_allclose(table.values, count_marginal(COARSE, *table.clique).counts, atol=1e-6)
    np.testing.assert_allclose(model.histograms["age"], count_marginal(FINE, "age").counts, atol=1e-6)
    assert model.total == pytest.approx(1000)


def test_measurements_of_the_same_marginal_are_averaged_by_inverse_variance() -> None:
    true = count_marginal(COARSE, "job")
    shifted = Marginal(("job",), true.raw + np.array([50, 50, 50, 50]), 0, 3.0)

    one_way = estimate_one_way([make_release(COARSE, true), make_release(COARSE, shifted)], COARSE, "job")

    np.testing.assert_allclose(one_way.values, true.counts + 50 * 0.1)
    assert one_way.variance == pytest.approx(0.9)


def test_cells_are_shifted_to_agree_with_more_precise_bins() -> None:
    bins, cells = count_marginal(COARSE, "age", std=1e-6), count_marginal(FINE, "age", std=1e-4)
    shifted = Marginal(("age",), cells.raw + 2, 0, 1e-4)
    others = count_marginal(COARSE, "sex", "job")

    model = fit_model(SCHEMA, COARSE, [make_release(FINE, shifted), make_release(COARSE, bins, others)])

    np.testing.assert_allclose(model.histograms["age"], cells.counts, atol=1e-3)


def test_bins_without_cells_are_spread_along_the_slope_between_their_neighbors() -> None:
    model = fit_model(SCHEMA, COARSE, [make_release(COARSE, *(count_marginal(COARSE, name) for name in COARSE.names))])

    counts, weights = count_marginal(COARSE, "age").counts, model.histograms["age"]
    bin_of_cell = SCHEMA["age"].bin_of_cell()
    np.testing.assert_allclose(np.bincount(bin_of_cell, weights), counts)
    densities = counts / np.bincount(bin_of_cell)
    assert np.sign(weights[17] - weights[0]) == np.sign(densities[1] - densities[0]) != 0
    assert abs(weights[17] - weights[0]) < 2 * abs(densities[1] - densities[0])


def test_rare_values_are_weighted_by_their_own_noisy_counts() -> None:
    merged = COARSE.merge("job", Grouping(np.array([0, 1, 1, 1])))
    noisy = Marginal(("job",), np.array([900, 60, -20, 40]), 0, 10.0)
    first = make_release(COARSE, count_marginal(COARSE, "age"), count_marginal(COARSE, "sex"), noisy)

    model = fit_model(SCHEMA, merged, [first])

    weights = model.histograms["job"]
    assert weights[:2].tolist() == [900, 60]  # six standard deviations above zero, these are not shrunk
    assert 0 < weights[2] < 5
    assert 35 < weights[3] < 45


def test_a_code_that_counts_as_empty_is_zero_in_every_table() -> None:
    marginals = [count_marginal(COARSE, "age"), count_marginal(COARSE, "sex", "job")]

    model = fit_model(SCHEMA, COARSE, [make_release(COARSE, *marginals)], zeroed_attributes={"job"})

    table = next(table for table in model.tables if "job" in table.clique)
    assert table.values.shape == (2, 4)
    assert not table.values[:, -1].any()
    assert table.values[:, :-1].all()


def test_marginals_under_a_recoding_that_does_not_fit_are_left_out() -> None:
    measured = COARSE.merge("job", Grouping(np.array([0, 0, 1, 1])))
    modeled = COARSE.merge("job", Grouping(np.array([0, 1, 0, 1])))
    other = make_release(measured, count_marginal(measured, "sex", "job"))
    one_way = make_release(COARSE, *(count_marginal(COARSE, name) for name in COARSE.names))

    model = fit_model(SCHEMA, modeled, [one_way, other])

    assert all(len(table.clique) == 1 for table in model.tables)


def test_a_marginal_at_a_coarser_level_is_a_table_of_groups_beside_the_attribute_itself() -> None:
    groups = Grouping(np.array([0, 0, 1, 1]))
    coarser = COARSE.merge("job", groups)
    pair = make_release(coarser, count_marginal(coarser, "sex", "job", std=0.01))
    one_way = make_release(COARSE, *(count_marginal(COARSE, name, std=0.01) for name in COARSE.names))

    model = fit_model(SCHEMA, COARSE, [one_way, pair])

    tables = {table.clique: table for table in model.tables}
    assert tables.keys() == {("age",), ("job",), ("sex", "job")}
    assert tables["sex", "job"].levels["job"].tolist() == groups.group_of.tolist()
    np.testing.assert_allclose(tables["sex", "job"].values.sum(axis=0), groups.sums(tables["job",].values), atol=1e-6)
    assert model.distribution is not None
    shares = np.bincount(model.distribution.records[2], minlength=4) / model.distribution.records.shape[1]
    np.testing.assert_allclose(shares, count_marginal(COARSE, "job").counts / 1000, atol=0.003)


def test_the_public_number_of_rows_is_the_total() -> None:
    one_way = make_release(COARSE, *(count_marginal(COARSE, name, std=20.0) for name in COARSE.names))

    model = fit_model(SCHEMA, COARSE, [one_way], total=1234)

    assert model.total == pytest.approx(1234)


def test_an_attribute_without_a_marginal_is_refused() -> None:
    with pytest.raises(SchemaError, match="no marginal has job"):
        fit_model(SCHEMA, COARSE, [make_release(COARSE, count_marginal(COARSE, "age", "sex"))])


def test_codes_that_begin_inside_of_a_measured_group_have_the_counts_of_the_histogram() -> None:
    rng = np.random.default_rng(4)
    noisy = Marginal(("age",), count_marginal(FINE, "age").raw + rng.normal(0, 40, 100).astype(np.int64), 0, 40.0)
    ages = FINE.merge("age", Grouping(np.arange(100) // 10))  # codes of ten years, the middle bin has 18 … 64
    others = [count_marginal(COARSE, name) for name in ("age", "sex", "job")]
    releases = [make_release(FINE, noisy), make_release(COARSE, *others)]

    model = fit_model(SCHEMA, ages, releases)

    table = next(table for table in model.tables if table.clique == ("age",)).values
    np.testing.assert_allclose(table, model.histograms["age"].reshape(10, 10).sum(axis=1), rtol=0.01)
    true = count_marginal(ages, "age").counts
    raw = estimate_one_way(releases, ages, "age").values
    assert np.abs(table - true).sum() < np.abs(raw - true).sum() / 2
