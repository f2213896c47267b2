"""Baselines from the literature: points of comparison for other recipes, not ways to release a table."""

from dpsyn.recipes.baselines.direct import Direct
from dpsyn.recipes.baselines.fourier import Fourier
from dpsyn.recipes.baselines.mwem import MWEM

__all__ = ["MWEM", "Direct", "Fourier"]
