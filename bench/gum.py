"""How fast is GUM? How close do its records come to the tables, round by round, and which of its options matter?

    python -m bench.gum FOLDER [--rows N] [--epsilon E] [--repeats K] [--methods WORD] [--turns T]

FOLDER has ``data.csv.gz``, integer codes, and ``domain.json``, the number of values of each attribute. The targets are
the counts of all pairs of its first ten attributes, 45 of them. First GUM, 100 rounds, in turn with a second
implementation in numpy alone (records sorted by cell, then slices); it should be at least 5 times as fast, and take at
most 5 s for Adult; ``--turns 0`` leaves this out. Then the paper's comparison, from exact counts and from noisy ones,
made consistent, that share ε: min-cost flow, the Gibbs fit, and GUM with each decay and each way to move records.
Shown is the mean total variation distance between the pairs of the records and those of the table after 1, 5, 10, 20,
50 and 100 rounds; at the end the same for all triples, which are not fitted; and how many of the records differ.
Everything is repeated with other random choices and other noise, and averaged; ± is the standard deviation of the
pairs at the end. ``--plot FILE.png`` plots the rounds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from bench.measuring import provenance, ratio, seconds
from dpsyn.accounting import rho_for
from dpsyn.inference import ConsistencyOptions, gibbs, make_consistent
from dpsyn.inference.gum import Records, initialize_records, run_gum
from dpsyn.inference.gum.gradual_update import iterate_gum_rounds
from dpsyn.inference.mcf import iterate_mcf_passes, sample_uniform_records
from dpsyn.inference.methods import DECAYS, GUM, ConstantDecay, Gibbs
from dpsyn.marginals import Estimate

SEED = 45
ATTRIBUTES = 10
SHOWN = (1, 5, 10, 20, 50, 100)
MCF_PASSES = 20
DELTA = 1e-9

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]


def read_codes(folder: Path) -> tuple[list[str], list[int], Records]:
    """The names and sizes of a table's first attributes, and its records."""
    sizes = json.loads((folder / "domain.json").read_text())
    table = pyarrow.csv.read_csv(folder / "data.csv.gz")
    names = table.column_names[:ATTRIBUTES]
    columns = np.array([table.column(name).to_numpy() for name in names], np.int32)
    return names, [sizes[name] for name in names], columns.T


def tables_of(names: list[str], sizes: list[int], records: Records, ways: int) -> list[Estimate]:
    """The exact counts of all pairs, or triples."""
    result = []
    for own in combinations(range(len(names)), ways):
        values = counts(records.T[list(own)], tuple(sizes[position] for position in own))
        result.append(Estimate(tuple(names[position] for position in own), values.astype(float), 0.0))
    return result


def cells_of(columns: NDArray[np.int32], shape: tuple[int, ...]) -> NDArray[np.integer]:
    """The cell of each record, in 16 bits if possible: numpy sorts these in linear time."""
    cells: Integers = np.ravel_multi_index(tuple(columns), shape)
    return cells.astype(np.uint16) if np.prod(shape) <= 1 << 16 else cells


def counts(columns: NDArray[np.int32], shape: tuple[int, ...]) -> Integers:
    return np.bincount(cells_of(columns, shape), minlength=int(np.prod(shape))).reshape(shape)


# ── a second GUM, in numpy ───────────────────────────────────────────────────────────────────────────────────


def numpy_gum(
    records: Records, names: list[str], tables: list[Estimate], options: GUM, rng: np.random.Generator
) -> Records:
    """The same as ``run_gum``; the tables must be integers that sum to the number of records."""
    columns = np.array(records.T, order="C")
    indices = [[names.index(name) for name in table.clique] for table in tables]
    targets = [table.values.astype(np.int64) for table in tables]
    for number in range(options.rounds):
        errors = [
            -np.abs(counts(columns[own], target.shape) - target).sum()
            for own, target in zip(indices, targets, strict=True)
        ]
        alpha, share = options.step_size(number), options.duplicate_share(number)
        moved = [numpy_update(columns, indices[at], targets[at], alpha, share, rng) for at in np.argsort(errors)]
        if not any(moved):
            break
    return columns.T


def numpy_update(
    columns: NDArray[np.int32], own: list[int], table: Integers, alpha: float, share: float, rng: np.random.Generator
) -> int:
    """Move records toward one table; returns how many."""
    cells, target = cells_of(columns[own], table.shape), table.ravel()
    now = np.bincount(cells, minlength=target.size)
    gets = whole(additions(now, target, alpha), rng)
    total = int(gets.sum())
    if total == 0:
        return 0
    gives = whole(removals(now, target, total), rng, total)
    copies = np.where(now > 0, whole(share * np.where(now > 0, gets, 0), rng), 0)
    order = rng.permutation(len(cells))
    order = order[np.argsort(cells[order], kind="stable")]
    first = np.cumsum(now) - now
    freed = rng.permutation(order[runs(first, gives)])
    sources = order[runs(first, copies)]
    columns[:, freed[: len(sources)]] = columns[:, sources]
    ends = np.repeat(np.arange(target.size), gets - copies)
    for position, codes in zip(own, np.unravel_index(ends, table.shape), strict=True):
        columns[position, freed[len(sources) :]] = codes
    return total


def additions(now: Integers, target: Integers, alpha: float) -> Reals:
    """min(nᵗ−nˢ, α·nˢ), for empty cells min(nᵗ, α·nᵗ)."""
    return np.where(target > now, np.minimum(target - now, alpha * np.where(now > 0, now, target)), 0.0)


def removals(now: Integers, target: Integers, total: int) -> Reals:
    """min(nˢ−nᵗ, β·nˢ) with the β that makes them sum to the total; cells are sorted by the β of their target."""
    over = np.flatnonzero(now > target)
    over = over[np.argsort((now - target)[over] / now[over])]
    excess, size = (now - target)[over], now[over]
    before = np.cumsum(excess) - excess
    rest = np.cumsum(size[::-1])[::-1]
    beta = np.max((total - before) / rest)
    removed = np.zeros(len(now))
    removed[over] = np.minimum(excess, beta * size)
    return removed


def whole(amounts: Reals, rng: np.random.Generator, total: int | None = None) -> Integers:
    """Amounts rounded to integers, by rounding running sums down."""
    running = np.cumsum(amounts)
    edges = np.floor(running + rng.random()).astype(np.int64)
    if total is not None:
        edges[running >= running[-1]] = total
    return np.diff(edges, prepend=0)


def runs(first: Integers, lengths: Integers) -> Integers:
    """first, first+1, … of each run, one run after another."""
    return np.repeat(first - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())


# ── the questions ────────────────────────────────────────────────────────────────────────────────────────────


def speed(names: list[str], tables: list[Estimate], begin: Records, rounds: int) -> None:
    """GUM against numpy, from the same records."""
    options = GUM()
    once = GUM(rounds=1)
    compiling = seconds(lambda: run_gum(begin[:1], names, tables[:1], rng=np.random.default_rng(SEED), options=once))

    def mine() -> Records:
        return run_gum(begin, names, tables, rng=np.random.default_rng(SEED), options=options)

    def theirs() -> Records:
        return numpy_gum(begin, names, tables, options, np.random.default_rng(SEED))

    own, numpys, times = ratio(mine, theirs, rounds)
    print(f"{options.rounds} rounds of {len(tables)} pairs on {len(begin):,} records:")
    print(f"numpy {numpys:.2f} s, DPSyn {own:.2f} s (aim for Adult: at most 5)")
    print(f"{1 / times:.1f} times as fast (aim: at least 5); once: load compiled kernels {compiling:.1f} s")
    print(f"mean distance: numpy {np.mean(distances(theirs(), tables, names)):.4f}, ", end="")
    own_distances = distances(mine(), tables, names)
    print(f"DPSyn {np.mean(own_distances):.4f} (aim: at most .015), largest {max(own_distances):.4f} (aim: .06)")


def distances(records: Records, tables: Sequence[Estimate], names: Sequence[str]) -> list[float]:
    """The total variation distance between each table and the records."""
    result = []
    for table in tables:
        own = counts(records.T[[names.index(name) for name in table.clique]], table.values.shape)
        result.append(float(np.abs(own / len(records) - table.values / table.total).sum() / 2))
    return result


@dataclass(frozen=True, slots=True)
class Course:
    """The course of a method, averaged over its runs.

    Attributes:
        pairs: the mean distance of pairs after the rounds that are shown.
        spread: the standard deviation of the last of them over the runs.
        triples: the mean distance of triples at the end.
        distinct: the share of records at the end that no earlier record equals.
        seconds: the time of a run.
    """

    pairs: list[float]
    spread: float
    triples: float
    distinct: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Truth:
    """The exact counts that records are compared with."""

    names: list[str]
    sizes: list[int]
    pairs: list[Estimate]
    triples: list[Estimate]
    rows: int


def add_noise(truth: Truth, epsilon: float, seed: int) -> list[Estimate]:
    """Pairs with Gaussian noise that share (ε, δ), made consistent as recipe ``privsyn`` does."""
    rng, std = np.random.default_rng(seed), float(len(truth.pairs) / (2 * rho_for(epsilon, DELTA))) ** 0.5
    noisy = [Estimate(t.clique, t.values + rng.normal(0, std, t.values.shape), std**2) for t in truth.pairs]
    return make_consistent(noisy, total=float(truth.rows), options=ConsistencyOptions(ripple=False))


def noise_distance(truth: Truth, targets: Sequence[list[Estimate]]) -> float:
    """The mean distance between noisy pairs and exact ones: what is left if records match their targets."""
    return float(
        np.mean(
            [
                np.abs(noisy.values - exact.values).sum() / (2 * truth.rows)
                for tables in targets
                for noisy, exact in zip(tables, truth.pairs, strict=True)
            ]
        )
    )


def follow(method: str, truth: Truth, targets: Sequence[list[Estimate]]) -> Course:
    """Fit records to each of several targets, and follow the distances from the truth."""
    runs, triples, distinct = [], [], []

    def work() -> None:
        for seed, tables in enumerate(targets):
            run = []
            for number, records in enumerate(METHODS[method](truth, tables, SEED + seed), start=1):
                if number in SHOWN:
                    run.append(float(np.mean(distances(records, truth.pairs, truth.names))))
            if number not in SHOWN:  # it ended earlier
                run.append(float(np.mean(distances(records, truth.pairs, truth.names))))
            runs.append(run + run[-1:] * (len(SHOWN) - len(run)))
            triples.append(float(np.mean(distances(records, truth.triples, truth.names))))
            distinct.append(len(np.unique(records, axis=0)) / len(records))

    elapsed = seconds(work)
    spread = float(np.std([run[-1] for run in runs], ddof=1)) if len(runs) > 1 else 0.0
    averages = [float(np.mean(triples)), float(np.mean(distinct)), elapsed / len(targets)]
    return Course(np.mean(runs, axis=0).tolist(), spread, *averages)


Fit = Callable[[Truth, list[Estimate], int], Iterable[Records]]


def by_gum(options: GUM) -> Fit:
    """GUM, from records with the one-way marginals of the targets."""

    def fit(truth: Truth, tables: list[Estimate], seed: int) -> Iterable[Records]:
        rng = np.random.default_rng(seed)
        begin = initialize_records(tables, truth.names, truth.rows, rng)
        return iterate_gum_rounds(begin, truth.names, tables, rng=rng, options=options)

    return fit


def by_mcf(truth: Truth, tables: list[Estimate], seed: int) -> Iterable[Records]:
    """Min-cost flow, from uniform records; distances hardly fall after 20 passes, and each takes a second."""
    rng = np.random.default_rng(seed)
    begin = sample_uniform_records(truth.sizes, truth.rows, rng)
    return (records for records, _ in islice(iterate_mcf_passes(begin, truth.names, tables, rng), MCF_PASSES))


def by_gibbs(truth: Truth, tables: list[Estimate], seed: int) -> Iterable[Records]:
    """The records of a fit: it has no rounds that could be compared with those of the others."""
    fitted = gibbs.fit(tables, truth.names, truth.sizes, seed=seed, records=truth.rows, options=Gibbs())
    yield fitted.records.T.astype(np.int32)


METHODS: dict[str, Fit] = {
    "min-cost flow": by_mcf,
    "Gibbs fit": by_gibbs,
    **{f"GUM, {name} decay": by_gum(GUM(decay=decay())) for name, decay in DECAYS.items()},
    "GUM, step decay, α₀ = 0.2": by_gum(GUM(alpha=0.2)),
    "GUM, constant α = 0.2": by_gum(GUM(alpha=0.2, decay=ConstantDecay())),
    "GUM, replace only": by_gum(GUM(moves="replace")),
    "GUM, duplicate only": by_gum(GUM(moves="duplicate")),
    "GUM, shift to copies": by_gum(GUM(duplicate_shares=(0.5, 1.0))),
    "GUM, replace first": by_gum(GUM(duplicate_shares=(0.0, 1.0))),
}
"""What is compared, and the records after each round. GUM has step decay and a mixture of moves unless named."""


def show(title: str, courses: dict[str, Course]) -> None:
    print(f"{title:<28}" + "".join(f"{number:>7}" for number in SHOWN) + "       ±  triples  distinct       s")
    for name, run in courses.items():
        values = "".join(f"{pairs:>7.4f}" for pairs in run.pairs)
        print(f"{name:<28}{values}{run.spread:>8.4f}{run.triples:>9.4f}{run.distinct:>10.3f}{run.seconds:>8.1f}")


def plot(courses: dict[str, Course], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for name, run in courses.items():
        axes.plot(SHOWN, run.pairs, label=name, marker=".")
    axes.set(xlabel="round", ylabel="mean total variation distance of pairs", xscale="log", yscale="log")
    axes.legend()
    figure.savefig(path, dpi=150)
    print(f"plotted in {path}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plot", type=Path, help="plot the rounds from exact counts into this file")
    parser.add_argument("--turns", type=int, default=3, help="repetitions of the comparison with numpy")
    parser.add_argument("--rows", type=int, help="take this many rows of the table, at random")
    parser.add_argument("--epsilon", type=float, default=1.0, help=f"ε that the noisy pairs share, at δ = {DELTA:g}")
    parser.add_argument("--repeats", type=int, default=1, help="runs of every method")
    parser.add_argument("--methods", default="", metavar="WORD", help="only methods whose names have this word")
    chosen = parser.parse_args(arguments)
    print(provenance(SEED))
    names, sizes, records = read_codes(chosen.folder)
    if chosen.rows:
        records = records[np.random.default_rng(SEED).permutation(len(records))[: chosen.rows]]
    pairs, triples = (tables_of(names, sizes, records, ways) for ways in (2, 3))
    if chosen.turns:
        begin = initialize_records(pairs, names, len(records), np.random.default_rng(SEED))
        speed(names, pairs, begin, chosen.turns)
    truth = Truth(names, sizes, pairs, triples, len(records))
    print(f"{len(pairs)} pairs of {len(records):,} records; {chosen.repeats} runs of every method")
    compared = [name for name in METHODS if chosen.methods in name]
    exact = {name: follow(name, truth, [pairs] * chosen.repeats) for name in compared}
    show("exact pairs, after round", exact)
    noisy = [add_noise(truth, chosen.epsilon, SEED + number) for number in range(chosen.repeats)]
    print(f"distance of the noisy pairs themselves, made consistent: {noise_distance(truth, noisy):.4f}")
    show(f"noisy pairs, ε = {chosen.epsilon:g}", {name: follow(name, truth, noisy) for name in compared})
    if chosen.plot:
        plot(exact, chosen.plot)


if __name__ == "__main__":
    main()
