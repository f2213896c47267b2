"""What a page about a synthetic table shows, for a comparison with the real table or with a release.

The *reference* is what the synthetic rows are compared with: the real table, or the released counts. The *floor* of a
distance is that of a table that is as good as possible: the sampling floor or the noise floor. See
``dpsyn.marginals.comparison``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dpsyn.marginals import Comparison, Metric

BannerTone = Literal["private", "public", "warning"]
"""The look of a banner."""

ColumnStyle = Literal["text", "count", "fraction", "number"]
"""How the cells of a column are shown and sorted."""

Better = Literal["less", "more", ""]
"""Whether a smaller or a larger score is better; empty if neither is."""

TableCell = str | float | None

_ROUNDING = 1e-9
"""Smaller differences of scores are rounding errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTerms:
    """The names that the page uses.

    Attributes:
        reference: the reference, for legends: ``real`` or ``released``.
        floor: the floor of distances: ``sampling floor`` or ``noise floor``.
        baselines: an explanation of the two baselines, in a few sentences.
    """

    reference: str
    floor: str
    baselines: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """An overall score beside its baselines, as text.

    Attributes:
        label: the name of the score.
        texts: the score, its floor and that of the independent baseline.
        better: whether less or more is better.
        position: the position of the score between the floor (0) and the independent baseline (1); None if they do not
            form a scale.
    """

    label: str
    texts: tuple[str, str, str]
    better: Better
    position: float | None

    @classmethod
    def from_metric(
        cls, label: str, metric: Metric, format_value: Callable[[float], str], better: Better = ""
    ) -> ScoreRow:
        """The row of a metric.

        It has a position if the independent baseline is worse than the floor. Shuffling the synthetic rows does not
        change a one-way marginal; then the score is itself the independent baseline, and there is no scale.
        """
        texts = format_value(metric.synthetic), format_value(metric.floor), format_value(metric.independent)
        sign = {"less": 1, "more": -1, "": 0}[better]
        width = metric.independent - metric.floor
        has_scale = sign * width > _ROUNDING and abs(metric.independent - metric.synthetic) > _ROUNDING
        position = (metric.synthetic - metric.floor) / width if has_scale else None
        return cls(label=label, texts=texts, better=better, position=position)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column of the table that can be sorted and filtered."""

    heading: str
    style: ColumnStyle
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingTable:
    """What a release spent its privacy budget on, one row for each measurement, as text."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """The privacy guarantee for the people in the real table.

    Attributes:
        facts: a few figures and what they are, for the top of the page.
        paragraphs: the certificates in words; a line that begins with two spaces is an entry of a list.
        spending: what each release spent its budget on.
    """

    facts: tuple[tuple[str, str], ...] = ()
    paragraphs: tuple[str, ...] = ()
    spending: tuple[SpendingTable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """Everything on a page.

    Attributes:
        title: the title of the page.
        subtitle: what is compared.
        tone: the look of the banner.
        banner: what a reader must know first: whether the page is private.
        terms: the names that the page uses.
        guarantee: certificate and budget.
        scores: overall scores.
        comparison: the attributes and pairs, which the page charts.
        columns: the columns of the table of all marginals.
        rows: the rows of that table.
        notes: further remarks.
    """

    title: str
    subtitle: str
    tone: BannerTone
    banner: str
    terms: PageTerms
    guarantee: Guarantee
    scores: tuple[ScoreRow, ...]
    comparison: Comparison
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    notes: tuple[str, ...] = ()
