"""A conclusion: estimates with standard errors and intervals, what causes the variance, and how they are shown."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn import notebook
from dpsyn.encoding.dataframes import convert_table
from dpsyn.errors import UserError, quote_argument
from dpsyn.inference.redraw import Uncertainty

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

FloatArray = NDArray[np.float64]

_ABOUT = {
    "all": "The conclusions are about a population of which the private table is a sample.",
    "noise": "The conclusions are about the rows of the private table, not about a population that they come from.",
}
"""What conclusions are about, by what counts as uncertain."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Conclusion(ABC):
    """An estimate from a release: one number, or several named terms such as the coefficients of a regression.

    Attributes:
        terms: the names of the terms; empty if the result is one number.
        level: the level of the intervals in tables.
        bounds: the smallest and the largest value that is possible; intervals end there.
        title: what was estimated.
        notes: further remarks for the reader.
    """

    terms: tuple[str, ...]
    level: float = 0.95
    bounds: tuple[float, float] = (-math.inf, math.inf)
    title: str = ""
    notes: tuple[str, ...] = ()

    # ── numbers ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    @abstractmethod
    def estimate(self) -> Any:
        """A number, or an array with one number for each term."""

    @property
    @abstractmethod
    def standard_error(self) -> Any:
        """The standard error of each term."""

    @property
    @abstractmethod
    def degrees_of_freedom(self) -> int | None:
        """Those of the t distribution of (estimate − truth)/standard error; None for a normal one."""

    @property
    @abstractmethod
    def sampling_share(self) -> Any:
        """The part of the variance that a private table without noise would have, too; None if it is not known."""

    @property
    def privacy_share(self) -> Any:
        """The part of the variance that is due to the privacy noise; None if it is not known."""
        share = self.sampling_share
        return None if share is None else 1.0 - share

    @abstractmethod
    def interval(self, level: float | None = None) -> tuple[Any, Any]:
        """The lower and the upper end of a confidence interval for each term, by default at ``level``."""

    # ── where it comes from ──────────────────────────────────────────────────────────────────────────────────

    @property
    @abstractmethod
    def uncertainty(self) -> Uncertainty | None:
        """What counts as uncertain: ``all`` or ``noise``; None if that is not known."""

    @property
    @abstractmethod
    def replicates(self) -> int | None:
        """The number of replicates that it comes from; None if it comes from released tables."""

    @property
    def source(self) -> str:
        """What it comes from, for a title."""
        return "from released tables" if self.replicates is None else f"from {self.replicates} replicates"

    # ── how it is shown ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the conclusions are about, and all notes."""
        return (*([_ABOUT[self.uncertainty]] if self.uncertainty in _ABOUT else []), *self.notes)

    def __float__(self) -> float:
        if self.terms:
            raise UserError(f"the result has {len(self.terms)} terms, not one number; use its estimate")
        return float(self.estimate)

    def __repr__(self) -> str:
        about = f"{self.title}: " if self.title else ""
        if self.terms:
            return f"{type(self).__name__}({about}{len(self.terms)} terms {self.source})"
        estimate, error, interval = format_numbers(self.estimate, self.standard_error, *self.interval())
        level = f"{100 * self.level:g} % interval"
        return f"{type(self).__name__}({about}{estimate} ± {error}, {level} {interval}, {self.source})"

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
        return "\n".join([self.heading, *lines, *self.remarks])

    def _repr_html_(self) -> str:
        return notebook.html_table(self.heading, self.headings(), self.text_rows(), notes=self.remarks)

    @property
    def heading(self) -> str:
        """What was estimated, and from what."""
        return f"{self.title or 'Estimates'}, {self.source}"

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
            "degrees_of_freedom": None if self.degrees_of_freedom is None else np.full(count, self.degrees_of_freedom),
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
            "uncertainty": self.uncertainty,
            "level": self.level if level is None else level,
            "notes": list(self.remarks),
            "terms": self.to_arrow(level).to_pylist(),
        }

    def plot(self, axes: notebook.Axes | None = None) -> notebook.Axes:
        """Draw the estimates with their intervals as bars. Needs matplotlib."""
        low, high = (np.atleast_1d(end) for end in self.interval())
        title = f"{self.title or 'Estimates'}, with {100 * self.level:g} % intervals"
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


def plain_number(values: Any) -> Any:
    """A float for an array of one number without an axis, and any other array as it is."""
    return float(values) if np.ndim(values) == 0 else np.asarray(values)
