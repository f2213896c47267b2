"""Results of analyses in a CSV file, as R (broom) and Stata write them: one row for each replicate and term."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

from dpsyn.analysis._pool import pool
from dpsyn.analysis.pooled import Pooled
from dpsyn.analysis.record import ReplicatesRecord, require_record
from dpsyn.errors import SourceError, UserError, describe_os_error, quote_argument, shorten

MAX_RESULTS_BYTES = 100_000_000
"""A larger file is taken for a mistake, such as a table of rows."""

_ESTIMATE = ("estimate",)
_ERROR = ("std.error", "std_error", "variance")
"""The columns of estimates, and those of their standard errors or variances; broom's names, and what Stata allows."""

_ADVICE = (
    "it needs the columns replicate, term and estimate, and for the shares of the variance std.error or variance, with "
    "a row for each replicate and term"
)


def pool_results_file(
    results: str | Path, replicates: str | Path | ReplicatesRecord | None = None, level: float = 0.95
) -> Pooled:
    """Pool the results of a CSV file, with the columns ``replicate``, ``term``, ``estimate`` and ``std.error``.

    Args:
        results: the file. ``variance`` may stand instead of ``std.error``, and other columns are ignored. The fields
            may be separated by semicolons, with decimal commas.
        replicates: what was analyzed: the file ``…-replicates.json`` beside the tables.
        level: the level of the intervals.
    """
    record = None if replicates is None else require_record(replicates)
    if record is not None:
        record.require_noise()
    if not isinstance(results, str | Path):
        raise UserError(f"the results are {quote_argument(results)}; give the path of a CSV file, or use pool")
    analyses, has_errors = _read_analyses(results)
    numbers, terms = list(analyses), list(next(iter(analyses.values())))
    for number, found in analyses.items():
        missing = [term for term in terms if term not in found] or [term for term in found if term not in terms]
        if missing:
            without = number if missing[0] not in found else numbers[0]
            raise UserError(
                f"{results}: replicate {shorten(without, 40)} has no term {quote_argument(missing[0])}; every "
                "replicate needs the same terms. A rare value that a replicate does not have is the usual reason: join "
                "it with another, or declare all values as levels"
            )
    estimates = [[found[term][0] for term in terms] for found in analyses.values()]
    variances = [[found[term][1] for term in terms] for found in analyses.values()] if has_errors else None
    pooled = pool(estimates, variances, replicates=record, names=terms, level=level)
    return replace(pooled, notes=(*pooled.notes, *_remarks(numbers, record)))


def _remarks(numbers: list[str], record: ReplicatesRecord | None) -> list[str]:
    if record is None:
        return [
            "Which replicates they are was not given: that they carry the privacy noise is assumed, and the shares of "
            "the variance are not known. --replicates with the file …-replicates.json beside the tables changes that."
        ]
    if len(numbers) < record.count:
        return [
            f"There are results of {len(numbers)} of {record.count} replicates. If analyses of the others failed, the "
            "interval is too short: those where an analysis works are no random choice."
        ]
    return []


def _read_analyses(path: str | Path) -> tuple[dict[str, dict[str, tuple[float, float]]], bool]:
    """Estimate and variance by replicate and term; and whether the file has variances."""
    text = _read_text(path)
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    rows = csv.reader(text.splitlines(), delimiter=separator)
    try:
        header = [name.strip().casefold() for name in next(rows)]
        columns = {name: header.index(name) for name in ("replicate", "term", *_ESTIMATE)}
    except (StopIteration, ValueError, csv.Error):
        raise SourceError(f"{path} is no file of results: {_ADVICE}") from None
    error = next((name for name in _ERROR if name in header), None)
    found: dict[str, dict[str, tuple[float, float]]] = {}
    try:
        for row in rows:
            if any(row):
                where = f"{path}, line {rows.line_num}"
                if len(row) < len(header):
                    raise SourceError(f"{where}: {len(row)} fields instead of {len(header)}")
                estimate = _read_number(row[columns["estimate"]], separator, where)
                spread = _read_number(row[header.index(error)], separator, where) if error else 0.0
                if spread < 0:
                    raise SourceError(f"{where}: {error} is negative")
                terms = found.setdefault(row[columns["replicate"]].strip(), {})
                term = row[columns["term"]].strip()
                if term in terms:
                    raise SourceError(
                        f"{where}: the term {quote_argument(term)} is there twice for the replicate; give terms of "
                        "different models or groups different names"
                    )
                terms[term] = (estimate, spread if error == "variance" else spread**2)
    except csv.Error as problem:
        raise SourceError(f"{path}, line {rows.line_num}: {problem}") from None
    if not found:
        raise SourceError(f"{path} has no results: {_ADVICE}")
    return found, error is not None


def _read_text(path: str | Path) -> str:
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_RESULTS_BYTES + 1)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {describe_os_error(error)}") from None
    if len(content) > MAX_RESULTS_BYTES:
        raise SourceError(f"{path} has more than {MAX_RESULTS_BYTES // 10**6} MB; is it a table of rows? {_ADVICE}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{path} is not text in UTF-8; save it as CSV in UTF-8") from None


def _read_number(text: str, separator: str, where: str) -> float:
    plain = text.strip().replace(",", ".") if separator == ";" else text.strip()
    try:
        number = float(plain)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise SourceError(
            f"{where}: {quote_argument(text)} is not a finite number; if an analysis failed for a replicate, simplify "
            "the analysis rather than leave the replicate out"
        )
    return number
