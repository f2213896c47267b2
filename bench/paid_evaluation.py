"""Do the intervals of a released evaluation contain the true figures, and is a private choice a good one?

    python -m bench.paid_evaluation intervals [--rows 4000] [--epsilon 0.5] [--runs 1000]
    python -m bench.paid_evaluation choose ADULT [--rows 1000] [--epsilon 1] [--repetitions 5]

``intervals`` releases an evaluation of one synthetic table of the artificial people so many times, through the gate
with real noise and without a ledger, and counts how often each 95 % interval contains the figure of the private table.
The true distances are those of ``dpsyn.evaluate``, which shares no code with the gate; means and coefficients are
computed from the exact values. Groups of few rows are counted by themselves: where noise may hide that there is anybody
in a group, every distance is possible, and the interval is that from 0 to 1.

``choose`` chooses among releases of ADULT, a folder with a table of integer codes and ``domain.json``, or of a random
sample of its rows, and compares the mean two-way distance of the chosen rows with that of the best candidate in
hindsight. The odds of the exponential mechanism are known, so each repetition also gives the expected ratio of a choice
among its candidates, and the probability that a choice is not within ``--allowed`` of the best one.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import dpsyn
from bench.measuring import provenance
from bench.priview import Table, make_schema
from dpsyn.accounting import Budget
from dpsyn.assessment import _release_evaluation
from dpsyn.assessment.evaluation_plan import plan_evaluation
from dpsyn.assessment.figures import describe_answers
from dpsyn.assessment.synthetic_table import SyntheticTable, read_synthetic_tables
from dpsyn.demo import people, people_schema
from dpsyn.encoding import Codec, Recoding
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
            mine, theirs = (table.filter(pc.equal(table.column(name), group)) for table in (real, synthetic))
            if mine.num_rows and theirs.num_rows:
                scores = dpsyn.evaluate(mine, theirs, schema)
                own = [each.distance.synthetic for each in scores.attributes if each.name != name]
                found[f"{name} = {group}"] = float(np.mean(own))
    return found


def true_errors(real: pa.Table, synthetic: pa.Table, schema: dpsyn.Schema) -> list[float]:
    """The errors that the criteria bound: a distance, and private figures minus synthetic ones."""
    attributes = {attribute.name: attribute for attribute in schema.modeled_attributes}
    distance = _table_distance(real, synthetic, schema, ("sex", "age", "employed"))

    def values(table: pa.Table, name: str) -> NDArray[np.float64]:
        numbers = np.asarray(table.column(name).drop_null().to_numpy(zero_copy_only=False), np.float64)
        attribute = attributes[name]
        if isinstance(attribute, dpsyn.Integer | dpsyn.Real):
            numbers = np.clip(numbers, attribute.low, attribute.high)
        return numbers

    def slope(table: pa.Table, names: list[str]) -> float:
        design = np.column_stack([np.ones(table.num_rows), *(values(table, name) for name in names)])
        return float(np.linalg.lstsq(design, values(table, "household_size"), rcond=None)[0][-1])

    means = [values(real, name).mean() - values(synthetic, name).mean() for name in ("income", "commute_km")]
    slopes = [slope(real, names) - slope(synthetic, names) for names in (["age"], ["age", "employed"])]
    return [distance, *means, *slopes]


def _table_distance(real: pa.Table, synthetic: pa.Table, schema: dpsyn.Schema, names: tuple[str, ...]) -> float:
    """The distance of one marginal over bins, counted cell by cell."""
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
    hidden: Counter[str] = Counter()
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
            low, high = result.error.low, result.error.high
            kind = "coefficients" if "coefficient" in result.criterion else "criteria"
            hidden[result.criterion] += low is None
            hits[kind, result.criterion].append(low is None or high is None or low <= truth <= high)
    print(f"{rows:,} rows, ε = {epsilon:g}, {runs:,} releases")
    for kind in dict.fromkeys(kind for kind, _ in hits):
        own = {label: each for (other, label), each in hits.items() if other == kind}
        every = np.concatenate([np.array(each) for each in own.values()])
        usual = {label: float(np.mean(each)) for label, each in own.items() if len(each) >= runs / 2}
        ends = f"{min(usual.values()):.3f} … {max(usual.values()):.3f}" if usual else "–"
        print(f"  {kind:<14} {len(own):>3} figures: {every.mean():.4f} of {every.size:,} intervals; each {ends}")
    for label, number in hidden.items():
        if number:
            print(f"  {number:,} releases have no interval, so that every value is possible: {label}")


CANDIDATES: dict[str, dpsyn.Recipe | str] = {
    "default": "dpsyn",
    "gum": dpsyn.find_recipe("dpsyn", {"synthesis": "gum"}),
    "privsyn": "privsyn",
    "priview": "priview",
    "columns": "independent",
}


def compare_choices(
    folder: Path, rows: int | None, epsilon: float, choice_epsilon: float, repetitions: int, allowed: float
) -> None:
    """Print how much worse a private choice is than the best candidate."""
    table = Table.parse(str(folder))
    rng = np.random.default_rng(SEED)
    print(f"{rows or len(table.codes):,} rows of {table.name}, ε = {epsilon:g} each, {choice_epsilon:g} for the choice")
    for number in range(1, repetitions + 1):
        codes = table.codes if rows is None else table.codes[rng.choice(len(table.codes), rows, replace=False)]
        schema = make_schema(dict(zip(table.schema.names, table.sizes, strict=True)), len(codes))
        real = pa.table({name: codes[:, axis] for axis, name in enumerate(schema.names)})
        choice = dpsyn.choose(real, schema, CANDIDATES, epsilon=epsilon, choice_epsilon=choice_epsilon, delta=DELTA)
        scores = {}
        for name, synopsis in choice.candidates.items():
            _, (synthetic,) = read_synthetic_tables([synopsis.generate_arrow(seed=0)], schema)
            recoding = Recoding.coarse(Codec(schema))
            pairs = list(combinations(recoding.names, 2))
            own = SyntheticTable("real", "", Codec(schema).encode(real)).count(pairs, recoding)
            counted = zip(own, synthetic.count(pairs, recoding), strict=True)
            scores[name] = float(np.mean([abs(a / len(codes) - b / synthetic.rows).sum() / 2 for a, b in counted]))
        best = min(scores.values())
        ratios = np.array([score / best for score in scores.values()])
        odds = np.exp(-(np.array(list(scores.values())) - best) * len(codes) * choice_epsilon / 2)
        odds /= odds.sum()
        shown = ", ".join(f"{name} {score:.4f}" for name, score in scores.items())
        print(
            f"  {number}: {shown}; chosen {choice.name}, {scores[choice.name] / best:.3f} of the best; expected "
            f"{odds @ ratios:.3f}; beyond {1 + allowed:g} with probability {odds[ratios > 1 + allowed].sum():.3f}; "
            f"ε in all {choice.epsilon:.3f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    intervals = commands.add_parser("intervals")
    intervals.add_argument("--rows", type=int, default=4_000)
    intervals.add_argument("--epsilon", type=float, default=0.5)
    intervals.add_argument("--runs", type=int, default=1_000)
    choose = commands.add_parser("choose")
    choose.add_argument("folder", type=Path)
    choose.add_argument("--rows", type=int)
    choose.add_argument("--epsilon", type=float, default=1.0)
    choose.add_argument("--choice-epsilon", type=float, default=0.1)
    choose.add_argument("--repetitions", type=int, default=3)
    choose.add_argument("--allowed", type=float, default=0.05)
    chosen = parser.parse_args()
    print(provenance(SEED), flush=True)
    if chosen.command == "intervals":
        count_coverage(chosen.rows, chosen.epsilon, chosen.runs)
        return
    terms = chosen.epsilon, chosen.choice_epsilon, chosen.repetitions, chosen.allowed
    compare_choices(chosen.folder, chosen.rows, *terms)


if __name__ == "__main__":
    main()
