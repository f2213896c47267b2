"""Pictures: the right kind for each attribute, nothing lost when values are put together, the worst first."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.report.charts import (
    MANY_VALUES,
    MAX_BARS,
    MAX_HEAT_MAP_ATTRIBUTES,
    attribute_data,
    chart_templates,
    heat_map_data,
    pair_data,
)
from dpsyn.report.content import AttributeChart, PairChart, PairError
from dpsyn.report.evaluation_report import private_content
from tests.report.pages import evaluation


def chart(labels: list[str], reference: list[float], kind: str = "categorical", **more: object) -> AttributeChart:
    fields = {"synthetic": tuple(reversed(reference)), "distance": 0.1, "floor": 0.0, "folded": 0, **more}
    return AttributeChart(name="a", kind=kind, labels=tuple(labels), reference=tuple(reference), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "template"),
    [
        ("categorical", "bars"),
        ("ordinal", "bars"),
        ("boolean", "bars"),
        ("open", "bars"),
        ("joint", "bars"),
        ("integer", "histogram"),
        ("real", "histogram"),
        ("datetime", "timeline"),
    ],
)
def test_each_kind_has_its_picture(kind: str, template: str) -> None:
    data = attribute_data(chart(["2016", "2017"], [0.4, 0.6], kind))

    assert data["template"] == template
    assert template in chart_templates()
    assert data["reference"] == [0.4, 0.6]
    assert data["synthetic"] == [0.6, 0.4]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.sampled_from([0, 7]))
def test_bars_beyond_the_largest_are_told_as_one(shares: list[float], folded: int) -> None:
    labels = [f"v{number}" for number in range(len(shares))]

    data = attribute_data(chart(labels, shares, folded=folded, std=tuple(shares)))

    assert len(data["label"]) == len(data["low"]) <= MAX_BARS
    told = {label: share for label, share, _ in data["beside"]}
    assert sum(data["reference"]) + sum(told.values()) == pytest.approx(sum(shares), rel=1e-3)
    drawn, own = len(data["label"]), len(shares) - (folded > 0)
    if drawn < own:
        assert list(told) == [f"{own - drawn + folded} others"]
        assert own - drawn >= 2


def test_missing_values_stand_apart_from_a_histogram() -> None:
    data = attribute_data(chart(["0..4", "5..9", "missing", "3 others"], [0.1, 0.2, 0.3, 0.4], "integer", folded=3))

    assert data["proper"] == 2
    assert data["start"] == [0, 1, 2.5, 4.0]


def test_missing_dates_are_told_beside_the_line() -> None:
    data = attribute_data(chart(["2016-01..2016-06", "2016-07..2016-12", "missing"], [0.5, 0.25, 0.25], "datetime"))

    assert data["at"] == [1451606400000, 1467331200000]
    assert data["beside"] == [["missing", 0.25, 0.5]]
    assert len(data["label"]) == 2


def test_a_single_date_is_a_histogram() -> None:
    assert attribute_data(chart(["2016", "missing"], [0.5, 0.5], "datetime"))["template"] == "histogram"


def test_noise_is_drawn_to_both_sides() -> None:
    data = attribute_data(chart(["x", "y"], [0.5, 0.5], std=(0.1, 0.0)))

    assert data["low"] == [pytest.approx(0.304), 0.5]
    assert data["high"] == [pytest.approx(0.696), 0.5]


def test_one_value_that_dwarfs_many_others_calls_for_square_roots() -> None:
    few, many = ["x"] * MANY_VALUES, ["x"] * (MANY_VALUES + 1)

    assert attribute_data(chart(few, [0.9, *[0.02] * (MANY_VALUES - 1)]))["exponent"] == 1
    assert attribute_data(chart(many, [0.9, *[0.02] * MANY_VALUES]))["exponent"] == 0.5
    assert attribute_data(chart(many, [0.4, *[0.1] * MANY_VALUES]))["exponent"] == 1


def test_a_shuffled_column_has_the_largest_errors_of_the_heat_map() -> None:
    data = heat_map_data(private_content(evaluation("code")).pairs)

    place = {name: number for number, name in enumerate(data["names"])}
    beyond: dict[int, list[float]] = {number: [] for number in place.values()}
    for first, second, distance, floor, _ in data["cells"]:
        beyond[first].append(distance - floor)
        beyond[second].append(distance - floor)
    rows = {number: sum(errors) / len(errors) for number, errors in beyond.items()}
    assert place["code"] == 0 == max(rows, key=lambda number: rows[number])
    assert rows[0] > 2 * sorted(rows.values())[-2]
    assert min(beyond[0]) > max(d - f for one, other, d, f, _ in data["cells"] if 0 not in (one, other))


def test_the_heat_map_shows_the_attributes_with_the_largest_errors() -> None:
    names = [f"n{number}" for number in range(MAX_HEAT_MAP_ATTRIBUTES + 5)]
    pairs = [
        PairError(first=names[k], second=names[k + 1], distance=k / 100, floor=0.0, independent=1.0)
        for k in range(len(names) - 1)
    ]

    data = heat_map_data(pairs)

    assert len(data["names"]) == MAX_HEAT_MAP_ATTRIBUTES
    assert data["names"][0] == names[-1]
    assert "n0" not in data["names"]
    assert all(0 <= place < MAX_HEAT_MAP_ATTRIBUTES for cell in data["cells"] for place in cell[:2])


def test_a_pair_keeps_its_tables() -> None:
    shares = ((0.123456789, 0.0), (0.5, 0.376543211))
    pair = PairChart(first="a", second="b", lines=("x", "y"), columns=("u", "v"), reference=shares, synthetic=shares)

    data = pair_data(pair)

    assert data["reference"] == data["synthetic"] == [[0.12346, 0.0], [0.5, 0.37654]]
    assert (data["lines"], data["columns"]) == (["x", "y"], ["u", "v"])


def test_no_specification_holds_anything_of_a_table() -> None:
    text = json.dumps(chart_templates())

    assert set(chart_templates()) == {"bars", "histogram", "timeline", "grid"}
    assert "http" not in text
    assert json.loads(text) == chart_templates()
