"""Descent: records are changed, one code at a time, to match all tables at once.

For every record and attribute in turn the code is taken that lowers Σ (count − target)² over the cells of all tables
most, counts being kept up to date after each change. GUM looks at one table at a time, so each visit undoes part of
what the others have won, and it copies records, so that few different ones are left. Here a change counts in every
table that has the attribute, nothing is copied, and no more is changed than lowers the error: what tables do not speak
about stays as the start drew it, which is the tree of the strongest pairs. ``bench/gum.py`` compares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import UserError
from dpsyn.marginals import Estimate
from dpsyn.progress import Progress, silent
from dpsyn.synthesis import kernels
from dpsyn.synthesis.start import Records


@dataclass(frozen=True, slots=True, kw_only=True)
class DescentOptions:
    """How descent proceeds.

    Attributes:
        sweeps: at most so many looks at every code; errors settle after five to ten (``bench/gum.py``).
        settled: stop when fewer than this share of the records changed in a sweep.
    """

    sweeps: int = 12
    settled: float = 0.01

    def __post_init__(self) -> None:
        if self.sweeps < 0:
            raise UserError(f"the number of sweeps is {self.sweeps}; give 0 or more")


def descend(
    records: Records,
    names: Sequence[str],
    tables: Sequence[Estimate],
    *,
    rng: np.random.Generator,
    options: DescentOptions | None = None,
    progress: Progress = silent,
) -> Records:
    """As many new records, which match the tables more closely; the old ones stay as they are.

    ``names`` are the attributes of the records. The tables are non-negative and should agree where they overlap.
    """
    options = options or DescentOptions()
    columns = np.array(records.T, np.int32, order="C")
    rows = columns.shape[1]
    if rows == 0 or not tables:
        return columns.T
    excess, starts = _excess(columns, names, tables)
    visits = [_visit(name, names, tables, starts) for name in names]
    for sweep in range(options.sweeps):
        changed = 0
        for place in rng.permutation(len(names)):
            visit = visits[place]
            if len(visit.starts):
                changed += kernels.descend(
                    *(columns, place, visit.size, excess, visit.starts, visit.strides),
                    *(visit.ends, visit.others, visit.other_strides, int(rng.integers(rows))),
                )
        progress("fitting records", (sweep + 1) / options.sweeps)
        if changed <= options.settled * rows:
            break
    progress("fitting records", 1.0)
    return columns.T


@dataclass(frozen=True, slots=True, eq=False)
class _Visit:
    """The tables of one attribute as the kernel wants them."""

    size: int
    starts: NDArray[np.int64]
    strides: NDArray[np.int64]
    ends: NDArray[np.int64]
    others: NDArray[np.int64]
    other_strides: NDArray[np.int64]


def _excess(
    columns: NDArray[np.int32], names: Sequence[str], tables: Sequence[Estimate]
) -> tuple[NDArray[np.float32], list[int]]:
    """How many records too many each cell has, for all tables one after the other, and where each begins."""
    rows, parts, starts, place_of = columns.shape[1], [], [0], {name: place for place, name in enumerate(names)}
    for table in tables:
        cells = np.ravel_multi_index([columns[place_of[name]] for name in table.clique], table.values.shape)
        counts = np.bincount(cells, minlength=table.values.size)
        even = np.full(table.values.size, rows / table.values.size)
        target = table.values.ravel() * (rows / table.total) if table.total > 0 else even
        parts.append((counts - target).astype(np.float32))
        starts.append(starts[-1] + table.values.size)
    return np.concatenate(parts), starts


def _visit(name: str, names: Sequence[str], tables: Sequence[Estimate], starts: Sequence[int]) -> _Visit:
    """Where the cells of one attribute's tables lie."""
    begins, strides, ends, others, other_strides, size = [], [], [0], [], [], 0
    for start, table in zip(starts, tables, strict=False):
        if name not in table.clique:
            continue
        shape = table.values.shape
        steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        begins.append(start)
        for axis, other in enumerate(table.clique):
            if other == name:
                strides.append(steps[axis])
                size = shape[axis]
            else:
                others.append(list(names).index(other))
                other_strides.append(steps[axis])
        ends.append(len(others))
    arrays = (np.array(numbers, np.int64) for numbers in (begins, strides, ends, others, other_strides))
    return _Visit(size, *arrays)
