"""The results of a released evaluation: frozen values that turn into JSON. All of them may be published."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from dpsyn import notebook
from dpsyn.accounting import Certificate

EVALUATION_FORMAT = 1
"""The version of the JSON form."""

LEVEL = 0.95
"""The probability with which an interval contains the figure of the private table."""

WIDE_INTERVAL = 0.2
"""A group whose interval is wider is flagged: it is too small to be judged at this ε."""

PUBLISHABLE_NOTICE = (
    "May be published: every figure was measured with noise through the privacy gate, and charged to the privacy "
    "budget. The certificate states the guarantee."
)
TEST_NOISE_NOTICE = "NOT PRIVATE: the noise came from a test. Do not publish these figures."

Verdict = Literal["met", "not met", "not decided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedFigure:
    """A figure of the private table by its noisy measurements, with a 95 % interval for what it is without noise.

    Attributes:
        value: the estimate.
        low: the lower end of the interval; None if there is none.
        high: the upper end.
    """

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedDistance(ReleasedFigure):
    """A total variation distance: the share of rows that would have to change; between 0 and 1.

    Attributes:
        low: the lower end of the interval.
        high: the upper end.
        label: what is compared: an attribute, or words such as "mean of 15 one-way marginals".
        floor: about the distance of a fresh sample of the private rows that is as large as the synthetic table,
            computed from the synthetic shares; None where it is not computed.
    """

    low: float
    high: float
    label: str
    floor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDistance:
    """How far the synthetic rows of one group are from its private rows: the mean over all other attributes.

    Attributes:
        attribute: the attribute that divides rows into groups.
        group: its value.
        rows: the private rows of the group.
        synthetic_rows: its synthetic rows.
        distance: the mean distance of the one-way marginals of the other attributes, within the group.
        small: whether the group is small, or too small to be judged at this ε; then its figures mean little.
    """

    attribute: str
    group: str
    rows: ReleasedFigure
    synthetic_rows: int
    distance: ReleasedDistance
    small: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionResult:
    """A declared criterion and whether the synthetic table meets it.

    Attributes:
        criterion: the criterion in words.
        error: what is bounded: a distance, or the private figure minus the synthetic one.
        bound: the largest allowed size of the error.
        synthetic: the figure of the synthetic table; None for a distance.
        verdict: ``met`` if the whole interval is within the bound, ``not met`` if all of it is beyond, otherwise
            ``not decided``: the budget does not suffice to tell.
    """

    criterion: str
    error: ReleasedFigure
    bound: float
    synthetic: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReleasedEvaluation:
    """A synthetic table beside the private one, measured with noise: what ``dpsyn.release_evaluation`` returns.

    Privacy: every figure was charged, so all of it may be published. Intervals hold each figure with probability 95 %,
    one by one; the largest distances have intervals of their own because the worst of many noisy figures is biased.

    Attributes:
        notice: whether it may be published.
        format: the version of the JSON form.
        synthetic: the name of the synthetic table.
        synthetic_hash: the SHA-256 of its file, or of its codes if it is no single file.
        synthetic_rows: how many rows it has.
        rows: the private rows.
        one_way: the mean distance of all one-way marginals over the schema's bins.
        largest_one_way: the largest of them.
        two_way: the mean distance of all two-way marginals; None if there is only one attribute.
        largest_two_way: the largest of them; None likewise.
        attributes: the distance of each attribute, in the schema's order; empty if it was not asked for.
        groups: the distances of declared groups.
        criteria: the declared criteria.
        left_out: pairs that are not compared because their marginals have too many cells.
        certificate: the guarantee of these figures.
    """

    notice: str = PUBLISHABLE_NOTICE
    format: int = EVALUATION_FORMAT
    synthetic: str
    synthetic_hash: str
    synthetic_rows: int
    rows: ReleasedFigure
    one_way: ReleasedDistance
    largest_one_way: ReleasedDistance
    two_way: ReleasedDistance | None
    largest_two_way: ReleasedDistance | None
    attributes: tuple[ReleasedDistance, ...]
    groups: tuple[GroupDistance, ...]
    criteria: tuple[CriterionResult, ...]
    left_out: tuple[str, ...]
    certificate: Certificate

    def __repr__(self) -> str:
        return f"<ReleasedEvaluation of {self.synthetic}: {self.certificate.guarantee}; see its attributes>"

    def _repr_html_(self) -> str:
        rows = [(each.label, each.value, each.low, each.high) for each in self.overall]
        title = f"{self.synthetic} beside the private table"
        return notebook.html_table(title, ("", "distance", "from", "to"), rows, notice=self.notice)

    @property
    def overall(self) -> tuple[ReleasedDistance, ...]:
        """The overall distances that there are."""
        figures = (self.one_way, self.largest_one_way, self.two_way, self.largest_two_way)
        return tuple(figure for figure in figures if figure is not None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the notice first, the certificate last."""
        data: dict[str, Any] = msgspec.to_builtins(replace(self, certificate=None))  # type: ignore[arg-type]
        return {**data, "level": LEVEL, "certificate": self.certificate.to_data()}
