"""How often a recipe will read the table: the most questions it asks, from the schema alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from dpsyn.plan import Plan
from dpsyn.private import MAX_COUNTED_CELLS, ReleaseLimits, ResourceEstimate, estimate_reading
from dpsyn.recipes._measure import DEFAULT_RECIPE, find_recipe
from dpsyn.recipes.adaptive_selection import AdaptiveSelection
from dpsyn.recipes.baselines.fourier import PARITIES_PER_PASS
from dpsyn.recipes.baselines.mwem import MWEM
from dpsyn.schema import Open, Schema

PLAN_PASSES = 4
"""Readings that a plan may take besides: for mappings, histograms inside codes, recoded groups, and Laplace noise."""

MAX_DISCOVERED = 1_000
"""Values of an open attribute that are told apart together with others."""


def estimate_resources(
    data: Any,
    schema: Schema | str | Path,
    *,
    recipe: str = DEFAULT_RECIPE,
    plan: Plan | None = None,
    query: str | None = None,
    engine: Literal["auto", "memory", "stream", "spark"] = "auto",
) -> ResourceEstimate:
    """How often a release will read a table and how much memory it will take; no row is read for it.

    Args:
        data: as for ``measure``.
        schema: what is public about it, or the path of its file.
        recipe: the algorithm that chooses what to measure, with its usual options.
        plan: what a steward wrote down to be measured.
        query: as for ``measure``.
        engine: as for ``measure``.
    """
    find_recipe(recipe)
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    questions = MAX_PASSES[recipe](schema) + (PLAN_PASSES if plan is not None else 0)
    return estimate_reading(data, schema, questions, query=query, engine=engine)


def _open_passes(schema: Schema) -> int:
    return sum(isinstance(attribute, Open) for attribute in schema.measured_attributes)


def _row_count_passes(schema: Schema) -> int:
    """One question where the number of rows is public."""
    return int(schema.neighbors == "replace" and schema.privacy_unit is None)


def _one_way_passes(schema: Schema) -> int:
    return _open_passes(schema) + 1


def _score_passes(schema: Schema, more_cells: int = 0) -> int:
    """Questions that all pairs are scored in: only so many cells are counted at a time."""
    sizes = [attribute.size if attribute.coded else MAX_DISCOVERED for attribute in schema.measured_attributes]
    most = ReleaseLimits().max_marginal_cells
    cells = more_cells + sum(min(most, one * other) for one, other in combinations(sizes, 2))
    return math.ceil(max(1, cells) / (MAX_COUNTED_CELLS - most))


def _dpsyn_passes(schema: Schema) -> int:
    options = AdaptiveSelection()
    rounds = _score_passes(schema) + _score_passes(schema, options.max_triples * options.max_triple_cells)
    return _one_way_passes(schema) + 1 + _row_count_passes(schema) + rounds + 2


def _preparation_passes(schema: Schema) -> int:
    return _one_way_passes(schema) + 2 * _row_count_passes(schema)


def _fourier_passes(schema: Schema) -> int:
    number = len(schema.measured_attributes)
    return math.ceil((number + math.comb(number, 2)) / PARITIES_PER_PASS) + _row_count_passes(schema)


MAX_PASSES: dict[str, Callable[[Schema], int]] = {
    "dpsyn": _dpsyn_passes,
    "privsyn": lambda schema: _one_way_passes(schema) + _score_passes(schema) + 1 + _row_count_passes(schema),
    "priview": lambda schema: _preparation_passes(schema) + 1,
    "explore": lambda schema: _one_way_passes(schema) + _score_passes(schema) + _row_count_passes(schema),
    "independent": lambda schema: _one_way_passes(schema) + _row_count_passes(schema),
    "direct": lambda schema: _preparation_passes(schema) + 1,
    "fourier": _fourier_passes,
    "mwem": lambda schema: _preparation_passes(schema) + 2 * MWEM().rounds,
    "mwem-practical": lambda schema: _preparation_passes(schema) + 2 * MWEM().rounds,
}
"""The most questions of each recipe; a test compares them with what is asked."""
