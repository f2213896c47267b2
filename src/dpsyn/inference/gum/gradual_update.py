"""GUM, the gradual update method: random records are changed until they match tables of counts (PrivSyn 2021).

The records start with the one-way marginals of the tables. In each round, every table in turn moves some records from
its over-filled cells to its under-filled ones. The kernels of ``kernels.py`` do the work.
"""

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
    """Scale non-negative values to integers that sum to ``rows``; a table of zeros counts as uniform.

    The running sum over the cells, plus one random offset, is rounded down (systematic sampling). So each cell differs
    from its share by less than 1 and equals it in expectation, as does every run of cells, in particular each value of
    the first attribute. Zeros stay zero, and integers that already sum to ``rows`` do not change.
    """
    running = np.cumsum(values.ravel() if np.any(values) else np.ones(values.size))
    edges = np.floor(running * (rows / running[-1]) + rng.random()).astype(np.int64)
    edges[running == running[-1]] = rows  # rounding may have made the last sum a little too small
    whole: NDArray[np.int64] = np.diff(edges, prepend=0).reshape(values.shape)
    return whole


# ── initial records ──────────────────────────────────────────────────────────────────────────────────────────


Records = NDArray[np.int32]
"""Rows × attributes of codes, column-major."""


def initialize_records(
    tables: Sequence[Estimate], names: Sequence[str], rows: int, rng: np.random.Generator
) -> Records:
    """Records with independent attributes, each with its one-way marginal up to rounding.

    With this start only the dependencies remain to be fitted (DPSyn paper, appendix A, "Improving the Convergence").
    """
    columns = np.empty((len(names), rows), np.int32)
    for axis, name in enumerate(names):
        counts = most_precise_one_way(tables, name)
        columns[axis] = np.repeat(np.arange(counts.size), round_counts(counts, rows, rng))
        rng.shuffle(columns[axis])
    return columns.T


def most_precise_one_way(tables: Sequence[Estimate], name: str) -> NDArray[np.float64]:
    """The counts of one attribute, from the table with the least noise in them."""
    candidates = [table for table in tables if name in table.clique]
    if not candidates:
        raise InternalError(f"no table has {name!r}")
    best = min(candidates, key=lambda table: table.variance * math.prod(table.values.shape))
    return best.project([name])


# ── rounds ───────────────────────────────────────────────────────────────────────────────────────────────────


_LOGGED = 8
"""The maximum number of pending copies per record: enough for most rounds, and little beside a wide table's memory."""


def run_gum(
    records: Records,
    names: Sequence[str],
    tables: Sequence[Estimate],
    *,
    rng: np.random.Generator,
    options: GUM | None = None,
    progress: Progress = ignore_progress,
) -> Records:
    """Fit records to tables by GUM; returns as many new records, and leaves the given ones unchanged.

    Args:
        records: the initial records, rows × attributes.
        names: the attributes of the records.
        tables: non-negative counts, which should be consistent.
        rng: the source of all random choices.
        options: the rounds and their steps.
        progress: receives the phase and the fraction done.
    """
    options = options or GUM()
    fitted = np.array(records, np.int32, order="F")
    for number, updated in enumerate(iterate_gum_rounds(records, names, tables, rng=rng, options=options)):
        progress("fitting records", (number + 1) / options.rounds)
        fitted = updated
    progress("fitting records", 1.0)
    return fitted


def iterate_gum_rounds(
    records: Records,
    names: Sequence[str],
    tables: Sequence[Estimate],
    *,
    rng: np.random.Generator,
    options: GUM,
) -> Iterator[Records]:
    """Yield the records after each round, until nothing is left to move; it is the same array each time."""
    state = _GumState(records, names, tables, rng)
    for number in range(options.rounds):
        alpha, share = options.step_size(number), options.duplicate_share(number)
        to_move = sum(state.update_table(index, alpha, share, options) for index in state.tables_by_error())
        yield state.records()
        if to_move == 0:
            return


@dataclass(frozen=True, slots=True, eq=False)
class _RoundedTarget:
    """A table as the kernel needs it: columns, sizes, and the number of records that each cell should have."""

    axes: NDArray[np.int64]
    sizes: NDArray[np.uint32]
    counts: NDArray[np.uint32]


class _GumState:
    """The records, the targets, and working memory for the kernel."""

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
        """Require that codes fit the sizes of their attributes; the kernel does not check them."""
        highest = [int(column.max(initial=0)) for column in self.columns]
        lowest = min((int(column.min(initial=0)) for column in self.columns), default=0)
        for target in self._targets:
            if lowest < 0 or any(highest[axis] >= size for axis, size in zip(target.axes, target.sizes, strict=True)):
                raise InternalError("a record has a code outside of a table")

    def records(self) -> Records:
        """The current records."""
        kernels.apply_all_copies(self.columns, self._log, self._done)
        return self.columns.T

    def tables_by_error(self) -> list[int]:
        """The indices of the tables, by descending L1 distance between their counts and those of the records."""
        kernels.apply_all_copies(self.columns, self._log, self._done)
        errors = [
            np.abs(self._count(target) - target.counts.astype(np.int64)).sum(dtype=np.int64) for target in self._targets
        ]
        return sorted(range(len(errors)), key=lambda index: -errors[index])

    def _count(self, target: _RoundedTarget) -> NDArray[np.int64]:
        counts = kernels.count(self.columns, target.axes, target.sizes, self._cells, self._lanes)
        return counts.astype(np.int64)

    def update_table(self, index: int, alpha: float, duplicate_share: float, options: GUM) -> float:
        """Move records toward one table; returns the number of records to move, before rounding."""
        target = self._targets[index]
        beta = -1.0 if options.beta is None else options.beta
        to_move, _ = kernels.update_clique(
            *(self.columns, target.axes, target.sizes, target.counts, alpha, beta, duplicate_share),
            *(options.moves != "duplicate", self._state, self._log, self._done),
            *(self._cells, self._freed, self._lanes),
        )
        return to_move


def _round_target(table: Estimate, names: list[str], rows: int, rng: np.random.Generator) -> _RoundedTarget:
    if 4 * math.prod(table.values.shape) >= 1 << 32 or rows >= 1 << 32:
        raise InternalError(f"the table of {', '.join(table.clique)} is too large for GUM; the caller must refuse it")
    return _RoundedTarget(
        np.array([names.index(name) for name in table.clique], np.int64),
        np.array(table.values.shape, np.uint32),
        round_counts(table.values, rows, rng).ravel().astype(np.uint32),
    )
