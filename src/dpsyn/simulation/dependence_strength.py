"""How strongly the attributes of a table interact: in pairs, and in triples beyond what the pairs imply."""

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
"""Groups of about equal size that the values of an attribute are merged into, to limit sampling error."""

MAX_ATTRIBUTE_SETS = 200
"""Pairs, and triples, that are measured."""

_IPF_ROUNDS = 30


@dataclass(frozen=True, slots=True)
class InteractionStrength:
    """Mean total variation distances over randomly chosen pairs and triples of attributes.

    Attributes:
        rows: the number of rows they were measured on.
        pairs: distance between the two-way marginal of a pair and the product of its one-way marginals.
        strongest_pair: the largest of these.
        triples: distance between the three-way marginal of a triple and the maximum-entropy table with the same two-way
            marginals.
        strongest_triple: the largest of these.
        chance_pairs: the value of ``pairs`` on that many rows if all attributes were independent.
        chance_triples: the value of ``triples`` on that many rows if there were no three-way interactions.
    """

    rows: int
    pairs: float
    strongest_pair: float
    triples: float
    strongest_triple: float
    chance_pairs: float
    chance_triples: float


def measure_interactions(columns: Sequence[CodeColumn], seed: int) -> InteractionStrength:
    """Measure the strength of interactions in rows, given as columns of codes."""
    random = np.random.default_rng([seed, 2])
    merged = [groups for groups in (_merge_codes(column) for column in columns) if groups.max(initial=0) > 0]
    rows = len(columns[0]) if columns else 0
    pairs = [
        _distance_and_chance(table, _independent_table(table), random) for table in _count_tables(merged, 2, random)
    ]
    triples = [_distance_and_chance(table, _fit_pairs(table), random) for table in _count_tables(merged, 3, random)]
    strengths = [_mean_and_max(distances) for distances in (pairs, triples)]
    chance = [float(np.mean([c for _, c in distances])) if distances else 0.0 for distances in (pairs, triples)]
    return InteractionStrength(rows, *strengths[0], *strengths[1], *chance)


def _mean_and_max(distances: Sequence[tuple[float, float]]) -> tuple[float, float]:
    values = [distance for distance, _ in distances]
    return (float(np.mean(values)), max(values)) if values else (0.0, 0.0)


def _merge_codes(codes: CodeColumn) -> CodeColumn:
    """Merge codes into groups of adjacent codes with about equal numbers of rows."""
    if not len(codes):
        return codes
    ranks = np.cumsum(np.bincount(codes)) - np.bincount(codes) / 2
    groups = np.minimum(ranks * GROUPS_PER_ATTRIBUTE / len(codes), GROUPS_PER_ATTRIBUTE - 1).astype(np.int64)
    return np.unique(groups[codes], return_inverse=True)[1].astype(np.int64)


def _count_tables(columns: Sequence[CodeColumn], ways: int, random: np.random.Generator) -> list[CountTable]:
    """The marginals of randomly chosen sets of columns."""
    if len(columns) <= 60:
        sets = list(combinations(range(len(columns)), ways))
    else:
        sets = [tuple(sorted(random.choice(len(columns), ways, replace=False))) for _ in range(MAX_ATTRIBUTE_SETS)]
    if len(sets) > MAX_ATTRIBUTE_SETS:
        sets = [sets[index] for index in random.choice(len(sets), MAX_ATTRIBUTE_SETS, replace=False)]
    return [_count_table([columns[axis] for axis in chosen]) for chosen in sets]


def _count_table(columns: Sequence[CodeColumn]) -> CountTable:
    shape = [int(column.max()) + 1 for column in columns]
    return contingency_table(columns, shape).astype(np.float64)


def _distance_and_chance(counts: CountTable, simpler: CountTable, random: np.random.Generator) -> tuple[float, float]:
    """The distance of a table from a simpler one, and the distance of a sample of the simpler one."""
    total = counts.sum()
    sampled_counts = random.multinomial(int(total), (simpler / simpler.sum()).ravel())
    sample: CountTable = sampled_counts.reshape(counts.shape).astype(np.float64)
    refit = _independent_table(sample) if counts.ndim == 2 else _fit_pairs(sample)
    return float(np.abs(counts - simpler).sum() / (2 * total)), float(np.abs(sample - refit).sum() / (2 * total))


def _independent_table(counts: CountTable) -> CountTable:
    product: CountTable = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(counts.sum(), 1.0)
    return product


def _fit_pairs(counts: CountTable) -> CountTable:
    """The maximum-entropy table with the same two-way marginals.

    It is computed by iterative proportional fitting (Deming and Stephan 1940).
    """
    table = np.full(counts.shape, counts.sum() / counts.size)
    for _ in range(_IPF_ROUNDS):
        for axis in range(3):
            current, target = table.sum(axis=axis, keepdims=True), counts.sum(axis=axis, keepdims=True)
            table = table * np.divide(target, current, out=np.zeros_like(current), where=current > 0)
    return table
