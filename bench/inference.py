"""Do intervals from replicates hold the truth? Repeated releases of samples from known populations.

    python -m bench.inference run toy|adult|acs|reversal [--data FOLDER] --results FILE [--repetitions 100]
        [--epsilon 0.1 0.5 1 5] [--replicates 10]
    python -m bench.inference report --results FILE

Every repetition draws a sample from a population, releases it, and analyses it: the real rows; one synthetic table as
if it were real (naive); replicates that only redraw rows, pooled by Reiter's rule; and replicates that redraw
everything, pooled by ``dpsyn.pool``. A line of JSON says for each quantity whether its 95 % interval held the value in
the population, and how wide it was. Runs can be interrupted; further repetitions are added.

``toy``: three binary columns, y by a logistic model of x1 (1) and x2 (0), 2 000 rows (the example of NAPSU-MQ), with
the regression declared and without; the posterior of the same measurements by brute force stands beside it (exact).
``adult``: ten columns of Adult, 2 000 rows sampled from the table, logistic regression of income, declared. ``acs``:
2 000 rows of ten columns of ACS; means by group, quantiles and correlations, as a synopsis answers them: of declared
pairs, and of others. Groups and answers that are refused, because they
have hardly more rows than noise, do not count. ``reversal``: eight binary columns, and a share
that is .8 where two of them differ and .2 where they agree, which no pair shows: how often do answers that are wrong
say that this was not measured? δ = 1/n².
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean, median
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

import dpsyn
from bench.measuring import commit
from dpsyn.analysis import descriptive
from dpsyn.errors import QueryError
from dpsyn.schema import Categorical, Integer, Schema

SEED = 20
ROWS = 2_000
LEVEL = 0.95
Floats = NDArray[np.float64]
Analysis = Callable[[pd.DataFrame], tuple[Floats, Floats]]
"""Estimates and their variances, as if the rows were a simple sample."""


@dataclass(frozen=True)
class Case:
    """A population, and what is concluded from a sample of it.

    Attributes:
        name: its name in the results.
        sample: draws a sample.
        schema: what is public about it.
        truth: the values in the population, by the name of the quantity.
        analyse: the analysis of a table.
        declared: the analyses that are declared.
        questions: the questions to a synopsis, if there is no such analysis.
    """

    name: str
    sample: Callable[[np.random.Generator], pd.DataFrame]
    schema: Schema
    truth: dict[str, float]
    analyse: Analysis | None = None
    declared: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()


# ── analyses ─────────────────────────────────────────────────────────────────────────────────────────────────


def fit_logistic(design: Floats, outcome: Floats, ridge: float = 1e-3) -> tuple[Floats, Floats]:
    """Coefficients of a logistic regression, without that of the constant, and their variances."""
    design = np.column_stack([np.ones(len(design)), design])
    found = np.zeros(design.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(design @ found, -30, 30)))
        curvature = design.T @ (design * (chance * (1 - chance))[:, None]) + ridge * np.eye(len(found))
        step = np.linalg.solve(curvature, design.T @ (outcome - chance) - ridge * found)
        found += step * min(1.0, 5 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-8:
            break
    return found[1:], np.diag(np.linalg.inv(curvature))[1:]


# ── populations ──────────────────────────────────────────────────────────────────────────────────────────────


def toy_case(declared: bool) -> Case:
    """Three binary columns."""

    def sample(rng: np.random.Generator) -> pd.DataFrame:
        one, two = rng.integers(0, 2, (2, ROWS))
        return pd.DataFrame({"x1": one, "x2": two, "y": (rng.random(ROWS) < 1 / (1 + np.exp(-one))).astype(int)})

    def analyse(rows: pd.DataFrame) -> tuple[Floats, Floats]:
        return fit_logistic(rows[["x1", "x2"]].to_numpy(float), rows["y"].to_numpy(float))

    return Case(
        name="toy, declared" if declared else "toy",
        sample=sample,
        schema=coded_schema({"x1": 2, "x2": 2, "y": 2}),
        analyse=analyse,
        truth={"x1": 1.0, "x2": 0.0},
        declared=("y ~ x1 + x2",) if declared else (),
    )


def adult_case(folder: Path) -> Case:
    """Ten columns of Adult, each of two to five values."""
    raw = pd.read_csv(folder / "adult_raw" / "data.csv.gz")
    text = {name: raw[name].astype(str).str.strip() for name in raw.columns}
    managers, clerks = (
        ["Exec-managerial", "Prof-specialty"],
        ["Adm-clerical", "Sales", "Tech-support", "Protective-serv"],
    )
    married, single = (text["marital-status"].str.startswith(start) for start in ("Married-civ", "Never"))
    income = next(name for name in raw.columns if "income" in name)
    population = pd.DataFrame(
        {
            "age": np.digitize(raw["age"], [25, 35, 45, 60]),
            "edu": np.digitize(raw["education-num"], [9, 10, 12, 13]),
            "hours": np.digitize(raw["hours-per-week"], [35, 41, 50]),
            "work": (text["workclass"] != "Private").astype(int),
            "race": (text["race"] != "White").astype(int),
            "sex": (text["sex"] != "Male").astype(int),
            "gain": ((raw["capital-gain"] > 0) | (raw["capital-loss"] > 0)).astype(int),
            "married": np.select([married, single], [0, 1], 2),
            "job": np.select([text["occupation"].isin(managers), text["occupation"].isin(clerks)], [0, 1], 2),
            "income": text[income].str.contains(">50K|1").astype(int),
        }
    )

    def analyse(rows: pd.DataFrame) -> tuple[Floats, Floats]:
        numbers = rows[["age", "edu", "hours", "work", "race", "sex", "gain"]].to_numpy(float)
        groups = [rows[name].to_numpy() == value for name in ("married", "job") for value in (1, 2)]
        return fit_logistic(np.column_stack([numbers, *groups]), rows["income"].to_numpy(float))

    terms = ["age", "edu", "hours", "work", "race", "sex", "gain", "single", "divorced", "clerk", "other job"]
    return Case(
        name="adult",
        sample=lambda rng: population.sample(ROWS, random_state=rng),
        schema=coded_schema({str(name): int(population[name].max()) + 1 for name in population}),
        analyse=analyse,
        truth=dict(zip(terms, analyse(population)[0].tolist(), strict=True)),
        declared=("income ~ " + " + ".join(str(name) for name in population if name != "income"),),
    )


@dataclass(frozen=True)
class Question:
    """A question to a synopsis, and its statistic of real or synthetic rows.

    Attributes:
        kind: the statistic.
        names: its attributes: one, or the two of a correlation.
        by: the groups.
        declared: the analysis that is declared for it; empty if nobody did.
    """

    kind: Literal["mean", "median", "correlation"]
    names: tuple[str, ...]
    by: tuple[str, ...] = ()
    declared: str = ""

    def estimate(self, schema: Schema, rows: pd.DataFrame) -> dict[str, tuple[float, float]]:
        """Estimates and variances in rows, by term."""
        first, last = self.names[0], self.names[-1]
        statistic = {
            "mean": lambda: descriptive.mean_of(schema, first, self.by),
            "median": lambda: descriptive.quantiles_of(schema, first, self.by, [0.5]),
            "correlation": lambda: descriptive.correlation_of(schema, first, last, "pearson"),
        }[self.kind]()
        table = pa.table({name: rows[name].to_numpy() for name in rows})
        return {self._quantity(term): found for term, found in statistic(table).values.items()}

    def ask(self, synopsis: dpsyn.Synopsis, **options: Any) -> tuple[dict[str, tuple[float, float]], bool]:
        """Intervals by term, and whether a note warns of dependence that was not measured."""
        first, last = self.names[0], self.names[-1]
        answer = {
            "mean": lambda: synopsis.mean(first, by=self.by, **options),
            "median": lambda: synopsis.quantile(first, by=self.by, **options),
            "correlation": lambda: synopsis.correlation(first, last, **options),
        }[self.kind]()
        ends = zip(*(np.atleast_1d(end).tolist() for end in answer.interval(LEVEL)), strict=True)
        warned = any("measured together" in note for note in answer.notes)
        return {self._quantity(term): each for term, each in zip(answer.terms or ("",), ends, strict=True)}, warned

    def _quantity(self, term: str) -> str:
        return f"{self.kind} {', '.join(self.names)}{f', {term}' if term else ''}"


def acs_case(folder: Path) -> Case:
    """Columns of ACS with few values: means and medians by group, and correlations; some declared, some not."""
    sizes = json.loads((folder / "acs35" / "domain.json").read_text())
    numbers, codes = ["AGE", "EDUC", "INCTOT", "POVERTY"], ["SEX", "HCOVANY", "HINSEMP", "HINSCARE", "EMPSTAT", "MARST"]
    population = pd.read_csv(folder / "acs35" / "data.csv.gz")[[*numbers, *codes]]
    questions = (
        Question("mean", ("INCTOT",), ("SEX",), "INCTOT by SEX"),
        Question("mean", ("EDUC",), ("MARST",), "EDUC by MARST"),
        Question("mean", ("HCOVANY",), ("EMPSTAT",), "HCOVANY by EMPSTAT"),
        Question("median", ("AGE",), ("HINSCARE",), "AGE by HINSCARE"),
        Question("correlation", ("AGE", "INCTOT"), declared="AGE, INCTOT"),
        Question("correlation", ("EDUC", "INCTOT"), declared="EDUC, INCTOT"),
        Question("median", ("POVERTY",), declared="one-way"),
        Question("mean", ("INCTOT",), declared="one-way"),
        Question("mean", ("POVERTY",), ("SEX",)),
        Question("mean", ("AGE",), ("MARST",)),
        Question("mean", ("HINSEMP",), ("EMPSTAT",)),
        Question("median", ("INCTOT",), ("HINSCARE",)),
        Question("correlation", ("AGE", "POVERTY")),
        Question("correlation", ("EDUC", "POVERTY")),
    )
    schema = Schema(
        attributes=(
            *(Integer(name=name, low=0, high=sizes[name] - 1) for name in numbers),
            *(Categorical(name=name, codes=sizes[name]) for name in codes),
        ),
        expected_size=ROWS,
    )
    return Case(
        name="acs",
        sample=lambda rng: population.sample(ROWS, random_state=rng),
        schema=schema,
        declared=tuple(each.declared for each in questions if each.declared not in ("", "one-way")),
        questions=questions,
        truth={term: found[0] for each in questions for term, found in each.estimate(schema, population).items()},
    )


def reversal_case() -> Case:
    """Eight binary columns; y is frequent where the first two differ, and nothing else depends on anything."""

    def sample(rng: np.random.Generator) -> pd.DataFrame:
        rows = pd.DataFrame(rng.integers(0, 2, (ROWS, 7)), columns=[f"x{n}" for n in range(1, 8)])
        rows["y"] = (rng.random(ROWS) < np.where(rows["x1"] != rows["x2"], 0.8, 0.2)).astype(int)
        return rows

    names = [*(f"x{n}" for n in range(1, 8)), "y"]
    return Case(
        name="reversal",
        sample=sample,
        schema=coded_schema(dict.fromkeys(names, 2)),
        questions=(Question("mean", ("y",), ("x1", "x2")),),
        truth={f"mean y, x1={one}, x2={two}": 0.8 if one != two else 0.2 for one in (0, 1) for two in (0, 1)},
    )


def coded_schema(sizes: dict[str, int]) -> Schema:
    """A schema of columns of codes, with the public number of rows."""
    return Schema(
        attributes=tuple(Categorical(name=name, codes=size) for name, size in sizes.items()), expected_size=ROWS
    )


# ── one repetition ───────────────────────────────────────────────────────────────────────────────────────────


def repeat(case: Case, epsilon: float, replicates: int, seed: int) -> list[dict[str, Any]]:
    """A line for each method and quantity."""
    rng = np.random.default_rng([SEED, seed])
    real = case.sample(rng)
    table = pa.table({name: real[name].to_numpy() for name in real})
    released = dpsyn.measure(table, case.schema, epsilon, delta=ROWS**-2, analyses=case.declared)
    about = {"case": case.name, "epsilon": epsilon, "seed": seed, "commit": commit()}
    lines = analyse_tables(case, released, real, replicates, seed) if case.analyse else []
    lines += ask_questions(case, released, real, replicates, seed)
    return [{**about, **line} for line in lines]


def analyse_tables(
    case: Case, released: dpsyn.Synopsis, real: pd.DataFrame, replicates: int, seed: int
) -> list[dict[str, Any]]:
    """A line for each method of analysing tables."""
    analyse = case.analyse
    assert analyse is not None

    def tables(uncertainty: Any) -> Iterable[pd.DataFrame]:
        drawn = released.replicates(replicates, ROWS, seed=seed, uncertainty=uncertainty, output_format="pandas")
        return (each.astype(int) for each in drawn)

    intervals = {"real": normal_interval(*analyse(real))}
    redrawn = [analyse(each) for each in tables("rows")]
    intervals["naive"] = normal_interval(*redrawn[0])
    intervals["rows"] = reiter_interval(redrawn)
    pooled = dpsyn.pool([analyse(each)[0] for each in tables("all")])
    low, high = pooled.interval(LEVEL)
    intervals["all"] = np.asarray(low, np.float64), np.asarray(high, np.float64)
    if case.name.startswith("toy") and case.declared:
        intervals["exact"] = exact_interval(released)
    return [
        describe_interval(case, method, quantity, low, high)
        for method, ends in intervals.items()
        for quantity, low, high in zip(case.truth, *ends, strict=True)
    ]


def ask_questions(
    case: Case, released: dpsyn.Synopsis, real: pd.DataFrame, replicates: int, seed: int
) -> list[dict[str, Any]]:
    """A line for each quantity: as the synopsis answers, and as the real rows and naive synthetic ones do."""
    naive = released.generate_arrow(ROWS, seed=seed).to_pandas().astype(int) if case.questions else real
    lines = []
    for question in case.questions:
        covered = bool(question.declared)
        for method, rows in (("real", real), ("naive", naive)):
            for quantity, (value, variance) in question.estimate(case.schema, rows).items():
                low, high = normal_interval(np.array(value), np.array(variance))
                lines.append(describe_interval(case, method, quantity, low, high, covered=covered))
        try:
            answers, warned = question.ask(released, replicates=replicates, seed=seed)
        except QueryError:  # hardly more rows than noise
            continue
        for quantity, ends in answers.items():
            lines.append({**describe_interval(case, "all", quantity, *ends, covered=covered), "warned": warned})
    return [line for line in lines if line["quantity"] in case.truth]


def describe_interval(
    case: Case, method: str, quantity: str, low: Any, high: Any, *, covered: bool = True
) -> dict[str, Any]:
    """Whether an interval holds the truth, and how wide it is."""
    return {
        "method": method,
        "quantity": quantity,
        "covered": covered,
        "held": bool(low <= case.truth.get(quantity, np.nan) <= high),
        "width": round(float(high - low), 5),
    }


def normal_interval(estimates: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """The interval of an analysis that takes rows for real ones."""
    half = stats.norm.ppf((1 + LEVEL) / 2) * np.sqrt(variances)
    return estimates - half, estimates + half


def reiter_interval(results: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Reiter's rule (2003) for tables that are all synthetic: T = (1 + 1/m)·b − v̄, floored at v̄."""
    estimates, variances = (np.array(part) for part in zip(*results, strict=True))
    between, within, count = estimates.var(axis=0, ddof=1), variances.mean(axis=0), len(estimates)
    total = np.maximum((1 + 1 / count) * between - within, within)
    half = stats.t.ppf((1 + LEVEL) / 2, count - 1) * np.sqrt(total)
    return estimates.mean(axis=0) - half, estimates.mean(axis=0) + half


def exact_interval(released: dpsyn.Synopsis) -> tuple[Floats, Floats]:
    """The posterior of the coefficients given the noisy table of all three columns, by brute force.

    With a flat prior on the eight cells, these are normal around the noisy counts, with the variance of the noise and
    of sampling, and positive. The one-way marginals of the release, with a twentieth of the budget, are left out.
    """
    rng, rows = np.random.default_rng(0), released.rows
    marginals = [marginal for each in released.releases[0].rounds for marginal in each.marginals]
    [whole] = [marginal for marginal in marginals if len(marginal.clique) == 3]
    order = [whole.clique.index(name) for name in ("x1", "x2", "y")]
    recoding = released.releases[0].rounds[-1].recoding
    codes = [recoding.columns[recoding.index_of(name)].tables[0] for name in ("x1", "x2", "y")]
    counts = np.transpose(whole.counts, order)[np.ix_(*codes)].ravel()
    shares = np.maximum(counts, 1.0) / np.maximum(counts, 1.0).sum()
    spread = np.diag(np.full(8, whole.std**2)) + rows * (np.diag(shares) - np.outer(shares, shares))
    drawn = rng.multivariate_normal(counts, spread, 4_000)
    drawn = drawn[(drawn > 0).all(axis=1)]
    found = _weighted_logistic(np.array(list(product((0, 1), repeat=3)), float), drawn)
    return np.quantile(found, (1 - LEVEL) / 2, axis=0), np.quantile(found, (1 + LEVEL) / 2, axis=0)


def _weighted_logistic(cells: Floats, weights: Floats) -> Floats:
    """The coefficients of x1 and x2 for many tables at once: draws × cells."""
    design, outcome = np.column_stack([np.ones(8), cells[:, :2]]), cells[:, 2]
    found = np.zeros((len(weights), 3))
    for _ in range(25):
        chances = 1 / (1 + np.exp(-np.clip(found @ design.T, -30, 30)))
        curvature = np.einsum("dc,ci,cj->dij", weights * chances * (1 - chances), design, design) + 1e-9 * np.eye(3)
        steps = np.linalg.solve(curvature, ((weights * (outcome - chances)) @ design)[:, :, None])[:, :, 0]
        found += steps * np.minimum(1.0, 3 / np.maximum(np.abs(steps).max(axis=1, keepdims=True), 1e-12))
        if np.abs(steps).max() < 1e-7:
            break
    return found[:, 1:]


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────


def run(given: argparse.Namespace) -> None:
    """Add the repetitions that are missing."""
    cases = {
        "toy": lambda: [toy_case(True), toy_case(False)],
        "adult": lambda: [adult_case(given.data)],
        "acs": lambda: [acs_case(given.data)],
        "reversal": lambda: [reversal_case()],
    }[given.population]()
    lines = [json.loads(text) for text in given.results.read_text().splitlines()] if given.results.exists() else []
    done = {(line["case"], line["epsilon"], line["seed"]) for line in lines}
    for seed, epsilon, case in product(range(given.repetitions), given.epsilon, cases):
        if (case.name, epsilon, seed) not in done:
            with given.results.open("a") as file:
                file.writelines(json.dumps(line) + "\n" for line in repeat(case, epsilon, given.replicates, seed))


def report(given: argparse.Namespace) -> None:
    """A line for each case, ε and method."""
    lines = [json.loads(text) for text in given.results.read_text().splitlines()]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        groups[line["case"], line["epsilon"], line["covered"], line["method"]].append(line)
    print("| case | ε | tables | method | repetitions | held | least | ± (99 %) | median width |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (case, epsilon, covered, method), found in sorted(groups.items(), key=lambda item: str(item[0])):
        by_quantity: dict[str, list[bool]] = defaultdict(list)
        for line in found:
            by_quantity[line["quantity"]].append(line["held"])
        held, repetitions = mean(line["held"] for line in found), len({line["seed"] for line in found})
        error = stats.norm.ppf(0.995) * np.sqrt(max(held * (1 - held), 1e-4) / repetitions)
        print(
            f"| {case} | {epsilon:g} | {'declared' if covered else 'others'} | {method} | {repetitions} | {held:.3f} "
            f"| {min(float(np.mean(each)) for each in by_quantity.values()):.3f} | {error:.3f} "
            f"| {median(line['width'] for line in found):.3g} |"
        )
    missed = [line for line in lines if "warned" in line and not line["held"] and not line["covered"]]
    if missed:
        share = mean(line["warned"] for line in missed)
        print(f"\nOf {len(missed)} missed quantities that nobody declared, {share:.0%} had a note.")


def main() -> None:
    """Run repetitions, or print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("population", choices=("toy", "adult", "acs", "reversal"))
    runs.add_argument("--data", type=Path, help="the folder of adult_raw and acs35")
    runs.add_argument("--repetitions", type=int, default=100)
    runs.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 0.5, 1.0, 5.0])
    runs.add_argument("--replicates", type=int, default=10)
    shows = commands.add_parser("report")
    for command in (runs, shows):
        command.add_argument("--results", required=True, type=Path)
    given = parser.parse_args()
    {"run": run, "report": report}[given.command](given)


if __name__ == "__main__":
    main()
