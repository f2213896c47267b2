"""A first look at a table that is public anyway, counted exactly.

Privacy: unpaid look at the rows. What it finds goes into plans, which are public: so it is for public sample data only.
"""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from dpsyn.errors import SourceError
from dpsyn.plan import Exploration
from dpsyn.records import Codec, check_structure
from dpsyn.records.tally import Tally
from dpsyn.schema import Schema
from dpsyn.sources import open_source

MOST_CELLS = 1_000_000
"""Cells of a pair that is looked at; larger ones say little."""

AT_A_TIME = 30_000_000
"""Cells that are counted in one go: a quarter of a gigabyte."""


def explore_public(data: Any, schema: Schema | str | Path, *, query: str | None = None) -> Exploration:
    """1-way marginals and InDif of every pair of a public table, without noise.

    Open attributes are left out: what their values are is for a release to buy.
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    source = open_source(data, query=query)
    check_structure(schema, source.schema, source.where)
    codec = Codec(schema)
    codes = [_binned(codec, codec.encode(batch)) for batch in source.batches(schema.columns)]
    if not codes:
        raise SourceError(f"{source.where} has no rows to look at")
    table = np.asfortranarray(np.concatenate(codes))
    counts = {name: np.bincount(table[:, place], minlength=codec.bins[place]).astype(np.float64)
              for place, name in enumerate(codec.names)}  # fmt: skip
    pairs = [
        pair
        for pair in combinations(range(len(codec.names)), 2)
        if math.prod(codec.bins[place] for place in pair) <= MOST_CELLS
    ]
    indifs = [value for some in _in_parts(pairs, codec.bins) for value in _indifs(table, some, codec.bins)]
    named = [(codec.names[one], codec.names[other]) for one, other in pairs]
    return Exploration.of(counts, named, np.array(indifs), rows=len(table), exact=True, schema=schema)


def _binned(codec: Codec, fine: Any) -> Any:
    return np.stack([group.merge(fine[:, place]) for place, group in enumerate(codec.groupings)], axis=1)


def _in_parts(pairs: list[tuple[int, int]], bins: tuple[int, ...]) -> list[list[tuple[int, int]]]:
    """Pairs in their order, so many at a time as memory holds."""
    parts: list[list[tuple[int, int]]] = [[]]
    held = 0
    for pair in pairs:
        cells = bins[pair[0]] * bins[pair[1]]
        if parts[-1] and held + cells > AT_A_TIME:
            parts.append([])
            held = 0
        parts[-1].append(pair)
        held += cells
    return parts


def _indifs(table: Any, pairs: list[tuple[int, int]], bins: tuple[int, ...]) -> list[float]:
    """‖M_ab − M_a·M_b/n‖₁ of each pair."""
    if not pairs:
        return []
    tally = Tally(pairs, bins)
    tally.add(table)
    return [
        float(np.abs(counts - np.multiply.outer(counts.sum(axis=1), counts.sum(axis=0)) / len(table)).sum())
        for counts in tally.tables()
    ]
