"""How much time and memory do tables with hundreds of columns take?

    python -m bench.wide [--rows N] [--columns N ...] [--epsilon E ...]

Makes a table of binary columns, categories of 5 to 20 values and whole numbers; every tenth column depends on the one
before it of its kind. Releases it with ``independent`` and with ``dpsyn``, each in a separate process, and prints time,
peak memory, the number of marginals of several attributes, and the ratio to ``independent``. The goals: 2 000 × 300 in
less than a minute and 2 000 MB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpsyn
from bench.measuring import own_peak_megabytes, provenance
from dpsyn.recipes.registry import find_recipe
from dpsyn.schema import Categorical, Integer, Schema

SEED = 20
KINDS = 5
"""Of five columns two are binary, two are categories, and one is a number."""

DELTA = 1e-9


def make_table(rows: int, columns: int) -> tuple[pd.DataFrame, Schema]:
    """The table and its public schema."""
    rng = np.random.default_rng(SEED)
    data: dict[str, Any] = {}
    attributes: list[Categorical | Integer] = []
    for number in range(columns):
        name, kind = f"c{number}", number % KINDS
        depends = number >= KINDS and number // KINDS % 10 == 1
        if kind == KINDS - 1:
            attributes.append(Integer(name=name, low=0, high=1000))
            values = np.minimum(rng.gamma(2.0, 20.0, rows), 1000).astype(np.int64)
            data[name] = np.where(rng.random(rows) < 0.7, data[f"c{number - KINDS}"], values) if depends else values
            continue
        size = 2 if kind < 2 else int(rng.integers(5, 21))
        attributes.append(Categorical(name=name, codes=size))
        codes = rng.choice(size, rows, p=rng.dirichlet(np.ones(size)))
        data[name] = np.where(rng.random(rows) < 0.7, data[f"c{number - KINDS}"] % size, codes) if depends else codes
    return pd.DataFrame(data), Schema(attributes=tuple(attributes))


def release(rows: int, columns: int, epsilon: float, recipe: str) -> dict[str, Any]:
    """Release the table once, in this process."""
    table, schema = make_table(rows, columns)
    start = time.perf_counter()
    synopsis = dpsyn.measure(table, schema, epsilon=epsilon, delta=DELTA, recipe=find_recipe(recipe, {}))
    synopsis.generate(rows=rows, seed=SEED)
    seconds = time.perf_counter() - start
    measured = [m for one in synopsis.releases for measured in one.rounds for m in measured.marginals]
    larger = sum(len(marginal.clique) > 1 for marginal in measured)
    return {"seconds": seconds, "megabytes": own_peak_megabytes(), "larger": larger}


def run(*arguments: object) -> dict[str, Any]:
    """Run ``release`` in a separate process."""
    command = [sys.executable, "-m", "bench.wide", "--release", *map(str, arguments)]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[1])
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Print a line for each recipe, number of columns and ε."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--columns", nargs="+", type=int, default=[100, 300])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--release", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.release:
        rows, columns, epsilon, recipe = given.release
        print(json.dumps(release(int(rows), int(columns), float(epsilon), recipe)))
        return
    print(provenance(SEED))
    for columns in given.columns:
        for epsilon in given.epsilon:
            baseline = run(given.rows, columns, epsilon, "independent")
            found = run(given.rows, columns, epsilon, "dpsyn")
            print(f"{given.rows:,} × {columns}, ε = {epsilon:g}")
            for recipe, result in (("independent", baseline), ("dpsyn", found)):
                print(
                    f"  {recipe:<12} {result['seconds']:6.1f} s ({result['seconds'] / baseline['seconds']:.2f} × "
                    f"independent), {result['megabytes']:6,.0f} MB, {result['larger']} marginals of several attributes"
                )


if __name__ == "__main__":
    main()
