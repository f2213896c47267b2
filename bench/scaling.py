"""How does the time of a release grow with rows and with attributes?

    python -m bench.scaling [--largest] [--plot FILE.png]

Releases simulated tables at ε = 1, δ = 1e-9 with the default recipe, from rows in memory to as many synthetic rows,
each in a process of its own. The attributes of a table hang together by several hidden traits, two for each attribute,
so that no tree holds their dependencies; they have 2 to 30 values. Rows grow at 20 attributes, attributes at 50 000
rows; ``--largest`` adds 100 attributes × 660 000 rows. Printed are processor and wall seconds, peak memory, and the
processor time per row and measured cell, which should not grow.
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
from dpsyn.schema import Categorical, Schema

SEED = 7
TRAITS = 6
ROWS = (5_000, 20_000, 80_000, 320_000)
ATTRIBUTES = (5, 10, 20, 40, 80)
LARGEST = (660_000, 100)


def simulated(rows: int, attributes: int) -> tuple[pa.Table, Schema]:
    """A table of codes, and its schema."""
    rng = np.random.default_rng(SEED)
    traits = rng.normal(size=(rows, TRAITS))
    sizes = rng.integers(2, 31, attributes)
    columns = {}
    for place, size in enumerate(sizes):
        shaping = rng.choice(TRAITS, 2, replace=False)
        level = traits[:, shaping] @ rng.normal(size=2) + rng.normal(0, 0.8, rows)
        edges = np.sort(rng.normal(0, 1.5, size - 1))
        columns[f"a{place}"] = np.searchsorted(edges, level).astype(np.int8)
    schema = Schema(attributes=tuple(Categorical(name=f"a{n}", codes=int(size)) for n, size in enumerate(sizes)))
    return pa.table(columns), schema


def one(rows: int, attributes: int) -> dict[str, float]:
    table, schema = simulated(rows, attributes)
    wall, processor = time.perf_counter(), time.process_time()
    synopsis = dpsyn.measure(table, schema, 1.0, delta=1e-9)
    measured = time.perf_counter() - wall
    synthetic = synopsis.generate(seed=1)
    cells = sum(own.values.size for own in synopsis.model.tables)
    return {
        "rows": rows,
        "attributes": attributes,
        "cells": cells,
        "tables": len(synopsis.model.tables),
        "processor": time.process_time() - processor,
        "measure": measured,
        "wall": time.perf_counter() - wall,
        "megabytes": own_peak_megabytes(),
        "distance": distance(table, synthetic, schema),
    }


def distance(real: pa.Table, synthetic: pa.Table, schema: Schema) -> float:
    """The mean total variation distance of 200 pairs."""
    rng, found = np.random.default_rng(SEED), []
    for _ in range(200):
        first, second = rng.choice(len(schema.names), 2, replace=False)
        names, shape = (schema.names[first], schema.names[second]), [schema.names[first], schema.names[second]]
        sizes = [schema[name].cells for name in shape]
        shares = []
        for table in (real, synthetic):
            cells = np.ravel_multi_index([table[name].to_numpy().astype(np.int64) for name in names], sizes)
            shares.append(np.bincount(cells, minlength=sizes[0] * sizes[1]) / max(len(cells), 1))
        found.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(found))


def measured(rows: int, attributes: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.scaling", "--one", str(rows), str(attributes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    each = found["processor"] / (found["rows"] * found["cells"]) * 1e9
    print(
        f"{rows:>8,} × {attributes:>3}  {found['tables']:>5,.0f} tables {found['cells']:>9,.0f} cells  "
        f"{found['processor']:7.1f} s processor {found['wall']:7.1f} s wall ({found['measure']:.1f} to measure)  "
        f"{found['megabytes']:6,.0f} MB  {each:7.2f} ns per row and cell  distance {found['distance']:.4f}",
        flush=True,
    )
    return found


def draw(by_rows: list[dict[str, float]], by_attributes: list[dict[str, float]], path: Path) -> None:
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
    print(f"drawn in {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", action="store_true")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--one", nargs=2, type=int)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(one(*chosen.one)))
        return
    print(provenance(SEED))
    by_rows = [measured(rows, 20) for rows in ROWS]
    by_attributes = [measured(50_000, attributes) for attributes in ATTRIBUTES]
    if chosen.largest:
        measured(*LARGEST)
    if chosen.plot:
        draw(by_rows, by_attributes, chosen.plot)


if __name__ == "__main__":
    main()
