"""Statistics of tables that were measured: unbiased, with the noise that they have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpsyn import Synopsis
from dpsyn.analysis.covered import Ratio, StepQuantile
from dpsyn.errors import QueryError
from dpsyn.query.covered_counts import CoveredCounts, find_covered_counts
from dpsyn.schema import Categorical, Integer, Ordinal, Schema

SCHEMA = Schema(
    attributes=(
        Categorical(name="group", values=("a", "b", "c")),
        Integer(name="size", low=1, high=4),
        Ordinal(name="grade", values=("low", "middle", "high", "top")),
    )
)
ROWS, STD = 5_000, 0.001
SHARES = np.random.default_rng(3).dirichlet(np.full(48, 1.0)).reshape(3, 4, 4)
SIZES = np.arange(1, 5)


@pytest.fixture(scope="module")
def synopsis() -> Synopsis:
    """Two tables of a population."""
    counts = SHARES * ROWS
    tables = {("group", "size"): counts.sum(2), ("size", "grade"): counts.sum(0)}
    return Synopsis.from_marginals(SCHEMA, tables, std=STD, source="a test")


def counts_of(synopsis: Synopsis, *names: str) -> CoveredCounts:
    found = find_covered_counts(synopsis, names, {})
    assert found is not None
    return found


def test_statistics_without_noise_are_those_of_the_table(synopsis: Synopsis) -> None:
    cells = np.random.default_rng(1).choice(48, 400_000, p=SHARES.ravel())
    _, size, grade = np.unravel_index(cells, SHARES.shape)

    means = synopsis.mean("size", by="group").estimate
    np.testing.assert_allclose(means, (SHARES.sum(2) @ SIZES) / SHARES.sum((1, 2)), atol=1e-4)
    spearman = float(synopsis.correlation("size", "grade", method="spearman"))
    assert spearman == pytest.approx(stats.spearmanr(size, grade).statistic, abs=0.01)
    median = SIZES[np.searchsorted(np.cumsum(SHARES.sum((0, 2))), 0.5)]
    assert float(synopsis.quantile("size")) == median


def correlate(table: np.ndarray, *, ranks: bool) -> float:
    """The correlation of the row and the column of a table, or of their ranks."""
    scores = [np.arange(size, dtype=float) for size in table.shape]
    if ranks:
        sums = [table.sum(1), table.sum(0)]
        scores = [np.cumsum(each) - each / 2 for each in sums]
    x, y = (axis.ravel() for axis in np.meshgrid(*scores, indexing="ij"))
    covariance = np.cov(x, y, aweights=table.ravel())
    return float(covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1]))


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_the_noise_of_a_correlation_follows_from_its_derivatives(method: Any) -> None:
    schema = Schema(attributes=(Integer(name="x", low=0, high=3), Integer(name="y", low=-1, high=2)))
    table, std, ranks = np.rint(SHARES.sum(0) * ROWS), 4.0, method == "spearman"
    found = Synopsis.from_marginals(schema, {("x", "y"): table}, std=std, source="a test").correlation(
        "x", "y", method=method, uncertainty="noise"
    )
    steps = np.eye(16).reshape(16, 4, 4) * 1e-3
    derivatives = [
        (correlate(table + step, ranks=ranks) - correlate(table - step, ranks=ranks)) / 2e-3 for step in steps
    ]

    assert float(found) == pytest.approx(correlate(table, ranks=ranks), abs=1e-6)
    assert found.standard_error == pytest.approx(std * math.sqrt(np.square(derivatives).sum()), rel=1e-3)


def test_noise_variances_are_those_of_least_squares(synopsis: Synopsis) -> None:
    """The second table tells about sizes, too: least squares on all cells of both, by matrices."""
    counts, weights = counts_of(synopsis, "size", "group"), np.random.default_rng(4).normal(size=(2, 4, 3))
    sizes = np.kron(np.eye(4), np.ones((1, 3)))  # of size × group
    precision = np.eye(12) / STD**2 + sizes.T @ sizes / (4 * STD**2)
    expected = weights.reshape(2, 12) @ np.linalg.inv(precision) @ weights.reshape(2, 12).T

    np.testing.assert_allclose(counts.noise_variances(weights), np.diag(expected), rtol=1e-6)
    np.testing.assert_allclose(counts.noise_covariance(weights), expected, rtol=1e-6)


def test_variances_of_one_attribute_at_two_resolutions_are_those_of_least_squares() -> None:
    schema = Schema(
        attributes=(Integer(name="age", low=0, high=11, bins=3), Categorical(name="sex", values=("f", "m")))
    )
    table = np.arange(6.0).reshape(3, 2) * 100 + 50
    tables = {("age",): np.full(12, table.sum() / 12), ("age", "sex"): table}
    counts = counts_of(Synopsis.from_marginals(schema, tables, std=2.0, source="a test"), "age")
    weights, bins = np.random.default_rng(5).normal(size=(2, 12)), np.kron(np.eye(3), np.ones((1, 4)))
    expected = weights @ np.linalg.inv(np.eye(12) / 4 + bins.T @ bins / 8) @ weights.T

    np.testing.assert_allclose(counts.noise_covariance(weights), expected, rtol=1e-6)


def test_an_interval_of_a_ratio_holds_where_its_denominator_is_noisy() -> None:
    """2 000 intervals of 90 %: outside .88 … .92 with a chance of 10⁻³ at most, with a denominator of four deviations.

    An interval of estimate ± deviations would hold less often.
    """
    rng, truth = np.random.default_rng(6), 0.7
    noise = np.array([[1.0, 0.0], [0.0, 1.0]])
    draws = np.array([truth * 4, 4.0]) + rng.normal(size=(2000, 2))
    quantile = stats.norm.ppf(0.95)
    ratios = [Ratio((one, other), noise, np.zeros((2, 2)), (-math.inf, math.inf)) for one, other in draws]
    held = np.mean([low <= truth <= high for low, high in (each.interval(quantile) for each in ratios)])

    assert 0.88 < held < 0.92


def test_a_ratio_whose_denominator_may_be_zero_can_be_anything() -> None:
    ratio = Ratio((3.0, 1.0), np.eye(2), np.zeros((2, 2)), (0.0, 9.0))

    assert ratio.interval(1.96) == (0.0, 9.0)
    assert not ratio.is_known


def test_a_quantile_lies_between_the_values_that_noise_allows() -> None:
    quantile = StepQuantile(
        values=np.array([1.0, 2.0, 3.0, 4.0]),
        excess=np.array([-30.0, -1.0, 12.0, 40.0]),
        noise=np.full(4, 25.0),
        sampling=np.zeros(4),
        is_known=True,
    )

    assert quantile.estimate == 3.0
    assert quantile.interval(1.96) == (2.0, 3.0)
    assert quantile.interval(3.0) == (2.0, 4.0)


def test_groups_with_hardly_more_rows_than_noise_are_left_out() -> None:
    table = np.array([[500.0, 300, 200, 400], [3, 2, 1, 4], [300, 200, 100, 300]])
    synopsis = Synopsis.from_marginals(
        SCHEMA, {("group", "size"): table, ("grade",): np.full(4, 577.5)}, std=20.0, source="a test"
    )

    found = synopsis.mean("size", by="group")
    assert found.terms == ("group=a", "group=c")
    assert "Left out, because they have hardly more rows than noise: group=b." in found.notes
    with pytest.raises(QueryError, match="hardly more rows than noise"):
        synopsis.mean("size", where={"group": "b"})


def test_attributes_of_two_tables_are_not_covered(synopsis: Synopsis) -> None:
    assert find_covered_counts(synopsis, ["group", "grade"], {}) is None
    assert find_covered_counts(synopsis, ["size"], {"group": "a"}) is not None


def test_dependence_inside_groups_of_values_is_between_none_and_that_between_groups() -> None:
    """Two numbers that are equal, measured in four groups each: with nothing inside groups r would be below 1."""
    schema = Schema(attributes=tuple(Integer(name=name, low=0, high=15, bins=4) for name in ("x", "y")))
    tables = {("x",): np.full(16, 100.0), ("y",): np.full(16, 100.0), ("x", "y"): np.eye(4) * 400}
    found = Synopsis.from_marginals(schema, tables, std=1.0, source="a test").correlation("x", "y")
    low, high = found.interval()

    inside = (4**2 - 1) / (16**2 - 1)  # the share of the variance of 4 of 16 values
    assert low == pytest.approx(1 - inside, abs=0.02)
    assert high == 1.0
    assert any("inside a group" in note for note in found.notes)


def test_noise_of_values_inside_groups_counts() -> None:
    """The noise of a mean is that of the groups, by least squares, and that of the histogram inside them."""
    schema = Schema(attributes=(Integer(name="x", low=0, high=15, bins=4), Categorical(name="sex", values=("f", "m"))))
    tables, std = {("x",): np.full(16, 100.0), ("x", "sex"): np.full((4, 2), 200.0)}, 30.0
    synopsis = Synopsis.from_marginals(schema, tables, std=std, source="a test")
    found = synopsis.mean("x", by="sex", uncertainty="noise").standard_error[0] ** 2

    sums = np.kron(np.eye(4), np.ones((1, 2)))
    covariance = np.linalg.inv(np.eye(8) / std**2 + sums.T @ sums / (4 * std**2))
    slopes = np.kron(np.array([1.5, 5.5, 9.5, 13.5]) - 7.5, [1.0, 0.0]) / 800
    inner = np.tile(np.arange(4) - 1.5, 4) / 400 / 4
    assert found == pytest.approx(slopes @ covariance @ slopes + std**2 * np.square(inner).sum(), rel=1e-3)
