"""How long does drawing noise take against counting?

    python -m bench.noise

Counts all 595 pairs of a made-up table of 170 254 rows and 35 columns and adds noise to every cell, with one thread and
with all of them; the sizes of the columns, 2 to 181, are those of ``bench.count``. Prints the seconds, the time of one
draw, the ratio, and how long as many draws take as a release may make by default; and the same for all cells as one
table, because threads share the cells of a table, not tables.
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

from bench.count import ROWS, SEED, SIZES, made_up
from bench.measuring import provenance, seconds
from dpsyn.accounting import Gaussian
from dpsyn.engines import Engine, open_engine
from dpsyn.private import Limits, SystemNoise
from dpsyn.records import Codec
from dpsyn.schema import Categorical, Schema
from dpsyn.sources import open_source
from dpsyn.transforms import Recoding

SHARE = Fraction(1, 10 * 595)
"""A tenth of ρ = 1 for all pairs; the scale hardly matters for the time of a draw."""


def opened() -> tuple[Engine, Recoding]:
    """An engine that holds a made-up table."""
    codes = made_up(ROWS, SIZES)
    schema = Schema(attributes=tuple(Categorical(name=f"a{place}", codes=size) for place, size in enumerate(SIZES)))
    source = open_source(pa.table({name: codes[:, place] for place, name in enumerate(schema.names)}))
    return open_engine(source, schema, kind="memory", key=secrets.token_bytes(16)), Recoding.fine(Codec(schema))


def best(threads: int, work: Callable[[], object]) -> float:
    """The shortest of three times of some work that may use so many threads."""
    with patch("os.cpu_count", return_value=threads):
        return min(seconds(work) for _ in range(3))


def main() -> None:
    print(provenance(SEED))
    engine, recoding = opened()
    pairs = list(combinations(range(len(SIZES)), 2))
    tables = engine.count(pairs, recoding)  # reads the table and loads the kernels
    cells, most = sum(table.size for table in tables), Limits().draws
    print(f"{len(pairs)} pairs of {ROWS:,} rows × {len(SIZES)} columns: {cells:,} cells")
    whole = [np.concatenate([table.ravel() for table in tables])]
    for threads in sorted({1, os.cpu_count() or 1}):
        counting = best(threads, lambda: engine.count(pairs, recoding))
        drawing, at_once = best(threads, lambda: _draw(tables)), best(threads, lambda: _draw(whole))
        each = drawing / cells
        print(f"{threads} threads: counting {counting:.3f} s, drawing {drawing:.2f} s, {each * 1e6:.1f} µs a draw")
        print(f"  drawing takes {drawing / counting:.0f} times as long; {most:,} draws take {each * most:.0f} s")
        print(f"  were all cells one table: {at_once:.2f} s, {at_once / cells * 1e6:.1f} µs a draw")


def _draw(tables: list[NDArray[np.int64]]) -> None:
    """Noise on every cell of every table, as a release draws it."""
    noise, spend = SystemNoise(), Gaussian.within(SHARE, 1)
    for table in tables:
        noise.noised(table, spend)


if __name__ == "__main__":
    main()
