"""Simulated tables for any schema: a random but realistic joint distribution from a public process and a seed."""

from dpsyn.simulation._simulate import Simulation, simulate
from dpsyn.simulation.dependence_strength import InteractionStrength
from dpsyn.simulation.latent_factors import Dependence

__all__ = ["Dependence", "InteractionStrength", "Simulation", "simulate"]
