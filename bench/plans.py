"""What is a plan worth beside the automatic recipe, and beside another plan?

    python -m bench.plans DATA --judge examples/fire/schema.yaml --delta 1.0741e-11 --results FILE
        --way automatic=imported.yaml --way contest=examples/fire/schema.yaml,examples/fire/contest.yaml
        --way plan=examples/fire/schema.yaml,examples/fire/plan.yaml [--epsilon 0.1 1 10] [--seeds 3]

A way to release the table is a name, a schema and, unless it is the automatic recipe, a plan. The schemas may differ:
the automatic recipe needs no more than an imported one (``dpsyn schema import domain.json -o imported.yaml``). All rows
are scored by DPSyn's own evaluation under the same schema, that of ``--judge``: the NIST density and range scores (the
paper's parameters), their mean, and the mean total variation distance of all pairs and of random triples of attributes.
What is in the results already is not run again. The last column is the ratio to the mean score of the first way.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import dpsyn
from bench.measuring import commit, provenance

SEED = 20

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to release the table: under which schema, and by which plan; None is the automatic recipe."""

    name: str
    schema: Path
    plan: Path | None

    @classmethod
    def parse(cls, text: str) -> Way:
        """Read NAME=SCHEMA or NAME=SCHEMA,PLAN."""
        name, _, files = text.partition("=")
        schema, _, plan = files.partition(",")
        if not name or not schema:
            raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SCHEMA or NAME=SCHEMA,PLAN")
        return cls(name, Path(schema), Path(plan) if plan else None)


def released(chosen: argparse.Namespace, way: Way, epsilon: float, seed: int) -> Line:
    """One release, from reading to rows, and its figures."""
    start = time.perf_counter()
    recipe = dpsyn.Planned(plan=dpsyn.Plan.load(way.plan)) if way.plan else dpsyn.DPSyn()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # δ is that of the contest, whatever the schema's expected size
        synopsis = dpsyn.measure(chosen.data, way.schema, epsilon, delta=chosen.delta, recipe=recipe)
    rows = synopsis.generate(seed=seed)
    took = time.perf_counter() - start
    certificate = synopsis.certificates[0]
    assert certificate is not None
    scores = dpsyn.evaluate(chosen.data, rows, chosen.judge, seed=SEED)
    assert scores.contest.range_queries is not None
    return {
        "way": way.name,
        "epsilon": epsilon,
        "seed": seed,
        "delta": chosen.delta,
        "commit": commit(),
        "seconds": took,
        "attributes": len(rows.column_names),
        "draws": len(certificate.account.measurements),
        "tables": len(synopsis.model.tables),
        "density": scores.contest.density.synthetic,
        "range": scores.contest.range_queries.synthetic,
        "one_way": scores.distances.one_way.synthetic,
        "two_way": scores.distances.two_way.synthetic if scores.distances.two_way else None,
        "three_way": scores.distances.three_way.synthetic if scores.distances.three_way else None,
    }


def read(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(chosen: argparse.Namespace) -> None:
    """Add what is missing to the results."""
    there = {(line["way"], line["epsilon"], line["seed"]) for line in read(chosen.results)}
    for seed in range(chosen.seeds):
        for epsilon in chosen.epsilon:
            for way in chosen.way:
                if (way.name, epsilon, seed) not in there:
                    line = released(chosen, way, epsilon, seed)
                    with chosen.results.open("a") as file:
                        file.write(json.dumps(line) + "\n")


def tell(lines: Sequence[Line]) -> None:
    """Means over the releases of a cell, the deviation of the score, and its ratio to that of the first way."""
    columns = ("density", "range", "one_way", "two_way", "three_way", "attributes", "tables", "seconds")
    heads = " ".join(f"{c:>10}" for c in columns)
    print(f"{'ε':>5} {'way':10} {'releases':>8} {'mean score':>10} {'deviation':>9} {heads} {'ratio':>6}")
    for epsilon in sorted({line["epsilon"] for line in lines}):
        first = None
        for way in dict.fromkeys(line["way"] for line in lines):
            own = [line for line in lines if (line["epsilon"], line["way"]) == (epsilon, way)]
            if not own:
                continue
            figures = [mean(line[column] for line in own) for column in columns]
            scores = [(line["density"] + line["range"]) / 2 for line in own]
            first = first or mean(scores)
            numbers = " ".join(f"{f:10,.0f}" if f >= 20 else f"{f:10.4f}" for f in figures)
            deviation = stdev(scores) if len(scores) > 1 else float("nan")
            print(
                f"{epsilon:5g} {way:10} {len(own):8} {mean(scores):10,.0f} {deviation:9,.0f} {numbers} "
                f"{mean(scores) / first:6.3f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--judge", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--way", type=Way.parse, action="append", required=True, metavar="NAME=SCHEMA[,PLAN]")
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=1)
    chosen = parser.parse_args()
    run(chosen)
    print(provenance(SEED))
    tell(read(chosen.results))


if __name__ == "__main__":
    main()
