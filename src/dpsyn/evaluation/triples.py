"""Random sets of three attributes, and how far their marginals are apart."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from dpsyn.evaluation.counting import distances
from dpsyn.evaluation.results import Figure
from dpsyn.evaluation.tables import Comparison

TRIPLES = 300
"""3-way marginals that are compared: as many as the contest's paper looks at."""


def triple_distances(comparison: Comparison, rng: np.random.Generator) -> list[Figure]:
    """The distances of some random 3-way marginals over bins; none below three attributes."""
    attributes = len(comparison.domains)
    return distances(comparison.bins, random_triples(attributes, TRIPLES, rng)) if attributes >= 3 else []


def random_triples(attributes: int, number: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Different sets of three attributes, each equally likely, in order; all of them if there are not more.

    Where there are fewer than three attributes the one set is that of all of them.
    """
    ways = min(3, attributes)
    if math.comb(attributes, ways) <= number:
        return list(combinations(range(attributes), ways))
    found: set[tuple[int, ...]] = set()
    while len(found) < number:
        found.add(tuple(sorted(rng.choice(attributes, ways, replace=False).tolist())))
    return sorted(found)
