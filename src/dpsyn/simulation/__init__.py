"""Made-up tables for any schema: a random but realistic joint distribution, the process public, the seed hidden."""

from dpsyn.simulation.simulate import Simulation, simulate
from dpsyn.simulation.strength import Strength

__all__ = ["Simulation", "Strength", "simulate"]
