"""Whole algorithms, by name. They are the only callers of the gate."""

from dpsyn.recipes._measure import DEFAULT_RECIPE, RECIPES, measure
from dpsyn.recipes.adaptive_selection import AdaptiveSelection
from dpsyn.recipes.base import Measurements, Recipe
from dpsyn.recipes.baselines.direct import direct
from dpsyn.recipes.baselines.fourier import fourier
from dpsyn.recipes.baselines.mwem import MWEM, mwem
from dpsyn.recipes.dpsyn import dpsyn
from dpsyn.recipes.independent import independent
from dpsyn.recipes.priview import PriView, priview
from dpsyn.recipes.privsyn import PrivSyn, privsyn
from dpsyn.recipes.resources import estimate_resources
from dpsyn.recipes.synthesizer import Synthesizer

__all__ = [
    "DEFAULT_RECIPE",
    "MWEM",
    "RECIPES",
    "AdaptiveSelection",
    "Measurements",
    "PriView",
    "PrivSyn",
    "Recipe",
    "Synthesizer",
    "direct",
    "dpsyn",
    "estimate_resources",
    "fourier",
    "independent",
    "measure",
    "mwem",
    "priview",
    "privsyn",
]
