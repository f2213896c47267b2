"""How well a classifier does on real rows that learned from synthetic ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import MissingExtraError, UserError
from dpsyn.evaluation.results import ClassifierScore, Metric
from dpsyn.evaluation.tables import (
    CodeColumns,
    Domain,
    EvaluationTables,
    bootstrap_rows,
    make_generator,
    shuffle_columns,
)

HELD_OUT_SHARE = 0.3
"""The share of real rows that classifiers are tested on and the real one does not see."""

MAX_CLASSIFIER_ROWS = 50_000
"""Rows that a classifier learns from, or is tested on: more hardly change a figure."""

MAX_TARGET_CLASSES = 20
"""Values of a listed target, at most: beyond it the task says more about rare values than about the table."""

MAX_FEATURE_CATEGORIES = 255
"""Values of an attribute that the classifier takes as categories; longer lists it takes as numbers."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _ClassificationTask:
    """What is predicted from what.

    Attributes:
        feature_values: for each other attribute a number for each of its codes.
        categories: which of those are names rather than amounts.
        feature_axes: where these attributes are.
        target: where the target is.
        classes: what is told apart.
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
        found: NDArray[np.int64] = self.class_of_code[table[self.target]]
        return found

    def feature_matrix(self, table: CodeColumns) -> NDArray[np.float64]:
        """The features of each row."""
        pairs = zip(self.feature_values, self.feature_axes, strict=True)
        return np.stack([numbers[table[place]] for numbers, place in pairs], axis=1)


def score_classifier(comparison: EvaluationTables, target: str, *, seed: int = 0) -> ClassifierScore:
    """Train on synthetic rows, test on held-out real ones; beside it the real rows' own classifier.

    The classifier is scikit-learn's gradient boosting with its default settings. A number or date as target is told
    apart by whether it lies above the median of the real table; rows without it are left out. The yardsticks learn from
    a bootstrap of the real rows that are not held out, and from those with shuffled columns.
    """
    task = _define_task(comparison, target)
    rng = make_generator(seed, "classifier")
    train, test = _split_train_test(task.rows_with_class(comparison.exact.tables[0]), task, rng)
    synthetic = _subsample(task.rows_with_class(comparison.exact.tables[1]), rng)
    floor, independent = (make(train, train.shape[1], rng) for make in (bootstrap_rows, shuffle_columns))
    figures = [_train_and_test(task, table, test) for table in (train, synthetic, floor, independent)]
    real, *others = figures
    auc, accuracy = (
        Metric(synthetic=others[0][part], floor=others[1][part], independent=others[2][part]) for part in (0, 1)
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


def _define_task(comparison: EvaluationTables, target: str) -> _ClassificationTask:
    names = [domain.name for domain in comparison.domains]
    if target not in names:
        raise UserError(f"there is no column {target!r} to predict; there are {', '.join(names)}")
    if len(names) < 2:
        raise UserError(f"{target!r} is the only column; there is nothing to predict it from")
    place = names.index(target)
    others = tuple(number for number in range(len(names)) if number != place)
    classes, class_of_code = _target_classes(comparison.domains[place], comparison.exact.tables[0][place])
    features = [_feature_values(comparison.domains[other]) for other in others]
    return _ClassificationTask(
        tuple(numbers for numbers, _ in features),
        tuple(category for _, category in features),
        others,
        place,
        classes,
        class_of_code,
    )


def _target_classes(domain: Domain, real: NDArray[Any]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """What is told apart, and the class of each code."""
    if domain.steps is not None:
        filled = np.sort(real[real != domain.missing])
        if not len(filled):
            raise UserError(f"column {domain.name!r} is empty in the real table; it cannot be predicted")
        median = int(filled[(len(filled) - 1) // 2])
        above = (np.arange(domain.size) > median).astype(np.int64)
        above[domain.missing] = -1
        label = domain.labels()[median]
        return (f"up to {label}", f"above {label}"), above
    if domain.size > MAX_TARGET_CLASSES:
        raise UserError(
            f"column {domain.name!r} has {domain.size:,} values; a target has at most {MAX_TARGET_CLASSES}, or is a number"
        )
    return domain.attribute.labels(), np.arange(domain.size)


def _feature_values(domain: Domain) -> tuple[NDArray[np.float64], bool]:
    """A number for each code of an attribute, and whether it is a name rather than an amount."""
    if domain.steps is not None:
        return np.append(domain.steps.astype(np.float64), np.nan), False
    return np.arange(domain.size, dtype=np.float64), not domain.ordered_bins and domain.size <= MAX_FEATURE_CATEGORIES


def _split_train_test(
    real: CodeColumns, task: _ClassificationTask, rng: np.random.Generator
) -> tuple[CodeColumns, CodeColumns]:
    """Rows to learn from and rows to test on, with the same shares of the classes, as far as they can be parted."""
    answers = task.row_classes(real)
    held_out = np.zeros(len(answers), np.bool_)
    for number in range(len(task.classes)):
        rows = rng.permutation(np.flatnonzero(answers == number))
        held_out[rows[: round(HELD_OUT_SHARE * len(rows))]] = True
    train, test = _subsample(real[:, ~held_out], rng), _subsample(real[:, held_out], rng)
    if len(np.unique(task.row_classes(test))) < 2:
        raise UserError("the target has too few rows of different values in the real table to learn from and test on")
    return train, test


def _subsample(table: CodeColumns, rng: np.random.Generator) -> CodeColumns:
    """The table, or as many rows of it as are used."""
    rows = table.shape[1]
    return (
        table
        if rows <= MAX_CLASSIFIER_ROWS
        else table[:, np.sort(rng.choice(rows, MAX_CLASSIFIER_ROWS, replace=False))]
    )


def _train_and_test(task: _ClassificationTask, train: CodeColumns, test: CodeColumns) -> tuple[float, float]:
    """The area under the curve and the accuracy of a classifier."""
    chances = _predict_probabilities(task, train, test)
    answers = task.row_classes(test)
    accuracy = float(np.mean(np.argmax(chances, axis=1) == answers))
    present = np.unique(answers).tolist()
    judged = present[1:] if len(present) == 2 else present  # of two classes each tells the other's curve
    return float(np.mean([_area_under_curve(answers == number, chances[:, number]) for number in judged])), accuracy


def _predict_probabilities(task: _ClassificationTask, train: CodeColumns, test: CodeColumns) -> NDArray[np.float64]:
    """How likely the classifier of some rows finds each class for others: rows × classes."""
    answers = task.row_classes(train)
    seen = np.unique(answers)
    chances = np.zeros((test.shape[1], len(task.classes)))
    if len(seen) < 2:  # nothing was learned but the one class, if any
        chances[:, seen] = 1.0
        return chances
    boosting, one_thread = require_scikit_learn()
    with one_thread(limits=1):  # on a busy machine its threads spend their time waiting for each other
        model = boosting(categorical_features=np.array(task.categories), random_state=0)
        model.fit(task.feature_matrix(train), answers)
        chances[:, model.classes_] = model.predict_proba(task.feature_matrix(test))
    return chances


def require_scikit_learn() -> tuple[Any, Any]:
    """The classifier, and what limits its threads; an error that says what to install if they are missing."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise MissingExtraError("scikit-learn", "ml", "the score of a classifier") from None
    return HistGradientBoostingClassifier, threadpool_limits


def _area_under_curve(positive: NDArray[np.bool_], chances: NDArray[np.float64]) -> float:
    """The area under the ROC curve: how often a row of the class is found likelier than another, ties as half."""
    values, places = np.unique(chances, return_inverse=True)
    ours = np.bincount(places, positive, len(values))
    theirs = np.bincount(places, ~positive, len(values))
    below = np.cumsum(theirs) - theirs
    return float(np.sum(ours * (below + theirs / 2)) / (positive.sum() * (~positive).sum()))
