"""A first look at a table that is public anyway, counted exactly.

Privacy: unpaid look at the rows. What it finds goes into plans, which are public: so it is for public sample data only.
"""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from dpsyn.encoding import Codec, check_structure
from dpsyn.encoding.counter import MarginalCounter
from dpsyn.errors import SourceError
from dpsyn.plan import Exploration
from dpsyn.schema import Schema
from dpsyn.sources import open_source

MAX_EXPLORED_PAIR_CELLS = 1_000_000
"""Cells of a pair that is looked at; larger ones say little."""

MAX_CELLS_AT_ONCE = 30_000_000
"""Cells that are counted in one go: a quarter of a gigabyte."""


def explore_public_data(data: Any, schema: Schema | str | Path, *, query: str | None = None) -> Exploration:
    """1-way marginals and InDif of every pair of a public table, without noise.

    Open attributes are left out: what their values are is for a release to buy.
    """
    schema = Schema.coerce(schema)
    source = open_source(data, query=query)
    check_structure(schema, source.schema, source.label)
    codec = Codec(schema)
    codes = [_merge_into_bins(codec, codec.encode(batch)) for batch in source.batches(schema.columns)]
    if not codes:
        raise SourceError(f"{source.label} has no rows to look at")
    table = np.asfortranarray(np.concatenate(codes))
    counts = {name: np.bincount(table[:, place], minlength=codec.coarse_sizes[place]).astype(np.float64)
              for place, name in enumerate(codec.names)}  # fmt: skip
    pairs = [
        pair
        for pair in combinations(range(len(codec.names)), 2)
        if math.prod(codec.coarse_sizes[place] for place in pair) <= MAX_EXPLORED_PAIR_CELLS
    ]
    indifs = [
        value
        for some in _batch_pairs(pairs, codec.coarse_sizes)
        for value in _compute_indifs(table, some, codec.coarse_sizes)
    ]
    named = [(codec.names[one], codec.names[other]) for one, other in pairs]
    return Exploration.build(counts, named, np.array(indifs), rows=len(table), exact=True, schema=schema)


def _merge_into_bins(codec: Codec, fine: Any) -> Any:
    return np.stack([group.merge(fine[:, place]) for place, group in enumerate(codec.groupings)], axis=1)


def _batch_pairs(pairs: list[tuple[int, int]], bins: tuple[int, ...]) -> list[list[tuple[int, int]]]:
    """Pairs in their order, so many at a time as memory holds."""
    parts: list[list[tuple[int, int]]] = [[]]
    held = 0
    for pair in pairs:
        cells = bins[pair[0]] * bins[pair[1]]
        if parts[-1] and held + cells > MAX_CELLS_AT_ONCE:
            parts.append([])
            held = 0
        parts[-1].append(pair)
        held += cells
    return parts


def _compute_indifs(table: Any, pairs: list[tuple[int, int]], bins: tuple[int, ...]) -> list[float]:
    """‖M_ab − M_a·M_b/n‖₁ of each pair."""
    if not pairs:
        return []
    tally = MarginalCounter(pairs, bins)
    tally.add(table)
    return [
        float(np.abs(counts - np.multiply.outer(counts.sum(axis=1), counts.sum(axis=0)) / len(table)).sum())
        for counts in tally.tables()
    ]
