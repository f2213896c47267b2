"""How much time and memory do large tables take: in memory, as a stream, and with Spark?

    python -m bench.scale [--rows N] [--large N] [--recipe NAME] [--folder FOLDER]

First, each engine counts all 190 pairs of a folder of Parquet files with N rows and 20 columns, in a separate process:
rows per second from the files to the counts, and again for a second query. Then the stream counts growing numbers of
rows. Finally, a folder of ``--large`` rows and 10 columns, written part by part: a whole release at ε = 1, streamed,
and as many synthetic rows, written to a folder. Each line has the peak memory of its process. The goals: equal counts;
the stream at least half as fast as memory; time proportional to rows; less than 2 000 MB. The folder is removed at the
end; 100 000 000 rows take half a gigabyte on disk, and the synthetic ones as much.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq

import dpsyn
from bench.measuring import own_peak_megabytes, provenance
from dpsyn.encoding import Codec, Recoding
from dpsyn.engines import open_engine, open_table
from dpsyn.schema import Categorical, Schema

SEED = 10
PART = 1 << 20
COLUMNS, FEW_COLUMNS = 20, 10
TRAITS = 4
DISTINCT = 8
DRIVER_MEMORY = "1g"


def schema_of(columns: int) -> Schema:
    sizes = np.random.default_rng(SEED).integers(2, 31, columns)
    return Schema(attributes=tuple(Categorical(name=f"a{n}", codes=int(size)) for n, size in enumerate(sizes)))


def part_of(rows: int, schema: Schema, number: int) -> pa.Table:
    """Rows whose columns depend on each other through hidden traits, as in ``bench.scaling``."""
    rng, shaping = np.random.default_rng([SEED, number]), np.random.default_rng(SEED)
    traits, columns = rng.normal(size=(rows, TRAITS)), {}
    for attribute in schema:
        used_traits, weights = shaping.choice(TRAITS, 2, replace=False), shaping.normal(size=2)
        edges = np.sort(shaping.normal(0, 1.5, attribute.cells - 1))
        level = traits[:, used_traits] @ weights + rng.normal(0, 0.8, rows)
        columns[attribute.name] = np.searchsorted(edges, level).astype(np.uint8)
    return pa.table(columns)


def write(folder: Path, rows: int, schema: Schema) -> None:
    """Write Parquet files of a million rows each; those after the first few are copies."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, rows, PART)):
        path = folder / f"part-{number:05}.parquet"
        if number < DISTINCT or rows - first < PART:
            papq.write_table(part_of(min(PART, rows - first), schema, number), path)
        else:
            shutil.copyfile(folder / f"part-{number % DISTINCT:05}.parquet", path)


# ── what runs in a separate process ──────────────────────────────────────────────────────────────────────────


def count(folder: Path, kind: str) -> dict[str, Any]:
    """Count all pairs twice; the first query opens the table."""
    schema = schema_of(COLUMNS)
    recoding = Recoding.fine(Codec(schema))
    pairs = list(combinations(range(COLUMNS), 2))
    if kind == "spark":
        _start_spark()
    warm_up(schema, pairs, kind, folder)
    engine = open_engine(open_table(str(folder), kind=kind), schema, kind=kind, key=bytes(16))  # type: ignore[arg-type]
    times, processor = [], time.process_time()
    for _ in range(2):
        start = time.perf_counter()
        tables = engine.count(pairs, recoding)
        times.append(time.perf_counter() - start)
    processor = time.process_time() - processor
    digest = hashlib.sha256(b"".join(table.tobytes() for table in tables)).hexdigest()
    result = {"first": times[0], "again": times[1], "processor": processor}
    return {**result, "digest": digest, "rows": int(tables[0].sum())}


def warm_up(schema: Schema, pairs: Sequence[tuple[int, ...]], kind: str, folder: Path) -> None:
    """Load kernels, and with Spark start workers, on a small file."""
    file = sorted(folder.glob("*.parquet"))[0]
    small = folder.parent / f"small-{kind}.parquet"
    papq.write_table(papq.ParquetFile(file).read_row_group(0)[:1000], small)
    engine = open_engine(open_table(str(small), kind=kind), schema, kind=kind, key=bytes(16))  # type: ignore[arg-type]
    engine.count(pairs, Recoding.fine(Codec(schema)))


def _start_spark() -> None:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
    }
    SparkSession.builder.config(map=settings).getOrCreate()


def measure(folder: Path, target: Path, recipe: str) -> dict[str, Any]:
    schema = schema_of(FEW_COLUMNS)
    plan = dpsyn.estimate_resources(str(folder), schema, engine="stream", recipe=recipe)
    start = time.perf_counter()
    synopsis = dpsyn.measure(str(folder), schema, 1.0, delta=1e-9, engine="stream", recipe=recipe)
    elapsed = time.perf_counter() - start
    synopsis.save(target)
    return {"elapsed": elapsed, "processor": time.process_time(), "plan": plan.describe()}


def generate(synopsis: Path, rows: int, target: Path) -> dict[str, Any]:
    start = time.perf_counter()
    dpsyn.Synopsis.load(synopsis).write(f"{target}/", rows, seed=1)
    return {"elapsed": time.perf_counter() - start, "processor": time.process_time()}


# ── the report ───────────────────────────────────────────────────────────────────────────────────────────────


def run(*arguments: object) -> dict[str, Any]:
    """Run a part of this benchmark in a separate process; the result includes its peak memory."""
    command = [sys.executable, "-m", "bench.scale", *map(str, arguments)]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[1])
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


def engines(folder: Path, rows: int) -> None:
    write(folder, rows, schema_of(COLUMNS))
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    print(f"\n{rows:,} rows × {COLUMNS} columns, {size:,.0f} MB of Parquet: all {COLUMNS * (COLUMNS - 1) // 2} pairs")
    results = {kind: run("--count", folder, kind) for kind in ("memory", "stream", "spark")}
    for kind, result in results.items():
        print(
            f"  {kind:<7} {rows / result['first'] / 1e6:6.2f} million rows/s from the files, "
            f"{rows / result['again'] / 1e6:6.2f} for the next query; {result['processor']:5.1f} s of processor time "
            f"of this process for both, {result['megabytes']:6,.0f} MB"
        )
    same = len({result["digest"] for result in results.values()}) == 1 and results["stream"]["rows"] == rows
    print(f"  {'equal counts' if same else 'COUNTS DIFFER'} from all three")
    print(f"  stream / memory: {results['memory']['first'] / results['stream']['again']:.2f} (goal: at least 0.5)")


def growth(folder: Path, rows: int) -> None:
    print("\nthe stream for growing numbers of rows")
    for part in (rows // 4, rows // 2, rows):
        links = folder.parent / "some"
        links.mkdir()
        for file in sorted(folder.glob("*.parquet"))[: max(1, part // PART)]:
            (links / file.name).hardlink_to(file)
        result = run("--count", links, "stream")
        print(
            f"  {result['rows']:>12,} rows {result['again']:7.2f} s  "
            f"{result['again'] / result['rows'] * 1e9:6.1f} ns/row, "
            f"{result['processor'] / 2 / result['rows'] * 1e9:6.1f} ns/row of processor time"
        )
        shutil.rmtree(links)


def large(folder: Path, rows: int, recipe: str) -> None:
    start = time.perf_counter()
    write(folder, rows, schema_of(FEW_COLUMNS))
    elapsed = time.perf_counter() - start
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e9
    print(f"\n{rows:,} rows × {FEW_COLUMNS} columns, {size:.2f} GB of Parquet, written in {elapsed:,.0f} s", flush=True)
    synopsis, target = folder.parent / "large.dpsyn", folder.parent / "synthetic"
    measuring = run("--measure", folder, synopsis, recipe)
    print(f"  estimated before: {measuring['plan']}")
    print(
        f"  measured in {measuring['elapsed']:,.0f} s ({measuring['processor']:,.0f} s of processor time), "
        f"{measuring['megabytes']:,.0f} MB",
        flush=True,
    )
    generating = run("--generate", synopsis, rows, target)
    written = sum(file.stat().st_size for file in target.rglob("*.parquet")) / 1e9
    print(
        f"  {rows:,} rows generated in {generating['elapsed']:,.0f} s "
        f"({generating['processor']:,.0f} s of processor time), "
        f"{generating['megabytes']:,.0f} MB; {written:.2f} GB of Parquet"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8 * PART, help="rows of the comparison; 0 skips it")
    parser.add_argument("--large", type=int, default=100_000_000, help="rows of the large table; 0 skips it")
    parser.add_argument("--folder", type=Path, help="the folder for files, by default a temporary one")
    parser.add_argument("--count", nargs=2)
    parser.add_argument("--measure", nargs=3)
    parser.add_argument("--recipe", default="dpsyn", help="the recipe for the large table")
    parser.add_argument("--generate", nargs=3)
    options = parser.parse_args()
    if options.count:
        result = count(Path(options.count[0]), options.count[1])
    elif options.measure:
        result = measure(Path(options.measure[0]), Path(options.measure[1]), options.measure[2])
    elif options.generate:
        result = generate(Path(options.generate[0]), int(options.generate[1]), Path(options.generate[2]))
    else:
        print(provenance(SEED), flush=True)
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            if options.rows:
                engines(Path(folder) / "pairs", options.rows)
                growth(Path(folder) / "pairs", options.rows)
            if options.large:
                large(Path(folder) / "large", options.large, options.recipe)
        return
    print(json.dumps({**result, "megabytes": own_peak_megabytes()}))


if __name__ == "__main__":
    main()
