"""Whole algorithms, by name. They are the only callers of the gate."""

from dpsyn.recipes.independent import independent
from dpsyn.recipes.recipe import Recipe

RECIPES: dict[str, Recipe] = {"independent": independent}
"""All recipes; a test runs each on neighbouring tables and compares answers with charges."""

__all__ = ["RECIPES", "Recipe", "independent"]
