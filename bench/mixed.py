"""How well are tables of real types preserved: numbers with tails and spikes, dates, long lists, a target to predict?

    python -m bench.mixed run FOLDER... --judge mixed.py --results FILE [--epsilon 1] [--recipe dpsyn] [--releases 3]
        [--target]
    python -m bench.mixed report --results FILE

Each FOLDER has a table, ``data.csv.gz`` (or ``train.csv.gz`` and ``test.csv.gz``), and ``columns.json``, which states
what is public about it: the kind of each column, its bounds and decimals, or its values. ``run`` releases the table
with δ = 1e-9 and default settings and adds a line of JSON with the figures to the results. With ``--target`` the column
to predict (``label`` or ``Class``) is declared to the recipe. ``report`` prints the means over releases, by table, ε
and recipe, with standard errors.

The judge is a Python file with a class ``Judge(real, columns, seed)``, whose ``scores(table)`` returns the figures, and
a function ``learned(train, test, columns, target, seed)``: what a model that was trained on one table is worth on
another.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev
from types import ModuleType
from typing import Any

import pandas as pd

import dpsyn
from bench.measuring import commit, load_judge
from dpsyn.recipes import DEFAULT_RECIPE
from dpsyn.recipes.registry import find_recipe
from dpsyn.schema import Categorical, Integer, Real, Schema

DELTA = 1e-9
SEED = 1
TARGETS = ("label", "Class")
FIGURES = ("tvd1", "tvd2", "tvd2_numbers", "tvd3", "spearman", "spikes", "tail", "score", "cpu")
"""The figures of a report; all but ``score`` are distances, the smaller the better."""

Line = dict[str, Any]


def build_schema(columns: dict[str, Any]) -> Schema:
    """The public schema that ``columns.json`` describes."""

    def attribute(name: str, column: dict[str, Any]) -> Categorical | Integer | Real:
        match column["kind"]:
            case "categorical":
                return Categorical(name=name, values=tuple(column["values"]))
            case "integer":
                return Integer(name=name, low=int(column["low"]), high=int(column["high"]))
            case _:
                return Real(name=name, low=column["low"], high=column["high"], decimals=column.get("decimals"))

    return Schema(attributes=tuple(attribute(name, column) for name, column in columns.items()))


def read_table(path: Path, columns: dict[str, Any]) -> pd.DataFrame:
    """A table with its categories as text."""
    texts = {name: str for name, column in columns.items() if column["kind"] == "categorical"}
    return pd.read_csv(path, dtype=texts)[list(columns)]


def release(folder: Path, judge: ModuleType, epsilon: float, recipe: str, declare_target: bool) -> Line:
    """Release a table once, and judge the rows."""
    columns = json.loads((folder / "columns.json").read_text())
    data = next(path for path in (folder / "data.csv.gz", folder / "train.csv.gz") if path.exists())
    target = next((name for name in TARGETS if name in columns), None)
    options = {"target": target} if declare_target and target else {}
    start = time.process_time()
    synopsis = dpsyn.measure(
        data, build_schema(columns), epsilon=epsilon, delta=DELTA, recipe=find_recipe(recipe, options)
    )
    real = read_table(data, columns)
    rows = synopsis.generate(rows=len(real), seed=SEED).to_pandas()
    spent = time.process_time() - start
    for name, column in columns.items():
        if column["kind"] == "categorical":
            rows[name] = rows[name].astype(object).where(rows[name].notna(), None)
    line: Line = dict(judge.Judge(real, columns, SEED).scores(rows)) | {"cpu": spent}
    if target is not None:
        held_out = folder / "test.csv.gz"
        test = read_table(held_out, columns) if held_out.exists() else real
        line["score"] = judge.learned(rows, test, columns, target, SEED)
    figures = {name: round(float(value), 4) for name, value in line.items()}
    title = f"{recipe} --target" if options else recipe
    return {"table": folder.name, "epsilon": epsilon, "recipe": title, "commit": commit(), **figures}


def print_report(lines: list[Line]) -> None:
    """A table of means and standard errors."""
    groups: dict[tuple[str, float, str], list[Line]] = defaultdict(list)
    for line in lines:
        groups[line["table"], line["epsilon"], line["recipe"]].append(line)
    print("| table | ε | recipe | releases | " + " | ".join(FIGURES) + " |")
    print("|---|---|---|---|" + "---|" * len(FIGURES))
    for (table, epsilon, recipe), members in sorted(groups.items()):
        cells = [_format_mean([line[figure] for line in members if figure in line]) for figure in FIGURES]
        print(f"| {table} | {epsilon:g} | {recipe} | {len(members)} | " + " | ".join(cells) + " |")


def _format_mean(values: list[float]) -> str:
    if not values:
        return ""
    error = f" ± {stdev(values) / len(values) ** 0.5:.3f}" if len(values) > 1 else ""
    return f"{mean(values):.3f}{error}"


def main() -> None:
    """Run releases, or print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("folders", nargs="+", type=Path)
    run.add_argument("--judge", required=True, type=Path)
    run.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    run.add_argument("--recipe", default=DEFAULT_RECIPE)
    run.add_argument("--releases", type=int, default=3)
    run.add_argument("--target", action="store_true")
    report = commands.add_parser("report")
    for command in (run, report):
        command.add_argument("--results", required=True, type=Path)
    given = parser.parse_args()
    if given.command == "report":
        print_report([json.loads(line) for line in given.results.read_text().splitlines()])
        return
    judge = load_judge(given.judge)
    for epsilon in given.epsilon:
        for folder in given.folders:
            for _ in range(given.releases):
                line = release(folder, judge, epsilon, given.recipe, given.target)
                with given.results.open("a") as file:
                    file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
