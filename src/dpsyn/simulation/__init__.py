"""Made-up tables for any schema: a random but realistic joint distribution, the process public, the seed hidden."""

from dpsyn.simulation._simulate import Simulation, simulate
from dpsyn.simulation.strength import InteractionStrength

__all__ = ["InteractionStrength", "Simulation", "simulate"]
