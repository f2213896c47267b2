"""Renders the content of a page as one self-contained HTML file.

Everything that comes from a table is escaped, as text or as JSON. A content security policy forbids the page to load
anything or to run any script except its own two.
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

from dpsyn.marginals import AttributeComparison, PairTable
from dpsyn.report import charts
from dpsyn.report.content import Guarantee, PageContent, ScoreRow, SpendingTable, TableCell, TableColumn

MAX_TABLE_ROWS = 5_000
"""Rows of the table of marginals: the largest by the last column."""

_MAX_LIST_ENTRIES = 4
"""Longer lists are collapsed."""

_HEAT_STEPS = 9
"""Colors of the heat map."""


def render_page(content: PageContent) -> str:
    """The whole page."""
    ordered = sorted(content.comparison.attributes, key=lambda attribute: -attribute.distance.excess)
    library, code, style = escape_script(charts.vega_javascript()), read_asset("page.js"), read_asset("page.css")
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
{_render_header()}
<main>
<h1>{escape_text(content.title)}</h1>
<p class="soft">{escape_text(content.subtitle)}</p>
<p class="banner {content.tone}" role="note">{escape_text(content.banner)}</p>
<noscript><p class="banner warning">The pictures and the table below need JavaScript; nothing is loaded.</p></noscript>
{_render_scores(content)}
{_render_guarantee(content.guarantee)}
{_render_attributes(ordered, content)}
{_render_pairs(content)}
{_render_marginals(content)}
{_render_footer(content.notes)}
</main>
<div id="tip" hidden></div>
<script type="application/json" id="data">{escape_json(_page_data(content, ordered))}</script>
<script>{library}</script>
<script>{code}</script>
</body>
</html>
"""


def read_asset(name: str) -> str:
    """A file in this folder."""
    return Path(__file__).with_name(name).read_text("utf-8")


def _page_data(content: PageContent, ordered: Sequence[AttributeComparison]) -> dict[str, Any]:
    """The data that the page's script draws and sorts."""
    return {
        "words": {"reference": content.terms.reference, "floor": content.terms.floor},
        "templates": charts.chart_templates(),
        "names": [attribute.name for attribute in ordered],
        "attributes": [charts.attribute_data(attribute) for attribute in ordered],
        "heat": charts.heat_map_data(content.comparison.pairs),
        "pairs": [charts.pair_data(table) for table in content.comparison.worst_pairs],
        "table": {
            "columns": [{"style": column.style} for column in content.columns],
            "rows": [[_round_cell(cell) for cell in row] for row in _worst_rows(content)],
            "sorted": len(content.columns) - 1,
        },
    }


def _round_cell(cell: TableCell) -> TableCell:
    return float(f"{cell:.6g}") if isinstance(cell, float) else cell


def _worst_rows(content: PageContent) -> list[tuple[TableCell, ...]]:
    """The rows of the table; if there are very many, those with the largest value in the last column."""
    if len(content.rows) <= MAX_TABLE_ROWS:
        return list(content.rows)
    return sorted(content.rows, key=lambda row: -(row[-1] if isinstance(row[-1], float) else 0.0))[:MAX_TABLE_ROWS]


# ── sections: everything that comes from a table goes through ``escape_text`` ───────────────────────────────


def _render_header() -> str:
    """The links to the sections, and the switch between light and dark."""
    sections = (
        ("scores", "Scores"),
        ("guarantee", "Guarantee"),
        ("attributes", "Attributes"),
        ("pairs", "Pairs"),
        ("table", "All marginals"),
    )
    links = "".join(f'<a href="#{anchor}">{title}</a>' for anchor, title in sections)
    return f'<header><div><nav>{links}</nav><button id="theme" type="button">Dark</button></div></header>'


def _render_section(anchor: str, heading: str, *parts: str) -> str:
    return f'<section id="{anchor}">\n<h2>{heading}</h2>\n{"".join(parts)}\n</section>'


def _render_scores(content: PageContent) -> str:
    """Overall scores beside their baselines."""
    headings = (
        "",
        "synthetic",
        content.terms.floor,
        "independent",
        "better is",
        f"{content.terms.floor} → independent",
    )
    head = "".join(
        f"<th{_number_class(1 <= index <= 3)}>{escape_text(heading)}</th>" for index, heading in enumerate(headings)
    )
    body = "".join(map(_render_score, content.scores))
    table = f'<div class="scroll"><table class="main"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return _render_section("scores", "Overall", f"<p>{escape_text(content.terms.baselines)}</p>", table)


def _render_score(score: ScoreRow) -> str:
    numbers = "".join(f'<td class="number">{escape_text(text)}</td>' for text in score.texts)
    track = ""
    if score.position is not None:
        percent = 100 * min(1.0, max(0.0, score.position))
        track = f'<div class="track" title="{100 * score.position:.0f} %"><i style="left:{percent:.1f}%"></i></div>'
    better = escape_text(score.better or "–")
    return f"<tr><td>{escape_text(score.label)}</td>{numbers}<td>{better}</td><td>{track}</td></tr>"


def _number_class(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _render_guarantee(guarantee: Guarantee) -> str:
    """Certificate and budget in words, and every measurement."""
    entries = "".join(
        f"<li><b>{escape_text(figure)}</b><span>{escape_text(words)}</span></li>" for figure, words in guarantee.facts
    )
    facts = f'<ul class="facts">{entries}</ul>' if entries else ""
    paragraphs = "".join(map(_render_paragraph, guarantee.paragraphs))
    return _render_section(
        "guarantee", "Guarantee and budget", facts, paragraphs, *map(_render_spending, guarantee.spending)
    )


def _render_paragraph(block: str) -> str:
    """A block of lines: indented lines become a list, and a single line that is not a sentence becomes a heading."""
    if "\n" not in block and not block.endswith((".", ":")):
        return f"<h3>{escape_text(block)}</h3>"
    parts = []
    for is_list, group in groupby(block.split("\n"), key=lambda line: line.startswith("  ")):
        lines = [line.strip() for line in group]
        parts.append(_render_list(lines) if is_list else f"<p>{escape_text(' '.join(lines))}</p>")
    return "".join(parts)


def _render_list(entries: Sequence[str]) -> str:
    items = f'<ul class="plain">{"".join(f"<li>{escape_text(entry)}</li>" for entry in entries)}</ul>'
    if len(entries) <= _MAX_LIST_ENTRIES:
        return items
    return f"<details><summary>{len(entries)} entries</summary>{items}</details>"


def _render_spending(spending: SpendingTable) -> str:
    summary = f"What the budget was spent on, by measurement ({len(spending.rows):,})"
    return f"<details><summary>{summary}</summary>{render_table(spending.headings, spending.rows)}</details>"


def render_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> str:
    """A table whose columns after the first, or the first few, are numbers."""
    numbers = [_number_class(index >= text_columns) for index in range(len(headings))]
    head = "".join(f"<th{number}>{escape_text(title)}</th>" for number, title in zip(numbers, headings, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{number}>{escape_text(cell)}</td>" for number, cell in zip(numbers, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _render_attributes(ordered: Sequence[AttributeComparison], content: PageContent) -> str:
    """A chart of each attribute, in the given order."""
    whiskers = any(attribute.std for attribute in ordered)
    keys = (
        f'<p><span class="key"><i></i>{escape_text(content.terms.reference)}</span>'
        '<span class="key synthetic"><i></i>synthetic</span>'
        + ('<span class="key whisker"><i></i>95 % of the noise</span>' if whiskers else "")
        + "</p>"
    )
    introduction = (
        "<p>The share of rows of each value. The attribute whose distance exceeds its floor "
        f"({escape_text(content.terms.floor)}) most comes first.</p>"
    )
    figures = "".join(_render_attribute(index, attribute, content) for index, attribute in enumerate(ordered))
    return _render_section(
        "attributes", "Attributes, worst first", introduction, keys, f'<div class="grid">{figures}</div>'
    )


def _render_attribute(index: int, attribute: AttributeComparison, content: PageContent) -> str:
    data, distance = charts.attribute_data(attribute), attribute.distance
    scale = " · square-root scale" if data["exponent"] < 1 else ""
    caption = f"{attribute.kind} · distance {distance.synthetic:.4f} · floor {distance.floor:.4f}{scale}"
    reference = escape_text(content.terms.reference)
    notes = "".join(
        f'<p class="note">{escape_text(label)}: {reference} {share:.2%}, synthetic {synthetic:.2%}</p>'
        for label, share, synthetic in data.get("beside", [])
    )
    return (
        f"<figure><h3>{escape_text(attribute.name)}</h3><figcaption>{escape_text(caption)}</figcaption>"
        f'<div class="picture" data-picture="attribute {index}"></div>{notes}</figure>'
    )


def _render_pairs(content: PageContent) -> str:
    """The heat map, and the worst pairs side by side."""
    pairs = content.comparison.pairs
    if not pairs:
        return _render_section("pairs", "Pairs", '<p class="soft">No pair of attributes is compared.</p>')
    floor = escape_text(content.terms.floor)
    ramp = "".join(f'<i style="background:var(--heat-{step})"></i>' for step in range(_HEAT_STEPS))
    introduction = (
        f"<p>The distance of the marginal of each pair minus its floor ({floor}). The attribute with the largest "
        "errors comes first. Hover over a cell to see its distances; click it to show it in the table. Empty cells "
        "were not compared.</p>"
        f'<p class="soft">0<span class="ramp">{ramp}</span><span id="heat-max"></span></p>'
    )
    names = {name for pair in pairs for name in (pair.first, pair.second)}
    left_out = len(names) - charts.MAX_HEAT_MAP_ATTRIBUTES
    note = f'<p class="note">{left_out} attributes with smaller errors are not shown.</p>' if left_out > 0 else ""
    heat = (
        f'<figure class="wide"><div class="scroll"><div class="picture" data-picture="heat"></div></div>{note}</figure>'
    )
    worst = "".join(_render_pair(index, table, content) for index, table in enumerate(content.comparison.worst_pairs))
    legend = (
        "<p>Colors show the square root of the share of rows. The difference is orange where the synthetic table has "
        "more rows, blue where it has fewer.</p>"
    )
    title = "<h2>The worst pairs, side by side</h2>"
    return _render_section("pairs", "Pairs", introduction, heat, title, legend, worst)


def _render_pair(index: int, table: PairTable, content: PageContent) -> str:
    lines = zip(table.reference, table.synthetic, strict=True)
    largest = max(abs(synthetic - share) for line in lines for share, synthetic in zip(*line, strict=True))
    difference = f"difference, at most {largest:.2%} of all rows"
    parts = (("reference", content.terms.reference), ("synthetic", "synthetic"), ("difference", difference))
    panels = "".join(
        f"<div><figcaption>{escape_text(words)}</figcaption>"
        f'<div class="picture" data-picture="pair {index} {which}"></div></div>'
        for which, words in parts
    )
    return (
        f'<figure class="wide"><h3>{escape_text(table.first)} × {escape_text(table.second)}</h3>'
        f'<div class="panels">{panels}</div></figure>'
    )


def _render_marginals(content: PageContent) -> str:
    """The table of all marginals, which the page's script fills, sorts and filters."""
    head = "".join(map(_render_heading, content.columns))
    left_out = len(content.rows) - MAX_TABLE_ROWS
    note = f'<p class="note">{left_out:,} marginals with smaller errors are left out.</p>' if left_out > 0 else ""
    return _render_section(
        "table",
        "All marginals",
        "<p>Click a heading to sort by it.</p>",
        '<div class="tools"><input id="filter" type="search" placeholder="Filter by attribute" '
        'aria-label="Filter by attribute"><span id="row-count" class="soft" role="status"></span></div>',
        f'<div class="scroll"><table id="marginals"><thead><tr>{head}</tr></thead><tbody></tbody></table></div>',
        f'<p><button id="more" type="button" hidden>Show all</button></p>{note}',
    )


def _render_heading(column: TableColumn) -> str:
    title = f' title="{escape_text(column.hint)}"' if column.hint else ""
    button = f'<button type="button"{title}>{escape_text(column.heading)}</button>'
    return f'<th scope="col" aria-sort="none"{_number_class(column.style != "text")}>{button}</th>'


def _render_footer(notes: Sequence[str]) -> str:
    """Further remarks."""
    return f"<footer>{''.join(f'<p>{escape_text(note)}</p>' for note in notes)}</footer>"


# ── escaping ─────────────────────────────────────────────────────────────────────────────────────────────────


def escape_text(text: str) -> str:
    """Escape text for elements and for quoted attributes."""
    return html.escape(text.encode("utf-8", "replace").decode("utf-8"), quote=True)


def escape_json(data: Any) -> str:
    """JSON in plain ASCII that cannot end the element that contains it."""
    plain = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return plain.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def escape_script(script: str) -> str:
    """A script that cannot end its element. In our script and the library's, a tag can only be part of a string."""
    return re.sub(r"<(?=/script|!--)", r"\\x3C", script, flags=re.IGNORECASE)


def content_security_policy(*scripts: str) -> str:
    """A content security policy that allows nothing from other files, and no scripts except these, by their hashes."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"
