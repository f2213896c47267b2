"""How long does drawing noise take against counting?

    python -m bench.noise

Counts all 595 pairs of a made-up table of 170 254 rows and 35 columns and adds noise to every cell, with one thread and
with all of them; the sizes of the columns, 2 to 181, are those of ``bench.count``. Prints the seconds, the time of one
draw, the ratio, and how long as many draws take as a release may make by default. The baselines are one call for each
table, whose threads end with it, and all cells as one table: as fast as one call for all tables could be.
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

SHARE = Fraction(1, 10 * 595)
"""A tenth of ρ = 1 for all pairs; the scale hardly matters for the time of a draw."""


def opened() -> tuple[Engine, Recoding]:
    """An engine that holds a made-up table."""
    codes = simulate_codes(ROWS, SIZES)
    schema = Schema(attributes=tuple(Categorical(name=f"a{place}", codes=size) for place, size in enumerate(SIZES)))
    source = open_source(pa.table({name: codes[:, place] for place, name in enumerate(schema.names)}))
    return open_engine(source, schema, kind="memory", key=secrets.token_bytes(16)), Recoding.fine(Codec(schema))


def best(threads: int, *works: Callable[[], object]) -> list[float]:
    """The shortest of three times of each work, which may use so many threads; they take turns."""
    with patch("os.cpu_count", return_value=threads):
        rounds = [[seconds(work) for work in works] for _ in range(3)]
    return [min(times) for times in zip(*rounds, strict=True)]


def main() -> None:
    print(provenance(SEED))
    engine, recoding = opened()
    pairs = list(combinations(range(len(SIZES)), 2))
    tables = engine.count(pairs, recoding)  # reads the table and loads the kernels
    cells, most = sum(table.size for table in tables), ReleaseLimits().max_noisy_values
    print(f"{len(pairs)} pairs of {ROWS:,} rows × {len(SIZES)} columns: {cells:,} cells")
    whole = [np.concatenate([table.ravel() for table in tables])]
    for threads in sorted({1, os.cpu_count() or 1}):
        counting, drawing, one_by_one, at_once = best(
            threads,
            lambda: engine.count(pairs, recoding),
            lambda: _draw(tables),
            lambda: [_draw([table]) for table in tables],
            lambda: _draw(whole),
        )
        each = drawing / cells
        print(f"{threads} threads: counting {counting:.3f} s, drawing {drawing:.2f} s, {each * 1e6:.1f} µs a draw")
        print(f"  drawing takes {drawing / counting:.0f} times as long; {most:,} draws take {each * most:.0f} s")
        print(f"  table by table: {one_by_one:.2f} s, {one_by_one / cells * 1e6:.1f} µs a draw")
        print(f"  all cells one table: {at_once:.2f} s, {at_once / cells * 1e6:.1f} µs a draw")


def _draw(tables: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Noise on every cell of some tables, in one call."""
    spend = Gaussian.for_rho(SHARE, 1)
    return SystemNoise().add_noise([(table, spend) for table in tables])


if __name__ == "__main__":
    main()
