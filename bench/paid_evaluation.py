"""Do the intervals of a released evaluation contain the true figures, and is a private choice a good one?

    python -m bench.paid_evaluation intervals [--rows 4000] [--epsilon 0.5] [--runs 1000]
    python -m bench.paid_evaluation choose ADULT [--rows 1000] [--epsilon 1] [--choice-epsilon 0.1] [--repetitions 5]

``intervals`` releases an evaluation of one synthetic table of the artificial people so many times, through the gate
with real noise and without a ledger, and counts how often each 95 % interval contains the figure of the private table.
The true distances are those of ``dpsyn.evaluate``, which shares no code with the gate; means and coefficients are
computed from the exact values. Groups of few rows are counted by themselves: where noise may hide that there is anybody
in a group, every distance is possible, and the interval is that from 0 to 1.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import dpsyn
from bench.measuring import provenance
from dpsyn.accounting import Budget
from dpsyn.assessment import _release_evaluation
from dpsyn.assessment.evaluation_plan import plan_evaluation
from dpsyn.assessment.figures import describe_answers
from dpsyn.assessment.synthetic_table import read_synthetic_tables
from dpsyn.demo import people, people_schema
from dpsyn.private import open_private

SEED = 25
DELTA = 1e-9
GROUPS = ("sex", "district")
MIN_ROWS = 300
"""Groups with fewer rows are small."""

CRITERIA = """
dpsyn_criteria: 1
criteria:
  - {distance: [sex, age, employed], at_most: 0.05}
  - {mean: income, within: 100}
  - {mean: commute_km, within: 1}
  - {coefficient: age, formula: household_size ~ age, within: 0.01}
  - {coefficient: employed, formula: household_size ~ age + employed, within: 0.1}
"""


def true_distances(real: pa.Table, synthetic: pa.Table, schema: dpsyn.Schema) -> dict[str, float]:
    """The distances by an evaluation without noise, by what a release calls them."""
    scores = dpsyn.evaluate(real, synthetic, schema)
    singles = [each.distance.synthetic for each in scores.attributes]
    pairs = [each.distance.synthetic for each in scores.pairs]
    found = {each.name: each.distance.synthetic for each in scores.attributes}
    for ways, distances in (("one-way", singles), ("two-way", pairs)):
        found[f"mean of {len(distances)} {ways} marginals"] = float(np.mean(distances))
        found[f"largest of {len(distances)} {ways} marginals"] = max(distances)
    for name in GROUPS:
        for group in real.column(name).unique().to_pylist():
            parts = [table.filter(pc.equal(table.column(name), group)) for table in (real, synthetic)]
            if all(part.num_rows for part in parts):
                own = [a.distance.synthetic for a in dpsyn.evaluate(*parts, schema).attributes if a.name != name]
                found[f"{name} = {group}"] = float(np.mean(own))
    return found


def true_errors(real: pa.Table, synthetic: pa.Table, schema: dpsyn.Schema) -> list[float]:
    """The errors that the criteria bound: a distance, and private figures minus synthetic ones."""
    attributes = {attribute.name: attribute for attribute in schema.modeled_attributes}
    distance = _table_distance(real, synthetic, schema, ("sex", "age", "employed"))

    def values(table: pa.Table, name: str) -> np.ndarray:
        numbers = table.column(name).drop_null().to_numpy(zero_copy_only=False).astype(np.float64)
        attribute = attributes[name]
        return np.clip(numbers, attribute.low, attribute.high) if hasattr(attribute, "low") else numbers

    def slope(table: pa.Table, names: list[str]) -> float:
        design = np.column_stack([np.ones(table.num_rows), *(values(table, name) for name in names)])
        return float(np.linalg.lstsq(design, values(table, "household_size"), rcond=None)[0][-1])

    means = [values(real, name).mean() - values(synthetic, name).mean() for name in ("income", "commute_km")]
    slopes = [slope(real, names) - slope(synthetic, names) for names in (["age"], ["age", "employed"])]
    return [distance, *means, *slopes]


def _table_distance(real: pa.Table, synthetic: pa.Table, schema: dpsyn.Schema, names: tuple[str, ...]) -> float:
    """The distance of one marginal over bins, counted cell by cell."""
    from dpsyn.encoding import Codec

    codec = Codec(schema)
    shares: list[dict[tuple[int, ...], float]] = []
    for table in (real, synthetic):
        codes = codec.encode(table)
        bins = [codec.groupings[codec.names.index(n)].group_of[codes[:, codec.names.index(n)]] for n in names]
        cells, counts = np.unique(np.column_stack(bins), axis=0, return_counts=True)
        shares.append({tuple(cell): count / table.num_rows for cell, count in zip(cells.tolist(), counts, strict=True)})
    return sum(abs(shares[0].get(cell, 0) - shares[1].get(cell, 0)) for cell in {*shares[0], *shares[1]}) / 2


def release_often(
    real: pa.Table, synthetic: pa.Table, schema: dpsyn.Schema, epsilon: float, runs: int
) -> Iterator[dpsyn.ReleasedEvaluation]:
    """The same evaluation again and again; what is public is prepared once."""
    criteria = dpsyn.Criteria.from_yaml(CRITERIA, schema)
    schema, (table,) = read_synthetic_tables([synthetic], schema)
    plan = plan_evaluation(schema, table, GROUPS, criteria, attributes=True)
    budget = Budget.for_guarantee(epsilon, DELTA)
    for _ in range(runs):
        with open_private(real, schema, budget) as private:
            answers = _release_evaluation.measure_plan(private, plan)
        yield describe_answers(plan, answers, private.certificate())


def count_coverage(rows: int, epsilon: float, runs: int) -> None:
    """Print how often intervals contain the truth, by kind of figure and for the worst figure of each kind."""
    schema, real = people_schema(), people(rows=rows)
    synthetic = dpsyn.measure(real, schema, epsilon=1, recipe="independent").generate(seed=SEED, output_format="arrow")
    distances, errors = true_distances(real, synthetic, schema), true_errors(real, synthetic, schema)
    sizes = {
        f"{name} = {each['values']}": each["counts"]
        for name in GROUPS
        for each in real[name].value_counts().to_pylist()
    }
    hits: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for evaluation in release_often(real, synthetic, schema, epsilon, runs):
        for kind, figures in (("overall", evaluation.overall), ("attributes", evaluation.attributes)):
            for figure in figures:
                hits[kind, figure.label].append(figure.low <= distances[figure.label] <= figure.high)
        for group in evaluation.groups:
            figure = group.distance
            kind = "groups" if sizes.get(figure.label, 0) >= MIN_ROWS else "small groups"
            if figure.label in distances:
                hits[kind, figure.label].append(figure.low <= distances[figure.label] <= figure.high)
        for result, truth in zip(evaluation.criteria, errors, strict=True):
            known = result.error.low is not None and result.error.high is not None
            hits["criteria", result.criterion].append(not known or result.error.low <= truth <= result.error.high)
    print(f"{rows:,} rows, ε = {epsilon:g}, {runs:,} releases")
    for kind in dict.fromkeys(kind for kind, _ in hits):
        own = {label: each for (other, label), each in hits.items() if other == kind}
        every = np.concatenate([np.array(each) for each in own.values()])
        usual = {label: float(np.mean(each)) for label, each in own.items() if len(each) >= runs / 2}
        ends = f"{min(usual.values()):.3f} … {max(usual.values()):.3f}" if usual else "–"
        print(f"  {kind:<14} {len(own):>3} figures: {every.mean():.4f} of {every.size:,} intervals; each {ends}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    intervals = commands.add_parser("intervals")
    intervals.add_argument("--rows", type=int, default=4_000)
    intervals.add_argument("--epsilon", type=float, default=0.5)
    intervals.add_argument("--runs", type=int, default=1_000)
    chosen = parser.parse_args()
    print(provenance(SEED))
    count_coverage(chosen.rows, chosen.epsilon, chosen.runs)


if __name__ == "__main__":
    main()
