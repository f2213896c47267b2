"""Basis sets: sets of items whose subsets cover the frequent itemsets (PrivBasis, section 4.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from dpsyn.selection import kernels

MAX_BASIS_ITEMS = 12
"""The maximum number of items of a basis; one of 12 items has 4 096 bins (the paper's value)."""

MAX_TOTAL_BINS = 1 << 18
"""The maximum number of bins of all bases together; each bin gets its own noise."""

_ISOLATED_GROUP_ITEMS = 3
"""Items that are in no pair are measured in groups of three: 2^(ℓ−1)/ℓ², the variance, is least for ℓ = 3."""

_MIN_RELATIVE_GAIN = 1e-12
"""The minimum relative gain of a merge, so that rounding errors cannot cause endless merging."""

Basis = tuple[int, ...]


def build_basis_sets(
    items: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    *,
    max_items: int = MAX_BASIS_ITEMS,
    max_bins: int = MAX_TOTAL_BINS,
) -> list[Basis]:
    """Build sets of at most ``max_items`` items, such that each item and each pair is in at least one of them.

    The sets start as the maximal cliques of the graph of pairs, which contain every frequent itemset whose pairs are
    known to be frequent, and as groups of the items that are in no pair. Two sets are merged as long as that lowers the
    predicted variance of counts, averaged over items and pairs: fewer bases mean less noise in a bin, longer bases more
    bins to add up. If there are still too many bins, ``max_items`` is lowered.

    Privacy: post-processing of the released items and pairs; it costs nothing.
    """
    index_of = {item: index for index, item in enumerate(items)}
    edges = {(min(edge), max(edge)) for edge in ((index_of[one], index_of[two]) for one, two in pairs)}
    while True:
        bases = _merge_bases(_initial_bases(len(items), edges, max_items), len(items), edges, max_items)
        if max_items == 2 or sum(1 << len(basis) for basis in bases) <= max_bins:
            return [tuple(items[index] for index in basis) for basis in bases]
        max_items -= 1


def _initial_bases(item_count: int, edges: set[tuple[int, int]], max_items: int) -> list[Basis]:
    """Maximal cliques, split where they are too long, and groups of items that are in no pair."""
    neighbors: list[set[int]] = [set() for _ in range(item_count)]
    for one, two in edges:
        neighbors[one].add(two)
        neighbors[two].add(one)
    cliques = islice(_maximal_cliques(neighbors), len(edges) + 1)
    bases = list(dict.fromkeys(part for clique in cliques for part in _split_clique(clique, max_items)))
    if len(bases) > len(edges):  # a dense graph can have millions of cliques
        bases = sorted(edges)
    isolated = [item for item in range(item_count) if not neighbors[item]]
    size = min(_ISOLATED_GROUP_ITEMS, max_items)
    return [*bases, *(tuple(isolated[start : start + size]) for start in range(0, len(isolated), size))]


def _maximal_cliques(neighbors: Sequence[set[int]]) -> Iterator[Basis]:
    """All maximal cliques of at least two items (Bron and Kerbosch 1973, with the pivot of Tomita et al. 2006)."""
    waiting: list[tuple[Basis, set[int], set[int]]] = [
        ((), {item for item, near in enumerate(neighbors) if near}, set())
    ]
    while waiting:
        clique, candidates, excluded = waiting.pop()
        if not candidates and not excluded and clique:
            yield tuple(sorted(clique))
        if not candidates:
            continue
        pivot = max(sorted(candidates | excluded), key=lambda item: len(neighbors[item] & candidates))
        for item in sorted(candidates - neighbors[pivot]):
            waiting.append(((*clique, item), candidates & neighbors[item], excluded & neighbors[item]))
            candidates, excluded = candidates - {item}, excluded | {item}


def _split_clique(clique: Basis, max_items: int) -> list[Basis]:
    """A clique, or parts of it such that each pair of its items is in one of them."""
    if len(clique) <= max_items:
        return [clique]
    half = max(1, max_items // 2)
    blocks = [clique[start : start + half] for start in range(0, len(clique), half)]
    return [(*one, *two) for one, two in combinations(blocks, 2)]


def _merge_bases(bases: Sequence[Basis], item_count: int, edges: set[tuple[int, int]], max_items: int) -> list[Basis]:
    """Merge bases, and drop those that are contained in another one.

    Measured by one of w bases, B, an itemset X has a variance of w²·2^(|B|−|X|), up to a factor that is the same for
    all; by several bases together it has 1 / the sum of their precisions. So the sum of variances over items and pairs
    is w²·Σ 1/precision, and the two bases to merge are those that change Σ 1/precision the least.
    """
    members = np.zeros((len(bases), item_count), np.bool_)
    for row, basis in enumerate(bases):
        members[row, list(basis)] = True
    needed = np.eye(item_count, dtype=np.bool_)
    needed[tuple(np.array(sorted(edges), np.int64).reshape(-1, 2).T)] = True
    precision, changes = np.zeros((item_count, item_count)), np.full((len(bases), len(bases)), np.inf)
    touched, changed = np.arange(len(bases)), np.arange(item_count)
    while True:
        part = np.ix_(changed, changed)
        precision[part] = np.where(needed[part], _precisions(members[:, changed], members.sum(axis=1)), 0.0)
        kernels.merge_changes(members, touched, precision, max_items, changes)
        first, second = divmod(int(np.argmin(changes)), len(bases))
        current, left = (1 / precision[needed]).sum(), int(members.any(axis=1).sum())
        merged = current + changes[first, second]  # infinite if no two bases may be merged
        if left == 1 or merged * (left - 1) ** 2 >= current * left**2 * (1 - _MIN_RELATIVE_GAIN):
            return [tuple(np.flatnonzero(row).tolist()) for row in members if row.any()]
        union = members[first] | members[second]
        changed, touched = np.flatnonzero(union), np.flatnonzero((members & union).any(axis=1))
        members[~(members & ~union).any(axis=1)] = False
        members[first] = union


def _precisions(members: NDArray[np.bool_], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The precisions of items (on the diagonal) and of pairs: Σ 2^(|X|−|B|) over the bases B that hold X."""
    weighted = members * (2.0**-sizes)[:, None]
    precision: NDArray[np.float64] = 4 * (weighted.T @ members)
    np.fill_diagonal(precision, np.diag(precision) / 2)
    return precision
