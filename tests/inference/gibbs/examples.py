"""Records with relations of every kind, and exact tables of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.inference.gibbs import GibbsModel
from dpsyn.marginals import Estimate

Codes = NDArray[np.int64]
"""Attributes × records."""


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """Records, how many values their attributes have, and which tables of them are known."""

    records: Codes
    sizes: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Attributes are named by their indices."""
        return tuple(str(index) for index in range(len(self.sizes)))

    def tables(self, variance: float = 0.0) -> list[Estimate]:
        """Exact counts that claim to have a little noise."""
        return [table(self.records, clique, self.sizes, variance) for clique in self.cliques]


def table(columns: NDArray[np.integer], clique: Sequence[int], sizes: Sequence[int], variance: float = 0.0) -> Estimate:
    """The counts of some attributes."""
    shape = [sizes[index] for index in clique]
    cells = np.ravel_multi_index(tuple(columns[index].astype(np.int64) for index in clique), shape)
    counts = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
    return Estimate(tuple(str(index) for index in clique), counts.astype(float), variance)


def distances(columns: NDArray[np.integer], tables: Sequence[Estimate], sizes: Sequence[int]) -> NDArray[np.float64]:
    """The total variation distance of each table and the records' own."""
    own = [table(columns, [int(name) for name in known.clique], sizes) for known in tables]
    pairs = zip(own, tables, strict=True)
    return np.array([np.abs(mine.values / mine.total - known.values / known.total).sum() / 2 for mine, known in pairs])


def marginal_distances(fitted: GibbsModel, tables: Sequence[Estimate]) -> NDArray[np.float64]:
    """The same for a model's own marginals."""
    own = {frozenset(marginal.clique): marginal for marginal in fitted.marginals()}
    result = [
        np.abs(own[frozenset(known.clique)].project(known.clique) / fitted.total - known.values / known.total).sum() / 2
        for known in tables
    ]
    return np.array(result)


def dependent_codes(records: int, sizes: Sequence[int], seed: int) -> Codes:
    """Records whose attributes all depend on something hidden, some of them closely."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(records)
    shares = [0.2 + 0.7 * index / len(sizes) for index in range(len(sizes))]
    sampled = [np.where(rng.random(records) < share, hidden, rng.random(records)) for share in shares]
    return np.array([value**2 * size for value, size in zip(sampled, sizes, strict=True)]).astype(np.int64)


SIZES = (4, 5, 3, 6, 2, 7)


def tree(records: int) -> Example:
    return Example(dependent_codes(records, SIZES, 1), SIZES, ((0, 1), (1, 2), (2, 3), (2, 4), (4, 5)))


def all_cliques(records: int, width: int) -> Example:
    return Example(dependent_codes(records, SIZES, 1), SIZES, tuple(combinations(range(len(SIZES)), width)))


def nearly_determined(records: int) -> Example:
    """One value in a thousand of an attribute is not that of another."""
    rng, codes = np.random.default_rng(2), dependent_codes(records, SIZES, 1)
    codes[1] = np.where(rng.random(records) < 0.999, codes[0], rng.integers(0, 5, records))
    return Example(codes, SIZES, tuple(combinations(range(len(SIZES)), 2)))


def duplicate_attribute(records: int) -> Example:
    """Three attributes are copies of others, two of them of the same one."""
    codes, sizes = dependent_codes(records, SIZES, 1), (*SIZES, 6, 6, 7)
    return Example(np.vstack([codes, codes[3], codes[3], codes[5]]), sizes, tuple(combinations(range(9), 2)))


def exclusive_or(records: int) -> Example:
    """Any two of three attributes are independent and determine the third."""
    rng = np.random.default_rng(3)
    one, two = (rng.random((2, records)) < [[0.3], [0.6]]).astype(np.int64)
    fourth = dependent_codes(records, (4,), 1)
    return Example(np.vstack([one, two, one ^ two, fourth]), (2, 2, 2, 4), ((0, 1, 2), (0, 3), (1, 3), (2, 3)))


def chained_exclusive_or(records: int) -> Example:
    """Four triples of that kind, which share attributes in a circle."""
    one, two, three = np.random.default_rng(4).integers(0, 2, (3, records))
    codes = np.vstack([one, two, three, one ^ two, two ^ three, one ^ two ^ three])
    return Example(codes, (2,) * 6, ((0, 1, 3), (1, 2, 4), (2, 3, 5), (0, 4, 5)))


def coarse(records: int) -> Example:
    """An attribute is the coarse code of another, and a third depends on the fine one."""
    rng = np.random.default_rng(5)
    fine = np.minimum(*rng.integers(0, 40, (2, records)))
    other = dependent_codes(records, (4,), 1)[0]
    codes = np.vstack([fine, fine // 10, other, (fine // 4 + other) % 10])
    return Example(codes, (40, 4, 4, 10), tuple(combinations(range(4), 2)))


HARD: dict[str, Callable[[int], Example]] = {
    "nearly determined pairs": nearly_determined,
    "duplicated columns": duplicate_attribute,
    "an exclusive or": exclusive_or,
    "exclusive ors in a circle": chained_exclusive_or,
    "a column and its coarse code": coarse,
}
