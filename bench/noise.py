"""How long does adding noise take, compared with counting?

    python -m bench.noise

Counts all 595 pairs of a made-up table of 170 254 rows and 35 columns and adds noise to every cell, with one thread and
with all of them; the sizes of the columns, 2 to 181, are those of ``bench.count``. Prints the seconds, the time of one
noisy value, the ratio, and the time of the largest number of noisy values that a release allows by default. The
baselines are one call for each table, whose threads end with it, and all cells as one table: as fast as one call for
all tables could be.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.count import ROWS, SEED, SIZES, simulate_codes
from bench.measuring import provenance, seconds
from dpsyn.accounting import Gaussian
from dpsyn.encoding import Codec, Recoding
from dpsyn.engines import Engine, open_engine
from dpsyn.private import ReleaseLimits, SystemNoise
from dpsyn.schema import Categorical, Schema
from dpsyn.sources import open_source

RHO_EACH = Fraction(1, 10 * 595)
"""A tenth of ρ = 1 for all pairs; the scale hardly matters for the time of a noisy value."""


def open_made_up_table() -> tuple[Engine, Recoding]:
    """An engine that holds a made-up table."""
    codes = simulate_codes(ROWS, SIZES)
    schema = Schema(attributes=tuple(Categorical(name=f"a{column}", codes=size) for column, size in enumerate(SIZES)))
    source = open_source(pa.table({name: codes[:, column] for column, name in enumerate(schema.names)}))
    return open_engine(source, schema, kind="memory", key=secrets.token_bytes(16)), Recoding.fine(Codec(schema))


def best_times(threads: int, *works: Callable[[], object]) -> list[float]:
    """The shortest of three times of each function with a number of threads; the functions take turns."""
    with patch("os.cpu_count", return_value=threads):
        rounds = [[seconds(work) for work in works] for _ in range(3)]
    return [min(times) for times in zip(*rounds, strict=True)]


def main() -> None:
    print(provenance(SEED))
    engine, recoding = open_made_up_table()
    pairs = list(combinations(range(len(SIZES)), 2))
    tables = engine.count(pairs, recoding)  # reads the table and loads the kernels
    cells, max_values = sum(table.size for table in tables), ReleaseLimits().max_noisy_values
    print(f"{len(pairs)} pairs of {ROWS:,} rows × {len(SIZES)} columns: {cells:,} cells")
    whole = [np.concatenate([table.ravel() for table in tables])]
    for threads in sorted({1, os.cpu_count() or 1}):
        counting, adding, one_by_one, at_once = best_times(
            threads,
            lambda: engine.count(pairs, recoding),
            lambda: _add_noise(tables),
            lambda: [_add_noise([table]) for table in tables],
            lambda: _add_noise(whole),
        )
        each = adding / cells
        print(f"{threads} threads: counting {counting:.3f} s, noise {adding:.2f} s, {each * 1e6:.1f} µs per value")
        print(
            f"  noise takes {adding / counting:.0f} times as long; {max_values:,} values take {each * max_values:.0f} s"
        )
        print(f"  table by table: {one_by_one:.2f} s, {one_by_one / cells * 1e6:.1f} µs per value")
        print(f"  all cells one table: {at_once:.2f} s, {at_once / cells * 1e6:.1f} µs per value")


def _add_noise(tables: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Add noise to every cell of the tables, in one call."""
    cost = Gaussian.for_rho(RHO_EACH, 1)
    return SystemNoise().add_noise([(table, cost) for table in tables])


if __name__ == "__main__":
    main()
