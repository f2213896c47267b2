"""How long does it take to make tables consistent, in how many rounds, and what does it gain?

    python -m bench.consistency [--data FOLDER] [--tables 595] [--cells 100000]

Adds the noise of ε = 10, 1 and 0.1 (δ = 1e-9) to pairs of columns of the table in FOLDER (``data.csv.gz`` and
``domain.json``), or of a generated one with the shape of a survey of 35 columns; once with the same noise on every
pair, once with less on the larger ones. Prints for plain alternation, the baseline, and for extrapolation with steps
stretched by several factors after several rounds: rounds, seconds, the ratio of the baseline's seconds to them, and the
mean error of a table, half of its L1 distance to the truth as a share of the rows. The error of norm-sub alone comes
first. The targets: 45 pairs in a tenth of a second, 595 pairs in a few seconds; errors at most a hundredth above those
of the baseline.
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
NOISE_STD = {10.0: 0.6502, 1.0: 5.495, 0.1: 50.21}
"""The standard deviation of the noise of one marginal, by ε, with δ = 1e-9; for k marginals it is √k times as large."""

STEPS = ((0, 1.5), (5, 1.0), (5, 1.5), (5, 1.8), (5, 1.95), (10, 1.95))
"""The number of rounds after which steps are stretched, and the factor."""


def columns(folder: Path | None) -> dict[str, tuple[NDArray[np.int64], int]]:
    """The codes and the size of each attribute."""
    if folder is None:
        codes = simulate_codes(ROWS, SIZES)
        return {f"a{index}": (codes[:, index].astype(np.int64), size) for index, size in enumerate(SIZES)}
    sizes = json.loads((folder / "domain.json").read_text())
    with gzip.open(folder / "data.csv.gz") as file:
        table = pyarrow.csv.read_csv(file)
    return {name: (table[name].to_numpy().astype(np.int64), size) for name, size in sizes.items()}


def pairs(data: dict[str, tuple[NDArray[np.int64], int]], count: int, max_cells: int) -> list[Estimate]:
    """The exact counts of ``count`` random pairs of at most ``max_cells`` cells; of all if there are fewer."""
    small = [pair for pair in combinations(data, 2) if data[pair[0]][1] * data[pair[1]][1] <= max_cells]
    order = np.random.default_rng(SEED).permutation(len(small))[:count]
    result = []
    for a, b in (small[index] for index in sorted(order)):
        (x, rows), (y, width) = data[a], data[b]
        counts = np.bincount(x * width + y, minlength=rows * width).astype(np.float64)
        result.append(Estimate((a, b), counts.reshape(rows, width), 0.0))
    return result


def measure_tables(truth: Sequence[Estimate], std: float, equal: bool) -> list[Estimate]:
    """Noisy counts; the budget is split equally, or in proportion to cells^⅔ as in PrivSyn."""
    generator = np.random.default_rng(SEED)
    shares = np.array([1.0 if equal else table.values.size ** (2 / 3) for table in truth])
    scales = std * np.sqrt(shares.sum() / shares)
    noises = [generator.normal(0, scale, table.values.shape) for table, scale in zip(truth, scales, strict=True)]
    noisy = zip(truth, noises, scales, strict=True)
    return [Estimate(table.clique, table.values + noise, scale**2) for table, noise, scale in noisy]


def error(tables: Sequence[Estimate], truth: Sequence[Estimate]) -> float:
    both = zip(tables, truth, strict=True)
    return float(np.mean([np.abs(table.values - true.values).sum() / 2 / true.total for table, true in both]))


def run(noisy: Sequence[Estimate], truth: Sequence[Estimate], options: ConsistencyOptions) -> tuple[int, float, float]:
    """Rounds, seconds and error."""
    reported: list[float] = []
    result: list[Estimate] = []
    took = seconds(
        lambda: result.extend(make_consistent(noisy, options=options, progress=lambda _, done: reported.append(done)))
    )
    return min(len(reported) - 1, options.rounds), took, error(result, truth)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", type=int, default=595)
    parser.add_argument("--cells", type=int, default=100_000)
    chosen = parser.parse_args()
    truth = pairs(columns(chosen.data), chosen.tables, chosen.cells)
    print(provenance(SEED))
    print(f"{len(truth)} pairs, {sum(table.values.size for table in truth):,} cells, {truth[0].total:,.0f} rows")
    for epsilon, std in NOISE_STD.items():
        for equal in (True, False):
            noisy = measure_tables(truth, std, equal)
            alone = [Estimate(t.clique, norm_sub(t.values, t.total), t.variance) for t in noisy]
            print(f"ε = {epsilon}, {'equal' if equal else 'unequal'} noise; error of norm-sub alone", end=" ")
            print(f"{error(alone, truth):.5f}")
            compare(noisy, truth)


def compare(noisy: Sequence[Estimate], truth: Sequence[Estimate]) -> None:
    module: Any = import_module("dpsyn.inference.consistency")
    kept = module.PLAIN_ROUNDS, module.STEP_STRETCH
    rounds, baseline, far = run(noisy, truth, ConsistencyOptions(extrapolate=False))
    print(f"  plain alternation         {rounds:>4} rounds {baseline:>7.3f} s    1.0 times as fast, error {far:.5f}")
    for module.PLAIN_ROUNDS, module.STEP_STRETCH in STEPS:
        rounds, took, far = run(noisy, truth, ConsistencyOptions())
        steps = f"× {module.STEP_STRETCH} after {module.PLAIN_ROUNDS}"
        print(f"  {steps:<25} {rounds:>4} rounds {took:>7.3f} s {baseline / took:>6.1f} times as fast, error {far:.5f}")
    module.PLAIN_ROUNDS, module.STEP_STRETCH = kept


if __name__ == "__main__":
    main()
