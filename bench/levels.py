"""How much of a pair of numbers does a coarser level lose? The calibration of ``LEVEL_POWER``.

    python -m bench.levels FOLDER...

Each FOLDER is one of ``bench.mixed``. Every pair of numbers is counted in 24 × 24 groups of equal mass and, for
several k, in k × k groups, whose counts are spread inside each group as the one-way marginals are. The figure is the
distance of the spread table from the fine one, divided by that of independent numbers. What sampling alone causes is
subtracted from both: the distance of tables that are sampled from the spread one. Pairs that are nearly independent are
left out. The last line is the rule: a level of k groups loses k^(−LEVEL_POWER) of each attribute.
"""

from __future__ import annotations

import argparse
import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.mixed import read_table
from dpsyn.recipes.resolution import LEVEL_POWER

FINE, SIZES, MIN_DISTANCE, SAMPLES = 24, (2, 3, 4, 6, 8, 12), 0.03, 2

Counts = NDArray[np.float64]


def excess_distance(expected: Counts, counts: Counts, rng: np.random.Generator) -> float:
    """The total variation distance of a table from expected counts, minus that of samples from these."""
    rows = int(counts.sum())
    shares = (expected / expected.sum()).ravel()
    samples = [rng.multinomial(rows, shares).reshape(counts.shape) for _ in range(SAMPLES)]
    distance, *by_chance = (float(np.abs(table - expected).sum()) / (2 * rows) for table in (counts, *samples))
    return distance - float(np.mean(by_chance))


def spread_groups(counts: Counts, size: int) -> Counts:
    """A table counted in ``size`` × ``size`` groups, each spread as the one-way marginals are."""
    group_of = (np.arange(FINE) * size) // FINE
    member = (group_of[:, None] == np.arange(size)).astype(np.float64)
    shares = [
        side / np.maximum((member.T @ side)[group_of], 1e-12) for side in (counts.sum(axis=1), counts.sum(axis=0))
    ]
    coarse = member.T @ counts @ member
    return np.asarray(coarse[np.ix_(group_of, group_of)] * np.outer(*shares), np.float64)


def lost_shares(folder: Path) -> tuple[int, dict[int, float]]:
    """The number of pairs that depend on each other, and the share that each level loses of their distance."""
    columns = json.loads((folder / "columns.json").read_text())
    path = next(path for path in (folder / "data.csv.gz", folder / "train.csv.gz") if path.exists())
    table, rng = read_table(path, columns), np.random.default_rng(0)
    numbers = [name for name, column in columns.items() if column["kind"] != "categorical"]
    ranks = {name: pd.to_numeric(table[name]).rank(method="average") / (len(table) + 1) for name in numbers}
    codes = {name: np.minimum((rank * FINE).astype(int), FINE - 1) for name, rank in ranks.items()}
    total, lost, pairs = 0.0, dict.fromkeys(SIZES, 0.0), 0
    for one, other in combinations(numbers, 2):
        counts = np.zeros((FINE, FINE))
        np.add.at(counts, (codes[one], codes[other]), 1)
        distance = excess_distance(np.outer(counts.sum(axis=1), counts.sum(axis=0)) / len(table), counts, rng)
        if distance < MIN_DISTANCE:
            continue
        pairs, total = pairs + 1, total + distance
        for size in SIZES:
            lost[size] += max(excess_distance(spread_groups(counts, size), counts, rng), 0.0)
    return pairs, {size: sum_ / max(total, 1e-12) for size, sum_ in lost.items()}


def main() -> None:
    """Print a line for each table, and the rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    print("| table | pairs | " + " | ".join(f"{size} × {size}" for size in SIZES) + " |")
    print("|---|---|" + "---|" * len(SIZES))
    for folder in parser.parse_args().folders:
        pairs, lost = lost_shares(folder)
        print(f"| {folder.name} | {pairs} | " + " | ".join(f"{lost[size]:.2f}" for size in SIZES) + " |")
    rule = [1 - (1 - size**-LEVEL_POWER) ** 2 for size in SIZES]
    print("| rule | | " + " | ".join(f"{share:.2f}" for share in rule) + " |")


if __name__ == "__main__":
    main()
