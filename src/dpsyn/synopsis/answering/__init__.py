"""Questions to a synopsis: any marginal, with standard errors. Nothing here costs privacy."""

from dpsyn.synopsis.answering.answer import Answer, How
from dpsyn.synopsis.answering.asking import METHODS, Method, ask
from dpsyn.synopsis.answering.linear import linear_estimate
from dpsyn.synopsis.answering.observing import observed, parities

__all__ = ["METHODS", "Answer", "How", "Method", "ask", "linear_estimate", "observed", "parities"]
