"""How much of a table survives a release, and what does it take? Beside it, what other systems reach.

    python -m bench.utility run FOLDER... --judge evaluate.py --results FILE [--epsilon 0.1 1 10] [--recipe dpsyn]
    python -m bench.utility tell --results FILE [--plot FILE.png]

Each FOLDER has a table of integer codes, ``*.csv.gz``, and ``domain.json``, the number of values of each attribute.
``run`` releases it with δ = 1e-9 and default settings, each time in a process of its own, and adds a line of JSON with
the figures to the results; what is there already is not run again. ``tell`` prints them as a table, means over the
releases of a cell, with the best figure of other systems in ``bench/peers.csv`` where one of them came to an end, and
``--plot`` draws them. ``measured`` is how far rows are from the tables that were measured, as a mean total variation
distance; at ``--epsilon 1e6`` those are the real ones.

The judge is a Python file with ``score(real, synthetic, names, sizes, target, dropped)``, which returns mean total
variation distances of all 1-way, all 2-way and 300 random 3-way marginals (``tvd1`` …), the NIST density and range
scores (``nist_density``, ``nist_range``) and the ``auc`` of a classifier trained on synthetic and tested on real rows.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
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
from bench.measuring import commit, own_peak_megabytes, provenance
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
"""What a classifier predicts, and the attributes that would give it away."""

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
        return pa.table({name: self.codes[:, place] for place, name in enumerate(self.schema.names)})

    def codes_of(self, rows: pa.Table) -> Codes:
        """Synthetic rows as codes."""
        return np.stack([rows[name].to_numpy() for name in self.schema.names], axis=1).astype(np.int64)


def judge_of(path: Path) -> Any:
    """The module that scores."""
    spec = importlib.util.spec_from_file_location("judge", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def scored(table: Table, rows: Codes, judge: Path) -> Line:
    target, dropped = TARGETS.get(table.name, (None, ()))
    found: Line = judge_of(judge).score(table.codes, rows, list(table.schema.names), table.sizes, target, dropped)
    wanted = {"tvd1": "one_way", "tvd2": "two_way", "tvd3": "three_way", "nist_density": "density"}
    return {wanted.get(key, key.removeprefix("nist_")): found[key] for key in (*wanted, "nist_range", "auc")}


def released(table: Table, epsilon: float, recipe: str, seed: int) -> tuple[pa.Table, Line]:
    """Synthetic rows of one release, and what it took from rows in memory to them."""
    data = table.arrow()
    wall, processor = time.perf_counter(), time.process_time()
    synopsis = dpsyn.measure(data, table.schema, epsilon, delta=DELTA, recipe=recipe)
    rows = synopsis.generate(seed=seed)
    took = {"processor": time.process_time() - processor, "wall": time.perf_counter() - wall}
    megabytes, cliques = own_peak_megabytes(), [len(own.clique) for own in synopsis.model.tables]
    about = {"table": table.name, "epsilon": epsilon, "recipe": recipe, "seed": seed, "commit": commit()}
    apart = [marginal.distance.synthetic for marginal in synopsis.compare_rows(rows).marginals]
    told = {"pairs": cliques.count(2), "triples": cliques.count(3), "measured": len(apart), "apart": mean(apart)}
    return rows, about | took | {"megabytes": megabytes} | told


def judged(folder: Path, epsilon: float, recipe: str, seed: int, judge: Path) -> Line:
    """One release and its figures."""
    table = Table.load(folder)
    rows, about = released(table, epsilon, recipe, seed)
    return about | scored(table, table.codes_of(rows), judge)


def yardsticks(folder: Path, judge: Path) -> list[Line]:
    """What the table with each column shuffled gets, and a bootstrap of it."""
    table, rng = Table.load(folder), np.random.default_rng(SEED)
    shuffled = np.stack([rng.permutation(column) for column in table.codes.T], axis=1)
    again = table.codes[rng.integers(0, len(table.codes), len(table.codes))]
    return [
        {"table": folder.name, "recipe": recipe, "epsilon": None, "seed": SEED} | scored(table, rows, judge)
        for recipe, rows in (("columns shuffled", shuffled), ("bootstrap", again))
    ]


def run(chosen: argparse.Namespace) -> None:
    """Add what is missing to the results."""
    there = {_key(line) for line in read(chosen.results)}
    for folder in chosen.folders:
        wanted: list[tuple[str, ...]] = [] if (folder.name, "bootstrap", None, SEED) in there else [("yardsticks",)]
        for epsilon in chosen.epsilon:
            for recipe in chosen.recipe:
                for seed in range(chosen.seeds):
                    if (folder.name, recipe, epsilon, seed) not in there:
                        wanted.append(("one", str(epsilon), recipe, str(seed)))
        for words in wanted:
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


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────────────

COLUMNS = {
    "apart": "measured",
    "one_way": "1-way",
    "two_way": "2-way",
    "three_way": "3-way",
    "density": "density",
    "range": "range",
    "auc": "AUC",
    "processor": "processor s",
    "wall": "wall s",
    "megabytes": "MB",
}
"""Figures that are told, and their titles."""

LOWER = ("one_way", "two_way", "three_way", "processor", "wall", "megabytes")


def averaged(lines: Iterable[Line]) -> dict[tuple[str, float | None, str], Line]:
    """Means over the seeds of each cell."""
    cells: dict[tuple[str, float | None, str], list[Line]] = defaultdict(list)
    for line in lines:
        cells[line["table"], line["epsilon"], line["recipe"]].append(line)
    return {
        cell: {
            column: mean(values)
            for column in COLUMNS
            if (values := [own[column] for own in some if own.get(column) is not None])
        }
        | {"releases": len(some)}
        for cell, some in cells.items()
    }


def best_peers() -> dict[tuple[str, float], Line]:
    """For each table and ε the best figure of any other system, each figure by itself."""
    found: dict[tuple[str, float], Line] = defaultdict(dict)
    with PEERS.open() as file:
        for line in csv.DictReader(file):
            best = found[line["table"], float(line["epsilon"])]
            for column in ("two_way", "three_way", "density", "range", "auc", "processor"):
                if line[column]:
                    value = float(line[column])
                    better = min if column in LOWER else max
                    best[column] = better(best.get(column, value), value)
    return found


def tell(chosen: argparse.Namespace) -> None:
    lines = read(chosen.results)
    cells, peers = averaged(lines), best_peers()
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
    """By how much distances are lower than the best of the others, over all cells that they have."""
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
            own = sorted((e, f[ways]) for (n, e, r), f in cells.items() if n == name and r == "dpsyn" and e)
            others = sorted((e, f[ways]) for (n, e), f in peers.items() if n == name)
            axes.plot(*zip(*own, strict=True), marker="o", label="DPSyn")
            if others:
                axes.plot(*zip(*others, strict=True), marker="s", linestyle="--", label="best of the others")
            for words, style in (("columns shuffled", ":"), ("bootstrap", "-.")):
                if (name, None, words) in cells:
                    axes.axhline(cells[name, None, words][ways], color="grey", linestyle=style, label=words)
            axes.set(title=f"{name}, {ways.replace('_', ' ')}", xlabel="ε", xscale="log", yscale="log")
    grid[0, 0].set_ylabel("mean total variation distance")
    grid[0, 0].legend(fontsize="x-small")
    figure.savefig(path, dpi=120)
    print(f"drawn in {path}")


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
    tells = commands.add_parser("tell")
    tells.add_argument("--results", type=Path, required=True)
    tells.add_argument("--plot", type=Path)
    for name in ("one", "yardsticks"):
        own = commands.add_parser(name)
        own.add_argument("folder", type=Path)
        own.add_argument("judge", type=Path)
        if name == "one":
            own.add_argument("epsilon", type=float)
            own.add_argument("recipe")
            own.add_argument("seed", type=int)
    chosen = parser.parse_args(arguments)
    if chosen.command == "run":
        chosen.folders = [folder.resolve() for folder in chosen.folders]
        chosen.judge = chosen.judge.resolve()
        run(chosen)
    elif chosen.command == "tell":
        tell(chosen)
    elif chosen.command == "one":
        print(json.dumps(judged(chosen.folder, chosen.epsilon, chosen.recipe, chosen.seed, chosen.judge)))
    else:
        for line in yardsticks(chosen.folder, chosen.judge):
            print(json.dumps(line))


if __name__ == "__main__":
    main()
