"""How accurate are answers to queries of many attributes, and do intervals have their stated coverage?

    python -m bench.priview errors NLTCS TRANSACTIONS... [--epsilon 0.1 1] [--queries 20] [--delta 0]
    python -m bench.priview methods NLTCS [--epsilon 1] [--queries 20]
    python -m bench.priview coverage NLTCS [--epsilon 1] [--releases 20]
    python -m bench.priview synthesis ADULT [--epsilon 0.1 1] [--releases 3]

NLTCS and ADULT are folders with a table of integer codes, ``*.csv.gz``, and ``domain.json``; TRANSACTIONS are files of
baskets, ``retail.dat.gz:32`` meaning the 32 most frequent items of it as binary attributes. All releases go through the
gate with real noise. ``errors --delta 0`` gives every method Laplace noise, as in the papers.

``errors`` queries random marginals of 4, 6 and 8 attributes and prints the mean L2 error, √Σ(count − truth)² / rows,
and the mean Jensen–Shannon divergence, of PriView (views chosen by noise, and the paper's covering design of 8
attributes), of 50 random views of 8 and of as many as the covering design has, of the recipes for synthesis, and of
the baselines. Direct and Fourier would have to release too many marginals: only the noise that the queried marginals
would have is simulated, Fourier's as if a coefficient could be measured by itself, and negative counts are removed.
MWEM holds the joint table of all attributes, which is possible for at most 18 binary ones. ``methods`` compares
maximum entropy with least norm and linear programming on the same views. ``coverage`` counts how often 95 % intervals
contain the true count, or the answer without noise. ``synthesis`` compares rows synthesized from random views with
those of other recipes.
"""

from __future__ import annotations

import argparse
import gzip
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpsyn
from bench.measuring import provenance
from bench.utility import Table as Coded
from dpsyn.accounting import Budget
from dpsyn.inference import norm_sub
from dpsyn.query import RECONSTRUCTION_METHODS
from dpsyn.schema import Categorical, Schema
from dpsyn.selection import BlockCapacity, build_covering_design

SEED = 20
DELTA = 1e-9
WAYS = (4, 6, 8)

SYNTHESIZERS = (
    ("privsyn", None),
    ("priview", "random:50x8"),
    ("priview", "random:50x4"),
    ("priview", None),
    ("dpsyn", None),
)
"""The recipes and views whose rows are compared."""

Codes = NDArray[np.int64]
Counts = NDArray[np.float64]
Columns = tuple[int, ...]


class Table(Coded):
    """A table of integer codes, and the queries to it."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Table:
        """A folder with a table, or a file of baskets and the number of items to use."""
        path, _, items = text.partition(":")
        if Path(path).is_file():
            return cls.baskets(Path(path), int(items or 32))
        read = Coded.load(Path(path))
        return cls(
            read.name, make_schema(dict(zip(read.schema.names, read.sizes, strict=True)), len(read.codes)), read.codes
        )

    @classmethod
    def baskets(cls, path: Path, items: int) -> Table:
        """The most frequent items as binary attributes."""
        with gzip.open(path, "rt") as file:
            rows = [set(line.split()) for line in file]
        frequent = [item for item, _ in Counter(item for row in rows for item in row).most_common(items)]
        codes = np.array([[item in row for item in frequent] for row in rows], np.int64)
        return cls(f"{path.name.split('.')[0]}{items}", make_schema({f"i{i}": 2 for i in frequent}, len(codes)), codes)

    def names(self, columns: Iterable[int]) -> list[str]:
        """The names of some columns."""
        return [self.schema.names[column] for column in columns]

    def counts(self, columns: Columns) -> Counts:
        """The true counts."""
        return _count(self.codes, columns, self.sizes)

    def queries(self, ways: int, count: int) -> list[Columns]:
        """Random sets of ``ways`` attributes."""
        rng = np.random.default_rng(SEED + ways)
        return [tuple(sorted(rng.permutation(len(self.sizes))[:ways].tolist())) for _ in range(count)]


def make_schema(sizes: dict[str, int], rows: int) -> Schema:
    """A schema whose expected size is a round guess."""
    attributes = tuple(Categorical(name=name, codes=size) for name, size in sizes.items())
    return Schema(attributes=attributes, expected_size=round(rows, 1 - len(str(rows))))


def _count(codes: Codes, columns: Columns, sizes: Sequence[int]) -> Counts:
    shape = [sizes[column] for column in columns]
    cells = np.ravel_multi_index([codes[:, column] for column in columns], shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def release(table: Table, epsilon: float, recipe: str, *, delta: float = DELTA, **options: Any) -> dpsyn.Synopsis:
    chosen = dpsyn.find_recipe(recipe, {name: value for name, value in options.items() if value is not None})
    return dpsyn.measure(table.arrow(), table.schema, epsilon, delta=delta, allow_large_epsilon=True, recipe=chosen)


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────

Answers = Callable[[Columns], Counts]
"""The counts of some attributes."""


def from_synopsis(table: Table, delta: float, recipe: str, views: str | None = None) -> Callable[[float, int], Answers]:
    """Answers of a release."""

    def answer_from_release(epsilon: float, ways: int) -> Answers:
        synopsis = release(table, epsilon, recipe, delta=delta, views=views)
        return lambda columns: synopsis.marginal(*table.names(columns)).counts

    return answer_from_release


def from_mwem(table: Table, delta: float, replay: int) -> Callable[[float, int], Answers]:
    """Answers of MWEM for one number of attributes."""

    def answer_from_release(epsilon: float, ways: int) -> Answers:
        synopsis = release(table, epsilon, "mwem", delta=delta, ways=ways, replay=replay)
        return lambda columns: synopsis.marginal(*table.names(columns)).counts

    return answer_from_release


def from_noise(
    table: Table, delta: float, coefficients: Callable[[int, int], tuple[int, bool]]
) -> Callable[[float, int], Answers]:
    """True counts with the noise that they would have if all coefficients, or marginals, were released."""
    rng = np.random.default_rng(SEED)

    def answer_with_noise(epsilon: float, ways: int) -> Answers:
        count, fourier = coefficients(len(table.sizes), ways)
        std = math.sqrt(2) * count / epsilon
        if delta:
            std = math.sqrt(count / (2 * float(Budget.for_guarantee(epsilon, delta).rho)))
        if fourier:  # a cell is a mean of ± coefficients, all of which are noisy
            std /= math.sqrt(2**ways)

        def answer(columns: Columns) -> Counts:
            truth = table.counts(columns)
            laplace = not delta and not fourier  # a mean of many Laplace variables is about normal
            noise = rng.laplace(0, std / math.sqrt(2), truth.shape) if laplace else rng.normal(0, std, truth.shape)
            return norm_sub(truth + noise, float(len(table.codes)))

        return answer

    return answer_with_noise


def direct_marginals(count: int, ways: int) -> tuple[int, bool]:
    return math.comb(count, ways), False


def fourier_coefficients(count: int, ways: int) -> tuple[int, bool]:
    return sum(math.comb(count, size) for size in range(ways + 1)), True


def methods_to_compare(table: Table, delta: float) -> dict[str, tuple[Callable[[float, int], Answers], bool]]:
    """The methods to compare, and whether one release answers queries of all sizes."""
    small = math.prod(table.sizes) <= 1 << 18
    views = len(build_covering_design(BlockCapacity(sizes=(2,) * len(table.sizes), max_attributes=8, max_cells=256), 2))
    weights = {}
    if small:
        weights = {
            name: (from_mwem(table, delta, replay), False) for name, replay in (("mwem", 0), ("mwem-practical", 100))
        }
    return {
        "priview": (from_synopsis(table, delta, "priview"), True),
        "priview covering:2x8": (from_synopsis(table, delta, "priview", "covering:2x8"), True),
        "priview random:50x8": (from_synopsis(table, delta, "priview", "random:50x8"), True),
        f"priview random:{views}x8": (from_synopsis(table, delta, "priview", f"random:{views}x8"), True),
        **({name: (from_synopsis(table, delta, name), True) for name in ("dpsyn", "privsyn")} if delta else {}),
        "direct": (from_noise(table, delta, direct_marginals), False),
        "fourier": (from_noise(table, delta, fourier_coefficients), False),
        **weights,
        "uniform": (lambda epsilon, ways: lambda columns: np.full((2,) * ways, len(table.codes) / 2**ways), False),
    }


def l2(counts: Counts, truth: Counts) -> float:
    return math.sqrt(float(((counts - truth) ** 2).sum())) / float(truth.sum())


def jensen_shannon(counts: Counts, truth: Counts) -> float:
    """The Jensen–Shannon divergence of the shares of the rows, in nats."""
    one, other = (
        np.maximum(table, 0).ravel() / max(float(np.maximum(table, 0).sum()), 1e-12) for table in (counts, truth)
    )
    middle = (one + other) / 2

    def divergence(shares: Counts) -> float:
        positive = shares > 0
        return float((shares[positive] * np.log(shares[positive] / middle[positive])).sum())

    return (divergence(one) + divergence(other)) / 2


def errors(chosen: argparse.Namespace) -> None:
    heads = "".join(f"{f'L2 k={ways}':>10}{'JS':>9}" for ways in WAYS)
    print(f"{'table':<10} {'ε':>4}  {'answers of':<22}{heads}   seconds of a release; slowest query")
    for text in chosen.tables:
        table = Table.parse(text)
        for epsilon in chosen.epsilon:
            for name, (answers_of, once) in methods_to_compare(table, chosen.delta).items():
                if chosen.only and not any(word in name for word in chosen.only):
                    continue
                took, slowest = [], 0.0
                distances: dict[int, list[tuple[float, float]]] = {ways: [] for ways in WAYS}
                for _ in range(chosen.releases):
                    start = time.perf_counter()
                    answers = answers_of(epsilon, WAYS[0])
                    took.append(time.perf_counter() - start)
                    for ways in WAYS:
                        answers = answers if once else answers_of(epsilon, ways)
                        for columns in table.queries(ways, chosen.queries):
                            start = time.perf_counter()
                            counts, truth = answers(columns), table.counts(columns)
                            slowest = max(slowest, time.perf_counter() - start)
                            distances[ways].append((l2(counts, truth), jensen_shannon(counts, truth)))
                shown = "".join(f"{a:>10.5f}{b:>9.5f}" for a, b in (np.mean(distances[ways], axis=0) for ways in WAYS))
                print(
                    f"{table.name:<10} {epsilon:>4g}  {name:<22}{shown}   {np.mean(took):.1f}; {slowest:.2f}",
                    flush=True,
                )


def methods(chosen: argparse.Namespace) -> None:
    print(f"{'table':<10} {'ε':>4}  {'method':<18}" + "".join(f"{f'L2 k={ways}':>10}{'JS':>9}" for ways in WAYS))
    for text in chosen.tables:
        table = Table.parse(text)
        for epsilon in chosen.epsilon:
            synopses = [release(table, epsilon, "priview", views="covering:2x8") for _ in range(chosen.releases)]
            for method in RECONSTRUCTION_METHODS:
                shown = ""
                for ways in WAYS:
                    answers = [
                        (synopsis.marginal(*table.names(columns), method=method).counts, table.counts(columns))
                        for synopsis in synopses
                        for columns in table.queries(ways, chosen.queries)
                    ]
                    means = (np.mean([error(*pair) for pair in answers]) for error in (l2, jensen_shannon))
                    shown += "{:>10.5f}{:>9.5f}".format(*means)
                print(f"{table.name:<10} {epsilon:>4g}  {method:<18}{shown}", flush=True)


# ── coverage ─────────────────────────────────────────────────────────────────────────────────────────────────


def coverage(chosen: argparse.Namespace) -> None:
    print(f"{'table':<10} {'ε':>4}  {'queries':<34} inside 95 %   counts   error / predicted")
    for text in chosen.tables:
        table = Table.parse(text)
        without = release(table, 10**6, "priview", views="covering:2x8")
        for epsilon in chosen.epsilon:
            synopses = [release(table, epsilon, "priview", views="covering:2x8") for _ in range(chosen.releases)]
            rounds = [each for each in synopses[0].releases[0].rounds if len(each.marginals[0].clique) > 1]
            cliques = [marginal.clique for each in rounds for marginal in each.marginals]
            covered = [tuple(table.schema.names.index(name) for name in clique) for clique in cliques]
            parts = [part for view in covered[:6] for part in (view[:1], view[1:3], view[2:6], view)]
            print_coverage(table, epsilon, "covered: the true count", synopses, parts, None)
            for ways in WAYS:
                queries = [p for p in table.queries(ways, chosen.queries) if not any({*p} <= {*v} for v in covered)]
                print_coverage(table, epsilon, f"reconstructed, k={ways}: no noise", synopses, queries, without)
                print_coverage(table, epsilon, f"reconstructed, k={ways}: the true count", synopses, queries, None)


def print_coverage(
    table: Table,
    epsilon: float,
    label: str,
    synopses: Sequence[dpsyn.Synopsis],
    queries: Sequence[Columns],
    without: dpsyn.Synopsis | None,
) -> None:
    inside, ratios = [], []
    for synopsis in synopses:
        for columns in queries:
            answer = synopsis.marginal(*table.names(columns))
            truth = without.marginal(*table.names(columns)).counts if without else table.counts(columns)
            low, high = answer.interval(noise_only=without is not None)
            inside.append(((low <= truth) & (truth <= high)).ravel())
            model = 0.0 if without or answer.model_error is None else answer.model_error
            ratios.append(
                float(((answer.counts - truth) ** 2).mean() / ((answer.standard_errors**2).mean() + model**2))
            )
    share, count = float(np.mean(np.concatenate(inside))), sum(len(part) for part in inside)
    print(
        f"{table.name:<10} {epsilon:>4g}  {label:<34} {share:>11.3f} {count:>8}   {math.sqrt(np.mean(ratios)):.2f}",
        flush=True,
    )


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────


def synthesis(chosen: argparse.Namespace) -> None:
    print(f"{'table':<10} {'ε':>4}  {'rows of':<22}  1-way   2-way   3-way   seconds")
    for text in chosen.tables:
        table = Table.parse(text)
        rng, count = np.random.default_rng(SEED), len(table.sizes)
        triples = list(combinations(range(count), 3))
        picked = [triples[index] for index in rng.permutation(len(triples))[:300]]
        cliques = ([(column,) for column in range(count)], list(combinations(range(count), 2)), picked)
        for epsilon in chosen.epsilon:
            for recipe, views in SYNTHESIZERS:
                start, distances = time.perf_counter(), []
                for seed in range(chosen.releases):
                    rows = release(table, epsilon, recipe, views=views).generate(seed=seed)
                    codes = table.codes_of(rows)
                    distances.append([np.mean([distance(table, codes, c) for c in group]) for group in cliques])
                shown = "  ".join(f"{figure:.4f}" for figure in np.mean(distances, axis=0))
                took = (time.perf_counter() - start) / chosen.releases
                label = f"{recipe} {views or ''}"
                print(f"{table.name:<10} {epsilon:>4g}  {label:<22}  {shown}  {took:>6.1f}", flush=True)


def distance(table: Table, codes: Codes, columns: Columns) -> float:
    """The total variation distance of two marginals."""
    real, synthetic = table.counts(columns) / len(table.codes), _count(codes, columns, table.sizes) / max(len(codes), 1)
    return float(np.abs(real - synthetic).sum() / 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    experiments = {"errors": errors, "methods": methods, "coverage": coverage, "synthesis": synthesis}
    parser.add_argument("experiment", choices=experiments)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--delta", type=float, default=DELTA, help="of errors")
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="only methods whose name contains one of these")
    chosen = parser.parse_args()
    print(f"{provenance(SEED)}; δ = {chosen.delta}, {chosen.releases} releases each")
    experiments[chosen.experiment](chosen)


if __name__ == "__main__":
    main()
