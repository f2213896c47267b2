"""All scores of a synthetic table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpsyn.errors import SchemaError, UserError
from dpsyn.evaluation.association import PairAssociation, association_of, associations, correlations
from dpsyn.evaluation.classifier import classifier_score
from dpsyn.evaluation.cliques import random_triples
from dpsyn.evaluation.contest import contest_score
from dpsyn.evaluation.counting import distances
from dpsyn.evaluation.distances import all_pairs, attribute_scores, pair_tables
from dpsyn.evaluation.identical import identical_rows
from dpsyn.evaluation.income import IncomeColumns
from dpsyn.evaluation.presets import PAPER, preset_named
from dpsyn.evaluation.randomness import generator
from dpsyn.evaluation.reading import compare
from dpsyn.evaluation.results import Distances, Evaluation, Figure, PairScore
from dpsyn.evaluation.tables import Comparison
from dpsyn.progress import Progress, silent
from dpsyn.schema import Schema, Value

TRIPLES = 300
"""Random 3-way marginals: their mean distance varies by a hundredth of itself from one choice to another."""

WORST_PAIRS = 8
"""Pairs whose marginals are told in full: as many as somebody looks at."""


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
    progress: Progress = silent,
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
        query: a SELECT, or the name of a table, if ``real`` is a DuckDB database.
        progress: is told what is going on.
    """
    chosen, columns = preset_named(preset), _income_columns(region, sex, income, sexes)
    schema = _schema(schema)
    _require_seed(seed)
    progress("reading both tables", 0.0)
    comparison = compare(real, synthetic, schema, seed=seed, query=query)
    progress("comparing marginals", 0.2)
    attributes, pairs = attribute_scores(comparison), all_pairs(comparison)
    apart, found = distances(comparison.bins, pairs), associations(comparison, pairs)
    triples = _triples(comparison, seed)
    three_way = distances(comparison.bins, triples)
    progress("scoring as the contest did", 0.5)
    contest = contest_score(comparison, chosen, columns, seed=seed)
    identical = identical_rows(comparison)
    progress("training classifiers" if target else "finishing", 0.7)
    names = [domain.name for domain in comparison.domains]
    return Evaluation(
        real=comparison.real,
        synthetic=comparison.synthetic,
        real_rows=comparison.exact.rows[0],
        synthetic_rows=comparison.exact.rows[1],
        yardstick_rows=comparison.exact.rows[2],
        seed=seed,
        distances=Distances(
            one_way=Figure.mean([attribute.distance for attribute in attributes]),
            two_way=Figure.mean(apart) if pairs else None,
            three_way=Figure.mean(three_way) if triples else None,
            triples=len(triples),
        ),
        correlations=correlations(found),
        contest=contest,
        classifier=None if target is None else classifier_score(comparison, target, seed=seed),
        identical=identical,
        attributes=attributes,
        pairs=tuple(_pair_score(names, *entry) for entry in zip(pairs, apart, found, strict=True)),
        worst_pairs=pair_tables(comparison, _worst(pairs, apart)),
        left_out=tuple(name for name in schema.names if name not in names),
    )


def _schema(schema: Schema | str | Path) -> Schema:
    if isinstance(schema, str | Path):
        return Schema.load(schema)
    if not isinstance(schema, Schema):
        raise SchemaError(f"a {type(schema).__name__} is not a schema; load it first with Schema.load")
    return schema


def _require_seed(seed: int) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UserError(f"the seed is {seed!r}; give a whole number, 0 or more")


def _income_columns(
    region: str | None, sex: str | None, income: str | None, sexes: tuple[Value, Value] | None
) -> IncomeColumns | None:
    if region is None and sex is None and income is None and sexes is None:
        return None
    if region is None or sex is None or income is None:
        raise UserError("the score of incomes needs three columns: a region, a sex and an income")
    return IncomeColumns(region=region, sex=sex, income=income, sexes=sexes)


def _triples(comparison: Comparison, seed: int) -> list[tuple[int, ...]]:
    """Random triples; none below three attributes."""
    if len(comparison.domains) < 3:
        return []
    return random_triples(len(comparison.domains), TRIPLES, generator(seed, "triples"))


def _pair_score(names: Sequence[str], pair: tuple[int, int], distance: Figure, found: PairAssociation) -> PairScore:
    return PairScore(
        first=names[pair[0]],
        second=names[pair[1]],
        distance=distance,
        cramers_v=association_of(found.cramers_v),
        spearman=None if found.spearman is None else association_of(found.spearman),
    )


def _worst(pairs: Sequence[tuple[int, int]], apart: Sequence[Figure]) -> list[tuple[int, int]]:
    """The pairs that are farthest above the sampling floor: large domains are far apart in any two samples."""
    beyond = [distance.synthetic - distance.floor for distance in apart]
    order = sorted(range(len(pairs)), key=lambda number: -beyond[number])
    return [pairs[number] for number in order[:WORST_PAIRS]]
