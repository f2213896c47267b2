"""Is a parity of several numbers kept, which shows in no pair and in no smaller table?

    python -m bench.xor [--epsilon 1] [--rows 8000] [--releases 3]

The label is the parity of the signs of k numbers, uniform from −1 to 1. A random forest with a fixed seed is trained on
synthetic rows and tested on fresh rows of the same process; what it reaches after training on the real rows stands
beside it. The label is declared as the target; δ = 1e-9.
"""

from __future__ import annotations

import argparse
from statistics import mean, stdev

import numpy as np
import pandas as pd

import dpsyn
from bench.measuring import provenance
from dpsyn.schema import Categorical, Real, Schema

SEED = 1
CASES = ((2, 0), (3, 0), (4, 0), (2, 18))
"""How many numbers decide the label, and how many idle ones stand beside them."""


def generate_rows(rows: int, numbers: int, idle: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of the process."""
    table = pd.DataFrame({f"x{index}": rng.uniform(-1, 1, rows).round(4) for index in range(numbers + idle)})
    odd = (table.iloc[:, :numbers] > 0).sum(axis=1) % 2 == 1
    return table.assign(label=np.where(odd, "odd", "even"))


def accuracy(train: pd.DataFrame, test: pd.DataFrame) -> float:
    """The accuracy of a random forest on rows that it has not seen."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(random_state=SEED)
    forest.fit(train.drop(columns="label"), train["label"].astype(str))
    return float(forest.score(test.drop(columns="label"), test["label"]))


def main() -> None:
    """Print a table of accuracies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=8_000)
    parser.add_argument("--releases", type=int, default=3)
    given = parser.parse_args()
    print(f"ε = {given.epsilon:g}, δ = 1e-9, {given.rows} rows, {given.releases} releases; {provenance(SEED)}\n")
    print("| numbers | idle columns | synthetic rows | real rows |")
    print("|---|---|---|---|")
    for numbers, idle in CASES:
        rng = np.random.default_rng(SEED)
        real, fresh = (generate_rows(given.rows, numbers, idle, rng) for _ in range(2))
        numeric = [Real(name=name, low=-1, high=1, decimals=4) for name in real.columns if name != "label"]
        schema = Schema(attributes=(*numeric, Categorical(name="label", values=("even", "odd"))))
        found = [
            accuracy(
                dpsyn.measure(real, schema, given.epsilon, delta=1e-9, target="label").generate(given.rows, seed=SEED),
                fresh,
            )
            for _ in range(given.releases)
        ]
        error = f" ± {stdev(found) / len(found) ** 0.5:.3f}" if len(found) > 1 else ""
        print(f"| {numbers} | {idle} | {mean(found):.3f}{error} | {accuracy(real, fresh):.3f} |", flush=True)


if __name__ == "__main__":
    main()
