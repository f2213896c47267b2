"""Exploration of public data: exact marginals and dependences of a table that is public anyway.

Privacy: reads the rows without privacy protection. The result goes into plans, which are public, so this is for public
data only.
"""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from dpsyn.encoding import Codec, Recoding, check_structure
from dpsyn.encoding.counter import MarginalCounter
from dpsyn.errors import SourceError
from dpsyn.marginals import Clique, Estimate
from dpsyn.plan import Exploration, ExploredTable, select_forest
from dpsyn.schema import Schema
from dpsyn.sources import open_declared

MAX_EXPLORED_PAIR_CELLS = 1_000_000
"""Cells of the two-way marginal of a pair; larger ones are skipped, because they carry little information."""

MAX_EXPLORED_TABLES = 20
"""Tables of strong pairs, as in recipe ``explore``."""

MAX_CELLS_AT_ONCE = 30_000_000
"""Cells that are counted in one pass: a quarter of a gigabyte."""


def explore_public_data(data: Any, schema: Schema | str | Path, *, query: str | None = None) -> Exploration:
    """One-way marginals, InDif of every pair and tables of the strongest pairs of a public table, without noise.

    Open attributes are left out, because only a release discovers their values.

    Privacy: reads the rows without privacy protection; use it on public data only.
    """
    schema = Schema.coerce(schema)
    source = open_declared(data, schema, query=query)
    check_structure(schema, source.schema, source.label)
    codec = Codec(schema)
    codes = [_merge_into_bins(codec, codec.encode(batch)) for batch in source.batches(schema.columns)]
    if not codes:
        raise SourceError(f"{source.label} has no rows; give a table with rows")
    table = np.asfortranarray(np.concatenate(codes))
    counts = {name: np.bincount(table[:, axis], minlength=codec.coarse_sizes[axis]).astype(np.float64)
              for axis, name in enumerate(codec.names)}  # fmt: skip
    pairs = [
        pair
        for pair in combinations(range(len(codec.names)), 2)
        if math.prod(codec.coarse_sizes[axis] for axis in pair) <= MAX_EXPLORED_PAIR_CELLS
    ]
    indifs = [
        value
        for batch in _batch_pairs(pairs, codec.coarse_sizes)
        for value in _compute_indifs(table, batch, codec.coarse_sizes)
    ]
    named = [(codec.names[one], codec.names[other]) for one, other in pairs]
    strongest = [named[index] for index in np.argsort(-np.array(indifs), kind="stable")]
    return Exploration.build(
        counts,
        named,
        np.array(indifs),
        rows=len(table),
        exact=True,
        schema=schema,
        one_way={name: _show_counts(codec, (name,), values) for name, values in counts.items()},
        tables=_count_tables(codec, table, select_forest(strongest, MAX_EXPLORED_TABLES)),
    )


def _show_counts(codec: Codec, clique: Clique, counts: Any) -> ExploredTable:
    return ExploredTable.build(Estimate(clique, counts, 0.0), Recoding.coarse(codec), codec.attributes)


def _count_tables(codec: Codec, table: Any, cliques: list[Clique]) -> list[ExploredTable]:
    if not cliques:
        return []
    axes = [tuple(codec.names.index(name) for name in clique) for clique in cliques]
    counter = MarginalCounter(axes, codec.coarse_sizes)
    counter.add(table)
    return [
        _show_counts(codec, clique, counts.astype(np.float64))
        for clique, counts in zip(cliques, counter.tables(), strict=True)
    ]


def _merge_into_bins(codec: Codec, fine: Any) -> Any:
    return np.stack([group.merge(fine[:, axis]) for axis, group in enumerate(codec.groupings)], axis=1)


def _batch_pairs(pairs: list[tuple[int, int]], bins: tuple[int, ...]) -> list[list[tuple[int, int]]]:
    """The pairs, in order, in batches whose tables fit into memory."""
    batches: list[list[tuple[int, int]]] = [[]]
    batch_cells = 0
    for pair in pairs:
        cells = bins[pair[0]] * bins[pair[1]]
        if batches[-1] and batch_cells + cells > MAX_CELLS_AT_ONCE:
            batches.append([])
            batch_cells = 0
        batches[-1].append(pair)
        batch_cells += cells
    return batches


def _compute_indifs(table: Any, pairs: list[tuple[int, int]], bins: tuple[int, ...]) -> list[float]:
    """InDif, ‖M_ab − M_a·M_b/n‖₁, of each pair."""
    if not pairs:
        return []
    counter = MarginalCounter(pairs, bins)
    counter.add(table)
    return [
        float(np.abs(counts - np.multiply.outer(counts.sum(axis=1), counts.sum(axis=0)) / len(table)).sum())
        for counts in counter.tables()
    ]
