"""Direct answers of a synopsis: from released tables or from replicates, with intervals that hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpsyn
from dpsyn import Synopsis
from dpsyn.errors import QueryError, UserError
from dpsyn.schema import Categorical, Integer, Schema

SCHEMA = Schema(
    attributes=(
        Categorical(name="sex", values=("f", "m")),
        Integer(name="age", low=0, high=9, bins=10, missing=True),
        Categorical(name="job", values=("pope", "cook", "nurse")),
    )
)
SHARES = np.random.default_rng(5).dirichlet(np.full(22, 2.0)).reshape(2, 11)
JOBS = np.array([[1.0, 500, 499], [0, 300, 700]])
ROWS = 1000


def release(seed: int | None = None, std: float = 15.0) -> Synopsis:
    """A noisy table of a sample; without a seed, the exact table of a population of 2,000."""
    ages, noise = SHARES * 2 * ROWS, np.zeros((2, 11))
    if seed is not None:
        rng = np.random.default_rng(seed)
        sample = rng.multinomial(ROWS, SHARES.ravel()).reshape(2, 11)
        ages, noise = sample.astype(np.float64), rng.normal(0, std, (2, 11))
    tables = {("sex", "age"): ages + noise, ("sex", "job"): JOBS * ages.sum(1, keepdims=True) / JOBS.sum(1)[:, None]}
    return Synopsis.from_marginals(SCHEMA, tables, std=std, source="a test")


@pytest.fixture(scope="module")
def synopsis() -> Synopsis:
    return release(std=0.01)


def true_means() -> Any:
    return (SHARES[:, :10] * np.arange(10)).sum(1) / SHARES[:, :10].sum(1)


def test_means_are_those_of_the_released_table(synopsis: Synopsis) -> None:
    found = synopsis.mean("age", by="sex", uncertainty="noise")

    assert found.terms == ("sex=f", "sex=m")
    np.testing.assert_allclose(found.estimate, true_means(), atol=0.001)
    assert found.title == "Mean of age by sex"
    assert found.replicates is None
    assert found.uncertainty == "noise"
    missing = SHARES[:, 10].sum() * 2 * ROWS
    assert f"Rows with a missing value are left out: about {missing:.0f} of 2,000." in found.notes


def test_intervals_hold_and_those_of_sampling_alone_do_not() -> None:
    """30 intervals of 95 %: fewer than 23 hold once in 10⁴ cases. With sampling alone about half of them would."""
    truth, held, held_by_sampling = true_means(), 0, 0
    for seed in range(15):
        found = release(seed).mean("age", by="sex")
        low, high = found.interval()
        held += int(np.sum((low <= truth) & (truth <= high)))
        width = 1.96 * np.sqrt(np.asarray(found.sampling_share)) * found.standard_error
        held_by_sampling += int(np.sum(np.abs(found.estimate - truth) <= width))
        assert np.all(np.asarray(found.privacy_share) >= 0)

    assert held >= 23
    assert held_by_sampling < 23


def test_intervals_of_replicates_hold() -> None:
    """20 intervals of 95 %: fewer than 15 hold once in 10⁴ cases."""
    truth, held = true_means(), 0
    for seed in range(10):
        means = release(seed).replicates(5, seed=seed, output_format="pandas")
        low, high = means.analyze(lambda table: table.groupby("sex")["age"].mean()).interval()
        held += int(np.sum((low <= truth) & (truth <= high)))

    assert held >= 15


def test_the_same_seed_gives_the_same_answer(synopsis: Synopsis) -> None:
    options: dict[str, Any] = {"by": "job", "replicates": 2, "rows": 200}
    answers = [synopsis.mean("age", seed=seed, **options).estimate.tolist() for seed in (1, 1, 2)]
    again = release(std=0.01).mean("age", seed=1, **options).estimate.tolist()

    assert answers[0] == answers[1] == again != answers[2]


def test_quantiles_correlations_and_conditions(synopsis: Synopsis) -> None:
    median = synopsis.quantile("age", where={"sex": "f", "age": (0, 9)}, uncertainty="noise")
    women = SHARES[0, :10] / SHARES[0, :10].sum()
    assert float(median) == np.searchsorted(np.cumsum(women), 0.5)
    assert median.title == "Quantile 0.5 of age, where sex=f, age=0..9"
    low, high = synopsis.quantile("age", 0.9).interval(0.999)
    assert 0 <= low <= high <= 9


def test_a_note_tells_what_was_not_measured_together(synopsis: Synopsis) -> None:
    uncovered = synopsis.regress("age ~ sex + job", replicates=2)
    covered = synopsis.regress("age ~ sex", replicates=2)

    assert any(
        note.startswith("Not measured together: age and job. In replicates they are taken to be independent")
        for note in uncovered.notes
    )
    assert not any("measured together" in note for note in covered.notes)


def test_a_regression_takes_the_first_value_that_is_not_rare_as_reference(synopsis: Synopsis) -> None:
    pooled = synopsis.regress("age ~ sex + job", replicates=2, seed=1, uncertainty="noise")

    assert pooled.terms[:2] == ("intercept", "sex=m")
    assert "job=nurse" in pooled.terms
    assert "Reference: job=cook, sex=f." in pooled.notes  # 1 in 2,000 is pope
    means = true_means()
    assert pooled.estimate[1] == pytest.approx(means[1] - means[0], abs=0.1)


def test_categories_of_numbers_have_a_reference_that_is_not_rare(synopsis: Synopsis) -> None:
    pooled = synopsis.regress("sex ~ C(age)", replicates=2, seed=1, where={"age": (3, 9)})

    assert pooled.terms == ("intercept", *(f"age={age}" for age in range(4, 10)))


def test_a_logistic_regression_says_what_is_modeled(synopsis: Synopsis) -> None:
    pooled = synopsis.regress("sex ~ age", replicates=2, seed=1)

    assert pooled.title == "Logistic regression sex ~ age"
    assert "Coefficients are log odds ratios of sex=m." in pooled.notes


def test_a_term_without_rows_in_some_replicate_is_left_out(synopsis: Synopsis) -> None:
    pooled = synopsis.mean("age", by="job", rows=100, replicates=2, seed=1)

    assert pooled.terms == ("job=cook", "job=nurse")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.mean("agee"), "there is no attribute 'agee' here; did you mean age"),
        (lambda s: s.mean("sex"), "'sex' is categorical, so it has no mean"),
        (lambda s: s.mean("age", by="secks"), "there is no attribute 'secks'"),
        (lambda s: s.mean("age", by=3), "by is 3; give the name"),
        (lambda s: s.mean("age", where={"sex": "x"}), "'x' is not a value of 'sex'"),
        (lambda s: s.mean("age", by="job", replicates=1), "1 replicate shows no differences"),
        (lambda s: s.mean("age", by="job", replicates=0), "the number of replicates is 0"),
        (lambda s: s.mean("age", uncertainty="rows"), "far too short"),
        (lambda s: s.mean("age", uncertainty="some"), "use all, noise, rows"),
        (lambda s: s.mean("age", level=1.5), "the level is 1.5"),
        (lambda s: s.mean("age", by="job", rows=2, replicates=2), "too few rows in a replicate"),
        (lambda s: s.quantile("age", 50), "the probability is 50; give a number between 0 and 1"),
        (lambda s: s.quantile("age", []), "there is no probability"),
        (lambda s: s.correlation("age", "age"), "with itself is 1"),
        (lambda s: s.correlation("age", "sex"), "'sex' is categorical, so it has no Pearson correlation"),
        (lambda s: s.correlation("age", "sex", method="kendall"), "use pearson or spearman"),
        (lambda s: s.regress("age ~ secks"), "there is no attribute 'secks'"),
        (lambda s: s.regress("age ~ sex", where={"sex": "f"}), "'sex' has only one value here"),
        (lambda s: s.regress("age ~ sex", rows=10**9), "are too many; give at most"),
        (lambda s: s.mean("age", buy="sex"), "by"),
    ],
)
def test_what_cannot_be_answered_is_refused(call: Any, message: str, synopsis: Synopsis) -> None:
    with pytest.raises((QueryError, UserError, TypeError), match=message):
        call(synopsis)


# ── analyses of one's own ────────────────────────────────────────────────────────────────────────────────────


def test_two_lines_pool_any_analysis(synopsis: Synopsis) -> None:
    replicates = synopsis.replicates(3, 500, seed=1, output_format="pandas")

    pooled = dpsyn.pool(table.groupby("sex")["age"].mean() for table in replicates)
    same = replicates.analyze(lambda table: table.groupby("sex")["age"].mean())

    assert pooled.terms == same.terms == ("f", "m")
    np.testing.assert_array_equal(pooled.estimates, same.estimates)
    assert same.record is not None
    assert (same.record.rows, round(same.record.private_rows)) == (500, 2 * ROWS)


def test_an_analysis_of_replicates_of_rows_is_refused_before_they_are_drawn(synopsis: Synopsis) -> None:
    drawn = synopsis.replicates(3, 50, uncertainty="rows")

    with pytest.raises(UserError, match="far too short"):
        drawn.analyze(lambda table: 1 / 0)
    nothing: Any = "mean"
    with pytest.raises(UserError, match="give a function that takes a table"):
        drawn.analyze(nothing)
