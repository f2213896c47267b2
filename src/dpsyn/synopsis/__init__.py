"""The released artefact: what was measured, what it cost, and the rows that can be drawn from it."""

from dpsyn.synopsis.parts import Model, Release, Scores, Stage
from dpsyn.synopsis.synopsis import Synopsis

__all__ = ["Model", "Release", "Scores", "Stage", "Synopsis"]
