"""Queries to a synopsis: any marginal, with standard errors. Queries cost no privacy."""

from dpsyn.query.answer import Answer, AnswerSource
from dpsyn.query.engine import RECONSTRUCTION_METHODS, Queryable, ReconstructionMethod, answer_query
from dpsyn.query.linear_estimation import estimate_linear
from dpsyn.query.observations import collect_observations

__all__ = [
    "RECONSTRUCTION_METHODS",
    "Answer",
    "AnswerSource",
    "Queryable",
    "ReconstructionMethod",
    "answer_query",
    "collect_observations",
    "estimate_linear",
]
