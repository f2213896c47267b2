"""Synthetic rows beside a reference: the values that every comparison consists of.

The *reference* is what the synthetic rows are compared with: the real table (``dpsyn.evaluate``) or the noisy marginals
of a release (``Synopsis.compare_rows``). Both comparisons produce the same values, so one page shows either.

Every metric comes with two *baselines* that give it a scale:

- The *floor* is what a table gets that is as good as possible. Against the real table it is the sampling floor: the
  metric of a bootstrap sample of the real rows. Against a release it is the noise floor: the expected distance of a
  table that has exactly the true counts.
- *independent* is what a table gets whose columns are shuffled, each by itself. No two of its attributes depend on each
  other.

Neither baseline is a bound. A good table is near the floor. A table at the level of the independent baseline has lost
all dependence between attributes.

Privacy: the values do not record whether they may be published. The class of the whole comparison does: an
``Evaluation`` is private, a ``ReleaseComparison`` may be published with its release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from dpsyn.errors import InternalError, UserError, quote_argument
from dpsyn.schema import Schema
from dpsyn.suggestions import suggest_names

ShareTable = tuple[tuple[float, ...], ...]
"""Shares of rows of two attributes: one tuple for each label of the first attribute."""

MAX_ATTRIBUTE_LABELS = 100
"""Labels of one attribute in a comparison. The least frequent values beyond them share the last label."""

MAX_PAIR_LABELS = 40
"""Labels of each attribute in a table of two."""

MAX_PAIR_TABLES = 8
"""Pairs whose whole tables are in a comparison: as many as a person looks at."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles that describe an ordered attribute: the median, the quartiles, and where the tails begin."""

SMALL_GROUP_ROWS = 100
"""A group with fewer rows is flagged as small: a fresh sample of it would differ a lot as well."""

MAX_GROUPS = 100
"""Values of an attribute of groups: more would be a list that nobody reads."""

WIDE_ERROR = 0.05
"""A group is flagged as small, too, if the standard error of its distance is larger: it cannot be judged."""

_LONG_LISTS = ("attributes", "pairs", "worst_pairs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric of the synthetic rows beside its two baselines.

    Attributes:
        synthetic: the metric of the synthetic rows.
        floor: the metric of a table that is as good as possible; see the module's docstring.
        independent: the metric of a table with each column shuffled by itself.
    """

    synthetic: float
    floor: float
    independent: float

    @property
    def excess(self) -> float:
        """By how much a distance exceeds its floor, at least 0."""
        return max(0.0, self.synthetic - self.floor)

    @classmethod
    def mean(cls, metrics: Sequence[Metric]) -> Metric:
        """The mean of several metrics and of their baselines; zeros if there are none."""
        count = max(len(metrics), 1)
        return cls(
            synthetic=sum(metric.synthetic for metric in metrics) / count,
            floor=sum(metric.floor for metric in metrics) / count,
            independent=sum(metric.independent for metric in metrics) / count,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """How strongly two attributes depend on each other in each table.

    Attributes:
        real: in the real table.
        synthetic: in the synthetic table.
    """

    real: float
    synthetic: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeStatistics:
    """An attribute of one table in a few numbers.

    Attributes:
        missing: the share of rows in which it is missing.
        mean: the mean of a number; None for other kinds, and if every value is missing.
        quantiles: the ``QUANTILES`` of an ordered attribute, as values of the schema; empty for other kinds.
    """

    missing: float
    mean: float | None = None
    quantiles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeComparison:
    """The one-way marginal of an attribute.

    Attributes:
        name: the attribute.
        kind: its kind in the schema: categorical, ordinal, boolean, open, integer, real, datetime, time; or
            ``joint`` for several attributes that a release measured as one.
        distance: the total variation distance of its marginal, over the schema's bins where possible.
        labels: the values or bins, in the schema's order, ``missing`` included. If there are very many, these are the
            most frequent ones, and the last label stands for all others.
        folded: how many values the last label stands for; 0 if each label is one value.
        reference: the share of rows of each label in the reference. Noise can make a released share negative.
        synthetic: the share of the synthetic rows of each label.
        std: the standard deviation of the noise in each share of the reference; empty if the reference has no noise.
        outside: the shares of real and of synthetic cells that are outside the schema and were counted as another
            value: for example a number out of range as the nearest one in range. If they are large, correct the schema:
            the metrics then mean little. None in a comparison with a release, which does not compute it.
        statistics: the attribute in a few numbers, in the reference and in the synthetic rows; None if it is several
            attributes that were measured as one.
    """

    name: str
    kind: str
    distance: Metric
    labels: tuple[str, ...]
    folded: int
    reference: tuple[float, ...]
    synthetic: tuple[float, ...]
    std: tuple[float, ...] = ()
    outside: tuple[float, float] | None = None
    statistics: tuple[AttributeStatistics, AttributeStatistics] | None = None

    def __post_init__(self) -> None:
        lengths = {len(self.labels), len(self.reference), len(self.synthetic), len(self.std) or len(self.labels)}
        if len(lengths) > 1:
            raise InternalError(f"{self.name!r} has {len(self.labels)} labels and another number of shares")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairComparison:
    """The two-way marginal of two attributes.

    Attributes:
        first: an attribute.
        second: another attribute.
        distance: the total variation distance of their marginal: over the schema's bins, or, with a release, as the
            least noisy marginal that holds both was measured.
        cramers_v: Cramér's V, from 0 (independent) to 1. None in a comparison with a release.
        spearman: Spearman's rank correlation, from −1 to 1, over the rows in which neither is missing. None unless both
            attributes are ordered, and in a comparison with a release.
    """

    first: str
    second: str
    distance: Metric
    cramers_v: Association | None = None
    spearman: Association | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """The two-way marginal of two attributes in full: a table for the reference and one for the synthetic rows.

    Attributes:
        first: an attribute.
        second: another attribute.
        first_labels: the values or bins of the first. If there are very many, these are the most frequent ones, and the
            last label stands for all others.
        second_labels: the same for the second.
        reference: shares of rows in the reference. Noise can make a released share negative.
        synthetic: shares of the synthetic rows.
        std: the standard deviation of the noise in a share of the reference, before values were folded into the last
            label; 0 if the reference has no noise.
    """

    first: str
    second: str
    first_labels: tuple[str, ...]
    second_labels: tuple[str, ...]
    reference: ShareTable
    synthetic: ShareTable
    std: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupComparison:
    """The rows that have one value of an attribute: whether the synthetic rows serve this group as well as others.

    Attributes:
        attribute: the attribute that divides the rows into groups.
        group: its value or bin.
        rows: the rows of the group in the reference; an estimate if the reference is a release.
        synthetic_rows: the synthetic rows of the group.
        distance: the mean total variation distance of the one-way marginals of other attributes, within the group.
        error: the standard error of the distance: by the sampling of rows, or by the noise of a release.
        attributes: how many attributes the mean is over; of a release, those measured together with the group.
        small: whether the group has few rows, or cannot be judged because the error is large.
    """

    attribute: str
    group: str
    rows: float
    synthetic_rows: int
    distance: Metric
    error: float
    attributes: int
    small: bool


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison:
    """What the comparisons with a real table and with a release have in common.

    Attributes:
        notice: whether the comparison is private or may be published; every output states it first.
        format: the version of the JSON form.
        synthetic_rows: how many rows the synthetic table has.
        attributes: the compared attributes, in the schema's order.
        pairs: the compared pairs of attributes.
        worst_pairs: the tables of the pairs whose distance exceeds the floor most, the worst first.
        groups: the groups of rows that were asked for.
    """

    notice: str
    format: int
    synthetic_rows: int
    attributes: tuple[AttributeComparison, ...]
    pairs: tuple[PairComparison, ...]
    worst_pairs: tuple[PairTable, ...]
    groups: tuple[GroupComparison, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data for JSON: the notice first, the long lists last."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return {name: data[name] for name in data if name not in _LONG_LISTS} | {
            name: data[name] for name in _LONG_LISTS
        }


def choose_groups(by: Sequence[str] | None, schema: Schema) -> tuple[str, ...]:
    """The attributes of groups: those that were asked for, or by default those that the schema declares.

    Attributes that are not compared, or that have too many values for a list of groups, are refused.
    """
    chosen = schema.groups if by is None else by
    if not isinstance(chosen, list | tuple) or not all(isinstance(name, str) for name in chosen):
        raise UserError(f"by is {quote_argument(by)}; give a list, such as ['sex', 'region']")
    known = {attribute.name: attribute for attribute in schema.modeled_attributes}
    for name in chosen:
        if name not in known:
            raise UserError(f"{quote_argument(name)} is not compared; {suggest_names(name, list(known))}")
        size = known[name].size if known[name].coded else 0
        if size > MAX_GROUPS:
            raise UserError(f"{name!r} has {size:,} values or bins; give an attribute with at most {MAX_GROUPS} groups")
    if len(set(chosen)) < len(chosen):
        raise UserError("by names an attribute twice; name each once")
    return tuple(chosen)


def list_declared_groups(schema: Schema) -> tuple[str, ...]:
    """The groups that the schema of a release declares, without those that have too many values for a list.

    A release may have changed their bins, and what follows a release must not fail because of the rows.
    """
    return tuple(name for name in schema.groups if schema[name].size <= MAX_GROUPS)
