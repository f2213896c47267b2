"""The charts of a report as SVG: Vega specifications, their data, and Vega itself, which draws them.

No name or value of a table becomes part of a specification. They are data only, so Vega never reads them as an
expression or a field, and it escapes them in the SVG that it writes. Colors are CSS variables, so the same chart works
in light mode, in dark mode and on paper.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpsyn.errors import MissingExtraError
from dpsyn.marginals import AttributeComparison

VegaSpec = dict[str, Any]

MAX_BARS = 14
"""Bars of one chart. The smallest beyond them are combined and listed below it."""

DOMINANT_SHARE = 0.5
"""A share above which, if there are many values, a square-root scale is used: otherwise the others are invisible."""

MANY_VALUES = 6
"""More values than this are many."""

MISSING_LABEL = "missing"
"""The label of missing values in schemas."""

REPORT_EXTRA = "report"

_LISTED, _DATED = ("categorical", "ordinal", "boolean", "open", "joint"), ("datetime",)
_WHISKER_STDS = 1.96
"""Standard deviations to each side that contain 95 % of the noise."""

_DIGITS = 5
"""Significant digits of the numbers in a chart."""

_WIDTH = 340
"""The width of a chart in pixels, about that of its box; the page scales it to fit."""

_TICK_WIDTH = 64
"""Pixels for a label below a histogram."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart of an attribute.

    Attributes:
        svg: the picture, as markup in which every name and value is escaped.
        beside: labels that have no room or place in it, with their shares in the reference and the synthetic rows.
        is_rooted: whether its scale is that of square roots.
    """

    svg: str
    beside: tuple[tuple[str, float, float], ...]
    is_rooted: bool


def attribute_chart(attribute: AttributeComparison, reference: str) -> Chart:
    """The chart of an attribute; ``reference`` is the name of what the synthetic rows are compared with."""
    data = attribute_data(attribute)
    rows, template = _chart_rows(data, reference), data["template"]
    sets: dict[str, list[dict[str, Any]]] = {"rows": rows, "whiskers": rows if "low" in data else []}
    height = None
    if template == "bars":
        height = 12 + 21 * len(rows)
    elif template == "histogram":
        sets["outline"], sets["ticks"] = _outline(rows, data["proper"]), _ticks(rows, data["proper"])
    svg = _draw(template, sets, exponent=data["exponent"], height=height)
    beside = tuple((label, share, synthetic) for label, share, synthetic in data.get("beside", ()))
    return Chart(svg=svg, beside=beside, is_rooted=data["exponent"] < 1)


def require_vega() -> Any:
    """The library; raises an error that names the extra if it is not installed, before work is done for a report."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtraError("vl-convert-python", REPORT_EXTRA, "an HTML report") from None
    return vl_convert


def _draw(
    template: str,
    sets: dict[str, list[dict[str, Any]]],
    *,
    exponent: float,
    height: int | None,
) -> str:
    """A specification with its data, drawn."""
    spec = copy.deepcopy(_TEMPLATES[template])
    spec["data"] = [{"name": each["name"], "values": sets[each["name"]]} for each in spec["data"]]
    spec["signals"] = [{"name": "exponent", "value": exponent}]
    if height is not None:
        spec["height"] = height
    svg: str = require_vega().vega_to_svg(spec)
    return svg


def attribute_data(attribute: AttributeComparison) -> dict[str, Any]:
    """The chart of an attribute: bars for listed values, a timeline for dates, a histogram for numbers and times."""
    if attribute.kind in _LISTED:
        return _bar_data(attribute)
    if attribute.kind in _DATED and _bin_starts(attribute):
        return _timeline_data(attribute)
    return _histogram_data(attribute)


# ── data ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _round_numbers(numbers: Sequence[float]) -> list[float]:
    """Numbers with as many digits as a chart needs."""
    return [float(f"{number:.{_DIGITS}g}") for number in numbers]


def _chart_data(template: str, attribute: AttributeComparison, kept: Sequence[int], **more: Any) -> dict[str, Any]:
    """The labels at the given indices as columns of a chart."""
    reference, synthetic = ([shares[i] for i in kept] for shares in (attribute.reference, attribute.synthetic))
    data = {
        "template": template,
        "label": [attribute.labels[i] for i in kept],
        "reference": _round_numbers(reference),
        "synthetic": _round_numbers(synthetic),
        "exponent": _scale_exponent([max(shares) for shares in zip(reference, synthetic, strict=True)]),
        **more,
    }
    if attribute.std:
        widths = [_WHISKER_STDS * attribute.std[i] for i in kept]
        data["low"] = _round_numbers([share - width for share, width in zip(reference, widths, strict=True)])
        data["high"] = _round_numbers([share + width for share, width in zip(reference, widths, strict=True)])
    return data


def _scale_exponent(shares: Sequence[float]) -> float:
    """The exponent of the scale of shares: 0.5 if one of many is so large that the others are invisible, else 1."""
    return 0.5 if len(shares) > MANY_VALUES and max(shares) > DOMINANT_SHARE else 1.0


def _bar_data(attribute: AttributeComparison) -> dict[str, Any]:
    """Bars of the largest shares. Combined values are listed below the chart: their bar would dwarf the others."""
    limited = _limit_bars(attribute)
    bars = range(len(limited.labels) - (limited.folded > 0))
    return _chart_data("bars", limited, bars, beside=_shares_beside(limited, range(len(bars), len(limited.labels))))


def _limit_bars(attribute: AttributeComparison) -> AttributeComparison:
    """At most ``MAX_BARS`` bars: the smallest, two or more, are combined with the values that are already folded."""
    values = len(attribute.labels) - (attribute.folded > 0)
    if values <= MAX_BARS:
        return attribute
    weights = [max(attribute.reference[i], attribute.synthetic[i]) for i in range(values)]
    kept = sorted(sorted(range(values), key=lambda i: -weights[i])[: MAX_BARS - 1])
    others = sorted(set(range(len(attribute.labels))) - set(kept))
    folded = values - len(kept) + attribute.folded

    def add_up(shares: Sequence[float]) -> tuple[float, ...]:
        return (*(shares[i] for i in kept), sum(shares[i] for i in others))

    def add_in_quadrature(stds: Sequence[float]) -> tuple[float, ...]:
        return (*(stds[i] for i in kept), math.hypot(*(stds[i] for i in others)))

    return replace(
        attribute,
        labels=(*(attribute.labels[i] for i in kept), f"{folded:,} others"),
        folded=folded,
        reference=add_up(attribute.reference),
        synthetic=add_up(attribute.synthetic),
        std=add_in_quadrature(attribute.std) if attribute.std else (),
    )


def _off_axis_labels(attribute: AttributeComparison) -> list[int]:
    """The indices of labels without a position on an axis: missing values, and values folded together."""
    last = len(attribute.labels) - 1
    folded = [last] if attribute.folded else []
    missing = last - len(folded)
    return [*([missing] if missing >= 0 and attribute.labels[missing] == MISSING_LABEL else []), *folded]


def _histogram_data(attribute: AttributeComparison) -> dict[str, Any]:
    """Bins of equal width side by side; labels without a position on the axis are half a bin apart."""
    off_axis = len(_off_axis_labels(attribute))
    proper = len(attribute.labels) - off_axis
    starts = [*range(proper), *(proper + 0.5 + number * 1.5 for number in range(off_axis))]
    return _chart_data("histogram", attribute, range(len(attribute.labels)), start=starts, proper=proper)


def _timeline_data(attribute: AttributeComparison) -> dict[str, Any]:
    off_axis = _off_axis_labels(attribute)
    kept = [i for i in range(len(attribute.labels)) if i not in off_axis]
    beside = _shares_beside(attribute, off_axis)
    return _chart_data("timeline", attribute, kept, at=_bin_starts(attribute), beside=beside)


def _shares_beside(attribute: AttributeComparison, indices: Sequence[int]) -> list[list[Any]]:
    """Labels that are listed below the chart, with their shares."""
    return [[attribute.labels[i], *_round_numbers([attribute.reference[i], attribute.synthetic[i]])] for i in indices]


def _bin_starts(attribute: AttributeComparison) -> list[int]:
    """The start of each bin in milliseconds since 1970; empty if there is at most one bin, or if bins are differences.

    A date that nearly always agrees with another one is measured as its difference from it, and has no dates for bins.
    """
    proper = attribute.labels[: len(attribute.labels) - len(_off_axis_labels(attribute))]
    try:
        starts = [np.datetime64(label.split("..")[0]).astype("datetime64[ms]").astype(int) for label in proper]
    except ValueError:
        return []
    return [int(start) for start in starts] if len(starts) > 1 else []


# ── rows of the charts ───────────────────────────────────────────────────────────────────────────────────────


def _chart_rows(data: dict[str, Any], reference: str) -> list[dict[str, Any]]:
    """A row of the chart's data for each label; noise can make a released share negative, which has no bar."""
    rows = []
    for index, label in enumerate(data["label"]):
        share, synthetic = data["reference"][index], data["synthetic"][index]
        high = data["high"][index] if "high" in data else 0.0
        noise = f" ± {_format_share(high - share)}" if "high" in data else ""
        row = {
            "index": index,
            "label": _printable(label),
            "reference": max(0.0, share),
            "synthetic": synthetic,
            "top": max(share, synthetic, high),
            "tip": f"{_printable(label)}\n{reference}: {_format_share(share)}{noise}\n"
            f"synthetic: {_format_share(synthetic)}",
        }
        if "low" in data:
            row |= {"low": max(0.0, data["low"][index]), "high": max(0.0, high)}
        if "start" in data:
            start = data["start"][index]
            row |= {"start": start, "end": start + 1, "middle": start + 0.5}
        if "at" in data:
            row["at"] = data["at"][index]
        rows.append(row)
    return rows


def _outline(rows: Sequence[dict[str, Any]], proper: int) -> list[dict[str, Any]]:
    """The tops of the synthetic bars of a histogram as one line; a point without y interrupts it."""
    points: list[dict[str, Any]] = [{"x": 0, "y": 0}]
    for index, row in enumerate(rows):
        if index >= proper:
            points += [{"x": row["start"], "y": None}, {"x": row["start"], "y": 0}]
        points += [{"x": row["start"], "y": row["synthetic"]}, {"x": row["end"], "y": row["synthetic"]}]
        if index >= proper - 1:
            points.append({"x": row["end"], "y": 0})
    return points


def _ticks(rows: Sequence[dict[str, Any]], proper: int) -> list[dict[str, Any]]:
    """The starts of some bins, and the labels that have no position on the axis."""
    every = max(1, math.ceil(proper / max(2, (_WIDTH - 50) // _TICK_WIDTH)))
    return [
        *(
            {"x": row["start"], "label": row["label"].split("..")[0], "align": "left"}
            for index, row in enumerate(rows[:proper])
            if index % every == 0 and index + every / 2 < proper
        ),
        *({"x": row["end"], "label": row["label"], "align": "right"} for row in rows[proper:]),
    ]


def _format_share(share: float) -> str:
    return f"{100 * share:.{2 if abs(share) < 0.0995 else 1}f} %"


def _printable(text: str) -> str:
    """A label without the characters that a page cannot hold: halves of characters and control characters."""
    return "".join(c if c.isprintable() or c == " " else "\ufffd" for c in text)


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
        "aria": False,  # the picture and its marks have descriptions
    }
}


def _spec(**parts: Any) -> VegaSpec:
    """What all charts have in common: their width, and that their data are named ``rows``."""
    common = {"autosize": {"type": "fit-x", "contains": "padding"}, "width": _WIDTH, "config": _CONFIG}
    return {**common, **parts}


def _mark(kind: str, data: str, **encoding: Any) -> VegaSpec:
    return {"type": kind, "from": {"data": data}, "encode": {"update": encoding}}


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
            "domain": {"data": "rows", "field": "index"},
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
            y=_field("y", "index"),
            height={"scale": "y", "band": 1},
            fill=_REFERENCE,
            description=_TIP,
        ),
        _mark(
            "rect",
            "rows",
            x={"scale": "x", "value": 0},
            x2=_field("x", "synthetic"),
            y={"scale": "y", "field": "index", "band": 0.3},
            height={"scale": "y", "band": 0.4},
            fill=_SYNTHETIC,
            description=_TIP,
        ),
        _mark(
            "rule",
            "whiskers",
            x=_field("x", "low"),
            x2=_field("x", "high"),
            y={"scale": "y", "field": "index", "band": 0.5},
            description=_TIP,
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
            description=_TIP,
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
            description=_TIP,
        ),
        _mark(
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
            description=_TIP,
        ),
    ],
)

_TEMPLATES = {"bars": _BARS, "histogram": _HISTOGRAM, "timeline": _TIMELINE}
