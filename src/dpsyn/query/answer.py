"""The answer to a query: counts, their errors, and how they were estimated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from dpsyn import notebook
from dpsyn.encoding.dataframes import convert_table
from dpsyn.errors import InternalError, QueryError
from dpsyn.marginals import Clique
from dpsyn.query.linear_estimation import QueryValues

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

AnswerSource = Literal["covered", "reconstructed", "model"]
"""One released marginal covers all attributes; or their table was reconstructed from several marginals; or it was
estimated by the fitted model."""

NUMBER_COLUMNS = ("count", "standard_error", "model_error", "low", "high")
"""The columns after those of the attributes; an underscore is appended if an attribute has the same name."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Answer:
    """Counts over the values of some attributes; without attributes, one count of all rows that meet a condition.

    Attributes:
        attributes: the attributes, one for each axis.
        labels: the values of each attribute, as texts.
        values: the values of each attribute in its type, null for missing ones; None where they are ranges or texts.
        counts: the estimated numbers of rows; not negative. Counts of different answers agree up to a part of their
            noise.
        standard_errors: the standard error of each count due to the privacy noise. For a covered answer it is exactly
            that of ``interval_centers``; counts are usually closer to the truth. For other answers it is propagated
            from the noise of the released marginals.
        interval_centers: the centers of intervals: for a covered answer the unbiased estimate before negative counts
            were removed, otherwise the counts.
        source: ``covered``, ``reconstructed`` or ``model``.
        model_errors: the standard error that each count has in addition, because the released marginals do not
            determine it. 0 for a covered answer; None if it is not known: for interpolated covered answers, and for
            attributes that were measured as differences from others.
        interpolated_attributes: attributes that were measured in coarser values than the query lists. Their rows were
            divided by the released histogram of the attribute, as if it were the same for all values of the others.
        notes: further remarks for the reader.
        laplace: whether Laplace noise is part of the counts; its tails are heavier than those of Gaussian noise.
    """

    attributes: Clique
    labels: tuple[tuple[str, ...], ...]
    counts: QueryValues
    standard_errors: QueryValues
    interval_centers: QueryValues
    source: AnswerSource
    model_errors: QueryValues | None
    interpolated_attributes: Clique = ()
    notes: tuple[str, ...] = ()
    laplace: bool = False
    values: tuple[pa.Array | None, ...] = ()

    def __post_init__(self) -> None:
        shape = tuple(len(values) for values in self.labels)
        if len(self.attributes) != len(self.labels) or not shape == self.counts.shape == self.standard_errors.shape:
            raise InternalError(f"an answer of shape {self.counts.shape} has labels of shape {shape}")
        if self.interval_centers.shape != shape:
            raise InternalError(
                f"an answer of shape {shape} has interval centers of shape {self.interval_centers.shape}"
            )
        if self.model_errors is not None and self.model_errors.shape != shape:
            raise InternalError(f"an answer of shape {shape} has model errors of shape {self.model_errors.shape}")
        for array in self._arrays():
            array.setflags(write=False)

    def _arrays(self) -> tuple[QueryValues, ...]:
        given = (self.counts, self.standard_errors, self.interval_centers)
        return given if self.model_errors is None else (*given, self.model_errors)

    @property
    def model_error(self) -> float | None:
        """The root mean square of the model errors."""
        return None if self.model_errors is None else math.sqrt(float((self.model_errors**2).mean()))

    @property
    def total_errors(self) -> QueryValues:
        """The standard error of each count: noise and model error together, or noise alone if only that is known."""
        return self.standard_errors if self.model_errors is None else np.hypot(self.standard_errors, self.model_errors)

    def __float__(self) -> float:
        if self.attributes:
            raise QueryError(f"the answer is a table over {', '.join(self.attributes)}, not one number; use its counts")
        return float(self.counts)

    def __repr__(self) -> str:
        if not self.attributes:
            noise = "" if self.source == "covered" else f"of which noise {float(self.standard_errors):,.1f}, "
            return f"Answer({float(self.counts):,.1f} ± {float(self.total_errors):,.1f} rows, {noise}{self.source})"
        sizes = " × ".join(str(len(values)) for values in self.labels)
        return f"Answer({', '.join(self.attributes)}: {sizes} counts, {self.source})"

    def _repr_html_(self) -> str:
        table = self.to_arrow()
        rows = [tuple(row.values()) for row in table.slice(0, notebook.MAX_TABLE_ROWS + 1).to_pylist()]
        rows += [()] * (table.num_rows - len(rows))
        return notebook.html_table(repr(self), table.column_names, rows, notes=self.notes)

    def plot(self, axes: notebook.Axes | None = None) -> notebook.Axes:
        """Draw the counts, with 95 % intervals, as bars; of two attributes as a colored matrix. Needs matplotlib.

        Args:
            axes: where to draw; by default in a new figure.
        """
        names = ", ".join(self.attributes)
        if len(self.attributes) == 2:
            return notebook.plot_matrix(
                axes, (self.labels[0], self.labels[1]), self.counts, names=self.attributes, title=f"Rows by {names}"
            )
        if len(self.attributes) != 1:
            raise notebook.refuse_to_plot(f"an answer about {len(self.attributes)} attributes")
        title = f"Rows by {names}, with 95 % intervals"
        return notebook.plot_bars(
            axes, self.labels[0], self.counts, title=title, unit="rows", intervals=self.interval()
        )

    def interval(self, confidence: float = 0.95, *, noise_only: bool = False) -> tuple[QueryValues, QueryValues]:
        """The lower and upper ends of an interval for each count, which contains the true one with this probability.

        For a covered answer that is not interpolated this is a confidence interval: it follows from the noise alone,
        and its ends may be negative. For other answers it includes the model error as well, which is an estimate, and
        no end is negative.

        With Laplace noise the probability is at least ``confidence``: an interval is as wide as that of a single cell
        or that of a sum of very many, whichever is wider. If it follows from the noise alone, its ends are rounded
        outward to whole numbers, as the noise is one.

        Args:
            confidence: the probability.
            noise_only: leave out the model error. The interval contains, with that probability, the answer that would
                have been given without noise.
        """
        if not 0 < confidence < 1:
            raise QueryError(f"the confidence is {confidence}; give a probability between 0 and 1, such as 0.95")
        noise_only = noise_only or self.source == "covered"
        quantile = noise_quantile(confidence, laplace=self.laplace)
        width = quantile * (self.standard_errors if noise_only else self.total_errors)
        low, high = self.interval_centers - width, self.interval_centers + width
        if not noise_only:
            return np.maximum(low, 0.0), high
        return (np.floor(low), np.ceil(high)) if self.laplace else (low, high)

    def to_arrow(self, confidence: float = 0.95) -> pa.Table:
        """A row for each count: the values of the attributes, the count, its errors, and an interval.

        Numbers, truth values, dates and times have their own type, and missing ones are null; texts and ranges such as
        ``30..39`` are texts, and ``missing`` is one of them. The columns of numbers are ``count``, ``standard_error``
        (of the noise), ``model_error`` (null if it is not known), ``low`` and ``high``; ``count_`` and so on if an
        attribute has the same name.
        """
        low, high = self.interval(confidence)
        numbers = (self.counts, self.standard_errors, self.model_errors, low, high)
        indices = np.indices(self.counts.shape).reshape(len(self.attributes), self.counts.size)
        columns = [self._axis_column(axis).take(pa.array(each)) for axis, each in enumerate(indices)]
        columns += [
            pa.nulls(self.counts.size, pa.float64()) if array is None else pa.array(array.ravel()) for array in numbers
        ]
        return pa.table(columns, names=[*self.attributes, *(self._unused_name(name) for name in NUMBER_COLUMNS)])

    def _axis_column(self, axis: int) -> pa.Array:
        """The values of an axis in their type if they have one, otherwise as texts."""
        typed = self.values[axis] if self.values else None
        if typed is None or pa.types.is_string(typed.type):
            return pa.array(self.labels[axis], pa.string())
        return typed

    def _unused_name(self, name: str) -> str:
        """A name for a column of numbers that no attribute has."""
        return self._unused_name(f"{name}_") if name in self.attributes else name

    def to_pandas(self, confidence: float = 0.95) -> pd.DataFrame:
        """The table of ``to_arrow`` as a pandas DataFrame."""
        return convert_table(self.to_arrow(confidence), "pandas")

    def to_polars(self, confidence: float = 0.95) -> pl.DataFrame:
        """The table of ``to_arrow`` as a polars DataFrame."""
        return convert_table(self.to_arrow(confidence), "polars")

    def to_data(self, confidence: float = 0.95) -> dict[str, Any]:
        """The whole answer as plain data for JSON."""
        return {
            "attributes": list(self.attributes),
            "source": self.source,
            "confidence": confidence,
            "model_error": self.model_error,
            "split": list(self.interpolated_attributes),
            "notes": list(self.notes),
            "counts": _without_instants(self.to_arrow(confidence)).to_pylist(),
        }


def _without_instants(table: pa.Table) -> pa.Table:
    """A table whose dates and times are texts, as JSON has them."""
    fields = [field.with_type(pa.string()) if pa.types.is_temporal(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))


def noise_quantile(confidence: float, *, laplace: bool) -> float:
    """The number of standard deviations within which the noise lies with this probability.

    For Laplace noise, P(|noise| > t) = e^(−√2·t) in standard deviations. Sums of such noise lie between this and the
    normal distribution, so the larger quantile is enough for them, too.
    """
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    return max(normal, -math.log1p(-confidence) / math.sqrt(2)) if laplace else normal
