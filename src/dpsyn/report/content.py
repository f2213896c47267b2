"""What a page about a synthetic table shows, for a comparison with the real table or with a release.

The *reference* is what the synthetic rows are compared with: the real table, or the released counts. The *floor* of a
distance is that of a table that is as good as possible: the sampling floor or the noise floor. See
``dpsyn.marginals.comparison``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from dpsyn.marginals import Comparison, Metric
from dpsyn.report.verdict import Verdict

BannerTone = Literal["private", "public", "warning"]
"""The look of a banner."""

ColumnStyle = Literal["text", "count", "fraction", "number"]
"""How the cells of a column are shown and sorted."""

Better = Literal["less", "more", ""]
"""Whether a smaller or a larger score is better; empty if neither is."""

TRACK_EXPLANATION = (
    "On the scale, the left end is the floor and the mark is shuffled columns; a table right of the mark is worse than "
    "those."
)

TableCell = str | float | None

NO_BASELINE = "–"
"""Shown where shuffling columns changes nothing."""

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

    @property
    def is_worse_than_shuffled(self) -> bool:
        """Whether the score is worse than that of the independent baseline."""
        return self.position is not None and self.position > 1

    @classmethod
    def from_metric(
        cls, label: str, metric: Metric, format_value: Callable[[float], str], better: Better = "", *, ways: int = 2
    ) -> ScoreRow:
        """The row of a metric.

        It has a position if the independent baseline is worse than the floor. Shuffling columns does not change a
        one-way marginal: then there is no independent baseline, and no scale.
        """
        independent = format_value(metric.independent) if ways > 1 else NO_BASELINE
        texts = format_value(metric.synthetic), format_value(metric.floor), independent
        sign = {"less": 1, "more": -1, "": 0}[better]
        width = metric.independent - metric.floor
        has_scale = ways > 1 and sign * width > _ROUNDING
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
class TextBlock:
    """A part of a text: a heading, a paragraph, or a list, which may be collapsed.

    Attributes:
        kind: which of them.
        lines: the text of a heading or paragraph, or the entries of a list.
    """

    kind: Literal["heading", "paragraph", "list"]
    lines: tuple[str, ...]


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

    @property
    def blocks(self) -> Iterator[TextBlock]:
        """The paragraphs in parts: indented lines are lists, a single line that is not a sentence is a heading."""
        for paragraph in self.paragraphs:
            if "\n" not in paragraph and not paragraph.endswith((".", ":")):
                yield TextBlock(kind="heading", lines=(paragraph,))
                continue
            for is_list, group in groupby(paragraph.split("\n"), key=lambda line: line.startswith("  ")):
                lines = tuple(line.strip() for line in group)
                yield TextBlock(kind="list" if is_list else "paragraph", lines=lines if is_list else (" ".join(lines),))


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """A cell of a matrix: its color, its number as text, and whether it is marked.

    Attributes:
        color: the class of its color: ``h0`` to ``h8`` from none to strong, ``l4`` … ``e`` … ``m4`` from less to more.
        text: its number.
        marked: whether it is framed, for example because the pair was measured.
    """

    color: str = ""
    text: str = ""
    marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A table of colored cells.

    Attributes:
        title: what it shows.
        lines: the label of each line.
        columns: the label of each column.
        cells: one tuple for each line; None where there is nothing to show.
    """

    title: str
    lines: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[MatrixCell | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixGroup:
    """Matrices side by side.

    Attributes:
        anchor: the name of the group in links.
        heading: its heading.
        explanation: what the numbers are.
        scale: the classes of colors, in order, for a legend.
        ends: what the first and the last color of the scale stand for.
        matrices: the matrices.
        note: what is not shown.
        of_pairs: whether a cell is a pair of attributes, which is in the table of all marginals.
    """

    anchor: str
    heading: str
    explanation: str
    scale: tuple[str, ...]
    ends: tuple[str, str]
    matrices: tuple[Matrix, ...]
    note: str = ""
    of_pairs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that the rows or the comparison do not have: what it is, and its entries."""

    heading: str
    entries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """Everything on a page.

    Attributes:
        title: the title of the page.
        subtitle: what is compared.
        facts: dataset, date, version and recipe, each with its name.
        verdict: whether the table is any good, in words.
        usage: how to use the rows, and how not to.
        tone: the look of the banner.
        banner: what a reader must know first: whether the page is private.
        terms: the names that the page uses.
        guarantee: certificate and budget.
        scores: overall scores.
        comparison: the attributes and pairs, which the page charts.
        correlations: matrices of correlations.
        heat_map: the matrix of all pairs; None if there are none.
        left_out: what the rows do not have.
        columns: the columns of the table of all marginals.
        rows: the rows of that table.
        notes: further remarks.
        group_headings: the columns of the table of groups.
        group_lines: what the table of groups shows, in sentences.
    """

    title: str
    subtitle: str
    facts: tuple[tuple[str, str], ...]
    verdict: Verdict
    usage: tuple[str, ...]
    tone: BannerTone
    banner: str
    terms: PageTerms
    guarantee: Guarantee
    scores: tuple[ScoreRow, ...]
    comparison: Comparison
    correlations: tuple[MatrixGroup, ...]
    heat_map: MatrixGroup | None
    left_out: tuple[LeftOut, ...]
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    notes: tuple[str, ...] = ()
    group_headings: tuple[str, ...] = ()
    group_lines: tuple[str, ...] = ()
