"""Direct answers of a synopsis with intervals: means, quantiles, correlations and regressions, by its replicates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from dpsyn.analysis._pool import few_replicates_notes
from dpsyn.analysis.columns import AllowedCells, require_attributes, require_number
from dpsyn.analysis.descriptive import (
    CorrelationMethod,
    Statistic,
    TableEstimates,
    correlation_of,
    mean_of,
    quantiles_of,
)
from dpsyn.analysis.pooled import Pooled, check_level
from dpsyn.analysis.regression import make_regression
from dpsyn.errors import QueryError, quote_argument
from dpsyn.inference.redraw import Uncertainty
from dpsyn.notebook import show_progress
from dpsyn.options import suggest_arguments
from dpsyn.progress import DRAW_REPLICATES, Progress, ignore_progress
from dpsyn.schema import (
    AttributeConditions,
    Boolean,
    Categorical,
    Integer,
    Ordinal,
    Real,
    Schema,
    format_conditions,
    select_cells,
)
from dpsyn.schema.formula import parse_formula

REPLICATES = 20
"""Replicates of an answer: their t quantile is 7 % above that of infinitely many."""

MAX_DEFAULT_ROWS = 1_000_000
"""Rows of each replicate by default, if the private table has more."""

MIN_REFERENCE_SHARE = 0.01
"""The least share of rows with the reference of an attribute. Coefficients are differences from it."""

MAX_NAMED_TERMS = 5
"""Terms that a note names."""


class DirectAnswers:
    """The answers that a synopsis computes from its replicates; it costs no privacy.

    Each draws replicates, estimates the statistic in each of them, and pools the results. All take the same options:

    - ``where``: conditions as in ``generate``; only rows that meet them are used.
    - ``replicates``: the number of replicates.
    - ``rows``: the rows of each; by default as many as the private table has, at most a million.
    - ``seed``: makes the answer reproducible.
    - ``uncertainty``: ``all`` for conclusions about a population, ``noise`` for those about the private rows.
    - ``level``: the level of the intervals.
    - ``progress``: called with the current phase and the fraction done.

    Rows in which a value is missing are left out; a note counts them.
    """

    __slots__ = ()

    schema: Schema
    if TYPE_CHECKING:
        replicates: Any
        marginal: Any
        rows: Any

    @suggest_arguments
    @show_progress
    def mean(
        self,
        attribute: str,
        *,
        by: str | Sequence[str] | None = None,
        where: AttributeConditions | None = None,
        replicates: int = REPLICATES,
        rows: int | None = None,
        seed: int | None = None,
        uncertainty: Uncertainty = "all",
        level: float = 0.95,
        progress: Progress = ignore_progress,
    ) -> Pooled:
        """The mean of an attribute of numbers, or the share of true values, with an interval.

        >>> from dpsyn.demo import people, people_schema
        >>> from dpsyn.recipes import measure
        >>> synopsis = measure(people(rows=500), people_schema(), epsilon=1.0, recipe="independent")
        >>> synopsis.mean("income", by="sex", replicates=3, seed=1).terms[:2]
        ('sex=female', 'sex=male')

        Args:
            attribute: the attribute.
            by: one or several attributes, in whose groups the means are wanted.
            where: as in ``generate``.
            replicates: the number of replicates.
            rows: the rows of each.
            seed: makes the answer reproducible.
            uncertainty: as in ``replicates``.
            level: the level of the intervals.
            progress: called with the current phase and the fraction done.
        """
        groups = _list_names(by)
        require_number(self.schema, attribute, "mean")
        require_attributes(self.schema, groups)
        statistic = mean_of(self.schema, attribute, groups)
        title = f"Mean of {attribute}{_by(groups)}"
        bounds = _find_bounds(self.schema, attribute)
        return self._answer(
            statistic, title, where, replicates, rows, seed, uncertainty, level, progress, bounds=bounds
        )

    @suggest_arguments
    @show_progress
    def quantile(
        self,
        attribute: str,
        probability: float | Sequence[float] = 0.5,
        *,
        by: str | Sequence[str] | None = None,
        where: AttributeConditions | None = None,
        replicates: int = REPLICATES,
        rows: int | None = None,
        seed: int | None = None,
        uncertainty: Uncertainty = "all",
        level: float = 0.95,
        progress: Progress = ignore_progress,
    ) -> Pooled:
        """Quantiles of an attribute of numbers, with intervals; 0.5 is the median. Options are those of ``mean``."""
        groups, probabilities = _list_names(by), _list_probabilities(probability)
        require_number(self.schema, attribute, "quantiles")
        require_attributes(self.schema, groups)
        statistic = quantiles_of(self.schema, attribute, groups, probabilities)
        shown = ", ".join(f"{each:g}" for each in probabilities)
        title = f"{'Quantile' if len(probabilities) == 1 else 'Quantiles'} {shown} of {attribute}{_by(groups)}"
        bounds = _find_bounds(self.schema, attribute)
        return self._answer(
            statistic, title, where, replicates, rows, seed, uncertainty, level, progress, bounds=bounds
        )

    @suggest_arguments
    @show_progress
    def correlation(
        self,
        first: str,
        second: str,
        *,
        method: CorrelationMethod = "pearson",
        where: AttributeConditions | None = None,
        replicates: int = REPLICATES,
        rows: int | None = None,
        seed: int | None = None,
        uncertainty: Uncertainty = "all",
        level: float = 0.95,
        progress: Progress = ignore_progress,
    ) -> Pooled:
        """The correlation of two attributes with an interval. Options are those of ``mean``.

        ``method`` is ``pearson`` for numbers, or ``spearman`` for the correlation of ranks, for ordinal attributes too.
        """
        if not isinstance(method, str) or method not in get_args(CorrelationMethod):
            raise QueryError(f"the method is {quote_argument(method)}; use {' or '.join(get_args(CorrelationMethod))}")
        for name in (first, second):
            require_attributes(self.schema, [name])
            if not (method == "spearman" and isinstance(self.schema[name], Ordinal)):
                require_number(self.schema, name, f"{method.capitalize()} correlation")
        if first == second:
            raise QueryError(f"the correlation of {quote_argument(first)} with itself is 1; give two attributes")
        statistic = correlation_of(self.schema, first, second, method)
        title = f"{method.capitalize()} correlation of {first} and {second}"
        return self._answer(
            statistic, title, where, replicates, rows, seed, uncertainty, level, progress, bounds=(-1.0, 1.0)
        )

    @suggest_arguments
    @show_progress
    def regress(
        self,
        formula: str,
        *,
        where: AttributeConditions | None = None,
        replicates: int = REPLICATES,
        rows: int | None = None,
        seed: int | None = None,
        uncertainty: Uncertainty = "all",
        level: float = 0.95,
        progress: Progress = ignore_progress,
    ) -> Pooled:
        """A regression such as ``income ~ age + sex``, with intervals of its coefficients. Options as for ``mean``.

        It is linear for an outcome of numbers, and logistic for one of two values: then coefficients are log odds
        ratios of the second value, by Firth's method, which differs little from maximum likelihood and is always
        finite. Attributes of listed values are dummy-coded; the reference is the first value that at least 1 % of the
        rows have. ``C(age)`` makes categories of numbers, ``a:b`` is an interaction, ``a*b`` is ``a + b + a:b``.
        """
        parsed = parse_formula(formula, [each.name for each in self.schema.attributes if each.coded])
        allowed, size = select_cells(self.schema, where or {}), self._default_rows(rows)
        references = {name: self._find_reference(name, allowed) for name in parsed.attributes[1:]}
        known = {name: reference for name, reference in references.items() if reference is not None}
        regression = make_regression(parsed, self.schema, allowed, known, size)
        used = [f"{factor.name}={levels[0]}" for factor, levels in regression.levels.items()]
        references_used = sorted({each for each in used if not each.startswith(f"{parsed.outcome}=")})
        notes = [f"Reference: {', '.join(references_used)}."] if references_used else []
        if regression.event is not None:
            notes.insert(0, f"Coefficients are log odds ratios of {parsed.outcome}={regression.event}.")
        title = f"{regression.kind.capitalize()} regression {formula.strip()}"
        return self._answer(
            regression, title, where, replicates, size, seed, uncertainty, level, progress, notes=tuple(notes)
        )

    def _default_rows(self, rows: int | None) -> int:
        return min(self.rows, MAX_DEFAULT_ROWS) if rows is None else rows

    def _find_reference(self, name: str, allowed: AllowedCells) -> str | None:
        """The first value of an attribute that is not rare, by the released counts; None if there is none."""
        attribute = self.schema[name]
        is_derived = any(derive.name == name for derive in self.schema.derive)
        if is_derived or not isinstance(attribute, Categorical | Boolean | Integer):
            return None
        answer = self.marginal(name, cells=True)
        counts = answer.counts[: attribute.proper_cells]
        counts = np.where(allowed.get(name, np.ones(attribute.cells, np.bool_))[: len(counts)], counts, 0)
        frequent = np.flatnonzero(counts >= MIN_REFERENCE_SHARE * counts.sum())
        return str(answer.labels[0][int(frequent[0])]) if counts.sum() > 0 and frequent.size else None

    def _answer(
        self,
        statistic: Statistic,
        title: str,
        where: AttributeConditions | None,
        replicates: int,
        rows: int | None,
        seed: int | None,
        uncertainty: Uncertainty,
        level: float,
        progress: Progress,
        *,
        bounds: tuple[float, float] = (-math.inf, math.inf),
        notes: tuple[str, ...] = (),
    ) -> Pooled:
        check_level(level)
        if isinstance(replicates, int) and replicates == 1:
            raise QueryError("1 replicate shows no differences; give at least 2, better 20")
        drawn = self.replicates(replicates, self._default_rows(rows), seed=seed, where=where, uncertainty=uncertainty)
        drawn.record.require_noise()
        results: list[TableEstimates] = []
        progress(DRAW_REPLICATES.phase, 0.0)
        for table in drawn.iterate_arrow():
            results.append(statistic(table))
            progress(DRAW_REPLICATES.phase, len(results) / drawn.count)
        terms = [term for term in _all_terms(results) if all(term in result.values for result in results)]
        if not terms:
            raise QueryError(f"{title}: too few rows in a replicate; use fewer conditions, or give more rows")
        pairs = np.array([[result.values[term] for term in terms] for result in results])
        shape = (len(results),) if terms == [""] else (len(results), len(terms))
        factor = drawn.record.sampling_factor
        reported = pairs[:, :, 1].reshape(shape).mean(0)
        conditions = format_conditions(self.schema, where or {})
        return Pooled(
            terms=() if terms == [""] else tuple(terms),
            estimates=pairs[:, :, 0].reshape(shape),
            sampling_variance=None if factor is None else np.asarray(reported * factor),
            record=drawn.record,
            level=level,
            bounds=bounds,
            title=f"{title}{f', where {conditions}' if conditions else ''}",
            notes=(
                *notes,
                *_left_out_terms(results, terms),
                *_missing_rows(results, drawn.rows),
                *few_replicates_notes(len(results)),
            ),
        )


def _all_terms(results: Sequence[TableEstimates]) -> list[str]:
    """The terms of all results, in the order of those that have most."""
    longest_first = sorted(results, key=lambda result: -len(result.values))
    return list(dict.fromkeys(term for result in longest_first for term in result.values))


def _left_out_terms(results: Sequence[TableEstimates], terms: Sequence[str]) -> list[str]:
    left_out = [term for term in _all_terms(results) if term not in terms]
    if not left_out:
        return []
    more = f" and {len(left_out) - MAX_NAMED_TERMS} more" if len(left_out) > MAX_NAMED_TERMS else ""
    return [f"Left out, because some replicates have too few rows: {', '.join(left_out[:MAX_NAMED_TERMS])}{more}."]


def _missing_rows(results: Sequence[TableEstimates], rows: int) -> list[str]:
    missing = float(np.mean([result.missing_rows for result in results]))
    if not missing:
        return []
    return [f"Rows with a missing value are left out: {missing:,.0f} of {rows:,} in a replicate, on average."]


def _list_names(by: str | Sequence[str] | None) -> list[str]:
    if by is None:
        return []
    names = [by] if isinstance(by, str) else by
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise QueryError(f"by is {quote_argument(by)}; give the name of an attribute, or several as a list")
    return list(dict.fromkeys(names))


def _list_probabilities(probability: float | Sequence[float]) -> list[float]:
    listed = probability if isinstance(probability, list | tuple) else [probability]
    for each in listed:
        if isinstance(each, bool) or not isinstance(each, int | float | np.number) or not 0 < float(each) < 1:
            raise QueryError(f"the probability is {quote_argument(each)}; give a number between 0 and 1, such as 0.5")
    if not listed:
        raise QueryError("there is no probability; give a number between 0 and 1, such as 0.5")
    return [float(each) for each in dict.fromkeys(listed)]


def _by(groups: Sequence[str]) -> str:
    return f" by {', '.join(groups)}" if groups else ""


def _find_bounds(schema: Schema, name: str) -> tuple[float, float]:
    """The smallest and the largest value of an attribute."""
    attribute = schema[name]
    if isinstance(attribute, Integer | Real):
        return float(attribute.low), float(attribute.high)
    if isinstance(attribute, Categorical):
        values = [float(value) for value in attribute.all_values()]
        return min(values), max(values)
    return 0.0, 1.0
