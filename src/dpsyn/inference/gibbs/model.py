"""A fitted model: what rows are drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference.gibbs.forest import Forest, build_forest
from dpsyn.inference.gibbs.layout import CellValues, CliqueIndices, CliqueLayout, Columns, order_by_size
from dpsyn.inference.gibbs.targets import build_targets, estimate_total, expected_noise_distance
from dpsyn.marginals import Clique, Estimate, Factor


@dataclass(frozen=True, slots=True, eq=False)
class GibbsModel:
    """A distribution p(x) ∝ exp Σ_c θ_c(x_c) over records, and the marginals it was found to have.

    Attributes:
        names: the attributes.
        layout: the cliques: those that were followed, then those of the factors.
        forest: the start distribution.
        parameters: θ, a number for each cell of each clique that was followed.
        expected_shares: the average count of each of these cells over many sweeps, as shares of one.
        total: the number of records that the tables spoke of.
        noise_distance: how far noise took the tables from those of the records, as a mean total variation distance.
        records: the records of the fit, attributes × records, bound to the expected counts.
        distances: mean total variation distance of records and tables after each sweep.
        log_factors: logarithms of the factors' shares, one for each cell of the other cliques.
    """

    names: tuple[str, ...]
    layout: CliqueLayout
    forest: Forest
    parameters: CellValues
    expected_shares: CellValues
    total: float
    noise_distance: float
    records: Columns
    distances: tuple[float, ...]
    log_factors: CellValues = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        cells = self.layout.target_cells
        if len(self.log_factors) != int(self.layout.offsets[-1]) - cells:
            raise InternalError("the factors of a fitted model do not fit its cliques")
        if (
            len(self.parameters) != cells
            or len(self.expected_shares) != cells
            or len(self.names) != len(self.layout.sizes)
        ):
            raise InternalError("the parts of a fitted model do not fit each other")
        for array in (self.parameters, self.expected_shares, self.records):
            array.setflags(write=False)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The attributes of each clique that was followed, one after the other as their cells are."""
        followed = self.layout.cliques[: self.layout.target_count]
        return tuple(tuple(self.names[place] for place in clique) for clique in followed)

    @property
    def log_weights(self) -> CellValues:
        """The logarithm of the weight of every cell of every clique."""
        return np.concatenate([self.parameters, self.log_factors])

    def expected_counts(self, rows: int) -> CellValues:
        """The counts that are expected of so many rows, in every cell; none of cliques that are not followed."""
        return np.concatenate([self.expected_shares * rows, np.zeros(len(self.log_factors))])

    def conditional_counts(
        self, rows: int, allowed: Mapping[int, NDArray[np.float64]]
    ) -> tuple[CellValues, NDArray[np.bool_]]:
        """The counts that are expected of so many rows under conditions, and for which cliques they are known.

        Those are the cliques that tell of every condition; the model's own table, as far as it meets them, is what
        such rows have.
        """
        counts = self.expected_counts(1)
        known = np.zeros(len(self.layout.cliques), np.bool_)
        for number, clique in enumerate(self.layout.cliques[: self.layout.target_count]):
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
            Estimate(clique, self.layout.table(self.expected_shares, number) * self.total, 0.0)
            for number, clique in enumerate(self.cliques)
        )

    def parameter_tables(self) -> Mapping[Clique, NDArray[np.float64]]:
        """The parameters of each clique as a table."""
        return {clique: self.layout.table(self.parameters, number) for number, clique in enumerate(self.cliques)}


# ── What a model knows without counts: combinations that cannot be, or only in part ──


IMPOSSIBLE_LOG_WEIGHT = -60.0
"""The logarithm of the weight of what cannot be: sweeps leave it where they can, and are not stuck if they cannot."""


@dataclass(frozen=True, slots=True, eq=False)
class LogFactors:
    """Factors as cliques of a layout.

    Attributes:
        cliques: their attributes.
        logs: the logarithm of the share of each cell, clique after clique.
    """

    cliques: tuple[CliqueIndices, ...]
    logs: CellValues


def build_log_factors(factors: Sequence[Factor], names: Sequence[str], sizes: Sequence[int]) -> LogFactors:
    """The cliques and logarithms of factors."""
    places = {name: place for place, name in enumerate(names)}
    cliques, logs = [], [np.empty(0)]
    for factor in factors:
        own = [places[name] for name in factor.clique]
        if factor.shares.shape != tuple(sizes[place] for place in own):
            raise InternalError(f"the factor of {', '.join(factor.clique)} does not fit the sizes of its attributes")
        clique = order_by_size(own, sizes)
        table = np.transpose(factor.shares, [own.index(place) for place in clique])
        cliques.append(clique)
        logs.append(np.log(np.maximum(table, np.exp(IMPOSSIBLE_LOG_WEIGHT))).ravel())
    return LogFactors(tuple(cliques), np.concatenate(logs))


# ── A fitted model from what a file holds of it ──


def restore_model(
    tables: Sequence[Estimate],
    names: Sequence[str],
    sizes: Sequence[int],
    cliques: Sequence[Clique],
    parameters: CellValues,
    expected_shares: CellValues,
    factors: Sequence[Factor] = (),
) -> GibbsModel:
    """The model that was fitted to these tables and found these numbers; the records of the fit are gone.

    ``cliques`` are in the order of the numbers, each with its attributes in the order of its axes. ``factors`` are what
    was known besides.
    """
    if not (np.isfinite(parameters).all() and np.isfinite(expected_shares).all() and (expected_shares >= 0).all()):
        raise InternalError("a fitted model has a number that is not finite, or expects a negative count")
    places = {name: place for place, name in enumerate(names)}
    targets, known = build_targets(tables, names, sizes), build_log_factors(factors, names, sizes)
    total = estimate_total(targets)
    followed = [tuple(places[name] for name in clique) for clique in cliques]
    return GibbsModel(
        names=tuple(names),
        layout=CliqueLayout.of(sizes, followed, known.cliques),
        forest=build_forest([(target.indices, target.shrink_interaction()) for target in targets], len(names)),
        parameters=parameters,
        expected_shares=expected_shares,
        total=total,
        noise_distance=expected_noise_distance(targets, total),
        records=np.empty((len(names), 0), np.uint16),
        distances=(),
        log_factors=known.logs,
    )
