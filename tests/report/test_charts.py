"""Charts: the right kind for each attribute, no share lost when values are combined, and labels that stay text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.marginals import AttributeComparison, Metric
from dpsyn.report.charts import MANY_VALUES, MAX_BARS, attribute_chart, attribute_data


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


# ── drawn ────────────────────────────────────────────────────────────────────────────────────────────────────

SVG = "{http://www.w3.org/2000/svg}"
DRAWING = {f"{SVG}{name}" for name in ("svg", "g", "path", "text", "line", "rect", "tspan", "defs", "title")}


def drawn(attribute: AttributeComparison) -> ElementTree.Element:
    """The elements of a chart; the parser refuses what is not well-formed."""
    return ElementTree.fromstring(attribute_chart(attribute, "real").svg)


@pytest.mark.parametrize("kind", ["categorical", "integer", "datetime"])
def test_each_label_is_described_with_its_shares(kind: str) -> None:
    svg = drawn(make_attribute(["2016", "2017"], [0.4, 0.6], kind, std=(0.01, 0.01)))

    described = {each.get("aria-label") for each in svg.iter() if each.get("role") == "graphics-symbol"}
    assert "2016\nreal: 40.0 % ± 1.96 %\nsynthetic: 60.0 %" in described
    assert "2017\nreal: 60.0 % ± 1.96 %\nsynthetic: 40.0 %" in described
    assert svg.get("viewBox", "").split()[2] == "340"


def test_bars_have_lengths_in_proportion_to_their_shares() -> None:
    svg = drawn(make_attribute(["x", "y"], [0.2, 0.4]))

    bars = [each for each in svg.iter(f"{SVG}path") if each.get("fill") == "var(--reference)"]
    widths = [float(re.findall(r"h(-?[0-9.]+)", each.get("d", ""))[0]) for each in bars]
    assert len(widths) == 2
    assert widths[1] == pytest.approx(2 * widths[0], rel=1e-3)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=3, unique=True), st.sampled_from(["open", "integer"]))
def test_any_label_is_text_and_nothing_else(labels: list[str], kind: str) -> None:
    svg = drawn(
        make_attribute([f"<script>{label}</script>\"' onload=x" for label in labels], [0.1] * len(labels), kind)
    )

    assert {each.tag for each in svg.iter()} <= DRAWING
    assert not [name for each in svg.iter() for name in each.attrib if name.startswith("on")]
    assert not [name for each in svg.iter() for name in each.attrib if "href" in name]


def test_pictures_of_one_page_share_no_ids() -> None:
    svg = drawn(make_attribute(["2016", "2017"], [0.4, 0.6], "integer", std=(0.01, 0.01)))

    assert not [each for each in svg.iter() if each.get("id")]


def test_dates_that_were_measured_as_differences_have_a_chart() -> None:
    labels = ["as expected", "+1", "-1", "another"]

    assert attribute_data(make_attribute(labels, [0.7, 0.1, 0.1, 0.1], "datetime"))["template"] == "histogram"
