"""How many of the most frequent itemsets are found, and how wrong are their counts?

    python -m bench.itemsets FILE... [--top 50 100 200 400] [--epsilon 0.1 0.5 1] [--runs 10] [--plot FILE]

Each FILE has a basket on each line (``.dat``, also ``.gz``); the items that occur in it are taken for public.
Printed are medians over the runs of the false-negative rate, the part of the true top k that is not listed (itemsets as
frequent as the k-th are interchangeable), and of the median relative error of the listed counts; and the seconds of one
run, reading included. Beside ``privbasis``, as ``dpsyn.frequent_itemsets`` releases it, stand

- ``bought``: the same where the items are bought, δ = 1e-9, 20 items of a basket being looked at;
- ``truncated``: the truncated-frequency method (Bhaskar et al., KDD 2010) with the best longest itemset m = 1, 2, 3;
- ``plain``: Laplace noise on the counts of all items of baskets cut to their best length, then on all pairs of the
  k items that seem most frequent.

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
LOOKED_AT = 20
MINED, FREQUENT = 2_000, 600
"""Itemsets that are mined, and the items they are made of; rarer ones count as equally rare."""

Itemset = frozenset[str]
Listed = list[tuple[Itemset, float]]


class Shop:
    """A file of baskets, mined."""

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
        self.ranked: Listed = list(self._mined(MINED))

    def support(self, itemset: Itemset) -> int:
        """How many baskets hold an itemset."""
        return len(set.intersection(*(set(self._holding[item]) for item in itemset)))

    def _mined(self, number: int) -> Iterator[tuple[Itemset, float]]:
        """The most frequent itemsets, best first."""
        frequent = sorted(self.items, key=lambda item: -len(self._holding[item]))[:FREQUENT]
        held = np.zeros((len(frequent), len(self.baskets)), np.bool_)
        for place, item in enumerate(frequent):
            held[place, self._holding[item]] = True
        rows = np.packbits(held, axis=1)
        waiting: list[tuple[int, int, tuple[int, ...]]]
        waiting = [(-len(self._holding[item]), 1, (place,)) for place, item in enumerate(frequent)]
        for taken in range(number):
            support, length, places = heapq.heappop(waiting)
            yield frozenset(frequent[place] for place in places), -support
            later = rows[places[-1] + 1 :] & np.bitwise_and.reduce(rows[list(places)])
            counts = np.bitwise_count(later).sum(axis=1, dtype=np.int64).tolist()
            grown = enumerate(counts, start=places[-1] + 1)
            waiting += [(-count, length + 1, (*places, place)) for place, count in grown if count]
            waiting = heapq.nsmallest(number - taken, waiting)


@dataclass(frozen=True, slots=True)
class Figures:
    """The false-negative rate, the median relative error, and the seconds of a run."""

    missed: float
    wrong: float
    seconds: float = 0.0


def figures(shop: Shop, top: int, listed: Sequence[tuple[Itemset, float]], seconds: float = 0.0) -> Figures:
    least = shop.ranked[top - 1][1]
    true = [(shop.support(itemset), count) for itemset, count in listed]
    found = sum(support >= least for support, _ in true)
    errors = [abs(count - support) / support for support, count in true if support]
    return Figures(1 - found / top, median(errors) if errors else math.nan, seconds)


# ── the methods ──────────────────────────────────────────────────────────────────────────────────────────────


def privbasis(shop: Shop, top: int, epsilon: float, rng: np.random.Generator, *, bought: bool = False) -> Figures:
    start = time.perf_counter()
    items, options = (None, {"delta": DELTA, "max_basket": LOOKED_AT}) if bought else (shop.items, {})
    found = dpsyn.frequent_itemsets(shop.path, items, epsilon, top=top, **options)  # type: ignore[arg-type]
    seconds = time.perf_counter() - start
    return figures(shop, top, [(frozenset(itemset.items), itemset.count) for itemset in found.itemsets], seconds)


def truncated(shop: Shop, top: int, epsilon: float, rng: np.random.Generator, *, longest: int) -> Figures:
    """k itemsets of at most m items, drawn with weights exp(ε·f̂/4k), f̂ = max(f, f_k − γ); then Laplace(2k/ε)."""
    short = [(itemset, count) for itemset, count in shop.ranked if len(itemset) <= longest]
    whole = sum(math.comb(len(shop.items), size) for size in range(1, longest + 1))
    gamma = 4 * top / epsilon * (math.log(top / 0.9) + math.log(whole))
    level = max(short[min(top, len(short)) - 1][1] - gamma, 0.0)
    above = [(itemset, count) for itemset, count in short if count > level]
    rate = epsilon / (4 * top)
    keys = rate * np.array([count for _, count in above]) + rng.gumbel(size=len(above))
    others = whole - len(above)
    rare = rate * level - np.log(np.cumsum(rng.exponential(size=top)) / max(others, 1)) if others else np.empty(0)
    last = np.sort(np.append(keys, rare))[::-1][top - 1]  # the largest Gumbel variables of all that are rare
    chosen = [above[place] for place in np.flatnonzero(keys >= last)]
    return figures(shop, top, [(itemset, count + rng.laplace(0, 2 * top / epsilon)) for itemset, count in chosen])


def plain(shop: Shop, top: int, epsilon: float, rng: np.random.Generator, *, longest: int) -> Figures:
    """Noise for baskets of at most so many items: Laplace(2L/ε) on items, Laplace(L(L−1)/ε) on pairs."""
    place_of = {item: place for place, item in enumerate(shop.items)}
    cut = [b if len(b) <= longest else rng.choice(b, longest, replace=False).tolist() for b in shop.baskets]
    counts = np.bincount([place_of[item] for basket in cut for item in basket], minlength=len(shop.items))
    noisy = counts + rng.laplace(0, 2 * longest / epsilon, len(counts))
    best = np.argsort(-noisy)[:top]
    found: Listed = [(frozenset([shop.items[place]]), float(noisy[place])) for place in best]
    among = {shop.items[place] for place in best}
    pairs: dict[tuple[str, ...], int] = dict.fromkeys(combinations(sorted(among), 2), 0)
    for basket in cut:
        for pair in combinations(sorted(among.intersection(basket)), 2):
            pairs[pair] += 1
    scale = max(longest * (longest - 1), 1) / epsilon
    noise = rng.laplace(0, scale, len(pairs))
    found += [(frozenset(pair), count + extra) for (pair, count), extra in zip(pairs.items(), noise, strict=True)]
    return figures(shop, top, heapq.nlargest(top, found, key=lambda pair: pair[1]))


Method = Callable[[Shop, int, float, np.random.Generator], Figures]


def repeated(method: Method, shop: Shop, top: int, epsilon: float, runs: int) -> Figures:
    drawn = [method(shop, top, epsilon, np.random.default_rng([SEED, run])) for run in range(runs)]
    return Figures(*(median(getattr(one, name) for one in drawn) for name in ("missed", "wrong", "seconds")))


def best_of(variants: Sequence[Method], shop: Shop, top: int, epsilon: float, runs: int) -> Figures:
    return min((repeated(variant, shop, top, epsilon, runs) for variant in variants), key=lambda found: found.missed)


def _with(method: Callable[..., Figures], **options: int) -> Method:
    return lambda shop, top, epsilon, rng: method(shop, top, epsilon, rng, **options)


METHODS: dict[str, Sequence[Method]] = {
    "privbasis": [privbasis],
    "bought": [_with(privbasis, bought=True)],
    "truncated": [_with(truncated, longest=m) for m in (1, 2, 3)],
    "plain": [_with(plain, longest=length) for length in (3, 10, 30)],
}


# ── printing and drawing ─────────────────────────────────────────────────────────────────────────────────────


def draw(path: Path, found: dict[tuple[str, float, str, int], Figures]) -> None:
    """A panel for each file and ε: false negatives by k, a line for each method."""
    import matplotlib.pyplot as plt

    plt.rc("svg", fonttype="none")  # texts as texts, not as outlines
    names, epsilons = (list(dict.fromkeys(key[place] for key in found)) for place in (0, 1))
    figure, panels = plt.subplots(len(epsilons), len(names), sharex=True, sharey=True, squeeze=False, figsize=(9, 7))
    for row, epsilon in enumerate(epsilons):
        for column, name in enumerate(names):
            panel = panels[row, column]
            for method in METHODS:
                tops = sorted(key[3] for key in found if key[:3] == (name, epsilon, method))
                missed = [found[name, epsilon, method, top].missed for top in tops]  # type: ignore[index]
                panel.plot(tops, missed, marker="o", markersize=3, label=method)
            panel.set(title=f"{name}, ε = {epsilon:g}", ylim=(-0.03, 1.03))
            panel.grid(alpha=0.3)
    panels[0, 0].legend(fontsize=8)
    figure.supxlabel("k, the itemsets asked for")
    figure.supylabel("part of them that is missed (median)")
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
    print("| file | ε | method | k | false negatives | relative error | seconds |\n|---|---|---|---|---|---|---|")
    found = {}
    for path in chosen.files:
        shop = Shop(path)
        for epsilon in chosen.epsilon:
            for method in chosen.methods:
                for top in chosen.top:
                    one = best_of(METHODS[method], shop, top, epsilon, chosen.runs)
                    found[shop.name, epsilon, method, top] = one
                    took = f"{one.seconds:.1f}" if one.seconds else ""
                    shown = f"{one.missed:.3f} | {one.wrong:.3f} | {took}"
                    print(f"| {shop.name} | {epsilon:g} | {method} | {top} | {shown} |", flush=True)
    if chosen.plot:
        draw(chosen.plot, found)


if __name__ == "__main__":
    main()
