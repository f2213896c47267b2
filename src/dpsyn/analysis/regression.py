"""Linear and logistic regressions of one table, by a formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np
import pyarrow as pa

from dpsyn.analysis.columns import AllowedCells, is_number, list_levels, read_levels, read_numbers
from dpsyn.analysis.conclusion import FloatArray
from dpsyn.analysis.descriptive import TableEstimates
from dpsyn.errors import QueryError, quote_argument
from dpsyn.schema import Boolean, Categorical, Integer, Real, Schema
from dpsyn.schema.formula import Factor, Formula

INTERCEPT = "intercept"

MAX_COLUMNS = 500
"""Coefficients of a regression."""

MAX_DESIGN_CELLS = 200_000_000
"""Rows times coefficients: 1.6 GB."""

_MAX_STEPS = 100
_MAX_STEP = 5.0
"""Newton steps of a logistic regression, and their largest change of a coefficient per standard deviation; Heinze's
implementation of Firth's method has the same limits for the step."""

_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True)
class Regression:
    """A regression that can be fitted to tables of a schema.

    Attributes:
        formula: outcome and terms.
        schema: what is public.
        levels: the values of attributes that are categories; the first is the reference.
        event: the value of a two-valued outcome whose probability is modeled; None for a linear regression.
    """

    formula: Formula
    schema: Schema
    levels: Mapping[Factor, Sequence[str]]
    event: str | None

    @property
    def kind(self) -> str:
        """Linear or logistic."""
        return "linear" if self.event is None else "logistic"

    def __call__(self, table: pa.Table) -> TableEstimates:
        """The coefficients by term; those that the rows say nothing about are left out.

        A level that no row has, or a number that is the same in all rows, has no coefficient.
        """
        outcome, known = self._read_outcome(table)
        blocks = {factor: self._read_factor(table, factor) for term in self.formula.terms for factor in term}
        for values in (block for _, block in blocks.values()):
            known &= ~np.isnan(values[:, 0])
        names, columns = [INTERCEPT], [np.ones((int(known.sum()), 1))]
        for term in self.formula.terms:
            parts = [blocks[factor] for factor in term]
            names += [":".join(combination) for combination in product(*(labels for labels, _ in parts))]
            columns.append(reduce(_multiply, [values[known] for _, values in parts]))
        design = np.column_stack(columns)
        varies = np.ptp(design, axis=0) > 0 if len(design) else np.zeros(design.shape[1], dtype=np.bool_)
        varies[0] = True
        missing = int(table.num_rows - known.sum())
        coefficients, variances = self._fit(design[:, varies], outcome[known])
        kept = [name for name, varying in zip(names, varies, strict=True) if varying]
        pairs = zip(coefficients.tolist(), variances.tolist(), strict=True)
        return TableEstimates(dict(zip(kept, pairs, strict=True)), missing)

    def _fit(self, design: FloatArray, outcome: FloatArray) -> tuple[FloatArray, FloatArray]:
        rows, columns = design.shape
        if rows <= columns:
            raise QueryError(f"{rows:,} rows without missing values are too few for {columns} coefficients")
        if self.event is not None and np.ptp(outcome) == 0:
            raise QueryError(f"all rows have the same {self.formula.outcome}; there is nothing to explain")
        center, scale = design.mean(0), design.std(0)
        center[0], scale[0] = 0.0, 1.0
        scaled = (design - center) / scale
        if np.linalg.matrix_rank(scaled) < columns:
            raise QueryError(
                "the terms determine each other, so their coefficients cannot be told apart; leave a term out"
            )
        found, covariance = fit_linear(scaled, outcome) if self.event is None else fit_logistic(scaled, outcome)
        back = np.diag(1 / scale)
        back[0] -= center / scale
        back[0, 0] = 1.0
        return back @ found, np.einsum("ij,jk,ik->i", back, covariance, back)

    def _read_outcome(self, table: pa.Table) -> tuple[FloatArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        name = self.formula.outcome
        if self.event is None:
            values = read_numbers(table, name)
            return values, ~np.isnan(values)
        codes = read_levels(table, name, self.levels[Factor(name)])
        return codes.astype(np.float64), codes >= 0

    def _read_factor(self, table: pa.Table, factor: Factor) -> tuple[list[str], FloatArray]:
        """The names and values of the columns of a factor; NaN in the rows where it is missing."""
        if factor not in self.levels:
            return [factor.name], read_numbers(table, factor.name)[:, None]
        levels = self.levels[factor]
        codes = read_levels(table, factor.name, levels)
        values = (codes[:, None] == np.arange(1, len(levels))).astype(np.float64)
        values[codes < 0] = np.nan
        return [f"{factor.name}={level}" for level in levels[1:]], values


def _multiply(left: FloatArray, right: FloatArray) -> FloatArray:
    """All products of a column of one with a column of the other."""
    products: FloatArray = (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
    return products


def make_regression(
    formula: Formula, schema: Schema, allowed: AllowedCells, references: Mapping[str, str], rows: int
) -> Regression:
    """The regression of a formula; refused before anything is drawn if it cannot be fitted.

    Args:
        formula: outcome and terms.
        schema: what is public.
        allowed: which cells of attributes meet the conditions on rows.
        references: the reference of attributes, if it is not their first value.
        rows: the number of rows of each table.
    """
    levels: dict[Factor, list[str]] = {}
    for factor in {factor: None for term in formula.terms for factor in term}:
        if factor.as_category or not isinstance(schema[factor.name], Integer | Real):
            found = list_levels(schema, factor.name, allowed)
            if len(found) < 2:
                raise QueryError(f"{quote_argument(factor.name)} has only one value here; leave it out of the formula")
            reference = references.get(factor.name)
            levels[factor] = sorted(found, key=lambda level, first=reference: level != first)  # type: ignore[misc]
    event = _find_event(formula.outcome, schema, allowed)
    if event is not None:
        levels[Factor(formula.outcome)] = list_levels(schema, formula.outcome, allowed)
    sizes = {factor: max(len(levels.get(factor, ())) - 1, 1) for term in formula.terms for factor in term}
    columns = 1 + sum(int(np.prod([sizes[factor] for factor in term])) for term in formula.terms)
    if columns > MAX_COLUMNS:
        raise QueryError(f"the regression has {columns:,} coefficients; at most {MAX_COLUMNS} are fitted")
    if columns * rows > MAX_DESIGN_CELLS:
        raise QueryError(
            f"{rows:,} rows with {columns} coefficients are too many; give at most {MAX_DESIGN_CELLS // columns:,} rows"
        )
    return Regression(formula, schema, levels, event)


def _find_event(name: str, schema: Schema, allowed: AllowedCells) -> str | None:
    """The second of two values of an outcome; None if it is a number with more values."""
    attribute = schema[name]
    if isinstance(attribute, Categorical | Boolean) or (
        isinstance(attribute, Integer) and attribute.high - attribute.low == 1
    ):
        levels = list_levels(schema, name, allowed)
        if len(levels) == 2:
            return levels[1]
        if not is_number(schema, name):
            raise QueryError(
                f"the outcome {quote_argument(name)} has {len(levels)} values that are no numbers; a regression needs "
                "a number or two values. Conditions can select two of them"
            )
    elif not isinstance(attribute, Integer | Real):
        raise QueryError(f"the outcome {quote_argument(name)} is {attribute.kind}; use a number or two values")
    return None


def fit_linear(design: FloatArray, outcome: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least squares: coefficients and their covariance matrix."""
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ (design.T @ outcome)
    residuals = outcome - design @ coefficients
    variance = float(residuals @ residuals) / (len(design) - design.shape[1])
    return coefficients, inverse * variance


def fit_logistic(design: FloatArray, outcome: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logistic regression by Firth's penalized likelihood: coefficients and their covariance matrix.

    The penalty is ½ log det of the information. It changes an estimate by far less than its standard error in large
    tables, removes its first-order bias, and keeps it finite if all rows of a small group have the same outcome, as
    happens in some replicates of a noisy release.
    """
    coefficients = np.zeros(design.shape[1])
    covariance, score, value = _firth(design, outcome, coefficients)
    for _ in range(_MAX_STEPS):
        step = covariance @ score
        step *= min(1.0, _MAX_STEP / max(float(np.abs(step).max()), _MAX_STEP))
        while True:
            new_covariance, new_score, new_value = _firth(design, outcome, coefficients + step)
            if new_value >= value - _TOLERANCE or np.abs(step).max() < _TOLERANCE:
                break
            step /= 2
        coefficients, covariance, score, value = coefficients + step, new_covariance, new_score, new_value
        if np.abs(step).max() < _TOLERANCE:
            return coefficients, covariance
    raise QueryError("the logistic regression does not converge; use fewer terms")


def _firth(design: FloatArray, outcome: FloatArray, coefficients: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """The inverse information, the penalized score, and the penalized log likelihood."""
    linear = design @ coefficients
    share = 1 / (1 + np.exp(-np.clip(linear, -500, 500)))
    weighted = design * np.sqrt(share * (1 - share))[:, None]
    information = weighted.T @ weighted
    covariance = np.asarray(np.linalg.pinv(information, hermitian=True), np.float64)
    leverage = np.einsum("ij,jk,ik->i", weighted, covariance, weighted, optimize=True)
    score: FloatArray = design.T @ (outcome - share + leverage * (0.5 - share))
    likelihood = float(outcome @ linear - np.logaddexp(0, linear).sum()) + np.linalg.slogdet(information)[1] / 2
    return covariance, score, float(likelihood)
