"""How long does it take to score a synthetic table?

    python -m bench.evaluate [--data FOLDER] [--rounds 3]

The real table is simulated: 300 000 rows and 32 columns. Eight are numbers with a wide range; the others have 2 to
2 000 values. Each column depends on the previous one. The synthetic table has its columns shuffled. With ``--data`` the
real table is the table of integer codes in FOLDER (``data.csv.gz`` and ``domain.json``).

It times the 300 triples of the contest's density and its 300 range queries, alternating with plain numpy (``unique`` of
cell numbers, masks of rows) on the same triples and queries. Numpy reads only the two tables; DPSyn also reads the two
baselines. Then it times a whole evaluation. The aim: each takes seconds, and is at least as fast as numpy with twice
the work.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

import dpsyn
from bench.measuring import own_peak_megabytes, provenance, ratio, seconds
from dpsyn.evaluation.nist_contest import (
    PAPER,
    RangeQuery,
    sample_density_triples,
    sample_range_queries,
    score_density,
    score_range_queries,
)
from dpsyn.evaluation.reader import read_tables
from dpsyn.evaluation.tables import CodeColumns, CodedTables, make_generator
from dpsyn.schema import Categorical, Integer, Schema

SEED = 10
ROWS = 300_000
SIZES = (2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 18, 20, 25, 30, 40, 50, 60, 80, 100, 200, 700, 2_000)
NUMBERS = 8


def simulate_table() -> tuple[pa.Table, Schema]:
    """Skewed codes and numbers, as in real tables; each column depends on the previous one."""
    rng = np.random.default_rng(SEED)
    sizes = [*SIZES, *[100_000] * NUMBERS]
    previous, columns = rng.random(ROWS), {}
    for index, size in enumerate(sizes):
        previous = np.where(rng.random(ROWS) < 0.6, previous, rng.random(ROWS))
        columns[f"c{index}"] = (previous**3 * size).astype(np.int64)
    listed = [Categorical(name=f"c{index}", codes=size) for index, size in enumerate(SIZES)]
    ranged = [Integer(name=f"c{index}", low=0, high=99_999) for index in range(len(SIZES), len(sizes))]
    return pa.table(columns), Schema(attributes=(*listed, *ranged))


def load_table(folder: Path) -> tuple[pa.Table, Schema]:
    """The table of codes in a folder."""
    sizes = json.loads((folder / "domain.json").read_text())
    table = pacsv.read_csv(folder / "data.csv.gz").select(list(sizes))
    return table, Schema(attributes=tuple(Categorical(name=name, codes=size) for name, size in sizes.items()))


def shuffle_columns(table: pa.Table) -> pa.Table:
    rng = np.random.default_rng(SEED)
    return pa.table({name: table[name].to_numpy()[rng.permutation(len(table))] for name in table.column_names})


# ── plain numpy ──────────────────────────────────────────────────────────────────────────────────────────────


def numpy_density(view: CodedTables, triples: Sequence[tuple[int, ...]]) -> float:
    return 1e6 * (1 - float(np.mean([_distance(view, triple) for triple in triples])))


def _distance(view: CodedTables, clique: tuple[int, ...]) -> float:
    cells = math.prod(view.sizes[axis] for axis in clique)
    numbers = [_cell_numbers(table, clique, view.sizes) for table in view.tables[:2]]
    if cells > 1e7:
        occupied, cell_of_row = np.unique(np.concatenate(numbers), return_inverse=True)
        numbers, cells = np.split(cell_of_row, [len(numbers[0])]), len(occupied)
    real, other = (np.bincount(rows, minlength=cells) / len(rows) for rows in numbers)
    return float(np.abs(real - other).sum() / 2)


def _cell_numbers(table: CodeColumns, clique: tuple[int, ...], sizes: Sequence[int]) -> NDArray[np.int64]:
    numbers = np.zeros(table.shape[1], np.int64)
    for axis in clique:
        numbers = numbers * sizes[axis] + table[axis]
    return numbers


def numpy_ranges(view: CodedTables, queries: Sequence[RangeQuery]) -> float:
    errors = []
    for query in queries:
        real, other = (_share(table, query) for table in view.tables[:2])
        errors.append(math.log(max(other, 1e-6)) - math.log(real))
    return 1e6 * max(0.0, 1 - math.sqrt(float(np.mean(np.square(errors)))) / math.log(1000))


def _share(table: CodeColumns, query: RangeQuery) -> float:
    kept = np.ones(table.shape[1], np.bool_)
    for condition in query:
        column = table[condition.axis]
        within = (column >= condition.low) & (column <= condition.high)
        kept &= within if condition.code_mask is None else condition.code_mask[column]
    return float(kept.mean())


# ── timing ───────────────────────────────────────────────────────────────────────────────────────────────────


def compare_speeds(real: pa.Table, synthetic: pa.Table, schema: Schema, rounds: int) -> None:
    comparison = read_tables(real, synthetic, schema, seed=SEED)
    triples = sample_density_triples(len(comparison.domains), PAPER, make_generator(SEED, "density"))
    queries = sample_range_queries(comparison, PAPER, make_generator(SEED, "range queries"))
    buckets, scores = comparison.buckets(), {}

    def keep(name: str, score: Any) -> None:
        scores[name] = score

    for task, dpsyn_score, numpy_score in (
        (
            f"density of {len(triples)} triples",
            lambda: keep("dpsyn", score_density(comparison.buckets(), triples).synthetic),
            lambda: keep("numpy", numpy_density(buckets, triples)),
        ),
        (
            f"{len(queries)} range queries",
            lambda: keep("dpsyn", score_range_queries(comparison.exact, queries).synthetic),
            lambda: keep("numpy", numpy_ranges(comparison.exact, queries)),
        ),
    ):
        dpsyn_seconds, numpy_seconds, times = ratio(dpsyn_score, numpy_score, rounds)
        same = math.isclose(scores["dpsyn"], scores["numpy"], rel_tol=1e-9)
        print(f"{task}: numpy, two tables {numpy_seconds:.2f} s; DPSyn, four tables {dpsyn_seconds:.2f} s")
        print(f"  {2 / times:.1f} times as fast for each table; {'equal scores' if same else 'SCORES DIFFER'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    print(provenance(SEED))
    real, schema = load_table(chosen.data) if chosen.data else simulate_table()
    synthetic = shuffle_columns(real)
    print(f"{len(real):,} rows × {len(real.column_names)} columns")
    compare_speeds(real, synthetic, schema, chosen.rounds)
    evaluations = []
    took = seconds(lambda: evaluations.append(dpsyn.evaluate(real, synthetic, schema, seed=SEED)))
    size = len(json.dumps(evaluations[0].to_dict())) / 1e6
    print(f"a whole evaluation: {took:.1f} s, peak memory {own_peak_megabytes():.0f} MB, JSON {size:.1f} MB")


if __name__ == "__main__":
    main()
