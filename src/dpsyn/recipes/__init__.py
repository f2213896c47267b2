"""Whole algorithms, by name. They are the only callers of the gate."""

from dpsyn.recipes.direct import direct
from dpsyn.recipes.dpsyn import dpsyn
from dpsyn.recipes.fourier import fourier
from dpsyn.recipes.independent import independent
from dpsyn.recipes.measuring import DEFAULT_RECIPE, RECIPES, measure
from dpsyn.recipes.mining import frequent_itemsets
from dpsyn.recipes.mwem import MwemOptions, mwem
from dpsyn.recipes.privbasis import PrivBasisOptions, privbasis
from dpsyn.recipes.priview import PriViewOptions, priview
from dpsyn.recipes.privsyn import PrivSynOptions, privsyn
from dpsyn.recipes.reading import reading_plan
from dpsyn.recipes.recipe import Findings, Recipe
from dpsyn.recipes.selecting import DPSynOptions
from dpsyn.recipes.synthesizer import Synthesizer

__all__ = [
    "DEFAULT_RECIPE",
    "RECIPES",
    "DPSynOptions",
    "Findings",
    "MwemOptions",
    "PriViewOptions",
    "PrivBasisOptions",
    "PrivSynOptions",
    "Recipe",
    "Synthesizer",
    "direct",
    "dpsyn",
    "fourier",
    "frequent_itemsets",
    "independent",
    "measure",
    "mwem",
    "privbasis",
    "priview",
    "privsyn",
    "reading_plan",
]
