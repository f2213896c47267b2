"""Separate and join: attributes that no table connects are synthesized apart (PrivSyn, section on GUM)."""

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
    """Attributes that tables connect, and those tables."""

    names: tuple[str, ...]
    tables: tuple[Estimate, ...]


def separate_components(tables: Sequence[Estimate], names: Sequence[str]) -> list[Component]:
    """The connected components, in the order of their first attributes; an attribute without a table is one."""
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
    return [Component(tuple(members), tuple(own)) for members, own in parts.values()]


def join_components(
    parts: Sequence[Mapping[str, NDArray[np.int32]]], names: Sequence[str], rows: int, rng: np.random.Generator
) -> Records:
    """Records put together from the columns of components, the rows of each in a random order of its own."""
    joined = np.empty((len(names), rows), np.int32)
    place = {name: number for number, name in enumerate(names)}
    for part in parts:
        order = rng.permutation(rows)
        for name, column in part.items():
            np.take(column, order, out=joined[place[name]])
    return joined.T


# ── Attribute appending: what one table alone says is drawn afterwards, and so matches exactly (PrivSyn, section on GUM) ──


@dataclass(frozen=True, slots=True, eq=False)
class AppendedAttribute:
    """An attribute to be drawn from one table, given others.

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
    """Consistent tables without those whose attributes are all in another one; of equal cliques the most precise."""
    kept: dict[int, Estimate] = {}
    holders: dict[str, set[int]] = defaultdict(set)
    for number, table in sorted(enumerate(tables), key=lambda item: (-len(item[1].clique), item[1].variance)):
        if table.clique and not set[int].intersection(*(holders[name] for name in table.clique)):
            kept[number] = table
            for name in table.clique:
                holders[name].add(number)
    return [kept[number] for number in sorted(kept)]


def detach_attributes(tables: Iterable[Estimate]) -> tuple[list[Estimate], list[AppendedAttribute]]:
    """The tables that are left to be fitted, and the attributes to append afterwards, in that order.

    Which of several attributes goes first makes no difference to what is left (Graham's reduction of a hypergraph).
    """
    left = dict(enumerate(drop_covered_tables(tables)))
    holders: dict[str, set[int]] = defaultdict(set)
    for number, table in left.items():
        for name in table.clique:
            holders[name].add(number)
    taken: list[AppendedAttribute] = []
    lonely = [name for name, held in holders.items() if len(held) == 1]
    while lonely:
        name = lonely.pop()
        (number,) = holders.pop(name)
        table = left.pop(number)
        given = tuple(other for other in table.clique if other != name)
        taken.append(AppendedAttribute(given, name, table.project([*given, name])))
        if given and len(set[int].intersection(*(holders[other] for other in given))) == 1:
            left[number] = Estimate(
                given, table.project(given), table.variance * table.values.shape[_axis(table, name)]
            )
        else:
            for other in given:
                holders[other].remove(number)
                if len(holders[other]) == 1:
                    lonely.append(other)
    return [left[number] for number in sorted(left)], taken[::-1]


def _axis(table: Estimate, name: str) -> int:
    return table.clique.index(name)


def append_attribute(
    columns: Mapping[str, NDArray[np.int32]], attribute: AppendedAttribute, rows: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """The codes of an attribute, given those of others: within each of their cells as its table says, to rounding.

    Each code's number of records in a cell is its expectation rounded up or down, which of the two is drawn such that
    it is right on average; the records of a cell get their codes in random order.
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
    """The cell of each record, as the narrowest number that sorts fast."""
    cells = np.zeros(rows, np.int64)
    for column, size in zip(columns, shape, strict=True):
        cells = cells * size + column
    return cells.astype(np.uint16) if math.prod(shape) <= 1 << 16 else cells


def _allocate_records(
    records: NDArray[np.int64], weights: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """The records of each cell, shared out in whole numbers in proportion to its weights.

    A cell whose table is empty follows all cells together, and if those are empty, all codes alike. The offsets of
    rounding are spread evenly over the cells, so that they cancel out in the sum.
    """
    overall = weights.sum(axis=0)
    weights = np.where(weights.any(axis=1, keepdims=True), weights, overall if overall.any() else np.ones_like(overall))
    running = np.cumsum(weights, axis=1)
    offsets = (rng.permutation(len(weights)) + rng.random(len(weights))) / len(weights)
    edges = np.floor(running * (records / running[:, -1])[:, None] + offsets[:, None]).astype(np.int64)
    edges = np.where(running == running[:, -1:], records[:, None], edges)
    return np.diff(edges, axis=1, prepend=0)
