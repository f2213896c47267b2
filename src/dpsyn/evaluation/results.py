"""The results of an evaluation: frozen values that turn into JSON.

Privacy: all of them are computed from the real rows without protection.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsyn import notebook
from dpsyn.marginals import Comparison, Metric

EVALUATION_FORMAT = 1
"""The version of the JSON form."""

EVALUATION_NOTICE = (
    "PRIVATE: computed from the real rows and not protected. Do not publish it, and do not choose among releases by "
    "it: such a choice is outside the privacy guarantee."
)
"""What every output of an evaluation states first."""

IDENTICAL_ROWS_NOTE = (
    "The share of identical rows describes the table; it is not the privacy guarantee. Common rows coincide by chance, "
    "and a table without any identical row can still reveal people. What protects them is the guarantee in the "
    "certificate of the release."
)
"""What is stated wherever identical rows are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distances:
    """Mean total variation distances of marginals over bins: the share of rows that would have to change.

    Attributes:
        one_way: over all attributes.
        two_way: over all pairs; None if there is only one attribute.
        three_way: over a random sample of triples, or over all if there are few; None below three attributes.
        triples: how many triples.
    """

    one_way: Metric
    two_way: Metric | None
    three_way: Metric | None
    triples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlations:
    """Mean absolute differences between the correlations of the real table and those of another table.

    Attributes:
        cramers_v: over all pairs; None if there is only one attribute.
        spearman: over all pairs of ordered attributes; None if there are none.
    """

    cramers_v: Metric | None
    spearman: Metric | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionScore:
    """Incomes in one region.

    Attributes:
        region: the region's label.
        gini: the Gini index in the real and in the synthetic table; the latter is None if it has no income there.
        gap: the mean income of the first sex minus that of the second, likewise.
    """

    region: str
    gini: tuple[float, float | None]
    gap: tuple[float, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomeScore:
    """The third metric of the NIST contest: the Gini index and the gender gap of each region.

    Attributes:
        score: from 0 to 1 000 000.
        sexes: the two compared values.
        regions: the regions of the real table.
    """

    score: Metric
    sexes: tuple[str, str]
    regions: tuple[RegionScore, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestScore:
    """The scores of the NIST contest, from 0 to 1 000 000.

    Attributes:
        preset: the name of the parameters.
        columns: how many columns were compared; those of ``match3`` include derived ones.
        density: how close the densities of random triples of columns are.
        triples: how many triples.
        range_queries: how close the answers to random range queries are.
        queries: how many queries.
        income: Gini index and gender gap; None unless columns were named for it.
        mean: the mean of these metrics.
    """

    preset: str
    columns: int
    density: Metric
    triples: int
    range_queries: Metric
    queries: int
    income: IncomeScore | None
    mean: Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierScore:
    """How well a classifier predicts held-out real rows after training on another table.

    Attributes:
        target: the predicted attribute.
        classes: the predicted classes.
        auc: the area under the ROC curve; with more than two classes the mean over each class against all others.
        accuracy: the share of rows predicted correctly.
        real_auc: the AUC after training on the other real rows: a ceiling.
        real_accuracy: the accuracy after training on them.
        learned_from: the largest number of rows a classifier was trained on.
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
    """Synthetic rows that agree with some real row in all compared attributes.

    Attributes:
        count: how many synthetic rows.
        share: their share of the synthetic rows; the floor is 1 by construction.
        note: that this is not the privacy guarantee.
    """

    count: int
    share: Metric
    note: str = IDENTICAL_ROWS_NOTE


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evaluation(Comparison):
    """A synthetic table compared with the real one: what ``dpsyn.evaluate`` returns.

    Every metric comes with two baselines: ``floor``, the metric of a bootstrap sample of the real rows, and
    ``independent``, the metric of the real table with each column shuffled by itself. A good synthetic table is near
    the floor; one at the level of the independent baseline has lost all dependence between attributes.

    Example: ``a`` and ``b`` are equal in the real table and unrelated in the synthetic one, so half of the synthetic
    rows would have to change, and the correlation is lost.

        >>> import pyarrow as pa
        >>> import dpsyn
        >>> from dpsyn.schema import Boolean
        >>> schema = dpsyn.Schema(attributes=(Boolean(name="a"), Boolean(name="b")))
        >>> real = pa.table({"a": [True, False] * 50, "b": [True, False] * 50})
        >>> synthetic = pa.table({"a": [True, False] * 50, "b": [True, True, False, False] * 25})
        >>> evaluation = dpsyn.evaluate(real, synthetic, schema)
        >>> evaluation.pairs[0].distance.synthetic
        0.5
        >>> evaluation.pairs[0].cramers_v
        Association(real=1.0, synthetic=0.0)
        >>> sorted(evaluation.to_dict()["distances"])
        ['one_way', 'three_way', 'triples', 'two_way']

    Privacy: computed from the real rows without protection. Do not publish it. Choosing among releases by it is outside
    the privacy guarantee.

    Attributes:
        notice: that this is private.
        format: the version of the JSON form.
        synthetic_rows: how many rows the synthetic table has.
        attributes: one entry for each compared attribute, in the schema's order.
        pairs: one entry for each pair of them, in the schema's order.
        worst_pairs: the tables of the pairs whose distance exceeds the sampling floor most, the worst first.
        groups: the groups of rows that were asked for.
        real: the name of the real table in messages.
        synthetic: the name of the synthetic table in messages.
        real_rows: how many rows the real table has.
        baseline_rows: how many rows each baseline has: as many as the smaller table.
        seed: the seed of all random choices.
        distances: mean distances of one-way, two-way and three-way marginals.
        correlations: how much correlations differ.
        contest: the scores of the NIST contest.
        classifier: the score of a classifier; None unless a target was named.
        identical: synthetic rows that equal a real row.
        left_out: attributes of the schema that are not compared: identifiers and derived attributes.
    """

    notice: str = EVALUATION_NOTICE
    format: int = EVALUATION_FORMAT
    real: str
    synthetic: str
    real_rows: int
    baseline_rows: int
    seed: int
    distances: Distances
    correlations: Correlations
    contest: ContestScore
    classifier: ClassifierScore | None
    identical: IdenticalRows
    left_out: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Evaluation of {self.synthetic} against {self.real}: private; see its attributes>"

    def _repr_html_(self) -> str:
        metrics = {
            "one-way distance": self.distances.one_way,
            "two-way distance": self.distances.two_way,
            "three-way distance": self.distances.three_way,
            "difference of Cramér's V": self.correlations.cramers_v,
            "difference of rank correlations": self.correlations.spearman,
            "NIST score, mean": self.contest.mean,
        }
        rows = [(name, m.synthetic, m.floor, m.independent) for name, m in metrics.items() if m is not None]
        title = f"{self.synthetic} beside {self.real}"
        headings = ("", "synthetic", "fresh sample", "shuffled columns")
        return notebook.html_table(title, headings, rows, notice=self.notice)

    def plot(self, axes: notebook.Axes | None = None) -> notebook.Axes:
        """Draw the distance of each attribute, beside that of a fresh sample of the real rows. Needs matplotlib.

        Privacy: the plot is private, as the evaluation is.
        """
        compared = sorted(self.attributes, key=lambda each: -each.distance.synthetic)
        return notebook.plot_bars(
            axes,
            [each.name for each in compared],
            [each.distance.synthetic for each in compared],
            title="PRIVATE: share of rows that would have to change",
            unit="distance of the one-way marginal",
            marks=[("fresh sample", [each.distance.floor for each in compared])],
        )
