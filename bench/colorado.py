"""Does the contest's pipeline run at the size of its third match, how well, how long, and in how much memory?

    python -m bench.colorado [--rows 662000] [--epsilon 0.3 1 8] [--plan FILE] [--folder FOLDER]

Simulates the table of 98 attributes that ``examples/colorado`` describes, releases it at every ε with the contest's δ
and the automatic recipe (or a plan), and scores the rows by the contest's three metrics, with the parameters of the
third match. Every step is a command in a process of its own; minutes and peak memory are those of its process. The
yardsticks of the scores, a fresh sample of the rows and rows with every column shuffled, are printed below them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.measuring import provenance

SEED = 1940
SCHEMA = Path(__file__).parents[1] / "examples" / "colorado" / "schema.yaml"
COLUMNS = ("--nist-income", "region=CITY,sex=SEX,income=INCWAGE")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=662_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0, 8.0])
    parser.add_argument("--plan", type=Path, help="what to measure; by default the recipe chooses")
    parser.add_argument("--folder", type=Path, help="where tables are kept; by default a temporary one")
    given = parser.parse_args(arguments)
    print(provenance(SEED))
    with tempfile.TemporaryDirectory() as temporary:
        _all(given.folder or Path(temporary), given.rows, given.epsilon, given.plan)


def _all(folder: Path, rows: int, epsilons: Sequence[float], plan: Path | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    real, delta = folder / f"colorado-{rows}.parquet", rows**-2
    if not real.exists():
        simulated = run("simulate", SCHEMA, "--rows", rows, "--seed", SEED, "-o", real)
        print(f"simulate: {_spent(simulated)}")
    print(f"{'epsilon':>8} {'density':>8} {'range':>8} {'income':>8} {'mean':>8}  synthesize        evaluate")
    scores: dict[str, Any] = {}
    for epsilon in epsilons:
        made, told = folder / f"synthetic-{epsilon:g}.parquet", folder / f"scores-{epsilon:g}.json"
        options = () if plan is None else ("--plan", plan)
        budget = ("--epsilon", epsilon, "--delta", f"{delta:.6g}")
        spent = run("synthesize", real, "-s", SCHEMA, *budget, *options, "-o", made, "--seed", SEED, "--force")
        judged = run("evaluate", real, made, "-s", SCHEMA, "--preset", "match3", *COLUMNS, "--json", told, "--force")
        scores = json.loads(told.read_text())["contest"]
        figures = [scores[name]["synthetic"] for name in ("density", "range_queries")]
        figures += [scores["income"]["score"]["synthetic"], scores["mean"]["synthetic"]]
        shown = " ".join(f"{figure / 1e6:8.4f}" for figure in figures)
        print(f"{epsilon:8g} {shown}  {_spent(spent)}  {_spent(judged)}", flush=True)
    for yardstick in ("floor", "independent"):
        figures = [scores[name][yardstick] for name in ("density", "range_queries")]
        figures += [scores["income"]["score"][yardstick], scores["mean"][yardstick]]
        print(f"{yardstick[:8]:>8} " + " ".join(f"{figure / 1e6:8.4f}" for figure in figures))


def _spent(told: tuple[float, float]) -> str:
    return f"{told[0] / 60:4.1f} min {told[1]:6,.0f} MB"


def run(*words: object) -> tuple[float, float]:
    """Run a command of DPSyn: its seconds and its peak memory in megabytes."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "dpsyn", *map(str, words), "--quiet"], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"dpsyn {words[0]} failed")
    return time.perf_counter() - began, used.ru_maxrss / 1024


if __name__ == "__main__":
    main()
