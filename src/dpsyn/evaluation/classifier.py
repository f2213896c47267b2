"""Train on synthetic, test on real (TSTR): how well a classifier trained on synthetic rows predicts real ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import MissingExtraError, UserError, quote_argument
from dpsyn.evaluation.results import ClassifierScore
from dpsyn.evaluation.tables import (
    CodeColumns,
    Domain,
    EvaluationTables,
    bootstrap_rows,
    make_generator,
    shuffle_columns,
)
from dpsyn.marginals import Metric
from dpsyn.suggestions import suggest_names

HELD_OUT_SHARE = 0.3
"""The share of real rows that is held out for testing. No classifier is trained on them."""

MAX_CLASSIFIER_ROWS = 50_000
"""Rows that a classifier is trained on, or tested on: more rows hardly change the score."""

MAX_TARGET_CLASSES = 20
"""Values of a listed target: with more, the score depends on rare values rather than on the table."""

MAX_FEATURE_CATEGORIES = 255
"""Values of an attribute that the classifier treats as categories; it treats longer lists as numbers."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _ClassificationTask:
    """What is predicted from what.

    Attributes:
        feature_values: for each other attribute a number for each of its codes.
        categories: which of these attributes are categorical.
        feature_axes: the indices of these attributes.
        target: the index of the target.
        classes: the predicted classes.
        class_of_code: the class of each code of the target; −1 for rows that are left out.
    """

    feature_values: tuple[NDArray[np.float64], ...]
    categories: tuple[bool, ...]
    feature_axes: tuple[int, ...]
    target: int
    classes: tuple[str, ...]
    class_of_code: NDArray[np.int64]

    def rows_with_class(self, table: CodeColumns) -> CodeColumns:
        """The rows of a table that have a class."""
        return np.ascontiguousarray(table[:, self.row_classes(table) >= 0])

    def row_classes(self, table: CodeColumns) -> NDArray[np.int64]:
        """The class of each row."""
        classes: NDArray[np.int64] = self.class_of_code[table[self.target]]
        return classes

    def feature_matrix(self, table: CodeColumns) -> NDArray[np.float64]:
        """The features of each row."""
        pairs = zip(self.feature_values, self.feature_axes, strict=True)
        return np.stack([numbers[table[axis]] for numbers, axis in pairs], axis=1)


def score_classifier(tables: EvaluationTables, target: str, *, seed: int = 0) -> ClassifierScore:
    """Train a classifier on synthetic rows, and one on real rows; test both on held-out real rows.

    The classifier is scikit-learn's gradient boosting with its default settings. If the target is a number or date, the
    classes are up to and above the median of the real table; rows without a value are left out. The baselines are
    trained on a bootstrap sample of the real rows that are not held out, and on these rows with shuffled columns.
    """
    task = _define_task(tables, target)
    rng = make_generator(seed, "classifier")
    train, test = _split_train_test(task.rows_with_class(tables.exact.tables[0]), task, rng)
    synthetic = _subsample(task.rows_with_class(tables.exact.tables[1]), rng)
    floor, independent = (make(train, train.shape[1], rng) for make in (bootstrap_rows, shuffle_columns))
    real, *others = (_train_and_test(task, table, test) for table in (train, synthetic, floor, independent))
    auc, accuracy = (
        Metric(synthetic=values[0], floor=values[1], independent=values[2]) for values in zip(*others, strict=True)
    )
    return ClassifierScore(
        target=target,
        classes=task.classes,
        auc=auc,
        accuracy=accuracy,
        real_auc=real[0],
        real_accuracy=real[1],
        learned_from=max(train.shape[1], synthetic.shape[1]),
        tested_on=test.shape[1],
    )


def _define_task(tables: EvaluationTables, target: str) -> _ClassificationTask:
    names = [domain.name for domain in tables.domains]
    if target not in names:
        raise UserError(
            f"there is no column {quote_argument(target)} to predict; "
            f"{suggest_names(target, names, 'the compared columns are ')}"
        )
    if len(names) < 2:
        raise UserError(f"{quote_argument(target)} is the only compared column; no other column can predict it")
    axis = names.index(target)
    feature_axes = tuple(other for other in range(len(names)) if other != axis)
    classes, class_of_code = _target_classes(tables.domains[axis], tables.exact.tables[0][axis])
    features = [_feature_values(tables.domains[other]) for other in feature_axes]
    return _ClassificationTask(
        tuple(numbers for numbers, _ in features),
        tuple(category for _, category in features),
        feature_axes,
        axis,
        classes,
        class_of_code,
    )


def _target_classes(domain: Domain, real: NDArray[Any]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The classes, and the class of each code of the target."""
    if domain.steps is not None:
        filled = np.sort(real[real != domain.missing])
        if not len(filled):
            raise UserError(f"column {domain.name!r} is empty in the real table; choose another target")
        median = int(filled[(len(filled) - 1) // 2])
        above = (np.arange(domain.size) > median).astype(np.int64)
        above[domain.missing] = -1
        label = domain.labels()[median]
        return (f"up to {label}", f"above {label}"), above
    if domain.size > MAX_TARGET_CLASSES:
        raise UserError(
            f"column {domain.name!r} has {domain.size:,} values; "
            f"a target must be a number or date, or have at most {MAX_TARGET_CLASSES} values"
        )
    return domain.attribute.labels(), np.arange(domain.size)


def _feature_values(domain: Domain) -> tuple[NDArray[np.float64], bool]:
    """A number for each code of an attribute, and whether the attribute is categorical."""
    if domain.steps is not None:
        return np.append(domain.steps.astype(np.float64), np.nan), False
    return np.arange(domain.size, dtype=np.float64), not domain.ordered_bins and domain.size <= MAX_FEATURE_CATEGORIES


def _split_train_test(
    real: CodeColumns, task: _ClassificationTask, rng: np.random.Generator
) -> tuple[CodeColumns, CodeColumns]:
    """Split rows for training and testing, stratified by class."""
    answers = task.row_classes(real)
    held_out = np.zeros(len(answers), np.bool_)
    for label in range(len(task.classes)):
        rows = rng.permutation(np.flatnonzero(answers == label))
        held_out[rows[: round(HELD_OUT_SHARE * len(rows))]] = True
    train, test = _subsample(real[:, ~held_out], rng), _subsample(real[:, held_out], rng)
    if len(np.unique(task.row_classes(test))) < 2:
        raise UserError(
            "the real table has too few rows of different classes of the target to train and test a classifier"
        )
    return train, test


def _subsample(table: CodeColumns, rng: np.random.Generator) -> CodeColumns:
    """The table, or a random sample of its rows if it has too many."""
    rows = table.shape[1]
    if rows <= MAX_CLASSIFIER_ROWS:
        return table
    return table[:, np.sort(rng.choice(rows, MAX_CLASSIFIER_ROWS, replace=False))]


def _train_and_test(task: _ClassificationTask, train: CodeColumns, test: CodeColumns) -> tuple[float, float]:
    """The area under the ROC curve and the accuracy of a classifier."""
    probabilities = _predict_probabilities(task, train, test)
    answers = task.row_classes(test)
    accuracy = float(np.mean(np.argmax(probabilities, axis=1) == answers))
    present = np.unique(answers).tolist()
    scored = present[1:] if len(present) == 2 else present  # two classes have the same area under the curve
    areas = [_area_under_curve(answers == label, probabilities[:, label]) for label in scored]
    return float(np.mean(areas)), accuracy


def _predict_probabilities(task: _ClassificationTask, train: CodeColumns, test: CodeColumns) -> NDArray[np.float64]:
    """Train a classifier on some rows and predict the probability of each class for others: rows × classes."""
    answers = task.row_classes(train)
    seen = np.unique(answers)
    probabilities = np.zeros((test.shape[1], len(task.classes)))
    if len(seen) < 2:  # there is at most one class to predict
        probabilities[:, seen] = 1.0
        return probabilities
    boosting, one_thread = require_scikit_learn()
    with one_thread(limits=1):  # on a busy machine more threads wait for each other
        model = boosting(categorical_features=np.array(task.categories), random_state=0)
        model.fit(task.feature_matrix(train), answers)
        probabilities[:, model.classes_] = model.predict_proba(task.feature_matrix(test))
    return probabilities


def require_scikit_learn() -> tuple[Any, Any]:
    """The classifier and the limit on its threads; raises an error that names the extra if they are not installed."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise MissingExtraError("scikit-learn", "ml", "the score of a classifier") from None
    return HistGradientBoostingClassifier, threadpool_limits


def _area_under_curve(positive: NDArray[np.bool_], probabilities: NDArray[np.float64]) -> float:
    """The area under the ROC curve: how often a row of the class gets a higher probability than another row.

    Ties count as half.
    """
    values, ranks = np.unique(probabilities, return_inverse=True)
    positives = np.bincount(ranks, positive, len(values))
    negatives = np.bincount(ranks, ~positive, len(values))
    below = np.cumsum(negatives) - negatives
    return float(np.sum(positives * (below + negatives / 2)) / (positive.sum() * (~positive).sum()))
