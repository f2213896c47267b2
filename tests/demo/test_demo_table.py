"""The example table has the structure its documentation promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dpsyn.demo import people
from dpsyn.errors import UserError

ROWS = 100_000
"""Enough that chance moves none of the figures below by as much as half their distance to the threshold."""


@pytest.fixture(scope="module")
def frame() -> Any:
    return people(ROWS, seed=1).to_pandas()


@pytest.fixture(scope="module")
def workers(frame: Any) -> Any:
    return frame[frame.employed]


def information(frame: Any, first: str, second: str, *given: str) -> float:
    """The conditional mutual information of two discrete columns, in nats, given other columns."""
    return (
        entropy(frame, first, *given)
        + entropy(frame, second, *given)
        - entropy(frame, first, second, *given)
        - (entropy(frame, *given) if given else 0)
    )


def entropy(frame: Any, *columns: str) -> float:
    shares = frame.value_counts(list(columns), normalize=True, dropna=False)
    return float(-(shares * np.log(shares)).sum())


# ── the table as a value ─────────────────────────────────────────────────────────────────────────────────────


def test_columns_have_the_documented_names_and_types() -> None:
    expected = pa.schema(
        {
            "person_id": pa.string(),
            "district": pa.string(),
            "age": pa.int64(),
            "age_group": pa.string(),
            "sex": pa.string(),
            "marital_status": pa.string(),
            "household_size": pa.int64(),
            "education": pa.string(),
            "employed": pa.bool_(),
            "occupation": pa.string(),
            "income": pa.int64(),
            "commute_km": pa.float64(),
            "move_in_date": pa.date32(),
            "last_doctor_visit": pa.timestamp("s"),
            "health": pa.string(),
            "voted": pa.bool_(),
        }
    )

    assert people(10).schema == expected
    assert people(0).schema == expected


def test_the_default_has_twenty_thousand_rows() -> None:
    assert people().num_rows == 20_000


def test_the_same_seed_gives_the_same_table_and_another_seed_another() -> None:
    assert people(500, seed=3).equals(people(500, seed=3))
    assert not people(500, seed=3).equals(people(500, seed=4))


def test_a_longer_table_begins_with_the_shorter_one() -> None:
    assert people(2_000).slice(0, 300).equals(people(300))


def test_seed_zero_gives_the_published_table() -> None:
    """Both columns come from uniform numbers and tables, so platforms agree; another sum is another example."""
    table = people(1_000)

    assert pc.sum(pc.equal(table["district"], "Velmora")).as_py() == 300
    assert pc.sum(table["household_size"]).as_py() == 2718


def test_ids_are_unique_and_nine_digits() -> None:
    ids = people(50_000, seed=10**9 - 7)["person_id"]

    assert pc.count_distinct(ids).as_py() == 50_000
    assert pc.all(pc.match_substring_regex(ids, "^T[0-9]{9}$")).as_py()


@pytest.mark.parametrize(("rows", "seed"), [(-1, 0), (10**9 + 1, 0), (10, -1)])
def test_invalid_sizes_and_seeds_are_refused(rows: int, seed: int) -> None:
    with pytest.raises(UserError, match="give rows from 0 to 1,000,000,000, and a seed from 0"):
        people(rows, seed)


# ── single columns ───────────────────────────────────────────────────────────────────────────────────────────


def test_districts_are_skewed_but_none_is_empty(frame: Any) -> None:
    shares = frame.district.value_counts(normalize=True)

    assert len(shares) == 12
    assert shares.iloc[0] > 20 * shares.iloc[-1] > 0


def test_one_sex_is_rare(frame: Any) -> None:
    assert 0.002 < (frame.sex == "diverse").mean() < 0.006


def test_incomes_have_a_spike_at_zero_and_heaps_on_round_numbers(frame: Any, workers: Any) -> None:
    assert (frame.income == 0).mean() > 0.4
    assert (workers.income % 1_000 == 0).mean() > 0.45
    assert (workers.income % 1_000 == 500).mean() > 0.08
    assert (workers.income % 500 != 0).mean() > 0.35


def test_commutes_have_one_decimal_and_a_spike_at_zero(workers: Any) -> None:
    assert (workers.commute_km == workers.commute_km.round(1)).all()
    assert 0.05 < (workers.commute_km == 0).mean() < 0.3


def test_moves_are_heaped_on_the_first_of_a_month(frame: Any) -> None:
    days = frame.move_in_date.dropna().map(lambda day: day.day)

    assert (days == 1).mean() > 0.3


def test_visits_are_on_weekdays_in_office_hours(frame: Any) -> None:
    visits = frame.last_doctor_visit.dropna().dt

    assert set(visits.hour) == {8, 9, 10, 11, 14, 15, 16, 17}
    assert set(visits.day_of_week) == {0, 1, 2, 3, 4}
    assert (visits.second == 0).all()
    assert (visits.minute % 10 == 0).mean() > 0.6


# ── missing cells ────────────────────────────────────────────────────────────────────────────────────────────


def test_columns_without_meaning_for_empty_cells_have_none(frame: Any) -> None:
    holes = set(frame.columns[frame.isna().any()])

    assert holes == {"occupation", "commute_km", "move_in_date", "last_doctor_visit", "health", "voted"}


def test_commutes_are_missing_exactly_without_a_job(frame: Any) -> None:
    assert (frame.commute_km.isna() == ~frame.employed).all()


def test_votes_are_missing_exactly_for_minors(frame: Any) -> None:
    assert (frame.voted.isna() == (frame.age < 18)).all()


def test_occupations_are_missing_for_children_and_never_with_a_job(frame: Any) -> None:
    missing = frame.occupation.isna()

    assert missing[frame.age < 15].all()
    assert not missing[frame.employed].any()
    assert 0.05 < missing[~frame.employed & (frame.age >= 30)].mean() < 0.15


def test_health_is_missing_more_often_for_the_young(frame: Any) -> None:
    missing = frame.health.isna()

    assert missing[frame.age < 15].mean() > 0.5
    assert missing[frame.age >= 35].mean() < 0.1


def test_visits_are_missing_more_often_for_young_men(frame: Any) -> None:
    missing = frame.last_doctor_visit.isna()
    young = frame.age.between(18, 39)

    assert missing[young & (frame.sex == "male")].mean() > missing[young & (frame.sex == "female")].mean() + 0.1


# ── dependencies of two attributes ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("first", "second", "nats"),
    [
        ("age_group", "marital_status", 0.25),
        ("age_group", "education", 0.25),
        ("age_group", "employed", 0.2),
        ("age_group", "health", 0.1),
        ("age_group", "district", 0.005),
        ("marital_status", "household_size", 0.1),
        ("education", "occupation", 0.3),
        ("sex", "occupation", 0.08),
        ("district", "occupation", 0.03),
        ("sex", "marital_status", 0.005),
        ("district", "household_size", 0.003),
    ],
)
def test_these_pairs_depend_on_each_other(frame: Any, first: str, second: str, nats: float) -> None:
    assert information(frame, first, second) > nats


def test_incomes_rise_with_education_and_occupation(workers: Any) -> None:
    by_education = workers.groupby("education").income.median()
    by_occupation = workers.groupby("occupation").income.median()

    assert by_education["master"] > 1.6 * by_education["secondary"]
    assert by_occupation["physician"] > 3 * by_occupation["cleaner"]


def test_country_people_travel_further(workers: Any) -> None:
    by_district = workers[workers.commute_km > 0].groupby("district").commute_km.median()

    assert by_district["Fennavale"] > 2 * by_district["Velmora"]


def test_the_sick_saw_a_doctor_more_recently(frame: Any) -> None:
    by_health = frame.groupby("health").last_doctor_visit.median()

    assert (by_health["poor"] - by_health["good"]).days > 60


# ── dependencies of three, which no tree of pairs can hold ───────────────────────────────────────────────────


def test_the_gap_between_the_sexes_depends_on_the_district(workers: Any) -> None:
    logs = np.log(workers.income).groupby([workers.district, workers.sex]).mean().unstack()
    gap = logs["male"] - logs["female"]

    assert gap["Brellwick"] - gap["Quorrin"] > 0.2


def test_the_advantage_in_degrees_turns_between_the_cohorts(frame: Any) -> None:
    degree = frame.education.isin(["bachelor", "master", "doctorate"])
    share = degree.groupby([frame.age_group, frame.sex]).mean().unstack()

    assert share.loc["18 to 29", "female"] > 1.5 * share.loc["18 to 29", "male"]
    assert share.loc["65 and over", "male"] > 1.5 * share.loc["65 and over", "female"]
    assert information(frame, "sex", "education", "age") > 5 * information(frame, "sex", "education")


def test_large_households_lower_the_employment_of_women_but_not_of_men(frame: Any) -> None:
    middle = frame[frame.age.between(25, 54)]
    share = middle.employed.groupby([middle.sex, middle.household_size >= 4]).mean().unstack()

    assert share.loc["female", False] - share.loc["female", True] > 0.15
    assert abs(share.loc["male", False] - share.loc["male", True]) < 0.05


def test_education_brings_the_young_to_vote_more_than_the_old(frame: Any) -> None:
    adults = frame[frame.age >= 18]
    young, degree = adults.age < 35, adults.education.isin(["bachelor", "master", "doctorate"])
    share = adults.voted.astype(float).groupby([young, degree]).mean().unstack()
    effect = share[True] - share[False]

    assert effect[True] - effect[False] > 0.1


def test_occupation_and_sex_depend_on_each_other_within_every_education(frame: Any) -> None:
    known = frame[frame.occupation.notna()]

    assert information(known, "occupation", "sex", "education") > 0.1
    assert information(known, "occupation", "district", "education") > 0.05
