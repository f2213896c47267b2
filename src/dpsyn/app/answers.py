"""Answers of a synopsis as tables and pictures: on a page of the server, and on a page that needs none.

Everything here follows from a synopsis, so it may be published.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dpsyn
from dpsyn.errors import UserError
from dpsyn.progress import Progress, ignore_progress
from dpsyn.report.answers import answer_headings, answer_lines, answer_rows
from dpsyn.report.content import Matrix, MatrixCell
from dpsyn.report.html_page import read_asset, render_template, trust_markup
from dpsyn.report.release_facts import page_facts
from dpsyn.report.synopsis import privacy_warning_lines

TEMPLATES = Path(__file__).with_name("templates")

CONFIDENCE = 0.95

MAX_SHOWN_COUNTS = 1_000
"""Rows of the table of an answer on a page."""

MAX_MATRIX_SIZE = 60
"""Values on a side of a colored matrix."""

MAX_EXPORT_CELLS = 2_000_000
"""Counts of an exported page, which has about thirty bytes for each."""

_SHADES = 8


def describe_answer(synopsis: dpsyn.Synopsis, names: Sequence[str], where: Sequence[str]) -> dict[str, Any]:
    """A marginal with error bars, as a table and a picture."""
    conditions = dpsyn.parse_conditions(where, synopsis.schema.names)
    answer = synopsis.marginal(*names, where=conditions)
    return {
        "answer": answer,
        "headings": answer_headings(answer, CONFIDENCE),
        "answer_rows": answer_rows(answer, CONFIDENCE, MAX_SHOWN_COUNTS),
        "left_out": max(0, answer.counts.size - MAX_SHOWN_COUNTS),
        "notes": answer_lines(answer, CONFIDENCE),
        "bars": _bars(answer) if len(names) <= 1 else None,
        "matrix": _matrix(answer) if len(names) == 2 else None,
    }


def _bars(answer: dpsyn.Answer) -> list[dict[str, Any]]:
    """Bars with whiskers, as shares of the longest."""
    low, high = (array.ravel().tolist() for array in answer.interval(CONFIDENCE))
    counts = answer.counts.ravel().tolist()
    longest = max([*high, *counts, 1e-9])
    labels = answer.labels[0] if answer.attributes else ("all rows",)
    return [
        {
            "label": label,
            "count": count,
            "width": 100 * max(0.0, count) / longest,
            "low": 100 * max(0.0, bottom) / longest,
            "high": 100 * max(0.0, top) / longest,
            "text": f"{count:,.0f} ({max(0.0, bottom):,.0f} … {top:,.0f})",
        }
        for label, count, bottom, top in zip(labels, counts, low, high, strict=True)
    ][:MAX_SHOWN_COUNTS]


def _matrix(answer: dpsyn.Answer) -> Matrix | None:
    """A colored matrix of two attributes; None if it has too many values."""
    lines, columns = answer.labels
    if max(len(lines), len(columns)) > MAX_MATRIX_SIZE:
        return None
    largest = max(float(answer.counts.max()), 1e-9)
    cells = tuple(
        tuple(
            MatrixCell(text=f"{count:,.0f}", color=f"h{round(_SHADES * (max(0.0, count) / largest) ** 0.5)}")
            for count in row
        )
        for row in answer.counts.tolist()
    )
    title = f"{answer.attributes[0]} × {answer.attributes[1]}: rows"
    return Matrix(title=title, lines=tuple(lines), columns=tuple(columns), cells=cells)


# ── a page for publication ───────────────────────────────────────────────────────────────────────────────────


def export_page(synopsis: dpsyn.Synopsis, progress: Progress = ignore_progress) -> str:
    """One page that answers questions about one and two attributes without a server, and may be published."""
    names = [attribute.name for attribute in synopsis.schema.modeled_attributes]
    pairs = list(itertools.combinations(range(len(names)), 2))
    data: dict[str, Any] = {"names": names, "labels": [], "one": [], "two": {}}
    cells = 0
    for name in names:
        answer = synopsis.marginal(name)
        data["labels"].append(list(answer.labels[0]))
        data["one"].append(_export_answer(answer))
    for number, (first, second) in enumerate(pairs):
        progress("answering questions about pairs", number / len(pairs))
        answer = synopsis.marginal(names[first], names[second])
        cells += answer.counts.size
        if cells > MAX_EXPORT_CELLS:
            raise UserError(
                f"a page with all pairs of these {len(names)} attributes would be too large for a browser; publish the "
                "synopsis instead, which dpsyn query and dpsyn app --ask answer from"
            )
        data["two"][f"{first},{second}"] = _export_answer(answer)
    script = read_asset("page.js") + (TEMPLATES / "ask.js").read_text("utf-8")
    return render_template(
        "ask_export.html",
        TEMPLATES,
        title=f"Ask {synopsis.schema.dataset or 'the synopsis'}",
        warnings=privacy_warning_lines(synopsis),
        facts=page_facts(synopsis),
        names=names,
        script=trust_markup(script),
        style=trust_markup(read_asset("page.css") + (TEMPLATES / "app.css").read_text("utf-8")),
        data=trust_markup(_script_safe(data)),
    )


def _export_answer(answer: dpsyn.Answer) -> dict[str, Any]:
    """The counts and intervals of an answer, rounded to what their errors allow."""
    low, high = answer.interval(CONFIDENCE)
    return {
        "source": answer.source,
        "counts": list(_round(answer.counts.ravel().tolist())),
        "low": list(_round(low.ravel().tolist())),
        "high": list(_round(high.ravel().tolist())),
        "shape": list(answer.counts.shape),
        "notes": answer_lines(answer, CONFIDENCE),
    }


def _round(numbers: Sequence[float]) -> Iterator[float]:
    """Numbers of rows with one decimal below 100."""
    return (round(number, 1) if abs(number) < 100 else round(number) for number in numbers)


def _script_safe(data: Any) -> str:
    """JSON that cannot end the element it is in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
