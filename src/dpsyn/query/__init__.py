"""Queries to a synopsis: any marginal, with standard errors. Nothing here costs privacy."""

from dpsyn.query.answer import Answer, AnswerSource
from dpsyn.query.blue import estimate_linear
from dpsyn.query.engine import RECONSTRUCTION_METHODS, ReconstructionMethod, answer_query
from dpsyn.query.observations import collect_observations, parity_table

__all__ = [
    "RECONSTRUCTION_METHODS",
    "Answer",
    "AnswerSource",
    "ReconstructionMethod",
    "answer_query",
    "collect_observations",
    "estimate_linear",
    "parity_table",
]
