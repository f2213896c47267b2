"""How fast is GUM? How close do its records come to the tables, round by round, and which of its options matter?

    python -m bench.gum FOLDER [--plot FILE.png]

FOLDER has ``data.csv.gz``, integer codes, and ``domain.json``, the number of values of each attribute. The targets are
the exact counts of all pairs of its first ten attributes, 45 of them. First GUM, 100 rounds, in turn with a second
implementation in numpy alone (records sorted by cell, then slices); it should be at least 5 times as fast, and take at
most 5 s for Adult. Then the paper's comparison: the mean total variation distance between the pairs of the records and
those of the table after 1, 5, 10, 20, 50 and 100 rounds, for min-cost flow, the Gibbs fit, GUM with each decay, and for
each way to move records; and at the end the same for all triples, which are not fitted. ``--plot`` plots it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from bench.measuring import provenance, ratio, seconds
from dpsyn.inference import gibbs
from dpsyn.inference.gum import Records, initialize_records, run_gum
from dpsyn.inference.gum.gradual_update import iterate_gum_rounds
from dpsyn.inference.mcf import iterate_mcf_passes, sample_uniform_records
from dpsyn.inference.methods import DECAYS, GUM, Gibbs
from dpsyn.marginals import Estimate

SEED = 45
ATTRIBUTES = 10
SHOWN = (1, 5, 10, 20, 50, 100)

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
    """The course of a method: the mean distance of the targets after each round, and that of triples at the end."""

    targets: list[float]
    triples: float


def course(rounds: Iterable[Records], names: list[str], tables: list[Estimate], triples: list[Estimate]) -> Course:
    result = []
    for records in rounds:
        result.append(float(np.mean(distances(records, tables, names))))
    return Course(result, float(np.mean(distances(records, triples, names))))


def methods(names: list[str], sizes: list[int], tables: list[Estimate], begin: Records) -> dict[str, Iterable[Records]]:
    """The records after each round, by every method."""
    rng = np.random.default_rng(SEED)
    passes = iterate_mcf_passes(sample_uniform_records(sizes, len(begin), rng), names, tables, rng)
    chosen = {f"GUM, {name} α": GUM(decay=decay()) for name, decay in DECAYS.items()}
    chosen |= {"GUM, replace only": GUM(moves="replace"), "GUM, duplicate only": GUM(moves="duplicate")}
    others = {
        "min-cost flow": (records for records, _ in islice(passes, max(SHOWN))),
        "Gibbs fit": gibbs_sweeps(names, sizes, tables, len(begin)),
    }
    return others | {
        name: iterate_gum_rounds(begin, names, tables, rng=np.random.default_rng(SEED), options=options)
        for name, options in chosen.items()
    }


def gibbs_sweeps(names: list[str], sizes: list[int], tables: list[Estimate], rows: int) -> Iterable[Records]:
    """The records of fits with 1 to 10 sweeps to settle, followed by those to average and to polish."""
    for sweeps in range(1, 11):
        options = Gibbs(max_sweeps=sweeps, min_improvement=0.0)
        yield gibbs.fit(tables, names, sizes, seed=SEED, records=rows, options=options).records.T.astype(np.int32)


def show(courses: dict[str, Course]) -> None:
    print(f"{'mean distance after round':<26}" + "".join(f"{number:>8}" for number in SHOWN) + "   triples")
    for name, run in courses.items():
        values = [run.targets[min(number, len(run.targets)) - 1] for number in SHOWN]
        print(f"{name:<26}" + "".join(f"{value:>8.4f}" for value in values) + f"{run.triples:>10.4f}")


def plot(courses: dict[str, Course], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for name, run in courses.items():
        axes.plot(range(1, len(run.targets) + 1), run.targets, label=name)
    axes.set(xlabel="round", ylabel="mean total variation distance of the targets", yscale="log")
    axes.legend()
    figure.savefig(path, dpi=150)
    print(f"plotted in {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plot", type=Path, help="plot the curves into this file")
    parser.add_argument("--turns", type=int, default=3, help="repetitions of the comparison with numpy")
    chosen = parser.parse_args()
    print(provenance(SEED))
    names, sizes, records = read_codes(chosen.folder)
    tables, triples = (tables_of(names, sizes, records, ways) for ways in (2, 3))
    begin = initialize_records(tables, names, len(records), np.random.default_rng(SEED))
    speed(names, tables, begin, chosen.turns)
    compared = methods(names, sizes, tables, begin).items()
    courses = {name: course(rounds, names, tables, triples) for name, rounds in compared}
    show(courses)
    if chosen.plot:
        plot(courses, chosen.plot)


if __name__ == "__main__":
    main()
