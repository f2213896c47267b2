"""Are forecasts right? What they expect beside what releases of real tables reach.

    python -m bench.forecast run FOLDER... --reached FILE --results FILE [--rows 500 1000 2000 5000]
        [--epsilon 0.1 1 10] [--releases 1]
    python -m bench.forecast report --reached FILE --results FILE

Each FOLDER has a table, as for ``bench.small``, whose results are ``--reached``. ``run`` forecasts, from what is public
about the table, every size and ε that was reached there, by simulated releases and in closed form, and adds a line of
JSON for each to the results; those that are there are not run again. ``report`` prints a line for each cell, and how
often forecasts hold: the reached two-way error lies within the forecast's range, and within a factor of 1.5 of the
forecast for moderate dependence.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

import dpsyn
from bench.measuring import commit
from bench.mixed import build_schema
from bench.small import DELTA, read_columns
from dpsyn.forecasts.closed_form import expect_errors
from dpsyn.forecasts.results import UNCERTAINTY

RECIPE = "dpsyn"
NEAR = 1.5
"""A forecast is near if it is within this factor of what was reached."""

Cell = tuple[str, int, float]
Line = dict[str, Any]


def read_lines(path: Path) -> list[Line]:
    """The lines of a file of results; none if it does not exist yet."""
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def cell_of(line: Line) -> Cell:
    """The table, the number of rows and the ε of a line."""
    return line["table"], line["rows"], line["epsilon"]


def average_reached(lines: Iterable[Line]) -> dict[Cell, float]:
    """The mean two-way error of each cell, over releases by the default recipe."""
    cells: dict[Cell, list[float]] = defaultdict(list)
    for line in lines:
        if line["recipe"] == RECIPE:
            cells[cell_of(line)].append(line["tvd2"])
    return {cell: mean(values) for cell, values in cells.items()}


def run(given: argparse.Namespace) -> None:
    """Forecast the cells that are missing in the results."""
    reached, done = average_reached(read_lines(given.reached)), {cell_of(line) for line in read_lines(given.results)}
    for folder in given.folders:
        schema = build_schema(read_columns(folder))
        for rows in given.rows:
            wanted = [(folder.name, rows, epsilon) for epsilon in given.epsilon]
            epsilons = [cell[2] for cell in wanted if cell in reached and cell not in done]
            if not epsilons:
                continue
            start = time.process_time()
            forecast = dpsyn.forecast(schema, epsilons, rows=rows, delta=DELTA, releases=given.releases)
            spent = (time.process_time() - start) / len(epsilons)
            with given.results.open("a") as file:
                for budget in forecast.budgets:
                    start = time.process_time()
                    quick = expect_errors(schema, budget.epsilon, rows=rows, delta=DELTA)
                    line = {"table": folder.name, "rows": rows, "epsilon": budget.epsilon, "commit": commit()}
                    line |= {name: getattr(budget, name).two_way for name in ("weak", "moderate", "strong")}
                    line |= {"cpu": spent, "quick": quick.two_way, "quick_cpu": time.process_time() - start}
                    file.write(json.dumps({k: round(v, 5) if isinstance(v, float) else v for k, v in line.items()}))
                    file.write("\n")


def expected_range(line: Line) -> tuple[float, float]:
    """The range of a forecast, as ``ForecastAtEpsilon.two_way_range`` has it."""
    errors = [line[name] for name in ("weak", "moderate", "strong")]
    return min(errors) / UNCERTAINTY, min(1.0, max(errors) * UNCERTAINTY)


def print_report(reached: dict[Cell, float], lines: Iterable[Line]) -> None:
    """A table of all cells, and how often forecasts hold."""
    cells = [(line, reached[cell_of(line)]) for line in lines if cell_of(line) in reached]
    print("| table | rows | ε | reached | moderate | range | closed form | reached / moderate |")
    print("|---|---|---|---|---|---|---|---|")
    for line, error in sorted(cells, key=lambda cell: cell_of(cell[0])):
        low, high = expected_range(line)
        outside = "" if low <= error <= high else " **!**"
        print(
            f"| {line['table']} | {line['rows']} | {line['epsilon']:g} | {error:.4f}{outside} | {line['moderate']:.4f} "
            f"| {low:.4f} … {high:.4f} | {line['quick']:.4f} | {error / line['moderate']:.2f} |"
        )
    ranges = [(*expected_range(line), error) for line, error in cells]
    widths = [high / low for low, high, _ in ranges]
    print(f"\n{len(cells)} cells; largest strong/weak {max(widths):.2f}, mean {mean(widths):.2f}")
    inside = mean(low <= error <= high for low, high, error in ranges)
    print(f"reached error between weak and strong: {inside:.0%}")
    for name, title in (("moderate", "moderate forecast"), ("quick", "closed form")):
        ratios = [error / line[name] for line, error in cells]
        near = mean(1 / NEAR <= ratio <= NEAR for ratio in ratios)
        print(f"reached error within a factor of {NEAR} of the {title}: {near:.0%}; mean {geometric_mean(ratios):.2f}")
    agree = [line["quick"] / line["moderate"] for line, _ in cells]
    near = mean(1 / NEAR <= ratio <= NEAR for ratio in agree)
    print(f"closed form within a factor of {NEAR} of the simulation: {near:.0%}; mean {geometric_mean(agree):.2f}")


def main() -> None:
    """Run forecasts, or print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("folders", nargs="+", type=Path)
    runs.add_argument("--rows", nargs="+", type=int, default=[500, 1_000, 2_000, 5_000])
    runs.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    runs.add_argument("--releases", type=int, default=1)
    report = commands.add_parser("report")
    for command in (runs, report):
        command.add_argument("--reached", required=True, type=Path)
        command.add_argument("--results", required=True, type=Path)
    given = parser.parse_args()
    if given.command == "report":
        print_report(average_reached(read_lines(given.reached)), read_lines(given.results))
    else:
        run(given)


if __name__ == "__main__":
    main()
