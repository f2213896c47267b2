"""Rows drawn from a synopsis: under conditions, and several times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from dpsyn import Synopsis
from dpsyn.errors import UserError
from dpsyn.schema import Categorical, Integer, Schema

SCHEMA = Schema(
    attributes=(
        Categorical(name="sex", values=("F", "M")),
        Integer(name="age", low=0, high=99, bins=10, missing=True),
        Categorical(name="job", values=("none", "nurse", "cook", "pope")),
    )
)
JOBS: dict[str, list[float]] = {"F": [400, 300, 299, 1], "M": [500, 100, 399.99, 0.01]}


def synopsis() -> Synopsis:
    """Exact tables: jobs by sex, of which one is very rare, and ages by sex."""
    ages = np.ones((2, 11)) * np.array([[100], [1]])
    ages[1, 3] = 1000 - 10
    return Synopsis.from_marginals(
        SCHEMA,
        {("sex", "job"): np.array([JOBS["F"], JOBS["M"]]), ("sex", "age"): ages * 1000 / ages.sum(1, keepdims=True)},
        std=0.001,
        source="made up",
    )


def drawn(rows: int, where: Mapping[str, Any], seed: int = 1) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = synopsis().generate(rows, seed=seed, where=where, output_format="arrow").to_pydict()
    return found


@pytest.mark.parametrize(
    "where",
    [{"sex": "F"}, {"age": (30, 39)}, {"age": "30..34|missing"}, {"sex": "M", "job": ["nurse", "cook"], "age": 37}],
)
def test_every_row_meets_the_conditions(where: dict[str, Any]) -> None:
    rows = drawn(3_000, where)

    allowed: dict[Any, set[Any]] = {
        "F": {"F"},
        "M": {"M"},
        (30, 39): set(range(30, 40)),
        "30..34|missing": {30, 31, 32, 33, 34, None},
        37: {37},
    }
    for name, given in where.items():
        values: set[Any] = set(given) if isinstance(given, list) else allowed[given]
        assert len(rows[name]) == 3_000
        assert set(rows[name]) <= values


def test_the_other_attributes_are_as_they_are_under_the_condition() -> None:
    """Standard deviations of 6 000 draws are below .0065; at four of them a false alarm comes once in 10 000 runs."""
    jobs = drawn(6_000, {"sex": "F"})["job"]
    sexes = drawn(6_000, {"job": "nurse"})["sex"]

    assert jobs.count("none") / 6_000 == pytest.approx(0.4, abs=0.026)
    assert jobs.count("nurse") / 6_000 == pytest.approx(0.3, abs=0.026)
    assert sexes.count("F") / 6_000 == pytest.approx(0.75, abs=0.026)


def test_part_of_a_bin_is_as_likely_as_its_part_of_the_histogram() -> None:
    """P(M | age 30..34 or 0..9) by Bayes: half of the bin 30..39 counts."""
    sexes = drawn(6_000, {"age": ["30..34", "0..9"]})["sex"]

    women, men = 91 + 91 / 2, 1 + 990 / 2
    assert sexes.count("M") / 6_000 == pytest.approx(men / (men + women), abs=0.03)


def test_a_condition_of_one_in_a_hundred_thousand_is_met_by_as_many_rows_as_wanted() -> None:
    rows = drawn(2_000, {"job": "pope", "sex": "M"})

    assert set(rows["job"]) == {"pope"}
    assert set(rows["sex"]) == {"M"}
    assert np.mean([age is not None and 30 <= age <= 39 for age in rows["age"]]) > 0.95  # as men are


def test_a_condition_that_no_table_ever_meets_is_met_all_the_same() -> None:
    released = Synopsis.from_marginals(
        SCHEMA,
        {("sex", "job"): [[10, 0, 5, 0], [0, 10, 0, 0]], "age": np.ones(11)},
        std=0.001,
        source="made up",
    )

    rows = released.generate(50, seed=0, where={"sex": "M", "job": "cook"}, output_format="arrow").to_pydict()

    assert set(rows["sex"]) == {"M"}
    assert set(rows["job"]) == {"cook"}


def test_a_model_that_was_not_fitted_is_fitted_for_conditions() -> None:
    singles = Synopsis.from_marginals(
        SCHEMA, {"sex": [11, 33], "age": np.full(11, 4), "job": [11, 11, 11, 11]}, std=0.001, source="made up"
    )

    rows = singles.generate(4_000, seed=0, where={"age": "missing"}, output_format="arrow").to_pydict()

    assert singles.model.distribution is None
    assert set(rows["age"]) == {None}
    assert rows["sex"].count("M") / 4_000 == pytest.approx(0.75, abs=0.03)


def test_conditions_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UserError, match="no attribute 'height'"):
        drawn(10, {"height": 1})


def test_few_rows_are_like_many() -> None:
    released = synopsis()

    jobs = [
        job for seed in range(60) for job in released.generate(5, seed=seed, output_format="arrow")["job"].to_pylist()
    ]

    assert jobs.count("none") / 300 == pytest.approx(0.45, abs=0.13)  # 4.5 standard deviations


def test_no_rows_are_a_table_of_the_same_columns() -> None:
    assert synopsis().generate(0, where={"sex": "F"}, output_format="arrow").column_names == ["sex", "age", "job"]
    assert synopsis().generate(0, output_format="arrow").num_rows == 0


def test_a_table_of_no_people_gives_a_table_of_no_rows() -> None:
    none = {("sex",): np.zeros(2), ("age",): np.zeros(11), ("job",): np.zeros(4)}
    nobody = Synopsis.from_marginals(SCHEMA, none, std=1.0, source="made up")

    assert nobody.generate(0, output_format="arrow").column_names == ["sex", "age", "job"]
    assert nobody.generate(3, output_format="arrow").num_rows == 3


def test_replicates_differ_and_are_the_same_for_the_same_seed() -> None:
    released = synopsis()

    first, second = (
        [t.to_pydict() for t in released.replicates(3, 50, seed=4, output_format="arrow")] for _ in range(2)
    )

    assert first == second
    assert first[0] != first[1] != first[2]


def test_the_first_replicates_do_not_depend_on_how_many_there_are() -> None:
    released = synopsis()

    one, two = (next(released.replicates(number, 50, seed=4, output_format="arrow")).to_pydict() for number in (1, 5))

    assert one == two


@pytest.mark.parametrize("number", [0, 2.5, "3", True])
def test_replicates_come_in_some_number(number: Any) -> None:
    with pytest.raises(UserError, match="give a whole number from 1"):
        next(synopsis().replicates(number))
