"""A real table, a synthetic one and two yardsticks, as codes of one domain.

Codes are exact: a listed attribute has its cells, a number or date the values that occur. Metrics look at them through
*views*, in which codes are merged: into the schema's bins, or into the contest's buckets.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import narrowest_dtype
from dpsyn.errors import InternalError
from dpsyn.schema import MISSING, Categorical, Integer, Ordinal, Ranged, Real
from dpsyn.schema.attributes import Attribute

CodeColumns = NDArray[Any]
"""Attributes × rows, each attribute contiguous, in the narrowest unsigned type."""

CONTEST_BUCKETS = 100
"""Into which the contest cuts a number or date."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Domain:
    """The codes of one attribute.

    Attributes:
        attribute: what is public about it; an open attribute has become a list of the values seen in either table.
        kind: as the schema calls it.
        steps: of a number or date, the lattice steps that occur, ascending, one for each code; None for listed values.
            The code after the last means missing.
    """

    attribute: Attribute
    kind: str
    steps: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.attribute, Ranged) != (self.steps is not None):
            raise InternalError(f"numbers and dates have steps, listed values have none: {self.attribute.name!r}")

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.attribute.name

    @property
    def missing(self) -> int:
        """The code of an empty cell, or the one after the last if there is none."""
        return self.attribute.proper_cells if self.steps is None else len(self.steps)

    @property
    def size(self) -> int:
        """The number of codes."""
        return self.attribute.cells if self.steps is None else len(self.steps) + 1

    @property
    def ordered_bins(self) -> int:
        """How many bins, the first ones, have an order; 0 if the attribute has none."""
        if isinstance(self.attribute, Ranged):
            return self.attribute.grid().bins
        if isinstance(self.attribute, Ordinal):
            return len(self.attribute.values) or self.attribute.codes or 0
        return 0

    def bin_of_code(self) -> NDArray[np.int64]:
        """The bin of each code, as marginals over several attributes use them."""
        if not isinstance(self.attribute, Ranged) or self.steps is None:
            return np.arange(self.size)
        grid = self.attribute.grid()
        return np.append(grid.bin_of_cell[grid.cell_of(self.steps)], self.attribute.size - 1)

    def bucket_of_code(self) -> NDArray[np.int64]:
        """The bucket of each code: of a number or date, one of 100 of width 1.0001·(max−min)/100, or the empty one."""
        if not isinstance(self.attribute, Ranged) or self.steps is None:
            return np.arange(self.size)
        width = 1.0001 * (self.attribute.steps - 1) / CONTEST_BUCKETS
        places = (self.steps / width).astype(np.int64) if width else np.zeros(len(self.steps), np.int64)
        return np.append(places, CONTEST_BUCKETS)

    def numbers(self) -> NDArray[np.float64] | None:
        """The number that each code stands for, not-a-number if it is missing; None if its values are not numbers."""
        attribute = self.attribute
        if isinstance(attribute, Integer | Real) and self.steps is not None:
            return np.append(attribute.values_at(self.steps).astype(np.float64), np.nan)
        if not isinstance(attribute, Categorical):
            return None
        listed = attribute.all_values()
        if not all(isinstance(value, int | float) for value in listed):
            return None
        return np.array([*map(float, listed), *([np.nan] * attribute.has_missing)])

    def labels(self) -> tuple[str, ...]:
        """A short text for each code."""
        if not isinstance(self.attribute, Ranged) or self.steps is None:
            return self.attribute.labels()
        return (*map(self.attribute.text_at, self.steps.tolist()), MISSING)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CodedTables:
    """The tables, seen through one set of codes.

    Attributes:
        sizes: how many codes each attribute has.
        tables: the real table, the synthetic one, the sampling floor, the independent model.
    """

    sizes: tuple[int, ...]
    tables: tuple[CodeColumns, CodeColumns, CodeColumns, CodeColumns]

    @property
    def rows(self) -> tuple[int, ...]:
        """How many rows each table has."""
        return tuple(table.shape[1] for table in self.tables)

    def merge_codes(self, lookups: Sequence[NDArray[np.int64]], sizes: Sequence[int]) -> CodedTables:
        """The tables with other codes: for each attribute a table of the new code of each old one."""
        dtype = narrowest_dtype(max(sizes))
        narrow = [lookup.astype(dtype) for lookup in lookups]
        real, synthetic, floor, independent = (_apply_lookups(table, narrow) for table in self.tables)
        return CodedTables(tuple(sizes), (real, synthetic, floor, independent))


def _apply_lookups(table: CodeColumns, lookups: Sequence[NDArray[Any]]) -> CodeColumns:
    found = np.empty(table.shape, lookups[0].dtype)
    for place, lookup in enumerate(lookups):
        found[place] = lookup[table[place]]
    return found


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationTables:
    """Two tables and their yardsticks, ready to be compared.

    Rows are in an order of their own, so that nothing depends on that of the files.

    Attributes:
        real: how messages call the real table.
        synthetic: how messages call the synthetic one.
        domains: one for each attribute that is compared, in the schema's order.
        exact: the tables in the codes of these domains.
        outside: for each of them the share of real and of synthetic cells that are not in it and took another's place.

    Privacy: it holds the real rows.
    """

    real: str
    synthetic: str
    domains: tuple[Domain, ...]
    exact: CodedTables
    outside: tuple[tuple[float, float], ...]

    @functools.cached_property
    def bins(self) -> CodedTables:
        """The tables in bins."""
        lookups = [domain.bin_of_code() for domain in self.domains]
        return self.exact.merge_codes(lookups, [domain.attribute.size for domain in self.domains])

    def buckets(self) -> CodedTables:
        """The tables in the contest's buckets."""
        lookups = [domain.bucket_of_code() for domain in self.domains]
        sizes = [domain.size if domain.steps is None else CONTEST_BUCKETS + 1 for domain in self.domains]
        return self.exact.merge_codes(lookups, sizes)

    def axis_of(self, name: str) -> int:
        """The place of an attribute among those compared."""
        return [domain.name for domain in self.domains].index(name)


# ── Rows as few machine words, by which they are put in order and compared ──


SortKeys = NDArray[np.uint64]


def sort_rows(columns: CodeColumns, sizes: Sequence[int]) -> CodeColumns:
    """The same rows, sorted: what is drawn from them does not depend on the order of a file."""
    return np.ascontiguousarray(columns[:, np.lexsort(_sort_keys(columns, sizes))])


def find_shared_rows(first: CodeColumns, second: CodeColumns, sizes: Sequence[int]) -> NDArray[np.bool_]:
    """Which rows of the second table are equal to some row of the first."""
    words = [np.concatenate(pair) for pair in zip(_sort_keys(first, sizes), _sort_keys(second, sizes), strict=True)]
    order = np.lexsort(words)
    starts = np.zeros(len(order), np.bool_)
    for word in words:
        starts[1:] |= word[order[1:]] != word[order[:-1]]
    groups = np.empty(len(order), np.int64)
    groups[order] = np.cumsum(starts)
    split = first.shape[1]
    known = np.zeros(len(order) + 1, np.bool_)
    known[groups[:split]] = True
    found: NDArray[np.bool_] = known[groups[split:]]
    return found


def _sort_keys(columns: CodeColumns, sizes: Sequence[int]) -> list[SortKeys]:
    """For each row some numbers that tell it from every other, its codes being their digits."""
    words: list[SortKeys] = []
    room = 1
    for column, size in zip(columns, sizes, strict=True):
        if not words or size > room:
            words.append(np.zeros(columns.shape[1], np.uint64))
            room = 2**64
        words[-1] = words[-1] * np.uint64(size) + column
        room //= size
    return words


# ── Tables made of the real one, against which figures are read ──


def bootstrap_rows(table: CodeColumns, rows: int, rng: np.random.Generator) -> CodeColumns:
    """The sampling floor: rows of a table, drawn with replacement."""
    return np.ascontiguousarray(table[:, rng.integers(0, table.shape[1], rows)])


def shuffle_columns(table: CodeColumns, rows: int, rng: np.random.Generator) -> CodeColumns:
    """The independent model: each column in a random order of its own; at most as many rows as the table has."""
    return np.stack([rng.permutation(column)[:rows] for column in table])


# ── Random choices of an evaluation: each purpose has numbers of its own, so that none disturbs another ──


def make_generator(seed: int, purpose: str) -> np.random.Generator:
    """Random numbers for one purpose, the same for the same seed."""
    return np.random.default_rng([seed, *purpose.encode()])
