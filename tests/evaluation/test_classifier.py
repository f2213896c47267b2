"""A classifier is trained on synthetic rows and tested on real ones."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import MissingExtraError, UserError
from dpsyn.evaluation import classifier
from dpsyn.evaluation.classifier import score_classifier
from dpsyn.schema import Boolean, Categorical, Integer, Schema
from tests.evaluation import naive
from tests.evaluation.small_tables import tables_from_rows

SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=0, high=99, missing=True),
        Categorical(name="job", values=("none", "smith", "baker"), missing=True),
        Boolean(name="rich"),
    )
)


def people(rows: int, seed: int, rule: bool = True) -> list[tuple[Any, ...]]:
    """People who are rich if they are over fifty and have a job, or at random."""
    rng = np.random.default_rng(seed)
    table = []
    for age, job, chance in zip(rng.integers(0, 100, rows), rng.integers(0, 4, rows), rng.random(rows), strict=True):
        work = ("none", "smith", "baker", None)[job]
        rich = age > 50 and work not in ("none", None) if rule else chance < 0.25
        table.append((None if age == 17 else int(age), work, bool(rich)))
    return table


def test_the_score_shows_what_synthetic_rows_preserve() -> None:
    real = people(1000, 0)

    good, bad = (
        score_classifier(tables_from_rows(SCHEMA, real, people(1000, 1, rule)), "rich") for rule in (True, False)
    )

    assert (good.target, good.classes, good.tested_on) == ("rich", ("false", "true"), 300)
    assert min(good.auc.synthetic, good.auc.floor, good.real_auc) > 0.97
    assert min(good.accuracy.synthetic, good.accuracy.floor, good.real_accuracy) > 0.95
    assert abs(good.auc.independent - 0.5) < 0.2
    assert abs(bad.auc.synthetic - 0.5) < 0.2
    assert (good.real_auc, good.auc.floor) == (bad.real_auc, bad.auc.floor)


def test_no_classifier_is_trained_on_held_out_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, Any]] = []

    def look(task: Any, train: Any, test: Any) -> tuple[float, float]:
        seen.append((train, test))
        return 0.5, 0.5

    monkeypatch.setattr(classifier, "_train_and_test", look)
    schema = Schema(attributes=(Integer(name="n", low=0, high=999), Boolean(name="b")))
    rows = [(n, n % 2 == 0) for n in range(1000)]

    score_classifier(tables_from_rows(schema, rows, rows), "b")

    (real, test), (synthetic, _), (floor, _), (independent, _) = seen
    held_out = {*test[0].tolist()}
    assert len(held_out) == 300
    assert {*real[0].tolist()} == {*range(1000)} - held_out
    assert {*floor[0].tolist()} | {*independent[0].tolist()} <= {*real[0].tolist()}
    assert {*synthetic[0].tolist()} == {*range(1000)}


def test_a_number_is_predicted_as_above_the_median_or_not() -> None:
    schema = Schema(attributes=(Integer(name="n", low=0, high=999, missing=True), Categorical(name="c", codes=10)))
    rows = [(n, n // 100) for n in range(1000)]

    score = score_classifier(tables_from_rows(schema, [*rows, (None, 3)], [*rows, (None, 4)]), "n")

    assert score.classes == ("up to 499", "above 499")
    assert score.accuracy.synthetic == score.real_accuracy == 1.0
    assert score.tested_on == 300


def test_more_than_two_classes_are_scored_one_against_the_others() -> None:
    schema = Schema(attributes=(Categorical(name="c", codes=4), Categorical(name="d", codes=4)))
    real = [(n % 3, n % 3) for n in range(300)]

    good, swapped = (
        score_classifier(tables_from_rows(schema, real, [(n % 3, m) for n, m in enumerate(other)]), "d")
        for other in ([n % 3 for n in range(300)], [(n + 1) % 3 for n in range(300)])
    )

    assert (good.auc.synthetic, good.accuracy.synthetic, good.real_accuracy) == (1.0, 1.0, 1.0)
    assert swapped.accuracy.synthetic == 0.0
    assert swapped.auc.synthetic == pytest.approx(0.25, abs=0.01)


def test_a_classifier_of_one_class_scores_one_half() -> None:
    synthetic = [(age, job, False) for age, job, _ in people(200, 1)]

    score = score_classifier(tables_from_rows(SCHEMA, people(200, 0), synthetic), "rich")

    assert score.auc.synthetic == 0.5
    assert 0.5 < score.accuracy.synthetic < 1


def test_the_order_of_rows_does_not_matter_and_the_seed_does() -> None:
    real, synthetic = people(300, 0), people(300, 1)

    first, second, third = (
        score_classifier(tables_from_rows(SCHEMA, *tables), "rich", seed=seed)
        for tables, seed in (((real, synthetic), 0), ((real[::-1], synthetic[::-1]), 0), ((real, synthetic), 1))
    )

    assert first == second != third


def test_long_tables_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifier, "MAX_CLASSIFIER_ROWS", 100)

    score = score_classifier(tables_from_rows(SCHEMA, people(500, 0), people(400, 1)), "rich")

    assert (score.learned_from, score.tested_on) == (100, 100)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.5, 0.9])), min_size=2, max_size=30))
def test_the_area_under_the_curve_is_that_of_its_definition(rows: list[tuple[bool, float]]) -> None:
    positive, chances = [yes for yes, _ in rows], [chance for _, chance in rows]
    if len({*positive}) < 2:
        positive[0] = not positive[0]

    area = classifier._area_under_curve(np.array(positive), np.array(chances))

    assert area == pytest.approx(naive.area_under_curve(positive, chances))


@pytest.mark.parametrize(
    ("real", "target", "complaint"),
    [
        (people(50, 0), "wealth", "there is no column 'wealth' to predict; the compared columns are age, job, rich"),
        ([(1, "none", True)] * 50, "rich", "too few rows of different classes"),
        ([(None, "none", True)] * 50, "age", "'age' is empty in the real table"),
    ],
)
def test_an_unsuitable_target_is_refused(real: Any, target: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        score_classifier(tables_from_rows(SCHEMA, real, people(50, 0)), target)


def test_a_target_of_many_values_is_refused() -> None:
    schema = Schema(attributes=(Categorical(name="c", codes=21), Boolean(name="b")))

    with pytest.raises(UserError, match="'c' has 21 values; a target must be a number or date, or have at most 20"):
        score_classifier(tables_from_rows(schema, [(0, True)], [(0, True)]), "c")


def test_a_table_of_one_column_is_refused() -> None:
    schema = Schema(attributes=(Boolean(name="b"),))

    with pytest.raises(UserError, match="'b' is the only compared column"):
        score_classifier(tables_from_rows(schema, [(True,)], [(True,)]), "b")


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)

    with pytest.raises(MissingExtraError, match=r"needs scikit-learn.*pip install 'scikit-learn"):
        classifier.require_scikit_learn()
