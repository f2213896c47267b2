"""How much of a pair of numbers does a coarser level lose? The calibration of ``LEVEL_POWER``.

    python -m bench.levels FOLDER...

Each FOLDER is one of ``bench.mixed``. Every pair of numbers is counted in 24 × 24 groups of equal mass and, for
several k, in k × k groups, whose counts are spread inside each group as the one-way marginals are. The figure is the
distance of the spread table from the fine one, divided by that of independent numbers. What sampling alone causes is
subtracted from both: the distance of tables that are sampled from the spread one. Pairs that are nearly independent are
left out. The last line is the rule: a level of k groups loses k^(−LEVEL_POWER) of each attribute.

Then the power is fitted to each half of the tables and checked on the other half: the mean absolute difference between
what the fitted rule says and what the tables lose.
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


POWERS = np.arange(0.5, 1.5, 0.01)


def rule_shares(power: float) -> Counts:
    """The share that the rule says is lost at k × k groups, for each k."""
    return 1 - (1 - np.array(SIZES, np.float64) ** -power) ** 2


def check_halves(losses: list[list[float]]) -> tuple[list[float], list[float], list[float]]:
    """The power fitted to each half of the tables, its error on the other half, and that of the rule in use."""
    powers, errors, of_rule = [], [], []
    for half in combinations(range(len(losses)), len(losses) // 2):
        fitted = np.mean([losses[number] for number in half], axis=0)
        others = np.array([losses[number] for number in range(len(losses)) if number not in half])
        power = min(POWERS, key=lambda power: float(((rule_shares(power) - fitted) ** 2).sum()))
        powers.append(float(power))
        errors.append(float(np.abs(others.mean(axis=0) - rule_shares(power)).mean()))
        of_rule.append(float(np.abs(others.mean(axis=0) - rule_shares(LEVEL_POWER)).mean()))
    return powers, errors, of_rule


def main() -> None:
    """Print a line for each table, the rule, and how it does on tables that it was not fitted to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    print("| table | pairs | " + " | ".join(f"{size} × {size}" for size in SIZES) + " |")
    print("|---|---|" + "---|" * len(SIZES))
    losses = []
    for folder in parser.parse_args().folders:
        pairs, lost = lost_shares(folder)
        losses.append([lost[size] for size in SIZES])
        print(f"| {folder.name} | {pairs} | " + " | ".join(f"{lost[size]:.2f}" for size in SIZES) + " |")
    print("| rule | | " + " | ".join(f"{share:.2f}" for share in rule_shares(LEVEL_POWER)) + " |")
    if len(losses) > 1:
        powers, errors, of_rule = check_halves(losses)
        print(
            f"\nfitted to half of the tables, {len(powers)} ways: power {min(powers):.2f} … {max(powers):.2f}, mean "
            f"{np.mean(powers):.2f}; off by {np.mean(errors):.3f} on the other half, at most {max(errors):.3f} (the "
            f"rule in use, {LEVEL_POWER}: {np.mean(of_rule):.3f}, {max(of_rule):.3f})"
        )


if __name__ == "__main__":
    main()
