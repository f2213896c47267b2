"""A verdict on a comparison, in words: what is kept, what is not, and by how much.

Every judgement is relative to the two baselines of a metric: at 0 the table is as good as its floor, at 1 it is no
better than columns that are shuffled, each by itself, and beyond 1 it is worse than those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dpsyn.marginals import AttributeComparison, Metric, PairComparison
from dpsyn.report.numbers import format_count
from dpsyn.suggestions import format_names

VerdictTone = Literal["good", "mixed", "bad"]
"""The look of a verdict."""

TONES: tuple[VerdictTone, ...] = ("good", "mixed", "bad")
"""All tones, the best first."""

MIN_EXCESS = 0.01
"""A distance that exceeds its floor by less than this share of rows is not worth a remark."""

MIN_SCALE = 0.005
"""If shuffling the columns changes less than this share of rows, they hardly depend on each other."""

NEARLY_KEPT, WELL_KEPT, PARTLY_KEPT, SHUFFLED = 0.1, 0.35, 0.7, 1.0
"""Positions between the floor and shuffled columns up to which dependence is nearly, well, and partly kept."""

_MAX_NAMES = 3
_MAX_BAD_SHARE = 0.5
"""If more than this share of the columns differ, a verdict cannot be good or mixed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A verdict.

    Attributes:
        tone: its look.
        headline: one sentence.
        details: further sentences.
    """

    tone: VerdictTone
    headline: str
    details: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """All sentences, for a terminal."""
        return self.headline, *self.details


def differs(metric: Metric) -> bool:
    """Whether a distance is clearly beyond its floor: more than twice as large, and by a share of rows that matters."""
    return metric.excess > max(MIN_EXCESS, metric.floor)


def is_worse_than_shuffled(metric: Metric) -> bool:
    """Whether a distance is larger than that of shuffled columns, by a share of rows that matters."""
    return metric.synthetic > metric.independent + MIN_EXCESS


def position_of(metric: Metric) -> float | None:
    """The position of a distance between its floor (0) and shuffled columns (1); None if those hardly differ."""
    width = metric.independent - metric.floor
    return (metric.synthetic - metric.floor) / width if width > MIN_SCALE else None


def judge_position(position: float | None, fresh: str, *, about: str = "about") -> tuple[VerdictTone, str]:
    """How well dependence is kept; ``fresh`` names what a table at the floor would be, ``about`` how sure that is."""
    if position is None:
        return "good", "columns hardly depend on each other, so there is little to keep in pairs"
    kept = f"{about} {100 * max(0.0, 1 - position):.0f} % of the dependence between columns"
    if position <= NEARLY_KEPT:
        return "good", f"pairs are kept nearly as well as by {fresh}"
    if position <= WELL_KEPT:
        return "good", f"pairs are kept well, with {kept}"
    if position <= PARTLY_KEPT:
        return "mixed", f"pairs are kept in part, with {kept}"
    if position < SHUFFLED:
        return "bad", f"pairs are mostly lost: {kept} is kept"
    return "bad", "pairs are worse than shuffled: with every column shuffled by itself the table would be closer"


def describe_columns(attributes: Sequence[AttributeComparison]) -> tuple[VerdictTone, str]:
    """Whether single columns are kept, and which are not."""
    worst = sorted((each for each in attributes if differs(each.distance)), key=lambda each: -each.distance.excess)
    if not worst:
        return "good", "all single columns are kept" if len(attributes) > 1 else "the column is kept"
    tone: VerdictTone = "bad" if len(worst) > _MAX_BAD_SHARE * len(attributes) else "mixed"
    verb = "differs" if len(worst) == 1 else "differ"
    return tone, f"{len(worst)} of {format_count(len(attributes), 'column')} {verb}: {list_names(worst)}"


def describe_worst_columns(attributes: Sequence[AttributeComparison], fresh: str) -> list[str]:
    """A sentence for each of the columns that differ most."""
    worst = sorted((each for each in attributes if differs(each.distance)), key=lambda each: -each.distance.excess)
    return [
        f"{each.name}: {format_share(each.distance.synthetic)} of the rows would have to change ({fresh}: "
        f"{format_share(each.distance.floor)})."
        for each in worst[:_MAX_NAMES]
    ]


def describe_bad_pairs(pairs: Sequence[PairComparison]) -> list[str]:
    """A sentence on the pairs that are worse than shuffled; nothing if there are none."""
    bad = sorted(
        (pair for pair in pairs if is_worse_than_shuffled(pair.distance)),
        key=lambda pair: pair.distance.independent - pair.distance.synthetic,
    )
    if not bad:
        return []
    names = join_names([f"{pair.first} × {pair.second}" for pair in bad])
    return [f"Worse than shuffled: {len(bad):,} of {format_count(len(pairs), 'pair')}: {names}."]


def combine_verdict(pairs: tuple[VerdictTone, str], columns: tuple[VerdictTone, str], *details: str) -> Verdict:
    """The verdict on pairs and columns as one sentence; the worse tone counts."""
    tone = max(pairs[0], columns[0], key=TONES.index)
    between = "; but " if pairs[0] == "good" != columns[0] else "; "
    sentence = f"{pairs[1]}{between}{columns[1]}."
    return Verdict(tone=tone, headline=sentence[0].upper() + sentence[1:], details=details)


def format_share(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.1f} %"


def list_names(attributes: Sequence[AttributeComparison]) -> str:
    """The names of some attributes."""
    return join_names([each.name for each in attributes])


def join_names(names: Sequence[str], limit: int = _MAX_NAMES) -> str:
    """The first names, and how many more there are: ``a, b, c and 4 more``."""
    if len(names) > limit:
        return format_names(names, limit)
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""
