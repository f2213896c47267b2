"""Do intervals of counts that were not measured together contain the true counts, and are they no wider than needed?

    python -m bench.intervals WORK TABLE... [--epsilon 0.1 1 10] [--recipes priview dpsyn privsyn] [--releases 1]

TABLE is a folder with a table of integer codes, ``*.csv.gz``, and ``domain.json``, or ``made-up:3000x8``: rows of
binary attributes that depend on two hidden numbers. Random marginals of 4, 6 and 8 attributes of at most ``--cells``
cells are asked for, and those that no released marginal covers are compared with the real counts. All releases go
through the gate with real noise.

The *interval score* (Gneiting and Raftery, 2007) of a 95 % interval is its width plus 2/0.05 times the distance of a
count outside; the less, the better. It is compared with that of intervals of the noise alone, widened by one factor so
that as many of them contain the true count: the factor is chosen by looking at the true counts, separately in every
line.

WORK is a folder that keeps releases, and the intervals of each at this commit: run the command again to continue.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dpsyn
from bench.measuring import commit, provenance
from bench.priview import DELTA, SEED, WAYS, Columns, Table, make_schema, release

LEVEL = 0.95
MIN_SHOWN_COUNT = 10
"""Most counts of a large table are about 0; those of answers of at least this many rows are shown by themselves."""

Numbers = NDArray[np.float64]


def parse_table(text: str) -> Table:
    """A folder with a table, or ``made-up:ROWSxATTRIBUTES``."""
    if not text.startswith("made-up:"):
        return Table.parse(text)
    rows, attributes = map(int, text.removeprefix("made-up:").split("x"))
    rng = np.random.default_rng(SEED)
    hidden = rng.normal(size=(rows, 2))
    loads, levels = rng.normal(size=(2, attributes)), rng.uniform(-1, 1.5, attributes)
    codes = (hidden @ loads + rng.normal(size=(rows, attributes)) > levels).astype(np.int64)
    return Table("made-up", make_schema({f"x{index}": 2 for index in range(attributes)}, rows), codes)


def choose_queries(table: Table, ways: int, count: int, max_cells: int) -> list[Columns]:
    """Random sets of attributes whose table is small enough; fewer if there are few."""
    rng, chosen = np.random.default_rng(SEED + ways), dict[Columns, None]()
    for _ in range(20_000):
        columns = tuple(sorted(rng.permutation(len(table.sizes))[:ways].tolist()))
        if len(columns) == ways and math.prod(table.sizes[column] for column in columns) <= max_cells:
            chosen[columns] = None
        if len(chosen) == count:
            break
    return list(chosen)


def measure_intervals(table: Table, synopsis: dpsyn.Synopsis, count: int, max_cells: int) -> dict[str, Numbers]:
    """Truth, answer, interval, interval of the noise, and seconds of every count that is not covered, by query size."""
    found: dict[str, list[Numbers]] = {str(ways): [] for ways in WAYS}
    for ways in WAYS:
        for columns in choose_queries(table, ways, count, max_cells):
            start = time.perf_counter()
            answer = synopsis.marginal(*table.names(columns))
            took = time.perf_counter() - start
            if answer.source != "covered":
                ends = (*answer.interval(LEVEL), *answer.interval(LEVEL, noise_only=True))
                seconds = np.full(answer.counts.shape, took / answer.counts.size)
                numbers = (table.counts(columns), answer.counts, *ends, seconds)
                found[str(ways)].append(np.stack([each.ravel() for each in numbers]))
    return {ways: np.concatenate([np.empty((7, 0)), *parts], axis=1) for ways, parts in found.items()}


def read_or_measure(
    work: Path, table: Table, recipe: str, epsilon: float, number: int, chosen: argparse.Namespace
) -> Path:
    """The file with the intervals of one release at this commit."""
    stem = f"{table.name}-{recipe}-{epsilon:g}-{number}"
    stored, result = work / f"{stem}.dpsyn", work / f"{stem}-{chosen.queries}x{chosen.cells}-{commit()}.npz"
    if not stored.exists():
        release(table, epsilon, recipe).save(stored)
    if not result.exists():
        np.savez(result, **measure_intervals(table, dpsyn.Synopsis.load(stored), chosen.queries, chosen.cells))  # type: ignore[arg-type]
    return result


def score(low: Numbers, high: Numbers, truth: Numbers) -> float:
    """The mean interval score."""
    outside = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return float((high - low + 2 / (1 - LEVEL) * outside).mean())


def widen(low: Numbers, high: Numbers, truth: Numbers, share: float) -> tuple[Numbers, Numbers]:
    """Intervals, widened by the factor that makes this share of them contain the truth."""
    center, half = (low + high) / 2, np.maximum((high - low) / 2, np.finfo(float).tiny)
    factor = np.quantile(np.abs(truth - center) / half, share, method="higher")
    return center - factor * half, center + factor * half


def describe(numbers: Numbers) -> str:
    """One line about counts."""
    truth, answer, low, high, noise_low, noise_high, seconds = numbers
    inside, noise_inside = (low <= truth) & (truth <= high), (noise_low <= truth) & (truth <= noise_high)
    widened = widen(noise_low, noise_high, truth, float(inside.mean()))
    large = answer >= MIN_SHOWN_COUNT
    shares = [noise_inside.mean(), inside.mean(), noise_inside[large].mean(), inside[large].mean()]
    scores = score(low, high, truth), score(*widened, truth)
    shown = "".join(f"{share:>8.3f}" for share in shares) + "".join(f"{figure:>10.4g}" for figure in scores)
    return f"{len(truth):>8}{shown}{seconds.sum():>9.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--recipes", nargs="+", default=["priview", "dpsyn", "privsyn"])
    parser.add_argument("--releases", type=int, default=1)
    parser.add_argument("--queries", type=int, default=4, help="of each number of attributes")
    parser.add_argument("--cells", type=int, default=20_000, help="the maximum of a query")
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    print(f"{provenance(SEED)}; δ = {DELTA}, {chosen.releases} releases, {chosen.queries} queries")
    print("inside: of the noise alone, then with the model error; all counts, then answers of 10 rows or more")
    print(
        f"{'table':<10}{'ε':>5}  k {'recipe':<10}{'counts':>8}{'inside':>16}{'of 10+':>16}{'score':>10}{'widened':>10}"
        "  seconds"
    )
    for text in chosen.tables:
        table = parse_table(text)
        for epsilon in chosen.epsilon:
            files = {
                recipe: [
                    read_or_measure(chosen.work, table, recipe, epsilon, number, chosen)
                    for number in range(chosen.releases)
                ]
                for recipe in chosen.recipes
            }
            for ways in map(str, WAYS):
                read = {
                    recipe: np.concatenate([np.load(path)[ways] for path in paths], axis=1)
                    for recipe, paths in files.items()
                }
                for recipe, numbers in [*read.items(), ("all", np.concatenate([*read.values()], axis=1))]:
                    if numbers.shape[1]:
                        print(f"{table.name:<10}{epsilon:>5g} {ways:>2} {recipe:<10}{describe(numbers)}", flush=True)


if __name__ == "__main__":
    main()
