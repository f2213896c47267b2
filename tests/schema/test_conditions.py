"""Conditions as people write them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

from dpsyn.errors import QueryError
from dpsyn.schema import Schema, format_conditions, parse_conditions, select_cells

SCHEMA = Schema.from_yaml(
    """\
dpsyn_schema: 1
attributes:
  sex: {kind: categorical, values: [F, M]}
  age: {kind: integer, low: 0, high: 99, missing: true}
  wage: {kind: integer, low: 0, high: 999999}
  born: {kind: datetime, start: 2020-01-01, end: 2020-12-31, resolution: day}
  citizen: {kind: boolean}
  adult: {kind: categorical, values: ["no", "yes"]}
  person: {kind: identifier}
derive:
  adult: {from: age, mapping: {0..17: "no"}, otherwise: "yes"}
"""
)


def cells(**where: object) -> list[int]:
    (result,) = select_cells(SCHEMA, where).values()
    return np.flatnonzero(result).tolist()


def test_texts_become_conditions() -> None:
    assert parse_conditions(["sex=F", "age = 30..39", "job=nurse|doctor"]) == {
        "sex": "F",
        "age": "30..39",
        "job": "nurse|doctor",
    }


def test_two_values_on_the_command_line_are_no_range() -> None:
    (result,) = select_cells(SCHEMA, parse_conditions(["age=30|39"])).values()

    assert np.flatnonzero(result).tolist() == [30, 39]


def test_only_the_first_equals_sign_parts_a_text() -> None:
    assert parse_conditions(["rate==x"]) == {"rate": "=x"}


def test_a_name_with_an_equals_sign_is_known_by_the_schema() -> None:
    names = ("x", "x=y", "x=y ")

    assert parse_conditions(["x=y=u", "x = v"], names) == {"x=y": "u", "x": "v"}
    assert parse_conditions(["x=y =u"], names) == {"x=y ": "u"}
    assert parse_conditions(["z=y=u"], names) == {"z": "y=u"}


@pytest.mark.parametrize("text", ["sex", "=F", "sex=", ""])
def test_an_invalid_condition_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="write"):
        parse_conditions([text])


def test_two_conditions_on_one_attribute_are_refused() -> None:
    with pytest.raises(
        QueryError, match=r"two conditions on 'age'.*age=LOW\.\.HIGH is a range, age=ONE\|OTHER is either"
    ):
        parse_conditions(["age=30", "age=40"])


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("age>=30", "age=30..HIGH"),
        ("age > 30", "age=30..HIGH"),
        ("age<=30", "age=LOW..30"),
        ("age<30", "age=LOW..30"),
        ("sex!=F", "sex=ONE|OTHER"),
    ],
)
def test_a_comparison_is_refused_with_how_it_is_written(text: str, instead: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse_conditions([text], SCHEMA.names)

    assert str(refused.value).startswith(f"{text!r} is a comparison")
    assert str(refused.value).endswith(instead)


def test_signs_of_comparison_in_names_and_values_are_none() -> None:
    assert parse_conditions(["a>=1", "b=>2", "b!=c"], ("a>", "b", "b!")) == {"a>": "1", "b": ">2", "b!": "c"}


def test_conditions_select_cells() -> None:
    assert cells(sex="F") == [0]
    assert cells(age=30) == [30]
    assert cells(age="30..39") == cells(age=(30, 39)) == [*range(30, 40)]
    assert cells(age="missing") == [100]
    assert cells(age="30|missing") == [30, 100]
    assert cells(age=[30, 40, 50]) == cells(age={30, 40, 50}) == [30, 40, 50]
    assert cells(born="2020-02..2020-03") == [*range(31, 91)]


def test_a_name_may_contain_an_equals_sign() -> None:
    schema = Schema.from_yaml('{dpsyn_schema: 1, attributes: {"a=b ": {kind: integer, low: 0, high: 3}}}')

    assert select_cells(schema, {"a=b ": "1|2"})["a=b "].tolist() == [False, True, True, False]


def test_a_value_may_contain_a_separator() -> None:
    schema = Schema.from_yaml(
        "{dpsyn_schema: 1, attributes: {job: {kind: categorical, values: [cook, a|b, 1..2, x=y, c|]}}}"
    )

    def chosen(condition: object) -> list[int]:
        return np.flatnonzero(select_cells(schema, {"job": condition})["job"]).tolist()

    assert chosen("a|b") == chosen(["a|b"]) == [1]
    assert chosen("1..2") == [2]
    assert chosen("cook|x=y") == [0, 3]
    assert chosen("c|") == [4]


def test_values_of_numpy_and_dates_are_values() -> None:
    assert cells(age=np.int64(30)) == cells(age=np.float64(30)) == [30]
    assert cells(age=(np.int32(30), np.int32(39))) == [*range(30, 40)]
    assert cells(age=np.array([30, 40])) == [30, 40]
    assert cells(born=date(2020, 2, 1)) == cells(born=np.datetime64("2020-02-01")) == [31]
    assert cells(born=(datetime(2020, 2, 1), datetime(2020, 2, 3))) == [31, 32, 33]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"height": 3}, "no attribute 'height' to put a condition on; there are sex, age"),
        ({"wagee": 3}, r"no attribute 'wagee' to put a condition on; did you mean wage or age\?"),
        ({"AGE": 3}, r"no attribute 'AGE' to put a condition on; did you mean age or wage\?"),
        ({"persons": 3}, "no attribute 'persons' to put a condition on; there are sex, age, wage, born, citizen$"),
        ({"citizen": "Y"}, "'citizen' is boolean; a condition on it is true or false, not 'Y'"),
        ({"sex": "X"}, "'X'"),
        ({"age": "200..300"}, "200"),
        ({"age": "39..30"}, "ends before it begins"),
        ({"person": "1"}, "kind identifier"),
        ({"adult": "yes"}, "is derived from 'age'; put the condition on 'age'"),
        ({"age": None}, "None is not a condition on 'age'"),
        ({"age": []}, "is not a condition"),
        ({"age": [None]}, "None is not a value of 'age'"),
        ({"sex": "F|"}, "empty value"),
        ({"sex": ""}, "empty value"),
        ({"sex": b"F"}, "a bytes is not a condition on 'sex'"),
        ({"age": "65.."}, r"'65\.\.' is not a number; a condition on 'age' is a value, or a range with both ends"),
        ("age=30", "give them by attribute"),
    ],
)
def test_a_condition_that_cannot_be_met_is_refused(where: Any, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        select_cells(SCHEMA, where)


def test_a_range_that_ends_inside_a_cell_is_refused_with_the_whole_cells() -> None:
    with pytest.raises(QueryError, match=r"inside a cell of 'wage'.*use \d+\.\.\d+") as refused:
        select_cells(SCHEMA, {"wage": "1500..2700"})

    whole = str(refused.value).rpartition("use ")[2]
    assert select_cells(SCHEMA, {"wage": whole})["wage"].any()


def test_conditions_are_formatted_as_on_the_command_line() -> None:
    where = {"age": (30, 39), "sex": ["F", "M"], "wage": 5, "born": date(2020, 2, 1)}

    words = format_conditions(SCHEMA, where)

    assert words == "age=30..39, sex=F|M, wage=5, born=2020-02-01"
    assert format_conditions(SCHEMA, {}) == ""
