"""The scores of a synthetic table, in words and lines of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsyn.evaluation.nist_contest import combine_scores
from dpsyn.evaluation.results import EVALUATION_NOTICE
from dpsyn.report.content import (
    AttributeChart,
    Guarantee,
    PageContent,
    PageTerms,
    PairChart,
    PairError,
    ScoreRow,
    TableCell,
    TableColumn,
)
from dpsyn.report.html_page import render_page
from dpsyn.report.numbers import format_count
from dpsyn.report.synopsis import describe_guarantee

if TYPE_CHECKING:
    from dpsyn.evaluation import AttributeScore, Metric, PairScore, PairTable
    from dpsyn.evaluation import Evaluation as Evaluation
    from dpsyn.synopsis import Synopsis


EVALUATION_HEADINGS = ("", "synthetic", "sampling floor", "independent", "better is")
"""The columns of ``score_rows``; those in the middle are numbers."""

WORST_HEADINGS = ("farthest beyond the sampling floor", "synthetic", "sampling floor", "independent")
"""The columns of ``worst_rows``; all but the first are numbers."""

EVALUATION_BASELINES = (
    "The sampling floor is what a fresh sample of the real rows would get, independent what they get if each column is "
    "shuffled by itself. Distances and correlations see numbers and dates in the schema's bins, the NIST scores see "
    "them more finely: a table may keep the ones and lose the others."
)

_MAX_WORST = 5
"""Attributes, and pairs, that are named."""

_NOT_JUDGED = "–"
"""Where neither more nor less is better."""


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """A figure with what it is.

    Attributes:
        label: what it is.
        figure: the figure between its yardsticks.
        format_value: how it is written.
        better: ``less``, ``more``, or empty where neither is.
    """

    label: str
    figure: Metric
    format_value: Callable[[float], str]
    better: str = ""

    @property
    def cells(self) -> tuple[str, str, str]:
        """The figure and its yardsticks, as text."""
        figure = self.figure
        return (
            self.format_value(figure.synthetic),
            self.format_value(figure.floor),
            self.format_value(figure.independent),
        )


def evaluation_title(evaluation: Evaluation) -> str:
    """What is compared."""
    rows = f"{format_count(evaluation.synthetic_rows, 'row')} against {evaluation.real_rows:,}"
    return f"{evaluation.synthetic} against {evaluation.real}: {rows}, {format_count(len(evaluation.attributes), 'attribute')}"


def score_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """A line of text for each figure."""
    return [(line.label, *line.cells, line.better or _NOT_JUDGED) for line in score_lines(evaluation)]


def score_lines(evaluation: Evaluation) -> list[ScoreLine]:
    """Every overall figure."""
    return [*_marginal_lines(evaluation), *_contest_lines(evaluation), *_other_lines(evaluation)]


def _marginal_lines(evaluation: Evaluation) -> Iterator[ScoreLine]:
    apart, correlations = evaluation.distances, evaluation.correlations
    several = [
        (f"distance of {format_count(len(evaluation.attributes), '1-way marginal')}", apart.one_way),
        (f"distance of {format_count(len(evaluation.pairs), '2-way marginal')}", apart.two_way),
        (f"distance of {format_count(apart.triples, '3-way marginal')}", apart.three_way),
        ("difference of Cramér's V", correlations.cramers_v),
        ("difference of Spearman's ρ", correlations.spearman),
    ]
    yield from (ScoreLine(words, figure, _format_fraction, "less") for words, figure in several if figure is not None)


def _contest_lines(evaluation: Evaluation) -> Iterator[ScoreLine]:
    contest = evaluation.contest
    yield ScoreLine(
        f"NIST density ({format_count(contest.triples, 'set')} of columns)", contest.density, _format_points, "more"
    )
    yield ScoreLine(f"NIST range queries ({contest.queries:,})", contest.range_queries, _format_points, "more")
    if contest.income is not None:
        regions = format_count(len(contest.income.regions), "region")
        yield ScoreLine(f"NIST Gini and gender gap ({regions})", contest.income.score, _format_points, "more")
    yield ScoreLine(f"NIST mean (preset {contest.preset})", contest.mean, _format_points, "more")


def _other_lines(evaluation: Evaluation) -> Iterator[ScoreLine]:
    classifier = evaluation.classifier
    if classifier is not None:
        words = f"{classifier.target} predicted: area under the curve (by real rows {_format_fraction(classifier.real_auc)})"
        yield ScoreLine(words, classifier.auc, _format_fraction, "more")
        words = f"{classifier.target} predicted: accuracy (by real rows {_format_percent(classifier.real_accuracy)})"
        yield ScoreLine(words, classifier.accuracy, _format_percent, "more")
    yield ScoreLine("rows identical to a real row", evaluation.identical.share, _format_percent)


def worst_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """The attributes and pairs whose marginals are farthest above the sampling floor, the worst first."""
    lines: list[tuple[str, ...]] = []
    singles = [((attribute.name,), attribute.distance) for attribute in evaluation.attributes]
    for entries in (singles, [((pair.first, pair.second), pair.distance) for pair in evaluation.pairs]):
        beyond = sorted(entries, key=lambda entry: entry[1].floor - entry[1].synthetic)
        worst = [ScoreLine(" × ".join(names), figure, _format_fraction) for names, figure in beyond[:_MAX_WORST]]
        lines += [(line.label, *line.cells) for line in worst]
    return lines


def evaluation_notes(evaluation: Evaluation) -> list[str]:
    """What else is to be known about the figures: sentences."""
    outside = [attribute for attribute in evaluation.attributes if any(attribute.outside)]
    named = (f"{each.name} ({' / '.join(map(_format_percent, each.outside))})" for each in outside)
    notes = [f"Identical rows: {evaluation.identical.note}"]
    if outside:
        notes.append(
            "Outside the schema, and counted as another value (real / synthetic cells): "
            f"{', '.join(named)}. If that is much, correct the schema: dpsyn schema check tells more."
        )
    if evaluation.left_out:
        notes.append(f"Not compared: {', '.join(evaluation.left_out)}.")
    return notes


def evaluation_data(evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """All of it as plain data: of several tables together with their combined score."""
    if len(evaluations) == 1:
        return evaluations[0].to_dict()
    combined = combine_scores([evaluation.contest for evaluation in evaluations])
    figures = {"synthetic": combined.synthetic, "floor": combined.floor, "independent": combined.independent}
    return {"notice": EVALUATION_NOTICE, "combined": figures, "evaluations": [each.to_dict() for each in evaluations]}


def combined_line(evaluations: Sequence[Evaluation]) -> str:
    """The combined score of several tables in words."""
    combined = combine_scores([evaluation.contest for evaluation in evaluations])
    return (
        f"NIST mean of {format_count(len(evaluations), 'table')}: {_format_points(combined.synthetic)} "
        f"(sampling floor {_format_points(combined.floor)}, independent {_format_points(combined.independent)})."
    )


def _format_fraction(number: float) -> str:
    return f"{number:.4f}"


def _format_points(number: float) -> str:
    return f"{number:,.0f}"


def _format_percent(share: float) -> str:
    return f"{100 * share:.1f} %"


# ── The report for the steward: scores of a synthetic table against the real one. Private ──


_TERMS = PageTerms(
    reference="real",
    floor="sampling floor",
    baselines=f"{EVALUATION_BASELINES} A good table lies near the floor, on the left.",
)

_COLUMNS = (
    TableColumn(heading="marginal", style="text"),
    TableColumn(heading="attributes", style="count"),
    TableColumn(heading="distance", style="fraction", hint="the share of rows that would have to move"),
    TableColumn(heading="sampling floor", style="fraction", hint="the distance of a fresh sample of the real rows"),
    TableColumn(heading="independent", style="fraction", hint="the distance with every column shuffled by itself"),
    TableColumn(heading="Cramér's V, real", style="fraction", hint="how strongly the two depend on each other"),
    TableColumn(heading="Cramér's V, synthetic", style="fraction"),
    TableColumn(heading="beyond the floor", style="fraction", hint="distance less the sampling floor"),
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
    return render_page(private_content(evaluation, synopsis))


def private_content(evaluation: Evaluation, synopsis: Synopsis | None = None) -> PageContent:
    """What that file shows."""
    return PageContent(
        title="What the synthetic table preserves",
        subtitle=evaluation_title(evaluation),
        tone="private",
        banner=evaluation.notice,
        terms=_TERMS,
        guarantee=describe_guarantee(synopsis) if synopsis else Guarantee(paragraphs=(_NO_CERTIFICATE,)),
        scores=tuple(map(_score_row, score_lines(evaluation))),
        attributes=tuple(map(_attribute_chart, evaluation.attributes)),
        pairs=tuple(map(_pair_error, evaluation.pairs)),
        worst_pairs=tuple(map(_pair_chart, evaluation.worst_pairs)),
        columns=_COLUMNS,
        rows=(*map(_attribute_row, evaluation.attributes), *map(_pair_row, evaluation.pairs)),
        notes=(*evaluation_notes(evaluation), evaluation.notice),
    )


def _score_row(line: ScoreLine) -> ScoreRow:
    figure = line.figure
    sign = {"less": 1, "more": -1}.get(line.better, 0)
    width = figure.independent - figure.floor
    place = (
        (figure.synthetic - figure.floor) / width if sign * width > 0 else None
    )  # else one is no worse than the other
    return ScoreRow(label=line.label, texts=line.cells, better=line.better, position=place)


def _attribute_chart(score: AttributeScore) -> AttributeChart:
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


def _pair_error(score: PairScore) -> PairError:
    return PairError(
        first=score.first,
        second=score.second,
        distance=score.distance.synthetic,
        floor=score.distance.floor,
        independent=score.distance.independent,
    )


def _pair_chart(table: PairTable) -> PairChart:
    return PairChart(
        first=table.first,
        second=table.second,
        lines=table.first_labels,
        columns=table.second_labels,
        reference=table.real,
        synthetic=table.synthetic,
    )


def _attribute_row(score: AttributeScore) -> tuple[TableCell, ...]:
    distance = score.distance
    beyond = distance.synthetic - distance.floor
    return score.name, 1, distance.synthetic, distance.floor, None, None, None, beyond


def _pair_row(score: PairScore) -> tuple[TableCell, ...]:
    distance, association = score.distance, score.cramers_v
    figures = (distance.synthetic, distance.floor, distance.independent, association.real, association.synthetic)
    return f"{score.first} × {score.second}", 2, *figures, distance.synthetic - distance.floor
