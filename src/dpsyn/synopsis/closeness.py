"""How close synthetic rows are to what was released, as plain frozen values.

Every distance stands beside two yardsticks: the *noise*, which is how far a table that is exactly right would be from
the released counts, and the *independent* model, the synthetic rows with each column shuffled by itself. At the level
of the noise nothing more can be told from what was released.

Privacy: all of it is worked out from released numbers and synthetic rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

Table = tuple[tuple[float, ...], ...]
"""Shares of rows, a line for each label of the first attribute."""

FORMAT = 1
"""Of the JSON form."""

NOTICE = (
    "Computed from the released counts and the synthetic rows alone. No private row was read, so it costs no privacy "
    "and may be published with them."
)
"""What every output of a comparison says first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The total variation distance between released counts and synthetic rows, beside its yardsticks.

    Attributes:
        distance: half the sum of absolute differences, as a share of the estimated number of rows.
        noise: the mean of that for a table that is exactly right.
        independent: that of the synthetic rows with each column shuffled by itself.
    """

    distance: float
    noise: float
    independent: float

    @property
    def beyond(self) -> float:
        """What noise does not explain, at least 0."""
        return max(0.0, self.distance - self.noise)

    @classmethod
    def mean(cls, gaps: Sequence[Gap]) -> Gap:
        """The mean of several, each part by itself."""
        number = max(len(gaps), 1)
        return cls(
            distance=sum(gap.distance for gap in gaps) / number,
            noise=sum(gap.noise for gap in gaps) / number,
            independent=sum(gap.independent for gap in gaps) / number,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalCloseness:
    """One released marginal.

    Attributes:
        clique: its attributes, as they were measured.
        cells: how many counts it has.
        deviation: the released standard deviation of the noise in each, in rows.
        gap: how far the synthetic rows are from it.
        off: the root of the mean squared difference, in standard deviations of the noise; 1 is as close as can be told.
    """

    clique: tuple[str, ...]
    cells: int
    deviation: float
    gap: Gap
    off: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeCloseness:
    """One attribute by itself.

    Attributes:
        name: the attribute.
        kind: its kind in the schema; ``joint`` for several attributes that were measured as one.
        gap: how far its marginal is off.
        labels: what is counted; where there are very many, the most frequent ones and last all others together.
        folded: how many values the last label stands for; 0 if each label is one.
        released: the released share of rows of each label; noise may make it negative.
        deviation: the standard deviation of the noise in each share.
        synthetic: the share of the synthetic rows.
    """

    name: str
    kind: str
    gap: Gap
    labels: tuple[str, ...]
    folded: int
    released: tuple[float, ...]
    deviation: tuple[float, ...]
    synthetic: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCloseness:
    """Two attributes together, by the least noisy marginal that holds both.

    Attributes:
        first: an attribute.
        second: another.
        gap: how far their marginal is off.
    """

    first: str
    second: str
    gap: Gap


@dataclass(frozen=True, slots=True, kw_only=True)
class PairShares:
    """The marginal of two attributes as it was released and in the synthetic rows.

    Attributes:
        first: an attribute.
        second: another.
        first_labels: its values or bins, rare ones together.
        second_labels: those of the second.
        deviation: the standard deviation of the noise in a released share, before rare ones were put together.
        released: released shares of rows; noise may make them negative.
        synthetic: shares of the synthetic rows.
    """

    first: str
    second: str
    first_labels: tuple[str, ...]
    second_labels: tuple[str, ...]
    deviation: float
    released: Table
    synthetic: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """All that can be told about synthetic rows without the real ones.

    Attributes:
        rows: how many synthetic rows there are.
        released_rows: the released estimate of how many real ones there are.
        marginals: every released marginal, in the order of measuring.
        attributes: every attribute of which a marginal was released, in the schema's order.
        pairs: every pair of which a marginal was released.
        worst_pairs: those whose distance is farthest beyond the noise, worst first.
        notice: that it may be published.
        format: of the JSON form.
    """

    rows: int
    released_rows: int
    marginals: tuple[MarginalCloseness, ...]
    attributes: tuple[AttributeCloseness, ...]
    pairs: tuple[PairCloseness, ...]
    worst_pairs: tuple[PairShares, ...]
    notice: str = NOTICE
    format: int = FORMAT

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, ready for JSON; the notice comes first."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        first = {"notice": self.notice, "format": self.format}
        return first | {name: value for name, value in found.items() if name not in first}
