"""An evaluation as a whole: identical tables, independence of the order of rows, JSON, and refused options."""

from __future__ import annotations

import doctest
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.demo import people, people_schema
from dpsyn.errors import MissingExtraError, SchemaError, UserError
from dpsyn.evaluation import EVALUATION_NOTICE, Evaluation, IncomeColumns, results
from dpsyn.marginals import Metric
from dpsyn.schema import Boolean, Schema
from tests.evaluation.small_tables import LETTERS, table_of
from tests.test_start import loaded_by

INCOME = IncomeColumns(region="district", sex="sex", income="income")


@pytest.fixture(scope="module")
def table() -> Any:
    return people(2_000, 0)


@pytest.fixture(scope="module")
def shuffled(table: Any) -> Any:
    rng = np.random.default_rng(5)
    return pa.table({name: table[name].take(rng.permutation(len(table))) for name in table.column_names})


@pytest.fixture(scope="module")
def evaluation(table: Any, shuffled: Any) -> Evaluation:
    return dpsyn.evaluate(table, shuffled, people_schema(), income_columns=INCOME, target="employed")


@pytest.mark.parametrize("preset", ["paper", "match3"])
def test_identical_tables_score_a_million_and_no_error(preset: str, table: Any) -> None:
    result = dpsyn.evaluate(table, table, people_schema(), preset=preset, income_columns=INCOME)

    assert result.contest.preset == preset
    assert result.contest.mean.synthetic == 1_000_000
    assert result.contest.density.synthetic == result.contest.range_queries.synthetic == 1_000_000
    assert result.distances.one_way.synthetic == 0
    assert result.distances.two_way is not None
    assert result.distances.three_way is not None
    assert result.distances.two_way.synthetic == result.distances.three_way.synthetic == 0
    assert result.correlations.cramers_v is not None
    assert result.correlations.spearman is not None
    assert result.correlations.cramers_v.synthetic == result.correlations.spearman.synthetic == 0
    assert result.identical.count == len(table)
    assert all(attribute.reference == attribute.synthetic for attribute in result.attributes)
    assert all(pair.distance.synthetic == 0 for pair in result.pairs)


def test_shuffled_columns_score_like_the_independent_baseline(evaluation: Evaluation) -> None:
    for metric in (evaluation.distances.two_way, evaluation.distances.three_way, evaluation.correlations.cramers_v):
        assert metric is not None
        assert metric.synthetic == pytest.approx(metric.independent, rel=0.05)
        assert metric.floor < metric.synthetic / 2
    contest = evaluation.contest
    assert contest.density.synthetic == pytest.approx(contest.density.independent, rel=0.02)
    assert contest.density.floor > contest.density.synthetic
    assert evaluation.distances.one_way.synthetic == evaluation.distances.one_way.independent == 0
    assert evaluation.classifier is not None
    assert evaluation.classifier.auc.synthetic < evaluation.classifier.auc.floor


def test_every_attribute_of_the_schema_is_either_compared_or_left_out(evaluation: Evaluation) -> None:
    names = [attribute.name for attribute in evaluation.attributes]

    assert sorted([*names, *evaluation.left_out]) == sorted(people_schema().names)
    assert evaluation.left_out == ("person_id", "age_group")
    assert len(evaluation.pairs) == len(names) * (len(names) - 1) // 2
    assert (evaluation.real_rows, evaluation.synthetic_rows, evaluation.baseline_rows) == (2_000,) * 3
    assert evaluation.distances.triples == 300
    assert len(evaluation.worst_pairs) == 8


def test_the_order_of_rows_does_not_matter(table: Any, shuffled: Any, evaluation: Evaluation) -> None:
    rng = np.random.default_rng(1)
    real, synthetic = (rows.take(rng.permutation(len(rows))) for rows in (table, shuffled))

    again = dpsyn.evaluate(real, synthetic, people_schema(), income_columns=INCOME, target="employed")

    assert again == evaluation


def test_another_seed_gives_other_triples_and_baselines(table: Any, shuffled: Any, evaluation: Evaluation) -> None:
    other = dpsyn.evaluate(table, shuffled, people_schema(), seed=1)

    assert other.seed == 1
    assert other.distances.two_way is not None
    assert evaluation.distances.two_way is not None
    assert other.distances.two_way.synthetic == evaluation.distances.two_way.synthetic
    assert other.distances.two_way.floor != evaluation.distances.two_way.floor
    assert other.distances.three_way != evaluation.distances.three_way
    assert other.contest.density.synthetic != evaluation.contest.density.synthetic


def test_the_plain_data_is_json_with_the_private_notice_first(evaluation: Evaluation) -> None:
    data = evaluation.to_dict()

    again = json.loads(json.dumps(data, allow_nan=False))
    assert next(iter(again)) == "notice"
    assert again["notice"] == EVALUATION_NOTICE
    assert again["format"] == 1
    assert again["distances"]["one_way"].keys() == {"synthetic", "floor", "independent"}
    assert len(again["pairs"]) == len(evaluation.pairs)
    assert "not the privacy guarantee" in again["identical"]["note"]


def test_the_notice_forbids_publishing_and_choosing() -> None:
    assert "PRIVATE" in EVALUATION_NOTICE
    assert "Do not publish" in EVALUATION_NOTICE
    assert "do not choose among releases" in EVALUATION_NOTICE


def test_the_repr_shows_no_private_number(evaluation: Evaluation) -> None:
    assert repr(evaluation) == "<Evaluation of the given Table against the given Table: private; see its attributes>"


def test_the_schema_may_be_a_path_and_progress_is_reported(tmp_path: Path) -> None:
    LETTERS.save(tmp_path / "schema.yaml")
    rows = table_of(LETTERS, [("x", "p", 1), ("y", "q", 2)])
    phases: list[str] = []

    result = dpsyn.evaluate(rows, rows, tmp_path / "schema.yaml", progress=lambda phase, done: phases.append(phase))

    assert result.distances.triples == 1
    assert phases == ["reading both tables", "computing the NIST scores", "comparing marginals"]


def test_a_table_of_one_column_has_no_pairs() -> None:
    schema = Schema(attributes=(Boolean(name="b"),))

    result = dpsyn.evaluate(pa.table({"b": [True, False]}), pa.table({"b": [True]}), schema)

    assert result.distances.one_way.synthetic == 0.5
    assert (result.distances.two_way, result.distances.three_way, result.distances.triples) == (None, None, 0)
    assert (result.correlations.cramers_v, result.pairs, result.worst_pairs) == (None, (), ())
    assert result.contest.density.synthetic == 500_000
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("options", "error", "complaint"),
    [
        ({"preset": "match2"}, UserError, "there is no preset 'match2'"),
        (
            {"income_columns": IncomeColumns(region="q", sex="a", income="n")},
            UserError,
            "there is no column 'q' to compare; the compared columns are a, b, n",
        ),
        ({"seed": -1}, UserError, "the seed is -1"),
        ({"seed": True}, UserError, "the seed is True"),
        ({"schema": {"a": 3}}, SchemaError, "a schema was expected, but a dict was given"),
        ({"target": "q"}, UserError, "there is no column 'q' to compare"),
    ],
)
def test_invalid_options_are_refused(options: Any, error: type[Exception], complaint: str) -> None:
    rows = table_of(LETTERS, [("x", "p", 1)])

    with pytest.raises(error, match=complaint):
        dpsyn.evaluate(rows, rows, **{"schema": LETTERS, **options})


def test_without_scikit_learn_a_target_is_refused_before_any_row_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)

    with pytest.raises(MissingExtraError, match="the extra 'ml'"):
        dpsyn.evaluate("nowhere.csv", "nowhere.csv", LETTERS, target="a")


def test_scikit_learn_is_loaded_only_for_a_target() -> None:
    code = (
        "import dpsyn, pyarrow as pa\n"
        "schema = dpsyn.Schema.from_yaml('dpsyn_schema: 1\\nattributes:\\n  b: {kind: boolean}\\n')\n"
        "dpsyn.evaluate(pa.table({'b': [True]}), pa.table({'b': [True]}), schema)\n"
    )

    loaded = loaded_by(code)

    assert "numba" in loaded
    assert "sklearn" not in loaded


def test_the_mean_of_no_metrics_is_zero() -> None:
    assert Metric.mean([]) == Metric(synthetic=0, floor=0, independent=0)


def test_the_example_in_the_docstring_runs() -> None:
    (example,) = (case for case in doctest.DocTestFinder().find(results.Evaluation, "Evaluation") if case.examples)

    outcome = doctest.DocTestRunner().run(example)

    assert (outcome.failed, outcome.attempted) == (0, 10)
