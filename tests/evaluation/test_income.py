"""The contest's third metric: Gini index and gender gap, by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import UserError
from dpsyn.evaluation.nist_contest import IncomeColumns, score_income
from dpsyn.schema import Categorical, Integer, Schema
from tests.evaluation import naive
from tests.evaluation.small_tables import tables_from_rows

SCHEMA = Schema(
    attributes=(
        Categorical(name="city", values=("A", "B", "C")),
        Categorical(name="sex", values=("1", "2", "9"), missing=True),
        Integer(name="wage", low=0, high=999_999, missing=True),
    )
)
COLUMNS = IncomeColumns(region="city", sex="sex", income="wage")
REAL = [("A", "1", 10), ("A", "1", 30), ("A", "2", 20), ("B", "1", 0), ("B", "1", 40)]


def compute_score(real: Any, synthetic: Any, columns: IncomeColumns = COLUMNS) -> float:
    return score_income(tables_from_rows(SCHEMA, real, synthetic), columns).score.synthetic


def test_a_score_by_hand() -> None:
    synthetic = [("A", "1", 30), ("A", "2", 30), ("B", "1", 0), ("B", "2", 40)]

    score = score_income(tables_from_rows(SCHEMA, REAL, synthetic), COLUMNS)

    # A: 10, 20, 30 add up to 10 + 30 + 60 = 100 of 3·60; 30, 30 to 90 of 2·60. B: 0 + 40 of 2·40 in both
    first, second = score.regions
    assert (first.region, second.region) == ("A", "B")
    assert first.gini == pytest.approx((1 - 200 / 180, 1 - 180 / 120))
    assert second.gini == (0.0, 0.0)
    assert (first.gap, second.gap) == ((0.0, 0.0), (20.0, -40.0))  # so the two swap ranks, the largest possible error
    ginis = math.sqrt(((1 - (0.5 - 1 / 9)) ** 2 + 1) / 2)
    assert score.score.synthetic == pytest.approx(500_000 * ginis)
    assert score.sexes == ("1", "2")


def test_a_rank_scores_by_its_error() -> None:
    real = [(city, "1", wage) for city, wage in (("A", 300), ("B", 200), ("C", 100))]
    synthetic = [(city, "1", wage) for city, wage in (("A", 200), ("B", 300), ("C", 100))]

    # one person has the index −1 in any region; two of three regions are one of two ranks off
    assert compute_score(real, synthetic) == pytest.approx(500_000 + 500_000 * math.sqrt((0.25 + 0.25 + 1) / 3))


def test_identical_tables_score_a_million() -> None:
    assert compute_score(REAL, REAL[::-1]) == 1_000_000


def test_a_missing_region_scores_zero() -> None:
    without_b = [row for row in REAL if row[0] == "A"]

    score = score_income(tables_from_rows(SCHEMA, REAL, without_b), COLUMNS)

    # of A the index is right, and the rank is 0 instead of 1, as far off as it can be
    assert score.score.synthetic == pytest.approx(500_000 * math.sqrt(1 / 2))
    assert score.regions[1].gini == (0.0, None)
    assert score.regions[1].gap == (20.0, None)


def test_codes_and_empty_incomes_are_left_out() -> None:
    noise = [("A", "1", 999_998), ("A", "2", 999_999), ("B", "2", None), ("C", "1", 999_998)]

    score = score_income(tables_from_rows(SCHEMA, REAL + noise, REAL), COLUMNS)

    assert score.score.synthetic == 1_000_000
    assert [region.region for region in score.regions] == ["A", "B"]
    assert compute_score([*REAL, ("C", "1", 999_997)], REAL) < 1_000_000


def test_incomes_of_zero_have_an_index_of_one() -> None:
    score = score_income(tables_from_rows(SCHEMA, [("A", "1", 0), ("A", "2", 0)], REAL), COLUMNS)

    (only,) = score.regions
    assert only.gini[0] == 1


def test_an_absent_sex_has_a_mean_of_zero_and_other_values_are_ignored() -> None:
    score = score_income(tables_from_rows(SCHEMA, [("A", "2", 50), ("A", "9", 1000), ("A", None, 70)], REAL), COLUMNS)

    assert score.regions[0].gap[0] == -50


def test_indices_that_differ_by_more_than_one_score_zero() -> None:
    # one person: 1 − 2·w/w = −1; nobody earning anything: 1
    assert compute_score([("A", "1", 7)], [("A", "1", 0)]) == 500_000


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12))
def test_the_index_is_that_of_its_definition(wages: list[int]) -> None:
    rows = [("A", "1", wage) for wage in wages]

    score = score_income(tables_from_rows(SCHEMA, rows, rows), COLUMNS)

    assert score.regions[0].gini[0] == pytest.approx(naive.gini(wages))


def test_the_baselines_are_scored_too() -> None:
    real = [("ABC"[n % 3], "12"[n % 2], 100 * (n % 3) + n % 7) for n in range(300)]

    score = score_income(tables_from_rows(SCHEMA, real, real), COLUMNS).score

    assert score.synthetic == 1_000_000
    assert score.floor > score.independent


def test_the_two_sexes_are_one_and_two_or_the_first_two_or_those_given() -> None:
    schema = Schema(
        attributes=(
            Categorical(name="city", codes=2),
            Categorical(name="sex", codes=3),
            Categorical(name="gender", values=("f", "m", "d")),
            Categorical(name="wage", values=(0, 5, 10)),
        )
    )
    comparison = tables_from_rows(schema, [(0, 1, "f", 5), (0, 2, "m", 10)], [(0, 1, "f", 5)])

    coded = score_income(comparison, IncomeColumns(region="city", sex="sex", income="wage"))
    named = score_income(comparison, IncomeColumns(region="city", sex="gender", income="wage"))
    given_ = score_income(comparison, IncomeColumns(region="city", sex="gender", income="wage", sexes=("d", "f")))

    assert [score.sexes for score in (coded, named, given_)] == [("1", "2"), ("f", "m"), ("d", "f")]
    assert coded.regions[0].gap[0] == -5
    assert given_.regions[0].gap[0] == -5


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        (IncomeColumns(region="town", sex="sex", income="wage"), "there is no column 'town' to compare"),
        (
            IncomeColumns(region="city", sex="sex", income="city"),
            "'city' is categorical; the column .* must have numbers",
        ),
        (
            IncomeColumns(region="city", sex="sex", income="wage", sexes=("1", "3")),
            "'sex' to compare must be two of 1, 2",
        ),
        (
            IncomeColumns(region="city", sex="sex", income="wage", sexes=("1", "1")),
            "'sex' to compare must be two of 1, 2",
        ),
    ],
)
def test_unsuitable_columns_are_refused(columns: IncomeColumns, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        compute_score(REAL, REAL, columns)


def test_a_table_without_incomes_is_refused() -> None:
    with pytest.raises(UserError, match="no row of the real table has an income below 999,998"):
        compute_score([("A", "1", 999_998)], REAL)
