"""A page's content → one HTML file that needs nothing from elsewhere.

Everything that comes from a table is escaped, as text or as JSON, and the page forbids itself, by a content security
policy, to load anything or to run any script but its own two.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpsyn.report import charts, sections, vega
from dpsyn.report.content import AttributeChart, Cell, Content
from dpsyn.report.escaping import inert, json_text, policy, text


def html_of(content: Content) -> str:
    """The whole page."""
    ordered = sorted(content.attributes, key=lambda chart: -chart.beyond)
    library, code, style = inert(vega.javascript()), _beside("page.js"), _beside("page.css")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(library, code)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="dpsyn">
<title>{text(content.title)}</title>
<style>{style}</style>
</head>
<body>
{sections.header()}
<main>
<h1>{text(content.title)}</h1>
<p class="soft">{text(content.subtitle)}</p>
<p class="banner {content.tone}" role="note">{text(content.banner)}</p>
<noscript><p class="banner warning">The pictures and the table below need JavaScript; nothing is loaded.</p></noscript>
{sections.scores_section(content)}
{sections.guarantee_section(content.guarantee)}
{sections.attributes_section(ordered, content)}
{sections.pairs_section(content)}
{sections.table_section(content)}
{sections.footer(content.notes)}
</main>
<div id="tip" hidden></div>
<script type="application/json" id="data">{json_text(_data(content, ordered))}</script>
<script>{library}</script>
<script>{code}</script>
</body>
</html>
"""


def _beside(name: str) -> str:
    """A file that lies beside this one."""
    return Path(__file__).with_name(name).read_text("utf-8")


def _data(content: Content, ordered: Sequence[AttributeChart]) -> dict[str, Any]:
    """What the page's script draws and sorts."""
    return {
        "words": {"reference": content.words.reference, "floor": content.words.floor},
        "templates": charts.templates(),
        "names": [chart.name for chart in ordered],
        "attributes": [charts.attribute_data(chart) for chart in ordered],
        "heat": charts.heat_map_data(content.pairs),
        "pairs": [charts.pair_data(chart) for chart in content.worst_pairs],
        "table": {
            "columns": [{"style": column.style} for column in content.columns],
            "rows": [[_short(cell) for cell in row] for row in _first_rows(content)],
            "sorted": len(content.columns) - 1,
        },
    }


def _short(cell: Cell) -> Cell:
    return float(f"{cell:.6g}") if isinstance(cell, float) else cell


def _first_rows(content: Content) -> list[tuple[Cell, ...]]:
    """The rows that are worst by the last column, if there are very many."""
    if len(content.rows) <= sections.MOST_ROWS:
        return list(content.rows)
    return sorted(content.rows, key=lambda row: -(row[-1] if isinstance(row[-1], float) else 0.0))[: sections.MOST_ROWS]
