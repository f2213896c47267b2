"""Direct answers of a synopsis with intervals: means, quantiles, correlations and regressions.

They come from released tables that hold all attributes of the statistic, and otherwise from replicates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa

from dpsyn.analysis._pool import few_replicates_notes
from dpsyn.analysis.columns import MAX_GROUPS, AllowedCells, require_attributes, require_number
from dpsyn.analysis.conclusion import Conclusion, check_level
from dpsyn.analysis.covered import Covered, CoveredStatistics, Ratio, StepQuantile
from dpsyn.analysis.descriptive import (
    CorrelationMethod,
    Statistic,
    TableEstimates,
    correlation_of,
    mean_of,
    quantiles_of,
)
from dpsyn.analysis.pooled import Pooled
from dpsyn.analysis.record import ReplicatesRecord
from dpsyn.analysis.regression import make_regression
from dpsyn.analysis.unheld import describe_unheld
from dpsyn.errors import QueryError, quote_argument
from dpsyn.inference.redraw import Uncertainty, parse_uncertainty
from dpsyn.notebook import show_progress
from dpsyn.options import suggest_arguments
from dpsyn.progress import DRAW_REPLICATES, Progress, ignore_progress
from dpsyn.query.covered_counts import CoveredCounts, find_covered_counts
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

MAX_KEPT_VALUES = 20_000_000
"""Values of replicates that are kept for the next question: about a hundred megabytes."""

MAX_QUANTILE_CELLS = 20_000_000
"""Values × counts of a table for quantiles without replicates: a hundred and sixty megabytes."""

MAX_NAMED_TERMS = 5
"""Terms that a note names."""


class DirectAnswers:
    """The answers with intervals that a synopsis computes; they cost no privacy.

    A mean, quantile or correlation whose attributes one released table holds follows from that table. Everything else
    is estimated in each of several replicates, and pooled. All take the same options:

    - ``where``: conditions as in ``generate``; only rows that meet them are used.
    - ``replicates``: the number of replicates, if they are needed.
    - ``rows``: the rows of each; by default as many as the private table has, at most a million.
    - ``seed``: that of the replicates; None draws other ones every time.
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
        certificates: Any
        releases: Any
        model: Any

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
        seed: int | None = 0,
        uncertainty: Uncertainty = "all",
        level: float = 0.95,
        progress: Progress = ignore_progress,
    ) -> Conclusion:
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
            seed: that of the replicates; None draws other ones every time.
            uncertainty: as in ``replicates``.
            level: the level of the intervals.
            progress: called with the current phase and the fraction done.
        """
        groups = _list_names(by)
        require_number(self.schema, attribute, "mean")
        require_attributes(self.schema, groups)
        title = f"Mean of {attribute}{_by(groups)}"
        bounds = _find_bounds(self.schema, attribute)
        covered = self._cover([attribute, *groups], where, uncertainty)
        if covered is not None:
            return self._conclude(covered, covered.means(bounds), title, where, level, bounds)
        statistic = mean_of(self.schema, attribute, groups)
        drawn = self._prepare_replicates(replicates, rows, seed, where, uncertainty)
        return self._pool(drawn, statistic, [attribute, *groups], title, level, progress, bounds=bounds)

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
        seed: int | None = 0,
        uncertainty: Uncertainty = "all",
        level: float = 0.95,
        progress: Progress = ignore_progress,
    ) -> Conclusion:
        """Quantiles of an attribute of numbers, with intervals; 0.5 is the median. Options are those of ``mean``."""
        groups, probabilities = _list_names(by), _list_probabilities(probability)
        require_number(self.schema, attribute, "quantiles")
        require_attributes(self.schema, groups)
        shown = ", ".join(f"{each:g}" for each in probabilities)
        title = f"{'Quantile' if len(probabilities) == 1 else 'Quantiles'} {shown} of {attribute}{_by(groups)}"
        bounds = _find_bounds(self.schema, attribute)
        covered = self._cover([attribute, *groups], where, uncertainty)
        if covered is not None and covered.cells_of_quantiles <= MAX_QUANTILE_CELLS:
            return self._conclude(covered, covered.quantiles(probabilities), title, where, level, bounds)
        statistic = quantiles_of(self.schema, attribute, groups, probabilities)
        drawn = self._prepare_replicates(replicates, rows, seed, where, uncertainty)
        return self._pool(drawn, statistic, [attribute, *groups], title, level, progress, bounds=bounds)

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
        seed: int | None = 0,
        uncertainty: Uncertainty = "all",
        level: float = 0.95,
        progress: Progress = ignore_progress,
    ) -> Conclusion:
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
        title = f"{method.capitalize()} correlation of {first} and {second}"
        covered = self._cover([first, second], where, uncertainty)
        found = None if covered is None else covered.correlation(method)
        if covered is not None and found is not None and found.is_known:
            return self._conclude(covered, {"": found}, title, where, level, (-1.0, 1.0), valued=2)
        statistic = correlation_of(self.schema, first, second, method)
        drawn = self._prepare_replicates(replicates, rows, seed, where, uncertainty)
        return self._pool(drawn, statistic, [first, second], title, level, progress, bounds=(-1.0, 1.0))

    @suggest_arguments
    @show_progress
    def regress(
        self,
        formula: str,
        *,
        where: AttributeConditions | None = None,
        replicates: int = REPLICATES,
        rows: int | None = None,
        seed: int | None = 0,
        uncertainty: Uncertainty = "all",
        level: float = 0.95,
        progress: Progress = ignore_progress,
    ) -> Conclusion:
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
        drawn = self._prepare_replicates(replicates, size, seed, where, uncertainty)
        return self._pool(drawn, regression, parsed.attributes, title, level, progress, notes=tuple(notes))

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

    def _cover(
        self, names: Sequence[str], where: AttributeConditions | None, uncertainty: Uncertainty
    ) -> CoveredStatistics | None:
        """The counts of some attributes, if a table of all of them was measured, and is not too large."""
        too_many = math.prod(self.schema[name].cells for name in names[1:]) > MAX_GROUPS
        if parse_uncertainty(uncertainty) == "rows" or too_many:
            return None
        counts = find_covered_counts(self, names, where or {})
        if counts is None or any(values is None for values in counts.query.values[1:]):
            return None
        units = max((each.privacy_unit.max_rows for each in self.certificates if each), default=1)
        selected = {name: where[name] for name in names if where and name in where}

        def count_values(name: str) -> CoveredCounts | None:
            return find_covered_counts(self, [name], {name: selected[name]} if name in selected else {})

        return CoveredStatistics(self.schema, counts, count_values, units, uncertainty)

    def _conclude(
        self,
        covered: CoveredStatistics,
        found: Mapping[str, Ratio | StepQuantile],
        title: str,
        where: AttributeConditions | None,
        level: float,
        bounds: tuple[float, float],
        *,
        valued: int = 1,
    ) -> Covered:
        """The result of a statistic of covered counts, of whose attributes the first ``valued`` have the values."""
        check_level(level)
        left_out = [term for term, part in found.items() if not part.is_known]
        found = {term: part for term, part in found.items() if part.is_known}
        if not found:
            raise QueryError(f"{title}: there are hardly more rows than noise; use fewer groups or conditions")
        conditions, names = format_conditions(self.schema, where or {}), covered.counts.interpolated_attributes
        within = (
            f"{', '.join(names)}: measured in groups of values; how they depend on others inside a group is not known."
        )
        return Covered(
            terms=() if [*found] == [""] else tuple(found),
            parts=tuple(found.values()),
            laplace=covered.counts.laplace,
            kind=covered.kind,
            level=level,
            bounds=bounds,
            title=f"{title}{f', where {conditions}' if conditions else ''}",
            notes=(
                *([within] if names else []),
                *covered.describe_missing_rows(valued),
                *_name_left_out("Left out, because they have hardly more rows than noise", left_out),
            ),
        )

    def _prepare_replicates(
        self,
        replicates: int,
        rows: int | None,
        seed: int | None,
        where: AttributeConditions | None,
        uncertainty: Uncertainty,
    ) -> Any:
        """Replicates that can be pooled; they are drawn when they are asked for."""
        if isinstance(replicates, int) and replicates == 1:
            raise QueryError("1 replicate shows no differences; give at least 2, better 20")
        drawn = self.replicates(replicates, self._default_rows(rows), seed=seed, where=where, uncertainty=uncertainty)
        drawn.record.require_noise()
        return drawn

    def _pool(
        self,
        drawn: Any,
        statistic: Statistic,
        names: Sequence[str],
        title: str,
        level: float,
        progress: Progress,
        *,
        bounds: tuple[float, float] = (-math.inf, math.inf),
        notes: tuple[str, ...] = (),
    ) -> Conclusion:
        """The result of a statistic of some attributes, estimated in each replicate."""
        check_level(level)
        results: list[TableEstimates] = []
        progress(DRAW_REPLICATES.phase, 0.0)
        for table in _draw_tables(self, drawn):
            results.append(statistic(table))
            progress(DRAW_REPLICATES.phase, len(results) / drawn.count)
        terms = [term for term in _all_terms(results) if all(term in result.values for result in results)]
        if not terms:
            raise QueryError(f"{title}: too few rows in a replicate; use fewer conditions, or give more rows")
        pairs = np.array([[result.values[term] for term in terms] for result in results])
        shape = (len(results),) if terms == [""] else (len(results), len(terms))
        factor = drawn.record.sampling_factor
        reported = pairs[:, :, 1].reshape(shape).mean(0)
        conditions = format_conditions(self.schema, drawn.where or {})
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
                *describe_unheld(self.schema, self.model, self.releases, [*names, *(drawn.where or {})]),
                *_left_out_terms(results, terms),
                *_missing_rows(results, drawn.rows),
                *few_replicates_notes(len(results)),
            ),
        )


def _draw_tables(synopsis: DirectAnswers, drawn: Any) -> Iterator[pa.Table]:
    """The tables of replicates. Those of the last answer are kept: drawing takes long, and questions come in series."""
    if _last_drawn and _last_drawn[0][0] is synopsis and _last_drawn[0][1] == drawn.record:
        yield from _last_drawn[0][2]
        return
    _last_drawn.clear()
    tables: list[pa.Table] = []
    for table in drawn.iterate_arrow():
        if drawn.count * drawn.rows * table.num_columns <= MAX_KEPT_VALUES:
            tables.append(table)
        yield table
    if tables:
        _last_drawn.append((synopsis, drawn.record, tables))


_last_drawn: list[tuple[DirectAnswers, ReplicatesRecord, list[pa.Table]]] = []


def _all_terms(results: Sequence[TableEstimates]) -> list[str]:
    """The terms of all results, in the order of those that have most."""
    longest_first = sorted(results, key=lambda result: -len(result.values))
    return list(dict.fromkeys(term for result in longest_first for term in result.values))


def _left_out_terms(results: Sequence[TableEstimates], terms: Sequence[str]) -> list[str]:
    left_out = [term for term in _all_terms(results) if term not in terms]
    return _name_left_out("Left out, because some replicates have too few rows", left_out)


def _name_left_out(why: str, terms: Sequence[str]) -> list[str]:
    if not terms:
        return []
    more = f" and {len(terms) - MAX_NAMED_TERMS} more" if len(terms) > MAX_NAMED_TERMS else ""
    return [f"{why}: {', '.join(terms[:MAX_NAMED_TERMS])}{more}."]


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
