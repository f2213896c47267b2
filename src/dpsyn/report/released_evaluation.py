"""A released evaluation as text, JSON and HTML that may be published."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from dpsyn.report.html_page import render_template
from dpsyn.report.ledger import NOT_PRIVATE
from dpsyn.report.numbers import format_number
from dpsyn.report.release_facts import page_facts

if TYPE_CHECKING:
    from dpsyn.assessment import GroupDistance, ReleasedDistance, ReleasedEvaluation, ReleasedFigure

DISTANCE_HEADINGS = ("distance", "value", "95 % interval", "fresh sample")
"""The columns of ``overall_rows`` and ``attribute_rows``; all but the first are numbers."""

GROUP_HEADINGS = ("group", "rows, about", "synthetic rows", "distance", "95 % interval", "fresh sample", "")
"""The columns of ``group_rows``; those between the first and the last are numbers."""

CRITERION_HEADINGS = ("criterion", "error", "95 % interval", "verdict")
"""The columns of ``criterion_rows``."""

EXPLANATION = (
    "A distance is the share of rows that would have to change to make two marginals equal. Each interval contains the "
    "figure of the private table with a probability of 95 %, one by one; the largest distances have intervals of their "
    "own. Fresh sample: about the distance of a sample of the private rows that is as large as the synthetic table."
)

GROUP_EXPLANATION = (
    "Within each group, the mean distance of the one-way marginals of all other attributes. Small: the group has few "
    "rows, or the interval is too wide to judge it at this ε."
)

SMALL = "small"
_NONE = "–"


def evaluation_lines(evaluation: ReleasedEvaluation) -> list[str]:
    """What was found, in a few sentences, the most important one first."""
    overall = evaluation.two_way or evaluation.one_way
    what = "Pairs of columns" if evaluation.two_way else "Columns"
    lines = [
        f"{what} differ from the private table by {_percent(overall.value)} of the rows on average "
        f"(95 % interval {_interval(overall, percent=True)})."
    ]
    if evaluation.criteria:
        verdicts = [result.verdict for result in evaluation.criteria]
        counts = [f"{verdicts.count(word)} {word}" for word in ("met", "not met", "not decided") if word in verdicts]
        noun = "criterion" if len(verdicts) == 1 else "criteria"
        lines.append(f"Of {len(verdicts)} {noun}: {', '.join(counts)}.")
    judged = [group for group in evaluation.groups if not group.small]
    if judged:
        worst = max(judged, key=lambda group: group.distance.low or 0.0)
        lines.append(
            f"Of the groups that can be judged, {worst.distance.label} has the largest error: "
            f"{_percent(worst.distance.value)} ({_interval(worst.distance, percent=True)})."
        )
    small = [group.distance.label for group in evaluation.groups if group.small]
    if small:
        shown = ", ".join(small[:5]) + (f" and {len(small) - 5} more" if len(small) > 5 else "")
        lines.append(f"Too small to judge: {shown}.")
    if evaluation.left_out:
        lines.append(f"Not compared, because their tables are too large: {', '.join(evaluation.left_out[:5])}.")
    return lines


def overall_rows(evaluation: ReleasedEvaluation) -> list[tuple[str, ...]]:
    """A row of text for each overall distance."""
    return [_distance_row(distance) for distance in evaluation.overall]


def attribute_rows(evaluation: ReleasedEvaluation) -> list[tuple[str, ...]]:
    """A row of text for each attribute, the largest noisy distance first."""
    return [_distance_row(each) for each in sorted(evaluation.attributes, key=lambda each: -each.value)]


def group_rows(evaluation: ReleasedEvaluation) -> list[tuple[str, ...]]:
    """A row of text for each group."""
    return [_group_row(group) for group in evaluation.groups]


def criterion_rows(evaluation: ReleasedEvaluation) -> list[tuple[str, ...]]:
    """A row of text for each criterion."""
    return [
        (result.criterion, format_number(result.error.value, 3), _interval(result.error), result.verdict)
        for result in evaluation.criteria
    ]


def released_evaluation_page(evaluation: ReleasedEvaluation, *, made: date | None = None) -> str:
    """One HTML file without scripts, which may be published."""
    certificate = evaluation.certificate
    return render_template(
        "released_evaluation.html",
        scripted=False,
        title=f"{evaluation.synthetic}: how close it is to the private table",
        tone="private" if evaluation.notice.startswith(NOT_PRIVATE) else "public",
        evaluation=evaluation,
        facts=(
            *page_facts(None, made),
            *((("dataset", certificate.dataset),) if certificate.dataset else ()),
            ("guarantee of this evaluation", certificate.guarantee),
            ("synthetic rows", f"{evaluation.synthetic_rows:,}"),
            ("private rows, about", format_number(round(evaluation.rows.value))),
            ("SHA-256 of the synthetic table", evaluation.synthetic_hash),
        ),
        lines=evaluation_lines(evaluation),
        explanation=EXPLANATION,
        group_explanation=GROUP_EXPLANATION,
        tables=_tables(evaluation),
        certificate=certificate.text(),
    )


def _tables(evaluation: ReleasedEvaluation) -> list[tuple[str, str, Sequence[str], list[tuple[str, ...]]]]:
    """The tables that have rows: heading, explanation, columns, rows."""
    tables: list[tuple[str, str, Sequence[str], list[tuple[str, ...]]]] = [
        ("Criteria", "", CRITERION_HEADINGS, criterion_rows(evaluation)),
        ("Overall", EXPLANATION, DISTANCE_HEADINGS, overall_rows(evaluation)),
        ("Groups", GROUP_EXPLANATION, GROUP_HEADINGS, group_rows(evaluation)),
        ("Attributes", "", DISTANCE_HEADINGS, attribute_rows(evaluation)),
    ]
    return [table for table in tables if table[3]]


def _distance_row(distance: ReleasedDistance) -> tuple[str, ...]:
    floor = _NONE if distance.floor is None else f"{distance.floor:.4f}"
    return distance.label, f"{distance.value:.4f}", _interval(distance), floor


def _group_row(group: GroupDistance) -> tuple[str, ...]:
    rows = f"{format_number(round(group.rows.value))}", f"{group.synthetic_rows:,}"
    return group.distance.label, *rows, *_distance_row(group.distance)[1:], SMALL if group.small else ""


def _interval(figure: ReleasedFigure, *, percent: bool = False) -> str:
    if figure.low is None or figure.high is None:
        return "unknown"
    if percent:
        return f"{100 * figure.low:.1f} … {100 * figure.high:.1f} %"
    return f"{format_number(figure.low, 3)} … {format_number(figure.high, 3)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
