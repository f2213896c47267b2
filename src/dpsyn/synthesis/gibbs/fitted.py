"""A fitted model: what rows are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.marginals import Clique, Estimate
from dpsyn.synthesis.gibbs.forest import Forest
from dpsyn.synthesis.gibbs.layout import Cells, Columns, Layout


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A distribution p(x) ∝ exp Σ_c θ_c(x_c) over records, and the marginals it was found to have.

    Attributes:
        names: the attributes.
        layout: the cliques: those that were followed, then those of the factors.
        forest: the start distribution.
        parameters: θ, a number for each cell of each clique that was followed.
        expected: the average count of each of these cells over many sweeps, as shares of one.
        total: the number of records that the tables spoke of.
        noise: how far noise took the tables from those of the records, as a mean total variation distance.
        records: the records of the fit, attributes × records, bound to the expected counts.
        distances: mean total variation distance of records and tables after each sweep.
        known: logarithms of the factors' shares, one for each cell of the other cliques.
    """

    names: tuple[str, ...]
    layout: Layout
    forest: Forest
    parameters: Cells
    expected: Cells
    total: float
    noise: float
    records: Columns
    distances: tuple[float, ...]
    known: Cells = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        cells = self.layout.followed_cells
        if len(self.known) != int(self.layout.offsets[-1]) - cells:
            raise InternalError("the factors of a fitted model do not fit its cliques")
        if len(self.parameters) != cells or len(self.expected) != cells or len(self.names) != len(self.layout.sizes):
            raise InternalError("the parts of a fitted model do not fit each other")
        for array in (self.parameters, self.expected, self.records):
            array.setflags(write=False)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The attributes of each clique that was followed, one after the other as their cells are."""
        followed = self.layout.cliques[: self.layout.followed]
        return tuple(tuple(self.names[place] for place in clique) for clique in followed)

    @property
    def logs(self) -> Cells:
        """The logarithm of the weight of every cell of every clique."""
        return np.concatenate([self.parameters, self.known])

    def counts(self, rows: int) -> Cells:
        """The counts that are expected of so many rows, in every cell; none of cliques that are not followed."""
        return np.concatenate([self.expected * rows, np.zeros(len(self.known))])

    def conditioned(self, rows: int, allowed: Mapping[int, NDArray[np.float64]]) -> tuple[Cells, NDArray[np.bool_]]:
        """The counts that are expected of so many rows under conditions, and for which cliques they are known.

        Those are the cliques that tell of every condition; the model's own table, as far as it meets them, is what
        such rows have.
        """
        counts = self.counts(1)
        known = np.zeros(len(self.layout.cliques), np.bool_)
        for number, clique in enumerate(self.layout.cliques[: self.layout.followed]):
            if not allowed.keys() <= set(clique):
                continue
            table = self.layout.table(counts, number)
            for place, weights in allowed.items():
                table *= np.expand_dims(weights, tuple(axis for axis, other in enumerate(clique) if other != place))
            share = float(table.sum())
            known[number] = share > 0
            table *= rows / share if share > 0 else 0.0
        return counts, known

    def marginals(self) -> tuple[Estimate, ...]:
        """The model's own marginals of its cliques, as counts of ``total`` records. Their noise is not known."""
        return tuple(
            Estimate(clique, self.layout.table(self.expected, number) * self.total, 0.0)
            for number, clique in enumerate(self.cliques)
        )

    def theta(self) -> Mapping[Clique, NDArray[np.float64]]:
        """The parameters of each clique as a table."""
        return {clique: self.layout.table(self.parameters, number) for number, clique in enumerate(self.cliques)}
