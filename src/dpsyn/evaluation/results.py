"""What an evaluation finds, as plain frozen values that turn into JSON.

Every figure of the synthetic table stands beside two yardsticks, so that it means something: the *sampling floor*, what
a bootstrap of the real table gets, and the *independent* model, what the real table gets once its columns are shuffled.
Neither bounds a figure. A good release lies near the floor; one at the level of the independent model has lost every
relation between attributes.

Privacy: all of it is computed from the real rows without protection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

EVALUATION_FORMAT = 1
"""Of the JSON files."""

EVALUATION_NOTICE = (
    "PRIVATE: computed from the real rows and not protected. Do not publish it, and do not choose among releases by "
    "it: such a choice is outside the privacy guarantee."
)
"""What every output of an evaluation says first."""

IDENTICAL_ROWS_NOTE = (
    "A description, not the privacy guarantee: common rows coincide by chance, and a table without a single identical "
    "row can still give people away. What protects them is the certificate of the release."
)
"""What is said wherever identical rows are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure between its yardsticks.

    Attributes:
        synthetic: that of the synthetic table.
        floor: that of a bootstrap of the real table.
        independent: that of the real table with each column shuffled by itself.
    """

    synthetic: float
    floor: float
    independent: float

    @classmethod
    def mean(cls, figures: Sequence[Metric]) -> Metric:
        """The mean of several figures, each part by itself; zeros if there are none."""
        number = max(len(figures), 1)
        return cls(
            synthetic=sum(figure.synthetic for figure in figures) / number,
            floor=sum(figure.floor for figure in figures) / number,
            independent=sum(figure.independent for figure in figures) / number,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """How strongly two attributes depend on each other in each table.

    Attributes:
        real: in the real table.
        synthetic: in the synthetic one.
    """

    real: float
    synthetic: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeScore:
    """One attribute by itself.

    Attributes:
        name: the attribute.
        kind: its kind in the schema: categorical, ordinal, boolean, open, integer, real, datetime.
        distance: the total variation distance of its marginal over bins; the independent model's is its own.
        labels: what is counted: values or bins in the schema's order, ``missing`` included; where there are very many,
            the most frequent ones and last all others together.
        folded: how many values the last label stands for; 0 if each label is one.
        real: the share of the real rows that each label has.
        synthetic: the share of the synthetic rows.
        outside: the share of real and of synthetic cells that are not what the schema says, and were counted as a value
            that they are not: a number out of range as the nearest one. If there are many, the schema is wrong, and
            the figures say little.
    """

    name: str
    kind: str
    distance: Metric
    labels: tuple[str, ...]
    folded: int
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    outside: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairScore:
    """Two attributes together.

    Attributes:
        first: an attribute.
        second: one that comes later in the schema.
        distance: the total variation distance of their marginal over bins.
        cramers_v: Cramér's V, from 0 (independent) to 1.
        spearman: Spearman's rank correlation, from −1 to 1, of the rows in which neither is missing; None unless both
            are ordered.
    """

    first: str
    second: str
    distance: Metric
    cramers_v: Association
    spearman: Association | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """The marginal of two attributes in both tables.

    Attributes:
        first: an attribute.
        second: one that comes later in the schema.
        first_labels: its values or bins; where there are very many, the most frequent and last all others together.
        second_labels: those of the second, alike.
        real: shares of the real rows, a line for each label of the first.
        synthetic: shares of the synthetic rows.
    """

    first: str
    second: str
    first_labels: tuple[str, ...]
    second_labels: tuple[str, ...]
    real: tuple[tuple[float, ...], ...]
    synthetic: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distances:
    """Mean total variation distances of marginals over bins: the share of rows that would have to move.

    Attributes:
        one_way: over all attributes.
        two_way: over all pairs; None if there is but one attribute.
        three_way: over some triples drawn at random, or all if there are few; None below three attributes.
        triples: how many they are.
    """

    one_way: Metric
    two_way: Metric | None
    three_way: Metric | None
    triples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlations:
    """Mean absolute differences of correlations between the real table and another.

    Attributes:
        cramers_v: over all pairs; None if there is but one attribute.
        spearman: over all pairs of ordered attributes; None if there is none.
    """

    cramers_v: Metric | None
    spearman: Metric | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionScore:
    """Income in one region.

    Attributes:
        region: the region's label.
        gini: the Gini index in the real and the synthetic table; the latter None if it has no income there.
        gap: the mean income of the first sex minus that of the second, likewise.
    """

    region: str
    gini: tuple[float, float | None]
    gap: tuple[float, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomeScore:
    """The third metric of the contest: the Gini index and the gender gap of regions.

    Attributes:
        score: from 0 to 1 000 000.
        sexes: the two values that are compared.
        regions: those of the real table.
    """

    score: Metric
    sexes: tuple[str, str]
    regions: tuple[RegionScore, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestScore:
    """The scores of the NIST contest, from 0 to 1 000 000.

    Attributes:
        preset: whose parameters were used.
        density: how close the densities of random triples are.
        triples: how many were drawn.
        range_queries: how close the answers of random range queries are.
        queries: how many were asked.
        income: Gini and gender gap, if columns were named for it.
        mean: the mean of these metrics.
    """

    preset: str
    density: Metric
    triples: int
    range_queries: Metric
    queries: int
    income: IncomeScore | None
    mean: Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierScore:
    """How well a classifier does on held-out real rows that learned from a table.

    Attributes:
        target: the attribute that is predicted.
        classes: what is told apart.
        auc: the area under the ROC curve, the mean over the classes against the others if there are more than two.
        accuracy: the share of rows predicted right.
        real_auc: the same of the classifier that learned from the other real rows: a ceiling.
        real_accuracy: likewise.
        learned_from: how many rows each classifier saw at most.
        tested_on: how many real rows were held out.
    """

    target: str
    classes: tuple[str, ...]
    auc: Metric
    accuracy: Metric
    real_auc: float
    real_accuracy: float
    learned_from: int
    tested_on: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IdenticalRows:
    """Rows that agree with some real row in all evaluated attributes.

    Attributes:
        count: how many of the synthetic rows.
        share: their share; that of the floor is 1 by construction.
        note: that this is not the guarantee.
    """

    count: int
    share: Metric
    note: str = IDENTICAL_ROWS_NOTE


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evaluation:
    """All that an evaluation finds about a synthetic table.

    Attributes:
        real: how messages call the real table.
        synthetic: how messages call the synthetic one.
        real_rows: how many rows the real table has.
        synthetic_rows: how many the synthetic one has.
        baseline_rows: how many each yardstick has: those of the smaller table.
        seed: what decided all random choices.
        distances: of marginals.
        correlations: between attributes.
        contest: the scores of the contest.
        classifier: if a target was named.
        identical: rows that the two tables share.
        attributes: one entry for each evaluated attribute, in the schema's order.
        pairs: one entry for each pair, in the schema's order.
        worst_pairs: the marginals of the pairs with the largest distances, worst first.
        left_out: attributes of the schema that are not compared: identifiers and derived ones.
        notice: that this is private.
        format: of the JSON form.
    """

    real: str
    synthetic: str
    real_rows: int
    synthetic_rows: int
    baseline_rows: int
    seed: int
    distances: Distances
    correlations: Correlations
    contest: ContestScore
    classifier: ClassifierScore | None
    identical: IdenticalRows
    attributes: tuple[AttributeScore, ...]
    pairs: tuple[PairScore, ...]
    worst_pairs: tuple[PairTable, ...]
    left_out: tuple[str, ...]
    notice: str = EVALUATION_NOTICE
    format: int = EVALUATION_FORMAT

    def __repr__(self) -> str:
        return f"<Evaluation of {self.synthetic} against {self.real}: private; see its attributes>"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, ready for JSON; the notice comes first."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        first = {"notice": self.notice, "format": self.format}
        return first | {name: value for name, value in found.items() if name not in first}
