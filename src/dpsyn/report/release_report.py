"""The publishable report: synthetic rows beside what was released, and nothing else.

Privacy: it is given a synopsis and synthetic rows, and nothing it imports can reach a real row. A test follows every
import of this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from dpsyn.errors import InternalError
from dpsyn.forecasts.reached import predict_reached
from dpsyn.marginals import Metric
from dpsyn.report.content import (
    TRACK_EXPLANATION,
    BannerTone,
    MatrixGroup,
    PageContent,
    PageTerms,
    ScoreRow,
    TableCell,
    TableColumn,
)
from dpsyn.report.groups import GROUP_EXPLANATION, group_headings, group_lines
from dpsyn.report.html_page import render_page
from dpsyn.report.ledger import NOT_PRIVATE
from dpsyn.report.matrices import (
    CRAMERS_V_EXPLANATION,
    SPEARMAN_EXPLANATION,
    Correlation,
    correlation_group,
    heat_map,
)
from dpsyn.report.numbers import format_count
from dpsyn.report.release_facts import page_facts, release_omissions, usage_lines
from dpsyn.report.synopsis import describe_guarantee, forecast_lines, pairs_were_measured
from dpsyn.report.verdict import (
    MIN_SCALE,
    TONES,
    Verdict,
    VerdictTone,
    combine_verdict,
    describe_bad_pairs,
    describe_columns,
    describe_worst_columns,
    format_share,
    join_names,
    judge_position,
)
from dpsyn.synopsis.comparison import ReleaseComparison, compare_rows
from dpsyn.synopsis.dependence import CLEAR_STDS, PairDependence
from dpsyn.synopsis.guarantee import NOT_VERIFIED, is_private

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpsyn.inference import Release
    from dpsyn.synopsis import MarginalComparison, Synopsis

COMPARISON_HEADINGS = ("", "synthetic", "noise floor", "independent", "better is")
"""The columns of ``comparison_rows``; those in the middle are numbers."""

COMPARISON_BASELINES = (
    "The noise floor is the expected distance of a table that has exactly the true counts: the released counts differ "
    "from those by their noise. Independent is the distance of the synthetic rows with each column shuffled by itself."
)

_TERMS = PageTerms(
    reference="released",
    floor="noise floor",
    baselines=(
        f"{COMPARISON_BASELINES} Rows at or below the noise floor are as close to the released counts as can be "
        f"determined. {TRACK_EXPLANATION}"
    ),
)

_NOISE_EXPLANATION = "The released ones are corrected for noise, over the values that stand out of it."

_CLOSE_STDS = 1.5
"""Rows whose mean difference from the released counts is less, in standard deviations of noise, agree with them."""

_MIN_HEAT_TOP = 10.0
"""The least strength, in standard deviations, that the strongest color of the heat map stands for."""

_COLUMNS = (
    TableColumn(heading="marginal", style="text"),
    TableColumn(heading="attributes", style="count"),
    TableColumn(heading="cells", style="count"),
    TableColumn(heading="noise σ", style="number", hint="the standard deviation of the noise in a cell, in rows"),
    TableColumn(
        heading="distance", style="fraction", hint="half the sum of absolute differences, as a share of all rows"
    ),
    TableColumn(heading="noise floor", style="fraction", hint="the expected distance of exactly the true counts"),
    TableColumn(heading="independent", style="fraction", hint="the distance with every column shuffled by itself"),
    TableColumn(heading="difference in σ", style="number", hint="root mean square; about 1 for the true counts"),
)

_BANNERS: dict[bool | None, tuple[BannerTone, str]] = {
    True: (
        "public",
        "May be published: this comparison was made from the released counts and the synthetic rows alone. No real "
        "row was read for it, so it costs no privacy beyond the guarantee of the release.",
    ),
    False: ("private", f"{NOT_PRIVATE}: the noise came from a test. Publish neither this comparison nor the rows."),
    None: (
        "warning",
        f"{NOT_VERIFIED} This comparison was made from counts that were measured elsewhere and from synthetic rows. It "
        "may be published if the counts may be.",
    ),
}


def publishable_report(
    synopsis: Synopsis, table: Any, *, by: Sequence[str] | None = None, made: date | None = None
) -> str:
    """One HTML file about synthetic rows that may be published with them.

    Args:
        synopsis: what was released.
        table: synthetic rows as an Arrow table. It may have no rows: the released estimate of their number can be 0,
            and then the release must not fail.
        by: attributes whose values divide the rows into groups, such as ``["sex"]``; each group is compared by itself.
            By default those that the schema declares as ``groups``.
        made: the date on the page; by default today.

    Privacy: costs nothing. The page shows only what the synopsis and the synthetic rows contain.
    """
    return comparison_report(synopsis, compare_rows(synopsis, table, by=by), made=made)


def comparison_report(synopsis: Synopsis, comparison: ReleaseComparison, *, made: date | None = None) -> str:
    """The same file for rows that were already compared."""
    if not isinstance(comparison, ReleaseComparison):  # an evaluation has the same parts, but is private
        raise InternalError(f"a publishable report cannot show a {type(comparison).__name__}")
    return render_page(_page_content(synopsis, comparison, made))


def publication_banner(synopsis: Synopsis) -> str:
    """Whether the comparison may be published, and why; for a page and for a terminal."""
    return _BANNERS[is_private(synopsis.releases)][1]


def comparison_rows(comparison: ReleaseComparison) -> list[tuple[str, ...]]:
    """A row of text for each overall score."""
    return [(row.label, *row.texts, row.better) for row in _overall_scores(comparison)]


def comparison_verdict(synopsis: Synopsis, comparison: ReleaseComparison) -> Verdict:
    """Whether the rows are any good, as far as released numbers tell.

    Rows can follow what was released only as closely as its noise lets anybody know. What they lack beside the real
    table is predicted: the noise of measured pairs, and the dependence of pairs that were not measured.
    """
    error, reached, shuffled = _mean_rms_error(comparison), predict_reached(synopsis), _expected_shuffled(comparison)
    columns = describe_columns(comparison.attributes)
    details = [
        *describe_worst_columns(comparison.attributes, "noise alone"),
        *describe_bad_pairs(comparison.pairs),
        *_describe_dependence(comparison.dependence),
    ]
    agreement = "the rows agree with the released counts as closely as their noise can tell"
    if error > _CLOSE_STDS:
        agreement = f"the rows differ from the released counts by {error:.1f} times their noise"
    pairs: tuple[VerdictTone, str] = ("mixed" if error > _CLOSE_STDS else "good"), agreement
    scored = any(release.scores for release in synopsis.releases)
    if not pairs_were_measured(synopsis):
        pairs = "bad", "no pair was measured, so the columns are independent of each other"
    elif not comparison.pairs and not scored and len(comparison.attributes) > 1:
        pairs = (
            "bad",
            "no pair was measured but within joint attributes, so other columns are independent of each other",
        )
    elif reached is not None and reached.two_way is not None and shuffled is not None and shuffled > MIN_SCALE:
        position = reached.two_way / shuffled
        # sampling rows adds to both numbers, so what is kept is at least what they imply
        tone, words = judge_position(position, "exact counts", about="at least about")
        pairs = max(pairs[0], tone, key=TONES.index), f"by the released numbers, {words}"
        details = [
            f"Pairs are expected to be off by about {format_share(reached.two_way)} of the rows, shuffled columns by "
            f"about {format_share(shuffled)}.",
            f"{agreement[0].upper()}{agreement[1:]}.",
            *details,
        ]
    return combine_verdict(pairs, columns, *details)


def _describe_dependence(dependence: Sequence[PairDependence]) -> list[str]:
    """How many pairs clearly depend on each other, and which of them were not measured."""
    clear = [pair for pair in dependence if pair.strength > CLEAR_STDS]
    missed = sorted((pair for pair in clear if not pair.measured), key=lambda pair: -pair.strength)
    if not dependence:
        return []
    known = f"{len(clear):,} of {format_count(len(dependence), 'pair')} clearly depend on each other, beyond the noise"
    if not clear:
        return [f"None of {format_count(len(dependence), 'pair')} stands out of the noise of its score."]
    if not missed:
        return [f"{known}; all of them were measured."]
    names = join_names([f"{pair.first} × {pair.second}" for pair in missed])
    count = "none of them was measured" if len(missed) == len(clear) else f"{len(missed):,} of them were not measured"
    return [f"{known}; {count}: {names}."]


def _expected_shuffled(comparison: ReleaseComparison) -> float | None:
    """The mean distance of pairs from independence, by their released scores; noise cancels out in the mean."""
    dependence = comparison.dependence
    return sum(pair.distance for pair in dependence) / len(dependence) if dependence else None


def _page_content(synopsis: Synopsis, comparison: ReleaseComparison, made: date | None) -> PageContent:
    tone, banner = _BANNERS[is_private(synopsis.releases)]
    dataset = f" of {synopsis.schema.dataset}" if synopsis.schema.dataset else ""
    return PageContent(
        title=f"Synthetic rows{dataset}: how close they are to what was released",
        subtitle=f"{format_count(comparison.synthetic_rows, 'synthetic row')}, {_describe_releases(synopsis.releases)}",
        facts=page_facts(synopsis, made),
        verdict=comparison_verdict(synopsis, comparison),
        usage=usage_lines(synopsis),
        tone=tone,
        banner=banner,
        terms=_TERMS,
        guarantee=describe_guarantee(synopsis),
        scores=tuple(_overall_scores(comparison)),
        comparison=comparison,
        correlations=tuple(_correlations(comparison)),
        heat_map=_heat_map(comparison),
        left_out=tuple(release_omissions(synopsis, comparison.dependence)),
        columns=_COLUMNS,
        rows=tuple(map(_marginal_row, comparison.marginals)),
        notes=(
            *forecast_lines(synopsis),
            "Released counts contain noise, so they can be negative and can disagree with each other. Rare values are "
            "merged as they were for the measurement.",
            "This page cannot show how close the rows are to the real table. Only the owner of the real table can "
            "evaluate that.",
        ),
        group_headings=group_headings(_TERMS.floor),
        group_lines=(*group_lines(comparison.groups), GROUP_EXPLANATION),
    )


def _correlations(comparison: ReleaseComparison) -> Iterator[MatrixGroup]:
    """Correlations of measured pairs: released, synthetic and their difference."""
    order = [attribute.name for attribute in comparison.attributes]
    for heading, explanation, signed in (
        ("Rank correlation (Spearman's ρ) of measured pairs", SPEARMAN_EXPLANATION, True),
        ("Strength of dependence (Cramér's V) of measured pairs", CRAMERS_V_EXPLANATION, False),
    ):
        known = [
            (frozenset((pair.first, pair.second)), pair.spearman if signed else pair.cramers_v)
            for pair in comparison.dependence
        ]
        correlation = Correlation(
            heading=heading,
            explanation=f"{explanation} {_NOISE_EXPLANATION}",
            reference={pair: values.released for pair, values in known if values is not None},
            synthetic={pair: values.synthetic for pair, values in known if values is not None},
            signed=signed,
        )
        group = correlation_group(correlation, order, _TERMS.reference)
        if group is not None:
            yield group


def _heat_map(comparison: ReleaseComparison) -> MatrixGroup | None:
    """The strength of the dependence of each pair in units of its noise, with the measured pairs framed."""
    values = {frozenset((pair.first, pair.second)): pair.strength for pair in comparison.dependence}
    measured = frozenset(frozenset((pair.first, pair.second)) for pair in comparison.dependence if pair.measured)
    return heat_map(
        values,
        heading="Which attributes depend on each other, and which pairs were measured",
        explanation=(
            "The released distance of each pair from independence, in standard deviations of its noise: up to about "
            f"{CLEAR_STDS:.0f} it can be noise. Framed pairs were measured; rows follow the others only as far as "
            "measured pairs imply them. Click a cell to find it in the table."
        ),
        top=max(_MIN_HEAT_TOP, *values.values()) if values else _MIN_HEAT_TOP,
        format_value=lambda value: f"{value:.0f}".replace("-0", "0").replace("-", "−"),
        marked=measured,
    )


def _mean_rms_error(comparison: ReleaseComparison) -> float:
    """The mean difference of the rows from the released marginals, in standard deviations of their noise."""
    return sum(marginal.rms_error for marginal in comparison.marginals) / max(len(comparison.marginals), 1)


def _describe_releases(releases: Sequence[Release]) -> str:
    marginals = sum(len(measurement_round.marginals) for release in releases for measurement_round in release.rounds)
    return f"{format_count(marginals, 'noisy marginal')} in {format_count(len(releases), 'release')}"


def _overall_scores(comparison: ReleaseComparison) -> Iterator[ScoreRow]:
    """The mean distances of one-way marginals, pairs and larger marginals, and the mean difference in σ."""
    one_way = [attribute.distance for attribute in comparison.attributes]
    yield _mean_distance("one-way marginals over bins", one_way, ways=1)
    if comparison.pairs:
        yield _mean_distance("pairs", [pair.distance for pair in comparison.pairs])
    larger = [marginal.distance for marginal in comparison.marginals if len(marginal.clique) > 2]
    if larger:
        yield _mean_distance("marginals of three attributes and more", larger)
    label = f"difference from {format_count(len(comparison.marginals), 'released marginal')}, in σ of their noise"
    yield ScoreRow(label=label, texts=(f"{_mean_rms_error(comparison):.2f}", "1.00", "–"), better="less", position=None)


def _mean_distance(marginals: str, distances: Sequence[Metric], *, ways: int = 2) -> ScoreRow:
    label = f"distance of {marginals} ({len(distances)})"
    return ScoreRow.from_metric(label, Metric.mean(distances), "{:.4f}".format, "less", ways=ways)


def _marginal_row(marginal: MarginalComparison) -> tuple[TableCell, ...]:
    distance = marginal.distance
    independent = distance.independent if len(marginal.clique) > 1 else None
    numbers = (marginal.std, distance.synthetic, distance.floor, independent, marginal.rms_error)
    return " × ".join(marginal.clique), len(marginal.clique), marginal.cells, *numbers
