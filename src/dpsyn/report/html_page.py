"""A page's content → one HTML file that needs nothing from elsewhere.

Everything that comes from a table is escaped, as text or as JSON, and the page forbids itself, by a content security
policy, to load anything or to run any script but its own two.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from dpsyn.report import charts, html_page
from dpsyn.report.content import (
    AttributeChart,
    Guarantee,
    PageContent,
    PairChart,
    ScoreRow,
    SpendingTable,
    TableCell,
    TableColumn,
)


def render_page(content: PageContent) -> str:
    """The whole page."""
    ordered = sorted(content.attributes, key=lambda chart: -chart.excess)
    library, code, style = escape_script(charts.vega_javascript()), _read_asset("page.js"), _read_asset("page.css")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{content_security_policy(library, code)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="dpsyn">
<title>{escape_text(content.title)}</title>
<style>{style}</style>
</head>
<body>
{html_page.render_header()}
<main>
<h1>{escape_text(content.title)}</h1>
<p class="soft">{escape_text(content.subtitle)}</p>
<p class="banner {content.tone}" role="note">{escape_text(content.banner)}</p>
<noscript><p class="banner warning">The pictures and the table below need JavaScript; nothing is loaded.</p></noscript>
{html_page.render_scores(content)}
{html_page.render_guarantee(content.guarantee)}
{html_page.render_attributes(ordered, content)}
{html_page.render_pairs(content)}
{html_page.render_marginals(content)}
{html_page.render_footer(content.notes)}
</main>
<div id="tip" hidden></div>
<script type="application/json" id="data">{escape_json(_page_data(content, ordered))}</script>
<script>{library}</script>
<script>{code}</script>
</body>
</html>
"""


def _read_asset(name: str) -> str:
    """A file that lies beside this one."""
    return Path(__file__).with_name(name).read_text("utf-8")


def _page_data(content: PageContent, ordered: Sequence[AttributeChart]) -> dict[str, Any]:
    """What the page's script draws and sorts."""
    return {
        "words": {"reference": content.terms.reference, "floor": content.terms.floor},
        "templates": charts.chart_templates(),
        "names": [chart.name for chart in ordered],
        "attributes": [charts.attribute_data(chart) for chart in ordered],
        "heat": charts.heat_map_data(content.pairs),
        "pairs": [charts.pair_data(chart) for chart in content.worst_pairs],
        "table": {
            "columns": [{"style": column.style} for column in content.columns],
            "rows": [[_round_cell(cell) for cell in row] for row in _worst_rows(content)],
            "sorted": len(content.columns) - 1,
        },
    }


def _round_cell(cell: TableCell) -> TableCell:
    return float(f"{cell:.6g}") if isinstance(cell, float) else cell


def _worst_rows(content: PageContent) -> list[tuple[TableCell, ...]]:
    """The rows that are worst by the last column, if there are very many."""
    if len(content.rows) <= html_page.MAX_TABLE_ROWS:
        return list(content.rows)
    return sorted(content.rows, key=lambda row: -(row[-1] if isinstance(row[-1], float) else 0.0))[
        : html_page.MAX_TABLE_ROWS
    ]


# ── The parts of a page as HTML; whatever comes from a table goes through ``escaping.text`` ──


MAX_TABLE_ROWS = 5_000
"""Rows of the table of marginals: those farthest beyond their floor."""

_MAX_LIST_ENTRIES = 4
"""Entries of a list that is not folded."""

_HEAT_STEPS = 9


def render_header() -> str:
    """The links to the sections, and the switch between light and dark."""
    links = (("scores", "Scores"), ("guarantee", "Guarantee"), ("attributes", "Attributes"), ("pairs", "Pairs"))
    listed = "".join(f'<a href="#{place}">{words}</a>' for place, words in (*links, ("table", "All marginals")))
    return f'<header><div><nav>{listed}</nav><button id="theme" type="button">Dark</button></div></header>'


def _render_section(anchor: str, heading: str, *parts: str) -> str:
    return f'<section id="{anchor}">\n<h2>{heading}</h2>\n{"".join(parts)}\n</section>'


def render_scores(content: PageContent) -> str:
    """Overall figures between their yardsticks."""
    headings = (
        "",
        "synthetic",
        content.terms.floor,
        "independent",
        "better is",
        f"{content.terms.floor} → independent",
    )
    head = "".join(
        f"<th{_number_class(1 <= place <= 3)}>{escape_text(heading)}</th>" for place, heading in enumerate(headings)
    )
    body = "".join(map(_render_score, content.scores))
    table = f'<div class="scroll"><table class="main"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return _render_section("scores", "Overall", f"<p>{escape_text(content.terms.baselines)}</p>", table)


def _render_score(score: ScoreRow) -> str:
    numbers = "".join(f'<td class="number">{escape_text(shown)}</td>' for shown in score.texts)
    where = f"{100 * score.position:.0f} %" if score.position is not None else ""
    track = (
        f'<div class="track" title="{where}"><i style="left:{_clip_percent(score.position):.1f}%"></i></div>'
        if where
        else ""
    )
    return f"<tr><td>{escape_text(score.label)}</td>{numbers}<td>{escape_text(score.better or '–')}</td><td>{track}</td></tr>"


def _clip_percent(position: float | None) -> float:
    return 100 * min(1.0, max(0.0, position or 0.0))


def _number_class(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def render_guarantee(guarantee: Guarantee) -> str:
    """Certificate and budget in words, and every draw."""
    facts = "".join(
        f"<li><b>{escape_text(figure)}</b><span>{escape_text(words)}</span></li>" for figure, words in guarantee.facts
    )
    listed = f'<ul class="facts">{facts}</ul>' if facts else ""
    paragraphs = "".join(map(_render_paragraph, guarantee.paragraphs))
    return _render_section(
        "guarantee", "Guarantee and budget", listed, paragraphs, *map(_render_spending, guarantee.spending)
    )


def _render_paragraph(block: str) -> str:
    """Some lines of words: those that are set in are a list, and one line that is no sentence is a heading."""
    if "\n" not in block and not block.endswith((".", ":")):
        return f"<h3>{escape_text(block)}</h3>"
    parts = []
    for is_list, group in groupby(block.split("\n"), key=lambda line: line.startswith("  ")):
        lines = [line.strip() for line in group]
        parts.append(_render_list(lines) if is_list else f"<p>{escape_text(' '.join(lines))}</p>")
    return "".join(parts)


def _render_list(entries: Sequence[str]) -> str:
    listed = f'<ul class="plain">{"".join(f"<li>{escape_text(entry)}</li>" for entry in entries)}</ul>'
    if len(entries) <= _MAX_LIST_ENTRIES:
        return listed
    return f"<details><summary>{len(entries)} entries</summary>{listed}</details>"


def _render_spending(spending: SpendingTable) -> str:
    summary = f"What the budget was spent on, draw by draw ({len(spending.rows):,})"
    return f"<details><summary>{summary}</summary>{_render_table(spending.headings, spending.rows)}</details>"


def _render_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose columns after the first are numbers."""
    head = "".join(f"<th{_number_class(place > 0)}>{escape_text(words)}</th>" for place, words in enumerate(headings))
    body = "".join(
        "<tr>"
        + "".join(f"<td{_number_class(place > 0)}>{escape_text(cell)}</td>" for place, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def render_attributes(ordered: Sequence[AttributeChart], content: PageContent) -> str:
    """A picture of each attribute, in the order given."""
    whiskers = any(chart.std for chart in ordered)
    keys = (
        f'<p><span class="key"><i></i>{escape_text(content.terms.reference)}</span>'
        '<span class="key synthetic"><i></i>synthetic</span>'
        + ('<span class="key whisker"><i></i>noise, 95 of 100</span>' if whiskers else "")
        + "</p>"
    )
    told = (
        "<p>The share of rows that each value has; first the attribute that is farthest beyond its floor "
        f"({escape_text(content.terms.floor)}).</p>"
    )
    figures = "".join(_render_attribute(number, chart, content) for number, chart in enumerate(ordered))
    return _render_section("attributes", "Attributes, worst first", told, keys, f'<div class="grid">{figures}</div>')


def _render_attribute(number: int, chart: AttributeChart, content: PageContent) -> str:
    drawn = charts.attribute_data(chart)
    scale = " · square-root scale" if drawn["exponent"] < 1 else ""
    caption = f"{chart.kind} · distance {chart.distance:.4f} · floor {chart.floor:.4f}{scale}"
    apart = "".join(
        f'<p class="note">{escape_text(label)}: {escape_text(content.terms.reference)} {share:.2%}, synthetic {synthetic:.2%}</p>'
        for label, share, synthetic in drawn.get("beside", [])
    )
    return (
        f"<figure><h3>{escape_text(chart.name)}</h3><figcaption>{escape_text(caption)}</figcaption>"
        f'<div class="picture" data-picture="attribute {number}"></div>{apart}</figure>'
    )


def render_pairs(content: PageContent) -> str:
    """The heat map, and the worst pairs side by side."""
    if not content.pairs:
        return _render_section("pairs", "Pairs", '<p class="soft">No pair of attributes is compared.</p>')
    floor = escape_text(content.terms.floor)
    ramp = "".join(f'<i style="background:var(--heat-{step})"></i>' for step in range(_HEAT_STEPS))
    told = (
        f"<p>How far the marginal of each pair is off, less its floor ({floor}); the attribute that is off most comes "
        "first. Hover over a cell for its figures, click it to find it in the table. Empty cells were not compared.</p>"
        f'<p class="soft">0<span class="ramp">{ramp}</span><span id="heat-most"></span></p>'
    )
    left_out = (
        len({name for pair in content.pairs for name in (pair.first, pair.second)}) - charts.MAX_HEAT_MAP_ATTRIBUTES
    )
    note = f'<p class="note">{left_out} attributes with smaller errors are not drawn.</p>' if left_out > 0 else ""
    heat = (
        f'<figure class="wide"><div class="scroll"><div class="picture" data-picture="heat"></div></div>{note}</figure>'
    )
    worst = "".join(_render_pair(number, chart, content) for number, chart in enumerate(content.worst_pairs))
    shade = (
        "<p>Colours go by the square root of the share of rows. The difference is orange where the synthetic table has "
        "more rows, blue where it has fewer.</p>"
    )
    return _render_section("pairs", "Pairs", told, heat, "<h2>The worst pairs, side by side</h2>", shade, worst)


def _render_pair(number: int, chart: PairChart, content: PageContent) -> str:
    lines = zip(chart.reference, chart.synthetic, strict=True)
    widest = max(abs(made - known) for line in lines for known, made in zip(*line, strict=True))
    difference = f"difference, at most {widest:.2%} of all rows"
    parts = (("reference", content.terms.reference), ("synthetic", "synthetic"), ("difference", difference))
    panels = "".join(
        f"<div><figcaption>{escape_text(words)}</figcaption>"
        f'<div class="picture" data-picture="pair {number} {which}"></div></div>'
        for which, words in parts
    )
    return (
        f'<figure class="wide"><h3>{escape_text(chart.first)} × {escape_text(chart.second)}</h3>'
        f'<div class="panels">{panels}</div></figure>'
    )


def render_marginals(content: PageContent) -> str:
    """The table of all marginals, which the page fills, sorts and filters."""
    head = "".join(map(_render_heading, content.columns))
    left_out = len(content.rows) - MAX_TABLE_ROWS
    note = f'<p class="note">{left_out:,} marginals with smaller errors are left out.</p>' if left_out > 0 else ""
    return _render_section(
        "table",
        "All marginals",
        "<p>Click a heading to sort by it.</p>",
        '<div class="tools"><input id="filter" type="search" placeholder="Filter by attribute" '
        'aria-label="Filter by attribute"><span id="told" class="soft" role="status"></span></div>',
        f'<div class="scroll"><table id="marginals"><thead><tr>{head}</tr></thead><tbody></tbody></table></div>',
        f'<p><button id="more" type="button" hidden>Show all</button></p>{note}',
    )


def _render_heading(column: TableColumn) -> str:
    title = f' title="{escape_text(column.hint)}"' if column.hint else ""
    button = f'<button type="button"{title}>{escape_text(column.heading)}</button>'
    return f'<th scope="col" aria-sort="none"{_number_class(column.style != "text")}>{button}</th>'


def render_footer(notes: Sequence[str]) -> str:
    """What else is to be said."""
    return f"<footer>{''.join(f'<p>{escape_text(note)}</p>' for note in notes)}</footer>"


# ── What comes from a table, made harmless for an HTML page ──


def escape_text(words: str) -> str:
    """Text that is nothing but text, in elements and in quoted attributes."""
    return html.escape(words.encode("utf-8", "replace").decode("utf-8"), quote=True)


def escape_json(data: Any) -> str:
    """JSON that cannot end the element it stands in, in plain ASCII."""
    plain = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return plain.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def escape_script(script: str) -> str:
    """A script of ours or a library's that cannot end its element: what looks like a tag can only be in a string."""
    return re.sub(r"<(?=/script|!--)", r"\\x3C", script, flags=re.IGNORECASE)


def content_security_policy(*scripts: str) -> str:
    """A content security policy: nothing from elsewhere, and no script but these, which it knows by their hashes."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"
