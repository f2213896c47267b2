"""The released artefact: what was measured, what it cost, and the rows that can be drawn from it."""

from dpsyn.synopsis.parts import Model, Release, Scores, Stage

__all__ = ["Model", "Release", "Scores", "Stage"]
