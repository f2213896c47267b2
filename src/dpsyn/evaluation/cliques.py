"""Random sets of attributes."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np


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
