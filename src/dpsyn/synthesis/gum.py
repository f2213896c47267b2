"""GUM, the gradual update method: records are changed until they match tables of counts (PrivSyn 2021).

Each round visits the tables by descending error. A visit takes records out of over-filled cells and puts them into
under-filled ones, a share α of what the cells hold, so that one table does not undo all that the others have won.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError, UserError
from dpsyn.marginals import Estimate
from dpsyn.progress import Progress, silent
from dpsyn.synthesis import kernels
from dpsyn.synthesis.decay import Decay, StepDecay
from dpsyn.synthesis.rounding import rounded
from dpsyn.synthesis.start import Records

Moves = Literal["mixture", "replace", "duplicate"]
"""How freed records come into cells.

``replace`` changes the clique's attributes only, ``duplicate`` copies a whole record of the cell, and cannot fill empty
cells; ``mixture`` does half by each in even rounds, and duplicates in odd ones wherever there is something to copy.
"""


_LOGGED = 8
"""Copies that may wait to be made, per record: enough for most rounds, and a small part of a wide table's memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GumOptions:
    """How GUM proceeds.

    Attributes:
        rounds: at most so many; 100 in the paper, where errors had long settled (``bench.gum``).
        decay: α of each round; by steps in the paper, whose figure compares them.
        moves: how freed records come into cells; the mixture in the paper: replacing reaches new combinations,
            duplicating keeps those that were won.
        beta: the share that over-filled cells give at most; None, as in the paper's method, for the one at which they
            give as many as the others get. If given, the smaller of the two sums is moved.
    """

    rounds: int = 100
    decay: Decay = field(default_factory=StepDecay)
    moves: Moves = "mixture"
    beta: float | None = None

    def __post_init__(self) -> None:
        if self.rounds < 0:
            raise UserError(f"the number of rounds is {self.rounds}; give 0 or more")
        if self.moves not in get_args(Moves):
            raise UserError(f"records cannot be moved by {self.moves!r}; give one of {', '.join(get_args(Moves))}")
        if self.beta is not None and not 0 <= self.beta <= 1:
            raise UserError(f"beta is {self.beta}; give a number from 0 to 1")

    def copied(self, number: int) -> float:
        """The share of what a cell with records gets by copies, in a round."""
        if self.moves == "mixture":
            return 0.5 if number % 2 == 0 else 1.0
        return float(self.moves == "duplicate")


def gum(
    records: Records,
    names: Sequence[str],
    tables: Sequence[Estimate],
    *,
    rng: np.random.Generator,
    options: GumOptions | None = None,
    progress: Progress = silent,
) -> Records:
    """As many new records, which match the tables more closely; the old ones stay as they are.

    ``names`` are the attributes of the records. The tables are non-negative and should agree where they overlap.
    """
    options = options or GumOptions()
    found = np.array(records, np.int32, order="F")
    for number, after in enumerate(gum_rounds(records, names, tables, rng=rng, options=options)):
        progress("fitting records", (number + 1) / options.rounds)
        found = after
    progress("fitting records", 1.0)
    return found


def gum_rounds(
    records: Records,
    names: Sequence[str],
    tables: Sequence[Estimate],
    *,
    rng: np.random.Generator,
    options: GumOptions,
) -> Iterator[Records]:
    """The records after each round, until nothing is left to move; always the same array."""
    fit = _Fit(records, names, tables, rng)
    for number in range(options.rounds):
        alpha, share = options.decay.at(number), options.copied(number)
        wanted = sum(fit.visit(place, alpha, share, options) for place in fit.by_error())
        yield fit.records()
        if wanted == 0:
            return


@dataclass(frozen=True, slots=True, eq=False)
class _Target:
    """A table as the kernel wants it: columns, sizes, and how many records each cell should have."""

    places: NDArray[np.int64]
    sizes: NDArray[np.uint32]
    counts: NDArray[np.uint32]


class _Fit:
    """The records, the targets, and room for the kernel to work in."""

    def __init__(
        self, records: Records, names: Sequence[str], tables: Sequence[Estimate], rng: np.random.Generator
    ) -> None:
        self.columns = np.array(records.T, np.int32, order="C")
        rows = len(records)
        self._targets = [_target(table, list(names), rows, rng) for table in tables if table.clique]
        self._check()
        self._state = rng.integers(1 << 64, size=1, dtype=np.uint64)
        self._log, self._done = np.empty((2, _LOGGED * rows + 1), np.uint32), np.zeros(len(self.columns) + 1, np.int64)
        self._cells, self._freed = np.empty((2, rows), np.uint32)
        self._lanes = np.empty(4 * max((target.counts.size for target in self._targets), default=0), np.uint32)

    def _check(self) -> None:
        """Codes and sizes fit each other: the kernel looks at nothing."""
        most = [int(column.max(initial=0)) for column in self.columns]
        least = min((int(column.min(initial=0)) for column in self.columns), default=0)
        for target in self._targets:
            if least < 0 or any(most[place] >= size for place, size in zip(target.places, target.sizes, strict=True)):
                raise InternalError("a record has a code outside of a table")

    def records(self) -> Records:
        """The records as they are now."""
        kernels.follow_all(self.columns, self._log, self._done)
        return self.columns.T

    def by_error(self) -> list[int]:
        """The tables, by descending sum of differences between their counts and those of the records."""
        kernels.follow_all(self.columns, self._log, self._done)
        errors = [
            np.abs(self._count(target) - target.counts.astype(np.int64)).sum(dtype=np.int64) for target in self._targets
        ]
        return sorted(range(len(errors)), key=lambda place: -errors[place])

    def _count(self, target: _Target) -> NDArray[np.int64]:
        counts = kernels.count(self.columns, target.places, target.sizes, self._cells, self._lanes)
        return counts.astype(np.int64)

    def visit(self, place: int, alpha: float, share: float, options: GumOptions) -> float:
        """Bring the records nearer to one table; how many records should have moved, before rounding."""
        target = self._targets[place]
        beta = -1.0 if options.beta is None else options.beta
        wanted, _ = kernels.update(
            *(self.columns, target.places, target.sizes, target.counts, alpha, beta, share),
            *(options.moves != "duplicate", self._state, self._log, self._done),
            *(self._cells, self._freed, self._lanes),
        )
        return wanted


def _target(table: Estimate, names: list[str], rows: int, rng: np.random.Generator) -> _Target:
    if 4 * math.prod(table.values.shape) >= 1 << 32 or rows >= 1 << 32:
        raise InternalError(f"the table of {', '.join(table.clique)} is too large; whoever asks should have refused it")
    return _Target(
        np.array([names.index(name) for name in table.clique], np.int64),
        np.array(table.values.shape, np.uint32),
        rounded(table.values, rows, rng).ravel().astype(np.uint32),
    )
