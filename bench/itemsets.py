"""How many of the most frequent itemsets are listed, and how accurate are their counts?

    python -m bench.itemsets FILE... [--top 50 100 200 400] [--epsilon 0.1 0.5 1] [--runs 10] [--plot FILE]

Each FILE has a basket on each line (``.dat``, also ``.gz``); the items that occur in it count as public. The
output has medians over the runs of the false-negative rate, the share of the true top k that is not listed (itemsets as
frequent as the k-th are interchangeable), of the median relative error of the listed counts, and of the seconds of one
run, reading included; and δ of (δ, η)-usefulness (Bhaskar et al., KDD 2010), as a share of the baskets, for η = 0.1: in
nine of ten runs every listed itemset is at least as frequent as the k-th less δ, every one that is more frequent than
the k-th by more than δ is listed, and every listed count is within δ of the true one. ``auto`` is
``dpsyn.frequent_itemsets``; it is compared with

- ``privbasis``: the same with bases only;
- ``discovered``: the same with privately discovered items, δ = 1e-9, 20 items of a basket;
- ``truncated``: the truncated-frequency method (Bhaskar et al., KDD 2010) with the best maximum length m = 1, 2, 3;
- ``plain``: Laplace noise on the counts of all items of baskets truncated to their best length, then on all pairs of
  the k items with the largest noisy counts.

The best m and length are chosen by looking at the results, which a release could not do. The noise of both baselines is
simulated from a seed.
"""

from __future__ import annotations

import argparse
import gzip
import heapq
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np

import dpsyn
from bench.measuring import provenance

SEED = 12
DELTA = 1e-9
MAX_ITEMS = 20
ETA = 0.1
"""The share of runs that may be less useful than stated."""

MINED, FREQUENT = 2_000, 600
"""The number of itemsets that are mined, and of the items they are made of; rarer ones count as equally rare."""

Itemset = frozenset[str]
Listed = list[tuple[Itemset, float]]


class Shop:
    """A file of baskets, with its most frequent itemsets."""

    def __init__(self, path: Path) -> None:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            self.baskets = [sorted(set(line.split())) for line in lines]
        self.path, self.name = path, path.name.split(".")[0]
        holding: dict[str, list[int]] = {}
        for number, basket in enumerate(self.baskets):
            for item in basket:
                holding.setdefault(item, []).append(number)
        self._holding = holding
        self.items = sorted(holding, key=lambda item: (len(item), item))
        self.ranked: Listed = list(self._mine(MINED))

    def support(self, itemset: Itemset) -> int:
        """The number of baskets that hold an itemset."""
        return len(set.intersection(*(set(self._holding[item]) for item in itemset)))

    def _mine(self, count: int) -> Iterator[tuple[Itemset, float]]:
        """The most frequent itemsets, best first."""
        frequent = sorted(self.items, key=lambda item: -len(self._holding[item]))[:FREQUENT]
        held = np.zeros((len(frequent), len(self.baskets)), np.bool_)
        for index, item in enumerate(frequent):
            held[index, self._holding[item]] = True
        rows = np.packbits(held, axis=1)
        waiting: list[tuple[int, int, tuple[int, ...]]]
        waiting = [(-len(self._holding[item]), 1, (index,)) for index, item in enumerate(frequent)]
        for taken in range(count):
            support, length, indices = heapq.heappop(waiting)
            yield frozenset(frequent[index] for index in indices), -support
            later = rows[indices[-1] + 1 :] & np.bitwise_and.reduce(rows[list(indices)])
            counts = np.bitwise_count(later).sum(axis=1, dtype=np.int64).tolist()
            grown = enumerate(counts, start=indices[-1] + 1)
            waiting += [(-count, length + 1, (*indices, index)) for index, count in grown if count]
            waiting = heapq.nsmallest(count - taken, waiting)


@dataclass(frozen=True, slots=True)
class Figures:
    """The false-negative rate, the median relative error, the δ of usefulness, and the seconds of a run."""

    missed: float
    relative_error: float
    useful_delta: float
    seconds: float = 0.0


def figures(shop: Shop, top: int, listed: Sequence[tuple[Itemset, float]], seconds: float = 0.0) -> Figures:
    least = shop.ranked[top - 1][1]
    true = [(shop.support(itemset), count) for itemset, count in listed]
    hits = sum(support >= least for support, _ in true)
    errors = [abs(count - support) / support for support, count in true if support]
    listed_sets = {itemset for itemset, _ in listed}
    too_rare = max((least - support for support, _ in true), default=0)
    left_out = max((count - least for itemset, count in shop.ranked[:top] if itemset not in listed_sets), default=0)
    wrong = max((abs(count - support) for support, count in true), default=0)
    useful = max(too_rare, left_out, wrong) / len(shop.baskets)
    return Figures(1 - hits / top, median(errors) if errors else math.nan, useful, seconds)


# ── the methods ──────────────────────────────────────────────────────────────────────────────────────────────


def mined(
    shop: Shop, top: int, epsilon: float, rng: np.random.Generator, *, method: str, discover: bool = False
) -> Figures:
    start = time.perf_counter()
    items, options = (None, {"delta": DELTA, "max_items": MAX_ITEMS}) if discover else (shop.items, {})
    result = dpsyn.frequent_itemsets(
        shop.path,
        items,
        epsilon,
        top=top,
        method=method,  # type: ignore[arg-type]
        **options,  # type: ignore[arg-type]
    )
    seconds = time.perf_counter() - start
    return figures(shop, top, [(frozenset(itemset.items), itemset.count) for itemset in result.itemsets], seconds)


def truncated(shop: Shop, top: int, epsilon: float, rng: np.random.Generator, *, longest: int) -> Figures:
    """k itemsets of at most m items, selected with weights exp(ε·f̂/4k), f̂ = max(f, f_k − γ); then Laplace(2k/ε)."""
    short = [(itemset, count) for itemset, count in shop.ranked if len(itemset) <= longest]
    whole = sum(math.comb(len(shop.items), size) for size in range(1, longest + 1))
    gamma = 4 * top / epsilon * (math.log(top / 0.9) + math.log(whole))
    level = max(short[min(top, len(short)) - 1][1] - gamma, 0.0)
    above = [(itemset, count) for itemset, count in short if count > level]
    rate = epsilon / (4 * top)
    keys = rate * np.array([count for _, count in above]) + rng.gumbel(size=len(above))
    others = whole - len(above)
    rare = rate * level - np.log(np.cumsum(rng.exponential(size=top)) / max(others, 1)) if others else np.empty(0)
    last = np.sort(np.append(keys, rare))[::-1][top - 1]  # with the largest Gumbel variables of all rare itemsets
    chosen = [above[index] for index in np.flatnonzero(keys >= last)]
    return figures(shop, top, [(itemset, count + rng.laplace(0, 2 * top / epsilon)) for itemset, count in chosen])


def plain(shop: Shop, top: int, epsilon: float, rng: np.random.Generator, *, longest: int) -> Figures:
    """Noise for baskets of at most L items: Laplace(2L/ε) on items, Laplace(L(L−1)/ε) on pairs."""
    index_of = {item: index for index, item in enumerate(shop.items)}
    truncated_baskets = [
        b if len(b) <= longest else rng.choice(b, longest, replace=False).tolist() for b in shop.baskets
    ]
    counts = np.bincount([index_of[item] for basket in truncated_baskets for item in basket], minlength=len(shop.items))
    noisy = counts + rng.laplace(0, 2 * longest / epsilon, len(counts))
    best = np.argsort(-noisy)[:top]
    listed: Listed = [(frozenset([shop.items[index]]), float(noisy[index])) for index in best]
    among = {shop.items[index] for index in best}
    pairs: dict[tuple[str, ...], int] = dict.fromkeys(combinations(sorted(among), 2), 0)
    for basket in truncated_baskets:
        for pair in combinations(sorted(among.intersection(basket)), 2):
            pairs[pair] += 1
    scale = max(longest * (longest - 1), 1) / epsilon
    noise = rng.laplace(0, scale, len(pairs))
    listed += [(frozenset(pair), count + extra) for (pair, count), extra in zip(pairs.items(), noise, strict=True)]
    return figures(shop, top, heapq.nlargest(top, listed, key=lambda pair: pair[1]))


Method = Callable[[Shop, int, float, np.random.Generator], Figures]


def run_repeatedly(method: Method, shop: Shop, top: int, epsilon: float, runs: int) -> Figures:
    results = [method(shop, top, epsilon, np.random.default_rng([SEED, run])) for run in range(runs)]
    missed, relative_error, seconds = (
        median(getattr(one, name) for one in results) for name in ("missed", "relative_error", "seconds")
    )
    useful = sorted(one.useful_delta for one in results)[math.ceil((1 - ETA) * runs) - 1]
    return Figures(missed, relative_error, useful, seconds)


def best_of(variants: Sequence[Method], shop: Shop, top: int, epsilon: float, runs: int) -> Figures:
    return min((run_repeatedly(variant, shop, top, epsilon, runs) for variant in variants), key=lambda one: one.missed)


def _with(run: Callable[..., Figures], **options: int | str) -> Method:
    return lambda shop, top, epsilon, rng: run(shop, top, epsilon, rng, **options)


METHODS: dict[str, Sequence[Method]] = {
    "auto": [_with(mined, method="auto")],
    "privbasis": [_with(mined, method="bases")],
    "discovered": [_with(mined, method="auto", discover=True)],
    "truncated": [_with(truncated, longest=m) for m in (1, 2, 3)],
    "plain": [_with(plain, longest=length) for length in (3, 10, 30)],
}


# ── output ───────────────────────────────────────────────────────────────────────────────────────────────────


def plot(path: Path, results: dict[tuple[str, float, str, int], Figures]) -> None:
    """A panel for each file and ε: false negatives by k, a line for each method."""
    import matplotlib.pyplot as plt

    plt.rc("svg", fonttype="none")  # texts as texts, not as outlines
    names, epsilons = (list(dict.fromkeys(key[index] for key in results)) for index in (0, 1))
    figure, panels = plt.subplots(len(epsilons), len(names), sharex=True, sharey=True, squeeze=False, figsize=(9, 7))
    for row, epsilon in enumerate(epsilons):
        for column, name in enumerate(names):
            panel = panels[row, column]
            for method in METHODS:
                tops = sorted(key[3] for key in results if key[:3] == (name, epsilon, method))
                missed = [results[name, epsilon, method, top].missed for top in tops]  # type: ignore[index]
                panel.plot(tops, missed, marker="o", markersize=3, label=method)
            panel.set(title=f"{name}, ε = {epsilon:g}", ylim=(-0.03, 1.03))
            panel.grid(alpha=0.3)
    panels[0, 0].legend(fontsize=8)
    figure.supxlabel("k, the number of itemsets")
    figure.supylabel("share of them that is missed (median)")
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--top", nargs="+", type=int, default=[50, 100, 200, 400])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 0.5, 1.0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--plot", type=Path)
    chosen = parser.parse_args()
    print(f"{provenance(SEED)}; medians of {chosen.runs} runs\n")
    print("| file | ε | method | k | false negatives | relative error | δ, η = 0.1 | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    results = {}
    for path in chosen.files:
        shop = Shop(path)
        for epsilon in chosen.epsilon:
            for method in chosen.methods:
                for top in chosen.top:
                    one = best_of(METHODS[method], shop, top, epsilon, chosen.runs)
                    results[shop.name, epsilon, method, top] = one
                    took = f"{one.seconds:.1f}" if one.seconds else ""
                    shown = f"{one.missed:.3f} | {one.relative_error:.3f} | {one.useful_delta:.4f} | {took}"
                    print(f"| {shop.name} | {epsilon:g} | {method} | {top} | {shown} |", flush=True)
    if chosen.plot:
        plot(chosen.plot, results)


if __name__ == "__main__":
    main()
