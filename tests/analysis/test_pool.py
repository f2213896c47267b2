"""Pooling: estimates of replicates become one, with a standard error and an interval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.api as statsmodels
from scipy.stats import t
from sklearn.linear_model import LinearRegression, LogisticRegression
from statsmodels.formula.api import ols

import dpsyn
from dpsyn.analysis import ReplicatesRecord
from dpsyn.errors import UserError


def record(**changes: Any) -> ReplicatesRecord:
    return ReplicatesRecord(**{"count": 20, "rows": 1000, "uncertainty": "all", "private_rows": 1000.0, **changes})


# ── the rule ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_variance_is_that_between_replicates_and_of_their_mean() -> None:
    pooled = dpsyn.pool([1.0, 2.0, 4.0, 5.0], level=0.9)

    assert pooled.estimate == pytest.approx(3)
    assert pooled.between_variance == pytest.approx(10 / 3)
    assert pooled.standard_error == pytest.approx(np.sqrt(10 / 3 * 5 / 4))
    assert pooled.degrees_of_freedom == 3
    width = t.ppf(0.95, 3) * np.sqrt(10 / 3 * 5 / 4)
    assert pooled.interval() == pytest.approx((3 - width, 3 + width))
    assert pooled.interval(0.5)[1] < pooled.interval()[1]
    assert float(pooled) == pytest.approx(3)


def test_vectors_have_a_covariance_matrix() -> None:
    values = np.random.default_rng(0).normal(size=(6, 3))

    pooled = dpsyn.pool(values, names=["a", "b", "c"])

    assert pooled.terms == ("a", "b", "c")
    np.testing.assert_allclose(pooled.covariance, np.cov(values.T) * 7 / 6)
    np.testing.assert_allclose(pooled.standard_error**2, np.diag(pooled.covariance))


def test_intervals_hold_as_often_as_their_level_says() -> None:
    """A release is as far from the truth as replicates are from it. The limits are 4.4 std: 1 in 10⁵."""
    rng, count = np.random.default_rng(1), 4000
    released = rng.normal(0, 2, count)

    pooled = dpsyn.pool(released + rng.normal(0, 2, (5, count)))

    low, high = pooled.interval()
    assert abs(np.mean((low < 0) & (high > 0)) - 0.95) < 0.015


def test_shares_are_those_of_the_reported_variance_for_as_many_rows_as_the_private_table() -> None:
    estimates, variances = [1.0, 3.0], [0.5, 0.7]  # T = 3

    pooled = dpsyn.pool(estimates, variances, replicates=record())
    assert pooled.sampling_share == pytest.approx(0.2)
    assert pooled.privacy_share == pytest.approx(0.8)
    assert dpsyn.pool(estimates, variances, replicates=record(rows=2000)).sampling_share == pytest.approx(0.4)
    assert dpsyn.pool(estimates, variances, replicates=record(rows_per_unit=3)).sampling_share == pytest.approx(0.6)
    assert dpsyn.pool(estimates, variances, replicates=record(rows=9000)).sampling_share == 1
    assert dpsyn.pool(estimates, variances, replicates=record(uncertainty="noise")).sampling_share == 0
    assert dpsyn.pool(estimates, variances).sampling_share is None
    assert dpsyn.pool(estimates, replicates=record()).privacy_share is None


def test_replicates_that_agree_have_no_width_and_no_share() -> None:
    pooled = dpsyn.pool([2.0, 2.0], [0.0, 0.0], replicates=record())

    assert pooled.interval() == (2.0, 2.0)
    assert pooled.sampling_share == 0


# ── what analyses return ─────────────────────────────────────────────────────────────────────────────────────


def frames(count: int = 3) -> list[pd.DataFrame]:
    found = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame({"age": rng.normal(40, 10, 80), "hours": rng.normal(30, 5, 80)})
        frame["income"] = 5 * frame.age + rng.normal(0, 10, 80)
        frame["rich"] = (frame.income > frame.income.median()).astype(int)
        found.append(frame)
    return found


def fit(frame: pd.DataFrame) -> Any:
    return statsmodels.OLS(frame.income, statsmodels.add_constant(frame[["age", "hours"]])).fit()


def test_results_of_statsmodels_bring_names_and_variances() -> None:
    results = [fit(frame) for frame in frames()]

    pooled = dpsyn.pool(results, replicates=record(rows=80, private_rows=80.0))

    assert pooled.terms == ("const", "age", "hours")
    np.testing.assert_allclose(pooled.estimate, np.mean([result.params for result in results], axis=0))
    variance = np.mean([result.bse**2 for result in results], axis=0)
    assert pooled.sampling_variance == pytest.approx(np.array(variance))


def test_linear_models_of_scikit_learn_have_no_variances() -> None:
    models = [LinearRegression().fit(frame[["age", "hours"]], frame.income) for frame in frames()]
    binary = [LogisticRegression().fit(frame[["age", "hours"]].to_numpy(), frame.rich) for frame in frames()]
    several = [LogisticRegression().fit(frame[["age"]], frame.index % 3) for frame in frames()]

    pooled = dpsyn.pool(models)
    assert pooled.terms == ("intercept", "age", "hours")
    assert pooled.estimate[0] == pytest.approx(np.mean([model.intercept_ for model in models]))
    assert pooled.estimate[2] == pytest.approx(np.mean([model.coef_[1] for model in models]))
    assert pooled.sampling_share is None
    assert dpsyn.pool(binary).terms == ("intercept", "x1", "x2")
    assert dpsyn.pool(several).terms[:4] == ("0: intercept", "0: age", "1: intercept", "1: age")


def test_series_dictionaries_and_scalars_are_read() -> None:
    by_sex = [pd.Series({"f": 1.0, "m": 2.0}), pd.Series({"f": 3.0, "m": 5.0})]

    assert dpsyn.pool(by_sex).to_pandas()["estimate"].tolist() == [2.0, 3.5]
    assert dpsyn.pool(by_sex).terms == dpsyn.pool([{"f": 1, "m": 2}, {"f": 3, "m": 5}]).terms == ("f", "m")
    assert dpsyn.pool([pa.scalar(1), pa.scalar(2.0)]).estimate == 1.5
    assert dpsyn.pool(iter([np.float32(1), np.array(2)])).estimate == 1.5
    assert dpsyn.pool([[1, 2], [3, 4]]).terms == ("1", "2")
    matrix = [np.diag([1.0, 4.0])] * 2
    pooled = dpsyn.pool([[1, 2], [3, 4]], matrix, replicates=record())
    assert pooled.sampling_variance == pytest.approx(np.array([1, 4]))


@pytest.mark.parametrize(
    ("estimates", "options", "message"),
    [
        ([], {}, "there are no estimates"),
        ([1.0], {}, "there is 1 estimate; the differences between replicates show"),
        (3.0, {}, "estimates is 3.0; give a list"),
        ([1.0, [1.0, 2.0]], {}, "replicate 1 has one number and replicate 2 a vector of 2 terms"),
        ([[1.0, 2.0], [1.0, 2.0, 3.0]], {}, "a vector of 2 terms and replicate 2 a vector of 3"),
        ([{"a": 1}, {"b": 1}], {}, "has the term 'a' where replicate 2 has 'b'"),
        ([{"a": 1}, {"a": 1, "b": 1}], {}, "has the term no more terms where replicate 2 has 'b'"),
        ([{"a": 1}, [1.0]], {}, "replicate 1 has a model or series of 1 terms and replicate 2 a vector"),
        ([1.0, float("nan")], {}, "the estimate of replicate 2 is not finite"),
        ([[1.0, 2.0], [np.inf, 1.0]], {}, "the estimate of replicate 2 is not finite"),
        (["a", "b"], {}, "the estimate of replicate 1 is of type str"),
        ([None, 1], {}, "the estimate of replicate 1 is of type NoneType"),
        ([True, False], {}, "of type bool"),
        ([[[1.0]], [[2.0]]], {}, r"has the shape \(1, 1\)"),
        ([1.0, 2.0], {"variances": [1.0]}, "there are 1 variances for 2 estimates"),
        ([1.0, 2.0], {"variances": [1.0, -1.0]}, "a variance of replicate 2 is negative"),
        ([1.0, 2.0], {"variances": [1.0, [1.0, 2.0]]}, "variances of replicate 2 have the shape"),
        ([1.0, 2.0], {"variances": [1.0, np.nan]}, "the variance of replicate 2 is not finite"),
        ([1.0, 2.0], {"names": ["a", "b"]}, "there are 2 names for one number"),
        ([[1.0, 2.0]] * 2, {"names": ["a"]}, "there are 1 names for 2 terms"),
        ([1.0, 2.0], {"level": 95}, "the level is 95; give a probability"),
        ([1.0, 2.0], {"replicates": 20}, "replicates is 20; give what synopsis.replicates"),
        ([1.0] * 21, {"replicates": record()}, "there are 21 estimates of 20 replicates"),
        ([1.0, 2.0], {"replicates": record(uncertainty="rows")}, "far too short"),
    ],
)
def test_what_cannot_be_pooled_is_refused(estimates: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        dpsyn.pool(estimates, **options)


# ── replicates that share one noise are refused ──────────────────────────────────────────────────────────────


def test_replicates_of_rows_alone_are_refused_wherever_they_are_named(tmp_path: Path) -> None:
    about = {"number": 1, "of": 20, "rows": 80, "uncertainty": "rows"}
    frame = frames(1)[0]
    frame.attrs["dpsyn.replicate"] = about
    table = pa.table({"a": [1]}).replace_schema_metadata({"dpsyn.replicate": json.dumps(about)})
    record(uncertainty="rows").save(tmp_path / "rows-replicates.json")

    for named in (frame, table, [frame, frame], tmp_path / "rows-replicates.json"):
        with pytest.raises(UserError, match="far too short"):
            dpsyn.pool([1.0, 2.0], replicates=named)
    for result in (frame.mean(), ols("income ~ age", frame).fit()):  # they keep the metadata of their frame
        with pytest.raises(UserError, match="far too short"):
            dpsyn.pool([result, result])


def test_replicates_of_different_kinds_are_not_mixed() -> None:
    with pytest.raises(UserError, match="different uncertainty: all, noise"):
        dpsyn.pool([1.0, 2.0], replicates=[record(), record(uncertainty="noise")])


# ── how it is shown ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_result_describes_itself() -> None:
    pooled = dpsyn.pool([{"a<b": 1.0, "c": 1e12}, {"a<b": 2.0, "c": 2e12}], replicates=record(uncertainty="noise"))

    assert repr(pooled) == "Pooled(2 terms from 2 replicates)"
    assert repr(dpsyn.pool([1.0, 2.0], names=["x"])).startswith("Pooled(x: 1.50 ± 0.87, 95 % interval -9.50 … 12.50")
    assert "a<b" in str(pooled)
    assert "about the rows of the private table" in str(pooled)
    assert "Few replicates make wide intervals: 2 here" in str(pooled)
    assert "a&lt;b" in pooled._repr_html_()
    assert pooled.to_polars().columns == pooled.to_arrow().column_names
    data = json.loads(json.dumps(pooled.to_data(0.5), allow_nan=False))
    assert (data["level"], data["uncertainty"], data["replicates"]) == (0.5, "noise", 2)
    assert data["terms"][0]["privacy_share"] is None
    with pytest.raises(UserError, match="2 terms, not one number"):
        float(pooled)


def test_intervals_end_where_values_do() -> None:
    low, high = dpsyn.analysis.Pooled(terms=(), estimates=np.array([0.1, 0.9]), bounds=(0.0, 1.0)).interval()

    assert (low, high) == (0.0, 1.0)
