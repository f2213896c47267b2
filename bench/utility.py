"""How much of a table survives a release, and how long does it take?

    python -m bench.utility FOLDER... [--epsilon 0.1 1 10] [--recipe dpsyn privsyn] [--seeds 3] [--plot FILE]

Each FOLDER has a table of integer codes, ``*.csv.gz``, and ``domain.json``, the number of values of each attribute. A
recipe releases it with δ = 1e-9 and default settings and generates as many rows as it estimates. Printed are the mean
total variation distances of all 1-way, all 2-way and 300 random 3-way marginals, averaged over the seeds, and the
seconds of processor and wall time; beside them the table shuffled column by column (*independent*, without noise) and a
bootstrap of it (the sampling floor). ``--drop`` leaves attributes out, ``--plot`` draws the distances.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

import dpsyn
from bench.measuring import provenance
from dpsyn.schema import Categorical, Schema

SEED = 20
DELTA = 1e-9
TRIPLES = 300

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Figures:
    """Mean distances of 1-, 2- and 3-way marginals, and what they took."""

    distances: tuple[float, float, float]
    processor: float = 0.0
    wall: float = 0.0

    def line(self) -> str:
        """The figures side by side."""
        shown = "  ".join(f"{distance:.4f}" for distance in self.distances)
        return f"{shown}  {self.processor:8.1f} {self.wall:8.1f}"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of integer codes."""

    name: str
    schema: Schema
    codes: Codes

    @classmethod
    def load(cls, folder: Path, drop: Sequence[str] = ()) -> Table:
        """Read a table, without some of its attributes."""
        sizes = json.loads((folder / "domain.json").read_text())
        names = [name for name in sizes if name not in drop]
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

    def figures(self, other: Codes) -> tuple[float, float, float]:
        """Mean distances of the marginals of other records from those of this table."""
        count = len(self.sizes)
        triples = list(combinations(range(count), 3))
        if len(triples) > TRIPLES:
            picked = np.random.default_rng(SEED).choice(len(triples), TRIPLES, replace=False)
            triples = [triples[place] for place in sorted(picked)]
        cliques = ([(place,) for place in range(count)], list(combinations(range(count), 2)), triples)
        one, two, three = (float(np.mean([self._distance(other, own) for own in some] or [0.0])) for some in cliques)
        return one, two, three

    def _distance(self, other: Codes, clique: tuple[int, ...]) -> float:
        shape = [self.sizes[place] for place in clique]
        mine, theirs = (np.ravel_multi_index([codes[:, p] for p in clique], shape) for codes in (self.codes, other))
        cells = math.prod(shape)
        if cells > 2_000_000:
            found, numbers = np.unique(np.concatenate([mine, theirs]), return_inverse=True)
            mine, theirs, cells = numbers[: len(mine)], numbers[len(mine) :], len(found)
        shares = (np.bincount(numbers, minlength=cells) / max(len(numbers), 1) for numbers in (mine, theirs))
        return float(np.abs(np.subtract(*shares)).sum() / 2)


def released(table: Table, epsilon: float, recipe: str, seed: int) -> Figures:
    """One release, from reading to rows."""
    wall, processor = time.perf_counter(), time.process_time()
    synopsis = dpsyn.measure(table.arrow(), table.schema, epsilon, delta=DELTA, recipe=recipe)
    rows = synopsis.generate(seed=seed)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    codes = np.stack([rows[name].to_numpy() for name in table.schema.names], axis=1).astype(np.int64)
    return Figures(table.figures(codes), processor, wall)


def averaged(runs: Sequence[Figures]) -> Figures:
    one, two, three = (float(np.mean([run.distances[ways] for run in runs])) for ways in range(3))
    times = (float(np.mean([getattr(run, what) for run in runs])) for what in ("processor", "wall"))
    return Figures((one, two, three), *times)


def yardsticks(table: Table) -> dict[str, Figures]:
    rng = np.random.default_rng(SEED)
    shuffled = np.stack([rng.permutation(column) for column in table.codes.T], axis=1)
    again = table.codes[rng.integers(0, len(table.codes), len(table.codes))]
    return {"columns shuffled": Figures(table.figures(shuffled)), "bootstrap": Figures(table.figures(again))}


def draw(results: dict[tuple[str, float, str], Figures], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = sorted({name for name, _, _ in results})
    figure, grid = plt.subplots(1, len(names), figsize=(3.5 * len(names), 3.5), layout="constrained", squeeze=False)
    for axes, name in zip(grid[0], names, strict=True):
        for recipe in dict.fromkeys(recipe for _, _, recipe in results):
            points = sorted((e, f.distances[1]) for (n, e, r), f in results.items() if (n, r) == (name, recipe))
            axes.plot(*zip(*points, strict=True), marker="o", label=recipe)
        axes.set(title=name, xlabel="ε", xscale="log", yscale="log", ylabel="mean distance of pairs")
    grid[0, 0].legend()
    figure.savefig(path, dpi=150)
    print(f"drawn in {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--recipe", nargs="+", default=["dpsyn", "privsyn", "independent"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--drop", nargs="*", default=[])
    parser.add_argument("--plot", type=Path)
    chosen = parser.parse_args()
    print(f"{provenance(SEED)}; δ = {DELTA}, {chosen.seeds} releases each")
    print(f"{'table':<10} {'ε':>5}  {'recipe':<18} 1-way   2-way   3-way     cpu s   wall s")
    results = {}
    for folder in chosen.folders:
        table = Table.load(folder, chosen.drop)
        for words, figures in yardsticks(table).items():
            print(f"{table.name:<10} {'':>5}  {words:<16} {figures.line()}", flush=True)
        for epsilon in chosen.epsilon:
            for recipe in chosen.recipe:
                runs = [released(table, epsilon, recipe, seed) for seed in range(chosen.seeds)]
                results[table.name, epsilon, recipe] = averaged(runs)
                line = results[table.name, epsilon, recipe].line()
                print(f"{table.name:<10} {epsilon:>5g}  {recipe:<16} {line}", flush=True)
    if chosen.plot:
        draw(results, chosen.plot)


if __name__ == "__main__":
    main()
