"""How the values of one attribute are spread, by itself: skew, bumps, spikes and heaps on round numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsyn.schema import Attribute, Datetime, Ordinal, Ranged

Weights = NDArray[np.float64]

WIDE = 2_000
"""Ranges of more steps are skewed as amounts of money are: their logarithm has the bumps."""

_HEAPS = (1_000, 500, 100, 50, 10, 5)
"""Numbers that people round to."""


def shape_of(attribute: Attribute, random: np.random.Generator) -> Weights:
    """Positive weights of the cells of an attribute that are not missing; they add up to one."""
    if isinstance(attribute, Ranged):
        weights = _ranged(attribute, random)
    elif isinstance(attribute, Ordinal):
        weights = _bumps(np.linspace(0, 1, attribute.proper_cells), random)
    else:
        weights = _ranked(attribute.proper_cells, random)
    shares: Weights = weights / weights.sum()
    return shares


def positions(attribute: Attribute, weights: Weights, random: np.random.Generator) -> Weights:
    """Where each value lies between −1 and 1, most of them spread evenly: its rank if values are ordered."""
    if isinstance(attribute, Ranged | Ordinal):
        ends = np.cumsum(weights)
        ranks: Weights = ends + np.concatenate([[0.0], ends[:-1]]) - 1
        return ranks
    return random.uniform(-1, 1, len(weights))


def _ranked(size: int, random: np.random.Generator) -> Weights:
    """Few frequent categories and many rare ones, by Zipf's law with a bend, in random order."""
    ranks = np.arange(size) + random.uniform(0.5, 4)
    weights: Weights = random.permutation(ranks ** -random.uniform(0.8, 2.2))
    return weights


def _bumps(places: Weights, random: np.random.Generator) -> Weights:
    """One to three bumps on a low floor, along places between 0 and 1."""
    weights = np.full(len(places), 0.05)
    for _ in range(random.integers(1, 4)):
        centre, width = random.beta(1.2, 2.0), random.uniform(0.05, 0.25)
        weights += random.uniform(0.3, 1) * np.exp(-0.5 * ((places - centre) / width) ** 2)
    return weights


def _ranged(attribute: Ranged, random: np.random.Generator) -> Weights:
    edges = attribute.grid().edges
    first, widths = edges[:-1], np.diff(edges)
    middle = first + (widths - 1) / 2
    if attribute.steps > WIDE and not isinstance(attribute, Datetime):
        far = np.log1p(np.abs(attribute.origin + middle))
        weights = _bumps(far / max(far.max(), 1e-9), random) * widths / (1 + np.abs(attribute.origin + middle))
    else:
        weights = _bumps(middle / max(attribute.steps - 1, 1), random) * widths
    if isinstance(attribute, Datetime):
        weights = weights * (1 + 0.3 * np.sin(middle / max(attribute.steps, 1) * random.uniform(6, 40)))
    else:
        weights = weights * _heaps(attribute.origin + first, widths, random)
    return _with_spikes(attribute, weights, random)


def _heaps(values: NDArray[np.int64], widths: NDArray[np.int64], random: np.random.Generator) -> Weights:
    """How much more often round numbers are given than their neighbours, where a number has a cell of its own."""
    factors = np.ones(len(values))
    liking = random.uniform(0.1, 0.8)
    for power, step in enumerate(reversed(_HEAPS)):
        factors = np.where((widths == 1) & (values % step == 0), 1 + liking * (power + 1), factors)
    return factors


def _with_spikes(attribute: Ranged, weights: Weights, random: np.random.Generator) -> Weights:
    """Declared spikes and zero hold a share of all rows, however wide the range is."""
    steps = [attribute.step_of(spike) for spike in attribute.spikes]
    if not isinstance(attribute, Datetime) and 0 <= -attribute.origin < attribute.steps:
        steps.append(-attribute.origin)
    if not steps:
        return weights
    cells = attribute.grid().cell_of(np.array(steps, np.int64))
    share = random.uniform(0.1, 0.45)
    spread: Weights = weights / weights.sum() * (1 - share)
    np.add.at(spread, cells, share * random.dirichlet(np.ones(len(cells))))
    return spread
