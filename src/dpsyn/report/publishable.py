"""The report that may be published: synthetic rows beside what was released, and nothing else.

Privacy: it is given a synopsis and synthetic rows, and nothing it imports can reach a real one; a test follows every
import of this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpsyn.report.content import (
    AttributeChart,
    Cell,
    Column,
    Content,
    PairChart,
    PairError,
    Score,
    Tone,
    Words,
)
from dpsyn.report.guarantee import guarantee_of
from dpsyn.report.ledger import NOT_PRIVATE
from dpsyn.report.numbers import counted
from dpsyn.report.page import html_of
from dpsyn.synopsis.comparing import compare_rows
from dpsyn.synopsis.guarantee import NOT_VERIFIED, is_private

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dpsyn.synopsis import (
        AttributeCloseness,
        Closeness,
        MarginalCloseness,
        PairCloseness,
        PairShares,
        Release,
        Synopsis,
    )
    from dpsyn.synopsis.closeness import Gap

SCORE_HEADINGS = ("", "synthetic", "noise alone", "independent", "better is")
"""The columns of ``closeness_rows``; those in the middle are numbers."""

YARDSTICKS = (
    "Noise alone is how far a table that is exactly right would be from the released counts, because of their noise; "
    "independent is how far the synthetic rows are once each column is shuffled by itself."
)

_WORDS = Words(
    reference="released",
    floor="noise alone",
    yardsticks=f"{YARDSTICKS} At the level of the noise, or below it, nothing more can be told from what was released.",
)

_COLUMNS = (
    Column(heading="marginal", style="text"),
    Column(heading="attributes", style="count"),
    Column(heading="cells", style="count"),
    Column(heading="noise σ", style="number", hint="the released standard deviation of the noise in a cell, in rows"),
    Column(heading="distance", style="fraction", hint="half the sum of absolute differences, as a share of all rows"),
    Column(heading="noise alone", style="fraction", hint="the distance of a table that is exactly right"),
    Column(heading="independent", style="fraction", hint="the distance with every column shuffled by itself"),
    Column(heading="difference in σ", style="number", hint="root mean square; 1 is as close as can be told"),
)

_BANNERS: dict[bool | None, tuple[Tone, str]] = {
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
    return closeness_report(synopsis, compare_rows(synopsis, table))


def closeness_report(synopsis: Synopsis, closeness: Closeness) -> str:
    """The same, once the rows are compared."""
    return html_of(_content(synopsis, closeness))


def banner_of(synopsis: Synopsis) -> str:
    """Whether the report may be published, and why."""
    return _BANNERS[is_private(synopsis.releases)][1]


def closeness_rows(closeness: Closeness) -> list[tuple[str, ...]]:
    """A line of text for each overall figure."""
    return [(score.words, *score.shown, score.better) for score in _scores(closeness)]


def _content(synopsis: Synopsis, closeness: Closeness) -> Content:
    tone, banner = _BANNERS[is_private(synopsis.releases)]
    named = f" of {synopsis.schema.dataset}" if synopsis.schema.dataset else ""
    return Content(
        title=f"Synthetic rows{named} beside what was released",
        subtitle=f"{counted(closeness.rows, 'synthetic row')}, {_told(synopsis.releases)}",
        tone=tone,
        banner=banner,
        words=_WORDS,
        guarantee=guarantee_of(synopsis),
        scores=tuple(_scores(closeness)),
        attributes=tuple(map(_attribute, closeness.attributes)),
        pairs=tuple(map(_pair, closeness.pairs)),
        worst_pairs=tuple(map(_worst, closeness.worst_pairs)),
        columns=_COLUMNS,
        rows=tuple(map(_row, closeness.marginals)),
        notes=(
            "Released counts carry noise, so they may be negative, and they may disagree with each other. Rare values "
            "are put together as they were for measuring.",
            "How close the rows are to the real table is more than this page can say: only its steward can look.",
        ),
    )


def _told(releases: Sequence[Release]) -> str:
    marginals = sum(len(stage.marginals) for release in releases for stage in release.stages)
    return f"{counted(marginals, 'noisy marginal')} in {counted(len(releases), 'release')}"


def _scores(closeness: Closeness) -> Iterator[Score]:
    """The mean distance of marginals of one attribute, of two, and so on; and how many σ they are off."""
    yield from _distance("of 1-way marginals over bins", [attribute.gap for attribute in closeness.attributes])
    if closeness.pairs:
        yield from _distance("of pairs", [pair.gap for pair in closeness.pairs])
    larger = [marginal.gap for marginal in closeness.marginals if len(marginal.clique) > 2]
    if larger:
        yield from _distance("of marginals of three attributes and more", larger)
    off = sum(marginal.off for marginal in closeness.marginals) / max(len(closeness.marginals), 1)
    words = f"difference from {counted(len(closeness.marginals), 'released marginal')}, in σ of their noise"
    yield Score(words=words, shown=(f"{off:.2f}", "1.00", "–"), better="less", place=None)


def _distance(words: str, gaps: Sequence[Gap]) -> Iterator[Score]:
    from dpsyn.synopsis.closeness import Gap

    mean = Gap.mean(gaps)
    width = mean.independent - mean.noise
    shown = (f"{mean.distance:.4f}", f"{mean.noise:.4f}", f"{mean.independent:.4f}")
    place = (mean.distance - mean.noise) / width if width > 1e-9 and mean.independent > mean.distance else None
    yield Score(words=f"distance {words} ({len(gaps)})", shown=shown, better="less", place=place)


def _attribute(attribute: AttributeCloseness) -> AttributeChart:
    return AttributeChart(
        name=attribute.name,
        kind=attribute.kind,
        distance=attribute.gap.distance,
        floor=attribute.gap.noise,
        labels=attribute.labels,
        folded=attribute.folded,
        reference=attribute.released,
        synthetic=attribute.synthetic,
        deviation=attribute.deviation,
    )


def _pair(pair: PairCloseness) -> PairError:
    gap = pair.gap
    return PairError(
        first=pair.first, second=pair.second, distance=gap.distance, floor=gap.noise, independent=gap.independent
    )


def _worst(pair: PairShares) -> PairChart:
    return PairChart(
        first=pair.first,
        second=pair.second,
        lines=pair.first_labels,
        columns=pair.second_labels,
        reference=pair.released,
        synthetic=pair.synthetic,
    )


def _row(marginal: MarginalCloseness) -> tuple[Cell, ...]:
    gap = marginal.gap
    independent = gap.independent if len(marginal.clique) > 1 else None
    figures = (marginal.deviation, gap.distance, gap.noise, independent, marginal.off)
    return " × ".join(marginal.clique), len(marginal.clique), marginal.cells, *figures
