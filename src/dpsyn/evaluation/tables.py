"""The real table, the synthetic one and the two baselines, as integer codes of one domain.

Codes are exact: a listed attribute has a code for each cell of its domain, a number or date for each value that occurs.
Metrics use *views* in which codes are merged: into the schema's bins, or into the buckets of the NIST contest.
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
"""An array of attributes × rows, each attribute contiguous, in the narrowest unsigned type."""

CONTEST_BUCKETS = 100
"""The number of buckets into which the contest divides a number or date."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Domain:
    """The codes of one attribute.

    Attributes:
        attribute: what is public about it; an open attribute is replaced by the list of values seen in either table.
        kind: its kind in the schema.
        steps: for a number or date, the lattice steps that occur, ascending, one for each code; the code after the last
            means missing. None for listed values.
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
        """The code of a missing value; if the attribute has none, the code after the last."""
        return self.attribute.proper_cells if self.steps is None else len(self.steps)

    @property
    def size(self) -> int:
        """The number of codes."""
        return self.attribute.cells if self.steps is None else len(self.steps) + 1

    @property
    def ordered_bins(self) -> int:
        """How many bins are ordered: always the first ones. 0 if the attribute has no order."""
        if isinstance(self.attribute, Ranged):
            return self.attribute.grid().bins
        if isinstance(self.attribute, Ordinal):
            return len(self.attribute.values) or self.attribute.codes or 0
        return 0

    def bin_of_code(self) -> NDArray[np.int64]:
        """The schema's bin of each code."""
        if not isinstance(self.attribute, Ranged) or self.steps is None:
            return np.arange(self.size)
        grid = self.attribute.grid()
        return np.append(grid.bin_of_cell[grid.cell_of(self.steps)], self.attribute.size - 1)

    def bucket_of_code(self) -> NDArray[np.int64]:
        """The contest's bucket of each code.

        A number or date is in one of 100 buckets of width 1.0001·(max−min)/100, or in the bucket of missing values.
        """
        if not isinstance(self.attribute, Ranged) or self.steps is None:
            return np.arange(self.size)
        width = 1.0001 * (self.attribute.steps - 1) / CONTEST_BUCKETS
        buckets = (self.steps / width).astype(np.int64) if width else np.zeros(len(self.steps), np.int64)
        return np.append(buckets, CONTEST_BUCKETS)

    def numbers(self) -> NDArray[np.float64] | None:
        """The number that each code stands for, NaN if missing; None if the values are not numbers."""
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
        """A short label for each code."""
        if not isinstance(self.attribute, Ranged) or self.steps is None:
            return self.attribute.labels()
        return (*map(self.attribute.text_at, self.steps.tolist()), MISSING)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CodedTables:
    """The tables in one set of codes.

    Attributes:
        sizes: the number of codes of each attribute.
        tables: the real table, the synthetic one, the sampling floor, and the independent baseline.
    """

    sizes: tuple[int, ...]
    tables: tuple[CodeColumns, CodeColumns, CodeColumns, CodeColumns]

    @property
    def rows(self) -> tuple[int, ...]:
        """The number of rows of each table."""
        return tuple(table.shape[1] for table in self.tables)

    def merge_codes(self, lookups: Sequence[NDArray[np.int64]], sizes: Sequence[int]) -> CodedTables:
        """The tables in other codes; ``lookups`` gives for each attribute the new code of each old code."""
        dtype = narrowest_dtype(max(sizes))
        narrow = [lookup.astype(dtype) for lookup in lookups]
        real, synthetic, floor, independent = (_apply_lookups(table, narrow) for table in self.tables)
        return CodedTables(tuple(sizes), (real, synthetic, floor, independent))


def _apply_lookups(table: CodeColumns, lookups: Sequence[NDArray[Any]]) -> CodeColumns:
    recoded = np.empty(table.shape, lookups[0].dtype)
    for axis, lookup in enumerate(lookups):
        recoded[axis] = lookup[table[axis]]
    return recoded


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationTables:
    """The real and the synthetic table with their baselines, ready to be compared.

    Rows are sorted, so no result depends on the order of rows in a file.

    Attributes:
        real: the name of the real table in messages.
        synthetic: the name of the synthetic table in messages.
        domains: one for each compared attribute, in the schema's order.
        exact: the tables in the codes of these domains.
        outside: for each domain the share of real and of synthetic cells outside it, which were counted as another
            value.

    Privacy: it holds the real rows.
    """

    real: str
    synthetic: str
    domains: tuple[Domain, ...]
    exact: CodedTables
    outside: tuple[tuple[float, float], ...]

    @functools.cached_property
    def bins(self) -> CodedTables:
        """The tables in the schema's bins."""
        lookups = [domain.bin_of_code() for domain in self.domains]
        return self.exact.merge_codes(lookups, [domain.attribute.size for domain in self.domains])

    def buckets(self) -> CodedTables:
        """The tables in the contest's buckets."""
        lookups = [domain.bucket_of_code() for domain in self.domains]
        sizes = [domain.size if domain.steps is None else CONTEST_BUCKETS + 1 for domain in self.domains]
        return self.exact.merge_codes(lookups, sizes)

    def axis_of(self, name: str) -> int:
        """The index of an attribute among those compared."""
        return [domain.name for domain in self.domains].index(name)


# ── sorting and matching rows ────────────────────────────────────────────────────────────────────────────────


SortKeys = NDArray[np.uint64]
"""One 64-bit word for each row. A few of them identify a row."""


def sort_rows(columns: CodeColumns, sizes: Sequence[int]) -> CodeColumns:
    """The same rows, sorted by their codes: a random sample of them then does not depend on the order of a file."""
    return np.ascontiguousarray(columns[:, np.lexsort(_sort_keys(columns, sizes)[::-1])])


def find_shared_rows(first: CodeColumns, second: CodeColumns, sizes: Sequence[int]) -> NDArray[np.bool_]:
    """Which rows of the second table equal some row of the first."""
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
    shared: NDArray[np.bool_] = known[groups[split:]]
    return shared


def _sort_keys(columns: CodeColumns, sizes: Sequence[int]) -> list[SortKeys]:
    """A few words for each row that identify it: its codes are their mixed-radix digits."""
    words: list[SortKeys] = []
    capacity = 1  # how many codes still fit into the last word
    for column, size in zip(columns, sizes, strict=True):
        if not words or size > capacity:
            words.append(np.zeros(columns.shape[1], np.uint64))
            capacity = 2**64
        words[-1] = words[-1] * np.uint64(size) + column
        capacity //= size
    return words


# ── baselines ────────────────────────────────────────────────────────────────────────────────────────────────


def bootstrap_rows(table: CodeColumns, rows: int, rng: np.random.Generator) -> CodeColumns:
    """The sampling floor: a bootstrap sample of a table, that is, rows sampled with replacement."""
    return np.ascontiguousarray(table[:, rng.integers(0, table.shape[1], rows)])


def shuffle_columns(table: CodeColumns, rows: int, rng: np.random.Generator) -> CodeColumns:
    """The independent baseline: each column shuffled by itself; ``rows`` is at most the number of rows of the table."""
    return np.stack([rng.permutation(column)[:rows] for column in table])


def make_generator(seed: int, purpose: str) -> np.random.Generator:
    """The random numbers for one purpose. They depend on the seed and the purpose, not on what other purposes used."""
    return np.random.default_rng([seed, *purpose.encode()])
