"""The pictures of a report: specifications for Vega and the data that go into them.

No name or value of a table becomes part of a specification; they are data only, so nothing in them is ever read as an
expression or a field. Colours are CSS variables, so that one drawing serves light, dark and paper.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpsyn.errors import MissingExtraError
from dpsyn.report.content import AttributeChart, PairChart, PairError

VegaSpec = dict[str, Any]

MAX_BARS = 14
"""Bars of one picture; the smallest beyond them are told as one."""

DOMINANT_SHARE = 0.5
"""A share so large that beside it, if there are many values, the others are seen on the scale of square roots only."""

MANY_VALUES = 6

MAX_HEAT_MAP_ATTRIBUTES = 60
"""Attributes of the heat map: those with the largest errors."""

MIN_HEAT_RANGE = 0.05
"""What the strongest colour of the heat map stands for, at least: a table without large errors should look like one."""

MISSING_LABEL = "missing"
"""How schemas call empty cells."""

_LISTED, _DATED = ("categorical", "ordinal", "boolean", "open", "joint"), ("datetime",)
_WHISKER_STDS = 1.96
"""Standard deviations to each side that hold 95 of 100 draws."""

_DIGITS = 5


def attribute_data(chart: AttributeChart) -> dict[str, Any]:
    """The picture of an attribute: bars for listed values, a time line for dates, a histogram for numbers."""
    if chart.kind in _LISTED:
        return _bar_data(chart)
    return _timeline_data(chart) if chart.kind in _DATED and _bin_starts(chart) else _histogram_data(chart)


def heat_map_data(pairs: Sequence[PairError]) -> dict[str, Any]:
    """Attributes in the order of their errors, worst first, and a cell for each pair of them."""
    errors: dict[str, list[float]] = {}
    for pair in pairs:
        for name in (pair.first, pair.second):
            errors.setdefault(name, []).append(pair.excess)
    order = sorted(errors, key=lambda name: -sum(errors[name]) / len(errors[name]))
    place = {name: number for number, name in enumerate(order[:MAX_HEAT_MAP_ATTRIBUTES])}
    cells = [
        [place[pair.first], place[pair.second], *_round_numbers([pair.distance, pair.floor, pair.independent])]
        for pair in pairs
        if pair.first in place and pair.second in place
    ]
    return {"names": list(place), "cells": cells, "least": MIN_HEAT_RANGE}


def pair_data(chart: PairChart) -> dict[str, Any]:
    """Two tables to be drawn side by side."""
    return {
        "first": chart.first,
        "second": chart.second,
        "lines": list(chart.lines),
        "columns": list(chart.columns),
        "reference": [_round_numbers(line) for line in chart.reference],
        "synthetic": [_round_numbers(line) for line in chart.synthetic],
    }


def chart_templates() -> dict[str, VegaSpec]:
    """Every kind of picture, without its data."""
    return {"bars": _BARS, "histogram": _HISTOGRAM, "timeline": _TIMELINE, "grid": _GRID}


# ── data ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _round_numbers(numbers: Sequence[float]) -> list[float]:
    """Numbers with as many digits as a picture shows."""
    return [float(f"{number:.{_DIGITS}g}") for number in numbers]


def _chart_data(template: str, chart: AttributeChart, kept: Sequence[int], **more: Any) -> dict[str, Any]:
    """Some labels of a chart as columns."""
    found = {
        "template": template,
        "label": [chart.labels[place] for place in kept],
        "reference": _round_numbers([chart.reference[place] for place in kept]),
        "synthetic": _round_numbers([chart.synthetic[place] for place in kept]),
        "exponent": _scale_exponent([max(chart.reference[place], chart.synthetic[place]) for place in kept]),
        **more,
    }
    if chart.std:
        spread = [_WHISKER_STDS * chart.std[place] for place in kept]
        found["low"] = _round_numbers([chart.reference[place] - s for place, s in zip(kept, spread, strict=True)])
        found["high"] = _round_numbers([chart.reference[place] + s for place, s in zip(kept, spread, strict=True)])
    return found


def _scale_exponent(shares: Sequence[float]) -> float:
    """Of the scale of shares: 1, or 0.5 where one of many is so large that the others could not be seen."""
    return 0.5 if len(shares) > MANY_VALUES and max(shares) > DOMINANT_SHARE else 1.0


def _bar_data(chart: AttributeChart) -> dict[str, Any]:
    """Bars of the largest shares; what is folded together is told beside them, or its bar would dwarf the others."""
    fewer = _limit_bars(chart)
    own = range(len(fewer.labels) - (fewer.folded > 0))
    return _chart_data("bars", fewer, own, beside=_shares_beside(fewer, range(len(own), len(fewer.labels))))


def _limit_bars(chart: AttributeChart) -> AttributeChart:
    """At most so many labels; the smallest, two or more, and what is folded already, become one."""
    own = len(chart.labels) - (chart.folded > 0)
    if own <= MAX_BARS:
        return chart
    weights = [max(chart.reference[place], chart.synthetic[place]) for place in range(own)]
    kept = sorted(sorted(range(own), key=lambda place: -weights[place])[: MAX_BARS - 1])
    others = sorted(set(range(len(chart.labels))) - set(kept))
    folded = own - len(kept) + chart.folded
    return AttributeChart(
        name=chart.name,
        kind=chart.kind,
        distance=chart.distance,
        floor=chart.floor,
        labels=(*(chart.labels[place] for place in kept), f"{folded:,} others"),
        folded=folded,
        reference=_with_sum(chart.reference, kept, others),
        synthetic=_with_sum(chart.synthetic, kept, others),
        std=_with_norm(chart.std, kept, others) if chart.std else (),
    )


def _with_sum(numbers: Sequence[float], kept: Sequence[int], others: Sequence[int]) -> tuple[float, ...]:
    return (*(numbers[place] for place in kept), sum(numbers[place] for place in others))


def _with_norm(numbers: Sequence[float], kept: Sequence[int], others: Sequence[int]) -> tuple[float, ...]:
    return (*(numbers[place] for place in kept), math.hypot(*(numbers[place] for place in others)))


def _off_axis_labels(chart: AttributeChart) -> list[int]:
    """The places of labels that have none on an axis: empty cells, and values folded together."""
    last = len(chart.labels) - 1
    folded = [last] if chart.folded else []
    before = last - len(folded)
    return [*([before] if before >= 0 and chart.labels[before] == MISSING_LABEL else []), *folded]


def _histogram_data(chart: AttributeChart) -> dict[str, Any]:
    """Bins side by side, as wide as each other; what is apart stands half a bin away."""
    apart = len(_off_axis_labels(chart))
    proper = len(chart.labels) - apart
    starts = [*range(proper), *(proper + 0.5 + place * 1.5 for place in range(apart))]
    return _chart_data("histogram", chart, range(len(chart.labels)), start=starts, proper=proper)


def _timeline_data(chart: AttributeChart) -> dict[str, Any]:
    apart = _off_axis_labels(chart)
    kept = [place for place in range(len(chart.labels)) if place not in apart]
    return _chart_data("timeline", chart, kept, at=_bin_starts(chart), beside=_shares_beside(chart, apart))


def _shares_beside(chart: AttributeChart, places: Sequence[int]) -> list[list[Any]]:
    """Labels that are told and not drawn, with their shares."""
    return [[chart.labels[p], *_round_numbers([chart.reference[p], chart.synthetic[p]])] for p in places]


def _bin_starts(chart: AttributeChart) -> list[int]:
    """The beginning of each bin in milliseconds since 1970; nothing if there is no more than one."""
    proper = chart.labels[: len(chart.labels) - len(_off_axis_labels(chart))]
    starts = [np.datetime64(label.split("..")[0]).astype("datetime64[ms]").astype(int) for label in proper]
    return [int(start) for start in starts] if len(starts) > 1 else []


# ── specifications ───────────────────────────────────────────────────────────────────────────────────────────

_FONT = "system-ui, sans-serif"

_CONFIG: VegaSpec = {
    "axis": {
        "labelColor": "var(--soft)",
        "labelFont": _FONT,
        "labelFontSize": 11,
        "gridColor": "var(--line)",
        "domain": False,
        "ticks": False,
        "labelPadding": 6,
    }
}


def _spec(**parts: Any) -> VegaSpec:
    """What all pictures have in common: as wide as their place, and data named ``rows``."""
    common = {"autosize": {"type": "fit-x", "contains": "padding"}, "width": 320, "config": _CONFIG}
    return {**common, "signals": [{"name": "exponent", "value": 1}, {"name": "thinned", "value": True}], **parts}


def _mark(kind: str, data: str, **encoding: Any) -> VegaSpec:
    return {"type": kind, "from": {"data": data}, "clip": True, "encode": {"update": encoding}}


def _field(scale: str, name: str) -> VegaSpec:
    return {"scale": scale, "field": name}


_TIP = {"field": "tip"}
_SHARES = {"orient": "left", "scale": "y", "grid": True, "tickCount": 4, "format": ".2~%"}
_SHARE_SCALE = {
    "type": "pow",
    "exponent": {"signal": "exponent"},
    "domain": {"data": "rows", "field": "top"},
    "zero": True,
    "nice": 4,
}
_REFERENCE, _SYNTHETIC = {"value": "var(--reference)"}, {"value": "var(--synthetic)"}
_WHISKER_LOOK = {"stroke": {"value": "var(--whisker)"}, "strokeWidth": {"value": 1.5}}

_BARS = _spec(
    height=100,
    data=[{"name": "rows"}, {"name": "whiskers"}],
    scales=[
        {"name": "x", "range": "width", **_SHARE_SCALE, "domainMin": 0},
        {
            "name": "y",
            "type": "band",
            "range": "height",
            "domain": {"data": "rows", "field": "place"},
            "paddingInner": 0.25,
            "paddingOuter": 0.1,
        },
    ],
    axes=[
        {"orient": "bottom", "scale": "x", "grid": True, "tickCount": 4, "format": ".2~%", "labelOverlap": True},
        {
            "orient": "left",
            "scale": "y",
            "labelLimit": 128,
            "labelColor": "var(--ink)",
            "encode": {"labels": {"update": {"text": {"signal": "data('rows')[datum.value].label"}}}},
        },
    ],
    marks=[
        _mark(
            "rect",
            "rows",
            x={"scale": "x", "value": 0},
            x2=_field("x", "reference"),
            y=_field("y", "place"),
            height={"scale": "y", "band": 1},
            fill=_REFERENCE,
            tooltip=_TIP,
        ),
        _mark(
            "rect",
            "rows",
            x={"scale": "x", "value": 0},
            x2=_field("x", "synthetic"),
            y={"scale": "y", "field": "place", "band": 0.3},
            height={"scale": "y", "band": 0.4},
            fill=_SYNTHETIC,
            tooltip=_TIP,
        ),
        _mark(
            "rule",
            "whiskers",
            x=_field("x", "low"),
            x2=_field("x", "high"),
            y={"scale": "y", "field": "place", "band": 0.5},
            tooltip=_TIP,
            **_WHISKER_LOOK,
        ),
    ],
)

_HISTOGRAM = _spec(
    height=170,
    data=[{"name": "rows"}, {"name": "whiskers"}, {"name": "outline"}, {"name": "ticks"}],
    scales=[
        {"name": "y", "range": "height", **_SHARE_SCALE, "domainMin": 0},
        {"name": "x", "type": "linear", "range": "width", "domain": {"data": "outline", "field": "x"}, "zero": False},
    ],
    axes=[_SHARES],
    marks=[
        _mark(
            "rect",
            "rows",
            x=_field("x", "start"),
            x2={"scale": "x", "field": "end", "offset": -0.5},
            y=_field("y", "reference"),
            y2={"scale": "y", "value": 0},
            fill=_REFERENCE,
            tooltip=_TIP,
        ),
        _mark(
            "line",
            "outline",
            x=_field("x", "x"),
            y=_field("y", "y"),
            defined={"signal": "datum.y !== null"},
            stroke=_SYNTHETIC,
            strokeWidth={"value": 2},
            strokeJoin={"value": "miter"},
        ),
        _mark(
            "rule",
            "whiskers",
            x=_field("x", "middle"),
            y=_field("y", "low"),
            y2=_field("y", "high"),
            **_WHISKER_LOOK,
        ),
        _mark(
            "rect",
            "rows",
            x=_field("x", "start"),
            x2=_field("x", "end"),
            y={"value": 0},
            y2={"signal": "height"},
            fill={"value": "transparent"},
            tooltip=_TIP,
        ),
        {
            **_mark(
                "text",
                "ticks",
                x=_field("x", "x"),
                y={"signal": "height + 8"},
                text={"field": "label"},
                align={"field": "align"},
                baseline={"value": "top"},
                font={"value": _FONT},
                fontSize={"value": 11},
                limit={"value": 90},
                fill={"value": "var(--soft)"},
            ),
            "clip": False,
        },
    ],
)

_TIMELINE = _spec(
    height=170,
    data=[{"name": "rows"}, {"name": "whiskers"}],
    scales=[
        {"name": "y", "range": "height", **_SHARE_SCALE, "domainMin": 0},
        {"name": "x", "type": "utc", "range": "width", "domain": {"data": "rows", "field": "at"}},
    ],
    axes=[_SHARES, {"orient": "bottom", "scale": "x", "tickCount": 5, "labelOverlap": True}],
    marks=[
        _mark(
            "area",
            "rows",
            x=_field("x", "at"),
            y=_field("y", "reference"),
            y2={"scale": "y", "value": 0},
            fill=_REFERENCE,
        ),
        _mark("rule", "whiskers", x=_field("x", "at"), y=_field("y", "low"), y2=_field("y", "high"), **_WHISKER_LOOK),
        _mark(
            "line",
            "rows",
            x=_field("x", "at"),
            y=_field("y", "synthetic"),
            stroke=_SYNTHETIC,
            strokeWidth={"value": 2},
            strokeJoin={"value": "round"},
        ),
        _mark(
            "symbol",
            "rows",
            x=_field("x", "at"),
            y=_field("y", "synthetic"),
            size={"value": 90},
            fill={"value": "transparent"},
            tooltip=_TIP,
        ),
    ],
)

_GRID = _spec(
    height=200,
    data=[{"name": "rows"}, {"name": "lines"}, {"name": "columns"}],
    scales=[
        {"name": "x", "type": "band", "range": "width", "domain": {"data": "columns", "field": "place"}},
        {"name": "y", "type": "band", "range": "height", "domain": {"data": "lines", "field": "place"}},
    ],
    axes=[
        {
            "orient": "bottom",
            "scale": "x",
            "labelAngle": -55,
            "labelAlign": "right",
            "labelBaseline": "middle",
            "labelLimit": 110,
            "labelOverlap": {"signal": "thinned"},
            "encode": {"labels": {"update": {"text": {"signal": "data('columns')[datum.value].label"}}}},
        },
        {
            "orient": "left",
            "scale": "y",
            "labelLimit": 120,
            "labelOverlap": {"signal": "thinned"},
            "encode": {"labels": {"update": {"text": {"signal": "data('lines')[datum.value].label"}}}},
        },
    ],
    marks=[
        _mark(
            "rect",
            "rows",
            x=_field("x", "column"),
            width={"scale": "x", "band": 1, "offset": -1},
            y=_field("y", "line"),
            height={"scale": "y", "band": 1, "offset": -1},
            fill={"field": "fill"},
            cursor={"field": "cursor"},
            tooltip=_TIP,
        ),
    ],
)


# ── Vega, the plotting library of the HTML reports: one script that needs nothing from elsewhere ──


REPORT_EXTRA = "report"

_VEGA_EXPORT = "window.vegaEmbed = vegaEmbed;"
"""All that the page uses."""


def require_vega() -> None:
    """Refuse to go on without the library, before work is done for a report."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtraError("vl-convert-python", REPORT_EXTRA, "an HTML report") from None


@functools.cache
def vega_javascript() -> str:
    """Vega as one script of about 900 kB; making it takes a second or two."""
    require_vega()
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(_VEGA_EXPORT)
    return bundle
