"""Questions to a synopsis: any marginal, with standard errors. Nothing here costs privacy."""

from dpsyn.synopsis.answering.answer import Answer, How
from dpsyn.synopsis.answering.asking import METHODS, Method, ask

__all__ = ["METHODS", "Answer", "How", "Method", "ask"]
