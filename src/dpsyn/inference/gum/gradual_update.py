"""Tables of counts as whole numbers of records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference.gum import kernels
from dpsyn.inference.methods import GUM
from dpsyn.marginals import Estimate
from dpsyn.progress import Progress, ignore_progress


def round_counts(values: NDArray[np.float64], rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Non-negative values in proportion, as whole numbers that add up to ``rows``; an all-zero table as a uniform one.

    The running sum over the cells, plus one random offset, is rounded down (systematic sampling). So each cell misses
    its share by less than 1 and expects it exactly, as does every run of cells, in particular each value of the first
    attribute; a zero stays zero; and whole numbers that add up to ``rows`` already stay as they are.
    """
    running = np.cumsum(values.ravel() if np.any(values) else np.ones(values.size))
    edges = np.floor(running * (rows / running[-1]) + rng.random()).astype(np.int64)
    edges[running == running[-1]] = rows  # the last sum may be a little less than it should
    whole: NDArray[np.int64] = np.diff(edges, prepend=0).reshape(values.shape)
    return whole


# ── The records that GUM starts from ──


Records = NDArray[np.int32]
"""Rows × attributes of codes, column-major."""


def initialize_records(
    tables: Sequence[Estimate], names: Sequence[str], rows: int, rng: np.random.Generator
) -> Records:
    """Records whose attributes have the counts of the tables one by one, to rounding, and are independent.

    PrivSyn, section on GUM: a start from the 1-ways leaves only the dependences to be mended.
    """
    columns = np.empty((len(names), rows), np.int32)
    for place, name in enumerate(names):
        counts = most_precise_one_way(tables, name)
        columns[place] = np.repeat(np.arange(counts.size), round_counts(counts, rows, rng))
        rng.shuffle(columns[place])
    return columns.T


def most_precise_one_way(tables: Sequence[Estimate], name: str) -> NDArray[np.float64]:
    """The counts of one attribute, from the table that says them most precisely."""
    candidates = [table for table in tables if name in table.clique]
    if not candidates:
        raise InternalError(f"no table has {name!r}")
    best = min(candidates, key=lambda table: table.variance * math.prod(table.values.shape))
    return best.project([name])


# ── GUM, the gradual update method: records are changed until they match tables of counts (PrivSyn 2021) ──


_LOGGED = 8
"""Copies that may wait to be made, per record: enough for most rounds, and a small part of a wide table's memory."""


def run_gum(
    records: Records,
    names: Sequence[str],
    tables: Sequence[Estimate],
    *,
    rng: np.random.Generator,
    options: GUM | None = None,
    progress: Progress = ignore_progress,
) -> Records:
    """As many new records, which match the tables more closely; the old ones stay as they are.

    ``names`` are the attributes of the records. The tables are non-negative and should agree where they overlap.
    """
    options = options or GUM()
    found = np.array(records, np.int32, order="F")
    for number, after in enumerate(iterate_gum_rounds(records, names, tables, rng=rng, options=options)):
        progress("fitting records", (number + 1) / options.rounds)
        found = after
    progress("fitting records", 1.0)
    return found


def iterate_gum_rounds(
    records: Records,
    names: Sequence[str],
    tables: Sequence[Estimate],
    *,
    rng: np.random.Generator,
    options: GUM,
) -> Iterator[Records]:
    """The records after each round, until nothing is left to move; always the same array."""
    fit = _GumState(records, names, tables, rng)
    for number in range(options.rounds):
        alpha, share = options.decay.step_size(number), options.duplicate_share(number)
        wanted = sum(fit.update_table(place, alpha, share, options) for place in fit.tables_by_error())
        yield fit.records()
        if wanted == 0:
            return


@dataclass(frozen=True, slots=True, eq=False)
class _RoundedTarget:
    """A table as the kernel wants it: columns, sizes, and how many records each cell should have."""

    axes: NDArray[np.int64]
    sizes: NDArray[np.uint32]
    counts: NDArray[np.uint32]


class _GumState:
    """The records, the targets, and room for the kernel to work in."""

    def __init__(
        self, records: Records, names: Sequence[str], tables: Sequence[Estimate], rng: np.random.Generator
    ) -> None:
        self.columns = np.array(records.T, np.int32, order="C")
        rows = len(records)
        self._targets = [_round_target(table, list(names), rows, rng) for table in tables if table.clique]
        self._check_codes()
        self._state = rng.integers(1 << 64, size=1, dtype=np.uint64)
        self._log, self._done = np.empty((2, _LOGGED * rows + 1), np.uint32), np.zeros(len(self.columns) + 1, np.int64)
        self._cells, self._freed = np.empty((2, rows), np.uint32)
        self._lanes = np.empty(4 * max((target.counts.size for target in self._targets), default=0), np.uint32)

    def _check_codes(self) -> None:
        """Codes and sizes fit each other: the kernel looks at nothing."""
        most = [int(column.max(initial=0)) for column in self.columns]
        least = min((int(column.min(initial=0)) for column in self.columns), default=0)
        for target in self._targets:
            if least < 0 or any(most[place] >= size for place, size in zip(target.axes, target.sizes, strict=True)):
                raise InternalError("a record has a code outside of a table")

    def records(self) -> Records:
        """The records as they are now."""
        kernels.apply_all_copies(self.columns, self._log, self._done)
        return self.columns.T

    def tables_by_error(self) -> list[int]:
        """The tables, by descending sum of differences between their counts and those of the records."""
        kernels.apply_all_copies(self.columns, self._log, self._done)
        errors = [
            np.abs(self._count(target) - target.counts.astype(np.int64)).sum(dtype=np.int64) for target in self._targets
        ]
        return sorted(range(len(errors)), key=lambda place: -errors[place])

    def _count(self, target: _RoundedTarget) -> NDArray[np.int64]:
        counts = kernels.count(self.columns, target.axes, target.sizes, self._cells, self._lanes)
        return counts.astype(np.int64)

    def update_table(self, index: int, alpha: float, duplicate_share: float, options: GUM) -> float:
        """Bring the records nearer to one table; how many records should have moved, before rounding."""
        target = self._targets[index]
        beta = -1.0 if options.beta is None else options.beta
        wanted, _ = kernels.update_clique(
            *(self.columns, target.axes, target.sizes, target.counts, alpha, beta, duplicate_share),
            *(options.moves != "duplicate", self._state, self._log, self._done),
            *(self._cells, self._freed, self._lanes),
        )
        return wanted


def _round_target(table: Estimate, names: list[str], rows: int, rng: np.random.Generator) -> _RoundedTarget:
    if 4 * math.prod(table.values.shape) >= 1 << 32 or rows >= 1 << 32:
        raise InternalError(f"the table of {', '.join(table.clique)} is too large; whoever asks should have refused it")
    return _RoundedTarget(
        np.array([names.index(name) for name in table.clique], np.int64),
        np.array(table.values.shape, np.uint32),
        round_counts(table.values, rows, rng).ravel().astype(np.uint32),
    )
