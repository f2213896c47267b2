"""Slow, obviously correct twins: maximum entropy on a domain small enough to list, and a sweep record by record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.inference.gibbs import GibbsModel
from dpsyn.inference.gibbs.layout import Level
from dpsyn.marginals import Estimate

Shares = NDArray[np.float64]
"""A probability for each combination of all attributes, an axis each."""


def maximum_entropy(tables: Sequence[Estimate], names: Sequence[str], sizes: Sequence[int]) -> Shares:
    """The distribution of greatest entropy that has these tables: iterative proportional fitting until convergence."""
    shares = np.full(sizes, 1 / np.prod(sizes))
    for _ in range(5000):
        before = shares
        for table in tables:
            wanted = over_all(table, names) / table.total
            own = shares.sum(axis=tuple(np.flatnonzero(np.array(wanted.shape) == 1)), keepdims=True)
            shares = shares * np.divide(wanted, own, out=np.zeros(own.shape), where=own > 0)
        if np.abs(shares - before).max() < 1e-13:
            return shares
    raise AssertionError("fitting did not come to a stand")


def over_all(table: Estimate, names: Sequence[str]) -> NDArray[np.float64]:
    """A table with an axis for every attribute, of length one for those it does not have."""
    values = table.project([name for name in names if name in table.clique])
    sizes = iter(values.shape)
    return values.reshape([next(sizes) if name in table.clique else 1 for name in names])


def own_distribution(fitted: GibbsModel) -> Shares:
    """exp Σ_c θ_c(x_c), summed up for each combination."""
    logs = np.zeros(fitted.layout.sizes)
    for clique, parameters in fitted.parameter_tables().items():
        logs = logs + over_all(Estimate(clique, parameters, 0.0), fitted.names)
    weights = np.exp(logs - logs.max())
    shares: Shares = weights / weights.sum()
    return shares


def condition(shares: Shares, names: Sequence[str], where: Mapping[str, NDArray[np.bool_]]) -> tuple[Shares, float]:
    """The distribution of the combinations that meet conditions, and how likely they are."""
    kept = shares.copy()
    for axis, name in enumerate(names):
        if name in where:
            kept = kept * where[name].reshape([-1 if other == axis else 1 for other in range(kept.ndim)])
    return kept / kept.sum(), float(kept.sum())


def empirical_shares(columns: NDArray[np.unsignedinteger], sizes: Sequence[int]) -> Shares:
    """The share of each combination among records, attributes × records."""
    result = np.zeros(sizes)
    for record in columns.T:
        result[tuple(record)] += 1
    shares: Shares = result / columns.shape[1]
    return shares


def total_variation(one: Shares, other: Shares) -> float:
    """Total variation distance."""
    return float(np.abs(one - other).sum() / 2)


def sweep(
    columns: NDArray[np.unsignedinteger],
    weights: Mapping[tuple[int, ...], NDArray[np.float64]],
    sizes: Sequence[int],
    order: Sequence[int],
    stiffness: Mapping[tuple[int, ...], float],
    allowed: Mapping[int, NDArray[np.bool_]],
    uniforms: NDArray[np.float64],
    levels: Sequence[Level] = (),
) -> NDArray[np.unsignedinteger]:
    """A sweep written out: each value of each record is sampled from its conditional, and the cells' weights follow.

    ``weights`` holds for each clique a table over its attributes, or levels of them, which are numbered after the
    attributes; ``uniforms`` a number for each attribute and record.
    """
    attribute_of = [*range(len(sizes)), *(level.attribute for level in levels)]
    group_of = [*(np.arange(size) for size in sizes), *(level.group_of for level in levels)]
    columns, weights = columns.copy(), {clique: table.copy() for clique, table in weights.items()}
    for attribute in order:
        for record in range(columns.shape[1]):
            old = columns[attribute, record]

            def cell(
                clique: tuple[int, ...], value: int, record: int = record, own: int = attribute
            ) -> tuple[int, ...]:
                values = [value if attribute_of[n] == own else columns[attribute_of[n], record] for n in clique]
                return tuple(int(group_of[n][value]) for n, value in zip(clique, values, strict=True))

            near = [clique for clique in weights if attribute in [attribute_of[n] for n in clique]]
            for clique in near:  # the record itself does not count
                weights[clique][cell(clique, old)] *= np.exp(stiffness[clique])
            chances = np.array(
                [
                    np.prod([weights[clique][cell(clique, value)] for clique in near])
                    for value in range(sizes[attribute])
                ]
            ) * allowed.get(attribute, np.ones(sizes[attribute]))
            reach = uniforms[attribute, record] * chances.sum()
            new = int(np.flatnonzero(np.cumsum(chances) > reach)[0])
            columns[attribute, record] = new
            for clique in near:
                weights[clique][cell(clique, new)] *= np.exp(-stiffness[clique])
    return columns


def count_cells(columns: NDArray[np.unsignedinteger], clique: Sequence[int], sizes: Sequence[int]) -> NDArray[np.int64]:
    """The number of records in each cell of a clique, counted one by one."""
    table = np.zeros([sizes[index] for index in clique], np.int64)
    for record in columns.T:
        table[tuple(int(record[index]) for index in clique)] += 1
    return table


def uniform(key: int, attribute: int, record: int) -> float:
    """The kernel's random number for a value: SplitMix64 of the key and the attribute, then of that and the record."""
    golden, everything = 0x9E3779B97F4A7C15, 2**64 - 1

    def mix(word: int) -> int:
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & everything
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & everything
        return word ^ (word >> 31)

    stream = mix((key + (attribute + 1) * golden) & everything)
    return (mix((stream + (record + 1) * golden) & everything) >> 40) / 2**24
