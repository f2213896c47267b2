"""How long does it take to make tables agree, in how many rounds, and what does it gain?

    python -m bench.consistency [--data FOLDER] [--tables 595] [--cells 100000]

Adds the noise of ε = 10, 1 and 0.1 (δ = 1e-9) to pairs of columns of the table in FOLDER (``data.csv.gz`` and
``domain.json``), or of one made up with the shape of a survey of 35 columns; once the same noise on every pair, once
less on the larger ones. Prints for plain alternation, the baseline, and for extrapolation with steps stretched by
several factors after several rounds: rounds, seconds, the ratio of the baseline's seconds to them, and the mean error
of a table, half of its L1 distance to the truth as a part of the rows. The error of norm-sub alone comes first. The
aims: 45 pairs in a tenth of a second, 595 pairs in a few seconds; errors at most a hundredth above the baseline's.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from bench.count import ROWS, SIZES, simulate_codes
from bench.measuring import provenance, seconds
from dpsyn.inference import ConsistencyOptions, make_consistent, norm_sub
from dpsyn.marginals import Estimate

SEED = 6
DEVIATION = {10.0: 0.6502, 1.0: 5.495, 0.1: 50.21}
"""Of the noise of one marginal with δ = 1e-9; k marginals take √k times that."""

STEPS = ((0, 1.5), (5, 1.0), (5, 1.5), (5, 1.8), (5, 1.95), (10, 1.95))
"""After how many rounds steps are stretched, and by how much."""


def columns(folder: Path | None) -> dict[str, tuple[NDArray[np.int64], int]]:
    """The codes and the size of each attribute."""
    if folder is None:
        codes = simulate_codes(ROWS, SIZES)
        return {f"a{place}": (codes[:, place].astype(np.int64), size) for place, size in enumerate(SIZES)}
    sizes = json.loads((folder / "domain.json").read_text())
    with gzip.open(folder / "data.csv.gz") as file:
        table = pyarrow.csv.read_csv(file)
    return {name: (table[name].to_numpy().astype(np.int64), size) for name, size in sizes.items()}


def pairs(data: dict[str, tuple[NDArray[np.int64], int]], number: int, cells: int) -> list[Estimate]:
    """Exact counts of at most so many pairs of at most so many cells, drawn at random."""
    small = [pair for pair in combinations(data, 2) if data[pair[0]][1] * data[pair[1]][1] <= cells]
    order = np.random.default_rng(SEED).permutation(len(small))[:number]
    found = []
    for a, b in (small[place] for place in sorted(order)):
        (x, rows), (y, width) = data[a], data[b]
        counts = np.bincount(x * width + y, minlength=rows * width).astype(np.float64)
        found.append(Estimate((a, b), counts.reshape(rows, width), 0.0))
    return found


def measured(truth: Sequence[Estimate], deviation: float, equal: bool) -> list[Estimate]:
    """Noisy counts; the budget in equal shares, or in proportion to cells^⅔ as PrivSyn has it."""
    generator = np.random.default_rng(SEED)
    shares = np.array([1.0 if equal else table.values.size ** (2 / 3) for table in truth])
    scales = deviation * np.sqrt(shares.sum() / shares)
    drawn = [generator.normal(0, scale, table.values.shape) for table, scale in zip(truth, scales, strict=True)]
    noisy = zip(truth, drawn, scales, strict=True)
    return [Estimate(table.clique, table.values + noise, scale**2) for table, noise, scale in noisy]


def error(tables: Sequence[Estimate], truth: Sequence[Estimate]) -> float:
    both = zip(tables, truth, strict=True)
    return float(np.mean([np.abs(table.values - true.values).sum() / 2 / true.total for table, true in both]))


def run(noisy: Sequence[Estimate], truth: Sequence[Estimate], options: ConsistencyOptions) -> tuple[int, float, float]:
    """Rounds, seconds and error."""
    told: list[float] = []
    found: list[Estimate] = []
    took = seconds(
        lambda: found.extend(make_consistent(noisy, options=options, progress=lambda _, done: told.append(done)))
    )
    return min(len(told) - 1, options.rounds), took, error(found, truth)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", type=int, default=595)
    parser.add_argument("--cells", type=int, default=100_000)
    chosen = parser.parse_args()
    truth = pairs(columns(chosen.data), chosen.tables, chosen.cells)
    print(provenance(SEED))
    print(f"{len(truth)} pairs, {sum(table.values.size for table in truth):,} cells, {truth[0].total:,.0f} rows")
    for epsilon, deviation in DEVIATION.items():
        for equal in (True, False):
            noisy = measured(truth, deviation, equal)
            alone = [Estimate(t.clique, norm_sub(t.values, t.total), t.variance) for t in noisy]
            print(f"ε = {epsilon}, {'equal' if equal else 'unequal'} noise; error of norm-sub alone", end=" ")
            print(f"{error(alone, truth):.5f}")
            compare(noisy, truth)


def compare(noisy: Sequence[Estimate], truth: Sequence[Estimate]) -> None:
    module: Any = import_module("dpsyn.inference.consistency")  # its name is that of the function, too
    kept = module.SETTLED, module.STRETCH
    rounds, baseline, far = run(noisy, truth, ConsistencyOptions(extrapolate=False))
    print(f"  plain alternation         {rounds:>4} rounds {baseline:>7.3f} s    1.0 times as fast, error {far:.5f}")
    for module.SETTLED, module.STRETCH in STEPS:
        rounds, took, far = run(noisy, truth, ConsistencyOptions())
        steps = f"× {module.STRETCH} after {module.SETTLED}"
        print(f"  {steps:<25} {rounds:>4} rounds {took:>7.3f} s {baseline / took:>6.1f} times as fast, error {far:.5f}")
    module.SETTLED, module.STRETCH = kept


if __name__ == "__main__":
    main()
