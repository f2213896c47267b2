"""How strongly the attributes of a table hang together: two at a time, and three beyond what pairs tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import contingency_table

CodeColumn = NDArray[np.int64]
CountTable = NDArray[np.float64]

GROUPS_PER_ATTRIBUTE = 5
"""Values of an attribute are merged into so many groups of about equal size, to keep chance small."""

MAX_ATTRIBUTE_SETS = 200
"""Pairs and triples that are looked at."""

_IPF_ROUNDS = 30


@dataclass(frozen=True, slots=True)
class InteractionStrength:
    """Mean total variation distances, over pairs and triples of attributes drawn at random.

    Attributes:
        rows: how many rows they were measured on.
        pairs: between the table of two attributes and the product of the two.
        strongest_pair: the largest of these.
        triples: between the table of three and the most even one with the same tables of two.
        strongest_triple: the largest of these.
        chance_pairs: what ``pairs`` would be on so many rows if all attributes were independent.
        chance_triples: what ``triples`` would be if pairs told everything.
    """

    rows: int
    pairs: float
    strongest_pair: float
    triples: float
    strongest_triple: float
    chance_pairs: float
    chance_triples: float


def measure_interactions(columns: Sequence[CodeColumn], seed: int) -> InteractionStrength:
    """The strength of interactions in rows given as columns of codes."""
    random = np.random.default_rng([seed, 2])
    merged = [groups for groups in (_merge_codes(column) for column in columns) if groups.max(initial=0) > 0]
    rows = len(columns[0]) if columns else 0
    pairs = [
        _distance_and_chance(table, _independent_table(table), random) for table in _count_tables(merged, 2, random)
    ]
    triples = [_distance_and_chance(table, _fit_pairs(table), random) for table in _count_tables(merged, 3, random)]
    found = [_mean_and_max(distances) for distances in (pairs, triples)]
    chance = [float(np.mean([c for _, c in distances])) if distances else 0.0 for distances in (pairs, triples)]
    return InteractionStrength(rows, *found[0], *found[1], *chance)


def _mean_and_max(distances: Sequence[tuple[float, float]]) -> tuple[float, float]:
    told = [distance for distance, _ in distances]
    return (float(np.mean(told)), max(told)) if told else (0.0, 0.0)


def _merge_codes(codes: CodeColumn) -> CodeColumn:
    """Codes merged into groups of neighbors of about equal size."""
    if not len(codes):
        return codes
    ranks = np.cumsum(np.bincount(codes)) - np.bincount(codes) / 2
    groups = np.minimum(ranks * GROUPS_PER_ATTRIBUTE / len(codes), GROUPS_PER_ATTRIBUTE - 1).astype(np.int64)
    return np.unique(groups[codes], return_inverse=True)[1].astype(np.int64)


def _count_tables(columns: Sequence[CodeColumn], ways: int, random: np.random.Generator) -> list[CountTable]:
    """The shares of rows in each cell of some sets of columns."""
    if len(columns) <= 60:
        sets = list(combinations(range(len(columns)), ways))
    else:
        sets = [tuple(sorted(random.choice(len(columns), ways, replace=False))) for _ in range(MAX_ATTRIBUTE_SETS)]
    if len(sets) > MAX_ATTRIBUTE_SETS:
        sets = [sets[place] for place in random.choice(len(sets), MAX_ATTRIBUTE_SETS, replace=False)]
    return [_count_table([columns[place] for place in chosen]) for chosen in sets]


def _count_table(columns: Sequence[CodeColumn]) -> CountTable:
    shape = [int(column.max()) + 1 for column in columns]
    return contingency_table(columns, shape).astype(np.float64)


def _distance_and_chance(counts: CountTable, simpler: CountTable, random: np.random.Generator) -> tuple[float, float]:
    """How far a table is from a simpler one, and how far a sample of the simpler one would be."""
    total = counts.sum()
    drawn = random.multinomial(int(total), (simpler / simpler.sum()).ravel())
    sample: CountTable = drawn.reshape(counts.shape).astype(np.float64)
    again = _independent_table(sample) if counts.ndim == 2 else _fit_pairs(sample)
    return tuple(float(np.abs(one - other).sum() / (2 * total)) for one, other in ((counts, simpler), (sample, again)))  # type: ignore[return-value]


def _independent_table(counts: CountTable) -> CountTable:
    product: CountTable = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(counts.sum(), 1.0)
    return product


def _fit_pairs(counts: CountTable) -> CountTable:
    """The most even table with the same tables of two, by iterative proportional fitting (Deming and Stephan 1940)."""
    table = np.full(counts.shape, counts.sum() / counts.size)
    for _ in range(_IPF_ROUNDS):
        for axis in range(3):
            have, want = table.sum(axis=axis, keepdims=True), counts.sum(axis=axis, keepdims=True)
            table = table * np.divide(want, have, out=np.zeros_like(have), where=have > 0)
    return table
