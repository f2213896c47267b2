"""The report that may be published: synthetic rows beside what was released, and nothing else.

Privacy: it is given a synopsis and synthetic rows, and nothing it imports can reach a real one; a test follows every
import of this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpsyn.report.content import (
    AttributeChart,
    BannerTone,
    PageContent,
    PageTerms,
    PairChart,
    PairError,
    ScoreRow,
    TableCell,
    TableColumn,
)
from dpsyn.report.html_page import render_page
from dpsyn.report.ledger import NOT_PRIVATE
from dpsyn.report.numbers import format_count
from dpsyn.report.synopsis import describe_guarantee
from dpsyn.synopsis.comparison import compare_rows
from dpsyn.synopsis.guarantee import NOT_VERIFIED, is_private

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dpsyn.inference import Release
    from dpsyn.synopsis import (
        AttributeComparison,
        MarginalComparison,
        PairComparison,
        ReleaseComparison,
        ReleasedPairTable,
        Synopsis,
    )
    from dpsyn.synopsis.comparison import ReleaseDistance

COMPARISON_HEADINGS = ("", "synthetic", "noise alone", "independent", "better is")
"""The columns of ``closeness_rows``; those in the middle are numbers."""

COMPARISON_BASELINES = (
    "Noise alone is how far a table that is exactly right would be from the released counts, because of their noise; "
    "independent is how far the synthetic rows are once each column is shuffled by itself."
)

_TERMS = PageTerms(
    reference="released",
    floor="noise alone",
    baselines=f"{COMPARISON_BASELINES} At the level of the noise, or below it, nothing more can be told from what was released.",
)

_COLUMNS = (
    TableColumn(heading="marginal", style="text"),
    TableColumn(heading="attributes", style="count"),
    TableColumn(heading="cells", style="count"),
    TableColumn(
        heading="noise σ", style="number", hint="the released standard deviation of the noise in a cell, in rows"
    ),
    TableColumn(
        heading="distance", style="fraction", hint="half the sum of absolute differences, as a share of all rows"
    ),
    TableColumn(heading="noise alone", style="fraction", hint="the distance of a table that is exactly right"),
    TableColumn(heading="independent", style="fraction", hint="the distance with every column shuffled by itself"),
    TableColumn(heading="difference in σ", style="number", hint="root mean square; 1 is as close as can be told"),
)

_BANNERS: dict[bool | None, tuple[BannerTone, str]] = {
    True: (
        "public",
        "May be published: this page was made from the released counts and the synthetic rows alone. No real row was "
        "read for it, so it costs no privacy beyond the promise below.",
    ),
    False: ("private", f"{NOT_PRIVATE}: the noise came from a test. Publish neither this page nor the rows."),
    None: (
        "warning",
        f"{NOT_VERIFIED} This page was made from counts that were measured elsewhere and from synthetic rows. It may "
        "be published if the counts may be.",
    ),
}


def publishable_report(synopsis: Synopsis, table: Any) -> str:
    """One HTML file about synthetic rows that may be published with them.

    Args:
        synopsis: what was released.
        table: synthetic rows as an Arrow table. There may be none: the released estimate of their number can be 0, and
            a release does not fail for it.

    Privacy: free. There is nothing on the page but what the synopsis holds and what the rows tell.
    """
    return comparison_report(synopsis, compare_rows(synopsis, table))


def comparison_report(synopsis: Synopsis, comparison: ReleaseComparison) -> str:
    """The same, once the rows are compared."""
    return render_page(_page_content(synopsis, comparison))


def publication_banner(synopsis: Synopsis) -> str:
    """Whether the report may be published, and why."""
    return _BANNERS[is_private(synopsis.releases)][1]


def comparison_rows(comparison: ReleaseComparison) -> list[tuple[str, ...]]:
    """A line of text for each overall figure."""
    return [(score.label, *score.texts, score.better) for score in _score_rows(comparison)]


def _page_content(synopsis: Synopsis, comparison: ReleaseComparison) -> PageContent:
    tone, banner = _BANNERS[is_private(synopsis.releases)]
    named = f" of {synopsis.schema.dataset}" if synopsis.schema.dataset else ""
    return PageContent(
        title=f"Synthetic rows{named} beside what was released",
        subtitle=f"{format_count(comparison.rows, 'synthetic row')}, {_describe_releases(synopsis.releases)}",
        tone=tone,
        banner=banner,
        terms=_TERMS,
        guarantee=describe_guarantee(synopsis),
        scores=tuple(_score_rows(comparison)),
        attributes=tuple(map(_attribute_chart, comparison.attributes)),
        pairs=tuple(map(_pair_error, comparison.pairs)),
        worst_pairs=tuple(map(_pair_chart, comparison.worst_pairs)),
        columns=_COLUMNS,
        rows=tuple(map(_marginal_row, comparison.marginals)),
        notes=(
            "Released counts carry noise, so they may be negative, and they may disagree with each other. Rare values "
            "are put together as they were for measuring.",
            "How close the rows are to the real table is more than this page can say: only its steward can look.",
        ),
    )


def _describe_releases(releases: Sequence[Release]) -> str:
    marginals = sum(len(stage.marginals) for release in releases for stage in release.rounds)
    return f"{format_count(marginals, 'noisy marginal')} in {format_count(len(releases), 'release')}"


def _score_rows(comparison: ReleaseComparison) -> Iterator[ScoreRow]:
    """The mean distance of marginals of one attribute, of two, and so on; and how many σ they are off."""
    yield from _distance_rows("of 1-way marginals over bins", [attribute.gap for attribute in comparison.attributes])
    if comparison.pairs:
        yield from _distance_rows("of pairs", [pair.gap for pair in comparison.pairs])
    larger = [marginal.gap for marginal in comparison.marginals if len(marginal.clique) > 2]
    if larger:
        yield from _distance_rows("of marginals of three attributes and more", larger)
    off = sum(marginal.off for marginal in comparison.marginals) / max(len(comparison.marginals), 1)
    words = f"difference from {format_count(len(comparison.marginals), 'released marginal')}, in σ of their noise"
    yield ScoreRow(label=words, texts=(f"{off:.2f}", "1.00", "–"), better="less", position=None)


def _distance_rows(words: str, distances: Sequence[ReleaseDistance]) -> Iterator[ScoreRow]:
    from dpsyn.synopsis.comparison import ReleaseDistance

    mean = ReleaseDistance.mean(distances)
    width = mean.independent - mean.noise
    shown = (f"{mean.distance:.4f}", f"{mean.noise:.4f}", f"{mean.independent:.4f}")
    place = (mean.distance - mean.noise) / width if width > 1e-9 and mean.independent > mean.distance else None
    yield ScoreRow(label=f"distance {words} ({len(distances)})", texts=shown, better="less", position=place)


def _attribute_chart(attribute: AttributeComparison) -> AttributeChart:
    return AttributeChart(
        name=attribute.name,
        kind=attribute.kind,
        distance=attribute.gap.distance,
        floor=attribute.gap.noise,
        labels=attribute.labels,
        folded=attribute.folded,
        reference=attribute.released,
        synthetic=attribute.synthetic,
        std=attribute.deviation,
    )


def _pair_error(pair: PairComparison) -> PairError:
    gap = pair.gap
    return PairError(
        first=pair.first, second=pair.second, distance=gap.distance, floor=gap.noise, independent=gap.independent
    )


def _pair_chart(pair: ReleasedPairTable) -> PairChart:
    return PairChart(
        first=pair.first,
        second=pair.second,
        lines=pair.first_labels,
        columns=pair.second_labels,
        reference=pair.released,
        synthetic=pair.synthetic,
    )


def _marginal_row(marginal: MarginalComparison) -> tuple[TableCell, ...]:
    gap = marginal.gap
    independent = gap.independent if len(marginal.clique) > 1 else None
    figures = (marginal.deviation, gap.distance, gap.noise, independent, marginal.off)
    return " × ".join(marginal.clique), len(marginal.clique), marginal.cells, *figures
