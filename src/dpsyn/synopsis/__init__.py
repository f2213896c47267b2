"""The released artefact: what was measured, what it cost, and the rows that can be drawn from it."""

from dpsyn.synopsis.frames import kind_of
from dpsyn.synopsis.modelling import fit_model, single_estimate
from dpsyn.synopsis.parts import Model, Release, Scores, Stage
from dpsyn.synopsis.synopsis import Kind, Synopsis

__all__ = ["Kind", "Model", "Release", "Scores", "Stage", "Synopsis", "fit_model", "kind_of", "single_estimate"]
