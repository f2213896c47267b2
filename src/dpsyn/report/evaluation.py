"""The scores of a synthetic table, in words and lines of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsyn.evaluation.contest import combined_score
from dpsyn.evaluation.results import NOTICE
from dpsyn.report.numbers import counted

if TYPE_CHECKING:
    from dpsyn.evaluation import Evaluation as Evaluation
    from dpsyn.evaluation import Figure

SCORE_HEADINGS = ("", "synthetic", "sampling floor", "independent", "better is")
"""The columns of ``score_rows``; those in the middle are numbers."""

WORST_HEADINGS = ("farthest beyond the sampling floor", "synthetic", "sampling floor", "independent")
"""The columns of ``worst_rows``; all but the first are numbers."""

YARDSTICKS = (
    "The sampling floor is what a fresh sample of the real rows would get, independent what they get if each column is "
    "shuffled by itself. Distances and correlations see numbers and dates in the schema's bins, the NIST scores see "
    "them more finely: a table may keep the ones and lose the others."
)

_WORST = 5
"""Attributes, and pairs, that are named."""

_NOT_JUDGED = "–"
"""Where neither more nor less is better."""


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """A figure with what it is.

    Attributes:
        words: what it is.
        figure: the figure between its yardsticks.
        shown: how it is written.
        better: ``less``, ``more``, or empty where neither is.
    """

    words: str
    figure: Figure
    shown: Callable[[float], str]
    better: str = ""

    @property
    def cells(self) -> tuple[str, str, str]:
        """The figure and its yardsticks, as text."""
        figure = self.figure
        return self.shown(figure.synthetic), self.shown(figure.floor), self.shown(figure.independent)


def title(evaluation: Evaluation) -> str:
    """What is compared."""
    rows = f"{counted(evaluation.synthetic_rows, 'row')} against {evaluation.real_rows:,}"
    return (
        f"{evaluation.synthetic} against {evaluation.real}: {rows}, {counted(len(evaluation.attributes), 'attribute')}"
    )


def score_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """A line of text for each figure."""
    return [(line.words, *line.cells, line.better or _NOT_JUDGED) for line in score_lines(evaluation)]


def score_lines(evaluation: Evaluation) -> list[ScoreLine]:
    """Every overall figure."""
    return [*_marginal_lines(evaluation), *_contest_lines(evaluation), *_other_lines(evaluation)]


def _marginal_lines(evaluation: Evaluation) -> Iterator[ScoreLine]:
    apart, correlations = evaluation.distances, evaluation.correlations
    several = [
        (f"distance of {counted(len(evaluation.attributes), '1-way marginal')}", apart.one_way),
        (f"distance of {counted(len(evaluation.pairs), '2-way marginal')}", apart.two_way),
        (f"distance of {counted(apart.triples, '3-way marginal')}", apart.three_way),
        ("difference of Cramér's V", correlations.cramers_v),
        ("difference of Spearman's ρ", correlations.spearman),
    ]
    yield from (ScoreLine(words, figure, _fraction, "less") for words, figure in several if figure is not None)


def _contest_lines(evaluation: Evaluation) -> Iterator[ScoreLine]:
    contest = evaluation.contest
    yield ScoreLine(f"NIST density ({counted(contest.triples, 'set')} of columns)", contest.density, _points, "more")
    yield ScoreLine(f"NIST range queries ({contest.queries:,})", contest.range_queries, _points, "more")
    if contest.income is not None:
        regions = counted(len(contest.income.regions), "region")
        yield ScoreLine(f"NIST Gini and gender gap ({regions})", contest.income.score, _points, "more")
    yield ScoreLine(f"NIST mean (preset {contest.preset})", contest.mean, _points, "more")


def _other_lines(evaluation: Evaluation) -> Iterator[ScoreLine]:
    classifier = evaluation.classifier
    if classifier is not None:
        words = f"{classifier.target} predicted: area under the curve (by real rows {_fraction(classifier.real_auc)})"
        yield ScoreLine(words, classifier.auc, _fraction, "more")
        words = f"{classifier.target} predicted: accuracy (by real rows {_percent(classifier.real_accuracy)})"
        yield ScoreLine(words, classifier.accuracy, _percent, "more")
    yield ScoreLine("rows identical to a real row", evaluation.identical.share, _percent)


def worst_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """The attributes and pairs whose marginals are farthest above the sampling floor, the worst first."""
    lines: list[tuple[str, ...]] = []
    singles = [((attribute.name,), attribute.distance) for attribute in evaluation.attributes]
    for entries in (singles, [((pair.first, pair.second), pair.distance) for pair in evaluation.pairs]):
        beyond = sorted(entries, key=lambda entry: entry[1].floor - entry[1].synthetic)
        worst = [ScoreLine(" × ".join(names), figure, _fraction) for names, figure in beyond[:_WORST]]
        lines += [(line.words, *line.cells) for line in worst]
    return lines


def further_notes(evaluation: Evaluation) -> list[str]:
    """What else is to be known about the figures: sentences."""
    outside = [attribute for attribute in evaluation.attributes if any(attribute.outside)]
    named = (f"{each.name} ({' / '.join(map(_percent, each.outside))})" for each in outside)
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
    combined = combined_score([evaluation.contest for evaluation in evaluations])
    figures = {"synthetic": combined.synthetic, "floor": combined.floor, "independent": combined.independent}
    return {"notice": NOTICE, "combined": figures, "evaluations": [each.to_dict() for each in evaluations]}


def combined_line(evaluations: Sequence[Evaluation]) -> str:
    """The combined score of several tables in words."""
    combined = combined_score([evaluation.contest for evaluation in evaluations])
    return (
        f"NIST mean of {counted(len(evaluations), 'table')}: {_points(combined.synthetic)} "
        f"(sampling floor {_points(combined.floor)}, independent {_points(combined.independent)})."
    )


def _fraction(number: float) -> str:
    return f"{number:.4f}"


def _points(number: float) -> str:
    return f"{number:,.0f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
