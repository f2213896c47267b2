"""All scores together: what identical tables get, that nothing depends on chance or order, and JSON."""

from __future__ import annotations

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
from dpsyn.evaluation import EVALUATION_NOTICE, Evaluation, Metric
from dpsyn.schema import Boolean, Schema
from tests.evaluation.small_tables import LETTERS, table_of
from tests.test_start import loaded_by

INCOME: dict[str, Any] = {"region": "district", "sex": "sex", "income": "income"}


@pytest.fixture(scope="module")
def table() -> Any:
    return people(2_000, 0)


@pytest.fixture(scope="module")
def shuffled(table: Any) -> Any:
    rng = np.random.default_rng(5)
    return pa.table({name: table[name].take(rng.permutation(len(table))) for name in table.column_names})


@pytest.fixture(scope="module")
def evaluation(table: Any, shuffled: Any) -> Evaluation:
    return dpsyn.evaluate(table, shuffled, people_schema(), **INCOME, target="employed")


@pytest.mark.parametrize("preset", ["paper", "match3"])
def test_identical_tables_score_a_million_and_no_error(preset: str, table: Any) -> None:
    found = dpsyn.evaluate(table, table, people_schema(), preset=preset, **INCOME)

    assert found.contest.preset == preset
    assert found.contest.mean.synthetic == 1_000_000
    assert found.contest.density.synthetic == found.contest.range_queries.synthetic == 1_000_000
    assert found.distances.one_way.synthetic == 0
    assert found.distances.two_way is not None
    assert found.distances.three_way is not None
    assert found.distances.two_way.synthetic == found.distances.three_way.synthetic == 0
    assert found.correlations.cramers_v is not None
    assert found.correlations.spearman is not None
    assert found.correlations.cramers_v.synthetic == found.correlations.spearman.synthetic == 0
    assert found.identical.count == len(table)
    assert all(attribute.real == attribute.synthetic for attribute in found.attributes)
    assert all(pair.distance.synthetic == 0 for pair in found.pairs)


def test_shuffled_columns_are_as_good_as_the_independent_model(evaluation: Evaluation) -> None:
    for figure in (evaluation.distances.two_way, evaluation.distances.three_way, evaluation.correlations.cramers_v):
        assert figure is not None
        assert figure.synthetic == pytest.approx(figure.independent, rel=0.05)
        assert figure.floor < figure.synthetic / 2
    contest = evaluation.contest
    assert contest.density.synthetic == pytest.approx(contest.density.independent, rel=0.02)
    assert contest.density.floor > contest.density.synthetic
    assert evaluation.distances.one_way.synthetic == evaluation.distances.one_way.independent == 0
    assert evaluation.classifier is not None
    assert evaluation.classifier.auc.synthetic < evaluation.classifier.auc.floor


def test_everything_of_the_schema_is_there_once(evaluation: Evaluation) -> None:
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

    again = dpsyn.evaluate(real, synthetic, people_schema(), **INCOME, target="employed")

    assert again == evaluation


def test_another_seed_draws_other_triples_and_yardsticks(table: Any, shuffled: Any, evaluation: Evaluation) -> None:
    other = dpsyn.evaluate(table, shuffled, people_schema(), seed=1)

    assert other.seed == 1
    assert other.distances.two_way is not None
    assert evaluation.distances.two_way is not None
    assert other.distances.two_way.synthetic == evaluation.distances.two_way.synthetic  # all pairs: nothing is drawn
    assert other.distances.two_way.floor != evaluation.distances.two_way.floor
    assert other.distances.three_way != evaluation.distances.three_way
    assert other.contest.density.synthetic != evaluation.contest.density.synthetic


def test_the_plain_data_is_json_and_says_first_that_it_is_private(evaluation: Evaluation) -> None:
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


def test_its_repr_shows_no_figure(evaluation: Evaluation) -> None:
    assert repr(evaluation) == "<Evaluation of the given Table against the given Table: private; see its attributes>"


def test_the_schema_may_be_a_path_and_progress_is_told(tmp_path: Path) -> None:
    LETTERS.save(tmp_path / "schema.yaml")
    rows = table_of(LETTERS, [("x", "p", 1), ("y", "q", 2)])
    phases: list[str] = []

    found = dpsyn.evaluate(rows, rows, tmp_path / "schema.yaml", progress=lambda phase, done: phases.append(phase))

    assert found.distances.triples == 1
    assert phases == ["reading both tables", "scoring as the contest did", "comparing marginals"]


def test_a_table_of_one_column_has_no_pairs() -> None:
    schema = Schema(attributes=(Boolean(name="b"),))

    found = dpsyn.evaluate(pa.table({"b": [True, False]}), pa.table({"b": [True]}), schema)

    assert found.distances.one_way.synthetic == 0.5
    assert (found.distances.two_way, found.distances.three_way, found.distances.triples) == (None, None, 0)
    assert (found.correlations.cramers_v, found.pairs, found.worst_pairs) == (None, (), ())
    assert found.contest.density.synthetic == 500_000
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("options", "error", "complaint"),
    [
        ({"preset": "match2"}, UserError, "there is no preset 'match2'"),
        ({"region": "a"}, UserError, "needs three columns: a region, a sex and an income"),
        ({"sexes": ("1", "2")}, UserError, "needs three columns"),
        ({"seed": -1}, UserError, "the seed is -1"),
        ({"seed": True}, UserError, "the seed is True"),
        ({"schema": {"a": 3}}, SchemaError, "a dict is not a schema"),
        ({"target": "q"}, UserError, "there is no column 'q' to compare"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, error: type[Exception], complaint: str) -> None:
    rows = table_of(LETTERS, [("x", "p", 1)])

    with pytest.raises(error, match=complaint):
        dpsyn.evaluate(rows, rows, **{"schema": LETTERS, **options})


def test_without_scikit_learn_a_target_is_refused_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)

    with pytest.raises(MissingExtraError, match=r"dpsyn\[ml\]"):
        dpsyn.evaluate("nowhere.csv", "nowhere.csv", LETTERS, target="a")


def test_scikit_learn_is_loaded_for_a_target_only() -> None:
    code = (
        "import dpsyn, pyarrow as pa\n"
        "schema = dpsyn.Schema.from_yaml('dpsyn_schema: 1\\nattributes:\\n  b: {kind: boolean}\\n')\n"
        "dpsyn.evaluate(pa.table({'b': [True]}), pa.table({'b': [True]}), schema)\n"
    )

    loaded = loaded_by(code)

    assert "numba" in loaded
    assert "sklearn" not in loaded


def test_a_mean_of_no_figures_is_zero() -> None:
    assert Metric.mean([]) == Metric(synthetic=0, floor=0, independent=0)
