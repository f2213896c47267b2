"""What a model knows without counts: combinations that cannot be, or only in part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn.errors import InternalError
from dpsyn.marginals import Factor
from dpsyn.synthesis.gibbs.layout import Cells, Places, by_size

NEVER = -60.0
"""The logarithm of the weight of what cannot be: sweeps leave it where they can, and are not stuck if they cannot."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Factors as cliques of a layout.

    Attributes:
        cliques: their attributes.
        logs: the logarithm of the share of each cell, clique after clique.
    """

    cliques: tuple[Places, ...]
    logs: Cells


def known_of(factors: Sequence[Factor], names: Sequence[str], sizes: Sequence[int]) -> Known:
    """The cliques and logarithms of factors."""
    places = {name: place for place, name in enumerate(names)}
    cliques, logs = [], [np.empty(0)]
    for factor in factors:
        own = [places[name] for name in factor.clique]
        if factor.shares.shape != tuple(sizes[place] for place in own):
            raise InternalError(f"the factor of {', '.join(factor.clique)} does not fit the sizes of its attributes")
        clique = by_size(own, sizes)
        table = np.transpose(factor.shares, [own.index(place) for place in clique])
        cliques.append(clique)
        logs.append(np.log(np.maximum(table, np.exp(NEVER))).ravel())
    return Known(tuple(cliques), np.concatenate(logs))
