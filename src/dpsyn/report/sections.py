"""The parts of a page as HTML; whatever comes from a table goes through ``escaping.text``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from dpsyn.report import charts
from dpsyn.report.content import AttributeChart, Column, Content, Guarantee, PairChart, Payments, Score
from dpsyn.report.escaping import text

MOST_ROWS = 5_000
"""Rows of the table of marginals: those farthest beyond their floor."""

_MOST_ENTRIES = 4
"""Entries of a list that is not folded."""

_HEAT_STEPS = 9


def header() -> str:
    """The links to the sections, and the switch between light and dark."""
    links = (("scores", "Scores"), ("guarantee", "Guarantee"), ("attributes", "Attributes"), ("pairs", "Pairs"))
    listed = "".join(f'<a href="#{place}">{words}</a>' for place, words in (*links, ("table", "All marginals")))
    return f'<header><div><nav>{listed}</nav><button id="theme" type="button">Dark</button></div></header>'


def _section(place: str, heading: str, *parts: str) -> str:
    return f'<section id="{place}">\n<h2>{heading}</h2>\n{"".join(parts)}\n</section>'


def scores_section(content: Content) -> str:
    """Overall figures between their yardsticks."""
    headings = (
        "",
        "synthetic",
        content.words.floor,
        "independent",
        "better is",
        f"{content.words.floor} → independent",
    )
    head = "".join(
        f"<th{_number_class(1 <= place <= 3)}>{text(heading)}</th>" for place, heading in enumerate(headings)
    )
    body = "".join(map(_score_row, content.scores))
    table = f'<div class="scroll"><table class="main"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return _section("scores", "Overall", f"<p>{text(content.words.yardsticks)}</p>", table)


def _score_row(score: Score) -> str:
    numbers = "".join(f'<td class="number">{text(shown)}</td>' for shown in score.shown)
    where = f"{100 * score.place:.0f} %" if score.place is not None else ""
    track = (
        f'<div class="track" title="{where}"><i style="left:{_clipped(score.place):.1f}%"></i></div>' if where else ""
    )
    return f"<tr><td>{text(score.words)}</td>{numbers}<td>{text(score.better or '–')}</td><td>{track}</td></tr>"


def _clipped(place: float | None) -> float:
    return 100 * min(1.0, max(0.0, place or 0.0))


def _number_class(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def guarantee_section(guarantee: Guarantee) -> str:
    """Certificate and budget in words, and every draw."""
    facts = "".join(f"<li><b>{text(figure)}</b><span>{text(words)}</span></li>" for figure, words in guarantee.facts)
    listed = f'<ul class="facts">{facts}</ul>' if facts else ""
    paragraphs = "".join(map(_paragraph, guarantee.paragraphs))
    return _section("guarantee", "Guarantee and budget", listed, paragraphs, *map(_payments, guarantee.payments))


def _paragraph(block: str) -> str:
    """Some lines of words: those that are set in are a list, and one line that is no sentence is a heading."""
    if "\n" not in block and not block.endswith((".", ":")):
        return f"<h3>{text(block)}</h3>"
    parts = []
    for is_list, group in groupby(block.split("\n"), key=lambda line: line.startswith("  ")):
        lines = [line.strip() for line in group]
        parts.append(_list(lines) if is_list else f"<p>{text(' '.join(lines))}</p>")
    return "".join(parts)


def _list(entries: Sequence[str]) -> str:
    listed = f'<ul class="plain">{"".join(f"<li>{text(entry)}</li>" for entry in entries)}</ul>'
    if len(entries) <= _MOST_ENTRIES:
        return listed
    return f"<details><summary>{len(entries)} entries</summary>{listed}</details>"


def _payments(payments: Payments) -> str:
    summary = f"What the budget was spent on, draw by draw ({len(payments.rows):,})"
    return f"<details><summary>{summary}</summary>{_plain_table(payments.headings, payments.rows)}</details>"


def _plain_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose columns after the first are numbers."""
    head = "".join(f"<th{_number_class(place > 0)}>{text(words)}</th>" for place, words in enumerate(headings))
    body = "".join(
        "<tr>" + "".join(f"<td{_number_class(place > 0)}>{text(cell)}</td>" for place, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def attributes_section(ordered: Sequence[AttributeChart], content: Content) -> str:
    """A picture of each attribute, in the order given."""
    whiskers = any(chart.deviation for chart in ordered)
    keys = (
        f'<p><span class="key"><i></i>{text(content.words.reference)}</span>'
        '<span class="key synthetic"><i></i>synthetic</span>'
        + ('<span class="key whisker"><i></i>noise, 95 of 100</span>' if whiskers else "")
        + "</p>"
    )
    told = (
        "<p>The share of rows that each value has; first the attribute that is farthest beyond its floor "
        f"({text(content.words.floor)}).</p>"
    )
    figures = "".join(_figure(number, chart, content) for number, chart in enumerate(ordered))
    return _section("attributes", "Attributes, worst first", told, keys, f'<div class="grid">{figures}</div>')


def _figure(number: int, chart: AttributeChart, content: Content) -> str:
    drawn = charts.attribute_data(chart)
    scale = " · square-root scale" if drawn["exponent"] < 1 else ""
    caption = f"{chart.kind} · distance {chart.distance:.4f} · floor {chart.floor:.4f}{scale}"
    apart = "".join(
        f'<p class="note">{text(label)}: {text(content.words.reference)} {share:.2%}, synthetic {synthetic:.2%}</p>'
        for label, share, synthetic in drawn.get("beside", [])
    )
    return (
        f"<figure><h3>{text(chart.name)}</h3><figcaption>{text(caption)}</figcaption>"
        f'<div class="picture" data-picture="attribute {number}"></div>{apart}</figure>'
    )


def pairs_section(content: Content) -> str:
    """The heat map, and the worst pairs side by side."""
    if not content.pairs:
        return _section("pairs", "Pairs", '<p class="soft">No pair of attributes is compared.</p>')
    floor = text(content.words.floor)
    ramp = "".join(f'<i style="background:var(--heat-{step})"></i>' for step in range(_HEAT_STEPS))
    told = (
        f"<p>How far the marginal of each pair is off, less its floor ({floor}); the attribute that is off most comes "
        "first. Hover over a cell for its figures, click it to find it in the table. Empty cells were not compared.</p>"
        f'<p class="soft">0<span class="ramp">{ramp}</span><span id="heat-most"></span></p>'
    )
    left_out = len({name for pair in content.pairs for name in (pair.first, pair.second)}) - charts.MOST_NAMES
    note = f'<p class="note">{left_out} attributes with smaller errors are not drawn.</p>' if left_out > 0 else ""
    heat = (
        f'<figure class="wide"><div class="scroll"><div class="picture" data-picture="heat"></div></div>{note}</figure>'
    )
    worst = "".join(_panels(number, chart, content) for number, chart in enumerate(content.worst_pairs))
    shade = (
        "<p>Colours go by the square root of the share of rows. The difference is orange where the synthetic table has "
        "more rows, blue where it has fewer.</p>"
    )
    return _section("pairs", "Pairs", told, heat, "<h2>The worst pairs, side by side</h2>", shade, worst)


def _panels(number: int, chart: PairChart, content: Content) -> str:
    lines = zip(chart.reference, chart.synthetic, strict=True)
    widest = max(abs(made - known) for line in lines for known, made in zip(*line, strict=True))
    difference = f"difference, at most {widest:.2%} of all rows"
    parts = (("reference", content.words.reference), ("synthetic", "synthetic"), ("difference", difference))
    panels = "".join(
        f"<div><figcaption>{text(words)}</figcaption>"
        f'<div class="picture" data-picture="pair {number} {which}"></div></div>'
        for which, words in parts
    )
    return (
        f'<figure class="wide"><h3>{text(chart.first)} × {text(chart.second)}</h3>'
        f'<div class="panels">{panels}</div></figure>'
    )


def table_section(content: Content) -> str:
    """The table of all marginals, which the page fills, sorts and filters."""
    head = "".join(map(_heading, content.columns))
    left_out = len(content.rows) - MOST_ROWS
    note = f'<p class="note">{left_out:,} marginals with smaller errors are left out.</p>' if left_out > 0 else ""
    return _section(
        "table",
        "All marginals",
        "<p>Click a heading to sort by it.</p>",
        '<div class="tools"><input id="filter" type="search" placeholder="Filter by attribute" '
        'aria-label="Filter by attribute"><span id="told" class="soft" role="status"></span></div>',
        f'<div class="scroll"><table id="marginals"><thead><tr>{head}</tr></thead><tbody></tbody></table></div>',
        f'<p><button id="more" type="button" hidden>Show all</button></p>{note}',
    )


def _heading(column: Column) -> str:
    title = f' title="{text(column.hint)}"' if column.hint else ""
    button = f'<button type="button"{title}>{text(column.heading)}</button>'
    return f'<th scope="col" aria-sort="none"{_number_class(column.style != "text")}>{button}</th>'


def footer(notes: Sequence[str]) -> str:
    """What else is to be said."""
    return f"<footer>{''.join(f'<p>{text(note)}</p>' for note in notes)}</footer>"
