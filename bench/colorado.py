"""What are the contest entry's plans worth by the official scorer of its third match, how long, in how much memory?

    python -m bench.colorado [--rows 662000] [--epsilon 0.3 1 8] [--releases 3] [--way automatic plan.yaml wages.yaml]
                             [--folder FOLDER]

Simulates the table of 98 attributes that ``examples/colorado`` describes, and releases it at every ε with the contest's
δ = 1/rows²: by the automatic recipe, and by each plan of the example. The rows are scored as the contest did, over all
98 columns as enumerations, with three draws of triples and queries. Printed are means and standard deviations over the
releases; minutes and peak memory of a release are those of its process. Below are the scores of a fresh sample of the
rows and of rows with every column shuffled.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

import dpsyn
from bench.measuring import provenance
from dpsyn.evaluation.enumerations import load_max_codes, read_enumerations
from dpsyn.evaluation.nist_contest import MATCH3, score_contest
from dpsyn.evaluation.reader import open_tables, read_sources
from dpsyn.evaluation.results import ContestScore
from dpsyn.marginals import Metric

SEED = 1940
DRAWS = 3
EXAMPLE = Path(__file__).parents[1] / "examples" / "colorado"
WAYS = ("automatic", "plan.yaml", "wages.yaml")
INCOME = dpsyn.IncomeColumns(region="CITY", sex="SEX", income="INCWAGE")

Scores = dict[str, Metric]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=662_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0, 8.0])
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--way", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--folder", type=Path, help="where tables are kept; by default a temporary one")
    given = parser.parse_args(arguments)
    print(provenance(SEED))
    with tempfile.TemporaryDirectory() as temporary:
        run_all(given.folder or Path(temporary), given.rows, given.epsilon, given.releases, given.way)


def run_all(folder: Path, rows: int, epsilons: Sequence[float], releases: int, ways: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    schema = msgspec.structs.replace(dpsyn.Schema.load(EXAMPLE / "schema.yaml"), expected_size=rows)
    schema.save(folder / "schema.yaml")
    real = folder / f"colorado-{rows}.parquet"
    if not real.exists():
        run("simulate", folder / "schema.yaml", "--rows", rows, "--seed", SEED, "-o", real)
    print(f"{rows:,} rows, delta {rows**-2:.3g}, {releases} releases: points of a million, mean ± standard deviation")
    print(f"{'epsilon':>7} {'':<11} {'density':>13} {'range':>13} {'income':>13} {'mean':>13}  a release")
    scores: list[Scores] = []
    for epsilon in epsilons:
        for way in ways:
            scores, spent = [], (0.0, 0.0)
            for _ in range(releases):
                spent = release(folder, real, epsilon, rows**-2, way)
                scores.append(score(real, folder / "synthetic.parquet", schema))
            cells = (_format_cell([each[name].synthetic for each in scores]) for name in scores[0])
            print(f"{epsilon:7g} {way:<11} {' '.join(cells)}  {spent[0] / 60:.1f} min {spent[1]:,.0f} MB", flush=True)
    for baseline in ("floor", "independent"):
        cells = (_format_cell([getattr(each[name], baseline) for each in scores]) for name in scores[0])
        print(f"{'':7} {baseline:<11} {' '.join(cells)}")


def _format_cell(values: Sequence[float]) -> str:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values) / 1e6:6.4f} ±{spread / 1e6:5.4f}"


def release(folder: Path, real: Path, epsilon: float, delta: float, way: str) -> tuple[float, float]:
    """Write synthetic rows; the seconds and the peak megabytes of the process."""
    options = () if way == "automatic" else ("--plan", EXAMPLE / way)
    budget = ("--epsilon", epsilon, "--delta", f"{delta:.6g}")
    return run(
        *("synthesize", real, "-s", folder / "schema.yaml", *budget, *options),
        *("-o", folder / "synthetic.parquet", "--force"),
    )


def score(real: Path, synthetic: Path, schema: dpsyn.Schema) -> Scores:
    """The three metrics of the third match and their mean, over several draws of triples and queries."""
    sources = open_tables(real, synthetic, schema)
    tables, codes = read_sources(sources, schema), load_max_codes(EXAMPLE / "specs.json", schema)
    enumerations = read_enumerations(sources, schema, codes)
    draws = [score_contest(tables, MATCH3, INCOME, enumerations=enumerations, seed=seed) for seed in range(DRAWS)]
    return {
        "density": Metric.mean([draw.density for draw in draws]),
        "range": Metric.mean([draw.range_queries for draw in draws]),
        "income": Metric.mean([_income(draw) for draw in draws]),
        "mean": Metric.mean([draw.mean for draw in draws]),
    }


def _income(draw: ContestScore) -> Metric:
    assert draw.income is not None
    return draw.income.score


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
