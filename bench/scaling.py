"""How does the time of a release grow with rows and with attributes?

    python -m bench.scaling [--largest] [--plot FILE.png]

Releases simulated tables at ε = 1, δ = 1e-9 with the default recipe, from rows in memory to as many synthetic rows,
each in a separate process. The attributes have 2 to 30 values and depend on each other through several hidden traits,
two for each attribute, so no tree describes their dependencies. The number of rows grows with 20 attributes, the number
of attributes with 50 000 rows; ``--largest`` adds 660 000 rows × 100 attributes. Prints processor and wall seconds,
peak memory, and the processor time per row and measured cell, which should not grow.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import dpsyn
from bench.measuring import own_peak_megabytes, provenance
from dpsyn.encoding import contingency_table
from dpsyn.schema import Categorical, Schema

SEED = 7
TRAITS = 6
ROWS = (5_000, 20_000, 80_000, 320_000)
ATTRIBUTES = (5, 10, 20, 40, 80)
LARGEST = (660_000, 100)


def simulate(rows: int, attributes: int) -> tuple[pa.Table, Schema]:
    """A table of codes, and its schema."""
    rng = np.random.default_rng(SEED)
    traits = rng.normal(size=(rows, TRAITS))
    sizes = rng.integers(2, 31, attributes)
    columns = {}
    for axis, size in enumerate(sizes):
        used_traits = rng.choice(TRAITS, 2, replace=False)
        level = traits[:, used_traits] @ rng.normal(size=2) + rng.normal(0, 0.8, rows)
        edges = np.sort(rng.normal(0, 1.5, size - 1))
        columns[f"a{axis}"] = np.searchsorted(edges, level).astype(np.int8)
    schema = Schema(attributes=tuple(Categorical(name=f"a{n}", codes=int(size)) for n, size in enumerate(sizes)))
    return pa.table(columns), schema


def release(rows: int, attributes: int) -> dict[str, float]:
    """Release one table; time, memory and distance."""
    table, schema = simulate(rows, attributes)
    wall, processor = time.perf_counter(), time.process_time()
    synopsis = dpsyn.measure(table, schema, 1.0, delta=1e-9)
    measuring = time.perf_counter() - wall
    synthetic = synopsis.generate(seed=1)
    cells = sum(table.values.size for table in synopsis.model.tables)
    return {
        "rows": rows,
        "attributes": attributes,
        "cells": cells,
        "tables": len(synopsis.model.tables),
        "processor": time.process_time() - processor,
        "measure": measuring,
        "wall": time.perf_counter() - wall,
        "megabytes": own_peak_megabytes(),
        "distance": distance(table, synthetic, schema),
    }


def distance(real: pa.Table, synthetic: pa.Table, schema: Schema) -> float:
    """The mean total variation distance of 200 random pairs of attributes."""
    rng, distances = np.random.default_rng(SEED), []
    for _ in range(200):
        first, second = rng.choice(len(schema.names), 2, replace=False)
        names = schema.names[first], schema.names[second]
        shape = [schema[name].cells for name in names]
        tables = [
            contingency_table([table[name].to_numpy().astype(np.int64) for name in names], shape) / max(len(table), 1)
            for table in (real, synthetic)
        ]
        distances.append(np.abs(tables[0] - tables[1]).sum() / 2)
    return float(np.mean(distances))


def run(rows: int, attributes: int) -> dict[str, float]:
    """Release one table in a separate process, and print a line about it."""
    command = [sys.executable, "-m", "bench.scaling", "--one", str(rows), str(attributes)]
    process = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    result: dict[str, float] = json.loads(process.stdout.splitlines()[-1])
    per_cell = result["processor"] / (result["rows"] * result["cells"]) * 1e9
    print(
        f"{rows:>8,} × {attributes:>3}  {result['tables']:>5,.0f} tables {result['cells']:>9,.0f} cells  "
        f"{result['processor']:7.1f} s processor {result['wall']:7.1f} s wall ({result['measure']:.1f} to measure)  "
        f"{result['megabytes']:6,.0f} MB  {per_cell:7.2f} ns per row and cell  distance {result['distance']:.4f}",
        flush=True,
    )
    return result


def plot(by_rows: list[dict[str, float]], by_attributes: list[dict[str, float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, both = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
    for axes, runs, what in zip(both, (by_rows, by_attributes), ("rows", "attributes"), strict=True):
        axes.plot([run[what] for run in runs], [run["processor"] for run in runs], marker="o", label="processor time")
        axes.plot([run[what] for run in runs], [run["wall"] for run in runs], marker="s", label="wall time")
        scale = runs[-1]["processor"] / (runs[-1]["rows"] * runs[-1]["cells"])
        axes.plot(
            [run[what] for run in runs],
            [scale * run["rows"] * run["cells"] for run in runs],
            linestyle=":",
            color="grey",
            label="rows × measured cells",
        )
        axes.set(xlabel=what, xscale="log", yscale="log", ylabel="seconds")
        axes.set_xticks([run[what] for run in runs], [f"{run[what]:,.0f}".replace(",", " ") for run in runs])
        axes.minorticks_off()
        axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)
    print(f"plotted in {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", action="store_true")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--one", nargs=2, type=int)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(release(*options.one)))
        return
    print(provenance(SEED))
    by_rows = [run(rows, 20) for rows in ROWS]
    by_attributes = [run(50_000, attributes) for attributes in ATTRIBUTES]
    if options.largest:
        run(*LARGEST)
    if options.plot:
        plot(by_rows, by_attributes, options.plot)


if __name__ == "__main__":
    main()
