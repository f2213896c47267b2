"""The private report for the owner of the real table: the results of an evaluation as text, JSON and HTML.

Privacy: it shows what was computed from the real rows without protection, and states so first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dpsyn.evaluation.nist_contest import combine_scores
from dpsyn.evaluation.results import EVALUATION_NOTICE
from dpsyn.report.content import Guarantee, PageContent, PageTerms, ScoreRow, TableCell, TableColumn
from dpsyn.report.html_page import render_page
from dpsyn.report.numbers import format_count
from dpsyn.report.synopsis import describe_guarantee

if TYPE_CHECKING:
    from dpsyn.evaluation import Evaluation as Evaluation
    from dpsyn.marginals import AttributeComparison, PairComparison
    from dpsyn.synopsis import Synopsis


EVALUATION_HEADINGS = ("", "synthetic", "sampling floor", "independent", "better is")
"""The columns of ``score_rows``; those in the middle are numbers."""

WORST_HEADINGS = ("largest excess over the sampling floor", "synthetic", "sampling floor", "independent")
"""The columns of ``worst_rows``; all but the first are numbers."""

EVALUATION_BASELINES = (
    "The sampling floor is the score of a fresh sample of the real rows; independent is the score of the real rows "
    "with each column shuffled by itself. Distances and correlations use the schema's bins of numbers and dates; the "
    "NIST scores use finer values. A table can therefore score well on one and badly on the other."
)

_MAX_WORST = 5
"""How many attributes, and how many pairs, are listed."""

_NOT_JUDGED = "–"
"""Shown where neither more nor less is better."""

_TERMS = PageTerms(
    reference="real",
    floor="sampling floor",
    baselines=f"{EVALUATION_BASELINES} A good table is near the floor, on the left.",
)

_COLUMNS = (
    TableColumn(heading="marginal", style="text"),
    TableColumn(heading="attributes", style="count"),
    TableColumn(heading="distance", style="fraction", hint="the share of rows that would have to change"),
    TableColumn(heading="sampling floor", style="fraction", hint="the distance of a fresh sample of the real rows"),
    TableColumn(heading="independent", style="fraction", hint="the distance with every column shuffled by itself"),
    TableColumn(heading="Cramér's V, real", style="fraction", hint="how strongly the two depend on each other"),
    TableColumn(heading="Cramér's V, synthetic", style="fraction"),
    TableColumn(heading="excess", style="fraction", hint="distance minus the sampling floor"),
)

_NO_CERTIFICATE = (
    "No synopsis was given, so this page does not show the privacy guarantee of the release. Add it with dpsyn "
    "evaluate --certificate s.dpsyn."
)


def private_report(evaluation: Evaluation, synopsis: Synopsis | None = None) -> str:
    """One HTML file about a synthetic table, for the owner of the real table only.

    Args:
        evaluation: the results of ``dpsyn.evaluate``.
        synopsis: the synopsis that the synthetic table was generated from, for its certificate and budget.

    Privacy: shows what was computed from the real rows without protection, and states so first.
    """
    return render_page(private_content(evaluation, synopsis))


def private_content(evaluation: Evaluation, synopsis: Synopsis | None = None) -> PageContent:
    """The content of that file."""
    return PageContent(
        title="What the synthetic table preserves",
        subtitle=evaluation_title(evaluation),
        tone="private",
        banner=evaluation.notice,
        terms=_TERMS,
        guarantee=describe_guarantee(synopsis) if synopsis else Guarantee(paragraphs=(_NO_CERTIFICATE,)),
        scores=tuple(_overall_scores(evaluation)),
        comparison=evaluation,
        columns=_COLUMNS,
        rows=(*map(_attribute_row, evaluation.attributes), *map(_pair_row, evaluation.pairs)),
        notes=(*evaluation_notes(evaluation), evaluation.notice),
    )


def _attribute_row(attribute: AttributeComparison) -> tuple[TableCell, ...]:
    distance = attribute.distance
    excess = distance.synthetic - distance.floor
    return attribute.name, 1, distance.synthetic, distance.floor, None, None, None, excess


def _pair_row(pair: PairComparison) -> tuple[TableCell, ...]:
    distance, association = pair.distance, pair.cramers_v
    correlations = (association.real, association.synthetic) if association else (None, None)
    distances = (distance.synthetic, distance.floor, distance.independent)
    return f"{pair.first} × {pair.second}", 2, *distances, *correlations, distance.synthetic - distance.floor


# ── text and JSON ────────────────────────────────────────────────────────────────────────────────────────────


def evaluation_title(evaluation: Evaluation) -> str:
    """What is compared."""
    rows = f"{format_count(evaluation.synthetic_rows, 'row')} against {evaluation.real_rows:,}"
    attributes = format_count(len(evaluation.attributes), "attribute")
    return f"{evaluation.synthetic} against {evaluation.real}: {rows}, {attributes}"


def score_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """A row of text for each overall score."""
    return [(row.label, *row.texts, row.better or _NOT_JUDGED) for row in _overall_scores(evaluation)]


def _overall_scores(evaluation: Evaluation) -> Iterator[ScoreRow]:
    yield from _marginal_scores(evaluation)
    yield from _contest_scores(evaluation)
    yield from _other_scores(evaluation)


def _marginal_scores(evaluation: Evaluation) -> Iterator[ScoreRow]:
    distances, correlations = evaluation.distances, evaluation.correlations
    metrics = [
        (f"distance of {format_count(len(evaluation.attributes), 'one-way marginal')}", distances.one_way),
        (f"distance of {format_count(len(evaluation.pairs), 'two-way marginal')}", distances.two_way),
        (f"distance of {format_count(distances.triples, 'three-way marginal')}", distances.three_way),
        ("difference of Cramér's V", correlations.cramers_v),
        ("difference of Spearman's ρ", correlations.spearman),
    ]
    for label, metric in metrics:
        if metric is not None:
            yield ScoreRow.from_metric(label, metric, _format_fraction, "less")


def _contest_scores(evaluation: Evaluation) -> Iterator[ScoreRow]:
    contest = evaluation.contest
    metrics = [
        (f"NIST density ({format_count(contest.triples, 'set')} of columns)", contest.density),
        (f"NIST range queries ({contest.queries:,})", contest.range_queries),
    ]
    if contest.income is not None:
        regions = format_count(len(contest.income.regions), "region")
        metrics.append((f"NIST Gini and gender gap ({regions})", contest.income.score))
    metrics.append((f"NIST mean (preset {contest.preset})", contest.mean))
    for label, metric in metrics:
        yield ScoreRow.from_metric(label, metric, _format_points, "more")


def _other_scores(evaluation: Evaluation) -> Iterator[ScoreRow]:
    classifier = evaluation.classifier
    if classifier is not None:
        label = f"{classifier.target} predicted: AUC (trained on real rows {_format_fraction(classifier.real_auc)})"
        yield ScoreRow.from_metric(label, classifier.auc, _format_fraction, "more")
        real_accuracy = _format_percent(classifier.real_accuracy)
        label = f"{classifier.target} predicted: accuracy (trained on real rows {real_accuracy})"
        yield ScoreRow.from_metric(label, classifier.accuracy, _format_percent, "more")
    yield ScoreRow.from_metric("rows identical to a real row", evaluation.identical.share, _format_percent)


def worst_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """The attributes and pairs whose distance exceeds the sampling floor most, the worst first."""
    attributes = [(attribute.name, attribute.distance) for attribute in evaluation.attributes]
    pairs = [(f"{pair.first} × {pair.second}", pair.distance) for pair in evaluation.pairs]
    rows: list[tuple[str, ...]] = []
    for entries in (attributes, pairs):
        worst = sorted(entries, key=lambda entry: entry[1].floor - entry[1].synthetic)[:_MAX_WORST]
        rows += [(label, *ScoreRow.from_metric(label, metric, _format_fraction).texts) for label, metric in worst]
    return rows


def evaluation_notes(evaluation: Evaluation) -> list[str]:
    """Remarks on the scores, as sentences."""
    notes = [evaluation.identical.note]
    outside = [
        f"{attribute.name} ({' / '.join(map(_format_percent, attribute.outside))})"
        for attribute in evaluation.attributes
        if attribute.outside and any(attribute.outside)
    ]
    if outside:
        notes.append(
            f"Outside the schema, and counted as another value (real / synthetic cells): {', '.join(outside)}. If the "
            "shares are large, correct the schema; dpsyn schema check reports details."
        )
    if evaluation.left_out:
        notes.append(f"Not compared: {', '.join(evaluation.left_out)}.")
    return notes


def evaluation_data(evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """All results as plain data for JSON; several evaluations together with their combined score."""
    if len(evaluations) == 1:
        return evaluations[0].to_dict()
    combined = combine_scores([evaluation.contest for evaluation in evaluations])
    scores = {"synthetic": combined.synthetic, "floor": combined.floor, "independent": combined.independent}
    return {"notice": EVALUATION_NOTICE, "combined": scores, "evaluations": [each.to_dict() for each in evaluations]}


def combined_line(evaluations: Sequence[Evaluation]) -> str:
    """The combined score of several tables, as a sentence."""
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
