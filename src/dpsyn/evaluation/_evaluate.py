"""All scores of a synthetic table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpsyn.errors import UserError
from dpsyn.evaluation.classifier import require_scikit_learn, score_classifier
from dpsyn.evaluation.marginal_scores import (
    compute_triple_distances,
    score_attributes,
    score_pairs,
    tabulate_worst_pairs,
)
from dpsyn.evaluation.nist_contest import PAPER, IncomeColumns, find_preset, score_contest
from dpsyn.evaluation.reader import read_tables
from dpsyn.evaluation.results import ClassifierScore, Distances, Evaluation, IdenticalRows, Metric
from dpsyn.evaluation.tables import EvaluationTables, find_shared_rows, make_generator
from dpsyn.progress import Progress, ignore_progress
from dpsyn.schema import Schema, Value


def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    *,
    preset: str = PAPER.name,
    target: str | None = None,
    region: str | None = None,
    sex: str | None = None,
    income: str | None = None,
    sexes: tuple[Value, Value] | None = None,
    seed: int = 0,
    query: str | None = None,
    progress: Progress = ignore_progress,
) -> Evaluation:
    """Compare a synthetic table with the real one, each figure beside two yardsticks.

    The same tables, whatever the order of their rows, and the same seed give the same figures.

    Privacy: unpaid look at the real rows. The result is private: it must not be published, and to choose among releases
    by it is outside the guarantee.

    Args:
        real: a path, a pandas or polars frame, an Arrow table, a DuckDB relation.
        synthetic: likewise.
        schema: what is public about the real table, or the path of its file.
        preset: the parameters of the contest's metrics: ``paper`` or ``match3``.
        target: a column that a classifier predicts; needs scikit-learn.
        region: with ``sex`` and ``income``, the columns of the contest's third metric.
        sex: see ``region``.
        income: see ``region``.
        sexes: the two values of ``sex`` that are compared; by default 1 and 2 if it has them, else its first two.
        seed: decides which triples and queries are drawn, and the yardsticks.
        query: a SELECT, or the name of a table, of ``real`` if it is a database; or a SELECT on files, called ``data``.
        progress: is told what is going on.
    """
    chosen, columns = find_preset(preset), _income_columns(region, sex, income, sexes)
    schema = Schema.coerce(schema)
    _require_seed(seed)
    _require_columns(schema, target, region, sex, income)
    if target is not None:
        require_scikit_learn()
    progress("reading both tables", 0.0)
    comparison = read_tables(real, synthetic, schema, seed=seed, query=query)
    progress("scoring as the contest did", 0.0)
    contest = score_contest(comparison, chosen, columns, seed=seed)
    classifier = None if target is None else _train_classifiers(comparison, target, seed, progress)
    progress("comparing marginals", 0.0)
    attributes = score_attributes(comparison)
    pairs, correlations = score_pairs(comparison)
    triples = compute_triple_distances(comparison, make_generator(seed, "triples"))
    names = {attribute.name for attribute in attributes}
    return Evaluation(
        real=comparison.real,
        synthetic=comparison.synthetic,
        real_rows=comparison.exact.rows[0],
        synthetic_rows=comparison.exact.rows[1],
        baseline_rows=comparison.exact.rows[2],
        seed=seed,
        distances=Distances(
            one_way=Metric.mean([attribute.distance for attribute in attributes]),
            two_way=Metric.mean([pair.distance for pair in pairs]) if pairs else None,
            three_way=Metric.mean(triples) if triples else None,
            triples=len(triples),
        ),
        correlations=correlations,
        contest=contest,
        classifier=classifier,
        identical=count_identical_rows(comparison),
        attributes=attributes,
        pairs=pairs,
        worst_pairs=tabulate_worst_pairs(comparison, pairs),
        left_out=tuple(name for name in schema.names if name not in names),
    )


def _train_classifiers(comparison: EvaluationTables, target: str, seed: int, progress: Progress) -> ClassifierScore:
    progress("training classifiers", 0.0)
    return score_classifier(comparison, target, seed=seed)


def _require_seed(seed: int) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UserError(f"the seed is {seed!r}; give a whole number, 0 or more")


def _require_columns(schema: Schema, *names: str | None) -> None:
    """Refuse names of columns that are not compared, before anything is read."""
    known = [attribute.name for attribute in schema.measured_attributes]
    for name in names:
        if name is not None and name not in known:
            raise UserError(f"there is no column {name!r} to compare; there are {', '.join(known)}")


def _income_columns(
    region: str | None, sex: str | None, income: str | None, sexes: tuple[Value, Value] | None
) -> IncomeColumns | None:
    if region is None and sex is None and income is None and sexes is None:
        return None
    if region is None or sex is None or income is None:
        raise UserError("the score of incomes needs three columns: a region, a sex and an income")
    return IncomeColumns(region=region, sex=sex, income=income, sexes=sexes)


# ── Rows of a synthetic table that a real table has as well: a description, not the privacy guarantee ──


def count_identical_rows(comparison: EvaluationTables) -> IdenticalRows:
    """Rows that agree with some real row in all compared attributes, number for number."""
    real, synthetic, _, independent = comparison.exact.tables
    equal, by_chance = (find_shared_rows(real, table, comparison.exact.sizes) for table in (synthetic, independent))
    share = Metric(synthetic=float(equal.mean()), floor=1.0, independent=float(by_chance.mean()))
    return IdenticalRows(count=int(equal.sum()), share=share)
