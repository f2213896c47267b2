"""Separate and join, and attribute appending (DPSyn paper, appendix A, "Improving the Convergence").

Attributes that no table connects are synthesized separately. Attributes that only one table holds are sampled from that
table afterwards, and so match it up to rounding. Only the remaining tables have to be fitted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference.gum.gradual_update import Records
from dpsyn.marginals import Clique, Estimate


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """A connected component: attributes that tables connect, and these tables."""

    names: tuple[str, ...]
    tables: tuple[Estimate, ...]


def separate_components(tables: Sequence[Estimate], names: Sequence[str]) -> list[Component]:
    """The connected components, in the order of their first attributes; an attribute without a table is one, too."""
    leader = {name: name for name in names}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for table in tables:
        for name in table.clique[1:]:
            leader[find(name)] = find(table.clique[0])
    parts: dict[str, tuple[list[str], list[Estimate]]] = {}
    for name in names:
        parts.setdefault(find(name), ([], []))[0].append(name)
    for table in tables:
        if table.clique:
            parts[find(table.clique[0])][1].append(table)
    return [Component(tuple(members), tuple(held)) for members, held in parts.values()]


def join_components(
    parts: Sequence[Mapping[str, NDArray[np.int32]]], names: Sequence[str], rows: int, rng: np.random.Generator
) -> Records:
    """Join the columns of components into records, the rows of each component in its own random order."""
    joined = np.empty((len(names), rows), np.int32)
    axes = {name: axis for axis, name in enumerate(names)}
    for part in parts:
        order = rng.permutation(rows)
        for name, column in part.items():
            np.take(column, order, out=joined[axes[name]])
    return joined.T


# ── attribute appending ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class AppendedAttribute:
    """An attribute to be sampled from one table, given other attributes.

    Attributes:
        given: the other attributes of the table.
        name: the attribute.
        values: the table's counts, the attribute on the last axis.
    """

    given: Clique
    name: str
    values: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.given) + 1:
            raise InternalError(f"{self.name!r} given {len(self.given)} attributes has {self.values.ndim} axes")


def drop_covered_tables(tables: Iterable[Estimate]) -> list[Estimate]:
    """Drop consistent tables whose attributes are all in another one; of equal cliques keep the most precise."""
    kept: dict[int, Estimate] = {}
    holders: dict[str, set[int]] = defaultdict(set)
    for index, table in sorted(enumerate(tables), key=lambda item: (-len(item[1].clique), item[1].variance)):
        if table.clique and not set[int].intersection(*(holders[name] for name in table.clique)):
            kept[index] = table
            for name in table.clique:
                holders[name].add(index)
    return [kept[index] for index in sorted(kept)]


def detach_attributes(tables: Iterable[Estimate]) -> tuple[list[Estimate], list[AppendedAttribute]]:
    """Detach attributes that one table alone holds; returns the tables left to fit and the attributes to append.

    Attributes are to be appended in the order returned. The order in which they are detached makes no difference to the
    tables left (Graham's reduction of a hypergraph).
    """
    left = dict(enumerate(drop_covered_tables(tables)))
    holders: dict[str, set[int]] = defaultdict(set)
    for index, table in left.items():
        for name in table.clique:
            holders[name].add(index)
    detached: list[AppendedAttribute] = []
    in_one_table = [name for name, held in holders.items() if len(held) == 1]
    while in_one_table:
        name = in_one_table.pop()
        (index,) = holders.pop(name)
        table = left.pop(index)
        given = tuple(other for other in table.clique if other != name)
        detached.append(AppendedAttribute(given, name, table.project([*given, name])))
        if given and len(set[int].intersection(*(holders[other] for other in given))) == 1:
            size = table.values.shape[table.clique.index(name)]
            left[index] = Estimate(given, table.project(given), table.variance * size)
        else:
            for other in given:
                holders[other].remove(index)
                if len(holders[other]) == 1:
                    in_one_table.append(other)
    return [left[index] for index in sorted(left)], detached[::-1]


def append_attribute(
    columns: Mapping[str, NDArray[np.int32]], attribute: AppendedAttribute, rows: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Sample the codes of an attribute, given those of others: in each of their cells as in its table, up to rounding.

    The number of records of each code in a cell is its expectation, rounded up or down at random such that it is right
    on average. The records of a cell get their codes in random order.
    """
    parents = _cell_indices([columns[name] for name in attribute.given], attribute.values.shape[:-1], rows)
    weights = attribute.values.reshape(-1, attribute.values.shape[-1])
    counts = _allocate_records(np.bincount(parents, minlength=len(weights)), weights, rng)
    order = rng.permutation(rows)
    order = order[np.argsort(parents[order], kind="stable")]
    codes = np.empty(rows, np.int32)
    codes[order] = np.repeat(np.tile(np.arange(counts.shape[1], dtype=np.int32), len(counts)), counts.ravel())
    return codes


def _cell_indices(columns: Sequence[NDArray[np.int32]], shape: Sequence[int], rows: int) -> NDArray[np.integer]:
    """The cell of each record, as the narrowest integer type that sorts fast."""
    cells = np.zeros(rows, np.int64)
    for column, size in zip(columns, shape, strict=True):
        cells = cells * size + column
    return cells.astype(np.uint16) if math.prod(shape) <= 1 << 16 else cells


def _allocate_records(
    records: NDArray[np.int64], weights: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Allocate the records of each cell to codes, as integers in proportion to the weights of the cell.

    A cell without weights uses those of all cells together, and if these are zero too, equal weights. The offsets of
    the rounding are spread evenly over the cells, so they cancel out in the sum.
    """
    overall = weights.sum(axis=0)
    weights = np.where(weights.any(axis=1, keepdims=True), weights, overall if overall.any() else np.ones_like(overall))
    running = np.cumsum(weights, axis=1)
    offsets = (rng.permutation(len(weights)) + rng.random(len(weights))) / len(weights)
    edges = np.floor(running * (records / running[:, -1])[:, None] + offsets[:, None]).astype(np.int64)
    edges = np.where(running == running[:, -1:], records[:, None], edges)
    return np.diff(edges, axis=1, prepend=0)
