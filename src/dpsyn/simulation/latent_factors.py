"""A random process of a chosen strength of dependence: common factors, and values at the quantiles of latent normals.

Each attribute has a latent normal variable that depends on a few common factors. Its value is the quantile of a random
shape at that variable (a Gaussian copula, Nelsen 2006). One number says how strongly the attributes of a table depend
on each other: the mean *communality*, the part of the variance of a latent variable that the common factors explain.

Attributes differ: their communalities are spread around the mean, and each factor concerns some attributes more than
others. So most pairs depend weakly and a few strongly, as in the tables that people have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.schema import Attribute, Datetime, Ordinal, Ranged, Schema, Time
from dpsyn.simulation.bayesian_network import CodeColumn, ValueWeights, random_shape

FACTOR_WEIGHTS = (1.0, 0.5, 0.25)
"""The importance of the common factors: the first one concerns nearly all attributes, such as size, age or severity."""

MAX_COMMUNALITY = 0.97
"""No attribute is a function of the factors alone."""

ZIPF_EXPONENTS, ZIPF_OFFSETS = (1.0, 2.5), (0.5, 4.0)
"""The k-th most frequent value of a list has a share in proportion to (k + offset)^−exponent."""

BULK_WIDTHS = (0.05, 0.2)
"""The standard deviation of a number, as a part of its public range, is between these."""

ROUNDED_PROBABILITY, ROUNDED_VALUES = 0.3, (10, 100)
"""How many numbers are rounded, and how many values these have then where most rows are."""

SPIKE_PROBABILITY = 0.2
"""How many numbers have a spike: a value, such as 0, that a large part of the rows has."""


@dataclass(frozen=True, slots=True, eq=False)
class LatentFactorProcess:
    """Attributes as quantiles of latent variables.

    Attributes:
        loadings: attributes × factors; the squares of a row add up to the communality of the attribute.
        ends: for each attribute, the latent values at which its cells end, but for the last one.
    """

    loadings: NDArray[np.float64]
    ends: tuple[ValueWeights, ...]

    def sample(self, rows: int, random: np.random.Generator) -> list[CodeColumn]:
        """Sample the codes of rows, one column for each attribute."""
        factors = random.standard_normal((rows, self.loadings.shape[1]))
        columns = []
        for loadings, ends in zip(self.loadings, self.ends, strict=True):
            own = np.sqrt(1 - float(loadings @ loadings))
            latent = factors @ loadings + own * random.standard_normal(rows)
            columns.append(np.searchsorted(ends, latent, side="right").astype(np.int64))
        return columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """How much there is to preserve in a simulated table.

    Attributes:
        communality: the mean part of the variance of latent variables that common factors explain, between 0 and 1.
        spread: how evenly rows are spread over values: 1 as in the tables that people have on average, less if a few
            values hold nearly all rows, more if all values are frequent.
    """

    communality: float
    spread: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.communality < 1 and self.spread > 0):
            raise InternalError(f"a communality is between 0 and 1, a spread positive; given are {self}")


def random_factor_process(schema: Schema, seed: int, dependence: Dependence) -> LatentFactorProcess:
    """A random process of this dependence; all else depends only on the schema and the seed."""
    random = np.random.default_rng([seed, 3])
    attributes = [attribute for attribute in schema.modeled_attributes if attribute.coded]
    ends = tuple(_normal_quantiles(_random_weights(attribute, dependence.spread, random)) for attribute in attributes)
    directions = random.standard_normal((len(attributes), len(FACTOR_WEIGHTS))) * FACTOR_WEIGHTS
    directions /= np.sqrt((directions**2).sum(axis=1, keepdims=True))
    differences = random.beta(2.0, 2.0, len(attributes))
    own = np.minimum(_move_mean(differences, dependence.communality), MAX_COMMUNALITY)
    return LatentFactorProcess(directions * np.sqrt(own)[:, None], ends)


def _move_mean(numbers: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """Numbers between 0 and 1 whose mean is ½, with odds changed so that their mean is about ``mean``."""
    odds = numbers / (1 - numbers) * mean / (1 - mean)
    return np.asarray(odds / (1 + odds), np.float64)


def _normal_quantiles(weights: ValueWeights) -> ValueWeights:
    """Where cells of these shares end on the normal distribution; the last one has no end."""
    ends = np.clip(np.cumsum(weights)[:-1], 1e-12, 1 - 1e-12)
    return np.array([NormalDist().inv_cdf(end) for end in ends.tolist()])


def _random_weights(attribute: Attribute, spread: float, random: np.random.Generator) -> ValueWeights:
    """Random shares of the cells of an attribute, that of missing last if there is one."""
    if isinstance(attribute, Ordinal | Datetime | Time):
        weights = random_shape(attribute, random)
    elif isinstance(attribute, Ranged):
        weights = _number_weights(attribute, spread, random)
    else:
        ranks = np.arange(attribute.proper_cells) + random.uniform(*ZIPF_OFFSETS)
        weights = random.permutation(ranks ** (-random.uniform(*ZIPF_EXPONENTS) / spread))
        weights /= weights.sum()
    missing = float(random.beta(0.5, 8.0))
    return np.append(weights * (1 - missing), missing) if attribute.has_missing else weights


def _number_weights(attribute: Ranged, spread: float, random: np.random.Generator) -> ValueWeights:
    """A skewed bell on a part of the range, because public bounds are wider than what occurs; and often a spike."""
    edges = attribute.grid().edges
    widths = np.diff(edges)
    middle = (edges[:-1] + (widths - 1) / 2) / max(attribute.steps - 1, 1)
    center, left = random.uniform(0.1, 0.5), spread * np.exp(random.uniform(*np.log(BULK_WIDTHS)))
    std = np.where(middle < center, left, left * random.uniform(1.0, 3.0))
    weights = widths * (np.exp(-0.5 * ((middle - center) / std) ** 2) + 1e-4)
    if random.random() < ROUNDED_PROBABILITY * spread:
        bulk = attribute.steps * 3 * left
        unit = _round_number(bulk / np.exp(random.uniform(*np.log(ROUNDED_VALUES))))
        ends = (attribute.origin + edges - 1) // unit
        weights = np.where(np.diff(ends) > 0, weights, 0.0) if ends[0] < ends[-1] else weights
    weights /= weights.sum()
    if random.random() < SPIKE_PROBABILITY / spread:
        cells = attribute.grid().cell_of(np.array([attribute.step_of(value) for value in attribute.spikes] or [0]))
        share = random.uniform(0.1, 0.9)
        weights *= 1 - share
        np.add.at(weights, cells, share / len(cells))
    return np.asarray(weights, np.float64)


def _round_number(size: float) -> int:
    """The largest of 1, 2, 5, 10, 20, … that is at most ``size``; 1 if there is none."""
    power = 10 ** max(math.floor(math.log10(max(size, 1.0))), 0)
    return int(power * max(digit for digit in (1, 2, 5) if digit == 1 or digit * power <= size))
