"""How often a recipe will read the table: the most questions it asks, from the schema alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from dpsyn.plan import Plan
from dpsyn.private import MOST_COUNTED, Limits, ReadingPlan, plan_reading
from dpsyn.recipes.fourier import TOGETHER
from dpsyn.recipes.measuring import DEFAULT_RECIPE, recipe_named
from dpsyn.recipes.mwem import MwemOptions
from dpsyn.recipes.selecting import DPSynOptions
from dpsyn.schema import Open, Schema

PLANNED = 4
"""Readings that a plan may take besides: for mappings, histograms inside codes, recoded groups, and Laplace noise."""

MOST_BOUGHT = 1_000
"""Values of an open attribute that are told apart together with others."""


def reading_plan(
    data: Any,
    schema: Schema | str | Path,
    *,
    recipe: str = DEFAULT_RECIPE,
    plan: Plan | None = None,
    query: str | None = None,
    engine: Literal["auto", "memory", "stream", "spark"] = "auto",
) -> ReadingPlan:
    """How often a release will read a table and how much memory it will take; no row is read for it.

    Args:
        data: as for ``measure``.
        schema: what is public about it, or the path of its file.
        recipe: the algorithm that chooses what to measure, with its usual options.
        plan: what a steward wrote down to be measured.
        query: as for ``measure``.
        engine: as for ``measure``.
    """
    recipe_named(recipe)
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    questions = QUESTIONS[recipe](schema) + (PLANNED if plan is not None else 0)
    return plan_reading(data, schema, questions, query=query, engine=engine)


def _opens(schema: Schema) -> int:
    return sum(isinstance(attribute, Open) for attribute in schema.measured)


def _public_size(schema: Schema) -> int:
    """One question where the number of rows is public."""
    return int(schema.neighbours == "replace" and schema.unit is None)


def _singles(schema: Schema) -> int:
    return _opens(schema) + 1


def _scoring(schema: Schema, more_cells: int = 0) -> int:
    """Questions that all pairs are scored in: only so many cells are counted at a time."""
    sizes = [attribute.size if attribute.coded else MOST_BOUGHT for attribute in schema.measured]
    most = Limits().cells
    cells = more_cells + sum(min(most, one * other) for one, other in combinations(sizes, 2))
    return math.ceil(max(1, cells) / (MOST_COUNTED - most))


def _dpsyn(schema: Schema) -> int:
    options = DPSynOptions()
    rounds = _scoring(schema) + _scoring(schema, options.most_triples * options.most_cells)
    return _singles(schema) + 1 + _public_size(schema) + rounds + 2


def _prepared(schema: Schema) -> int:
    return _singles(schema) + 2 * _public_size(schema)


def _fourier(schema: Schema) -> int:
    number = len(schema.measured)
    return math.ceil((number + math.comb(number, 2)) / TOGETHER) + _public_size(schema)


QUESTIONS: dict[str, Callable[[Schema], int]] = {
    "dpsyn": _dpsyn,
    "privsyn": lambda schema: _singles(schema) + _scoring(schema) + 1 + _public_size(schema),
    "priview": lambda schema: _prepared(schema) + 1,
    "explore": lambda schema: _singles(schema) + _scoring(schema) + _public_size(schema),
    "independent": lambda schema: _singles(schema) + _public_size(schema),
    "direct": lambda schema: _prepared(schema) + 1,
    "fourier": _fourier,
    "mwem": lambda schema: _prepared(schema) + 2 * MwemOptions().rounds,
    "mwem-practical": lambda schema: _prepared(schema) + 2 * MwemOptions().rounds,
}
"""The most questions of each recipe; a test compares them with what is asked."""
