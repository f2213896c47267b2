"""What do tables cost that are larger than memory: in memory, as a stream, and with Spark?

    python -m bench.scale [--rows N] [--large N] [--recipe NAME] [--folder FOLDER]

First, all 190 pairs of a folder of Parquet files with N rows and 20 columns, counted by each engine in a process of its
own: rows per second from the files to the tables, and, for rows held in memory, for a second question too. Then the
stream at growing numbers of rows. Last, a folder of ``--large`` rows and 10 columns, made part by part: a whole release
at ε = 1, streamed, and as many synthetic rows, written to a folder. Each line has the peak memory of its process. The
aims: equal counts; the stream at half of the rows per second of memory at least; time in proportion to rows; under
2 000 MB. The folder is removed at the end; 100 000 000 rows take half a gigabyte on disk, and synthetic ones as much.
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
    """Rows whose columns hang together by hidden traits, as in ``bench.scaling``."""
    rng, shaping = np.random.default_rng([SEED, number]), np.random.default_rng(SEED)
    traits, columns = rng.normal(size=(rows, TRAITS)), {}
    for attribute in schema:
        chosen, weights = shaping.choice(TRAITS, 2, replace=False), shaping.normal(size=2)
        edges = np.sort(shaping.normal(0, 1.5, attribute.cells - 1))
        level = traits[:, chosen] @ weights + rng.normal(0, 0.8, rows)
        columns[attribute.name] = np.searchsorted(edges, level).astype(np.uint8)
    return pa.table(columns)


def write(folder: Path, rows: int, schema: Schema) -> None:
    """Parquet files of a million rows each, made one after another; those after the first few are the same again."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, rows, PART)):
        path = folder / f"part-{number:05}.parquet"
        if number < DISTINCT or rows - first < PART:
            papq.write_table(part_of(min(PART, rows - first), schema, number), path)
        else:
            shutil.copyfile(folder / f"part-{number % DISTINCT:05}.parquet", path)


# ── what runs in a process of its own ────────────────────────────────────────────────────────────────────────


def count(folder: Path, kind: str) -> dict[str, Any]:
    """All pairs, twice: the first question opens the table."""
    schema = schema_of(COLUMNS)
    recoding = Recoding.fine(Codec(schema))
    pairs = list(combinations(range(COLUMNS), 2))
    if kind == "spark":
        _spark()
    warm_up(schema, pairs, kind, folder)
    engine = open_engine(open_table(str(folder), kind=kind), schema, kind=kind, key=bytes(16))  # type: ignore[arg-type]
    times, processor = [], time.process_time()
    for _ in range(2):
        start = time.perf_counter()
        tables = engine.count(pairs, recoding)
        times.append(time.perf_counter() - start)
    processor = time.process_time() - processor
    digest = hashlib.sha256(b"".join(table.tobytes() for table in tables)).hexdigest()
    found = {"first": times[0], "again": times[1], "processor": processor}
    return {**found, "digest": digest, "rows": int(tables[0].sum())}


def warm_up(schema: Schema, pairs: Sequence[tuple[int, ...]], kind: str, folder: Path) -> None:
    """Load kernels, and with Spark start workers, on a single file."""
    file = sorted(folder.glob("*.parquet"))[0]
    small = folder.parent / f"small-{kind}.parquet"
    papq.write_table(papq.ParquetFile(file).read_row_group(0)[:1000], small)
    engine = open_engine(open_table(str(small), kind=kind), schema, kind=kind, key=bytes(16))  # type: ignore[arg-type]
    engine.count(pairs, Recoding.fine(Codec(schema)))


def _spark() -> None:
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
    took = time.perf_counter() - start
    synopsis.save(target)
    return {"took": took, "processor": time.process_time(), "plan": plan.describe()}


def generate(synopsis: Path, rows: int, target: Path) -> dict[str, Any]:
    start = time.perf_counter()
    dpsyn.Synopsis.load(synopsis).write(f"{target}/", rows, seed=1)
    return {"took": time.perf_counter() - start, "processor": time.process_time()}


# ── the report ───────────────────────────────────────────────────────────────────────────────────────────────


def run(*arguments: object) -> dict[str, Any]:
    """A part of this benchmark in a process of its own, with its peak memory."""
    command = [sys.executable, "-m", "bench.scale", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[1])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def engines(folder: Path, rows: int) -> None:
    write(folder, rows, schema_of(COLUMNS))
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    print(f"\n{rows:,} rows × {COLUMNS} columns, {size:,.0f} MB of Parquet: all {COLUMNS * (COLUMNS - 1) // 2} pairs")
    found = {kind: run("--count", folder, kind) for kind in ("memory", "stream", "spark")}
    for kind, one in found.items():
        print(
            f"  {kind:<7} {rows / one['first'] / 1e6:6.2f} million rows/s from the files, "
            f"{rows / one['again'] / 1e6:6.2f} for the next; {one['processor']:5.1f} s of this process for both, "
            f"{one['megabytes']:6,.0f} MB"
        )
    same = len({one["digest"] for one in found.values()}) == 1 and found["stream"]["rows"] == rows
    print(f"  {'equal counts' if same else 'COUNTS DIFFER'} from all three")
    print(f"  stream / memory: {found['memory']['first'] / found['stream']['again']:.2f} (aim: at least 0.5)")


def growth(folder: Path, rows: int) -> None:
    print("\nthe stream at growing numbers of rows")
    for part in (rows // 4, rows // 2, rows):
        place = folder.parent / "some"
        place.mkdir()
        for file in sorted(folder.glob("*.parquet"))[: max(1, part // PART)]:
            (place / file.name).hardlink_to(file)
        one = run("--count", place, "stream")
        print(
            f"  {one['rows']:>12,} rows {one['again']:7.2f} s  {one['again'] / one['rows'] * 1e9:6.1f} ns/row, "
            f"{one['processor'] / 2 / one['rows'] * 1e9:6.1f} of the processor"
        )
        shutil.rmtree(place)


def large(folder: Path, rows: int, recipe: str) -> None:
    took = time.perf_counter()
    write(folder, rows, schema_of(FEW_COLUMNS))
    took = time.perf_counter() - took
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e9
    print(f"\n{rows:,} rows × {FEW_COLUMNS} columns, {size:.2f} GB of Parquet, made in {took:,.0f} s", flush=True)
    synopsis, target = folder.parent / "large.dpsyn", folder.parent / "synthetic"
    one = run("--measure", folder, synopsis, recipe)
    print(f"  planned: {one['plan']}")
    print(
        f"  measured in {one['took']:,.0f} s ({one['processor']:,.0f} s of the processor), {one['megabytes']:,.0f} MB",
        flush=True,
    )
    two = run("--generate", synopsis, rows, target)
    written = sum(file.stat().st_size for file in target.rglob("*.parquet")) / 1e9
    print(
        f"  {rows:,} rows generated in {two['took']:,.0f} s ({two['processor']:,.0f} s of the processor), "
        f"{two['megabytes']:,.0f} MB; {written:.2f} GB of Parquet"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8 * PART, help="of the comparison; 0 leaves it out")
    parser.add_argument("--large", type=int, default=100_000_000, help="of the large table; 0 leaves it out")
    parser.add_argument("--folder", type=Path, help="where to put files, by default a temporary folder")
    parser.add_argument("--count", nargs=2)
    parser.add_argument("--measure", nargs=3)
    parser.add_argument("--recipe", default="dpsyn", help="of the release of the large table")
    parser.add_argument("--generate", nargs=3)
    chosen = parser.parse_args()
    if chosen.count:
        found = count(Path(chosen.count[0]), chosen.count[1])
    elif chosen.measure:
        found = measure(Path(chosen.measure[0]), Path(chosen.measure[1]), chosen.measure[2])
    elif chosen.generate:
        found = generate(Path(chosen.generate[0]), int(chosen.generate[1]), Path(chosen.generate[2]))
    else:
        print(provenance(SEED), flush=True)
        with tempfile.TemporaryDirectory(dir=chosen.folder) as place:
            if chosen.rows:
                engines(Path(place) / "pairs", chosen.rows)
                growth(Path(place) / "pairs", chosen.rows)
            if chosen.large:
                large(Path(place) / "large", chosen.large, chosen.recipe)
        return
    print(json.dumps({**found, "megabytes": own_peak_megabytes()}))


if __name__ == "__main__":
    main()
