"""The fitted maximum-entropy model, its factors, and its restoration from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference.gibbs.forest import Forest, build_forest
from dpsyn.inference.gibbs.layout import CellValues, CliqueIndices, CliqueLayout, Columns, order_by_size
from dpsyn.inference.gibbs.targets import (
    Target,
    build_targets,
    estimate_total,
    expected_noise_distance,
    find_variable,
)
from dpsyn.marginals import Clique, Estimate, Factor


@dataclass(frozen=True, slots=True, eq=False)
class GibbsModel:
    """A distribution p(x) ∝ exp Σ_c θ_c(x_c) over records, and its marginals.

    Attributes:
        names: the attributes.
        layout: the cliques: the target cliques, whose counts were fitted, then those of the factors.
        forest: the initial distribution.
        parameters: θ, a number for each cell of each target clique.
        expected_shares: the expected count of each of these cells, as a share of all records.
        total: the total of the tables.
        noise_distance: the expected distance between the tables and the true ones because of noise, as a mean total
            variation distance.
        records: the records of the fit (attributes × records), polished to the expected counts.
        distances: the mean total variation distance between records and tables after each sweep.
        log_factors: the logarithms of the shares of the factors, one for each cell of their cliques.
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
        """The attributes of each target clique, in the order of their cells."""
        target_cliques = self.layout.cliques[: self.layout.target_count]
        return tuple(tuple(self.names[self.layout.attribute_of(v)] for v in clique) for clique in target_cliques)

    @property
    def levels(self) -> tuple[Mapping[str, NDArray[np.int64]], ...]:
        """For each target clique, the groups of the attributes that it holds at a coarser level."""
        target_cliques = self.layout.cliques[: self.layout.target_count]
        return tuple(
            {
                self.names[level.attribute]: level.group_of
                for variable in clique
                if (level := self.layout.level_of(variable)) is not None
            }
            for clique in target_cliques
        )

    @property
    def log_weights(self) -> CellValues:
        """The logarithm of the weight of every cell of every clique."""
        return np.concatenate([self.parameters, self.log_factors])

    def expected_counts(self, rows: int) -> CellValues:
        """The expected counts of ``rows`` rows in every cell; 0 in the cliques of factors."""
        return np.concatenate([self.expected_shares * rows, np.zeros(len(self.log_factors))])

    def conditional_counts(
        self, rows: int, allowed: Mapping[int, NDArray[np.float64]]
    ) -> tuple[CellValues, NDArray[np.bool_]]:
        """The expected counts of ``rows`` rows under conditions, and for which cliques they are known.

        They are known for cliques that hold every conditioned attribute: there they are the model's own table,
        restricted to the conditions.
        """
        counts = self.expected_counts(1)
        known = np.zeros(len(self.layout.cliques), np.bool_)
        for index, clique in enumerate(self.layout.cliques[: self.layout.target_count]):  # a level is not its attribute
            if not allowed.keys() <= set(clique):
                continue
            table = self.layout.table(counts, index)
            for attribute, weights in allowed.items():
                table *= np.expand_dims(weights, tuple(axis for axis, other in enumerate(clique) if other != attribute))
            share = float(table.sum())
            known[index] = share > 0
            table *= rows / share if share > 0 else 0.0
        return counts, known

    def marginals(self) -> tuple[Estimate, ...]:
        """The model's own marginals of its target cliques, as counts of ``total`` records. Their noise is not known."""
        return tuple(
            Estimate(clique, self.layout.table(self.expected_shares, index) * self.total, 0.0, levels)
            for index, (clique, levels) in enumerate(zip(self.cliques, self.levels, strict=True))
        )

    def parameter_tables(self) -> Mapping[Clique, NDArray[np.float64]]:
        """The parameters of each target clique as a table."""
        return {clique: self.layout.table(self.parameters, index) for index, clique in enumerate(self.cliques)}


# ── the initial forest ───────────────────────────────────────────────────────────────────────────────────────


_MAX_FOREST_CELLS = 1_000_000
"""The maximum number of cells of a table of the forest, over the values of all its attributes."""


def build_initial_forest(targets: Sequence[Target], layout: CliqueLayout) -> Forest:
    """The forest of the targets' tables; tables at coarser levels are expanded to the values of their attributes.

    Inside a group, values are distributed as in the attribute's own table, whatever the other attributes are. Tables
    that would be too large then are left out; an attribute that is in no other one stands alone.
    """
    tables, sources = [], []
    for index, target in enumerate(targets):
        attributes = [layout.attribute_of(variable) for variable in target.indices]
        if int(np.prod([layout.sizes[axis] for axis in attributes])) > _MAX_FOREST_CELLS and len(attributes) > 1:
            continue
        values = target.shrink_interaction()
        for axis, variable in enumerate(target.indices):
            if (level := layout.level_of(variable)) is not None:
                values = _expand_groups(values, axis, level.group_of, find_one_way(targets, level.attribute)[1])
        tables.append((tuple(attributes), values))
        sources.append(index)
    for attribute in set(range(len(layout.sizes))).difference(*(attributes for attributes, _ in tables)):
        index, counts = find_one_way(targets, attribute)
        tables.append(((attribute,), counts))
        sources.append(index)
    forest = build_forest(tables, len(layout.sizes))
    return Forest(tuple(replace(branch, source=sources[branch.source]) for branch in forest.branches))


def find_one_way(targets: Sequence[Target], attribute: int) -> tuple[int, CellValues]:
    """A target that holds an attribute itself, by its index, and the non-negative counts of the attribute in it."""
    holders = [index for index, target in enumerate(targets) if attribute in target.indices]
    if not holders:
        raise InternalError("an attribute is in the tables of a model at coarser levels only")
    index = min(holders, key=lambda index: targets[index].variance * targets[index].values.size)
    values = targets[index].project_nonnegative()
    axis = targets[index].indices.index(attribute)
    return index, np.asarray(values.sum(axis=tuple(other for other in range(values.ndim) if other != axis)))


def _expand_groups(values: CellValues, axis: int, group_of: NDArray[np.int64], counts: CellValues) -> CellValues:
    """A table with an axis of groups expanded to the values of the groups, in proportion to their counts."""
    members = np.bincount(group_of)
    sums = np.bincount(group_of, counts)
    shares = np.where(sums[group_of] > 0, counts / np.maximum(sums[group_of], 1e-300), 1 / members[group_of])
    shape = [-1 if other == axis else 1 for other in range(values.ndim)]
    return np.take(values, group_of, axis=axis) * shares.reshape(shape)


# ── factors: combinations that are impossible, or only partly possible ───────────────────────────────────────


IMPOSSIBLE_LOG_WEIGHT = -60.0
"""The log weight of an impossible combination: sweeps leave it if they can, and do not get stuck if they cannot."""


@dataclass(frozen=True, slots=True, eq=False)
class LogFactors:
    """Factors as cliques of a layout.

    Attributes:
        cliques: the attributes of each factor, as indices.
        logs: the logarithm of the share of each cell, clique after clique.
    """

    cliques: tuple[CliqueIndices, ...]
    logs: CellValues


def build_log_factors(factors: Sequence[Factor], names: Sequence[str], sizes: Sequence[int]) -> LogFactors:
    """Convert factors to cliques and logarithms."""
    axes = {name: axis for axis, name in enumerate(names)}
    cliques, logs = [], [np.empty(0)]
    for factor in factors:
        indices = [axes[name] for name in factor.clique]
        if factor.shares.shape != tuple(sizes[index] for index in indices):
            raise InternalError(f"the factor of {', '.join(factor.clique)} does not fit the sizes of its attributes")
        clique = order_by_size(indices, sizes)
        table = np.transpose(factor.shares, [indices.index(index) for index in clique])
        cliques.append(clique)
        logs.append(np.log(np.maximum(table, np.exp(IMPOSSIBLE_LOG_WEIGHT))).ravel())
    return LogFactors(tuple(cliques), np.concatenate(logs))


# ── restoration from a file ──────────────────────────────────────────────────────────────────────────────────


def restore_model(
    tables: Sequence[Estimate],
    names: Sequence[str],
    sizes: Sequence[int],
    cliques: Sequence[tuple[Clique, Mapping[str, NDArray[np.int64]]]],
    parameters: CellValues,
    expected_shares: CellValues,
    factors: Sequence[Factor] = (),
) -> GibbsModel:
    """Restore a fitted model from its stored numbers; the records of the fit are not restored.

    Args:
        tables: the tables that the model was fitted to.
        names: the attributes.
        sizes: the number of values of each attribute.
        cliques: the target cliques in the order of the stored numbers, each with the attributes in the order of its
            axes, and the groups of those at a coarser level.
        parameters: θ of each cell.
        expected_shares: the expected share of each cell.
        factors: the factors of the fit.
    """
    if not (np.isfinite(parameters).all() and np.isfinite(expected_shares).all() and (expected_shares >= 0).all()):
        raise InternalError("a fitted model has a number that is not finite, or a negative expected count")
    axes = {name: axis for axis, name in enumerate(names)}
    (targets, levels), log_factors = build_targets(tables, names, sizes), build_log_factors(factors, names, sizes)
    total = estimate_total(targets)
    target_cliques = [
        tuple(find_variable(axes[name], groups.get(name), sizes, levels) for name in clique)
        for clique, groups in cliques
    ]
    layout = CliqueLayout.of(sizes, target_cliques, log_factors.cliques, levels)
    return GibbsModel(
        names=tuple(names),
        layout=layout,
        forest=build_initial_forest(targets, layout),
        parameters=parameters,
        expected_shares=expected_shares,
        total=total,
        noise_distance=expected_noise_distance(targets, total),
        records=np.empty((len(names), 0), np.uint16),
        distances=(),
        log_factors=log_factors.logs,
    )
