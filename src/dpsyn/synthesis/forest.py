"""The pairs that tell most about each other without a cycle: a start that is close, and exact for a tree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.marginals import Clique, Estimate
from dpsyn.synthesis.append import append, peel
from dpsyn.synthesis.start import Records


def forest_start(tables: Sequence[Estimate], names: Sequence[str], rows: int, rng: np.random.Generator) -> Records:
    """Records drawn from the maximum spanning forest of what tables tell about pairs, to rounding."""
    columns: dict[str, NDArray[np.int32]] = {}
    for appendix in peel(spanning_forest(tables))[1]:
        columns[appendix.name] = append(columns, appendix, rows, rng)
    records = np.empty((rows, len(names)), np.int32, order="F")
    for place, name in enumerate(names):
        records[:, place] = columns[name]
    return records


def spanning_forest(tables: Sequence[Estimate]) -> list[Estimate]:
    """Pairs of greatest mutual information that close no cycle, and single attributes that are in none (Chow and Liu).

    Pairs are projections of the tables; of several tables that hold a pair the first one counts.
    """
    pairs: dict[frozenset[str], Estimate] = {}
    for table in tables:
        for pair in combinations(table.clique, 2):
            pairs.setdefault(frozenset(pair), _projected(table, pair))
    tree = {name: name for table in tables for name in table.clique}
    kept: list[Estimate] = []
    for pair_table in sorted(pairs.values(), key=lambda table: -mutual_information(table.values)):
        one, other = (_root(tree, name) for name in pair_table.clique)
        if one != other:
            tree[one] = other
            kept.append(pair_table)
    linked = {name for table in kept for name in table.clique}
    alone = {name: table for table in tables for name in table.clique if name not in linked}
    return [*kept, *(_projected(table, (name,)) for name, table in alone.items())]


def mutual_information(counts: NDArray[np.float64]) -> float:
    """How much the two attributes of a non-negative table tell about each other, in nats."""
    total = counts.sum()
    if total <= 0:
        return 0.0
    shares = counts / total
    product = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    some = shares > 0
    return float((shares[some] * np.log(shares[some] / product[some])).sum())


def _projected(table: Estimate, clique: Clique) -> Estimate:
    folded = table.values.size / np.prod([table.values.shape[table.clique.index(name)] for name in clique])
    return Estimate(clique, table.onto(clique), float(table.variance * folded))


def _root(tree: dict[str, str], name: str) -> str:
    while tree[name] != name:
        tree[name] = tree[tree[name]]
        name = tree[name]
    return name
