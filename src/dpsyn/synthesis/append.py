"""Attribute appending: what one table alone says is drawn afterwards, and so matches exactly (PrivSyn, section on GUM).

An attribute of a single table is taken out; the rest of the table stays, unless another table says it already. What is
left may again have an attribute of a single table, and so on: tables that form a tree vanish altogether, and need no
fitting. In reverse order each attribute is then drawn from its conditional distribution, given the rest of its table.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.marginals import Clique, Estimate


@dataclass(frozen=True, slots=True, eq=False)
class Appendix:
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


def uncovered(tables: Iterable[Estimate]) -> list[Estimate]:
    """Consistent tables without those whose attributes are all in another one; of equal cliques the most precise."""
    kept: dict[int, Estimate] = {}
    holders: dict[str, set[int]] = defaultdict(set)
    for number, table in sorted(enumerate(tables), key=lambda item: (-len(item[1].clique), item[1].variance)):
        if table.clique and not set[int].intersection(*(holders[name] for name in table.clique)):
            kept[number] = table
            for name in table.clique:
                holders[name].add(number)
    return [kept[number] for number in sorted(kept)]


def peel(tables: Iterable[Estimate]) -> tuple[list[Estimate], list[Appendix]]:
    """The tables that are left to be fitted, and the attributes to append afterwards, in that order.

    Which of several attributes goes first makes no difference to what is left (Graham's reduction of a hypergraph).
    """
    left = dict(enumerate(uncovered(tables)))
    holders: dict[str, set[int]] = defaultdict(set)
    for number, table in left.items():
        for name in table.clique:
            holders[name].add(number)
    taken: list[Appendix] = []
    lonely = [name for name, held in holders.items() if len(held) == 1]
    while lonely:
        name = lonely.pop()
        (number,) = holders.pop(name)
        table = left.pop(number)
        given = tuple(other for other in table.clique if other != name)
        taken.append(Appendix(given, name, table.onto([*given, name])))
        if given and len(set[int].intersection(*(holders[other] for other in given))) == 1:
            left[number] = Estimate(given, table.onto(given), table.variance * table.values.shape[_axis(table, name)])
        else:
            for other in given:
                holders[other].remove(number)
                if len(holders[other]) == 1:
                    lonely.append(other)
    return [left[number] for number in sorted(left)], taken[::-1]


def _axis(table: Estimate, name: str) -> int:
    return table.clique.index(name)


def append(
    columns: Mapping[str, NDArray[np.int32]], appendix: Appendix, rows: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """The codes of an attribute, given those of others: within each of their cells as its table says, to rounding.

    Each code's number of records in a cell is its expectation rounded up or down, which of the two is drawn such that
    it is right on average; the records of a cell get their codes in random order.
    """
    parents = _cells([columns[name] for name in appendix.given], appendix.values.shape[:-1], rows)
    weights = appendix.values.reshape(-1, appendix.values.shape[-1])
    counts = _shared_out(np.bincount(parents, minlength=len(weights)), weights, rng)
    order = rng.permutation(rows)
    order = order[np.argsort(parents[order], kind="stable")]
    codes = np.empty(rows, np.int32)
    codes[order] = np.repeat(np.tile(np.arange(counts.shape[1], dtype=np.int32), len(counts)), counts.ravel())
    return codes


def _cells(columns: Sequence[NDArray[np.int32]], shape: Sequence[int], rows: int) -> NDArray[np.integer]:
    """The cell of each record, as the narrowest number that sorts fast."""
    cells = np.zeros(rows, np.int64)
    for column, size in zip(columns, shape, strict=True):
        cells = cells * size + column
    return cells.astype(np.uint16) if math.prod(shape) <= 1 << 16 else cells


def _shared_out(
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
