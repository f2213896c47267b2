"""Charts: the right kind for each attribute, no share lost when values are combined, the worst first."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.marginals import AttributeComparison, Metric, PairComparison, PairTable
from dpsyn.report.charts import (
    MANY_VALUES,
    MAX_BARS,
    MAX_HEAT_MAP_ATTRIBUTES,
    attribute_data,
    chart_templates,
    heat_map_data,
    pair_data,
)
from dpsyn.report.evaluation_report import private_content
from tests.report.pages import evaluation


def make_attribute(
    labels: list[str],
    reference: list[float],
    kind: str = "categorical",
    *,
    folded: int = 0,
    std: tuple[float, ...] = (),
) -> AttributeComparison:
    return AttributeComparison(
        name="a",
        kind=kind,
        distance=Metric(synthetic=0.1, floor=0.0, independent=1.0),
        labels=tuple(labels),
        folded=folded,
        reference=tuple(reference),
        synthetic=tuple(reversed(reference)),
        std=std,
    )


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
        ("time", "histogram"),
    ],
)
def test_each_kind_has_its_chart(kind: str, template: str) -> None:
    data = attribute_data(make_attribute(["2016", "2017"], [0.4, 0.6], kind))

    assert data["template"] == template
    assert template in chart_templates()
    assert data["reference"] == [0.4, 0.6]
    assert data["synthetic"] == [0.6, 0.4]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.sampled_from([0, 7]))
def test_the_smallest_bars_are_combined(shares: list[float], folded: int) -> None:
    labels = [f"v{index}" for index in range(len(shares))]

    data = attribute_data(make_attribute(labels, shares, folded=folded, std=tuple(shares)))

    assert len(data["label"]) == len(data["low"]) <= MAX_BARS
    listed = {label: share for label, share, _ in data["beside"]}
    assert sum(data["reference"]) + sum(listed.values()) == pytest.approx(sum(shares), rel=1e-3)
    bars, values = len(data["label"]), len(shares) - (folded > 0)
    if bars < values:
        assert list(listed) == [f"{values - bars + folded} others"]
        assert values - bars >= 2


def test_missing_values_are_apart_from_a_histogram() -> None:
    data = attribute_data(
        make_attribute(["0..4", "5..9", "missing", "3 others"], [0.1, 0.2, 0.3, 0.4], "integer", folded=3)
    )

    assert data["proper"] == 2
    assert data["start"] == [0, 1, 2.5, 4.0]


def test_missing_dates_are_listed_below_the_timeline() -> None:
    data = attribute_data(
        make_attribute(["2016-01..2016-06", "2016-07..2016-12", "missing"], [0.5, 0.25, 0.25], "datetime")
    )

    assert data["at"] == [1451606400000, 1467331200000]
    assert data["beside"] == [["missing", 0.25, 0.5]]
    assert len(data["label"]) == 2


def test_a_single_date_is_a_histogram() -> None:
    assert attribute_data(make_attribute(["2016", "missing"], [0.5, 0.5], "datetime"))["template"] == "histogram"


def test_whiskers_extend_to_both_sides() -> None:
    data = attribute_data(make_attribute(["x", "y"], [0.5, 0.5], std=(0.1, 0.0)))

    assert data["low"] == [pytest.approx(0.304), 0.5]
    assert data["high"] == [pytest.approx(0.696), 0.5]


def test_one_dominant_value_among_many_gives_a_square_root_scale() -> None:
    few, many = ["x"] * MANY_VALUES, ["x"] * (MANY_VALUES + 1)

    assert attribute_data(make_attribute(few, [0.9, *[0.02] * (MANY_VALUES - 1)]))["exponent"] == 1
    assert attribute_data(make_attribute(many, [0.9, *[0.02] * MANY_VALUES]))["exponent"] == 0.5
    assert attribute_data(make_attribute(many, [0.4, *[0.1] * MANY_VALUES]))["exponent"] == 1


def test_a_shuffled_column_has_the_largest_errors_of_the_heat_map() -> None:
    data = heat_map_data(private_content(evaluation("code")).comparison.pairs)

    excess: dict[int, list[float]] = {index: [] for index in range(len(data["names"]))}
    for first, second, distance, floor, _ in data["cells"]:
        excess[first].append(distance - floor)
        excess[second].append(distance - floor)
    means = {index: sum(errors) / len(errors) for index, errors in excess.items()}
    assert data["names"].index("code") == 0 == max(means, key=lambda index: means[index])
    assert means[0] > 2 * sorted(means.values())[-2]
    assert min(excess[0]) > max(d - f for one, other, d, f, _ in data["cells"] if 0 not in (one, other))


def test_the_heat_map_shows_the_attributes_with_the_largest_errors() -> None:
    names = [f"n{index}" for index in range(MAX_HEAT_MAP_ATTRIBUTES + 5)]
    pairs = [
        PairComparison(
            first=names[k], second=names[k + 1], distance=Metric(synthetic=k / 100, floor=0.0, independent=1.0)
        )
        for k in range(len(names) - 1)
    ]

    data = heat_map_data(pairs)

    assert len(data["names"]) == MAX_HEAT_MAP_ATTRIBUTES
    assert data["names"][0] == names[-1]
    assert "n0" not in data["names"]
    assert all(0 <= index < MAX_HEAT_MAP_ATTRIBUTES for cell in data["cells"] for index in cell[:2])


def test_a_pair_keeps_its_tables() -> None:
    shares = ((0.123456789, 0.0), (0.5, 0.376543211))
    pair = PairTable(
        first="a",
        second="b",
        first_labels=("x", "y"),
        second_labels=("u", "v"),
        reference=shares,
        synthetic=shares,
    )

    data = pair_data(pair)

    assert data["reference"] == data["synthetic"] == [[0.12346, 0.0], [0.5, 0.37654]]
    assert (data["lines"], data["columns"]) == (["x", "y"], ["u", "v"])


def test_no_specification_contains_data_of_a_table() -> None:
    text = json.dumps(chart_templates())

    assert set(chart_templates()) == {"bars", "histogram", "timeline", "grid"}
    assert "http" not in text
    assert json.loads(text) == chart_templates()
