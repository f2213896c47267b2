"""The contest's second metric: answers of random range queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.evaluation import kernels
from dpsyn.evaluation.density import BEST
from dpsyn.evaluation.presets import Categories, Preset
from dpsyn.evaluation.results import Figure
from dpsyn.evaluation.tables import Columns, Comparison, Domain, View
from dpsyn.schema import Ranged
from dpsyn.sources import in_threads

LEAST_SHARE = 1e-6
"""An answer below this counts as this."""

WORST = math.log(1000)
"""Answers off by a factor of a thousand score nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """What a query asks of one attribute, in exact codes.

    Attributes:
        place: the attribute.
        low: the lowest code that meets it.
        high: the highest.
        chosen: which codes meet it, where they are not a range.
    """

    place: int
    low: int
    high: int
    chosen: NDArray[np.bool_] | None = None


Query = tuple[Condition, ...]
"""Conditions that a row must meet together."""


def range_score(comparison: Comparison, queries: Sequence[Query]) -> Figure:
    """10⁶·max(0, 1 − RMS(ln max(f, 10⁻⁶) − ln f_real)/ln 1000), where f is the share of rows that meet a query."""
    quick = _rarest_first(comparison.exact, queries)
    answers = np.array(list(in_threads(lambda query: _shares(comparison.exact, query), quick)))
    errors = np.log(np.maximum(answers[:, 1:], LEAST_SHARE)) - np.log(answers[:, :1])
    scores = BEST * np.maximum(0.0, 1 - np.sqrt(np.mean(errors**2, axis=0)) / WORST)
    synthetic, floor, independent = scores.tolist()
    return Figure(synthetic=synthetic, floor=floor, independent=independent)


def _rarest_first(view: View, queries: Sequence[Query]) -> list[Query]:
    """The same queries; what few real rows meet is asked first, so that fewer are left to look at."""
    real = view.tables[0]
    counts = [np.bincount(column, minlength=size) for column, size in zip(real, view.sizes, strict=True)]

    def met(condition: Condition) -> int:
        weights = counts[condition.place]
        within = weights[condition.low : condition.high + 1] if condition.chosen is None else weights[condition.chosen]
        return int(within.sum())

    return [tuple(sorted(query, key=met)) for query in queries]


def _shares(view: View, query: Query) -> list[float]:
    """The share of the rows of each table that meet a query."""
    return [_matches(table, query) / table.shape[1] for table in view.tables]


def _matches(columns: Columns, query: Query) -> int:
    lists = [np.zeros(0, np.bool_) if condition.chosen is None else condition.chosen for condition in query]
    ends = np.cumsum([0, *map(len, lists)])
    offsets = [-1 if condition.chosen is None else end for condition, end in zip(query, ends[:-1], strict=True)]
    places, lows, highs = np.array([(c.place, c.low, c.high) for c in query]).T
    return kernels.count_matches(columns, places, lows, highs, np.array(offsets), np.concatenate(lists))


# ── drawing queries ──────────────────────────────────────────────────────────────────────────────────────────


def random_queries(comparison: Comparison, preset: Preset, rng: np.random.Generator) -> list[Query]:
    """Queries that each start from another row of the real table, which meets them, so that no answer is 0.

    A column has a condition with the preset's probability; columns are drawn again until one has.
    """
    real = comparison.exact.tables[0]
    bases = rng.choice(real.shape[1], min(preset.queries, real.shape[1]), replace=False)
    return [_random_query(comparison.domains, real[:, base].tolist(), preset, rng) for base in bases]


def _random_query(domains: Sequence[Domain], row: Sequence[int], preset: Preset, rng: np.random.Generator) -> Query:
    drawn = np.zeros(0, np.int64)
    while not len(drawn):
        drawn = np.flatnonzero(rng.random(len(domains)) < preset.chance)
    return tuple(_condition(place, domains[place], row[place], preset.categories, rng) for place in drawn.tolist())


def _condition(place: int, domain: Domain, code: int, categories: Categories, rng: np.random.Generator) -> Condition:
    """A condition that a code meets; where that means empty, others must be empty too."""
    if code == domain.missing:
        return Condition(place, code, code)
    if isinstance(domain.attribute, Ranged) and domain.steps is not None:
        reach = rng.uniform(0, domain.attribute.steps - 1)
        low = np.searchsorted(domain.steps, domain.steps[code] - reach, side="left")
        after = np.searchsorted(domain.steps, domain.steps[code] + reach, side="right")
        return Condition(place, int(low), int(after) - 1)
    chosen = np.zeros(domain.size, np.bool_)
    chosen[[code, *_other_categories(domain.missing, code, categories, rng)]] = True
    return Condition(place, 0, domain.size - 1, chosen)


def _other_categories(size: int, code: int, categories: Categories, rng: np.random.Generator) -> list[int]:
    """Codes that a condition admits besides one, of ``size`` codes that are not empty."""
    if categories == "subset":
        others = rng.choice(size - 1, rng.integers(0, size), replace=False) if size > 1 else np.zeros(0, np.int64)
        return [int(other) for other in others + (others >= code)]
    drawn = {code}
    while (another := int(rng.integers(size))) not in drawn:
        drawn.add(another)
    return sorted(drawn - {code})
