"""The result of pooling: an estimate, its standard error and interval, and what causes the variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn import notebook
from dpsyn.analysis.record import ReplicatesRecord
from dpsyn.encoding.dataframes import convert_table
from dpsyn.errors import InternalError, UserError, quote_argument

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

FloatArray = NDArray[np.float64]

_ABOUT = {
    "all": "The conclusions are about a population of which the private table is a sample.",
    "noise": "The conclusions are about the rows of the private table, not about a population that they come from.",
}
"""What conclusions are about, by what differs between replicates."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Pooled:
    """Estimates from replicates, combined: one number, or several named terms such as the coefficients of a regression.

    With m estimates, their mean q̄ and their variance b between replicates, the variance of q̄ is T = (1 + 1/m)·b, with
    m − 1 degrees of freedom; ``docs/conclusions.md`` derives it from how replicates are drawn.

    Attributes:
        terms: the names of the terms; empty if the result is one number.
        estimates: what each replicate gave: an array of one number, or one row, per replicate.
        sampling_variance: what the analyses report as variance, on average, for as many rows as the private table has;
            None if they report none, or the number of rows is not known.
        record: what the replicates are, if that is known.
        level: the level of the intervals in tables.
        bounds: the smallest and the largest value that is possible; intervals end there.
        title: what was estimated.
        notes: further remarks for the reader.
    """

    terms: tuple[str, ...]
    estimates: FloatArray
    sampling_variance: FloatArray | None = None
    record: ReplicatesRecord | None = None
    level: float = 0.95
    bounds: tuple[float, float] = (-math.inf, math.inf)
    title: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = self.estimates.shape[1:]
        if len(self.estimates) < 2 or shape != ((len(self.terms),) if self.terms or shape else ()):
            raise InternalError(f"estimates of shape {self.estimates.shape} have {len(self.terms)} terms")
        if self.sampling_variance is not None and self.sampling_variance.shape != shape:
            raise InternalError(f"estimates of shape {shape} have variances of {self.sampling_variance.shape}")
        check_level(self.level)
        self.estimates.setflags(write=False)

    # ── numbers ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def replicates(self) -> int:
        """The number of replicates."""
        return len(self.estimates)

    @property
    def estimate(self) -> Any:
        """The mean over replicates: a number, or an array with one number for each term."""
        return _plain(self.estimates.mean(0))

    @property
    def between_variance(self) -> Any:
        """The variance b of the estimates between replicates, for each term."""
        return _plain(self.estimates.var(0, ddof=1))

    @property
    def standard_error(self) -> Any:
        """√T, for each term."""
        return _plain(np.sqrt(self._variance))

    @property
    def covariance(self) -> FloatArray:
        """The covariance matrix of all terms, (1 + 1/m)·B. Its rank is below m: test single terms or few of them."""
        flat = self.estimates.reshape(self.replicates, -1)
        return np.atleast_2d(np.cov(flat, rowvar=False)) * (1 + 1 / self.replicates)

    @property
    def degrees_of_freedom(self) -> int:
        """Those of the t distribution of (estimate − truth)/standard error: m − 1."""
        return self.replicates - 1

    @property
    def sampling_share(self) -> Any:
        """The part of the variance that a private table without noise would have, too; None if it is not known."""
        if self.sampling_variance is None:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.minimum(1.0, self.sampling_variance / self._variance)
        return _plain(np.where(np.isnan(share), 0.0, share))  # 0/0: nothing varies

    @property
    def privacy_share(self) -> Any:
        """The part of the variance that is due to the privacy noise; None if it is not known."""
        share = self.sampling_share
        return None if share is None else 1.0 - share

    @property
    def _variance(self) -> FloatArray:
        variance: FloatArray = np.asarray(self.estimates.var(0, ddof=1) * (1 + 1 / self.replicates))
        return variance

    def interval(self, level: float | None = None) -> tuple[Any, Any]:
        """The lower and the upper end of a confidence interval for each term, by default at ``level``."""
        width = self._quantile(self.level if level is None else level) * np.sqrt(self._variance)
        center = self.estimates.mean(0)
        low, high = (np.clip(end, *self.bounds) for end in (center - width, center + width))
        return _plain(low), _plain(high)

    def _quantile(self, level: float) -> float:
        from scipy.stats import t  # takes half a second to import

        return float(t.ppf((1 + check_level(level)) / 2, self.degrees_of_freedom))

    # ── how it is shown ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the conclusions are about, and all notes."""
        kind = "" if self.record is None else self.record.uncertainty
        return (*([_ABOUT[kind]] if kind in _ABOUT else []), *self.notes)

    def __float__(self) -> float:
        if self.terms:
            raise UserError(f"the result has {len(self.terms)} terms, not one number; use its estimate")
        return float(self.estimates.mean())

    def __repr__(self) -> str:
        about = f"{self.title}: " if self.title else ""
        if self.terms:
            return f"Pooled({about}{len(self.terms)} terms from {self.replicates} replicates)"
        estimate, error, interval = format_numbers(self.estimate, self.standard_error, *self.interval())
        level = f"{100 * self.level:g} % interval"
        return f"Pooled({about}{estimate} ± {error}, {level} {interval}, from {self.replicates} replicates)"

    def __str__(self) -> str:
        headings, rows = self.headings(), self.text_rows()
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(width) if position else cell.ljust(width)
                for position, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (headings, *rows)
        ]
        title = self.title or "Pooled"
        return "\n".join([f"{title}, from {self.replicates} replicates", *lines, *self.remarks])

    def _repr_html_(self) -> str:
        title = f"{self.title or 'Pooled'}, from {self.replicates} replicates"
        return notebook.html_table(title, self.headings(), self.text_rows(), notes=self.remarks)

    def headings(self) -> tuple[str, ...]:
        """The columns of ``text_rows``; all but the first are numbers."""
        return ("term", "estimate", "± standard error", f"{100 * self.level:g} % interval", "due to privacy")

    def text_rows(self) -> list[tuple[str, ...]]:
        """A row of texts for each term."""
        return [
            (
                row["term"],
                *format_numbers(row["estimate"], row["standard_error"], row["low"], row["high"]),
                "?" if row["privacy_share"] is None else f"{100 * row['privacy_share']:.0f} %",
            )
            for row in self.to_arrow().to_pylist()
        ]

    def to_arrow(self, level: float | None = None) -> pa.Table:
        """A row for each term: estimate, standard error, degrees of freedom, interval, shares of the variance."""
        low, high = self.interval(level)
        count, unknown = max(len(self.terms), 1), pa.nulls(max(len(self.terms), 1), pa.float64())
        numbers = {
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "degrees_of_freedom": np.full(count, self.degrees_of_freedom),
            "low": low,
            "high": high,
            "sampling_share": self.sampling_share,
            "privacy_share": self.privacy_share,
        }
        columns = {
            name: unknown if values is None else pa.array(np.atleast_1d(values)) for name, values in numbers.items()
        }
        return pa.table({"term": pa.array(self.terms or ("estimate",), pa.string()), **columns})

    def to_pandas(self, level: float | None = None) -> pd.DataFrame:
        """The table of ``to_arrow`` as a pandas DataFrame."""
        return convert_table(self.to_arrow(level), "pandas")

    def to_polars(self, level: float | None = None) -> pl.DataFrame:
        """The table of ``to_arrow`` as a polars DataFrame."""
        return convert_table(self.to_arrow(level), "polars")

    def to_data(self, level: float | None = None) -> dict[str, Any]:
        """The whole result as plain data for JSON."""
        return {
            "title": self.title,
            "replicates": self.replicates,
            "uncertainty": None if self.record is None else self.record.uncertainty,
            "level": self.level if level is None else level,
            "notes": list(self.remarks),
            "terms": self.to_arrow(level).to_pylist(),
        }

    def plot(self, axes: notebook.Axes | None = None) -> notebook.Axes:
        """Draw the estimates with their intervals as bars. Needs matplotlib."""
        low, high = (np.atleast_1d(end) for end in self.interval())
        title = f"{self.title or 'Pooled'}, with {100 * self.level:g} % intervals"
        labels, values = self.terms or ("estimate",), np.atleast_1d(self.estimate)
        return notebook.plot_bars(axes, labels, values, title=title, unit="estimate", intervals=(low, high))


def format_numbers(estimate: float, error: float, low: float, high: float) -> tuple[str, str, str]:
    """An estimate, its standard error and its interval as texts, with two digits of the standard error."""
    if not 1e-6 <= error < 1e9:
        return f"{estimate:,.6g}", f"{error:,.2g}", f"{low:,.6g} … {high:,.6g}"
    decimals = max(0, 1 - math.floor(math.log10(error)))
    texts = [f"{number:,.{decimals}f}" for number in (estimate, error, low, high)]
    return texts[0], texts[1], f"{texts[2]} … {texts[3]}"


def check_level(level: object) -> float:
    """A probability between 0 and 1; a UserError for anything else."""
    if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0 < float(level) < 1:
        raise UserError(f"the level is {quote_argument(level)}; give a probability between 0 and 1, such as 0.95")
    return float(level)


def _plain(values: Any) -> Any:
    """A float for an array of one number without an axis, and any other array as it is."""
    return float(values) if np.ndim(values) == 0 else np.asarray(values)
