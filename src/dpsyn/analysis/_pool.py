"""Pools analyses of replicates: one estimate, with an interval that includes sampling and the privacy noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from dpsyn.analysis.conclusion import FloatArray, check_level
from dpsyn.analysis.estimates import Estimated, read_estimate, read_variances
from dpsyn.analysis.pooled import Pooled
from dpsyn.analysis.record import ReplicatesRecord, require_record
from dpsyn.errors import UserError, quote_argument, shorten
from dpsyn.options import suggest_arguments

MIN_REPLICATES = 2
"""Fewer have no differences."""

FEW_REPLICATES = 5
"""With fewer, the t quantile makes intervals 1.4 times as wide as those of many, or more."""


@suggest_arguments
def pool(
    estimates: Iterable[Any],
    variances: Iterable[Any] | None = None,
    *,
    replicates: Any = None,
    names: Sequence[str] | None = None,
    level: float = 0.95,
) -> Pooled:
    """Combine what the analyses of replicates gave into one estimate with its standard error and interval.

    With estimates q₁ … qₘ, the estimate is their mean, and its variance is (1 + 1/m) times their variance, with m − 1
    degrees of freedom. That holds for replicates of ``Synopsis.replicates``, each from its own draw of the model;
    ``docs/explanation/conclusions.md`` has the reason, and how it differs from rules for tables from other sources.

    >>> import numpy as np
    >>> from dpsyn.demo import people, people_schema
    >>> from dpsyn.recipes import measure
    >>> synopsis = measure(people(rows=500), people_schema(), epsilon=1.0, recipe="independent")
    >>> pooled = pool(np.mean(table["income"]) for table in synopsis.replicates(3, seed=1))
    >>> pooled.degrees_of_freedom
    2

    Args:
        estimates: for each replicate a number, a vector, a dictionary or a pandas Series of numbers, or a fitted model
            of statsmodels (``params`` and their standard errors) or scikit-learn (``intercept_`` and ``coef_``).
        variances: for each replicate the variance that the analysis reports, as a number, a vector or a covariance
            matrix. They only divide the variance into what is due to sampling and what is due to the privacy noise.
            Models of statsmodels have them.
        replicates: what was analyzed: the result of ``Synopsis.replicates``, tables of it, or the file
            ``…-replicates.json`` beside tables on disk. It is needed for those shares. Replicates that differ by the
            sampling of rows alone are refused.
        names: names of the terms, if the estimates have none.
        level: the level of the intervals.
    """
    check_level(level)
    record = None if replicates is None else require_record(replicates)
    if record is not None:
        record.require_noise()
    given = _iterate(estimates, "estimates", "a list of estimates, one for each replicate")
    results = [read_estimate(value, number) for number, value in enumerate(given, 1)]
    if len(results) < MIN_REPLICATES:
        raise UserError(
            f"there {'is 1 estimate' if results else 'are no estimates'}; the differences between replicates show the "
            "uncertainty, so give at least 2, better 20"
        )
    record = record or _agreed_record(results)
    _check_count(len(results), record)
    terms = _agreed_terms(results, names)
    title = str(next(iter(names))) if names is not None and not terms else ""
    values = np.stack([result.values for result in results])
    reported = _reported_variances(results, variances)
    factor = None if record is None else record.sampling_factor
    return Pooled(
        terms=terms,
        estimates=values,
        sampling_variance=None if reported is None or factor is None else np.asarray(reported.mean(0) * factor),
        record=record,
        level=level,
        title=title,
        notes=few_replicates_notes(len(results)),
    )


def few_replicates_notes(count: int) -> tuple[str, ...]:
    """What to know about few replicates."""
    if count >= FEW_REPLICATES:
        return ()
    return (f"Few replicates make wide intervals: {count} here, 20 are usual.",)


def _iterate(values: Any, name: str, wanted: str) -> Iterable[Any]:
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        raise UserError(f"{name} is {quote_argument(values)}; give {wanted}")
    return values


def _agreed_record(results: Sequence[Estimated]) -> ReplicatesRecord | None:
    """What the results say about their replicates; those that differ by rows alone are refused."""
    found = [result.record for result in results if result.record is not None]
    for record in found:
        record.require_noise()
    return require_record(found) if found else None


def _check_count(count: int, record: ReplicatesRecord | None) -> None:
    if record is not None and count > record.count:
        raise UserError(
            f"there are {count} estimates of {record.count} replicates; give one for each, and several terms of an "
            "analysis as a vector"
        )


def _agreed_terms(results: Sequence[Estimated], names: Sequence[str] | None) -> tuple[str, ...]:
    """The terms, which all replicates have in the same order."""
    first = results[0]
    for number, result in enumerate(results, 1):
        if result.terms != first.terms and result.terms is not None and first.terms is not None:
            one, other = next(pair for pair in zip_longest(first.terms, result.terms) if pair[0] != pair[1])
            raise UserError(
                f"replicate 1 has the term {_quote_term(one)} where replicate {number} has {_quote_term(other)}; all "
                "need the same terms in the same order. A rare value that a replicate does not have is the usual "
                "reason: join it with another, or declare all values as categories"
            )
        if result.values.shape != first.values.shape or (result.terms is None) != (first.terms is None):
            raise UserError(
                f"replicate 1 has {_describe_shape(first)} and replicate {number} {_describe_shape(result)}; all need "
                "the same terms"
            )
    if first.values.ndim == 0:
        if names is not None and len(list(names)) != 1:
            raise UserError(f"there are {len(list(names))} names for one number")
        return ()
    if names is None:
        return first.terms or tuple(str(position) for position in range(1, first.values.size + 1))
    given = tuple(str(name) for name in _iterate(names, "names", "a list of names"))
    if len(given) != first.values.size:
        raise UserError(f"there are {len(given)} names for {first.values.size} terms; give one for each")
    return given


def _quote_term(term: str | None) -> str:
    return "no more terms" if term is None else repr(shorten(term, 60))


def _describe_shape(result: Estimated) -> str:
    if result.values.ndim == 0:
        return "one number"
    return f"a {'model or series' if result.terms else 'vector'} of {result.values.size} terms"


def _reported_variances(results: Sequence[Estimated], variances: Iterable[Any] | None) -> FloatArray | None:
    """The variances of all replicates: those that were given, or those that the results know."""
    shape = results[0].values.shape
    if variances is not None:
        given = list(_iterate(variances, "variances", "a list of variances, one for each replicate"))
        if len(given) != len(results):
            raise UserError(f"there are {len(given)} variances for {len(results)} estimates; give one for each")
        return np.stack([read_variances(value, shape, number) for number, value in enumerate(given, 1)])
    known = [result.variances for result in results if result.variances is not None]
    return np.stack(known) if len(known) == len(results) else None
