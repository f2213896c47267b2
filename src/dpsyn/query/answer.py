"""What a synopsis says about some attributes: counts, how far off they may be, and how they were come by."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Any, Literal

import pyarrow as pa

from dpsyn.encoding.dataframes import convert_table
from dpsyn.errors import InternalError, UserError
from dpsyn.marginals import Clique
from dpsyn.query.blue import QueryValues

AnswerSource = Literal["covered", "reconstructed", "model"]
"""Some released table holds all attributes; or they were put together from several tables; or from the fitted model."""

NUMBER_COLUMNS = ("count", "standard_error", "low", "high")
"""The columns that follow those of the attributes; with an underscore more where an attribute is called so."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Answer:
    """Counts over the values of some attributes; without any, one count of all rows that meet a condition.

    Attributes:
        attributes: one for each axis.
        labels: the values of each.
        counts: how many rows; not negative. Counts of different answers agree up to a part of their noise.
        standard_errors: the standard error of each count that the noise of the release causes. For a covered answer it is that
            of ``interval_centers``, exactly; counts are nearer the truth as a rule. Otherwise the noise was drawn anew.
        interval_centers: what intervals lie around: for a covered answer the unbiased estimate before negative counts were
            removed, otherwise the counts.
        source: covered, reconstructed, or from the model.
        model_error: how far a cell is off besides, root mean square, because the tables do not tell all: 0 for a
            covered answer unless it is split, None if nothing that was released tells.
        interpolated_attributes: attributes whose measured values are coarser than those asked for; their rows were split by the
            released histogram of the attribute, as if they were spread alike in all cells.
        notes: what else a reader should know.
    """

    attributes: Clique
    labels: tuple[tuple[str, ...], ...]
    counts: QueryValues
    standard_errors: QueryValues
    interval_centers: QueryValues
    source: AnswerSource
    model_error: float | None = 0.0
    interpolated_attributes: Clique = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = tuple(len(values) for values in self.labels)
        if len(self.attributes) != len(self.labels) or not shape == self.counts.shape == self.standard_errors.shape:
            raise InternalError(f"an answer of shape {self.counts.shape} has labels of shape {shape}")
        if self.interval_centers.shape != shape:
            raise InternalError(f"an answer of shape {shape} has centres of shape {self.interval_centers.shape}")
        for array in (self.counts, self.standard_errors, self.interval_centers):
            array.setflags(write=False)

    def __float__(self) -> float:
        if self.attributes:
            raise UserError(f"the answer is a table over {', '.join(self.attributes)}, not one number; use its counts")
        return float(self.counts)

    def __repr__(self) -> str:
        if not self.attributes:
            return f"Answer({float(self.counts):,.1f} ± {float(self.standard_errors):,.1f} rows, {self.source})"
        sizes = " × ".join(str(len(values)) for values in self.labels)
        return f"Answer({', '.join(self.attributes)}: {sizes} counts, {self.source})"

    def interval(self, level: float = 0.95) -> tuple[QueryValues, QueryValues]:
        """The ends of an interval for each count that noise leaves with this probability at most; they may be negative.

        For a covered answer it holds the true count with that probability, unless attributes are ``split``. Otherwise
        it holds what would have been answered without noise; ``model_error`` comes on top.
        """
        if not 0 < level < 1:
            raise UserError(f"the level is {level}; give a probability between 0 and 1, such as 0.95")
        width = NormalDist().inv_cdf((1 + level) / 2) * self.standard_errors
        return self.interval_centers - width, self.interval_centers + width

    def to_arrow(self, level: float = 0.95) -> pa.Table:
        """A row for each count: the values of the attributes, the count, its standard error, and an interval.

        Columns of numbers are called ``count``, ``standard_error``, ``low`` and ``high``; ``count_`` and so on where an
        attribute is called so.
        """
        low, high = self.interval(level)
        numbers = (self.counts, self.standard_errors, low, high)
        values = list(zip(*product(*self.labels), strict=True)) if self.counts.size else [()] * len(self.attributes)
        columns = [pa.array(column, pa.string()) for column in values] + [pa.array(n.ravel()) for n in numbers]
        return pa.table(columns, names=[*self.attributes, *(self._unused_name(name) for name in NUMBER_COLUMNS)])

    def _unused_name(self, name: str) -> str:
        """A name for a column of numbers that no attribute has."""
        return self._unused_name(f"{name}_") if name in self.attributes else name

    def to_pandas(self, level: float = 0.95) -> Any:
        """The same as a pandas DataFrame."""
        return convert_table(self.to_arrow(level), "pandas")

    def to_polars(self, level: float = 0.95) -> Any:
        """The same as a polars DataFrame."""
        return convert_table(self.to_arrow(level), "polars")

    def to_data(self, level: float = 0.95) -> dict[str, Any]:
        """All of it as plain data for JSON."""
        return {
            "attributes": list(self.attributes),
            "how": self.source,
            "level": level,
            "model_error": self.model_error,
            "split": list(self.interpolated_attributes),
            "notes": list(self.notes),
            "counts": self.to_arrow(level).to_pylist(),
        }
