"""Is the default recipe ever worse than measuring every column by itself? Tables cut to a few thousand rows.

    python -m bench.small run FOLDER... --judge mixed.py --results FILE [--rows 500 1000 2000 5000] [--epsilon 0.1 1 10]
        [--recipe dpsyn independent] [--releases 3]
    python -m bench.small report --results FILE

Each FOLDER has a table: of integer codes with ``domain.json``, or of real types with ``columns.json`` (see
``bench.utility`` and ``bench.mixed``). ``run`` draws the same rows of it for all recipes, releases them with δ = 1e-9,
and adds a line of JSON with the figures of the judge to the results; releases that are already there are not run again.
A size that a table does not have is left out. ``report`` prints for each cell the mean total variation distances of all
one-way and two-way marginals, those of ``dpsyn`` as a ratio to ``independent``, and the means of the ratios.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from types import ModuleType
from typing import Any

import pandas as pd

import dpsyn
from bench.measuring import commit, load_judge
from bench.mixed import build_schema, read_table
from bench.utility import LEFT_OUT
from dpsyn.recipes.registry import find_recipe

DELTA = 1e-9
SEED = 1
Line = dict[str, Any]


def read_columns(folder: Path) -> dict[str, Any]:
    """What is public about a table: the kind of each column, and its bounds or values."""
    if (folder / "columns.json").exists():
        columns: dict[str, Any] = json.loads((folder / "columns.json").read_text())
        return columns
    sizes = json.loads((folder / "domain.json").read_text())
    return {
        name: {"kind": "categorical", "values": [str(code) for code in range(size)]}
        for name, size in sizes.items()
        if name not in LEFT_OUT.get(folder.name, ())
    }


def read_rows(folder: Path, columns: dict[str, Any]) -> pd.DataFrame:
    """The rows of a table, in the order of its file."""
    names = ("data.csv.gz", "train.csv.gz")
    path = next((folder / name for name in names if (folder / name).exists()), None)
    return read_table(path or next(folder.glob("*.csv.gz")), columns)


def release(rows: pd.DataFrame, columns: dict[str, Any], judge: Any, epsilon: float, recipe: str) -> Line:
    """Release some rows once, and judge the synthetic ones."""
    start = time.process_time()
    synopsis = dpsyn.measure(rows, build_schema(columns), epsilon=epsilon, delta=DELTA, recipe=find_recipe(recipe, {}))
    synthetic = synopsis.generate(rows=len(rows), seed=SEED)
    spent = time.process_time() - start
    for name, column in columns.items():
        if column["kind"] == "categorical":
            synthetic[name] = synthetic[name].astype(object).where(synthetic[name].notna(), None)
    figures = {name: round(float(value), 5) for name, value in judge.scores(synthetic).items()}
    return {**figures, "cpu": round(spent, 2)}


def run(given: argparse.Namespace, judges: ModuleType) -> None:
    """Run all releases that are not among the results."""
    done: dict[tuple[Any, ...], int] = defaultdict(int)
    if given.results.exists():
        for text in given.results.read_text().splitlines():
            line = json.loads(text)
            done[line["table"], line["rows"], line["epsilon"], line["recipe"]] += 1
    for folder in given.folders:
        columns = read_columns(folder)
        table = read_rows(folder, columns)
        for size in given.rows:
            if size > len(table):
                continue
            rows = table.sample(size, random_state=SEED).reset_index(drop=True)
            judge = judges.Judge(rows, columns, SEED)
            judge.triples = []
            for epsilon in given.epsilon:
                for recipe in given.recipe:
                    for _ in range(done[folder.name, size, epsilon, recipe], given.releases):
                        line = {"table": folder.name, "rows": size, "epsilon": epsilon, "recipe": recipe}
                        line |= {"commit": commit(), **release(rows, columns, judge, epsilon, recipe)}
                        with given.results.open("a") as file:
                            file.write(json.dumps(line) + "\n")


def print_report(lines: Sequence[Line], recipe: str = "dpsyn", baseline: str = "independent") -> None:
    """A table of all cells, and the means of the ratios."""
    groups: dict[tuple[str, int, float], dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        groups[line["table"], line["rows"], line["epsilon"]][line["recipe"]].append(line)
    print(f"| table | rows | ε | tvd2 {recipe} | {baseline} | ratio | tvd1 {recipe} | {baseline} | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios: dict[str, list[tuple[float, int, float]]] = defaultdict(list)
    for (table, rows, epsilon), by_recipe in sorted(groups.items()):
        if not by_recipe[recipe] or not by_recipe[baseline]:
            continue
        cells = []
        for figure in ("tvd2", "tvd1"):
            one, other = ([line[figure] for line in by_recipe[name]] for name in (recipe, baseline))
            ratio, error = mean(one) / mean(other), _ratio_error(one, other)
            ratios[figure].append((ratio, rows, epsilon))
            limit = 1.02 if figure == "tvd2" else 1.05
            mark = " **!**" if ratio - 2 * error > limit else ""
            cells += [f"{mean(one):.4f}", f"{mean(other):.4f}", f"{ratio:.3f} ± {error:.3f}{mark}"]
        print(f"| {table} | {rows} | {epsilon:g} | " + " | ".join(cells) + " |")
    for figure, found in ratios.items():
        large = [ratio for ratio, rows, epsilon in found if rows >= 2_000 and epsilon >= 10]
        print(
            f"\n{figure}: mean ratio {mean([ratio for ratio, _, _ in found]):.3f} over {len(found)} cells, "
            f"largest {max(ratio for ratio, _, _ in found):.3f}"
            + (f"; at ε = 10 with 2 000 rows or more {mean(large):.3f}" if large else "")
        )


def _ratio_error(one: Sequence[float], other: Sequence[float]) -> float:
    """The standard error of the ratio of two means."""
    if min(len(one), len(other)) < 2:
        return 0.0
    parts = [stdev(values) / len(values) ** 0.5 / mean(values) for values in (one, other)]
    return mean(one) / mean(other) * math.hypot(*parts)


def main() -> None:
    """Run releases, or print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("folders", nargs="+", type=Path)
    runs.add_argument("--judge", required=True, type=Path)
    runs.add_argument("--rows", nargs="+", type=int, default=[500, 1_000, 2_000, 5_000])
    runs.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    runs.add_argument("--recipe", nargs="+", default=["dpsyn", "independent"])
    runs.add_argument("--releases", type=int, default=3)
    report = commands.add_parser("report")
    for command in (runs, report):
        command.add_argument("--results", required=True, type=Path)
    given = parser.parse_args()
    if given.command == "report":
        print_report([json.loads(line) for line in given.results.read_text().splitlines()])
    else:
        run(given, load_judge(given.judge))


if __name__ == "__main__":
    main()
