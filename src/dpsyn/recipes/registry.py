"""All recipes, by name; the only list of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dpsyn.inference import SYNTHESIS_METHODS, Synthesis
from dpsyn.options import find_option_object
from dpsyn.recipes.base import Recipe
from dpsyn.recipes.baselines.direct import Direct
from dpsyn.recipes.baselines.fourier import Fourier
from dpsyn.recipes.baselines.mwem import MWEM
from dpsyn.recipes.dpsyn import DPSyn
from dpsyn.recipes.explore import Explore
from dpsyn.recipes.from_plan import Planned
from dpsyn.recipes.independent import Independent
from dpsyn.recipes.priview import PriView
from dpsyn.recipes.privsyn import PrivSyn

RECIPES: Mapping[str, type[Recipe]] = MappingProxyType(
    {recipe.name: recipe for recipe in (DPSyn, PrivSyn, PriView, Planned, Explore, Independent, Direct, Fourier, MWEM)}
)
"""Every recipe by its name. A test runs each on neighboring tables and compares answers with charges."""


def find_recipe(name: str, options: Mapping[str, Any] | None = None) -> Recipe:
    """A recipe by its name, with some options set by dotted path; values may be text.

    >>> find_recipe("privsyn", {"rare_rows": "800", "synthesis.decay": "constant"}).rare_rows
    800.0
    """
    return find_option_object(name, RECIPES, "recipe", options or {})


def find_synthesis(name: str, options: Mapping[str, Any] | None = None) -> Synthesis:
    """A synthesis method by its name, with some options set by dotted path; values may be text."""
    return find_option_object(name, SYNTHESIS_METHODS, "synthesis method", options or {}, prefix="synthesis.")
