"""Whole algorithms as objects with options. With ``itemsets`` and ``audits`` they are the only callers of the gate."""

from dpsyn.private import ResourceEstimate
from dpsyn.recipes._measure import DEFAULT_RECIPE, estimate_resources, measure
from dpsyn.recipes.adaptive_selection import AdaptiveSelection
from dpsyn.recipes.base import Measurements, Recipe
from dpsyn.recipes.baselines import MWEM, Direct, Fourier
from dpsyn.recipes.dpsyn import DPSyn
from dpsyn.recipes.explore import Explore
from dpsyn.recipes.from_plan import Planned
from dpsyn.recipes.independent import Independent
from dpsyn.recipes.priview import PriView
from dpsyn.recipes.privsyn import PrivSyn
from dpsyn.recipes.registry import RECIPES, find_recipe, find_synthesis
from dpsyn.recipes.synthesizer import Synthesizer

__all__ = [
    "DEFAULT_RECIPE",
    "MWEM",
    "RECIPES",
    "AdaptiveSelection",
    "DPSyn",
    "Direct",
    "Explore",
    "Fourier",
    "Independent",
    "Measurements",
    "Planned",
    "PriView",
    "PrivSyn",
    "Recipe",
    "ResourceEstimate",
    "Synthesizer",
    "estimate_resources",
    "find_recipe",
    "find_synthesis",
    "measure",
]
