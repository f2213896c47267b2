"""How much of a table does a release preserve, and what resources does it need? With results of other systems.

    python -m bench.utility run FOLDER... --judge evaluate.py --results FILE [--epsilon 0.1 1 10] [--recipe dpsyn]
    python -m bench.utility report --results FILE [--plot FILE.png]

Each FOLDER has a table of integer codes, ``*.csv.gz``, and ``domain.json``, the number of values of each attribute.
``run`` releases it with δ = 1e-9 and default settings, each time in a new process, and adds a line of JSON with the
scores to the results; releases that are already there are not run again. ``report`` prints a table of the means over
the releases of each cell, with the best score of other systems in ``bench/peers.csv`` where one of them finished;
``--plot`` plots them. ``measured`` is the mean total variation distance of the rows from the measured marginals; at
``--epsilon 1e6`` those are the real ones.

``report`` also prints every other system by itself.

The judge is a Python file with ``score(real, synthetic, names, sizes, target, dropped)``, which returns mean total
variation distances of all 1-way, all 2-way and 300 random 3-way marginals (``tvd1`` …), the NIST density and range
scores (``nist_density``, ``nist_range``) and the ``auc`` of a classifier trained on synthetic and tested on real rows.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

import dpsyn
from bench.measuring import commit, load_judge, own_peak_megabytes, provenance
from dpsyn.recipes import DEFAULT_RECIPE
from dpsyn.schema import Categorical, Schema

SEED = 20
DELTA = 1e-9
PEERS = Path(__file__).with_name("peers.csv")
LEFT_OUT = {"fire32": ("Box", "Address")}
"""Attributes of thousands of values, which need a plan."""
TARGETS = {
    "adult": ("income>50K", ()),
    "acs35": ("HCOVANY", ("HCOVPRIV", "HINSEMP", "HINSCAID", "HINSCARE")),
}
"""What a classifier predicts, and the attributes that reveal it."""

Codes = NDArray[np.int64]
Line = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of integer codes."""

    name: str
    schema: Schema
    codes: Codes

    @classmethod
    def load(cls, folder: Path) -> Table:
        """Read a table, without attributes that need a plan."""
        sizes = json.loads((folder / "domain.json").read_text())
        names = [name for name in sizes if name not in LEFT_OUT.get(folder.name, ())]
        read = pacsv.read_csv(next(folder.glob("*.csv.gz")))
        schema = Schema(attributes=tuple(Categorical(name=name, codes=sizes[name]) for name in names))
        return cls(folder.name, schema, np.stack([read[name].to_numpy() for name in names], axis=1).astype(np.int64))

    @property
    def sizes(self) -> list[int]:
        """The number of values of each attribute."""
        return [attribute.cells for attribute in self.schema]

    def arrow(self) -> pa.Table:
        """The table as a release reads it."""
        return pa.table({name: self.codes[:, axis] for axis, name in enumerate(self.schema.names)})

    def codes_of(self, rows: pa.Table) -> Codes:
        """Synthetic rows as codes."""
        return np.stack([rows[name].to_numpy() for name in self.schema.names], axis=1).astype(np.int64)


def score_rows(table: Table, rows: Codes, judge: Path) -> Line:
    target, dropped = TARGETS.get(table.name, (None, ()))
    scores: Line = load_judge(judge).score(table.codes, rows, list(table.schema.names), table.sizes, target, dropped)
    names = {"tvd1": "one_way", "tvd2": "two_way", "tvd3": "three_way", "nist_density": "density"}
    return {names.get(key, key.removeprefix("nist_")): scores[key] for key in (*names, "nist_range", "auc")}


def release_table(table: Table, epsilon: float, recipe: str | dpsyn.Recipe, seed: int) -> tuple[pa.Table, Line]:
    """The synthetic rows of one release, and the time and memory it took from rows in memory."""
    data = table.arrow()
    wall, processor = time.perf_counter(), time.process_time()
    synopsis = dpsyn.measure(data, table.schema, epsilon, delta=DELTA, allow_large_epsilon=True, recipe=recipe)
    rows = synopsis.generate(seed=seed)
    took = {"processor": time.process_time() - processor, "wall": time.perf_counter() - wall}
    megabytes, cliques = own_peak_megabytes(), [len(estimate.clique) for estimate in synopsis.model.tables]
    about = {"table": table.name, "epsilon": epsilon, "recipe": str(recipe), "seed": seed, "commit": commit()}
    distances = [marginal.distance.synthetic for marginal in synopsis.compare_rows(rows).marginals]
    marginals = {"pairs": cliques.count(2), "triples": cliques.count(3), "measured": len(distances)}
    return rows, about | took | {"megabytes": megabytes} | marginals | {"apart": mean(distances)}


def release_and_score(folder: Path, epsilon: float, recipe: str, seed: int, judge: Path) -> Line:
    """One release and its scores."""
    table = Table.load(folder)
    rows, about = release_table(table, epsilon, recipe, seed)
    return about | score_rows(table, table.codes_of(rows), judge)


def score_baselines(folder: Path, judge: Path) -> list[Line]:
    """The scores of the table with each column shuffled, and of a bootstrap sample of it."""
    table, rng = Table.load(folder), np.random.default_rng(SEED)
    shuffled = np.stack([rng.permutation(column) for column in table.codes.T], axis=1)
    again = table.codes[rng.integers(0, len(table.codes), len(table.codes))]
    return [
        {"table": folder.name, "recipe": recipe, "epsilon": None, "seed": SEED} | score_rows(table, rows, judge)
        for recipe, rows in (("columns shuffled", shuffled), ("bootstrap", again))
    ]


def run(chosen: argparse.Namespace) -> None:
    """Run the releases that are missing in the results."""
    done_keys = {_key(line) for line in read(chosen.results)}
    for folder in chosen.folders:
        tasks: list[tuple[str, ...]] = [] if (folder.name, "bootstrap", None, SEED) in done_keys else [("baselines",)]
        for epsilon in chosen.epsilon:
            for recipe in chosen.recipe:
                for seed in range(chosen.seeds):
                    if (folder.name, recipe, epsilon, seed) not in done_keys:
                        tasks.append(("one", str(epsilon), recipe, str(seed)))
        for words in tasks:
            command = [sys.executable, "-m", "bench.utility", words[0], str(folder), str(chosen.judge), *words[1:]]
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1])
            print(folder.name, *words[1:], "failed" if done.returncode else done.stdout.strip(), flush=True)
            if done.returncode:
                print(done.stderr, file=sys.stderr, flush=True)
                continue
            with chosen.results.open("a") as file:
                file.write(done.stdout)
                os.fsync(file.fileno())


def read(path: Path) -> list[Line]:
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def _key(line: Line) -> tuple[Any, ...]:
    return (line["table"], line["recipe"], line["epsilon"], line["seed"])


# ── report ───────────────────────────────────────────────────────────────────────────────────────────────────

COLUMNS = {
    "apart": "measured",
    "one_way": "one-way",
    "two_way": "two-way",
    "three_way": "three-way",
    "density": "density",
    "range": "range",
    "auc": "AUC",
    "processor": "processor s",
    "wall": "wall s",
    "megabytes": "MB",
}
"""The reported scores and their titles."""

LOWER = ("one_way", "two_way", "three_way", "processor", "wall", "megabytes")


def average_lines(lines: Iterable[Line]) -> dict[tuple[str, float | None, str], Line]:
    """Means over the seeds of each cell."""
    cells: dict[tuple[str, float | None, str], list[Line]] = defaultdict(list)
    for line in lines:
        cells[line["table"], line["epsilon"], line["recipe"]].append(line)
    return {
        cell: {
            column: mean(values)
            for column in COLUMNS
            if (values := [line[column] for line in group if line.get(column) is not None])
        }
        | {"releases": len(group)}
        for cell, group in cells.items()
    }


def best_peers() -> dict[tuple[str, float], Line]:
    """For each table and ε the best value of each score over all other systems."""
    results: dict[tuple[str, float], Line] = defaultdict(dict)
    with PEERS.open() as file:
        for line in csv.DictReader(file):
            best = results[line["table"], float(line["epsilon"])]
            for column in ("two_way", "three_way", "density", "range", "auc", "processor"):
                if line[column]:
                    value = float(line[column])
                    better = min if column in LOWER else max
                    best[column] = better(best.get(column, value), value)
    return results


def list_peers() -> list[str]:
    """A table of every result of another system, as lines of Markdown."""
    lines = [
        "| table | ε | system | two-way | three-way | density | range | AUC | processor s | MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    with PEERS.open() as file:
        for line in csv.DictReader(file):
            scores = [f"{int(line[column]):,}".replace(",", " ") for column in ("density", "range")]
            columns = ("table", "epsilon", "peer", "two_way", "three_way")
            cells = [*(line[column] for column in columns), *scores, line["auc"], line["processor"], line["megabytes"]]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def report(chosen: argparse.Namespace) -> None:
    """Print the table of scores, and plot it if asked to."""
    lines = read(chosen.results)
    cells, peers = average_lines(lines), best_peers()
    commits = ", ".join(sorted({line["commit"] for line in lines if "commit" in line}))
    print(f"{provenance(SEED)}; figures of commits {commits}; δ = {DELTA}\n")
    shown = [column for column in COLUMNS if any(column in figures for figures in cells.values())]
    print(f"| table | ε | | {' | '.join(COLUMNS[column] for column in shown)} | releases |")
    print("|---" * (len(shown) + 4) + "|")
    for (name, epsilon, recipe), figures in sorted(cells.items(), key=lambda cell: (cell[0][0], cell[0][1] or 0)):
        print(row(name, epsilon, recipe, figures, shown, str(figures["releases"])))
        if recipe == DEFAULT_RECIPE and epsilon and (name, epsilon) in peers:
            print(row(name, epsilon, "*best of the others*", peers[name, epsilon], shown, ""))
    compare(cells, peers)
    print("\n" + "\n".join(list_peers()))
    if chosen.plot:
        draw(cells, peers, chosen.plot)


def row(name: str, epsilon: float | None, words: str, figures: Line, columns: Sequence[str], releases: str) -> str:
    shown = []
    for column in columns:
        value = figures.get(column)
        if value is None:
            shown.append("")
        elif column in ("density", "range", "megabytes"):
            shown.append(f"{value:,.0f}".replace(",", " "))
        else:
            shown.append(f"{value:.1f}" if column in ("processor", "wall") else f"{value:.4f}")
    return f"| {name} | {epsilon if epsilon else '–'} | {words} | {' | '.join(shown)} | {releases} |"


def compare(cells: dict[tuple[str, float | None, str], Line], peers: dict[tuple[str, float], Line]) -> None:
    """Distances divided by the best of the other systems, over all cells that they have."""
    ratios = {
        (name, epsilon, ways): cells[name, epsilon, "dpsyn"][ways] / best[ways]
        for (name, epsilon), best in peers.items()
        for ways in ("two_way", "three_way")
        if (name, epsilon, "dpsyn") in cells
    }
    if ratios:
        print(f"\ndistance / best of the others: mean {mean(ratios.values()):.3f}, highest {max(ratios.values()):.3f}")
    behind = [
        f"{name} ε = {epsilon} {column}"
        for (name, epsilon), best in peers.items()
        for column in ("density", "range", "auc")
        if column in best and (name, epsilon, "dpsyn") in cells and cells[name, epsilon, "dpsyn"][column] < best[column]
    ]
    print(f"scores below the best of the others: {', '.join(behind) or 'none'}")


def draw(cells: dict[tuple[str, float | None, str], Line], peers: dict[tuple[str, float], Line], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = sorted({name for name, _, _ in cells})
    figure, grid = plt.subplots(2, len(names), figsize=(3 * len(names), 5.5), layout="constrained", squeeze=False)
    for column, name in enumerate(names):
        for line, ways in enumerate(("two_way", "three_way")):
            axes = grid[line, column]
            ours = sorted((e, f[ways]) for (n, e, r), f in cells.items() if n == name and r == "dpsyn" and e)
            others = sorted((e, f[ways]) for (n, e), f in peers.items() if n == name)
            axes.plot(*zip(*ours, strict=True), marker="o", label="DPSyn")
            if others:
                axes.plot(*zip(*others, strict=True), marker="s", linestyle="--", label="best of the others")
            for words, style in (("columns shuffled", ":"), ("bootstrap", "-.")):
                if (name, None, words) in cells:
                    axes.axhline(cells[name, None, words][ways], color="grey", linestyle=style, label=words)
            axes.set(title=f"{name}, {ways.replace('_', ' ')}", xlabel="ε", xscale="log", yscale="log")
    grid[0, 0].set_ylabel("mean total variation distance")
    grid[0, 0].legend(fontsize="x-small")
    figure.savefig(path, dpi=120)
    print(f"plotted in {path}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("folders", nargs="+", type=Path)
    runs.add_argument("--judge", type=Path, required=True)
    runs.add_argument("--results", type=Path, required=True)
    runs.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    runs.add_argument("--recipe", nargs="+", default=["dpsyn"])
    runs.add_argument("--seeds", type=int, default=3)
    reports = commands.add_parser("report")
    reports.add_argument("--results", type=Path, required=True)
    reports.add_argument("--plot", type=Path)
    for name in ("one", "baselines"):
        task = commands.add_parser(name)
        task.add_argument("folder", type=Path)
        task.add_argument("judge", type=Path)
        if name == "one":
            task.add_argument("epsilon", type=float)
            task.add_argument("recipe")
            task.add_argument("seed", type=int)
    chosen = parser.parse_args(arguments)
    if chosen.command == "run":
        chosen.folders = [folder.resolve() for folder in chosen.folders]
        chosen.judge = chosen.judge.resolve()
        run(chosen)
    elif chosen.command == "report":
        report(chosen)
    elif chosen.command == "one":
        print(json.dumps(release_and_score(chosen.folder, chosen.epsilon, chosen.recipe, chosen.seed, chosen.judge)))
    else:
        for line in score_baselines(chosen.folder, chosen.judge):
            print(json.dumps(line))


if __name__ == "__main__":
    main()
