"""Is a release with public rows as good as the better of what it is made from, and harmless if they mislead?

    python -m bench.public run FOLDER --judge evaluate.py --results FILE [--cells adult_public …] [--epsilon 0.1 1 10]
        [--releases 3]
    python -m bench.public report --results FILE

FOLDER has tables of integer codes (``adult_public``, ``acs35``, ``adult``, ``stroke110``). Each cell is a private table
and public rows of the same columns:

* ``adult_public``: Adult, cut into a public and a private part that are distributed differently;
* ``acs35 year``: the last year is private, the earlier ones are public; ``acs35 puma``: odd areas and even ones;
* ``adult 2000``, ``stroke110 2000``: 2 000 rows and another 2 000 rows of the same table.

``run`` releases the private table without public rows and with them, and for ``adult_public`` and ``adult 2000`` with
public rows that mislead: their columns shuffled, those of a simulated table, one row repeated, ten rows. Each release
is a line of JSON; those that are already there are not run again. ``report`` prints the mean total variation distance
of all two-way marginals, of the public rows, of releases without and with them, the ratio of the latter to the better
of the two, with two standard errors; for rows that mislead, the ratio to releases without them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import dpsyn
from bench.measuring import commit, load_judge
from dpsyn.schema import Categorical, Schema
from dpsyn.simulation import simulate

DELTA = 1e-9
SEED = 1
CUT_ROWS = 2_000
CELLS = ("adult_public", "acs35 year", "acs35 puma", "adult 2000", "stroke110 2000")
MISLED = ("adult_public", "adult 2000")
BAD = ("shuffled", "simulated", "constant", "ten rows")
Line = dict[str, Any]


def load_cell(folder: Path, cell: str) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, int]]:
    """The private rows, the public rows, and the number of codes of each column."""
    name, _, part = cell.partition(" ")
    sizes = json.loads((folder / name / "domain.json").read_text())
    if name == "adult_public":
        private, public = (pd.read_csv(folder / name / f"{which}.csv.gz")[list(sizes)] for which in ("priv", "pub"))
        return private, public, sizes
    rows = pd.read_csv(folder / name / "data.csv.gz")[list(sizes)]
    if part in ("year", "puma"):
        chosen = rows["YEAR"] == rows["YEAR"].max() if part == "year" else rows["PUMA"] % 2 == 1
        left_out = "YEAR" if part == "year" else "PUMA"
        sizes.pop(left_out)
        return rows[chosen][list(sizes)], rows[~chosen][list(sizes)], sizes
    order = np.random.default_rng(SEED).permutation(len(rows))
    return rows.iloc[order[:CUT_ROWS]], rows.iloc[order[CUT_ROWS : 2 * CUT_ROWS]], sizes


def mislead(public: pd.DataFrame, schema: Schema, how: str) -> Any:
    """Public rows that say little, or something else, about the private ones."""
    rng = np.random.default_rng(SEED)
    if how == "shuffled":
        return pd.DataFrame({name: rng.permutation(public[name]) for name in public})
    if how == "simulated":
        return pa.Table.from_batches(list(simulate(schema, len(public), SEED).batches()))
    if how == "constant":
        codes = {a.name: int(rng.integers(a.size)) for a in schema.attributes}
        return pd.DataFrame({name: [code] * len(public) for name, code in codes.items()})
    return public.iloc[:10]


def plan_runs(cells: list[str], epsilons: list[float], releases: int) -> Iterator[tuple[str, float, str, int]]:
    """Every release: the cell, ε, how public rows enter, and its number; all first releases before the second ones."""
    for number in range(releases):
        for cell, epsilon in itertools.product(cells, epsilons):
            for how in ("without", "with", *(BAD if cell in MISLED else ())):
                yield cell, epsilon, how, number


def run(given: argparse.Namespace) -> None:
    """Run all releases that are not among the results."""
    judge, done = load_judge(given.judge), set()
    loaded: dict[str, tuple[pd.DataFrame, pd.DataFrame, dict[str, int]]] = {}
    if given.results.exists():
        lines = [json.loads(text) for text in given.results.read_text().splitlines()]
        done = {(line["cell"], line["epsilon"], line["how"], line["number"]) for line in lines}
    for cell, epsilon, how, number in plan_runs(given.cells, given.epsilon, given.releases):
        if (cell, epsilon, how, number) in done:
            continue
        if cell not in loaded:
            loaded = {cell: load_cell(given.folder, cell)}
        private, public, sizes = loaded[cell]
        schema = Schema(attributes=tuple(Categorical(name=name, codes=size) for name, size in sizes.items()))
        prior = None if how == "without" else public if how == "with" else mislead(public, schema, how)
        because = None if prior is None else "benchmark"
        start = time.process_time()
        synopsis = dpsyn.measure(private, schema, epsilon=epsilon, delta=DELTA, public=prior, public_because=because)
        synthetic = synopsis.generate(rows=len(private), seed=SEED)[list(sizes)].astype(int)
        spent = time.process_time() - start
        line = {"cell": cell, "epsilon": epsilon, "how": how, "number": number, "commit": commit()}
        line |= {"tvd2": two_way(judge, private, synthetic, sizes), "cpu": round(spent, 1)}
        line["public"] = two_way(judge, private, public, sizes)
        with given.results.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(line, flush=True)


def two_way(judge: ModuleType, real: pd.DataFrame, other: pd.DataFrame, sizes: dict[str, int]) -> float:
    """The mean total variation distance of all two-way marginals."""
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    one, two = (table[list(sizes)].to_numpy().astype(np.int64) for table in (real, other))
    return round(float(judge.tvds(one, two, pairs, list(sizes.values())).mean()), 5)


def report(given: argparse.Namespace) -> None:
    """Print a table of all cells."""
    found: dict[tuple[str, float], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    public: dict[str, float] = {}
    for text in given.results.read_text().splitlines():
        line = json.loads(text)
        found[line["cell"], line["epsilon"]][line["how"]].append(line["tvd2"])
        public[line["cell"]] = line["public"]
    print("| table | ε | public rows | without | with | with / better | " + " | ".join(BAD) + " |")
    print("|---|---|---|---|---|---|" + "---|" * len(BAD))
    for (cell, epsilon), of_cell in sorted(found.items(), key=lambda item: (CELLS.index(item[0][0]), item[0][1])):
        without = of_cell["without"]
        if not without:
            continue
        better = min(public[cell], mean(without))
        ratios = [_ratio(of_cell["with"], better)]
        ratios += [_ratio(of_cell[how], mean(without)) for how in BAD]
        shown = f"{mean(of_cell['with']):.4f}" if of_cell["with"] else ""
        print(f"| {cell} | {epsilon:g} | {public[cell]:.4f} | {mean(without):.4f} | {shown} | {' | '.join(ratios)} |")


def _ratio(values: list[float], baseline: float) -> str:
    """The ratio of a mean to a baseline, with two standard errors of the mean."""
    if not values:
        return ""
    error = 2 * stdev(values) / math.sqrt(len(values)) / baseline if len(values) > 1 else 0.0
    return f"{mean(values) / baseline:.3f} ± {error:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    running, reporting = commands.add_parser("run"), commands.add_parser("report")
    running.add_argument("folder", type=Path)
    running.add_argument("--judge", type=Path, required=True)
    running.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    running.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    running.add_argument("--releases", type=int, default=3)
    running.set_defaults(action=run)
    reporting.set_defaults(action=report)
    for command in (running, reporting):
        command.add_argument("--results", type=Path, required=True)
    given = parser.parse_args()
    given.action(given)


if __name__ == "__main__":
    main()
