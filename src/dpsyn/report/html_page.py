"""HTML pages from the templates in ``templates/``: one self-contained file each.

Everything that comes from a table is escaped by the templates. A content security policy forbids a page to load
anything, or to run any script except its own. ``environment`` is for everything that shows such pages: ``base.html`` is
the layout of a whole page, ``macros.html`` has its parts, ``page.css`` and ``page.js`` its look and its interaction.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsyn import __version__
from dpsyn.report.charts import Chart, attribute_chart
from dpsyn.report.content import PageContent, TableCell
from dpsyn.report.groups import group_rows
from dpsyn.report.matrices import pair_group
from dpsyn.report.verdict import differs, is_worse_than_shuffled

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from dpsyn.marginals import AttributeComparison

TEMPLATES = Path(__file__).with_name("templates")

MAX_TABLE_ROWS = 2_000
"""Rows of the table of marginals: the largest by the last column."""

MAX_OPEN_CARDS = 24
"""Attributes whose charts are unfolded at first."""

MAX_SHOWN_NUMBERS = 20
"""Columns of a matrix whose numbers have room in its cells; half as many if matrices are side by side."""


def render_page(content: PageContent) -> str:
    """The page of a comparison."""
    ordered = sorted(content.comparison.attributes, key=lambda attribute: -attribute.distance.excess)
    return render_template(
        "comparison.html",
        content=content,
        cards=[_card(attribute, content.terms.reference) for attribute in ordered],
        worst_pairs=[
            pair_group(index, table, content.terms.reference)
            for index, table in enumerate(content.comparison.worst_pairs)
        ],
        groups=group_rows(content.comparison.groups),
        rows=_worst_rows(content),
        max_open_cards=MAX_OPEN_CARDS,
    )


def render_template(name: str, *folders: Path, **context: Any) -> str:
    """A template with its context as one file; it may be in one of other folders."""
    text: str = environment(*folders).get_template(name).render(**context)
    return text.encode("utf-8", "replace").decode("utf-8")  # a name can hold half of a character


@functools.cache
def environment(*folders: Path) -> Environment:
    """The environment of all templates: everything is escaped, and a name that is not defined is an error.

    ``folders`` hold the templates of others, which share the layout and the parts of these.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # here, so that importing stays fast

    made = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["cell"] = format_cell
    made.globals.update(
        style=trust_markup(read_asset("page.css")),
        script=trust_markup(read_asset("page.js")),
        content_security_policy=content_security_policy,
        max_shown_numbers=MAX_SHOWN_NUMBERS,
        scripted=True,
        version=__version__,
    )
    return made


def trust_markup(text: str) -> Markup:
    """Markup, a style or a script of our own, which templates do not escape."""
    from markupsafe import Markup

    return Markup(text)


def read_asset(name: str) -> str:
    """The style or the script of all pages."""
    return (TEMPLATES / name).read_text("utf-8")


def content_security_policy(*scripts: str) -> str:
    """A content security policy that allows nothing from other files, and no scripts except these, by their hashes."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"


def format_cell(cell: TableCell, style: str) -> str:
    """A cell of the table of marginals as text."""
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    return {"count": "{:,.0f}", "fraction": "{:.4f}"}.get(style, "{:.3g}").format(cell)


def _card(attribute: AttributeComparison, reference: str) -> dict[str, Any]:
    """What a card of an attribute shows."""
    chart: Chart = attribute_chart(attribute, reference)
    return {
        "attribute": attribute,
        "svg": trust_markup(chart.svg),  # Vega escapes the names and values in it
        "chart": chart,
        "differs": differs(attribute.distance),
    }


def _worst_rows(content: PageContent) -> list[dict[str, Any]]:
    """The rows of the table, the largest value in the last column first; if there are very many, only those."""

    def key(row: tuple[TableCell, ...]) -> float:
        return -row[-1] if isinstance(row[-1], int | float) else 0.0

    bad = {
        f"{pair.first} × {pair.second}" for pair in content.comparison.pairs if is_worse_than_shuffled(pair.distance)
    }
    ranked = sorted(content.rows, key=key)[:MAX_TABLE_ROWS]
    return [{"cells": row, "worse": row[0] in bad} for row in ranked]
