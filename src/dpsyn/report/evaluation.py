"""The scores of a synthetic table, in words and lines of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dpsyn.evaluation.contest import combined_score
from dpsyn.evaluation.results import NOTICE
from dpsyn.report.numbers import counted

if TYPE_CHECKING:
    from dpsyn.evaluation import Evaluation as Evaluation
    from dpsyn.evaluation import Figure

SCORE_HEADINGS = ("", "synthetic", "sampling floor", "independent", "better is")
"""The columns of ``score_rows``; those in the middle are numbers."""

WORST_HEADINGS = ("farthest from the real table", "synthetic", "sampling floor", "independent")
"""The columns of ``worst_rows``; all but the first are numbers."""

YARDSTICKS = (
    "The sampling floor is what a fresh sample of the real rows would get, independent what they get if each column is "
    "shuffled by itself."
)

_WORST = 5
"""Attributes, and pairs, that are named."""

_NOT_JUDGED = "–"
"""Where neither more nor less is better."""


def title(evaluation: Evaluation) -> str:
    """What is compared."""
    rows = f"{counted(evaluation.synthetic_rows, 'row')} against {evaluation.real_rows:,}"
    return (
        f"{evaluation.synthetic} against {evaluation.real}: {rows}, {counted(len(evaluation.attributes), 'attribute')}"
    )


def score_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """A line of text for each figure."""
    return [*_marginal_rows(evaluation), *_contest_rows(evaluation), *_other_rows(evaluation)]


def _marginal_rows(evaluation: Evaluation) -> Iterator[tuple[str, ...]]:
    apart, correlations = evaluation.distances, evaluation.correlations
    several = [
        (f"distance of {counted(len(evaluation.attributes), '1-way marginal')}", apart.one_way),
        (f"distance of {counted(len(evaluation.pairs), '2-way marginal')}", apart.two_way),
        (f"distance of {counted(apart.triples, '3-way marginal')}", apart.three_way),
        ("difference of Cramér's V", correlations.cramers_v),
        ("difference of Spearman's ρ", correlations.spearman),
    ]
    yield from (_row(words, figure, _fraction, "less") for words, figure in several if figure is not None)


def _contest_rows(evaluation: Evaluation) -> Iterator[tuple[str, ...]]:
    contest = evaluation.contest
    yield _row(f"NIST density ({counted(contest.triples, 'set')} of columns)", contest.density, _points, "more")
    yield _row(f"NIST range queries ({contest.queries:,})", contest.range_queries, _points, "more")
    if contest.income is not None:
        regions = counted(len(contest.income.regions), "region")
        yield _row(f"NIST Gini and gender gap ({regions})", contest.income.score, _points, "more")
    yield _row(f"NIST mean (preset {contest.preset})", contest.mean, _points, "more")


def _other_rows(evaluation: Evaluation) -> Iterator[tuple[str, ...]]:
    classifier = evaluation.classifier
    if classifier is not None:
        words = f"{classifier.target} predicted: area under the curve (by real rows {_fraction(classifier.real_auc)})"
        yield _row(words, classifier.auc, _fraction, "more")
        words = f"{classifier.target} predicted: accuracy (by real rows {_percent(classifier.real_accuracy)})"
        yield _row(words, classifier.accuracy, _percent, "more")
    yield _row("rows identical to a real row", evaluation.identical.share, _percent, _NOT_JUDGED)


def worst_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """The attributes and pairs whose marginals are farthest above the sampling floor, the worst first."""
    lines = []
    singles = [((attribute.name,), attribute.distance) for attribute in evaluation.attributes]
    for entries in (singles, [((pair.first, pair.second), pair.distance) for pair in evaluation.pairs]):
        beyond = sorted(entries, key=lambda entry: entry[1].floor - entry[1].synthetic)
        lines += [_row(" × ".join(names), figure, _fraction) for names, figure in beyond[:_WORST]]
    return lines


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


def _row(words: str, figure: Figure, shown: Callable[[float], str], *better: str) -> tuple[str, ...]:
    return words, shown(figure.synthetic), shown(figure.floor), shown(figure.independent), *better


def _fraction(number: float) -> str:
    return f"{number:.4f}"


def _points(number: float) -> str:
    return f"{number:,.0f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
