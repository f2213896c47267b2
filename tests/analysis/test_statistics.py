"""Statistics of one table: means, quantiles, correlations and regressions, compared with other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from scipy import optimize, stats

from dpsyn.analysis.descriptive import correlation_of, mean_of, quantiles_of
from dpsyn.analysis.regression import fit_logistic, make_regression
from dpsyn.errors import QueryError
from dpsyn.schema import Boolean, Categorical, Datetime, Integer, Ordinal, Real, Schema
from dpsyn.schema.formula import parse_formula

SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=0, high=99, missing=True),
        Real(name="income", low=0, high=1000),
        Categorical(name="sex", values=("m", "f"), missing=True),
        Categorical(name="job", values=("none", "cook", "nurse", "pope")),
        Categorical(name="grade", values=(1, 2, 3)),
        Ordinal(name="school", values=("low", "middle", "high")),
        Boolean(name="employed"),
        Datetime(name="day", start="2020-01-01", end="2020-12-31"),
    )
)
NAMES = SCHEMA.names


def make_table(rows: int = 600, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    sex, job = rng.choice(["m", "f"], rows), rng.choice(["none", "cook", "nurse"], rows)
    income = 100 + 3 * age + 20 * (sex == "f") + 10 * (job == "cook") + rng.normal(0, 30, rows)
    employed = rng.random(rows) < 1 / (1 + np.exp(2 - 0.04 * age - 0.5 * (sex == "f")))
    return pa.table(
        {
            "age": pa.array(age, mask=rng.random(rows) < 0.05),
            "income": income,
            "sex": pa.array(sex, mask=rng.random(rows) < 0.05),
            "job": job,
            "grade": rng.integers(1, 4, rows),
            "school": np.array(["low", "middle", "high"])[np.clip((age - 18) // 25, 0, 2)],
            "employed": employed,
        }
    )


TABLE = make_table()
FRAME = TABLE.to_pandas()


def regress(formula: str, table: pa.Table = TABLE, **references: str) -> Any:
    return make_regression(parse_formula(formula, NAMES), SCHEMA, {}, references, table.num_rows)(table)


# ── means, quantiles, correlations ───────────────────────────────────────────────────────────────────────────


def test_means_leave_missing_values_out_and_count_them() -> None:
    result = mean_of(SCHEMA, "age", [])(TABLE)

    value, variance = result.values[""]
    assert value == pytest.approx(FRAME.age.mean())
    assert variance == pytest.approx(FRAME.age.sem() ** 2)
    assert result.missing_rows == FRAME.age.isna().sum() > 0


def test_groups_are_in_the_order_of_the_schema_and_missing_is_one() -> None:
    result = mean_of(SCHEMA, "income", ["sex", "employed"])(TABLE)

    expected = FRAME.fillna({"sex": "missing"}).groupby(["sex", "employed"])["income"].mean()
    assert list(result.values)[:3] == ["sex=m, employed=false", "sex=m, employed=true", "sex=f, employed=false"]
    assert len(result.values) == 6
    for sex, employed in expected.index:
        value, _ = result.values[f"sex={sex}, employed={str(employed).lower()}"]
        assert value == pytest.approx(expected[sex, employed])


def test_truth_values_and_listed_numbers_have_means() -> None:
    assert mean_of(SCHEMA, "employed", [])(TABLE).values[""][0] == pytest.approx(FRAME.employed.mean())
    assert mean_of(SCHEMA, "grade", [])(TABLE).values[""][0] == pytest.approx(FRAME.grade.mean())


def test_quantiles_have_the_variance_of_order_statistics() -> None:
    """The median of n normal values has the variance π/2n; 400 samples tell it within 20 % but once in 10⁴ cases."""
    rng = np.random.default_rng(0)
    statistic = quantiles_of(SCHEMA, "income", [], [0.5])

    found = [statistic(pa.table({"income": rng.normal(0, 1, 400)})).values[""] for _ in range(200)]

    assert np.mean([variance for _, variance in found]) == pytest.approx(np.pi / 800, rel=0.2)
    assert np.var([value for value, _ in found]) == pytest.approx(np.pi / 800, rel=0.4)


def test_several_quantiles_by_group_are_those_of_numpy() -> None:
    result = quantiles_of(SCHEMA, "income", ["job"], [0.1, 0.9])(TABLE)

    cooks = FRAME.income[FRAME.job == "cook"]
    assert list(result.values)[:3] == ["job=none, 0.1", "job=none, 0.9", "job=cook, 0.1"]
    assert result.values["job=cook, 0.9"][0] == pytest.approx(cooks.quantile(0.9))


def test_correlations_are_those_of_scipy() -> None:
    known = FRAME.dropna(subset="age")
    ranks = known.school.map({"low": 0, "middle": 1, "high": 2})

    pearson = correlation_of(SCHEMA, "age", "income", "pearson")(TABLE)
    spearman = correlation_of(SCHEMA, "age", "school", "spearman")(TABLE)

    assert pearson.values[""][0] == pytest.approx(stats.pearsonr(known.age, known.income)[0])
    assert spearman.values[""][0] == pytest.approx(stats.spearmanr(known.age, ranks)[0])
    assert pearson.missing_rows == len(FRAME) - len(known)


def test_a_constant_has_no_correlation_and_a_group_of_two_no_mean() -> None:
    table = pa.table({"age": [1, 2, 3], "income": [5.0, 5.0, 5.0], "job": ["none", "none", "cook"]})

    assert correlation_of(SCHEMA, "age", "income", "pearson")(table).values == {}
    assert mean_of(SCHEMA, "income", ["job"])(table).values == {}


# ── regressions ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_linear_regression_is_that_of_statsmodels() -> None:
    result = regress("income ~ age*sex + job + C(grade)")

    expected = smf.ols(
        "income ~ age*C(sex, Treatment('m')) + C(job, Treatment('none')) + C(grade)", FRAME.dropna()
    ).fit()
    terms = {
        "intercept": "Intercept",
        "age": "age",
        "sex=f": "C(sex, Treatment('m'))[T.f]",
        "age:sex=f": "age:C(sex, Treatment('m'))[T.f]",
        "job=cook": "C(job, Treatment('none'))[T.cook]",
        "grade=3": "C(grade)[T.3]",
    }
    assert len(result.values) == 8  # nobody is pope, so that value has no coefficient
    for term, name in terms.items():
        assert result.values[term] == pytest.approx((expected.params[name], expected.bse[name] ** 2), rel=1e-8)
    assert result.missing_rows == len(FRAME) - len(FRAME.dropna())


def test_a_logistic_regression_is_close_to_that_of_statsmodels() -> None:
    result = regress("employed ~ age + sex")

    known = FRAME.dropna().assign(works=lambda frame: frame.employed.astype(int))
    expected = smf.logit("works ~ age + C(sex, Treatment('m'))", known).fit(disp=0)
    names = {"intercept": "Intercept", "age": "age", "sex=f": "C(sex, Treatment('m'))[T.f]"}
    for term, name in names.items():
        value, variance = result.values[term]
        assert abs(value - expected.params[name]) < 0.1 * expected.bse[name]
        assert variance == pytest.approx(expected.bse[name] ** 2, rel=0.02)


def penalized(coefficients: Any, design: Any, outcome: Any) -> float:
    """Minus the likelihood of a logistic regression with Firth's penalty, as it is written down."""
    share = 1 / (1 + np.exp(-design @ coefficients))
    information = design.T @ (design * (share * (1 - share))[:, None])
    likelihood = np.sum(outcome * np.log(share) + (1 - outcome) * np.log(1 - share))
    return -float(likelihood + np.linalg.slogdet(information)[1] / 2)


def test_the_penalized_likelihood_is_maximized_also_if_groups_are_separated() -> None:
    group = np.repeat([0.0, 1.0], [40, 6])
    outcome = np.concatenate([np.arange(40) % 2, np.ones(6)])  # all of the small group
    design = np.column_stack([np.ones(46), group])

    coefficients, covariance = fit_logistic(design, outcome)

    best = optimize.minimize(penalized, np.zeros(2), (design, outcome), method="Nelder-Mead", options={"xatol": 1e-8})
    np.testing.assert_allclose(coefficients, best.x, atol=1e-4)
    assert 1 < coefficients[1] < 5
    assert np.all(np.diag(covariance) > 0)


def test_references_and_categories_of_two_values_can_be_outcomes() -> None:
    other = regress("sex ~ age + job", job="cook")
    plain = regress("sex ~ age + job")

    assert list(other.values) == ["intercept", "age", "job=none", "job=nurse"]
    assert other.values["job=none"][0] == pytest.approx(-plain.values["job=cook"][0], rel=1e-5)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("job ~ age", "the outcome 'job' has 4 values that are no numbers"),
        ("day ~ age", "the outcome 'day' is datetime"),
        ("income ~ day", "'day' is datetime, which has no list of categories"),
        ("age ~ C(income)", "'income' is real, which has no list of categories"),
        ("income ~ job + C(age) + school + C(age)*job + school*C(age)", "coefficients; at most 500"),
    ],
)
def test_regressions_that_cannot_be_fitted_are_refused(formula: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        regress(formula)


def test_terms_that_determine_each_other_are_refused() -> None:
    twins = TABLE.set_column(4, "grade", [pa.array([1 + (job == "cook") for job in FRAME.job])])

    with pytest.raises(QueryError, match="the terms determine each other"):
        regress("income ~ job + C(grade)", twins)
    with pytest.raises(QueryError, match="too few for"):
        regress("income ~ job + age", TABLE.slice(0, 3))
    with pytest.raises(QueryError, match="all rows have the same employed"):
        regress("employed ~ age", TABLE.filter(pa.array(FRAME.employed)))
