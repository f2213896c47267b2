"""The private report for the owner of the real table: the results of an evaluation as text, JSON and HTML.

Privacy: it shows what was computed from the real rows without protection, and states so first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from dpsyn.evaluation.nist_contest import combine_scores
from dpsyn.evaluation.results import EVALUATION_NOTICE
from dpsyn.marginals import Association
from dpsyn.report.content import (
    TRACK_EXPLANATION,
    Guarantee,
    LeftOut,
    MatrixGroup,
    PageContent,
    PageTerms,
    ScoreRow,
    TableCell,
    TableColumn,
)
from dpsyn.report.groups import GROUP_EXPLANATION, group_headings, group_lines
from dpsyn.report.html_page import render_page
from dpsyn.report.matrices import (
    CRAMERS_V_EXPLANATION,
    SPEARMAN_EXPLANATION,
    Correlation,
    correlation_group,
    heat_map,
)
from dpsyn.report.numbers import format_count
from dpsyn.report.release_facts import page_facts, release_omissions, usage_lines
from dpsyn.report.synopsis import describe_guarantee
from dpsyn.report.verdict import (
    Verdict,
    combine_verdict,
    describe_bad_pairs,
    describe_columns,
    describe_worst_columns,
    format_share,
    is_worse_than_shuffled,
    join_names,
    judge_position,
    position_of,
)

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

_PRIVATE_USE = "This page: keep it. It was computed from the real rows, and choosing a release by it is not protected."

_MIN_HEAT_RANGE = 0.05
"""The least error that the strongest color of the heat map stands for: small errors should look small."""

_MAX_WORST = 5
"""How many attributes, and how many pairs, are listed."""

_NOT_JUDGED = "–"
"""Shown where neither more nor less is better."""

_TERMS = PageTerms(
    reference="real",
    floor="sampling floor",
    baselines=f"{EVALUATION_BASELINES} {TRACK_EXPLANATION}",
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


def private_report(evaluation: Evaluation, synopsis: Synopsis | None = None, *, made: date | None = None) -> str:
    """One HTML file about a synthetic table, for the owner of the real table only.

    Args:
        evaluation: the results of ``dpsyn.evaluate``.
        synopsis: the synopsis that the synthetic table was generated from, for its certificate and budget.
        made: the date on the page; by default today.

    Privacy: shows what was computed from the real rows without protection, and states so first.
    """
    return render_page(private_content(evaluation, synopsis, made=made))


def private_content(
    evaluation: Evaluation, synopsis: Synopsis | None = None, *, made: date | None = None
) -> PageContent:
    """The content of that file."""
    dataset = synopsis.schema.dataset if synopsis else ""
    return PageContent(
        title="What the synthetic table preserves" + (f": {dataset}" if dataset else ""),
        subtitle=evaluation_title(evaluation),
        facts=page_facts(synopsis, made),
        verdict=evaluation_verdict(evaluation),
        usage=(*usage_lines(synopsis), _PRIVATE_USE),
        tone="private",
        banner=evaluation.notice,
        terms=_TERMS,
        guarantee=describe_guarantee(synopsis) if synopsis else Guarantee(paragraphs=(_NO_CERTIFICATE,)),
        scores=tuple(_overall_scores(evaluation)),
        comparison=evaluation,
        correlations=tuple(_correlations(evaluation)),
        heat_map=_heat_map(evaluation),
        left_out=tuple(_left_out(evaluation, synopsis)),
        columns=_COLUMNS,
        rows=(*map(_attribute_row, evaluation.attributes), *map(_pair_row, evaluation.pairs)),
        notes=(*evaluation_notes(evaluation), evaluation.notice),
        group_headings=group_headings(_TERMS.floor),
        group_lines=(*group_lines(evaluation.groups), GROUP_EXPLANATION),
    )


def evaluation_verdict(evaluation: Evaluation) -> Verdict:
    """Whether the table is any good, in words: pairs, columns, what is worse than shuffled, and predictions."""
    attributes, two_way = evaluation.attributes, evaluation.distances.two_way
    columns = describe_columns(attributes)
    details = [*describe_worst_columns(attributes, "a fresh sample"), *describe_bad_pairs(evaluation.pairs)]
    bad_scores = [
        score.label
        for score in _overall_scores(evaluation)
        if score.is_worse_than_shuffled and not score.label.startswith("distance of ")
    ]
    if bad_scores:
        details.append(f"Worse than shuffled, too: {join_names(bad_scores)}.")
    classifier = evaluation.classifier
    if classifier is not None:
        auc = classifier.auc
        details.append(
            f"A classifier of {classifier.target} trained on the synthetic rows reaches an AUC of {auc.synthetic:.3f} "
            f"(real rows {classifier.real_auc:.3f}, shuffled {auc.independent:.3f})."
        )
    if two_way is None:
        return Verdict(tone=columns[0], headline=f"{columns[1][0].upper()}{columns[1][1:]}.", details=tuple(details))
    return combine_verdict(judge_position(position_of(two_way), "a fresh sample of the real rows"), columns, *details)


def _correlations(evaluation: Evaluation) -> Iterator[MatrixGroup]:
    """Cramér's V of all pairs and Spearman's ρ of ordered ones: real, synthetic and their difference."""
    order = [attribute.name for attribute in evaluation.attributes]
    pairs = [(frozenset((pair.first, pair.second)), pair.cramers_v, pair.spearman) for pair in evaluation.pairs]
    for heading, explanation, signed, index in (
        ("Rank correlation (Spearman's ρ)", SPEARMAN_EXPLANATION, True, 2),
        ("Strength of dependence (Cramér's V)", CRAMERS_V_EXPLANATION, False, 1),
    ):
        known = [(entry[0], entry[index]) for entry in pairs]
        correlation = Correlation(
            heading=heading,
            explanation=explanation,
            reference={pair: values.real for pair, values in known if isinstance(values, Association)},
            synthetic={pair: values.synthetic for pair, values in known if isinstance(values, Association)},
            signed=signed,
        )
        group = correlation_group(correlation, order, _TERMS.reference)
        if group is not None:
            yield group


def _heat_map(evaluation: Evaluation) -> MatrixGroup | None:
    values = {frozenset((pair.first, pair.second)): pair.distance.excess for pair in evaluation.pairs}
    worse = frozenset(
        frozenset((pair.first, pair.second)) for pair in evaluation.pairs if is_worse_than_shuffled(pair.distance)
    )
    return heat_map(
        values,
        heading="Errors of all pairs",
        explanation=(
            "The distance of each pair minus its sampling floor, in percent of rows; the attribute with the largest "
            "errors comes first. Framed pairs are worse than shuffled. Click a cell to find it in the table."
        ),
        top=max(_MIN_HEAT_RANGE, *values.values()) if values else _MIN_HEAT_RANGE,
        format_value=lambda value: f"{100 * value:.1f}",
        marked=worse,
    )


def _left_out(evaluation: Evaluation, synopsis: Synopsis | None) -> Iterator[LeftOut]:
    if evaluation.left_out:
        yield LeftOut(
            heading="Columns that are not compared",
            entries=(f"{', '.join(evaluation.left_out)}: identifiers, and columns that are derived from others.",),
        )
    if synopsis is not None:
        yield from (part for part in release_omissions(synopsis, None) if not part.heading.startswith("Columns"))


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
    label = f"distance of {format_count(len(evaluation.attributes), 'one-way marginal')}"
    yield ScoreRow.from_metric(label, distances.one_way, _format_fraction, "less", ways=1)
    metrics = [
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
        real_accuracy = format_share(classifier.real_accuracy)
        label = f"{classifier.target} predicted: accuracy (trained on real rows {real_accuracy})"
        yield ScoreRow.from_metric(label, classifier.accuracy, format_share, "more")
    yield ScoreRow.from_metric("rows identical to a real row", evaluation.identical.share, format_share)


def worst_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """The attributes and pairs whose distance exceeds the sampling floor most, the worst first."""
    attributes = [(attribute.name, attribute.distance) for attribute in evaluation.attributes]
    pairs = [(f"{pair.first} × {pair.second}", pair.distance) for pair in evaluation.pairs]
    rows: list[tuple[str, ...]] = []
    for ways, entries in ((1, attributes), (2, pairs)):
        worst = sorted(entries, key=lambda entry: entry[1].floor - entry[1].synthetic)[:_MAX_WORST]
        scores = [ScoreRow.from_metric(label, metric, _format_fraction, ways=ways) for label, metric in worst]
        rows += [(score.label, *score.texts) for score in scores]
    return rows


def evaluation_notes(evaluation: Evaluation) -> list[str]:
    """Remarks on the scores, as sentences."""
    notes = [evaluation.identical.note]
    outside = [
        f"{attribute.name} ({' / '.join(map(format_share, attribute.outside))})"
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
