"""The second step of most recipes: rare values merged, and what can be measured after that."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations

import numpy as np

from dpsyn.marginals import Clique
from dpsyn.private import PrivateTable
from dpsyn.synopsis import Release, Stage, Synopsis, single_estimate
from dpsyn.transforms import Recoding, compress

KEPT = 0.8
"""A recoding with so large a part of the codes that could be told apart is kept for the marginals measured under it."""


def compressed(
    table: PrivateTable,
    stages: tuple[Stage, ...],
    before: Synopsis | None,
    *,
    rare: float,
    rare_rows: float = 0.0,
) -> tuple[Recoding, frozenset[str]]:
    """The recoding with rare values merged, and the attributes whose merged value counts as empty.

    Values are rare if their noisy count is below ``rare`` standard deviations or below ``rare_rows``, and so many are
    merged that every pair is small enough to be measured beside others. A synopsis that is extended keeps the recoding
    that its marginals were measured under, unless that is much coarser than what can be told apart now.
    """
    recoding, most = table.recoding, math.isqrt(min(table.limits.cells, table.draws_left // 4))
    releases = (*(before.releases if before else ()), Release("", stages))
    result, zeroed = recoding, set()
    for name in recoding.names:
        single = single_estimate(releases, recoding, name)
        crowd = len(single.values) > most  # then fewer than so many values stay, ties included, and one for the others
        crowded = np.nextafter(np.sort(single.values)[-most], np.inf) if crowd else -np.inf
        merging = compress(single.values, max(rare * math.sqrt(single.variance), rare_rows, float(crowded)))
        result = result.merge(name, merging.grouping)
        if merging.zeroed:
            zeroed.add(name)
    if before and any(len(known.clique) > 1 for known in before.model.tables):
        old = before.model.recoding
        if sum(old.sizes) >= KEPT * sum(result.sizes):
            return old, frozenset()
    return result, frozenset(zeroed)


def measurable_pairs(table: PrivateTable) -> list[Clique]:
    """All pairs that are small enough to be measured at all."""
    pairs: list[Clique] = list(combinations(table.recoding.names, 2))
    return [pair for pair, cells in zip(pairs, cells_of(table, pairs), strict=True) if cells <= table.limits.cells]


def cells_of(table: PrivateTable, cliques: Iterable[Clique]) -> list[int]:
    """How many cells each marginal has."""
    sizes = dict(zip(table.recoding.names, table.recoding.sizes, strict=True))
    return [math.prod([sizes[name] for name in clique]) for clique in cliques]
