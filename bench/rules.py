"""What do rules cost, and do they hold? A made-up table that keeps eight rules, released with and without them.

    python -m bench.rules [--rows 50000] [--draw 1000000] [--epsilon 1 10] [--repeats 3]

The table is simulated, so that it keeps the rules. It is released with the schema as it is and with the same schema
without rules, several times each, for the noise cannot be repeated. ``violations`` are rows of ``--draw`` generated
ones that break a rule (of totals: rows by which one is missed); ``tvd2`` is the mean total variation distance of all
2-way tables over bins, real to synthetic. The last line is the ratio with to without rules.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import combinations
from statistics import mean

import msgspec
import numpy as np
import pyarrow as pa

import dpsyn
from bench.measuring import provenance
from dpsyn.constraints import count_violations
from dpsyn.encoding import Codec, Recoding
from dpsyn.schema import Schema
from dpsyn.simulation import simulate

SEED = 8
HOSPITAL = """
dpsyn_schema: 1
expected_size: {rows}
attributes:
  region: {{kind: categorical, values: [north, south, west, east]}}
  sex: {{kind: categorical, values: [f, m]}}
  age: {{kind: integer, low: 0, high: 104}}
  age_group: {{kind: ordinal, values: [minor, adult]}}
  marital: {{kind: categorical, values: [single, married, widowed, divorced]}}
  education: {{kind: ordinal, values: [none, primary, secondary, bachelor, master, doctorate]}}
  ward: {{kind: categorical, values: [children, surgery, birth, heart, other]}}
  insured: {{kind: boolean, missing: true}}
  admitted: {{kind: datetime, start: 2024-01-01, end: 2024-12-31}}
  operated: {{kind: datetime, start: 2024-01-01, end: 2024-12-31, missing: true}}
  discharged: {{kind: datetime, start: 2024-01-01, end: 2025-01-31, missing: true}}
  wages: {{kind: integer, low: 0, high: 5000}}
  rents: {{kind: integer, low: 0, high: 2000}}
  income: {{kind: integer, low: 0, high: 7000}}
derive:
  age_group: {{from: age, mapping: {{0..17: minor}}, otherwise: adult}}
rules:
  - {{rule: impossible, where: {{age: 0..15, marital: [married, widowed, divorced]}}}}
  - {{rule: impossible, where: {{age: 18..104, ward: children}}}}
  - {{rule: impossible, where: {{sex: m, ward: birth}}}}
  - {{rule: impossible, where: {{age_group: minor, education: [bachelor, master, doctorate]}}}}
  - {{rule: order, attributes: [admitted, operated, discharged]}}
  - {{rule: sum, total: income, parts: [wages, rents]}}
  - {{rule: total, count: {rows}}}
  - {{rule: total, where: {{region: north}}, count: {north}}}
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--draw", type=int, default=1_000_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args(arguments)
    print(provenance(SEED))
    table = simulate(hospital(given.rows, 0), given.rows, SEED).table()
    schema = hospital(given.rows, table.column("region").to_pylist().count("north"))
    plain = msgspec.structs.replace(schema, rules=())
    assert not any(count_violations(schema, table).values())
    print(f"{'epsilon':>8} {'rules':>6} {'violations':>11} {'tvd2':>8} {'measure s':>10} {'generate s':>11}")
    for epsilon in given.epsilon:
        lines = {
            kind: [_run(own, schema, table, epsilon, given.draw) for _ in range(given.repeats)]
            for kind, own in (("yes", schema), ("no", plain))
        }
        means = {kind: [mean(column) for column in zip(*runs, strict=True)] for kind, runs in lines.items()}
        for kind, (broken, distance, measuring, generating) in means.items():
            print(f"{epsilon:8g} {kind:>6} {broken:11,.0f} {distance:8.4f} {measuring:10.1f} {generating:11.1f}")
        ratios = [one / other for one, other in zip(means["yes"][1:], means["no"][1:], strict=True)]
        print(f"{epsilon:8g}  ratio {'':>11} {ratios[0]:8.3f} {ratios[1]:10.2f} {ratios[2]:11.2f}", flush=True)


def hospital(rows: int, north: int) -> Schema:
    """The schema; a total of no rows is left out."""
    schema = Schema.from_yaml(HOSPITAL.format(rows=rows, north=north))
    return schema if north else msgspec.structs.replace(schema, rules=schema.rules[:-2])


def _run(schema: Schema, ruled: Schema, table: pa.Table, epsilon: float, draw: int) -> tuple[int, float, float, float]:
    """Rows that break a rule, distance, and seconds to measure and to generate."""
    began = time.perf_counter()
    synopsis = dpsyn.measure(table, schema, epsilon)
    measured = time.perf_counter()
    made = synopsis.generate(draw, seed=SEED, output_format="arrow")
    generated = time.perf_counter()
    same_size = synopsis.generate(seed=SEED, output_format="arrow")
    broken = sum(_by_row(count_violations(ruled, made), ruled).values())
    if schema.rules:
        broken += sum(count_violations(ruled, same_size).values())
    return broken, distance(ruled, table, same_size), measured - began, generated - measured


def _by_row(found: dict[int, int], schema: Schema) -> dict[int, int]:
    """Without totals: those are met by a table of their own size."""
    return {number: rows for number, rows in found.items() if schema.rules[number - 1].__struct_config__.tag != "total"}


def distance(schema: Schema, real: pa.Table, synthetic: pa.Table) -> float:
    """The mean total variation distance of all 2-way tables over bins."""
    codec = Codec(schema)
    recoding = Recoding.coarse(codec)
    one, other = (recoding.apply(codec.encode(table)).astype(np.int64) for table in (real, synthetic))
    sizes = recoding.sizes
    distances = []
    for a, b in combinations(range(len(sizes)), 2):
        shares = [
            np.bincount(codes[:, a] * sizes[b] + codes[:, b], minlength=sizes[a] * sizes[b]) / max(len(codes), 1)
            for codes in (one, other)
        ]
        distances.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(distances))


if __name__ == "__main__":
    main()
