"""How near are answers to questions of many attributes, and do error bars hold what they claim?

    python -m bench.priview errors NLTCS TRANSACTIONS... [--epsilon 0.1 1] [--queries 20] [--releases 3]
    python -m bench.priview methods NLTCS [--epsilon 1] [--queries 20]
    python -m bench.priview coverage NLTCS [--epsilon 1] [--releases 20]
    python -m bench.priview synthesis ADULT [--epsilon 0.1 1] [--releases 3]

NLTCS and ADULT are folders with a table of integer codes, ``*.csv.gz``, and ``domain.json``; TRANSACTIONS are files of
baskets, ``retail.dat.gz:32`` meaning the 32 most frequent items of it as binary attributes. All releases go through the
gate with real noise, δ = 1e-9.

``errors`` asks for random tables of 4, 6 and 8 attributes and prints the mean L2 error, √Σ(count − truth)² / rows, and
the mean Jensen–Shannon divergence, of PriView (views chosen by noise, and the paper's covering design of 8 attributes),
of 50 random views of 8 and of as many as the covering design has, of the recipes for synthesis, and of the yardsticks.
Direct and Fourier would have to release more tables than anybody could: only the noise that the tables asked for would
have is drawn, Fourier's as if a coefficient could be bought by itself, and negative counts are removed. MWEM holds the
table of all attributes at once, which it cannot for more than 18 binary ones. ``methods`` compares maximum entropy with
least norm and linear programming on the same views. ``coverage`` counts how often 95 % intervals hold the true count,
or what would have been answered without noise. ``synthesis`` compares rows made from random views with those of other
recipes.
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

MAKERS = (("privsyn", None), ("priview", "random:50x8"), ("priview", "random:50x4"), ("priview", None), ("dpsyn", None))
"""Whose rows are compared, and from which views."""

Codes = NDArray[np.int64]
Counts = NDArray[np.float64]
Places = tuple[int, ...]


class Table(Coded):
    """A table of integer codes, and what is asked about it."""

    __slots__ = ()

    @classmethod
    def given(cls, words: str) -> Table:
        """A folder with a table, or a file of baskets and how many items to take."""
        path, _, items = words.partition(":")
        if Path(path).is_file():
            return cls.baskets(Path(path), int(items or 32))
        read = Coded.load(Path(path))
        return cls(
            read.name, _schema(dict(zip(read.schema.names, read.sizes, strict=True)), len(read.codes)), read.codes
        )

    @classmethod
    def baskets(cls, path: Path, items: int) -> Table:
        """The most frequent items as binary attributes."""
        with gzip.open(path, "rt") as file:
            rows = [set(line.split()) for line in file]
        frequent = [item for item, _ in Counter(item for row in rows for item in row).most_common(items)]
        codes = np.array([[item in row for item in frequent] for row in rows], np.int64)
        return cls(f"{path.name.split('.')[0]}{items}", _schema({f"i{i}": 2 for i in frequent}, len(codes)), codes)

    def names(self, places: Iterable[int]) -> list[str]:
        """The attributes at some places."""
        return [self.schema.names[place] for place in places]

    def counts(self, places: Places) -> Counts:
        """The true counts."""
        return _counted(self.codes, places, self.sizes)

    def questions(self, ways: int, number: int) -> list[Places]:
        """Random attributes, so many at a time."""
        rng = np.random.default_rng(SEED + ways)
        return [tuple(sorted(rng.permutation(len(self.sizes))[:ways].tolist())) for _ in range(number)]


def _schema(sizes: dict[str, int], rows: int) -> Schema:
    """A schema whose expected size is a round guess."""
    attributes = tuple(Categorical(name=name, codes=size) for name, size in sizes.items())
    return Schema(attributes=attributes, expected_size=round(rows, 1 - len(str(rows))))


def _counted(codes: Codes, places: Places, sizes: Sequence[int]) -> Counts:
    shape = [sizes[place] for place in places]
    cells = np.ravel_multi_index([codes[:, place] for place in places], shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def released(table: Table, epsilon: float, recipe: str, **options: Any) -> dpsyn.Synopsis:
    return dpsyn.measure(table.arrow(), table.schema, epsilon, delta=DELTA, recipe=recipe, **options)


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────

Answers = Callable[[Places], Counts]
"""The counts of some attributes."""


def from_synopsis(table: Table, recipe: str, views: str | None = None) -> Callable[[float, int], Answers]:
    """Answers of a release."""

    def release(epsilon: float, ways: int) -> Answers:
        asked = f"all:{ways}" if recipe.startswith("mwem") else views
        synopsis = released(table, epsilon, recipe, views=asked)
        return lambda places: synopsis.marginal(*table.names(places)).counts

    return release


def from_noise(table: Table, coefficients: Callable[[int, int], tuple[int, bool]]) -> Callable[[float, int], Answers]:
    """True counts with the noise that they have if so many numbers, or tables, are released."""
    rng = np.random.default_rng(SEED)

    def release(epsilon: float, ways: int) -> Answers:
        number, fourier = coefficients(len(table.sizes), ways)
        deviation = math.sqrt(number / (2 * float(Budget.for_guarantee(epsilon, DELTA).rho)))
        if fourier:  # a cell is a mean of ± coefficients, all of which are noisy
            deviation /= math.sqrt(2**ways)

        def answer(places: Places) -> Counts:
            truth = table.counts(places)
            return norm_sub(truth + rng.normal(0, deviation, truth.shape), float(len(table.codes)))

        return answer

    return release


def direct_tables(count: int, ways: int) -> tuple[int, bool]:
    return math.comb(count, ways), False


def fourier_coefficients(count: int, ways: int) -> tuple[int, bool]:
    return sum(math.comb(count, number) for number in range(ways + 1)), True


def contestants(table: Table) -> dict[str, tuple[Callable[[float, int], Answers], bool]]:
    """Who answers, and whether one release answers questions of all sizes."""
    small = math.prod(table.sizes) <= 1 << 18
    views = len(build_covering_design(BlockCapacity(sizes=(2,) * len(table.sizes), max_attributes=8, max_cells=256), 2))
    weights = {name: (from_synopsis(table, name), False) for name in ("mwem", "mwem-practical") if small}
    return {
        "priview": (from_synopsis(table, "priview"), True),
        "priview covering:2x8": (from_synopsis(table, "priview", "covering:2x8"), True),
        "priview random:50x8": (from_synopsis(table, "priview", "random:50x8"), True),
        f"priview random:{views}x8": (from_synopsis(table, "priview", f"random:{views}x8"), True),
        "dpsyn": (from_synopsis(table, "dpsyn"), True),
        "privsyn": (from_synopsis(table, "privsyn"), True),
        "direct": (from_noise(table, direct_tables), False),
        "fourier": (from_noise(table, fourier_coefficients), False),
        **weights,
        "uniform": (lambda epsilon, ways: lambda places: np.full((2,) * ways, len(table.codes) / 2**ways), False),
    }


def l2(counts: Counts, truth: Counts) -> float:
    return math.sqrt(float(((counts - truth) ** 2).sum())) / float(truth.sum())


def jensen_shannon(counts: Counts, truth: Counts) -> float:
    """In nats, of the shares of the rows."""
    one, other = (
        np.maximum(table, 0).ravel() / max(float(np.maximum(table, 0).sum()), 1e-12) for table in (counts, truth)
    )
    middle = (one + other) / 2

    def divergence(shares: Counts) -> float:
        some = shares > 0
        return float((shares[some] * np.log(shares[some] / middle[some])).sum())

    return (divergence(one) + divergence(other)) / 2


def errors(chosen: argparse.Namespace) -> None:
    heads = "".join(f"{f'L2 k={ways}':>10}{'JS':>9}" for ways in WAYS)
    print(f"{'table':<10} {'ε':>4}  {'answers of':<22}{heads}   seconds of a release; slowest question")
    for given in chosen.tables:
        table = Table.given(given)
        for epsilon in chosen.epsilon:
            for words, (release, once) in contestants(table).items():
                if chosen.only and not any(word in words for word in chosen.only):
                    continue
                took, slowest = [], 0.0
                found: dict[int, list[tuple[float, float]]] = {ways: [] for ways in WAYS}
                for _ in range(chosen.releases):
                    start = time.perf_counter()
                    answers = release(epsilon, WAYS[0])
                    took.append(time.perf_counter() - start)
                    for ways in WAYS:
                        answers = answers if once else release(epsilon, ways)
                        for places in table.questions(ways, chosen.queries):
                            start = time.perf_counter()
                            counts, truth = answers(places), table.counts(places)
                            slowest = max(slowest, time.perf_counter() - start)
                            found[ways].append((l2(counts, truth), jensen_shannon(counts, truth)))
                shown = "".join(f"{a:>10.5f}{b:>9.5f}" for a, b in (np.mean(found[ways], axis=0) for ways in WAYS))
                print(
                    f"{table.name:<10} {epsilon:>4g}  {words:<22}{shown}   {np.mean(took):.1f}; {slowest:.2f}",
                    flush=True,
                )


def methods(chosen: argparse.Namespace) -> None:
    print(f"{'table':<10} {'ε':>4}  {'method':<18}" + "".join(f"{f'L2 k={ways}':>10}{'JS':>9}" for ways in WAYS))
    for given in chosen.tables:
        table = Table.given(given)
        for epsilon in chosen.epsilon:
            synopses = [released(table, epsilon, "priview", views="covering:2x8") for _ in range(chosen.releases)]
            for method in RECONSTRUCTION_METHODS:
                shown = ""
                for ways in WAYS:
                    found = [
                        (synopsis.marginal(*table.names(places), method=method).counts, table.counts(places))
                        for synopsis in synopses
                        for places in table.questions(ways, chosen.queries)
                    ]
                    shown += (
                        f"{np.mean([l2(*p) for p in found]):>10.5f}{np.mean([jensen_shannon(*p) for p in found]):>9.5f}"
                    )
                print(f"{table.name:<10} {epsilon:>4g}  {method:<18}{shown}", flush=True)


# ── error bars ───────────────────────────────────────────────────────────────────────────────────────────────


def coverage(chosen: argparse.Namespace) -> None:
    print(f"{'table':<10} {'ε':>4}  {'questions':<34} inside 95 %   counts   error / predicted")
    for given in chosen.tables:
        table = Table.given(given)
        without = released(table, 10**6, "priview", views="covering:2x8")
        for epsilon in chosen.epsilon:
            synopses = [released(table, epsilon, "priview", views="covering:2x8") for _ in range(chosen.releases)]
            views = [stage for stage in synopses[0].releases[0].rounds if len(stage.marginals[0].clique) > 1]
            cliques = [marginal.clique for stage in views for marginal in stage.marginals]
            covered = [tuple(table.schema.names.index(name) for name in clique) for clique in cliques]
            pairs = [some for view in covered[:6] for some in (view[:1], view[1:3], view[2:6], view)]
            told(table, epsilon, "covered: the true count", synopses, pairs, None)
            for ways in WAYS:
                asked = [p for p in table.questions(ways, chosen.queries) if not any({*p} <= {*v} for v in covered)]
                told(table, epsilon, f"reconstructed, k={ways}: no noise", synopses, asked, without)
                told(table, epsilon, f"reconstructed, k={ways}: the true count", synopses, asked, None)


def told(
    table: Table,
    epsilon: float,
    words: str,
    synopses: Sequence[dpsyn.Synopsis],
    questions: Sequence[Places],
    without: dpsyn.Synopsis | None,
) -> None:
    inside, ratios = [], []
    for synopsis in synopses:
        for places in questions:
            answer = synopsis.marginal(*table.names(places))
            truth = without.marginal(*table.names(places)).counts if without else table.counts(places)
            low, high = answer.interval()
            inside.append(((low <= truth) & (truth <= high)).ravel())
            model = 0.0 if without or answer.model_error is None else answer.model_error
            ratios.append(
                float(((answer.counts - truth) ** 2).mean() / ((answer.standard_errors**2).mean() + model**2))
            )
    share, count = float(np.mean(np.concatenate(inside))), sum(len(some) for some in inside)
    print(
        f"{table.name:<10} {epsilon:>4g}  {words:<34} {share:>11.3f} {count:>8}   {math.sqrt(np.mean(ratios)):.2f}",
        flush=True,
    )


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────


def synthesis(chosen: argparse.Namespace) -> None:
    print(f"{'table':<10} {'ε':>4}  {'rows of':<22}  1-way   2-way   3-way   seconds")
    for given in chosen.tables:
        table = Table.given(given)
        rng, count = np.random.default_rng(SEED), len(table.sizes)
        triples = list(combinations(range(count), 3))
        picked = [triples[place] for place in rng.permutation(len(triples))[:300]]
        cliques = ([(place,) for place in range(count)], list(combinations(range(count), 2)), picked)
        for epsilon in chosen.epsilon:
            for recipe, views in MAKERS:
                start, found = time.perf_counter(), []
                for seed in range(chosen.releases):
                    rows = released(table, epsilon, recipe, views=views).generate(seed=seed)
                    codes = table.codes_of(rows)
                    found.append([np.mean([distance(table, codes, places) for places in some]) for some in cliques])
                shown = "  ".join(f"{figure:.4f}" for figure in np.mean(found, axis=0))
                took = (time.perf_counter() - start) / chosen.releases
                words = f"{recipe} {views or ''}"
                print(f"{table.name:<10} {epsilon:>4g}  {words:<22}  {shown}  {took:>6.1f}", flush=True)


def distance(table: Table, codes: Codes, places: Places) -> float:
    """The total variation distance of two marginals."""
    mine, theirs = table.counts(places) / len(table.codes), _counted(codes, places, table.sizes) / max(len(codes), 1)
    return float(np.abs(mine - theirs).sum() / 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    questions = {"errors": errors, "methods": methods, "coverage": coverage, "synthesis": synthesis}
    parser.add_argument("question", choices=questions)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument(
        "--only", nargs="*", default=[], help="of those who answer, only whose name has one of these in it"
    )
    chosen = parser.parse_args()
    print(f"{provenance(SEED)}; δ = {DELTA}, {chosen.releases} releases each")
    questions[chosen.question](chosen)


if __name__ == "__main__":
    main()
