"""All metrics of a synthetic table against the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpsyn import notebook
from dpsyn.errors import UserError
from dpsyn.evaluation.classifier import require_scikit_learn, score_classifier
from dpsyn.evaluation.enumerations import load_max_codes, read_enumerations
from dpsyn.evaluation.groups import compare_groups
from dpsyn.evaluation.marginal_scores import (
    compare_attributes,
    compare_pairs,
    compute_triple_distances,
    tabulate_worst_pairs,
)
from dpsyn.evaluation.nist_contest import PAPER, IncomeColumns, find_preset, score_contest, unknown_column_error
from dpsyn.evaluation.reader import open_tables, read_sources
from dpsyn.evaluation.results import Distances, Evaluation, IdenticalRows
from dpsyn.evaluation.tables import EvaluationTables, find_shared_rows, make_generator
from dpsyn.marginals import Metric
from dpsyn.marginals.comparison import choose_groups
from dpsyn.options import check_seed, suggest_arguments
from dpsyn.progress import Progress, ignore_progress
from dpsyn.schema import Schema


@suggest_arguments
@notebook.show_progress
def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    *,
    preset: str = PAPER.name,
    target: str | None = None,
    income_columns: IncomeColumns | None = None,
    max_codes: Mapping[str, int] | str | Path | None = None,
    by: Sequence[str] | None = None,
    seed: int = 0,
    query: str | None = None,
    progress: Progress = ignore_progress,
) -> Evaluation:
    """Compare a synthetic table with the real one, each metric beside two baselines.

    The result depends on the seed and on the rows of both tables, but not on the order of the rows. For example,
    ``evaluate("people.csv", "synthetic.csv", "schema.yaml").distances.two_way`` is the mean distance of all two-way
    marginals; ``Evaluation`` shows more.

    Privacy: reads the real rows without protection and charges nothing. The result is private: do not publish it.
    Choosing among releases by it is outside the privacy guarantee.

    Args:
        real: a path, a pandas or polars frame, an Arrow table, or a DuckDB relation.
        synthetic: likewise.
        schema: what is public about the real table, or the path of its file.
        preset: the metrics of the NIST contest as the ``paper`` describes them, or as the official scorer of its third
            match computed them (``match3``): every column is an enumeration of codes, derived ones included.
        target: a column that a classifier predicts; needs scikit-learn.
        income_columns: the columns of the contest's third metric, the Gini index and gender gap of regions; without
            them it is left out.
        max_codes: for ``match3``, the largest code of columns of whole numbers, or the path of the contest's file that
            states them; by default their largest value in the schema. The sets of its queries are sampled from 0 to
            this code.
        by: attributes whose values divide the rows into groups, such as ``["sex", "region"]``; each group is compared
            by itself. By default those that the schema declares as ``groups``.
        seed: the seed of all random choices: triples of attributes, range queries, and the rows of the baselines.
        query: a SELECT on ``real``, or the name of a table, if it is a database; or a SELECT on files, called ``data``.
        progress: is called with each phase.

    Returns:
        All metrics; ``to_dict`` turns them into plain data for JSON.
    """
    contest_preset = find_preset(preset)
    schema = Schema.coerce(schema)
    check_seed(seed)
    _require_columns(schema, target, *(income_columns.names if income_columns else ()))
    groups = choose_groups(by, schema)
    if max_codes is not None and not contest_preset.enumerations:
        raise UserError(f"the largest codes of columns are for preset match3; preset {preset} does not use them")
    largest = load_max_codes(max_codes, schema)
    if target is not None:
        require_scikit_learn()
    progress("reading both tables", 0.0)
    sources = open_tables(real, synthetic, schema, query=query, reread=contest_preset.enumerations)
    tables = read_sources(sources, schema, seed=seed)
    progress("computing the NIST scores", 0.0)
    enumerations = read_enumerations(sources, schema, largest, seed=seed) if contest_preset.enumerations else None
    contest = score_contest(tables, contest_preset, income_columns, enumerations=enumerations, seed=seed)
    del enumerations  # as large as the tables
    classifier = None
    if target is not None:
        progress("training classifiers", 0.0)
        classifier = score_classifier(tables, target, seed=seed)
    progress("comparing marginals", 0.0)
    attributes = compare_attributes(tables)
    pairs, correlations = compare_pairs(tables)
    triples = compute_triple_distances(tables, make_generator(seed, "triples"))
    names = {attribute.name for attribute in attributes}
    return Evaluation(
        real=tables.real,
        synthetic=tables.synthetic,
        real_rows=tables.exact.rows[0],
        synthetic_rows=tables.exact.rows[1],
        baseline_rows=tables.exact.rows[2],
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
        identical=count_identical_rows(tables),
        attributes=attributes,
        pairs=pairs,
        worst_pairs=tabulate_worst_pairs(tables, pairs),
        groups=compare_groups(tables, groups, seed),
        left_out=tuple(name for name in schema.names if schema.parts_of(name)[0] not in names),
    )


def count_identical_rows(tables: EvaluationTables) -> IdenticalRows:
    """Count synthetic rows that agree with some real row in all compared attributes, with exact numbers and dates."""
    real, synthetic, _, independent = tables.exact.tables
    identical, by_chance = (find_shared_rows(real, table, tables.exact.sizes) for table in (synthetic, independent))
    share = Metric(synthetic=float(identical.mean()), floor=1.0, independent=float(by_chance.mean()))
    return IdenticalRows(count=int(identical.sum()), share=share)


def _require_columns(schema: Schema, *names: str | None) -> None:
    """Refuse names of columns that are not compared, before any row is read."""
    compared = [attribute.name for attribute in schema.modeled_attributes]
    for name in names:
        if name is not None and name not in compared:
            raise unknown_column_error(name, compared)
