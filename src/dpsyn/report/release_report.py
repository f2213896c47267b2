"""The publishable report: synthetic rows beside what was released, and nothing else.

Privacy: it is given a synopsis and synthetic rows, and nothing it imports can reach a real row. A test follows every
import of this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpsyn.errors import InternalError
from dpsyn.marginals import Metric
from dpsyn.report.content import BannerTone, PageContent, PageTerms, ScoreRow, TableCell, TableColumn
from dpsyn.report.html_page import render_page
from dpsyn.report.ledger import NOT_PRIVATE
from dpsyn.report.numbers import format_count
from dpsyn.report.synopsis import describe_guarantee, forecast_lines
from dpsyn.synopsis.comparison import ReleaseComparison, compare_rows
from dpsyn.synopsis.guarantee import NOT_VERIFIED, is_private

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        "determined."
    ),
)

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


def publishable_report(synopsis: Synopsis, table: Any) -> str:
    """One HTML file about synthetic rows that may be published with them.

    Args:
        synopsis: what was released.
        table: synthetic rows as an Arrow table. It may have no rows: the released estimate of their number can be 0,
            and then the release must not fail.

    Privacy: costs nothing. The page shows only what the synopsis and the synthetic rows contain.
    """
    return comparison_report(synopsis, compare_rows(synopsis, table))


def comparison_report(synopsis: Synopsis, comparison: ReleaseComparison) -> str:
    """The same file for rows that were already compared."""
    if not isinstance(comparison, ReleaseComparison):  # an evaluation has the same parts, but is private
        raise InternalError(f"a publishable report cannot show a {type(comparison).__name__}")
    return render_page(_page_content(synopsis, comparison))


def publication_banner(synopsis: Synopsis) -> str:
    """Whether the comparison may be published, and why; for a page and for a terminal."""
    return _BANNERS[is_private(synopsis.releases)][1]


def comparison_rows(comparison: ReleaseComparison) -> list[tuple[str, ...]]:
    """A row of text for each overall score."""
    return [(row.label, *row.texts, row.better) for row in _overall_scores(comparison)]


def _page_content(synopsis: Synopsis, comparison: ReleaseComparison) -> PageContent:
    tone, banner = _BANNERS[is_private(synopsis.releases)]
    dataset = f" of {synopsis.schema.dataset}" if synopsis.schema.dataset else ""
    return PageContent(
        title=f"Synthetic rows{dataset} beside what was released",
        subtitle=f"{format_count(comparison.synthetic_rows, 'synthetic row')}, {_describe_releases(synopsis.releases)}",
        tone=tone,
        banner=banner,
        terms=_TERMS,
        guarantee=describe_guarantee(synopsis),
        scores=tuple(_overall_scores(comparison)),
        comparison=comparison,
        columns=_COLUMNS,
        rows=tuple(map(_marginal_row, comparison.marginals)),
        notes=(
            *forecast_lines(synopsis),
            "Released counts contain noise, so they can be negative and can disagree with each other. Rare values are "
            "merged as they were for the measurement.",
            "This page cannot show how close the rows are to the real table. Only the owner of the real table can "
            "evaluate that.",
        ),
    )


def _describe_releases(releases: Sequence[Release]) -> str:
    marginals = sum(len(measurement_round.marginals) for release in releases for measurement_round in release.rounds)
    return f"{format_count(marginals, 'noisy marginal')} in {format_count(len(releases), 'release')}"


def _overall_scores(comparison: ReleaseComparison) -> Iterator[ScoreRow]:
    """The mean distances of one-way marginals, pairs and larger marginals, and the mean difference in σ."""
    yield _mean_distance("one-way marginals over bins", [attribute.distance for attribute in comparison.attributes])
    if comparison.pairs:
        yield _mean_distance("pairs", [pair.distance for pair in comparison.pairs])
    larger = [marginal.distance for marginal in comparison.marginals if len(marginal.clique) > 2]
    if larger:
        yield _mean_distance("marginals of three attributes and more", larger)
    rms_error = sum(marginal.rms_error for marginal in comparison.marginals) / max(len(comparison.marginals), 1)
    label = f"difference from {format_count(len(comparison.marginals), 'released marginal')}, in σ of their noise"
    yield ScoreRow(label=label, texts=(f"{rms_error:.2f}", "1.00", "–"), better="less", position=None)


def _mean_distance(marginals: str, distances: Sequence[Metric]) -> ScoreRow:
    label = f"distance of {marginals} ({len(distances)})"
    return ScoreRow.from_metric(label, Metric.mean(distances), "{:.4f}".format, "less")


def _marginal_row(marginal: MarginalComparison) -> tuple[TableCell, ...]:
    distance = marginal.distance
    independent = distance.independent if len(marginal.clique) > 1 else None
    numbers = (marginal.std, distance.synthetic, distance.floor, independent, marginal.rms_error)
    return " × ".join(marginal.clique), len(marginal.clique), marginal.cells, *numbers
