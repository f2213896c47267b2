"""What is a plan worth beside the automatic recipe?

    python -m bench.plans DATA --schema examples/fire/schema.yaml --plan examples/fire/plan.yaml --results FILE
        [--epsilon 0.1 1 10] [--seeds 2] [--only plan]

Each release is made with δ = 1e-9 and scored by DPSyn's own evaluation: the NIST density and range scores (the paper's
parameters), their mean, and the mean total variation distance of all pairs and of random triples of attributes. What is
in the results already is not run again. The last line of each ε is the ratio of the means, plan to automatic recipe.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import dpsyn
from bench.measuring import commit, provenance

DELTA = 1e-9
SEED = 20
WAYS = ("automatic", "plan")

Line = dict[str, Any]


def released(chosen: argparse.Namespace, way: str, epsilon: float, seed: int) -> Line:
    """One release, from reading to rows, and its figures."""
    schema = dpsyn.Schema.load(chosen.schema)
    start = time.perf_counter()
    recipe = dpsyn.find_recipe("planned", {"plan": chosen.plan}) if way == "plan" else dpsyn.DPSyn()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # δ is that of the other benchmarks, whatever the table's size
        synopsis = dpsyn.measure(chosen.data, schema, epsilon, delta=DELTA, recipe=recipe)
    rows = synopsis.generate(seed=seed)
    took = time.perf_counter() - start
    certificate = synopsis.certificates[0]
    assert certificate is not None
    scores = dpsyn.evaluate(chosen.data, rows, schema, seed=SEED)
    assert scores.contest.range_queries is not None
    return {
        "way": way,
        "epsilon": epsilon,
        "seed": seed,
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
    for epsilon in chosen.epsilon:
        for seed in range(chosen.seeds):
            for way in chosen.only:
                if (way, epsilon, seed) not in there:
                    line = released(chosen, way, epsilon, seed)
                    with chosen.results.open("a") as file:
                        file.write(json.dumps(line) + "\n")


def tell(lines: Sequence[Line]) -> None:
    """Means over the releases of a cell, and how the plan compares."""
    columns = ("density", "range", "one_way", "two_way", "three_way", "attributes", "tables", "seconds")
    print(f"{'ε':>5} {'way':10} {'releases':>8} {'mean score':>10} " + " ".join(f"{c:>10}" for c in columns))
    for epsilon in sorted({line["epsilon"] for line in lines}):
        scores: dict[str, float] = {}
        for way in WAYS:
            own = [line for line in lines if (line["epsilon"], line["way"]) == (epsilon, way)]
            if not own:
                continue
            figures = [mean(line[column] for line in own) for column in columns]
            scores[way] = (figures[0] + figures[1]) / 2
            numbers = " ".join(f"{f:10,.0f}" if f >= 20 else f"{f:10.4f}" for f in figures)
            print(f"{epsilon:5g} {way:10} {len(own):8} {scores[way]:10,.0f} {numbers}")
        if len(scores) == 2:
            print(f"{epsilon:5g} plan / automatic: {scores['plan'] / scores['automatic']:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    for name in ("schema", "plan", "results"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=WAYS, default=list(WAYS))
    chosen = parser.parse_args()
    run(chosen)
    print(provenance(SEED))
    tell(read(chosen.results))


if __name__ == "__main__":
    main()
