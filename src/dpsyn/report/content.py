"""What a page about a synthetic table shows, whatever it was computed from.

The table that the synthetic one is compared with is called the *reference*: the real table, or what was released about
it. Distances have a *floor*, which a perfect table would be at: sampling, or noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpsyn.errors import InternalError

BannerTone = Literal["private", "public", "warning"]
"""How a banner looks."""

ColumnStyle = Literal["text", "count", "fraction", "number"]
"""How the cells of a column are shown and compared."""

ChartValues = tuple[float, ...]
TableCell = str | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTerms:
    """What the page calls things.

    Attributes:
        reference: the reference, for legends: ``real``, ``released``.
        floor: the yardstick of a perfect table: ``sampling floor``, ``noise alone``.
        baselines: what the two yardsticks are, in a sentence or two.
    """

    reference: str
    floor: str
    baselines: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """An overall figure beside its yardsticks, as text.

    Attributes:
        label: what it is.
        texts: the figure, its floor and that of the independent model.
        better: ``less`` or ``more``; empty if it is not judged.
        position: where the figure lies between its floor, 0, and the independent model, 1; None if that says nothing.
    """

    label: str
    texts: tuple[str, str, str]
    better: str
    position: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeChart:
    """The shares of one attribute's values in both tables.

    Attributes:
        name: the attribute.
        kind: its kind in the schema, which decides the picture.
        distance: of the synthetic table from the reference.
        floor: that of a perfect table.
        labels: what is counted.
        folded: how many values the last label stands for; 0 if each label is one.
        reference: the share of each label.
        synthetic: the share of the synthetic rows.
        std: the standard deviation of the noise in each share of the reference; empty if there is none.
    """

    name: str
    kind: str
    distance: float
    floor: float
    labels: tuple[str, ...]
    folded: int
    reference: ChartValues
    synthetic: ChartValues
    std: ChartValues = ()

    def __post_init__(self) -> None:
        if not len(self.labels) == len(self.reference) == len(self.synthetic):
            raise InternalError(f"{self.name!r} has {len(self.labels)} labels and other numbers of shares")

    @property
    def excess(self) -> float:
        """How far it is beyond its floor."""
        return max(0.0, self.distance - self.floor)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairError:
    """How far a marginal of two attributes is off: a cell of the heat map."""

    first: str
    second: str
    distance: float
    floor: float
    independent: float

    @property
    def excess(self) -> float:
        """How far it is beyond its floor."""
        return max(0.0, self.distance - self.floor)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairChart:
    """A marginal of two attributes in both tables, a line for each label of the first."""

    first: str
    second: str
    lines: tuple[str, ...]
    columns: tuple[str, ...]
    reference: tuple[ChartValues, ...]
    synthetic: tuple[ChartValues, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column of the table that can be sorted and filtered."""

    heading: str
    style: ColumnStyle
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingTable:
    """What was bought, draw by draw, as text."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """What is promised about the privacy of those in the real table.

    Attributes:
        facts: a few figures with what they are, for the top of the page.
        paragraphs: the certificates in words; a line that begins with two spaces is an entry of a list.
        spending: what each release spent on what.
    """

    facts: tuple[tuple[str, str], ...] = ()
    paragraphs: tuple[str, ...] = ()
    spending: tuple[SpendingTable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """Everything on a page.

    Attributes:
        title: of the page.
        subtitle: what is compared.
        tone: how the banner looks.
        banner: what everybody must know before reading on.
        terms: what things are called.
        guarantee: certificate and budget.
        scores: overall figures.
        attributes: one picture each.
        pairs: the cells of the heat map.
        worst_pairs: the marginals that are farthest off, the worst first.
        columns: of the table of all marginals.
        rows: of that table.
        notes: what else is to be said.
    """

    title: str
    subtitle: str
    tone: BannerTone
    banner: str
    terms: PageTerms
    guarantee: Guarantee
    scores: tuple[ScoreRow, ...]
    attributes: tuple[AttributeChart, ...]
    pairs: tuple[PairError, ...]
    worst_pairs: tuple[PairChart, ...]
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    notes: tuple[str, ...] = ()
