"""The report for the steward: scores of a synthetic table against the real one. Private."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsyn.report.content import (
    AttributeChart,
    Cell,
    Column,
    Content,
    Guarantee,
    PairChart,
    PairError,
    Score,
    Words,
)
from dpsyn.report.evaluation import YARDSTICKS, ScoreLine, further_notes, score_lines, title
from dpsyn.report.guarantee import guarantee_of
from dpsyn.report.page import html_of

if TYPE_CHECKING:
    from dpsyn.evaluation import AttributeScore, Evaluation, PairScore, PairTable
    from dpsyn.synopsis import Synopsis

_WORDS = Words(
    reference="real",
    floor="sampling floor",
    yardsticks=f"{YARDSTICKS} A good table lies near the floor, on the left.",
)

_COLUMNS = (
    Column(heading="marginal", style="text"),
    Column(heading="attributes", style="count"),
    Column(heading="distance", style="fraction", hint="the share of rows that would have to move"),
    Column(heading="sampling floor", style="fraction", hint="the distance of a fresh sample of the real rows"),
    Column(heading="independent", style="fraction", hint="the distance with every column shuffled by itself"),
    Column(heading="Cramér's V, real", style="fraction", hint="how strongly the two depend on each other"),
    Column(heading="Cramér's V, synthetic", style="fraction"),
    Column(heading="beyond the floor", style="fraction", hint="distance less the sampling floor"),
)

_NO_CERTIFICATE = (
    "No synopsis was given, so this page says nothing about what the release promised; dpsyn evaluate --synopsis "
    "s.dpsyn adds it."
)


def private_report(evaluation: Evaluation, synopsis: Synopsis | None = None) -> str:
    """One HTML file about a synthetic table, for the eyes of the real table's steward.

    Args:
        evaluation: the scores.
        synopsis: what the synthetic table was made from, for its certificate and budget.

    Privacy: shows what was computed from the real rows without protection, and says so first.
    """
    return html_of(private_content(evaluation, synopsis))


def private_content(evaluation: Evaluation, synopsis: Synopsis | None = None) -> Content:
    """What that file shows."""
    return Content(
        title="What the synthetic table preserves",
        subtitle=title(evaluation),
        tone="private",
        banner=evaluation.notice,
        words=_WORDS,
        guarantee=guarantee_of(synopsis) if synopsis else Guarantee(paragraphs=(_NO_CERTIFICATE,)),
        scores=tuple(map(_score, score_lines(evaluation))),
        attributes=tuple(map(_attribute, evaluation.attributes)),
        pairs=tuple(map(_pair, evaluation.pairs)),
        worst_pairs=tuple(map(_worst, evaluation.worst_pairs)),
        columns=_COLUMNS,
        rows=(*map(_attribute_row, evaluation.attributes), *map(_pair_row, evaluation.pairs)),
        notes=(*further_notes(evaluation), evaluation.notice),
    )


def _score(line: ScoreLine) -> Score:
    figure = line.figure
    sign = {"less": 1, "more": -1}.get(line.better, 0)
    width = figure.independent - figure.floor
    place = (
        (figure.synthetic - figure.floor) / width if sign * width > 0 else None
    )  # else one is no worse than the other
    return Score(words=line.words, shown=line.cells, better=line.better, place=place)


def _attribute(score: AttributeScore) -> AttributeChart:
    return AttributeChart(
        name=score.name,
        kind=score.kind,
        distance=score.distance.synthetic,
        floor=score.distance.floor,
        labels=score.labels,
        folded=score.folded,
        reference=score.real,
        synthetic=score.synthetic,
    )


def _pair(score: PairScore) -> PairError:
    return PairError(
        first=score.first,
        second=score.second,
        distance=score.distance.synthetic,
        floor=score.distance.floor,
        independent=score.distance.independent,
    )


def _worst(table: PairTable) -> PairChart:
    return PairChart(
        first=table.first,
        second=table.second,
        lines=table.first_labels,
        columns=table.second_labels,
        reference=table.real,
        synthetic=table.synthetic,
    )


def _attribute_row(score: AttributeScore) -> tuple[Cell, ...]:
    distance = score.distance
    beyond = distance.synthetic - distance.floor
    return score.name, 1, distance.synthetic, distance.floor, None, None, None, beyond


def _pair_row(score: PairScore) -> tuple[Cell, ...]:
    distance, association = score.distance, score.cramers_v
    figures = (distance.synthetic, distance.floor, distance.independent, association.real, association.synthetic)
    return f"{score.first} × {score.second}", 2, *figures, distance.synthetic - distance.floor
